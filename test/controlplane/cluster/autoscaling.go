package cluster

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

const autoscalerController = "horizontal-pod-autoscaler-controller"

// autoscalerArgs are those of kube-controller-manager. Each controller has the rights that Kubernetes gives
// it, so that it shows whether these suffice to scale. It looks at metrics three times as often as by default.
var autoscalerArgs = []string{"--use-service-account-credentials=true", "--horizontal-pod-autoscaler-sync-period=5s"}

// metricsAPI is the name of the API by which HorizontalPodAutoscalers get external metrics.
const metricsAPI = "v1beta1.external.metrics.k8s.io"

// RunAutoscaling starts kube-state-metrics, Prometheus, and KEDA or prometheus-adapter. The definitions of what is composed
// have to be there.
func (c *Cluster) RunAutoscaling(ctx context.Context) error {
	if err := c.installStateMetrics(ctx); err != nil {
		return err
	}
	if err := c.installPrometheus(ctx); err != nil {
		return err
	}
	if c.options.Adapter {
		return c.installAdapter(ctx)
	}
	return c.installKEDA(ctx)
}

// monitoringNamespace has what runs beside Prometheus.
const monitoringNamespace = "monitoring"

// monitoringFiles is the directory of package/monitoring.
func monitoringFiles() (string, error) {
	root, err := Root()
	return filepath.Join(root, "package", "monitoring"), err
}

// externalMetrics lead the API server to the server of external metrics that has a port of this machine. Manifests have
// the same APIService without the certificate, and a Service for pods.
func externalMetrics(namespace, service string, port int, ca []byte) string {
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
`, service, namespace, metricsAPI, port, base64.StdEncoding.EncodeToString(ca))
}

// servesMetrics returns an error unless the API server says whether external metrics are available.
func (c *Cluster) servesMetrics(ctx context.Context, available string) error {
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

// servingMetrics are the arguments of a server of external metrics.
func servingMetrics(certs, kubeconfig string, port int) []string {
	file := func(name string) string { return filepath.Join(certs, name) }
	return []string{
		"--bind-address=" + loopback, "--secure-port=" + strconv.Itoa(port),
		"--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig, "--lister-kubeconfig=" + kubeconfig,
		"--client-ca-file=" + file("ca.crt"), "--tls-cert-file=" + file("tls.crt"), "--tls-private-key-file=" + file("tls.key"), "--cert-dir=" + certs,
	}
}

// frontProxy is the name by which the API server calls other API servers.
const frontProxy = "front-proxy-client"

// aggregation are the arguments of an API server that passes requests on to others.
func (c *Kubernetes) aggregation() ([]string, error) {
	dir := filepath.Join(c.dir, "front-proxy")
	if _, err := certify(dir, frontProxy); err != nil {
		return nil, err
	}
	return []string{
		"--requestheader-client-ca-file=" + filepath.Join(dir, "ca.crt"),
		"--requestheader-allowed-names=" + frontProxy,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + filepath.Join(dir, "tls.crt"),
		"--proxy-client-key-file=" + filepath.Join(dir, "tls.key"),
	}, nil
}

// certify makes a directory with a certificate of a name, for servers and for clients, and returns what the
// other side has to trust.
func certify(dir, name string) ([]byte, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	// It is its own authority.
	signed, err := cert.NewSelfSignedCACert(cert.Config{CommonName: name}, key)
	if err != nil {
		return nil, err
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, err
	}
	crt, err := cert.EncodeCertificates(signed)
	if err != nil {
		return nil, err
	}
	return crt, writeFiles(dir, map[string][]byte{"ca.crt": crt, "tls.crt": crt, "tls.key": keyPEM})
}
