package e2e

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
)

// adapterConfigs are those of the adapters here, as different tools write them. None names the model of the engines.
var adapterConfigs = map[string]string{
	"acme/terse": "{\n  \"base_model_name_or_path\": \"/home/somebody/qwen\",\n  \"peft_type\": \"LORA\",\n  \"r\": 16\n}",
	"acme/kind":  `{"peft_type":"LORA","base_model_name_or_path":"acme/other","r":16}`,
	"loras/calm": `{"r": 16, "peft_type": "LORA", "base_model_name_or_path": null}`,
	// vLLM's resolver does not load it.
	"acme/prompt": `{"base_model_name_or_path": "Qwen/Qwen3-8B", "peft_type": "PROMPT_TUNING"}`,
}

const (
	adapterConfig  = "adapter_config.json"
	adapterWeights = "adapter_model.safetensors"
)

// TestAdapters proves that an owner of a model adds, replaces and removes adapters while requests are answered. They are
// loaded from a hub and a bucket into the claim that the engines mount. No request fails, and no engine is restarted.
//
// As in TestModels, each rewrite is copied for the endpoint picker that runs here.
func TestAdapters(t *testing.T) {
	models := newHub(t, []string{adapterConfig, adapterWeights}, func(model, revision, file string) string {
		if file == adapterConfig {
			return adapterConfigs[model]
		}
		return "tensors of " + model + " as of " + revision
	})
	models.hold("acme/kind@two/" + adapterWeights)
	bucket := bucketOf(t, map[string]string{"loras/calm/" + adapterConfig: adapterConfigs["loras/calm"], "loras/calm/" + adapterWeights: "tensors"})
	h := &controlPlane{cluster.TestUp(t, cluster.Options{Packages: *packages, Nodes: 2, GPUs: 8, Engines: true, CoreArgs: cluster.RecommendedCoreArgs})}
	c := h.Cluster
	h.installForAdapters(t, "modelLoader: {env: [{name: HF_ENDPOINT, value: '"+models.URL+"'}, {name: AWS_ENDPOINT_URL, value: '"+bucket+"'}]}\n")
	volumes(t, c, 1)
	ns := namespace(t, c)
	kubectl(t, c, "apply", "-f", written(t, "secrets.yaml", fmt.Sprintf(`
apiVersion: v1
kind: Secret
metadata: {name: hub, namespace: %[1]s}
stringData: {token: %[2]s}
---
apiVersion: v1
kind: Secret
metadata: {name: bucket, namespace: %[1]s}
stringData: {AWS_ACCESS_KEY_ID: %[3]s, AWS_SECRET_ACCESS_KEY: %[4]s}
`, ns, hubToken, bucketReader, bucketKey)))
	router := picker("adapters.example.com")
	// So that the endpoint picker goes by the names of models.
	router["servedModels"] = []any{map[string]any{"name": "Qwen/Qwen3-8B"}}
	router["strategy"] = "lora-affinity"
	base := inference(ns, "base", briefly(engine("worker", "worker", 3, 1), 5), router)
	base.Object["spec"].(map[string]any)["adapterCache"] = map[string]any{
		"size": "1Gi", "tokenSecretRef": map[string]any{"name": "hub"}, "credentialsSecretRef": map[string]any{"name": "bucket"},
	}
	apply(t, c, base)
	a := &adapters{t: t, c: c, namespace: ns, askers: askers{host: "adapters.example.com"}, failed: map[string]int{}}
	const (
		terse  = `adapter: {uri: "hf://acme/terse", revision: one}`
		kind   = `adapter: {uri: "hf://acme/kind", revision: one}`
		newer  = `adapter: {uri: "hf://acme/kind", revision: two}`
		calm   = `adapter: {uri: "s3://models/loras/calm"}`
		prompt = `adapter: {uri: "hf://acme/prompt", revision: one}`
	)
	a.targets("{name: v1, weight: 90, " + terse + "}, {name: v2, weight: 10, " + kind + "}")
	settled(t, c, base)
	a.answered()
	a.jobsGo()
	engines := a.engines(base)
	a.begin()
	// All ranges are five standard deviations wide on each side.
	a.share("v2", 10, 70, a.directory("v1"))

	a.while("other weights", func() {
		before := a.directory("v2")
		a.targets("{name: v1, weight: 50, " + terse + "}, {name: v2, weight: 50, " + kind + "}")
		a.answered()
		if now := a.directory("v2"); now != before {
			t.Errorf("the adapter v2 is loaded anew, into %s, with another weight: it was in %s", now, before)
		}
		a.until(a.directory("v1"), a.directory("v2"))
		a.share("v2", 150, 250, a.directory("v1"))
	})
	a.while("an adapter more, and one less", func() {
		a.targets("{name: v2, weight: 50, " + kind + "}, {name: v3, weight: 50, " + calm + "}")
		a.answered()
		a.until(a.directory("v2"), a.directory("v3"))
		a.share("v2", 150, 250, a.directory("v3"))
	})
	before := a.directory("v2")
	a.while("another revision", func() {
		a.targets("{name: v2, weight: 50, " + newer + "}, {name: v3, weight: 50, " + calm + "}")
		a.says("False", "Loading", "target v2: ")
		// Until the hub sends it, the former one answers.
		a.share("v2", 150, 250, a.directory("v3"))
		if now := a.directory("v2"); now != before {
			t.Errorf("requests for v2 go to %s before it is loaded, and no more to %s", now, before)
		}
		// A loader that is killed goes on where it was.
		kubectl(t, c, "delete", "pod", "--namespace="+ns, "--selector=fusioninfer.io/model-loader", "--grace-period=1", "--wait")
		models.release()
		a.answered()
		if now := a.directory("v2"); now == before {
			t.Errorf("requests for v2 still go to %s", before)
		}
		a.until(a.directory("v2"), a.directory("v3"))
	})
	a.while("an adapter that is no LoRA", func() {
		a.targets("{name: v2, weight: 50, " + newer + "}, {name: v3, weight: 50, " + calm + "}, {name: v4, weight: 100, " + prompt + "}")
		a.says("False", "LoadFailed", "its peft_type is not LORA")
		a.share("v2", 150, 250, a.directory("v3"))
		a.targets("{name: v2, weight: 50, " + newer + "}, {name: v3, weight: 50, " + calm + "}")
		a.answered()
	})
	a.while("the former revision", func() {
		a.targets("{name: v2, weight: 50, " + kind + "}, {name: v3, weight: 50, " + calm + "}")
		a.answered()
		if now := a.directory("v2"); now != before {
			t.Errorf("requests for v2 go to %s, and not to %s again", now, before)
		}
		a.until(before, a.directory("v3"))
	})
	a.while("adapters that stick to their engines", func() {
		a.stick(map[string]string{"first": terse, "second": calm})
	})
	a.jobsGo()
	same(t, "the engines", engines, a.engines(base))
	settled(t, c, base)
}

// installForAdapters installs the function, and the APIs of services and models, whose loading Jobs have an Input.
func (h *controlPlane) installForAdapters(t *testing.T, loader string) {
	t.Helper()
	if err := h.PushPackages(first); err != nil {
		t.Fatal(err)
	}
	kubectl(t, h.Cluster, "apply", "-f", "package/install/rbac.yaml", "-f", "package/install/function.yaml",
		"-f", "package/xr/definition.yaml", "-f", "package/xr/cluster-definition.yaml", "-f", "package/xr/cache-definition.yaml", "-f", "package/xr/model-definition.yaml",
		"-f", compositionWith(t, "xr", "modelCaches: {storageClassName: shared}\n"+loader), "-f", modelCompositionWith(t, "xr", loader))
	healthy(t, h.Cluster, "Function", function, first)
	kubectl(t, h.Cluster, "wait", "--for=condition=Established", "--timeout=3m", "xrd", "--all")
	if err := h.DefineModels(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// modelCompositionWith is the file of the packaged Composition of InferenceModels, in whose Input something is set.
func modelCompositionWith(t *testing.T, api, input string) string {
	t.Helper()
	const kind = "      kind: ModelInput\n"
	composition := read(t, "package", api, "model-composition.yaml")
	if strings.Count(composition, kind) != 1 {
		t.Fatalf("package/%s/model-composition.yaml does not say %q once", api, kind)
	}
	return written(t, "model-composition.yaml", strings.Replace(composition, kind, kind+indented(input), 1))
}

// adapters are those of the InferenceModel bot of the service base.
type adapters struct {
	askers

	t         *testing.T
	c         *cluster.Cluster
	namespace string
	model     *unstructured.Unstructured

	mu   sync.Mutex
	sent int
	// failed has the errors of requests, and how often each came.
	failed map[string]int
}

// targets applies the model with other targets, which are YAML.
func (a *adapters) targets(all string) {
	a.t.Helper()
	a.model = owned(a.t, a.namespace, "mine", "{serviceName: base, modelName: bot, targets: ["+all+"]}")
	apply(a.t, a.c, a.model)
}

// says waits until the condition AdaptersLoaded of the newest targets has a status, a reason and a part of its
// message. The model is ready if it is True.
func (a *adapters) says(status, reason, message string) {
	a.t.Helper()
	until(a.t, a.c, fmt.Sprintf("AdaptersLoaded is %s (%s)", status, reason), lasting(func(ctx context.Context) (bool, error) {
		m, err := a.c.Get(ctx, a.model)
		if err != nil {
			return false, err
		}
		if err := observed(m); err != nil {
			return false, err
		}
		s, r, text := condition(m, "AdaptersLoaded")
		if s != status || r != reason || !strings.Contains(text, message) {
			return false, fmt.Errorf("it is %s (%s: %s), and the message should have %q", s, r, text, message)
		}
		// Requests are answered by the former targets meanwhile.
		if err := conditions(m, "Answered"); err != nil {
			return false, err
		}
		if ready, _, _ := condition(m, "Ready"); ready != status {
			return false, fmt.Errorf("AdaptersLoaded is %s, but Ready %s", status, ready)
		}
		return true, nil
	}))
}

// answered waits until requests are answered by the newest targets.
func (a *adapters) answered() {
	a.t.Helper()
	a.says("True", "Loaded", "")
}

// directory is where requests for a target go, as the rewrite says.
func (a *adapters) directory(target string) string {
	a.t.Helper()
	is := regexp.MustCompile("^" + target + "-[0-9a-f]{20}$")
	var found []string
	for _, o := range list(a.t, a.c, rewriteKind, a.namespace) {
		rules, _, _ := unstructured.NestedSlice(o.Object, "spec", "rules")
		for _, r := range rules {
			targets, _, _ := unstructured.NestedSlice(r.(map[string]any), "targets")
			for _, to := range targets {
				if d, _ := to.(map[string]any)["modelRewrite"].(string); is.MatchString(d) {
					found = append(found, d)
				}
			}
		}
	}
	if len(found) != 1 {
		a.t.Fatalf("requests for %s go to the directories %q, want one", target, found)
	}
	return found[0]
}

// jobsGo waits until no Job loads an adapter any more.
func (a *adapters) jobsGo() {
	a.t.Helper()
	until(a.t, a.c, "the Jobs have gone", func(ctx context.Context) (bool, error) {
		all, err := a.c.List(ctx, jobKind, a.namespace)
		return err == nil && len(all) == 0, err
	})
}

// engines are the pods of a service's engines: which they are, and how often their containers have started again.
func (a *adapters) engines(s *unstructured.Unstructured) map[string]string {
	a.t.Helper()
	all := map[string]string{}
	for _, p := range enginePods(a.t, a.c, s) {
		restarts := int32(0)
		for _, c := range p.Status.ContainerStatuses {
			restarts += c.RestartCount
		}
		all[p.Name] = fmt.Sprintf("%s, %d restarts", p.UID, restarts)
	}
	if len(all) == 0 {
		a.t.Fatal("no engine runs")
	}
	return all
}

// begin begins to send 20 requests each second, and to copy rewrites, until the test ends.
func (a *adapters) begin() {
	a.t.Helper()
	ctx, stop := context.WithCancel(a.t.Context())
	var all sync.WaitGroup
	a.t.Cleanup(func() { stop(); all.Wait() })
	all.Go(func() { a.copyRewrites(ctx) })
	until(a.t, a.c, "the gateway listens", func(ctx context.Context) (bool, error) {
		gateways, err := a.c.List(ctx, gatewayKind, a.namespace)
		for _, o := range gateways {
			if at := a.c.GatewayAddress(o.GetNamespace(), o.GetName()); at != "" {
				a.url = "http://" + at + "/v1/chat/completions"
			}
		}
		return a.url != "", err
	})
	until(a.t, a.c, "the endpoint picker knows the model", func(ctx context.Context) (bool, error) {
		_, err := a.askers.model(ctx, "bot")
		return err == nil, err
	})
	all.Go(func() {
		next := time.NewTicker(50 * time.Millisecond)
		defer next.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-next.C:
				all.Go(func() { a.send(context.WithoutCancel(ctx)) })
			}
		}
	})
}

// send sends a request, and counts what comes of it.
func (a *adapters) send(ctx context.Context) {
	_, err := a.askers.model(ctx, "bot")
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sent++
	if err != nil {
		a.failed[err.Error()]++
	}
}

// copyRewrites copies each rewrite that changes, for the endpoint picker, until the context ends.
func (a *adapters) copyRewrites(ctx context.Context) {
	copied := map[string]any{}
	for ctx.Err() == nil {
		all, err := a.c.List(ctx, rewriteKind, a.namespace)
		for _, o := range all {
			if reflect.DeepEqual(copied[o.GetName()], o.Object["spec"]) {
				continue
			}
			to := object(pickerKind, a.namespace, o.GetName())
			to.Object["spec"] = o.Object["spec"]
			_, failed := a.c.Apply(ctx, to, "user")
			if failed == nil {
				copied[o.GetName()] = o.Object["spec"]
			}
			err = errors.Join(err, failed)
		}
		if err != nil && ctx.Err() == nil {
			a.t.Logf("cannot copy rewrites: %v", err)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// while checks that no request fails during a change, or since the one before.
func (a *adapters) while(what string, change func()) {
	a.t.Helper()
	begun := time.Now()
	change()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.t.Logf("%s: %d requests in %.0f s, failed: %v", what, a.sent, time.Since(begun).Seconds(), a.failed)
	if a.sent == 0 {
		a.t.Errorf("%s: no request was sent", what)
	}
	for why, n := range a.failed {
		a.t.Errorf("%s: %d requests: %s", what, n, why)
	}
	a.sent, a.failed = 0, map[string]int{}
}

// until waits until the endpoint picker gives requests to both of two directories, and to no other.
func (a *adapters) until(one, other string) {
	a.t.Helper()
	until(a.t, a.c, fmt.Sprintf("requests are for %s and %s", one, other), func(context.Context) (bool, error) {
		got := a.ask(a.t, "bot", 40)
		return got[one]+got[other] == 40 && got[one] > 0 && got[other] > 0, fmt.Errorf("they are for %v", got)
	})
}

// share checks how many of 400 requests are for a target. All others have to be for one directory.
func (a *adapters) share(target string, from, to int, others string) {
	a.t.Helper()
	got := a.ask(a.t, "bot", 400)
	a.t.Logf("%s: %v", target, got)
	if n := got[a.directory(target)]; n < from || n > to || n+got[others] != 400 {
		a.t.Errorf("%v of the requests for %s, want from %d to %d, and the others for %s", got, target, from, to, others)
	}
}
