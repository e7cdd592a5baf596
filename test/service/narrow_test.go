package service

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/test/fixture"
)

// TestPoolNarrows shows that workers beside prefill and decode get the requests once one of them serves.
// The others answer them until then.
func TestPoolNarrows(t *testing.T) {
	roles := func(strategy string, more ...string) string {
		var spec strings.Builder
		spec.WriteString("roles:\n- {name: r, componentType: router, strategy: " + strategy + "}\n")
		for i := 0; i < len(more); i += 2 {
			spec.WriteString(roleOf(more[i], more[i], 1, more[i+1]))
		}
		return spec.String()
	}
	const all, workers, prefill, decode = "", "worker", "prefiller", "decoder"
	type step struct{ reason, spec, want string }
	cases := map[string][]step{
		"Both": {
			{"Prefill and decode answer whole requests.", roles("queue-size", prefill, "v1", decode, "v1"), all},
			{"The worker does not serve so far.", roles("queue-size", prefill, "v1", decode, "v1", workers, broken), all},
			{"It serves now.", roles("queue-size", prefill, "v1", decode, "v1", workers, "v1"), workers},
			{"It failed after that, and the pool is not for the others any more.", roles("queue-size", prefill, "v1", decode, "v1", workers, broken), workers},
			{"The endpoint picker does not pick prefill and decode apart so far.", roles("pd-disaggregation", prefill, "v1", decode, "v1", workers, broken), workers},
		},
		"BothPickedApart": {
			{"All pods are in the pool of prefill and decode.", roles("pd-disaggregation", prefill, "v1", decode, "v1", workers, broken), all},
			{"Another strategy came before the worker serves.", roles("queue-size", prefill, "v1", decode, "v1", workers, broken), all},
		},
		"DecodeAlone": {
			{"Decode answers whole requests.", roles("queue-size", decode, "v1"), decode},
			{"The worker does not serve so far.", roles("queue-size", decode, "v1", workers, broken), decode},
			{"It serves now.", roles("queue-size", decode, "v1", workers, "v1"), workers},
		},
		"PrefillAlone": {
			{"Prefill answers whole requests.", roles("queue-size", prefill, "v1"), prefill},
			{"The worker does not serve so far.", roles("queue-size", prefill, "v1", workers, broken), prefill},
			{"It serves now.", roles("queue-size", prefill, "v1", workers, "v1"), workers},
		},
		"DecodeOfBoth": {
			{"Prefill and decode answer whole requests.", roles("queue-size", prefill, "v1", decode, "v1"), all},
			{"Decode is left, and serves.", roles("queue-size", decode, "v1"), decode},
		},
	}
	for name, steps := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, steps[0].spec)
			for _, step := range steps {
				_, rsp := w.rollOut(step.spec)
				pool := rsp.GetDesired().GetResources()["inferencepool"].GetResource()
				got := kube.Lookup(pool, "spec", "selector", "matchLabels", naming.LabelComponentType).GetStringValue()
				if diff := cmp.Diff(step.want, got); diff != "" {
					t.Errorf("%s\n-want, +got:\n%s", step.reason, diff)
				}
			}
		})
	}
}

// TestPoolWidens shows that prefill and decode come into the pool of workers once the endpoint picker picks them apart. Until then
// the former picker would send them whole requests.
func TestPoolWidens(t *testing.T) {
	spec := func(strategy, worker string) string {
		return "roles:\n- {name: r, componentType: router, strategy: " + strategy + "}\n" + sglangRole("p", "prefiller", 1, "v1") + sglangRole("d", "decoder", 1, "v1") + roleOf("w", "worker", 1, worker)
	}
	const current = `{observedGeneration: 1, replicas: 1, readyReplicas: 1, availableReplicas: 1, updatedReplicas: 1}`
	for name, tc := range map[string]struct {
		worker, picker string
		want           string
	}{
		"NotReported":  {"v1", `{}`, "worker"},
		"NewTemplate":  {"v2", `{}`, "worker"},
		"WorkerFails":  {broken, `{}`, "worker"},
		"FormerRuns":   {"v1", `{observedGeneration: 1, replicas: 2, readyReplicas: 2, availableReplicas: 2, updatedReplicas: 1}`, "worker"},
		"NotObserved":  {"v1", `{observedGeneration: 0, replicas: 1, readyReplicas: 1, availableReplicas: 1, updatedReplicas: 1}`, "worker"},
		"NotAvailable": {"v1", `{observedGeneration: 1, replicas: 1, updatedReplicas: 1}`, "worker"},
		"Current":      {"v1", current, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, spec("queue-size", "v1"))
			w.rollOut(spec("queue-size", "v1"))
			w.edit(spec("pd-disaggregation", tc.worker))
			selected := func() string {
				pool := w.req.GetObserved().GetResources()["inferencepool"].GetResource()
				return kube.Lookup(pool, "spec", "selector", "matchLabels", naming.LabelComponentType).GetStringValue()
			}
			w.step() // The ConfigMap gets the new configuration, and the picker waits.
			if got := selected(); got != "worker" {
				t.Errorf("the pool selects %q at the edit", got)
			}
			for range 6 {
				picker := w.req.GetObserved().GetResources()["deployment/epp"]
				picker.Resource = kube.With(picker.GetResource(), structpb.NewStructValue(fixture.YAML(t, tc.picker)), "status")
				w.step()
			}
			if got := selected(); got != tc.want {
				t.Errorf("the pool selects %q, want %q", got, tc.want)
			}
			withoutWorkers, _, _ := strings.Cut(spec("pd-disaggregation", tc.worker), "- {name: w,")
			w.edit(withoutWorkers)
			if got := fixture.Fatals(w.fn.Run(t, w.req)); (got != "") != (tc.want == "worker" && tc.worker != broken) {
				t.Errorf("the workers are removed, and that is refused for %q", got)
			}
		})
	}
}

// TestPickedApartBefore has a service of a version of the function before, which did not note that its endpoint picker picks prefill
// and decode apart. Its decode crashes, and that is no edit.
func TestPickedApartBefore(t *testing.T) {
	spec := "roles:\n- {name: r, componentType: router}\n" + roleOf("p", "prefiller", 1, "v1") + roleOf("d", "decoder", 1, "v1")
	w := newWorld(t, spec)
	w.rollOut(spec)
	config := kube.Lookup(w.req.GetObserved().GetResources()["configmap/epp"].GetResource(), "metadata", "annotations").GetStructValue().GetFields()
	if config[naming.AnnotationPicksApart] == nil {
		t.Fatal("it is not noted today")
	}
	delete(config, naming.AnnotationPicksApart)
	decode := w.req.GetObserved().GetResources()["leaderworkerset/d/0"]
	decode.Resource = kube.With(decode.GetResource(), structpb.NewStructValue(fixture.YAML(t, `{observedGeneration: 1, conditions: [{type: Available, status: "False"}]}`)), "status")
	if got := fixture.Fatals(w.fn.Run(t, w.req)); got != "" {
		t.Errorf("refused for %q", got)
	}
}

// TestPickedApart adds a role to one that serves. The endpoint picker would send it no requests any more, before others serve.
func TestPickedApart(t *testing.T) {
	const message = "must go on getting the requests, because it serves"
	roles := func(strategy string, more ...string) string {
		return "roles:\n- {name: r, componentType: router" + strategy + "}\n" + strings.Join(more, "")
	}
	for name, tc := range map[string]struct {
		before, after string
		// first is an edit in between.
		first   string
		refused bool
	}{
		"DecodeBesidePrefill":       {before: roles("", roleOf("p", "prefiller", 2, "v1")), after: roles("", roleOf("p", "prefiller", 2, "v1"), roleOf("d", "decoder", 2, "v1")), refused: true},
		"WithAnotherStrategy":       {before: roles("", roleOf("p", "prefiller", 2, "v1")), first: roles(", strategy: prefix-cache", roleOf("p", "prefiller", 2, "v1"), roleOf("d", "decoder", 2, "v1")), after: roles("", roleOf("p", "prefiller", 2, "v1"), roleOf("d", "decoder", 2, "v1"))},
		"DecodeDoesNotServe":        {before: roles("", roleOf("p", "prefiller", 2, "v1")), first: roles(", strategy: prefix-cache", roleOf("p", "prefiller", 2, "v1"), roleOf("d", "decoder", 2, broken)), after: roles("", roleOf("p", "prefiller", 2, "v1"), roleOf("d", "decoder", 2, broken)), refused: true},
		"PrefillDoesNotServe":       {before: roles("", roleOf("p", "prefiller", 2, broken)), after: roles("", roleOf("p", "prefiller", 2, "v1"), roleOf("d", "decoder", 2, "v1"))},
		"PrefillBesideDecode":       {before: roles("", roleOf("d", "decoder", 2, "v1")), after: roles("", roleOf("p", "prefiller", 2, "v1"), roleOf("d", "decoder", 2, "v1"))},
		"PrefillBesideDecodeSGLang": {before: roles("", sglangRole("d", "decoder", 2, "v1")), after: roles("", sglangRole("p", "prefiller", 2, "v1"), sglangRole("d", "decoder", 2, "v1")), refused: true},
		"BesideWorkers": {
			before: roles("", sglangRole("d", "decoder", 2, "v1")), first: roles("", sglangRole("d", "decoder", 2, "v1"), roleOf("w", "worker", 1, "v1")),
			after: roles("", sglangRole("p", "prefiller", 2, "v1"), sglangRole("d", "decoder", 2, "v1"), roleOf("w", "worker", 1, "v1")),
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.before)
			w.rollOut(tc.before)
			if tc.first != "" {
				w.rollOut(tc.first)
			}
			w.edit(tc.after)
			got := fixture.Fatals(w.fn.Run(t, w.req))
			if strings.Contains(got, message) != tc.refused || got != "" && !tc.refused {
				t.Fatalf("refused for %q, want %t", got, tc.refused)
			}
			if !tc.refused {
				w.start = 3
				w.rollOut(tc.after) // No call on the way refuses it.
			}
		})
	}
}

// TestPickedTogether turns to a strategy that sends whole requests to each pod, while prefill and decode serve. Those of SGLang would
// refuse all of them.
func TestPickedTogether(t *testing.T) {
	const message = "spec.roles[0].strategy: Forbidden: must be pd-disaggregation while prefill and decode serve: neither answers whole requests alone. " +
		"Add a role of workers and wait until it serves, or set the replicas of all roles to 0 first"
	roles := func(strategy string, more ...string) string {
		return "roles:\n- {name: r, componentType: router" + strategy + "}\n" + strings.Join(more, "")
	}
	const apart, queue = "", ", strategy: queue-size"
	sglangPair, pair := sglangRole("p", "prefiller", 2, "v1")+sglangRole("d", "decoder", 2, "v1"), roleOf("p", "prefiller", 2, "v1")+roleOf("d", "decoder", 2, "v1")
	cases := map[string]struct {
		reason, before, after, want string
	}{
		"SGLang":         {"Neither answers alone.", roles(apart, sglangPair), roles(queue, sglangPair), message},
		"PrefixCache":    {"Nor does it with another such strategy.", roles(apart, sglangPair), roles(", strategy: prefix-cache", sglangPair), message},
		"VLLM":           {"Each answers alone.", roles(apart, pair), roles(queue, pair), ""},
		"Workers":        {"They get the requests.", roles(apart, sglangPair, roleOf("w", "worker", 1, "v1")), roles(queue, sglangPair, roleOf("w", "worker", 1, "v1")), ""},
		"BrokenWorkers":  {"They do not serve.", roles(apart, sglangPair, roleOf("w", "worker", 1, broken)), roles(queue, sglangPair, roleOf("w", "worker", 1, broken)), message},
		"WorkersAtOnce":  {"They do not serve so far.", roles(apart, sglangPair), roles(queue, sglangPair, roleOf("w", "worker", 1, "v1")), message},
		"Stopped":        {"Nothing serves.", roles(apart, strings.ReplaceAll(sglangPair, "replicas: 2", "replicas: 0")), roles(queue, sglangPair), ""},
		"WithoutARouter": {"Nobody has sent requests to them.", "roles:\n" + sglangPair, roles(queue, sglangPair), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.before)
			w.rollOut(tc.before)
			w.edit(tc.after)
			if got := fixture.Fatals(w.fn.Run(t, w.req)); got != tc.want && !strings.HasSuffix(got, tc.want) || tc.want == "" && got != "" {
				t.Errorf("%s\nrefused for %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// TestWholeRequestsRefused warns of a service whose prefill and decode refuse every request.
func TestWholeRequestsRefused(t *testing.T) {
	const router, both = "roles:\n- {name: r, componentType: router, strategy: queue-size}\n", "prefill and decode pods both receive whole requests: only pd-disaggregation separates prefill from decode"
	for name, tc := range map[string]struct{ roles, want string }{
		"SGLang": {sglangRole("p", "prefiller", 1, "v1") + sglangRole("d", "decoder", 1, "v1"), both + ". SGLang's refuse all of them"},
		"VLLM":   {roleOf("p", "prefiller", 1, "v1") + roleOf("d", "decoder", 1, "v1"), both},
	} {
		t.Run(name, func(t *testing.T) {
			warned := newWorld(t, router+tc.roles).step()
			for _, c := range warned.GetConditions() {
				if want := "spec.roles[0].strategy: " + tc.want; c.GetType() == "NoWarnings" && !strings.Contains(c.GetMessage()+";", want+";") {
					t.Errorf("want %q, got %q", want, c.GetMessage())
				}
			}
		})
	}
}
