package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
)

// applyClaims applies the APIs as claims, with their Compositions. The Inputs of services and ModelCaches, and that of models,
// have something more set.
func (h *controlPlane) applyClaims(t *testing.T, input, loader string) {
	t.Helper()
	kubectl(t, h.Cluster, "apply",
		"-f", "package/claim/definition.yaml", "-f", "package/claim/cluster-definition.yaml",
		"-f", "package/claim/cache-definition.yaml", "-f", "package/claim/model-definition.yaml",
		"-f", "package/claim/role-definition.yaml", "-f", "package/claim/role-composition.yaml",
		"-f", "package/claim/cluster-composition.yaml", "-f", compositionWith(t, "claim", routesInput+h.directConfigs()+input+loader),
		"-f", cacheCompositionWith(t, "claim", input+loader), "-f", modelCompositionWith(t, "claim", loader))
	for _, xrd := range []string{"xinferenceservices", "xmodelcaches", "xinferencemodels"} {
		kubectl(t, h.Cluster, "wait", "--for=condition=Offered", "--timeout=3m", "xrd/"+xrd+".fusioninfer.io")
	}
	kubectl(t, h.Cluster, "wait", "--for=condition=Established", "--timeout=3m", "xrd", "--all")
}

// TestModelClaims follows claims of a ModelCache, of a service that names it, of a model with an adapter, and of a service with a
// role that scales. The requests for the
// model are answered by the adapter, and what the claims made goes with them.
//
// As in TestModels, each rewrite is copied for the endpoint picker that runs here.
func TestModelClaims(t *testing.T) {
	objects := map[string]string{"loras/calm/" + adapterConfig: adapterConfigs["loras/calm"], "loras/calm/" + adapterWeights: "tensors"}
	for _, name := range files {
		objects["qwen/8b/"+name] = "{}"
	}
	bucket := bucketOf(t, objects)
	h := &controlPlane{cluster.TestUp(t, cluster.Options{Packages: *packages, Nodes: 2, GPUs: 8, Engines: true, CoreArgs: cluster.RecommendedCoreArgs})}
	c := h.Cluster
	if err := h.PushPackages(first); err != nil {
		t.Fatal(err)
	}
	kubectl(t, c, "apply", "-f", "package/install/rbac.yaml", "-f", "package/install/admission.yaml", "-f", "package/install/function.yaml")
	h.applyClaims(t, "modelCaches: {storageClassName: shared}\n", "modelLoader: {env: [{name: AWS_ENDPOINT_URL, value: '"+bucket+"'}]}\n")
	healthy(t, c, "Function", function, first)
	if err := h.DefineModels(t.Context()); err != nil {
		t.Fatal(err)
	}
	volumes(t, c, 2)

	ns := namespace(t, c)
	kubectl(t, c, "apply", "-f", written(t, "bucket.yaml", fmt.Sprintf(`
apiVersion: v1
kind: Secret
metadata: {name: bucket, namespace: %[1]s}
stringData: {AWS_ACCESS_KEY_ID: %[2]s, AWS_SECRET_ACCESS_KEY: %[3]s}
---
apiVersion: fusioninfer.io/v1alpha1
kind: ModelCache
metadata: {name: qwen, namespace: %[1]s}
spec: {uri: "s3://models/qwen/8b", credentialsSecretRef: {name: bucket}, size: 1Gi}
`, ns, bucketReader, bucketKey)))
	cache := object(cacheKind, ns, "qwen")
	is(t, c, cache, "Ready", "ModelReady")

	worker := briefly(engine("worker", "worker", 1, 1), 0)
	delete(podSpec(worker)["containers"].([]any)[0].(map[string]any), "args")
	router := picker("claims.example.com")
	router["servedModels"] = []any{map[string]any{"name": "8b"}}
	chat := inference(ns, "chat", worker, router)
	chat.Object["spec"].(map[string]any)["model"] = map[string]any{"cacheRef": map[string]any{"name": "qwen"}}
	chat.Object["spec"].(map[string]any)["adapterCache"] = map[string]any{"size": "1Gi", "credentialsSecretRef": map[string]any{"name": "bucket"}}
	apply(t, c, chat)
	bot := owned(t, ns, "bot", `{serviceName: chat, targets: [{name: calm, adapter: {uri: "s3://models/loras/calm"}}]}`)
	newOwner(t, c, ns, "bot").apply(bot)
	is(t, c, chat, "Ready", "ModelReady", "WorkloadsReady", "RouterReady", "RouteReady")
	answers(t, c, chat, "8b")
	is(t, c, bot, "Ready", "Accepted", "AdaptersLoaded", "Answered")
	staysBound(t, c, ns, "chat")

	copyRewrites(t, c, ns)
	l := askers{host: "claims.example.com"}
	until(t, c, "the adapter answers by the name of the model", func(ctx context.Context) (bool, error) {
		for _, o := range list(t, c, gatewayKind, ns) {
			if at := c.GatewayAddress(ns, o.GetName()); at != "" {
				l.url = "http://" + at + "/v1/chat/completions"
			}
		}
		model, err := l.model(ctx, "bot")
		return strings.HasPrefix(model, "calm-"), fmt.Errorf("it is answered by %q: %w", model, err)
	})
	if got := l.ask(t, "bot", 40); len(got) != 1 {
		t.Errorf("40 requests for bot are answered by %v, want one adapter", got)
	}
	if got := l.ask(t, "8b", 40); got["8b"] != 40 {
		t.Errorf("40 requests for 8b are answered by %v", got)
	}

	scaled := scalable(ns)
	apply(t, c, scaled)
	is(t, c, scaled, "Ready", "Scaled")
	scales(t, c, scaled)

	for _, o := range []*unstructured.Unstructured{bot, scaled, chat, cache} {
		kubectl(t, c, "delete", "--namespace="+ns, "--timeout=3m", strings.ToLower(o.GetKind())+"s.fusioninfer.io", o.GetName())
	}
	until(t, c, "nothing is left of the claims", func(context.Context) (bool, error) {
		left := 0
		for _, kind := range []string{"persistentvolumeclaims", "jobs", "leaderworkersets", "inferenceroles", "inferencemodelrewrites.llm-d.ai", "inferencepools"} {
			left += len(strings.Fields(kubectl(t, c, "get", "--namespace="+ns, "--output=name", kind)))
		}
		return left == 0, fmt.Errorf("%d objects are", left)
	})
}

// staysBound makes sure that a team cannot take its claim away from the composite resource that runs. It writes the rest.
func staysBound(t *testing.T, c *cluster.Cluster, ns, name string) {
	t.Helper()
	kubectl(t, c, "apply", "-f", "package/install/rbac-tenant.yaml")
	kubectl(t, c, "create", "rolebinding", "team", "--namespace="+ns, "--clusterrole=function-inferenceservice:tenant", "--group=team")
	patch := func(text string) error {
		_, err := c.Kubectl(t.Context(), "patch", "--as=someone", "--as-group=team", "--as-group=system:authenticated", "--namespace="+ns,
			"inferenceservices.fusioninfer.io", name, "--type=merge", "--patch", text)
		return err
	}
	for _, ref := range []string{"null", `{"name":"other"}`} {
		if err := patch(`{"spec":{"resourceRef":` + ref + `}}`); err == nil || !strings.Contains(err.Error(), "resourceRef must stay as it is") {
			t.Errorf("writing %s into resourceRef says %v, want it to be forbidden", ref, err)
		}
	}
	if err := patch(`{"metadata":{"annotations":{"team":"a"}}}`); err != nil {
		t.Errorf("the team cannot write what it may: %v", err)
	}
}

// is waits until conditions of a claim are True.
func is(t *testing.T, c *cluster.Cluster, o *unstructured.Unstructured, want ...string) {
	t.Helper()
	until(t, c, fmt.Sprintf("%s is %s", title(o), strings.Join(want, ", ")), func(ctx context.Context) (bool, error) {
		s, err := c.Get(ctx, o)
		if err != nil {
			return false, err
		}
		err = conditions(s, want...)
		return err == nil, err
	})
}
