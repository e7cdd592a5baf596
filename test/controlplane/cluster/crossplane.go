package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// crossplaneNamespace has Crossplane and its functions.
const crossplaneNamespace = "crossplane-system"

// The module that core is built from, and the directory of the go.mod with its version.
const (
	coreIn     = "tools/crossplane"
	coreModule = "github.com/crossplane/crossplane/v2"
)

// RecommendedCoreArgs are the arguments of Crossplane core that docs/operations.md
// recommends, for two cores. With the defaults the circuit breaker opens when ten pods
// become ready at once, and everything takes half a minute longer; and Crossplane works on
// so much at once that a small API server is busy with what is old by the time it is done.
var RecommendedCoreArgs = []string{"--circuit-breaker-burst=2000", "--circuit-breaker-refill-rate=20", "--max-concurrent-reconciles=10"}

// RunCrossplane starts Crossplane's core and its RBAC manager. They may do what
// Crossplane's own chart lets them do, and nothing more.
func (c *Cluster) RunCrossplane(ctx context.Context) error {
	dir, err := module(coreIn, coreModule)
	if err != nil {
		return err
	}
	if err := c.Namespace(ctx, crossplaneNamespace); err != nil {
		return err
	}
	objects, err := chart{
		dir: filepath.Join(dir, "cluster", "charts", "crossplane"), release: "crossplane", namespace: crossplaneNamespace,
	}.render(
		"templates/serviceaccount.yaml", "templates/clusterrole.yaml", "templates/clusterrolebinding.yaml",
		"templates/rbac-manager-serviceaccount.yaml", "templates/rbac-manager-clusterrole.yaml",
		"templates/rbac-manager-clusterrolebinding.yaml", "templates/rbac-manager-managed-clusterroles.yaml",
		"templates/rbac-manager-allowed-provider-permissions.yaml", "templates/secret.yaml")
	if err != nil {
		return err
	}
	for _, o := range objects {
		if _, err := c.Apply(ctx, o, fieldManager); err != nil {
			return fmt.Errorf("cannot install %s %s of Crossplane's chart: %w", o.GetKind(), o.GetName(), err)
		}
	}
	if err := c.initCore(ctx, dir); err != nil {
		return err
	}
	manager, err := c.As(ctx, crossplaneNamespace, "rbac-manager")
	if err != nil {
		return err
	}
	bin, err := programs("crossplane-core")
	if err != nil {
		return err
	}
	if _, err := c.run(program{
		name: "rbac-manager", bin: filepath.Join(bin, "crossplane-core"), env: []string{"KUBECONFIG=" + manager},
		args: []string{"rbac", "start", "--provider-clusterrole=crossplane:allowed-provider-permissions"},
	}); err != nil {
		return err
	}
	return c.RunCore(ctx)
}

// coreEnvironment is that of core's Deployment in the chart.
func (c *Cluster) coreEnvironment(ctx context.Context) ([]string, error) {
	kubeconfig, err := c.As(ctx, crossplaneNamespace, "crossplane")
	if err != nil {
		return nil, err
	}
	return []string{
		"KUBECONFIG=" + kubeconfig,
		"POD_NAMESPACE=" + crossplaneNamespace,
		"POD_SERVICE_ACCOUNT=crossplane",
		"TLS_CA_SECRET_NAME=crossplane-root-ca",
		"TLS_SERVER_SECRET_NAME=crossplane-tls-server",
		"TLS_CLIENT_SECRET_NAME=crossplane-tls-client",
		"TLS_CLIENT_CERTS_DIR=" + c.clientCerts(),
		"XPKG_CACHE_DIR=" + c.packageCache(),
		"HTTPS_PROXY=" + c.proxy,
	}, nil
}

func (c *Cluster) clientCerts() string  { return filepath.Join(c.dir, "crossplane-tls-client") }
func (c *Cluster) packageCache() string { return filepath.Join(c.dir, "crossplane-packages") }

// initCore does what core's init container does, with the arguments of the chart's own
// values.
func (c *Cluster) initCore(ctx context.Context, dir string) error {
	env, err := c.coreEnvironment(ctx)
	if err != nil {
		return err
	}
	bin, err := programs("crossplane-core")
	if err != nil {
		return err
	}
	if err := c.Until(ctx, "core is initialized", func(context.Context) (bool, error) {
		// It fails until its definitions are served and its ClusterRole is put
		// together, as an init container does, too.
		p, err := start(c.dir, program{
			name: "crossplane-init", bin: filepath.Join(bin, "crossplane-core"), args: []string{"core", "init", "--activation=*"},
			// Its webhooks' Service has no address here: RunCore installs them.
			env: append(env, "CRDS_PATH="+filepath.Join(dir, "cluster", "crds"), "ENABLE_WEBHOOKS=false"),
		})
		if err != nil {
			return false, err
		}
		<-p.exited
		if p.err != nil {
			return false, p.failed("fails")
		}
		return true, nil
	}); err != nil {
		return err
	}
	c.mapper.Reset()
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	s, err := client.CoreV1().Secrets(crossplaneNamespace).Get(ctx, "crossplane-tls-client", metav1.GetOptions{})
	if err != nil {
		return err
	}
	return writeFiles(c.clientCerts(), s.Data)
}

// RunCore starts Crossplane's core.
func (c *Cluster) RunCore(ctx context.Context) error {
	env, err := c.coreEnvironment(ctx)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.packageCache(), 0o700); err != nil {
		return err
	}
	bin, err := programs("crossplane-core")
	if err != nil {
		return err
	}
	p, err := ports(3)
	if err != nil {
		return err
	}
	c.coreMetrics = address(p[0])
	certs := filepath.Join(c.dir, "crossplane-tls-server")
	ca, err := serving(certs)
	if err != nil {
		return err
	}
	c.core, err = c.run(program{
		name: "crossplane", bin: filepath.Join(bin, "crossplane-core"),
		env: append(env, "TLS_SERVER_CERTS_DIR="+certs, "WEBHOOK_PORT="+strconv.Itoa(p[2])),
		args: append([]string{
			"core", "start",
			"--metrics-port=" + strconv.Itoa(p[0]), "--health-probe-port=" + strconv.Itoa(p[1]),
		}, c.options.CoreArgs...),
	})
	if err != nil {
		return err
	}
	if err := c.core.waitFor(ctx, "ready", func(ctx context.Context) error {
		return healthy(ctx, "http://"+address(p[1])+"/readyz")
	}); err != nil {
		return err
	}
	return c.coreWebhooks(ctx, "https://"+address(p[2]), ca)
}

// coreWebhooks installs the webhook that keeps what a Usage speaks of from being deleted.
func (c *Cluster) coreWebhooks(ctx context.Context, url string, ca []byte) error {
	dir, err := module(coreIn, coreModule)
	if err != nil {
		return err
	}
	b, err := os.ReadFile(filepath.Join(dir, "cluster", "webhookconfigurations", "usage.yaml")) //nolint:gosec // A file of a module.
	if err != nil {
		return err
	}
	all, err := Documents(b)
	if err != nil {
		return err
	}
	return c.webhooks(ctx, all, url, ca)
}

// StopCore ends Crossplane's core, as a drain does. RunCore starts it again.
func (c *Cluster) StopCore() { c.end(c.core) }

// As returns a kubeconfig that may do what a ServiceAccount may do.
func (c *Kubernetes) As(ctx context.Context, namespace, name string) (string, error) {
	token, err := c.token(ctx, namespace, name)
	if err != nil {
		return "", err
	}
	file := filepath.Join(c.dir, fmt.Sprintf("kubeconfig-%s-%s", namespace, name))
	return file, c.writeKubeconfig(file, token)
}

// token of a ServiceAccount.
func (c *Kubernetes) token(ctx context.Context, namespace, name string) (string, error) {
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return "", err
	}
	// Nobody renews it.
	seconds := int64(365 * 24 * time.Hour / time.Second)
	r, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, &authv1.TokenRequest{
		Spec: authv1.TokenRequestSpec{ExpirationSeconds: &seconds},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("cannot get a token of ServiceAccount %s/%s: %w", namespace, name, err)
	}
	return r.Status.Token, nil
}

// writeFiles writes files into a directory of their own.
func writeFiles[V []byte | string](dir string, files map[string]V) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(b), 0o600); err != nil {
			return err
		}
	}
	return nil
}
