package controlplane

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
)

// TestWorkloads lets LeaderWorkerSet's own manager, and Kubernetes' controllers, make
// pods of what is composed, and reconciles as Crossplane does.
func TestWorkloads(t *testing.T) {
	all := examples(t, false)
	c := startAll(t)
	if err := c.RunKubelet("node"); err != nil {
		t.Fatal(err)
	}
	// With and without workers, a router, a gang, a sidecar, and every launcher.
	for _, name := range []string{"quickstart", "story-1-monolithic", "story-3-multinode", "launcher-vllm", "launcher-sglang", "launcher-none", "gang-1p3d-two-groups", "gang-subgroup", "router-pd-disaggregation", "router-models"} {
		t.Run(name, func(t *testing.T) {
			s := newService(t, c, named(t, all, name))
			s.reconcileUntil(t, "everything runs", s.running)
			if got := s.condition("WorkloadsReady"); got != "True" {
				t.Errorf("everything runs, but the condition WorkloadsReady is %q", got)
			}
			podsAreAsComposed(t, s)
			settled(t, s)
		})
	}
	t.Run("ScaleUpAndDown", func(t *testing.T) { scaleUpAndDown(t, c, named(t, all, "story-4-pd-multinode")) })
}

// startAll starts a cluster with everything that makes pods of InferenceServices.
func startAll(t *testing.T) *cluster.Cluster {
	t.Helper()
	c := cluster.Test(t)
	if err := c.InstallDefinitions(t.Context()); err != nil {
		t.Fatal(err)
	}
	define(t, c, definitionsOf(t, "xr"))
	if err := c.StandbyLWS(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.LeadLWS(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.RunControllers(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

// podsAreAsComposed checks that every pod has the labels and annotations of the
// template that it was made of, and that there are as many as there should be.
func podsAreAsComposed(t *testing.T, s *service) {
	t.Helper()
	pods, err := s.pods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := int64(0)
	for _, o := range s.composed {
		if o.GetKind() != "LeaderWorkerSet" {
			continue
		}
		size, ok, _ := unstructured.NestedInt64(o.Object, "spec", "leaderWorkerTemplate", "size")
		if !ok {
			t.Errorf("%s has no size", o.GetName())
		}
		want += size
		of := slices.DeleteFunc(slices.Clone(pods), func(p *unstructured.Unstructured) bool {
			return p.GetLabels()["leaderworkerset.sigs.k8s.io/name"] != o.GetName()
		})
		if int64(len(of)) != size {
			t.Errorf("%s has %d pods, want %d", o.GetName(), len(of), size)
		}
		for _, p := range of {
			template := templateOf(t, o, p)
			contains(t, p.GetName()+" labels", template.GetLabels(), p.GetLabels())
			contains(t, p.GetName()+" annotations", template.GetAnnotations(), p.GetAnnotations())
			if _, ok := p.GetLabels()["fusioninfer.io/spec-hash"]; ok {
				t.Errorf("%s has the spec's hash, which belongs to the LeaderWorkerSet only", p.GetName())
			}
		}
	}
	if want == 0 {
		t.Error("there are no pods to look at")
	}
}

// templateOf returns the template of which a pod is made.
func templateOf(t *testing.T, lws, pod *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	at := []string{"spec", "leaderWorkerTemplate", "workerTemplate"}
	if pod.GetLabels()["leaderworkerset.sigs.k8s.io/worker-index"] == "0" {
		if _, ok, _ := unstructured.NestedMap(lws.Object, "spec", "leaderWorkerTemplate", "leaderTemplate"); ok {
			at[2] = "leaderTemplate"
		}
	}
	m, ok, err := unstructured.NestedMap(lws.Object, at...)
	if !ok || err != nil {
		t.Fatalf("%s has no %s: %v", lws.GetName(), strings.Join(at, "."), err)
	}
	return &unstructured.Unstructured{Object: m}
}

// contains checks that all of want is in got, and that there is something.
func contains(t *testing.T, what string, want, got map[string]string) {
	t.Helper()
	if len(want) == 0 && strings.HasSuffix(what, "labels") {
		t.Errorf("%s: the template has none", what)
	}
	common := maps.Clone(got)
	maps.DeleteFunc(common, func(k, _ string) bool { _, ok := want[k]; return !ok })
	if diff := cmp.Diff(want, common, equateEmpty); diff != "" {
		t.Errorf("%s: -template, +pod:\n%s", what, diff)
	}
}

var equateEmpty = cmp.Transformer("empty", func(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	return m
})

// settled checks that another reconciliation of what is ready writes nothing.
func settled(t *testing.T, s *service) {
	t.Helper()
	before := writes(t, s)
	if err := s.reconcile(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, writes(t, s)); diff != "" {
		t.Errorf("a reconciliation of what is ready changes it: -before, +after:\n%s", diff)
	}
}

// writes tells of every composed resource what it is, and when Crossplane last
// changed it. Both, because that time has seconds only.
func writes(t *testing.T, s *service) map[string]string {
	t.Helper()
	observed, err := s.observe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w := map[string]string{}
	for _, o := range observed {
		at := ""
		for _, m := range o.GetManagedFields() {
			if m.Manager == manager && m.Subresource == "" {
				at = m.Time.String()
			}
		}
		unstructured.RemoveNestedField(o.Object, "status")
		o.SetManagedFields(nil)
		o.SetResourceVersion("")
		b, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		w[key(o)] = at + " " + string(b)
	}
	return w
}

// scaleUpAndDown adds a decode replica to a gang and removes it. What is there already
// goes on running, and is not even written to.
func scaleUpAndDown(t *testing.T, c *cluster.Cluster, e *example) {
	t.Helper()
	s := newService(t, c, e)
	s.reconcileUntil(t, "everything runs", s.running)
	first, lws := podUIDs(t, s), generations(t, s)
	if len(first) != 10 || len(lws) != 3 {
		t.Fatalf("%s has %d pods in %d LeaderWorkerSets, want 10 in 3", e.name, len(first), len(lws))
	}

	setReplicas(t, s, 1, 3)
	s.reconcileUntil(t, "the third replica runs", func() bool { return s.running() && len(generations(t, s)) == 4 })
	kept(t, "scaling up", first, podUIDs(t, s))
	kept(t, "scaling up", lws, generations(t, s))
	minMember(t, s, 14)

	setReplicas(t, s, 1, 2)
	s.reconcileUntil(t, "the third replica is gone", func() bool { return s.running() && len(podUIDs(t, s)) == 10 })
	if diff := cmp.Diff(first, podUIDs(t, s)); diff != "" {
		t.Errorf("scaling up and down again changes the pods: -before, +after:\n%s", diff)
	}
	if diff := cmp.Diff(lws, generations(t, s)); diff != "" {
		t.Errorf("scaling up and down again changes the LeaderWorkerSets: -before, +after:\n%s", diff)
	}
	minMember(t, s, 10)
}

func setReplicas(t *testing.T, s *service, role int, n int64) {
	t.Helper()
	roles, _, err := unstructured.NestedSlice(s.xr.Object, "spec", "roles")
	if err != nil {
		t.Fatal(err)
	}
	roles[role].(map[string]any)["replicas"] = n
	b, err := json.Marshal(map[string]any{"spec": map[string]any{"roles": roles}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.c.Resource(s.xr)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Patch(t.Context(), s.xr.GetName(), types.MergePatchType, b, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

func podUIDs(t *testing.T, s *service) map[string]string {
	t.Helper()
	pods, err := s.pods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	uids := map[string]string{}
	for _, p := range pods {
		uids[p.GetName()] = string(p.GetUID())
	}
	return uids
}

// generations are the writes of the LeaderWorkerSets.
func generations(t *testing.T, s *service) map[string]string {
	t.Helper()
	g := map[string]string{}
	for k, w := range writes(t, s) {
		if strings.HasPrefix(k, "leaderworkerset/") || strings.HasPrefix(k, "lws/") {
			g[k] = w
		}
	}
	return g
}

func kept(t *testing.T, when string, before, after map[string]string) {
	t.Helper()
	common := maps.Clone(after)
	maps.DeleteFunc(common, func(k, _ string) bool { _, ok := before[k]; return !ok })
	if diff := cmp.Diff(before, common); diff != "" {
		t.Errorf("%s changes what is there already: -before, +after:\n%s", when, diff)
	}
}

func minMember(t *testing.T, s *service, want int64) {
	t.Helper()
	for _, o := range s.composed {
		if o.GetKind() != "PodGroup" {
			continue
		}
		got, err := s.c.Get(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if n, _, _ := unstructured.NestedInt64(got.Object, "spec", "minMember"); n != want {
			t.Errorf("the PodGroup's minMember is %d, want %d", n, want)
		}
		return
	}
	t.Error("there is no PodGroup")
}
