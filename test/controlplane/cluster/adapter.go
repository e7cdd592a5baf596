package cluster

import (
	"context"
	"path/filepath"
)

// The program prometheus-adapter by its name of test/tools/build.sh, and where it comes from.
const (
	adapterProgram = "prometheus-adapter"
	adapterIn      = "tools/prometheus-adapter"
	adapterModule  = "sigs.k8s.io/prometheus-adapter"
)

// installAdapter starts prometheus-adapter with the rights that its manifests give it, and with the rules and the rights
// of docs/scaling.md. It serves what Prometheus knows as external metrics.
func (c *Cluster) installAdapter(ctx context.Context) error {
	files, err := monitoringFiles()
	if err != nil {
		return err
	}
	dir, err := module(adapterIn, adapterModule)
	if err != nil {
		return err
	}
	certs := filepath.Join(c.dir, adapterProgram)
	ca, err := certify(certs, adapterProgram+"."+monitoringNamespace+".svc")
	if err != nil {
		return err
	}
	p, err := ports(1)
	if err != nil {
		return err
	}
	if err := c.Namespace(ctx, monitoringNamespace); err != nil {
		return err
	}
	if err := c.applyAll(ctx, externalMetrics(monitoringNamespace, adapterProgram, p[0], ca)); err != nil {
		return err
	}
	if err := c.applyFiles(ctx, filepath.Join(dir, "deploy", "manifests"), "service-account.yaml", "cluster-role-binding-delegator.yaml", "role-binding-auth-reader.yaml"); err != nil {
		return err
	}
	if err := c.applyFiles(ctx, files, "prometheus-adapter-rbac.yaml"); err != nil {
		return err
	}
	kubeconfig, err := c.As(ctx, monitoringNamespace, adapterProgram)
	if err != nil {
		return err
	}
	started, err := c.run(program{name: adapterProgram, args: append(servingMetrics(certs, kubeconfig, p[0]),
		"--config="+filepath.Join(files, "prometheus-adapter.yaml"), "--prometheus-url="+c.PrometheusURL(),
		"--metrics-relist-interval=5s", "--metrics-max-age=1m",
	)})
	if err != nil {
		return err
	}
	return started.waitFor(ctx, "serving metrics", func(ctx context.Context) error { return c.servesMetrics(ctx, "True") })
}
