package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
)

var (
	claimKind = schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolumeClaim"}
	jobKind   = schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}
)

// files of the model, in the order in which they are fetched. The hub redirects to the large ones.
var files = []string{"config.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"}

// A hub answers as huggingface.co does for a gated model of some files.
type hub struct {
	*httptest.Server

	token string

	mu sync.Mutex
	// overloaded is how many requests it turns away. whole counts the files that came whole, and refused the
	// requests with a wrong token.
	overloaded, refused int
	whole               map[string]int
	// slow is closed when the last file may come, and waiting when somebody waits for it.
	slow, waiting chan struct{}
}

func newHub(t *testing.T) *hub {
	t.Helper()
	h := &hub{token: "right", overloaded: 1, whole: map[string]int{}, slow: make(chan struct{}), waiting: make(chan struct{})}
	once := sync.OnceFunc(func() { close(h.waiting) })
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/models/acme/tiny/revision/{revision}", func(w http.ResponseWriter, r *http.Request) {
		if !h.lets(w, r) {
			return
		}
		var siblings []map[string]string
		for _, f := range files {
			siblings = append(siblings, map[string]string{"rfilename": f})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"sha": "sha-of-" + r.PathValue("revision"), "siblings": siblings})
	})
	mux.HandleFunc("GET /acme/tiny/resolve/{sha}/{file}", func(w http.ResponseWriter, r *http.Request) {
		if !h.lets(w, r) {
			return
		}
		if strings.HasSuffix(r.PathValue("file"), ".safetensors") {
			http.Redirect(w, r, "/lfs/"+r.PathValue("sha")+"/"+r.PathValue("file"), http.StatusFound)
			return
		}
		fmt.Fprintln(w, "{}")
		h.note(r)
	})
	mux.HandleFunc("GET /lfs/{sha}/{file}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"`+r.PathValue("file")+`"`)
		w.Header().Set("Content-Length", "6")
		fmt.Fprint(w, "ten")
		if r.PathValue("file") == files[2] {
			_ = http.NewResponseController(w).Flush()
			once()
			select {
			case <-h.slow:
			case <-r.Context().Done():
				return
			}
		}
		fmt.Fprint(w, "sor")
		h.note(r)
	})
	h.Server = httptest.NewServer(mux)
	t.Cleanup(h.Close)
	return h
}

// lets tells whether the hub answers a request. It has too much to do at first.
func (h *hub) lets(w http.ResponseWriter, r *http.Request) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case r.Header.Get("Authorization") != "Bearer "+h.token:
		h.refused++
		http.Error(w, "Access to model acme/tiny is restricted.", http.StatusUnauthorized)
	case h.overloaded > 0:
		h.overloaded--
		http.Error(w, "try again", http.StatusServiceUnavailable)
	default:
		return true
	}
	return false
}

func (h *hub) note(r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.whole[r.PathValue("sha")+"/"+r.PathValue("file")]++
}

// TestModelCache follows services whose weights come from a hub, a bucket, a claim, an image and a ModelCache, on a control plane
// whose node agent runs the commands of loading Jobs and mounts what pods say.
func TestModelCache(t *testing.T) {
	models, s3 := newHub(t), newBucket(t)
	h := &controlPlane{cluster.TestUp(t, cluster.Options{Packages: *packages, Nodes: 2, GPUs: 8, Engines: true, Clusters: 3, CoreArgs: cluster.RecommendedCoreArgs})}
	input := "modelCaches: {storageClassName: shared}\n" +
		"modelLoader: {env: [{name: HF_ENDPOINT, value: '" + models.URL + "'}, {name: AWS_ENDPOINT_URL, value: '" + s3 + "'}]}\n"
	kubectl(t, h, "apply", "-f", "package/xr/cache-definition.yaml", "-f", cacheCompositionWith(t, input))
	h.installWith(t, input)
	c := h.Cluster
	volumes(t, c, 5)
	for _, r := range h.Remotes() {
		volumes(t, r, 2)
	}
	t.Run("Fleet", func(t *testing.T) {
		t.Parallel()
		loadsWhereItRuns(t, h)
	})
	t.Run("Hub", func(t *testing.T) {
		t.Parallel()
		loadsFromHub(t, c, models)
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

// loadsFromHub follows a service with a gated model of a hub, and a new revision of it.
func loadsFromHub(t *testing.T, c *cluster.Cluster, h *hub) {
	t.Helper()
	ns := namespace(t, c)
	worker := briefly(engine("worker", "worker", 2, 1), 0)
	container := podSpec(worker)["containers"].([]any)[0].(map[string]any)
	delete(container, "args")
	chat := inference(ns, "chat", worker)
	model := map[string]any{"uri": "hf://acme/tiny", "revision": "one", "name": "Qwen/Qwen3-8B", "tokenSecretRef": map[string]any{"name": "hf"}, "cache": map[string]any{"size": "1Gi"}}
	chat.Object["spec"].(map[string]any)["model"] = model
	apply(t, c, chat)

	saysOfModel(t, c, chat, "LoadFailed", "container loader: CreateContainerConfigError")
	token(t, c, ns, "wrong")
	saysOfModel(t, c, chat, "LoadFailed", "container loader: ")
	until(t, c, "the hub refuses the token", func(context.Context) (bool, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.refused > 0, nil
	})
	token(t, c, ns, "right")
	until(t, c, "the last file comes", func(context.Context) (bool, error) {
		select {
		case <-h.waiting:
			return true, nil
		default:
			return false, nil
		}
	})
	if n := len(list(t, c, lwsKind, ns)); n != 0 {
		t.Errorf("%d LeaderWorkerSets exist before the weights do", n)
	}
	for _, p := range list(t, c, podKind, ns) {
		kubectl(t, c, "delete", "pod", "--namespace="+ns, "--grace-period=1", p.GetName())
	}
	close(h.slow)
	settled(t, c, chat)
	h.mu.Lock()
	for _, f := range files {
		if n := h.whole["sha-of-one/"+f]; n != 1 {
			t.Errorf("%s came whole %d times, want once", f, n)
		}
	}
	h.mu.Unlock()
	for _, p := range enginePods(t, c, chat) {
		if by, text := answerOf(t, p, 8000, nil); by != p.Name || !strings.HasPrefix(text, p.Name+" serves Qwen/Qwen3-8B:") {
			t.Errorf("pod %s: answered by %q: %s", p.Name, by, text)
		}
	}
	until(t, c, "the Job has gone", func(context.Context) (bool, error) { return len(list(t, c, jobKind, ns)) == 0, nil })

	before := list(t, c, claimKind, ns)
	pods := record(t, c, podKind, ns)
	model["revision"] = "two"
	apply(t, c, chat)
	settled(t, c, chat)
	until(t, c, "the former claim has gone", func(context.Context) (bool, error) {
		all := list(t, c, claimKind, ns)
		return len(all) == 1 && len(before) == 1 && all[0].GetName() != before[0].GetName(), nil
	})
	for _, p := range enginePods(t, c, chat) {
		if by, _ := answerOf(t, p, 8000, nil); by != p.Name {
			t.Errorf("pod %s: answered by %q", p.Name, by)
		}
	}
	if n := crashed(t, pods); n > 0 {
		t.Errorf("%d engines have failed to find their weights", n)
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
metadata: {name: hf, namespace: %s}
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
