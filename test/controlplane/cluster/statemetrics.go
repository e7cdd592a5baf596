package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// stateMetricsProgram is a name of test/tools/build.sh.
const stateMetricsProgram = "kube-state-metrics"

// installStateMetrics starts kube-state-metrics with the configuration and the rights that docs/monitoring.md gives
// it. It makes metrics of the status of services and clusters, and of nothing else.
func (c *Cluster) installStateMetrics(ctx context.Context) error {
	files, err := monitoringFiles()
	if err != nil {
		return err
	}
	rights, err := os.ReadFile(filepath.Join(files, "kube-state-metrics-rbac.yaml")) //nolint:gosec // A file of the repository.
	if err != nil {
		return err
	}
	role, err := Documents(rights)
	if err != nil {
		return err
	}
	if len(role) != 1 {
		return fmt.Errorf("kube-state-metrics-rbac.yaml has %d objects, not one", len(role))
	}
	if err := c.Namespace(ctx, monitoringNamespace); err != nil {
		return err
	}
	if err := c.applyAll(ctx, string(rights)+accountOf(role[0])); err != nil {
		return err
	}
	kubeconfig, err := c.As(ctx, monitoringNamespace, stateMetricsProgram)
	if err != nil {
		return err
	}
	p, err := ports(2)
	if err != nil {
		return err
	}
	c.stateMetrics = address(p[0])
	started, err := c.run(program{name: stateMetricsProgram, args: []string{
		"--kubeconfig=" + kubeconfig, "--host=" + loopback, "--port=" + strconv.Itoa(p[0]), "--telemetry-host=" + loopback, "--telemetry-port=" + strconv.Itoa(p[1]),
		"--custom-resource-state-only", "--custom-resource-state-config-file=" + filepath.Join(files, "kube-state-metrics.yaml"),
	}})
	if err != nil {
		return err
	}
	return started.waitFor(ctx, "ready", func(ctx context.Context) error { return healthy(ctx, "http://"+c.stateMetrics+"/healthz") })
}

// accountOf is the account of kube-state-metrics, which has a role.
func accountOf(role *unstructured.Unstructured) string {
	return fmt.Sprintf(`
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: %[1]s, namespace: %[2]s}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[3]q}
subjects: [{kind: ServiceAccount, name: %[1]s, namespace: %[2]s}]
`, stateMetricsProgram, monitoringNamespace, role.GetName())
}
