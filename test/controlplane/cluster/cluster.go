/*
Package cluster runs a Kubernetes control plane on this machine: the programs
themselves, built from their modules, on free ports of the loopback address,
without Docker and without being root. Up starts all of it, with Crossplane and
what an InferenceService needs; Start and the Run methods start parts.

There is no container. What kubelets would do is done by KWOK, which says that pods
run. Only of Crossplane's functions there are processes.
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
	"slices"
	"strconv"
	"sync"
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

// Options of a Cluster.
type Options struct {
	// Dir has logs, keys and data. It is made if it is not there.
	Dir string
	// Progress is told what is being done, in short lines. Nobody is, if it is nil.
	Progress func(string)
	// Nodes of KWOK, and the GPUs that each of them has.
	Nodes, GPUs int
	// NodesPerHyperNode puts that many nodes below each of Volcano's HyperNodes, and
	// all of those below one. Zero makes none.
	NodesPerHyperNode int
	// CoreArgs are more arguments of Crossplane core.
	CoreArgs []string
}

// A Cluster is a control plane. Its processes end with the process that started it.
type Cluster struct {
	// Config of a client that may do everything.
	Config *rest.Config
	// Client for everything.
	Client dynamic.Interface
	// Kubeconfig is the file of the same client.
	Kubeconfig string

	options   Options
	dir       string
	mapper    meta.ResettableRESTMapper
	etcd      *process
	apiserver *process
	core      *process
	kwok      *process
	// coreMetrics is where core says what it does.
	coreMetrics string
	network     *network
	registry    *Registry
	containers  *Containers

	// background is what runs in this process; stopping ends it.
	background sync.WaitGroup
	stopping   context.Context //nolint:containedctx // It lives as long as the cluster.
	stop       context.CancelFunc

	mu        sync.Mutex
	processes []*process
	failures  []error
}

// Start starts etcd and an API server. Whatever comes of it, Stop has to be called
// on the cluster.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	c := &Cluster{options: o, dir: o.Dir}
	c.stopping, c.stop = context.WithCancel(context.WithoutCancel(ctx))
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return c, fmt.Errorf("cannot make the directory of the cluster: %w", err)
	}
	return c, c.start(ctx)
}

// Test starts etcd and an API server that end with the test.
func Test(t testing.TB) *Cluster {
	t.Helper()
	c, err := Start(t.Context(), Options{Dir: logs(t)})
	EndsWith(t, c)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// EndsWith stops a cluster with the test, and fails the test if a part of it ended
// before.
func EndsWith(t testing.TB, c *Cluster) {
	t.Helper()
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
}

// Stop ends all processes, the last first. It tells of those that had ended
// before, and of what failed in the background.
func (c *Cluster) Stop() error {
	c.stop()
	c.background.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range slices.Backward(c.processes) {
		select {
		case <-p.exited:
			c.failures = append(c.failures, p.failed(fmt.Sprintf("has ended before its time (%v)", p.err)))
		default:
			p.stop()
		}
	}
	c.processes = nil
	return errors.Join(c.failures...)
}

// Dir has the logs of all processes.
func (c *Cluster) Dir() string { return c.dir }

// begin runs something in the background until the cluster stops.
func (c *Cluster) begin(f func(context.Context) error) {
	c.background.Go(func() {
		if err := f(c.stopping); err != nil && c.stopping.Err() == nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.failures = append(c.failures, err)
		}
	})
}

func (c *Cluster) progress(format string, args ...any) {
	if c.options.Progress != nil {
		c.options.Progress(fmt.Sprintf(format, args...))
	}
}

func (c *Cluster) start(ctx context.Context) error {
	p, err := ports(3)
	if err != nil {
		return err
	}
	etcd := "http://" + address(p[0])
	c.etcd, err = c.run(program{name: "etcd", args: []string{
		"--data-dir=" + filepath.Join(c.dir, "etcd"),
		"--listen-client-urls=" + etcd,
		"--advertise-client-urls=" + etcd,
		"--listen-peer-urls=http://" + address(p[1]),
		"--unsafe-no-fsync",
	}})
	if err != nil {
		return err
	}
	if err := c.credentials(p[2]); err != nil {
		return fmt.Errorf("cannot make credentials: %w", err)
	}
	key := filepath.Join(c.dir, "service-accounts.key")
	c.apiserver, err = c.run(program{name: "kube-apiserver", args: []string{
		"--etcd-servers=" + etcd,
		"--bind-address=" + loopback,
		"--advertise-address=" + loopback,
		"--secure-port=" + strconv.Itoa(p[2]),
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
	}})
	if err != nil {
		return err
	}
	return c.connect(ctx)
}

// run starts a program that ends with the cluster. Its name is that of a program
// of test/tools, unless it says where it is.
func (c *Cluster) run(p program) (*process, error) {
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
func (c *Cluster) end(p *process) {
	c.mu.Lock()
	c.processes = slices.DeleteFunc(c.processes, func(o *process) bool { return o == p })
	c.mu.Unlock()
	p.stop()
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
	c.Kubeconfig = filepath.Join(c.dir, "kubeconfig")
	return c.writeKubeconfig(c.Kubeconfig, token)
}

func (c *Cluster) writeKubeconfig(file, token string) error {
	const name = "inferenceservice"
	return clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: c.Config.Host, CertificateAuthorityData: c.Config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {Token: token}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	}, file)
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
	return c.serves(ctx)
}

// serves waits until the API server is ready.
func (c *Cluster) serves(ctx context.Context) error {
	d, err := discovery.NewDiscoveryClientForConfig(c.Config)
	if err != nil {
		return err
	}
	return c.apiserver.waitFor(ctx, "ready", func(ctx context.Context) error {
		return d.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// programs builds what is run, and returns the directory that has it.
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
