package cluster

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/cert"
)

// The lease that makes a manager of LeaderWorkerSet the one that acts.
const (
	lwsNamespace = "lws-system"
	lwsLease     = "b8b2488c.x-k8s.io"
)

// StandbyLWS starts the manager of LeaderWorkerSet with its webhooks but without
// its controllers: another manager, which is none, holds the lease. What
// the webhooks do to an object can be seen alone then. Its gang scheduling is
// off, because it would put each LeaderWorkerSet into a gang of its own.
func (c *Kubernetes) StandbyLWS(ctx context.Context) error {
	objects, err := Documents([]byte(`
apiVersion: v1
kind: Namespace
metadata:
  name: ` + lwsNamespace + `
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata:
  name: ` + lwsLease + `
  namespace: ` + lwsNamespace + `
spec:
  holderIdentity: nobody
  leaseDurationSeconds: 86400
  acquireTime: "2099-01-01T00:00:00.000000Z"
  renewTime: "2099-01-01T00:00:00.000000Z"
`))
	if err != nil {
		return err
	}
	for _, o := range objects {
		if _, err := c.Apply(ctx, o, fieldManager); err != nil {
			return err
		}
	}
	p, err := ports(1)
	if err != nil {
		return err
	}
	dir := filepath.Join(c.dir, "lws")
	ca, err := serving(dir)
	if err != nil {
		return err
	}
	config := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, `
apiVersion: config.lws.x-k8s.io/v1alpha1
kind: Configuration
leaderElection:
  leaderElect: true
  # It ends when it cannot renew, and nobody starts it again, as a kubelet would.
  leaseDuration: 3600s
  renewDeadline: 3500s
  # The leader renews its lease at this interval, too.
  retryPeriod: 5s
  resourceName: %s
internalCertManagement:
  enable: false
metrics:
  bindAddress: "0"
health:
  healthProbeBindAddress: "0"
webhook:
  host: %s
  port: %d
  certDir: %s
`, lwsLease, loopback, p[0], dir), 0o600); err != nil {
		return err
	}
	manager, err := c.run(program{name: "lws-manager", args: []string{"--kubeconfig=" + c.Kubeconfig, "--config=" + config}})
	if err != nil {
		return err
	}
	if err := manager.waitFor(ctx, "listening", tlsListening(p[0])); err != nil {
		return err
	}
	return c.lwsWebhooks(ctx, "https://"+address(p[0]), ca)
}

// LeadLWS gives the lease free, so that the manager's controllers start.
func (c *Kubernetes) LeadLWS(ctx context.Context) error {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("coordination.k8s.io/v1")
	o.SetKind("Lease")
	o.SetNamespace(lwsNamespace)
	o.SetName(lwsLease)
	if err := c.Delete(ctx, o); err != nil {
		return err
	}
	return c.Until(ctx, "the manager of LeaderWorkerSet leads", func(ctx context.Context) (bool, error) {
		l, err := c.Get(ctx, o)
		if err != nil {
			return false, err
		}
		holder, _, _ := unstructured.NestedString(l.Object, "spec", "holderIdentity")
		return holder != "" && holder != "nobody", nil
	})
}

// lwsWebhooks installs the module's webhooks, as what its kustomization makes of
// them: pods are looked at only if they are a LeaderWorkerSet's.
func (c *Kubernetes) lwsWebhooks(ctx context.Context, url string, ca []byte) error {
	dir, err := module("tools/lws", "sigs.k8s.io/lws")
	if err != nil {
		return err
	}
	b, err := os.ReadFile(filepath.Join(dir, "config", "webhook", "manifests.yaml")) //nolint:gosec // A file of a module.
	if err != nil {
		return err
	}
	all, err := Documents(b)
	if err != nil {
		return err
	}
	for _, o := range all {
		o.SetName("lws-" + o.GetName())
	}
	return c.webhooks(ctx, all, url, ca)
}

// webhooks installs the configurations of webhooks that are served here, in place of
// a Service.
func (c *Kubernetes) webhooks(ctx context.Context, all []*unstructured.Unstructured, url string, ca []byte) error {
	for _, o := range all {
		hooks, _, err := unstructured.NestedSlice(o.Object, "webhooks")
		if err != nil {
			return err
		}
		for _, h := range hooks {
			if err := viaURL(h.(map[string]any), url, ca); err != nil { //nolint:forcetypeassert // A webhook is a map.
				return err
			}
		}
		if err := unstructured.SetNestedSlice(o.Object, hooks, "webhooks"); err != nil {
			return err
		}
		if _, err := c.Apply(ctx, o, fieldManager); err != nil {
			return err
		}
	}
	return nil
}

// tlsListening tells whether somebody serves TLS at a port. The API server checks the
// certificate; here it is enough that somebody answers.
func tlsListening(port int) func(context.Context) error {
	return func(ctx context.Context) error {
		d := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // See above.
		conn, err := d.DialContext(ctx, "tcp", address(port))
		if err != nil {
			return err
		}
		return conn.Close()
	}
}

func viaURL(hook map[string]any, url string, ca []byte) error {
	path, _, err := unstructured.NestedString(hook, "clientConfig", "service", "path")
	if err != nil {
		return err
	}
	client, err := toMap(struct {
		URL      string `json:"url"`
		CABundle []byte `json:"caBundle"`
	}{url + path, ca})
	if err != nil {
		return err
	}
	hook["clientConfig"] = client
	if name, _ := hook["name"].(string); strings.HasSuffix(name, "pod.kb.io") {
		hook["objectSelector"] = map[string]any{"matchExpressions": []any{
			map[string]any{"key": "leaderworkerset.sigs.k8s.io/name", "operator": "Exists"},
		}}
	}
	return nil
}

// serving makes a directory with the certificate of a server, and returns what
// clients have to trust.
func serving(dir string) ([]byte, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	crt, key, err := cert.GenerateSelfSignedCertKey(loopback, []net.IP{net.ParseIP(loopback)}, nil)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "tls.crt"), crt, 0o600); err != nil {
		return nil, err
	}
	return crt, os.WriteFile(filepath.Join(dir, "tls.key"), key, 0o600)
}

func toMap(v any) (map[string]any, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	m := map[string]any{}
	return m, json.Unmarshal(b, &m)
}
