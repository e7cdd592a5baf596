package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
)

const (
	kueueProgram   = "kueue-manager"
	kueueIn        = "tools/kueue"
	kueueModule    = "sigs.k8s.io/kueue"
	kueueNamespace = "kueue-system"
	kueueService   = "kueue-webhook-service"
	kueueSecret    = "kueue-webhook-server-cert" //nolint:gosec // The name of a Secret.
)

// RunKueue starts Kueue with its webhooks, for pods and LeaderWorkerSets. The definitions of
// LeaderWorkerSet have to be there.
//
// Kueue makes the certificates itself: with those of others it reads a directory below /etc. So
// the API server finds the webhooks by a Service. That Service is a name of this machine.
func (c *Kubernetes) RunKueue(ctx context.Context) error {
	p, err := ports(1)
	if err != nil {
		return err
	}
	dir := filepath.Join(c.dir, "kueue")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := c.prepareKueue(ctx, p[0]); err != nil {
		return err
	}
	config := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, `
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
namespace: %s
leaderElection: {leaderElect: false}
metrics: {bindAddress: "0"}
health: {healthProbeBindAddress: "0"}
webhook: {host: %s, port: %d, certDir: %s}
internalCertManagement: {enable: true, webhookServiceName: %s, webhookSecretName: %s}
integrations:
  frameworks: [pod, statefulset, leaderworkerset.x-k8s.io/leaderworkerset]
# It would listen at a port of its own choice.
featureGates: {VisibilityOnDemand: false}
`, kueueNamespace, loopback, p[0], dir, kueueService, kueueSecret), 0o600); err != nil {
		return err
	}
	manager, err := c.run(program{name: kueueProgram, args: []string{"--kubeconfig=" + c.Kubeconfig, "--config=" + config}})
	if err != nil {
		return err
	}
	if err := manager.waitFor(ctx, "making certificates", func(ctx context.Context) error { return c.mountKueueSecret(ctx, dir) }); err != nil {
		return err
	}
	return manager.waitFor(ctx, "listening", tlsListening(p[0]))
}

// mountKueueSecret does what a kubelet does with the Secret in which Kueue keeps its certificates.
func (c *Kubernetes) mountKueueSecret(ctx context.Context, dir string) error {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("v1")
	o.SetKind("Secret")
	o.SetNamespace(kueueNamespace)
	o.SetName(kueueSecret)
	got, err := c.Get(ctx, o)
	if err != nil {
		return err
	}
	s := corev1.Secret{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(got.Object, &s); err != nil {
		return err
	}
	if len(s.Data) == 0 {
		return errors.New("its Secret has no certificates yet")
	}
	return writeFiles(dir, s.Data)
}

// prepareKueue installs what Kueue needs in the cluster: its definitions, its webhooks, the
// Service at which they are found, and the Secret for its certificates.
func (c *Kubernetes) prepareKueue(ctx context.Context, port int) error {
	dir, err := module(kueueIn, kueueModule)
	if err != nil {
		return err
	}
	objects, err := Documents(fmt.Appendf(nil, `
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: v1
kind: Secret
metadata: {name: %[3]s, namespace: %[1]s}
---
apiVersion: v1
kind: Service
metadata: {name: %[2]s, namespace: %[1]s}
spec: {type: ExternalName, externalName: localhost}
`, kueueNamespace, kueueService, kueueSecret))
	if err != nil {
		return err
	}
	for _, o := range objects {
		if _, err := c.Apply(ctx, o, fieldManager); err != nil {
			return err
		}
	}
	crds, err := readDefinitions(filepath.Join(dir, "config", "components", "crd", "bases", "*.yaml"))
	if err != nil {
		return err
	}
	for _, crd := range crds {
		if !converted.Has(crd.GetName()) {
			continue
		}
		if err := unstructured.SetNestedMap(crd.Object, map[string]any{
			"strategy": "Webhook",
			"webhook": map[string]any{
				"clientConfig":             map[string]any{"service": kueueServes(port, "/convert")},
				"conversionReviewVersions": []any{"v1"},
			},
		}, "spec", "conversion"); err != nil {
			return err
		}
	}
	if err := c.Define(ctx, crds...); err != nil {
		return err
	}
	return c.kueueWebhooks(ctx, dir, port)
}

// converted are the definitions that Kueue converts between versions (config/components/crd).
var converted = sets.New("localqueues.kueue.x-k8s.io", "clusterqueues.kueue.x-k8s.io", "cohorts.kueue.x-k8s.io",
	"workloads.kueue.x-k8s.io", "multikueueclusters.kueue.x-k8s.io")

func kueueServes(port int, path string) map[string]any {
	return map[string]any{"namespace": kueueNamespace, "name": kueueService, "port": int64(port), "path": path}
}

// kueueWebhooks installs the module's webhooks, under the names that its kustomization gives them.
// Kueue writes its certificate into webhooks of these names.
func (c *Kubernetes) kueueWebhooks(ctx context.Context, dir string, port int) error {
	b, err := os.ReadFile(filepath.Join(dir, "config", "components", "webhook", "manifests.yaml")) //nolint:gosec // A file of a module.
	if err != nil {
		return err
	}
	all, err := Documents(b)
	if err != nil {
		return err
	}
	for _, o := range all {
		o.SetName("kueue-" + o.GetName())
		hooks, _, err := unstructured.NestedSlice(o.Object, "webhooks")
		if err != nil {
			return err
		}
		for _, h := range hooks {
			hook := h.(map[string]any) //nolint:forcetypeassert // A webhook is a map.
			path, _, err := unstructured.NestedString(hook, "clientConfig", "service", "path")
			if err != nil {
				return err
			}
			hook["clientConfig"] = map[string]any{"service": kueueServes(port, path)}
			hook["namespaceSelector"] = map[string]any{"matchExpressions": []any{map[string]any{
				"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": []any{"kube-system", kueueNamespace},
			}}}
		}
		if err := unstructured.SetNestedSlice(o.Object, hooks, "webhooks"); err != nil {
			return err
		}
		// Kueue adds its certificate as somebody else.
		if _, err := c.Apply(ctx, o, fieldManager); err != nil {
			return err
		}
	}
	return nil
}
