package cluster

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
	metricsAPI     = "v1beta1.external.metrics.k8s.io"
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
	if err := c.applyAll(ctx, kedaObjects(k.ports[2], ca)); err != nil {
		return err
	}
	for _, f := range []string{"rbac/role.yaml", "rbac/role_binding.yaml", "service_account/service_account.yaml", "metrics-server/role.yaml", "metrics-server/role_binding.yaml"} {
		b, err := os.ReadFile(filepath.Join(dir, "config", filepath.FromSlash(f))) //nolint:gosec // A file of a module.
		if err != nil {
			return err
		}
		if err := c.applyAll(ctx, string(b)); err != nil {
			return err
		}
	}
	if k.kubeconfig, err = c.As(ctx, kedaNamespace, kedaOperator); err != nil {
		return err
	}
	c.keda = k
	return c.StartKEDA(ctx)
}

// kedaObjects lead the API server to the adapter. KEDA's manifests have the same APIService, without the
// certificate, and a Service for pods.
func kedaObjects(port int, ca []byte) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: %[1]s, namespace: %[2]s}
spec: {type: ExternalName, externalName: localhost}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: %[3]s}
spec:
  service: {name: %[1]s, namespace: %[2]s, port: %[4]d}
  group: external.metrics.k8s.io
  version: v1beta1
  groupPriorityMinimum: 100
  versionPriority: 100
  caBundle: %[5]s
`, kedaService, kedaNamespace, metricsAPI, port, base64.StdEncoding.EncodeToString(ca))
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
	file := func(name string) string { return filepath.Join(k.certs, name) }
	if k.adapter, err = c.run(program{name: kedaAdapter, env: env, args: []string{
		"--bind-address=" + loopback, "--secure-port=" + strconv.Itoa(k.ports[2]), "--port=" + strconv.Itoa(k.ports[3]),
		"--metrics-service-address=" + address(k.ports[0]), "--metrics-service-grpc-authority=" + kedaServerName,
		"--authentication-kubeconfig=" + k.kubeconfig, "--authorization-kubeconfig=" + k.kubeconfig, "--lister-kubeconfig=" + k.kubeconfig,
		"--client-ca-file=" + file("ca.crt"), "--tls-cert-file=" + file("tls.crt"), "--tls-private-key-file=" + file("tls.key"), "--cert-dir=" + k.certs,
	}}); err != nil {
		return err
	}
	return k.adapter.waitFor(ctx, "serving metrics", func(ctx context.Context) error { return c.metricsAPI(ctx, "True") })
}

// StopKEDA ends the operator and the adapter, and waits until the API server knows.
func (c *Cluster) StopKEDA(ctx context.Context) error {
	c.end(c.keda.adapter)
	c.end(c.keda.operator)
	return c.Until(ctx, "the API server misses the metrics of KEDA", func(ctx context.Context) (bool, error) {
		err := c.metricsAPI(ctx, "False")
		return err == nil, err
	})
}

// metricsAPI returns an error unless the API server says whether the adapter answers.
func (c *Cluster) metricsAPI(ctx context.Context, available string) error {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("apiregistration.k8s.io/v1")
	o.SetKind("APIService")
	o.SetName(metricsAPI)
	got, err := c.Get(ctx, o)
	if err == nil && condition(got, "Available") != available {
		err = fmt.Errorf("its APIService has the status %v", got.Object["status"])
	}
	return err
}
