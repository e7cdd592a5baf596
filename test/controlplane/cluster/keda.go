package cluster

import (
	"context"
	"path/filepath"
	"strconv"
)

// The programs of KEDA by the names of test/tools/build.sh, and where they come from.
const (
	kedaOperator = "keda-operator"
	kedaAdapter  = "keda-adapter"
	kedaIn       = "tools/keda"
	kedaModule   = "github.com/kedacore/keda/v2"

	kedaNamespace = "keda"
	// The Service of the adapter is a name of this machine. Operator and adapter have one certificate.
	kedaService    = "keda-metrics-apiserver"
	kedaServerName = kedaService + "." + kedaNamespace + ".svc"
)

// A keda is KEDA's operator and the adapter that serves its metrics to HorizontalPodAutoscalers.
type keda struct {
	certs, kubeconfig string
	// ports of the operator's metrics and health, and of the adapter's API and metrics.
	ports []int

	operator, adapter *process
}

// installKEDA installs KEDA as its manifests do, with the rights that they give it, and starts it.
func (c *Cluster) installKEDA(ctx context.Context) error {
	k := &keda{certs: filepath.Join(c.dir, "keda")}
	ca, err := certify(k.certs, kedaServerName)
	if err != nil {
		return err
	}
	if k.ports, err = ports(4); err != nil {
		return err
	}
	dir, err := module(kedaIn, kedaModule)
	if err != nil {
		return err
	}
	crds, err := readDefinitions(filepath.Join(dir, "config", "crd", "bases", "*.yaml"))
	if err != nil {
		return err
	}
	if err := c.Define(ctx, crds...); err != nil {
		return err
	}
	if err := c.Namespace(ctx, kedaNamespace); err != nil {
		return err
	}
	if err := c.applyAll(ctx, externalMetrics(kedaNamespace, kedaService, k.ports[2], ca)); err != nil {
		return err
	}
	if err := c.applyFiles(ctx, filepath.Join(dir, "config"),
		"rbac/role.yaml", "rbac/role_binding.yaml", "service_account/service_account.yaml", "metrics-server/role.yaml", "metrics-server/role_binding.yaml",
	); err != nil {
		return err
	}
	if k.kubeconfig, err = c.As(ctx, kedaNamespace, kedaOperator); err != nil {
		return err
	}
	c.keda = k
	return c.StartKEDA(ctx)
}

// StartKEDA starts KEDA, and waits until HorizontalPodAutoscalers get its metrics. It reaches Services by a proxy, and
// this machine without one.
func (c *Cluster) StartKEDA(ctx context.Context) error {
	k := c.keda
	env := []string{
		"HTTP_PROXY=" + c.proxy, "KUBECONFIG=" + k.kubeconfig, "WATCH_NAMESPACE=", "POD_NAMESPACE=" + kedaNamespace, "KEDA_CLUSTER_OBJECT_NAMESPACE=" + kedaNamespace,
	}
	var err error
	if k.operator, err = c.run(program{name: kedaOperator, env: env, args: []string{
		"--enable-prometheus-metrics=false", "--zap-encoder=console", "--zap-time-encoding=rfc3339",
		"--metrics-service-bind-address=" + address(k.ports[0]), "--health-probe-bind-address=" + address(k.ports[1]),
		"--cert-dir=" + k.certs,
	}}); err != nil {
		return err
	}
	if err := k.operator.waitFor(ctx, "ready", func(ctx context.Context) error { return healthy(ctx, "http://"+address(k.ports[1])+"/readyz") }); err != nil {
		return err
	}
	if k.adapter, err = c.run(program{name: kedaAdapter, env: env, args: append(servingMetrics(k.certs, k.kubeconfig, k.ports[2]),
		"--port="+strconv.Itoa(k.ports[3]), "--metrics-service-address="+address(k.ports[0]), "--metrics-service-grpc-authority="+kedaServerName,
	)}); err != nil {
		return err
	}
	return k.adapter.waitFor(ctx, "serving metrics", func(ctx context.Context) error { return c.servesMetrics(ctx, "True") })
}

// StopKEDA ends the operator and the adapter, and waits until the API server knows.
func (c *Cluster) StopKEDA(ctx context.Context) error {
	c.end(c.keda.adapter)
	c.end(c.keda.operator)
	return c.Until(ctx, "the API server misses the metrics of KEDA", func(ctx context.Context) (bool, error) {
		err := c.servesMetrics(ctx, "False")
		return err == nil, err
	})
}
