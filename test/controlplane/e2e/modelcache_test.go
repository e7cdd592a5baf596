package e2e

import (
	"context"
	"encoding/base64"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
)

var (
	cacheKind = schema.GroupVersionKind{Group: "fusioninfer.io", Version: "v1alpha1", Kind: "ModelCache"}
	claimKind = schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolumeClaim"}
	jobKind   = schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}

	revisionKind = schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1", Kind: "CompositionRevision"}
)

// files of the model, in the order in which they are fetched. The hub redirects to the large ones.
var files = []string{"config.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"}

// TestModelCache follows services whose weights come from a hub, a bucket, a claim, an image and a ModelCache, on a control plane
// whose node agent runs the commands of loading Jobs and mounts what pods say.
func TestModelCache(t *testing.T) {
	weights := tensors(512 << 10)
	models, s3 := newHub(t, files, func(model, _, file string) string {
		switch {
		case model != "acme/tiny":
			return ""
		case file == files[0]:
			return "{}"
		}
		return weights
	}), newBucket(t)
	models.overloaded = 1
	h := &controlPlane{cluster.TestUp(t, cluster.Options{Packages: *packages, Nodes: 2, GPUs: 8, Engines: true, Clusters: 3, CoreArgs: cluster.RecommendedCoreArgs})}
	input := "modelCaches: {storageClassName: shared}\n" +
		"modelLoader: {env: [{name: HF_ENDPOINT, value: '" + models.URL + "'}, {name: AWS_ENDPOINT_URL, value: '" + s3 + "'}]}\n"
	kubectl(t, h, "apply", "-f", "package/xr/cache-definition.yaml", "-f", cacheCompositionWith(t, "xr", input))
	input += "gateway: {parentRefs: [{name: inference-gateway, namespace: gateway-system}]}\n" +
		"tenants: [{namespaces: ['testmodelcache-*'], routes: {defaultHostname: '{service}.{namespace}.example.com'}}]\n"
	h.installWith(t, input)
	c := h.Cluster
	gateway(t, c, "gateway-system", "inference-gateway")
	volumes(t, c, 5)
	for _, r := range h.Remotes() {
		volumes(t, r, 2)
	}
	// This changes the profiles of all services, so it comes first.
	t.Run("Pinned", func(t *testing.T) { staysPinned(t, h, input) })
	// Models of a hub get a cache from here on, which the service of "Hub" does not ask for.
	input = strings.Replace(input, "storageClassName: shared}", "storageClassName: shared, defaultSize: 1Gi}", 1)
	kubectl(t, h, "apply", "-f", compositionWith(t, "xr", fleetInput+h.directConfigs()+input))
	revised(t, c, "defaultSize:1Gi")
	t.Run("Fleet", func(t *testing.T) {
		t.Parallel()
		loadsWhereItRuns(t, h)
	})
	t.Run("Hub", func(t *testing.T) {
		t.Parallel()
		loadsFromHub(t, c, models, weights)
	})
	t.Run("Bucket", func(t *testing.T) {
		t.Parallel()
		loadsFromBucket(t, c)
	})
	t.Run("Claim", func(t *testing.T) {
		t.Parallel()
		servesFromClaim(t, c)
	})
	t.Run("Image", func(t *testing.T) {
		t.Parallel()
		servesFromImage(t, c)
	})
	t.Run("Shared", func(t *testing.T) {
		t.Parallel()
		sharesCache(t, c)
	})
}

// revised waits until the newest revision of the services' Composition says something. New services go by that revision, and
// Crossplane makes it a moment after the edit.
func revised(t *testing.T, c *cluster.Cluster, says string) {
	t.Helper()
	until(t, c, "there is a revision that says "+says, func(ctx context.Context) (bool, error) {
		all, err := c.List(ctx, revisionKind, "")
		if err != nil {
			return false, err
		}
		newest, spec := int64(0), map[string]any{}
		for _, o := range all {
			n, _, _ := unstructured.NestedInt64(o.Object, "spec", "revision")
			if o.GetLabels()["crossplane.io/composition-name"] == "inferenceservices.fusioninfer.io" && n > newest {
				newest, spec = n, o.Object["spec"].(map[string]any)
			}
		}
		return strings.Contains(fmt.Sprint(spec), says), fmt.Errorf("revision %d is the newest, and does not", newest)
	})
}

// loadsFromHub follows the ten lines of a service with a gated model of a hub, and a new revision of it.
func loadsFromHub(t *testing.T, c *cluster.Cluster, h *hub, weights string) {
	t.Helper()
	ns := namespace(t, c)
	chat := service("chat")
	chat.SetNamespace(ns)
	write := func(revision string) {
		t.Helper()
		kubectl(t, c, "apply", "-f", written(t, revision+".yaml", fmt.Sprintf(`
apiVersion: fusioninfer.io/v1alpha1
kind: InferenceService
metadata: {name: chat, namespace: %s}
spec:
  model: {uri: "hf://acme/tiny", revision: %s, tokenSecretRef: {name: hf-token}}
  profileName: vllm-nvidia
  roles:
  - {name: router, componentType: router}
  - {name: serve, componentType: worker, replicas: 2}
`, ns, revision)))
	}
	last := "acme/tiny@one/" + files[2]
	h.hold(last)
	write("one")

	saysOfModel(t, c, chat, "LoadFailed", "container loader: CreateContainerConfigError")
	token(t, c, ns, wrongToken)
	saysOfModel(t, c, chat, "LoadFailed", "container loader: CrashLoopBackOff")
	until(t, c, "the hub refuses the token", func(context.Context) (bool, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.refused > 0, nil
	})
	token(t, c, ns, hubToken)
	until(t, c, "half of the last file has come", func(context.Context) (bool, error) {
		for file, text := range loaded(t, c, files[2]) {
			if strings.HasSuffix(file, ".incomplete") && text == weights[:len(weights)/2] {
				return true, nil
			}
		}
		return false, nil
	})
	saysOfModel(t, c, chat, "Loading", "Ki of 1Mi loaded at ")
	if n := len(list(t, c, lwsKind, ns)); n != 0 {
		t.Errorf("%d LeaderWorkerSets exist before the weights do", n)
	}
	tellsNo(t, c, ns, hubToken, wrongToken)
	for _, p := range list(t, c, podKind, ns) {
		if p.GetLabels()["fusioninfer.io/model-loader"] != "" {
			kubectl(t, c, "delete", "pod", "--namespace="+ns, "--grace-period=1", p.GetName())
		}
	}
	h.release()
	settled(t, c, chat)
	h.mu.Lock()
	for _, f := range files[1:] {
		key, want := "acme/tiny@one/"+f, []int{0}
		if f == files[2] {
			want = append(want, len(weights)/2)
		}
		// A loader that was killed begins where it was, and nothing is sent twice.
		if diff := cmp.Diff(want, h.began[key]); diff != "" || h.sent[key] != len(weights) {
			t.Errorf("%s: %d of %d bytes were sent, by requests that began at: -want, +got:\n%s", f, h.sent[key], len(weights), diff)
		}
		t.Logf("%s: %d of %d bytes were sent, by requests that began at %v", f, h.sent[key], len(weights), h.began[key])
	}
	if h.leaked > 0 {
		t.Errorf("%d requests gave the token to another host", h.leaked)
	}
	h.mu.Unlock()
	whole := 0
	for file, text := range loaded(t, c, files[2]) {
		if text == weights && filepath.Base(file) == files[2] {
			whole++
		}
	}
	if whole != 1 {
		t.Errorf("%s is whole in %d claims, want one", files[2], whole)
	}
	answers(t, c, chat, "acme/tiny")
	throughGateway := askers{url: "http://" + c.GatewayAddress("gateway-system", "inference-gateway") + "/v1/chat/completions", host: "chat." + ns + ".example.com"}
	until(t, c, "the gateway answers by the model's name", func(ctx context.Context) (bool, error) {
		model, err := throughGateway.model(ctx, "acme/tiny")
		return model == "acme/tiny", err
	})
	until(t, c, "the Job has gone", func(context.Context) (bool, error) { return len(list(t, c, jobKind, ns)) == 0, nil })

	before := list(t, c, claimKind, ns)
	pods := record(t, c, podKind, ns)
	write("two")
	settled(t, c, chat)
	until(t, c, "the former claim has gone", func(context.Context) (bool, error) {
		all := list(t, c, claimKind, ns)
		return len(all) == 1 && len(before) == 1 && all[0].GetName() != before[0].GetName(), nil
	})
	answers(t, c, chat, "acme/tiny")
	if n := crashed(t, pods); n > 0 {
		t.Errorf("%d engines have failed to find their weights", n)
	}
	tellsNo(t, c, ns, hubToken, wrongToken)
}

// tellsNo wants no object but the Secret to tell a secret: none of the namespace, with its status and its events, and no log.
func tellsNo(t *testing.T, c api, namespace string, secrets ...string) {
	t.Helper()
	told := kubectl(t, c, "api-resources", "--verbs=list", "--namespaced", "--output=name")
	kinds := slices.DeleteFunc(strings.Fields(told), func(kind string) bool { return kind == "secrets" })
	told = kubectl(t, c, "get", "--namespace="+namespace, "--output=yaml", "--show-managed-fields", strings.Join(kinds, ","))
	if !strings.Contains(told, "kind: Pod\n") && !strings.Contains(told, "kind: Object\n") {
		t.Errorf("no pods and no Objects are among the objects of %s", namespace)
	}
	if home, ok := c.(*cluster.Cluster); ok {
		told += logsOf(t, home, "")
	}
	for _, secret := range secrets {
		if strings.Contains(told, secret) || strings.Contains(told, base64.StdEncoding.EncodeToString([]byte(secret))) {
			t.Errorf("an object or a log tells %q", secret)
		}
	}
}

// crashed counts the engines that ended with an error.
func crashed(t *testing.T, pods *recording) int {
	t.Helper()
	n := 0
	for _, e := range pods.all() {
		o, ok := e.Object.(*unstructured.Unstructured)
		if !ok || !ofEngine(o) {
			continue
		}
		all, _, _ := unstructured.NestedSlice(o.Object, "status", "containerStatuses")
		for _, s := range all {
			if code, found, _ := unstructured.NestedInt64(s.(map[string]any), "state", "terminated", "exitCode"); found && code == 1 {
				n++
			}
		}
	}
	return n
}

// token writes the Secret with the token of the gated model.
func token(t *testing.T, c *cluster.Cluster, namespace, value string) {
	t.Helper()
	kubectl(t, c, "apply", "-f", written(t, value+".yaml", fmt.Sprintf(`
apiVersion: v1
kind: Secret
metadata: {name: hf-token, namespace: %s}
stringData: {token: %s}
`, namespace, value)))
}

// saysOfModel waits until the condition ModelReady is False for a reason.
func saysOfModel(t *testing.T, c *cluster.Cluster, o *unstructured.Unstructured, reason, message string) {
	t.Helper()
	until(t, c, o.GetName()+" says "+reason+" of its model", func(ctx context.Context) (bool, error) {
		s, err := c.Get(ctx, o)
		if err != nil {
			return false, err
		}
		status, r, m := condition(s, "ModelReady")
		if status != string(corev1.ConditionFalse) || r != reason || !strings.Contains(m, message) {
			return false, fmt.Errorf("ModelReady is %s %s: %s", status, r, m)
		}
		return true, nil
	})
}
