package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

const (
	// adapterProgram is a name of test/tools/build.sh.
	adapterProgram   = "prometheus-adapter"
	adapterNamespace = "monitoring"
)

// installAdapter starts prometheus-adapter with the rules and the rights that docs/scaling.md gives it. It serves what
// Prometheus knows as external metrics.
func (c *Cluster) installAdapter(ctx context.Context) error {
	root, err := Root()
	if err != nil {
		return err
	}
	files, certs := filepath.Join(root, "package", "monitoring"), filepath.Join(c.dir, adapterProgram)
	rights, err := os.ReadFile(filepath.Join(files, "prometheus-adapter-rbac.yaml")) //nolint:gosec // A file of the repository.
	if err != nil {
		return err
	}
	ca, err := certify(certs, adapterProgram+"."+adapterNamespace+".svc")
	if err != nil {
		return err
	}
	p, err := ports(1)
	if err != nil {
		return err
	}
	if err := c.Namespace(ctx, adapterNamespace); err != nil {
		return err
	}
	if err := c.applyAll(ctx, externalMetrics(adapterNamespace, adapterProgram, p[0], ca)+adapterAccount()+"---\n"+string(rights)); err != nil {
		return err
	}
	kubeconfig, err := c.As(ctx, adapterNamespace, adapterProgram)
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

// adapterAccount is the account of prometheus-adapter, with the rights that its manifests give it to know who asks.
func adapterAccount() string {
	return fmt.Sprintf(`
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: %[1]s, namespace: %[2]s}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "%[1]s:system:auth-delegator"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:auth-delegator"}
subjects: [{kind: ServiceAccount, name: %[1]s, namespace: %[2]s}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: %[1]s-auth-reader, namespace: kube-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: extension-apiserver-authentication-reader}
subjects: [{kind: ServiceAccount, name: %[1]s, namespace: %[2]s}]
`, adapterProgram, adapterNamespace)
}
