package cluster

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

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

// A Kubernetes is an API server and what runs on it: controllers, schedulers, nodes.
// The control plane has one, and each remote cluster.
type Kubernetes struct {
	// Config of a client that may do everything.
	Config *rest.Config
	// Client for everything.
	Client dynamic.Interface
	// Kubeconfig is the file of the same client.
	Kubeconfig string

	name      string
	dir       string
	mapper    meta.ResettableRESTMapper
	apiserver *process
	kwok      *process
	network   *network
	gateway   *StandInGateway
	// gate is passed by all connections from outside, if there is one.
	gate *gate
	// autoscales says that HorizontalPodAutoscalers work, by metrics of another API server.
	autoscales bool

	// background is what runs in this process; stopping ends it.
	background sync.WaitGroup
	stopping   context.Context //nolint:containedctx // It lives as long as the cluster.
	stop       context.CancelFunc

	mu        sync.Mutex
	processes []*process
	failures  []error
	// mapped are addresses that lead elsewhere, see MapEndpoint.
	mapped map[string]string
}

func newKubernetes(ctx context.Context, name, dir string) *Kubernetes {
	c := &Kubernetes{name: name, dir: dir}
	c.stopping, c.stop = context.WithCancel(context.WithoutCancel(ctx))
	return c
}

// Stop ends all processes by force, the last first: nothing of them is needed any more. It tells
// of those that had ended before, and of what failed in the background.
func (c *Kubernetes) Stop() error {
	c.stop()
	c.background.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range slices.Backward(c.processes) {
		select {
		case <-p.exited:
			c.failures = append(c.failures, p.failed(fmt.Sprintf("has ended before its time (%v)", p.err)))
		default:
			p.kill()
		}
	}
	c.processes = nil
	return errors.Join(c.failures...)
}

// Dir has the logs of all processes.
func (c *Kubernetes) Dir() string { return c.dir }

// begin runs something in the background until the cluster stops.
func (c *Kubernetes) begin(f func(context.Context) error) {
	c.background.Go(func() {
		if err := f(c.stopping); err != nil && c.stopping.Err() == nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.failures = append(c.failures, err)
		}
	})
}

// serve starts the API server, with credentials of its own. Several that share an etcd
// have different names.
func (c *Kubernetes) serve(ctx context.Context, etcd string) error {
	p, err := ports(1)
	if err != nil {
		return err
	}
	if err := c.credentials(p[0]); err != nil {
		return fmt.Errorf("cannot make credentials: %w", err)
	}
	var aggregation []string
	if c.autoscales {
		if aggregation, err = c.aggregation(); err != nil {
			return err
		}
	}
	key := filepath.Join(c.dir, "service-accounts.key")
	c.apiserver, err = c.run(program{name: "kube-apiserver", env: collectSeldom(), args: append([]string{
		"--etcd-servers=" + etcd,
		"--etcd-prefix=/" + c.name,
		"--bind-address=" + loopback,
		"--advertise-address=" + loopback,
		"--secure-port=" + strconv.Itoa(p[0]),
		"--tls-cert-file=" + filepath.Join(c.dir, "tls.crt"),
		"--tls-private-key-file=" + filepath.Join(c.dir, "tls.key"),
		"--cert-dir=" + c.dir,
		"--authorization-mode=RBAC",
		"--token-auth-file=" + filepath.Join(c.dir, "tokens.csv"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + key,
		"--service-account-signing-key-file=" + key,
		"--service-cluster-ip-range=10.96.0.0/16",
		// There is nobody who would use the Service kubernetes.
		"--endpoint-reconciler-type=none",
	}, aggregation...)})
	if err != nil {
		return err
	}
	return c.connect(ctx)
}

// collectSeldom is the environment of an API server, which makes more garbage than all others
// together. make test-all runs up to seven of them at once, and each reaches its limit in the end.
func collectSeldom() []string {
	limit := max(1<<30, mainMemory()/16)
	return []string{"GOGC=800", fmt.Sprintf("GOMEMLIMIT=%d", limit)}
}

// run starts a program that ends with the cluster. Its name is that of a program
// of test/tools, unless it says where it is.
func (c *Kubernetes) run(p program) (*process, error) {
	if p.bin == "" {
		bin, err := programs(p.name)
		if err != nil {
			return nil, err
		}
		p.bin = filepath.Join(bin, p.name)
	}
	started, err := start(c.dir, p)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.processes = append(c.processes, started)
	return started, nil
}

// end ends one process before the others.
func (c *Kubernetes) end(p *process) {
	c.mu.Lock()
	c.processes = slices.DeleteFunc(c.processes, func(o *process) bool { return o == p })
	c.mu.Unlock()
	p.stop()
}

// credentials of the API server and of its administrator.
func (c *Kubernetes) credentials(port int) error {
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
	c.Kubeconfig = filepath.Join(c.dir, "kubeconfig")
	return c.writeKubeconfig(c.Kubeconfig, token)
}

func (c *Kubernetes) writeKubeconfig(file, token string) error {
	return clientcmd.WriteToFile(c.kubeconfig(c.Config.Host, token), file)
}

// kubeconfig with one context, called as the cluster is.
func (c *Kubernetes) kubeconfig(server, token string) clientcmdapi.Config {
	return clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{c.name: {Server: server, CertificateAuthorityData: c.Config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{c.name: {Token: token}},
		Contexts:       map[string]*clientcmdapi.Context{c.name: {Cluster: c.name, AuthInfo: c.name}},
		CurrentContext: c.name,
	}
}

func (c *Kubernetes) connect(ctx context.Context) error {
	d, err := discovery.NewDiscoveryClientForConfig(c.Config)
	if err != nil {
		return err
	}
	if c.Client, err = dynamic.NewForConfig(c.Config); err != nil {
		return err
	}
	c.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(d))
	return c.serves(ctx)
}

// serves waits until the API server is ready.
func (c *Kubernetes) serves(ctx context.Context) error {
	d, err := discovery.NewDiscoveryClientForConfig(c.Config)
	if err != nil {
		return err
	}
	return c.apiserver.waitFor(ctx, "ready", func(ctx context.Context) error {
		return d.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}
