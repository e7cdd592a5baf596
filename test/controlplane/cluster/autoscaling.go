package cluster

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"os"
	"path/filepath"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

const autoscalerController = "horizontal-pod-autoscaler-controller"

// autoscalerArgs are those of kube-controller-manager. Each controller has the rights that Kubernetes gives
// it, so that it shows whether these suffice to scale. It looks at metrics three times as often as by default.
var autoscalerArgs = []string{"--use-service-account-credentials=true", "--horizontal-pod-autoscaler-sync-period=5s"}

// RunAutoscaling starts kube-state-metrics, Prometheus and KEDA. The definitions of what is composed have to be there.
func (c *Cluster) RunAutoscaling(ctx context.Context) error {
	if err := c.installStateMetrics(ctx); err != nil {
		return err
	}
	return errors.Join(c.installPrometheus(ctx), c.installKEDA(ctx))
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
