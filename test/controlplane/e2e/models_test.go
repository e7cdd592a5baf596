package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
)

// TestModels proves that an owner of a model shifts its requests from one adapter to another, with rights on their own model
// only: through the gateway, a real endpoint picker, and engines that refuse names they do not know. No request is lost, and
// a second owner gets the name once the first gives it up.
//
// The endpoint picker that runs here reads the rewrites of the Gateway API Inference Extension, from which those of llm-d
// come. So the test copies each rewrite to that group.
func TestModels(t *testing.T) {
	c := cluster.TestUp(t, cluster.Options{Packages: *packages, Nodes: 4, GPUs: 8, Engines: true, CoreArgs: cluster.RecommendedCoreArgs})
	if err := c.Install(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	kubectl(t, c, "wait", "--for=condition=Established", "--timeout=2m", "xrd/inferencemodels.fusioninfer.io")
	if err := c.DefineModels(t.Context()); err != nil {
		t.Fatal(err)
	}
	ns := namespace(t, c)
	worker := briefly(engine("worker", "worker", 2, 1), 5)
	container := podSpec(worker)["containers"].([]any)[0].(map[string]any)
	container["args"] = append(container["args"].([]any), "--enable-lora", "--lora-modules", "v1=/adapters/v1", "v2=/adapters/v2")
	router := picker("models.example.com")
	// So that the endpoint picker goes by the names of models.
	router["servedModels"] = []any{map[string]any{"name": "Qwen/Qwen3-8B"}}
	base := inference(ns, "base", worker, router)
	apply(t, c, base)
	mine := owned(t, ns, "mine", `{serviceName: base, modelName: bot, criticality: Critical, targets: [{name: v1, weight: 90}, {name: v2, weight: 10}]}`)
	one, two := newOwner(t, c, ns, "mine"), newOwner(t, c, ns, "other")
	one.apply(mine)
	modelSays(t, c, mine, "Accepted", "True", "Accepted")
	settled(t, c, base)
	modelSays(t, c, mine, "Answered", "True", "Answered")
	modelSays(t, c, mine, "Ready", "True", "Available")

	copyRewrites(t, c, ns)
	l := askers{host: "models.example.com"}
	until(t, c, "the gateway listens", func(context.Context) (bool, error) {
		for _, o := range list(t, c, gatewayKind, ns) {
			if at := c.GatewayAddress(o.GetNamespace(), o.GetName()); at != "" {
				l.url = "http://" + at + "/v1/chat/completions"
			}
		}
		return l.url != "", nil
	})
	until(t, c, "the endpoint picker knows the model", func(ctx context.Context) (bool, error) {
		_, err := l.model(ctx, "bot")
		return err == nil, err
	})
	share := func(want string, from, to int) {
		t.Helper()
		got := l.ask(t, "bot", 400)
		t.Logf("%s: %v", want, got)
		if n := got["v2"]; n < from || n > to || got["v1"]+n != 400 {
			t.Errorf("%s of the requests for v2: got %v, want from %d to %d, and the others for v1", want, got, from, to)
		}
	}
	// Both ranges are five standard deviations wide on each side.
	share("10 %", 10, 70)
	mine = owned(t, ns, "mine", `{serviceName: base, modelName: bot, criticality: Critical, targets: [{name: v1, weight: 50}, {name: v2, weight: 50}]}`)
	wg := sync.WaitGroup{}
	wg.Go(func() { l.ask(t, "bot", 400) })
	one.apply(mine)
	until(t, c, "the rewrite has the new weights", func(context.Context) (bool, error) {
		for _, o := range list(t, c, rewriteKind, ns) {
			rules, _, _ := unstructured.NestedSlice(o.Object, "spec", "rules")
			if b, _ := json.Marshal(rules); strings.Contains(string(b), `"v2","weight":50`) {
				return true, nil
			}
		}
		return false, nil
	})
	copyRewrites(t, c, ns)
	wg.Wait()
	until(t, c, "half of the requests are for v2", func(context.Context) (bool, error) {
		return l.ask(t, "bot", 40)["v2"] > 10, nil
	})
	share("50 %", 150, 250)

	other := owned(t, ns, "other", `{serviceName: base, modelName: bot, targets: [{name: v2}]}`)
	two.apply(other)
	modelSays(t, c, other, "Accepted", "False", "NameConflict")
	share("50 %", 150, 250)
	one.mayNoMore(t.Context(), "base", "mine", "other")
	two.mayNoMore(t.Context(), "base", "other", "mine")
	if err := one.models().Delete(t.Context(), "mine", metav1.DeleteOptions{}); err != nil {
		t.Fatalf("an owner cannot delete their model: %v", err)
	}
	modelSays(t, c, other, "Answered", "True", "Answered")
	copyRewrites(t, c, ns)
	until(t, c, "all requests are for v2", func(ctx context.Context) (bool, error) {
		model, err := l.model(ctx, "bot")
		return model == "v2", err
	})
}

var (
	modelKind   = schema.GroupVersionKind{Group: "fusioninfer.io", Version: "v1alpha1", Kind: "InferenceModel"}
	pickerKind  = schema.GroupVersionKind{Group: "inference.networking.x-k8s.io", Version: "v1alpha2", Kind: "InferenceModelRewrite"}
	rewriteKind = schema.GroupVersionKind{Group: "llm-d.ai", Version: "v1alpha2", Kind: "InferenceModelRewrite"}
)

// copyRewrites copies the rewrites of a namespace to the group that the endpoint picker reads.
func copyRewrites(t *testing.T, c *cluster.Cluster, namespace string) {
	t.Helper()
	for _, o := range list(t, c, rewriteKind, namespace) {
		copied := object(pickerKind, namespace, o.GetName())
		copied.Object["spec"] = o.Object["spec"]
		apply(t, c, copied)
	}
}

// owned is an InferenceModel with a spec, which is YAML.
func owned(t *testing.T, namespace, name, spec string) *unstructured.Unstructured {
	t.Helper()
	o := object(modelKind, namespace, name)
	s := map[string]any{}
	if err := yaml.Unmarshal([]byte(spec), &s); err != nil {
		t.Fatal(err)
	}
	o.Object["spec"] = s
	return o
}

// modelSays waits until a condition of an InferenceModel has a status and a reason.
func modelSays(t *testing.T, c *cluster.Cluster, o *unstructured.Unstructured, kind, status, reason string) {
	t.Helper()
	until(t, c, fmt.Sprintf("%s of %s is %s: %s", kind, o.GetName(), status, reason), func(ctx context.Context) (bool, error) {
		m, err := c.Get(ctx, o)
		if err != nil {
			return false, err
		}
		all, _, _ := unstructured.NestedSlice(m.Object, "status", "conditions")
		for _, x := range all {
			if f := x.(map[string]any); f["type"] == kind {
				if f["status"] == status && f["reason"] == reason {
					return true, nil
				}
				return false, fmt.Errorf("it is %v", f)
			}
		}
		return false, fmt.Errorf("it has %v", all)
	})
}

// askers ask for models of a host, through a gateway.
type askers struct{ url, host string }

// post asks for a model. What a request has besides its model and the prompt is in more.
func (l askers) post(ctx context.Context, name, more string) (*http.Response, error) {
	body := fmt.Sprintf(`{"model":%q,%s,"messages":[{"role":"user","content":"Hello"}]}`, name, more)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Host = l.host
	r.Header.Set("Content-Type", "application/json")
	rsp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	if rsp.StatusCode != http.StatusOK {
		b, err := io.ReadAll(rsp.Body)
		return nil, errors.Join(fmt.Errorf("%s: %s", rsp.Status, b), err, rsp.Body.Close())
	}
	return rsp, nil
}

// by asks for a model, and returns the name of the one that has answered, as the text of the answer says, and the pod.
func (l askers) by(ctx context.Context, name string) (model, pod string, err error) {
	rsp, err := l.post(ctx, name, `"max_tokens":1`)
	if err != nil {
		return "", "", err
	}
	defer rsp.Body.Close()
	b, err := io.ReadAll(rsp.Body)
	if err != nil {
		return "", "", err
	}
	_, text, _ := strings.Cut(string(b), " serves ")
	model, _, found := strings.Cut(text, ":")
	if !found {
		return "", "", fmt.Errorf("the answer names no model: %s", b)
	}
	return model, rsp.Header.Get("x-served-by"), nil
}

// model asks for a model, and returns the name of the one that has answered.
func (l askers) model(ctx context.Context, name string) (string, error) {
	model, _, err := l.by(ctx, name)
	return model, err
}

// ask asks for a model so many times, and counts which models have answered. No request may fail.
func (l askers) ask(t *testing.T, name string, n int) map[string]int {
	t.Helper()
	var mu sync.Mutex
	got := map[string]int{}
	wg := sync.WaitGroup{}
	slots := make(chan struct{}, 4)
	for range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			model, err := l.model(t.Context(), name)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Errorf("a request for %s: %v", name, err)
			}
			got[model]++
		})
	}
	wg.Wait()
	return got
}
