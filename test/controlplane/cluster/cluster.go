/*
Package cluster runs a Kubernetes control plane on this machine, for tests: the
programs themselves, built from their modules, on free ports of the loopback
address. There is no kubelet and no container; what containers would do is
done by the Kubelet of this package, which says that pods run.
*/
package cluster

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
)

// loopback is the only address that anything here listens on.
const loopback = "127.0.0.1"

// A Cluster is a control plane. Its processes end with the test that started it.
type Cluster struct {
	// Config of a client that may do everything.
	Config *rest.Config
	// Client for everything.
	Client dynamic.Interface

	// dir has logs, keys and data.
	dir        string
	kubeconfig string
	mapper     meta.ResettableRESTMapper
	apiserver  *process
}

// Start starts etcd and an API server.
func Start(t testing.TB) *Cluster {
	t.Helper()
	c := &Cluster{dir: t.TempDir()}
	if err := c.start(t); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *Cluster) start(t testing.TB) error {
	t.Helper()
	p, err := ports(3)
	if err != nil {
		return err
	}
	etcd := "http://" + address(p[0])
	if _, err := c.Run(t, "etcd",
		"--data-dir="+filepath.Join(c.dir, "etcd"),
		"--listen-client-urls="+etcd,
		"--advertise-client-urls="+etcd,
		"--listen-peer-urls=http://"+address(p[1]),
		"--unsafe-no-fsync",
	); err != nil {
		return err
	}
	if err := c.credentials(p[2]); err != nil {
		return fmt.Errorf("cannot make credentials: %w", err)
	}
	key := filepath.Join(c.dir, "service-accounts.key")
	c.apiserver, err = c.Run(t, "kube-apiserver",
		"--etcd-servers="+etcd,
		"--bind-address="+loopback,
		"--advertise-address="+loopback,
		"--secure-port="+strconv.Itoa(p[2]),
		"--tls-cert-file="+filepath.Join(c.dir, "tls.crt"),
		"--tls-private-key-file="+filepath.Join(c.dir, "tls.key"),
		"--cert-dir="+c.dir,
		"--authorization-mode=RBAC",
		"--token-auth-file="+filepath.Join(c.dir, "tokens.csv"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+key,
		"--service-account-signing-key-file="+key,
		"--service-cluster-ip-range=10.96.0.0/16",
		// There is nobody who would use the Service kubernetes.
		"--endpoint-reconciler-type=none",
	)
	if err != nil {
		return err
	}
	return c.connect(t.Context())
}

// Run starts a program that ends with the test.
func (c *Cluster) Run(t testing.TB, name string, args ...string) (*process, error) {
	t.Helper()
	bin, err := programs(name)
	if err != nil {
		return nil, err
	}
	p, err := start(bin, c.dir, name, args...)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		select {
		case <-p.exited:
			t.Error(p.failed(fmt.Sprintf("has ended before the test (%v)", p.err)))
		default:
			p.stop()
		}
	})
	return p, nil
}

// credentials of the API server and of its administrator.
func (c *Cluster) credentials(port int) error {
	crt, key, err := cert.GenerateSelfSignedCertKey(loopback, []net.IP{net.ParseIP(loopback)}, nil)
	if err != nil {
		return err
	}
	sign, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	pkcs := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(sign)})
	token := rand.Text()
	files := map[string][]byte{
		"tls.crt":              crt,
		"tls.key":              key,
		"service-accounts.key": pkcs,
		"tokens.csv":           []byte(token + ",admin,admin,system:masters\n"),
	}
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(c.dir, name), b, 0o600); err != nil {
			return err
		}
	}
	c.Config = &rest.Config{
		Host:            "https://" + address(port),
		BearerToken:     token,
		TLSClientConfig: rest.TLSClientConfig{CAData: crt},
		// No limit of its own: the API server has one.
		QPS: -1,
		// Those of other projects' definitions are no concern of a test.
		WarningHandler: rest.NoWarnings{},
	}
	c.kubeconfig = filepath.Join(c.dir, "kubeconfig")
	return clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"": {Server: c.Config.Host, CertificateAuthorityData: crt}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"": {Token: token}},
		Contexts:       map[string]*clientcmdapi.Context{"test": {}},
		CurrentContext: "test",
	}, c.kubeconfig)
}

func (c *Cluster) connect(ctx context.Context) error {
	d, err := discovery.NewDiscoveryClientForConfig(c.Config)
	if err != nil {
		return err
	}
	if c.Client, err = dynamic.NewForConfig(c.Config); err != nil {
		return err
	}
	c.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(d))
	return c.apiserver.waitFor(ctx, "ready", func(ctx context.Context) error {
		return d.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// programs builds what a test runs, and returns the directory that has it.
func programs(names ...string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	if _, err := output(filepath.Join(root, "test", "tools", "build.sh"), names...); err != nil {
		return "", err
	}
	return filepath.Join(root, ".cache", "bin"), nil
}

// Root is the root of the repository.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		_, err := os.Stat(filepath.Join(dir, "test", "tools", "build.sh"))
		if err == nil {
			return dir, nil
		}
		if !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			return "", fmt.Errorf("cannot find the root of the repository: %w", err)
		}
		dir = filepath.Dir(dir)
	}
}

func address(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }
