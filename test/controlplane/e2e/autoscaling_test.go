package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
	"github.com/fusioninfer/function-inferenceservice/test/controlplane/dashboard"
)

var (
	roleKind       = schema.GroupVersionKind{Group: "fusioninfer.io", Version: "v1alpha1", Kind: "InferenceRole"}
	autoscalerKind = schema.GroupVersionKind{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"}
)

const (
	// perReplica is the target of the roles here: requests that a replica works on.
	perReplica = 5
	// still is how long nothing may move while the metrics are missing. The controller of
	// HorizontalPodAutoscalers looks a dozen times meanwhile.
	still = time.Minute
	// seen is the time that dashboards show here.
	seen = time.Minute
	// quiet is how long nothing may be written while nothing happens.
	quiet = 5 * time.Minute
)

// TestAutoscaling proves docs/scaling.md with the real KEDA, the real Prometheus and the real controller of
// HorizontalPodAutoscalers. Stand-ins for engines answer requests, and no request may fail.
func TestAutoscaling(t *testing.T) {
	c := cluster.TestUp(t, cluster.Options{Packages: *packages, Nodes: 8, GPUs: 8, Engines: true, Autoscaling: true, CoreArgs: cluster.RecommendedCoreArgs})
	a := &autoscaling{Cluster: c, pods: c}
	a.install(t)
	a.chat = a.pair(t, "chat.example.com", func(_, _, decode map[string]any) {
		decode["scaling"] = toTarget(1, 4)
		delete(decode, "replicas")
	})
	t.Run("Load", a.testLoad)
	t.Run("Dead", a.testDead)
	t.Run("Ratio", a.testRatio)
	t.Run("Zero", a.testZero)
	t.Run("Seen", a.testSeen)
	t.Run("Quiet", a.testQuiet)
}

// autoscaling is a control plane with autoscalers, and a service whose decode follows its load.
type autoscaling struct {
	*cluster.Cluster

	chat *unstructured.Unstructured
	// pods is the cluster that has the pods of services.
	pods api
}

// install installs the function with PodMonitors and this Prometheus. KEDA looks more often than by default.
func (a *autoscaling) install(t *testing.T) {
	t.Helper()
	a.installWith(t, a.input())
}

// installWith installs the function with an Input.
func (a *autoscaling) installWith(t *testing.T, input string) {
	t.Helper()
	if err := a.PushPackages(first); err != nil {
		t.Fatal(err)
	}
	kubectl(t, a, "apply", "-f", "package/install/rbac.yaml", "-f", manifestOf(t, packageDir(t), "function.yaml", first))
	healthy(t, a.Cluster, "Function", function, first)
	kubectl(t, a, "apply", "-f", "package/xr/definition.yaml", "-f", "package/xr/role-definition.yaml", "-f", "package/xr/role-composition.yaml",
		"-f", compositionWith(t, "xr", input))
	kubectl(t, a, "wait", "--for=condition=Established", "--timeout=3m", "xrd", "--all")
}

// input has services scraped and scaled.
func (a *autoscaling) input() string {
	return fmt.Sprintf(`monitoring:
  podMonitors: {interval: 2s}
scaling:
  prometheus: {serverAddress: %q}
  pollingSeconds: 5
  cooldownSeconds: 20
`, a.PrometheusURL())
}

// toTarget is the scaling of a role to perReplica. It scales down sooner than by default.
func toTarget(least, most int64) map[string]any {
	return map[string]any{
		"minReplicas": least, "maxReplicas": most,
		"target":   map[string]any{"runningRequests": int64(perReplica)},
		"behavior": map[string]any{"scaleDown": map[string]any{"stabilizationWindowSeconds": int64(60)}},
	}
}

// pair makes a service of prefill and decode in a namespace of its own, as it is changed.
func (a *autoscaling) pair(t *testing.T, host string, change func(spec, prefill, decode map[string]any)) *unstructured.Unstructured {
	t.Helper()
	prefill, decode := briefly(engine("prefill", "prefiller", 1, 1), 5), briefly(engine("decode", "decoder", 1, 1), 5)
	router := picker(host)
	router["strategy"] = "pd-disaggregation"
	s := inference(namespace(t, a.Cluster), "chat", prefill, decode, router)
	spec := s.Object["spec"].(map[string]any)
	spec["schedulingStrategy"] = map[string]any{"gang": map[string]any{"mode": "MinimumFirst"}}
	change(spec, prefill, decode)
	apply(t, a.Cluster, s)
	settled(t, a.Cluster, s)
	return s
}

// calm sends the base rate to the first service, and waits until that has settled with one decode replica.
func (a *autoscaling) calm(t *testing.T) *demand {
	t.Helper()
	l := a.demand(t, a.chat, "chat.example.com")
	l.times(1)
	a.follows(t, a.chat, "decode", 1, 1)
	settled(t, a.Cluster, a.chat)
	return l
}

// testLoad sends four times the load. Decode has to grow to what the target says, and to shrink again. Prefill
// does not change.
func (a *autoscaling) testLoad(t *testing.T) {
	chat := a.chat
	l := a.demand(t, chat, "chat.example.com")
	l.times(1)
	a.follows(t, chat, "decode", 1, 1)
	roles, before := record(t, a, roleKind, chat.GetNamespace()), a.versions(t, chat, "prefill")
	l.times(4)
	a.follows(t, chat, "decode", 3, 4)
	time.Sleep(still)
	a.follows(t, chat, "decode", 3, 4)
	l.times(1)
	a.follows(t, chat, "decode", 1, 1)
	settled(t, a.Cluster, chat)
	same(t, "load on decode", before, a.versions(t, chat, "prefill"))
	few(t, requested(t, roles, "chat-decode"))
	if pods := l.end(); pods < 3 {
		t.Errorf("%d decode pods have answered, want 3 at least", pods)
	}
}

// testDead stops Prometheus while the load grows, and KEDA while it falls. Nothing moves meanwhile, and what was
// missed is made up for when they are back.
func (a *autoscaling) testDead(t *testing.T) {
	chat, l := a.chat, a.calm(t)

	a.StopPrometheus()
	a.blind(t, chat)
	a.moves(t, chat, "Prometheus is dead", func() { l.times(4) })
	if err := a.StartPrometheus(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.follows(t, chat, "decode", 3, 4)
	settled(t, a.Cluster, chat)

	if err := a.StopKEDA(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.blind(t, chat)
	a.moves(t, chat, "KEDA is dead", func() { l.times(1) })
	if err := a.StartKEDA(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.follows(t, chat, "decode", 1, 1)
	settled(t, a.Cluster, chat)
	l.end()
}

// testRatio scales decode, and prefill follows in proportion. The service never wants another proportion.
func (a *autoscaling) testRatio(t *testing.T) {
	pair := a.pair(t, "ratio.example.com", func(spec, prefill, decode map[string]any) {
		spec["scaling"] = map[string]any{"ratio": map[string]any{"prefill": int64(1), "decode": int64(2)}}
		decode["scaling"], prefill["scaling"] = toTarget(2, 6), map[string]any{"maxReplicas": int64(3)}
		delete(decode, "replicas")
		delete(prefill, "replicas")
	})
	services := record(t, a, kindService, pair.GetNamespace())
	l := a.demand(t, pair, "ratio.example.com")
	l.times(6)
	a.follows(t, pair, "decode", 4, 6)
	settled(t, a.Cluster, pair)
	l.times(0)
	a.follows(t, pair, "decode", 2, 2)
	// Prefill asks for nothing of its own, so it has what it asks for.
	if err := conditions(settled(t, a.Cluster, pair), "Scaled"); err != nil {
		t.Error(err)
	}
	l.end()
	seen := map[[2]int64]int{}
	for _, o := range services.objects(t) {
		prefill, decode := desired(o, "prefill"), desired(o, "decode")
		seen[[2]int64{prefill, decode}]++
		if prefill != decode/2 {
			t.Errorf("the service wants %d prefill replicas for %d of decode, want 1 for 2", prefill, decode)
		}
	}
	t.Logf("prefill and decode replicas, and in how many versions of the service: %v", seen)
	if len(seen) < 2 {
		t.Errorf("the service has wanted %v, want other numbers under load", seen)
	}
}

// testZero has a role sleep, wake with the first request, and sleep again.
func (a *autoscaling) testZero(t *testing.T) {
	ns := namespace(t, a.Cluster)
	worker := briefly(engine("worker", "worker", 1, 1), 5)
	delete(worker, "replicas")
	worker["scaling"] = toTarget(0, 3)
	idle := inference(ns, "idle", worker, picker("idle.example.com"))
	roles := record(t, a, roleKind, ns)
	apply(t, a.Cluster, idle)
	l := a.demand(t, idle, "idle.example.com")
	a.sleeps(t, idle)
	a.forgets(t, idle, "worker")

	begun := time.Now()
	l.times(1)
	by, err := l.to.Ask(t.Context(), false)
	if err != nil {
		t.Errorf("one of the first requests failed: %v", err)
	}
	t.Logf("%s answered after %.0f s", by.Pod, time.Since(begun).Seconds())
	a.follows(t, idle, "worker", 1, 1)
	settled(t, a.Cluster, idle)
	l.times(0)
	a.sleeps(t, idle)
	if pods := l.end(); pods == 0 {
		t.Error("no pod has answered")
	}
	few(t, requested(t, roles, "idle-worker"))
}

// testSeen asks for all panels of the dashboards that are about a service and about the function. Each has data, but for
// those about what is not there. Prometheus can evaluate all alerts.
func (a *autoscaling) testSeen(t *testing.T) {
	chat, l := a.chat, a.calm(t)
	// Nothing calls the function for a quiet service within the minute, and a panel with the duration of no call has no data.
	for _, half := range []string{"first", "second"} {
		kubectl(t, a.Cluster, "annotate", "inferenceservices.fusioninfer.io", chat.GetName(), "--namespace="+chat.GetNamespace(), "--overwrite", "test.fusioninfer.io/half="+half)
		time.Sleep(seen / 2)
	}
	for file, want := range map[string][]string{
		"service.json":  {"Conditions that are not True", "Clusters"},
		"function.json": nil,
	} {
		d, err := dashboard.Read(filepath.Join(packageDir(t), "monitoring", "dashboards", file))
		if err != nil {
			t.Fatal(err)
		}
		now := time.Now()
		during := dashboard.Period{Start: now.Add(-seen), End: now, Scrape: cluster.ScrapeInterval}
		if err := d.Ask(t.Context(), a.PrometheusURL(), map[string]string{"namespace": chat.GetNamespace(), "inferenceservice": chat.GetName()}, during); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, d.Empty()); diff != "" {
			t.Errorf("%s: the panels without data are: -want, +got:\n%s", file, diff)
		}
	}
	until(t, a, "Prometheus has evaluated all alerts", func(ctx context.Context) (bool, error) {
		n, err := a.EvaluatedRules(ctx)
		return err == nil && n > 10, err
	})
	l.end()
}

// testQuiet counts what is written while nothing happens.
func (a *autoscaling) testQuiet(t *testing.T) {
	chat, l := a.chat, a.calm(t)
	time.Sleep(30 * time.Second) // Conditions that follow each other.
	ns := chat.GetNamespace()
	before := a.calls(t)
	written := map[string]*recording{}
	for _, kind := range []schema.GroupVersionKind{kindService, roleKind, lwsKind, podKind, scaledObjectKind, autoscalerKind} {
		written[kind.Kind] = record(t, a, kind, ns)
	}
	time.Sleep(quiet)
	for kind, r := range written {
		n := len(r.all())
		t.Logf("%s: %d writes in %s", kind, n, quiet)
		if n > 0 && kind != scaledObjectKind.Kind && kind != autoscalerKind.Kind {
			t.Errorf("%s: %d writes in %s, want none", kind, n, quiet)
		}
	}
	t.Logf("%.0f calls of the function in %s", a.calls(t)-before, quiet)
	l.end()
}

// calls of the function so far.
func (a *autoscaling) calls(t *testing.T) float64 {
	t.Helper()
	all, err := a.FunctionMetrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n := 0.0
	for _, m := range all {
		n += m.Sum("fusioninfer_function_calls_total")
	}
	return n
}

// sleeps waits until a service without a pod says that it sleeps.
func (a *autoscaling) sleeps(t *testing.T, s *unstructured.Unstructured) {
	t.Helper()
	until(t, a, s.GetName()+" sleeps", func(ctx context.Context) (bool, error) {
		o, err := a.Get(ctx, s)
		if err != nil {
			return false, err
		}
		status, reason, message := condition(o, "WorkloadsReady")
		n := len(enginePods(t, a.pods, s))
		return n == 0 && status == "True" && reason == "Sleeping", fmt.Errorf("%d pods, and WorkloadsReady is %s (%s: %s)", n, status, reason, message)
	})
}
