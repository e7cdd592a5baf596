package service

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/test/fixture"
	"github.com/fusioninfer/function-inferenceservice/test/function"
)

const (
	oneRole = "roles: [{name: w, componentType: worker, %s, template: {spec: {containers: [{name: engine, image: v1, command: [vllm, serve, /m]}]}}}]\n"
	pdRoles = "roles: [{name: p, componentType: prefiller, scaling: {%s}, template: {spec: {containers: [{name: engine, image: v1, command: [vllm, serve, /m]}]}}}," +
		"{name: d, componentType: decoder, scaling: {%s}, template: {spec: {containers: [{name: engine, image: v1, command: [vllm, serve, /m]}]}}}]\n"
	startNote = "fusioninfer.io/start-replicas"
)

// target returns the InferenceRole of a role.
func (w *world) target(role string) *fnv1.Resource {
	return w.req.GetObserved().GetResources()["inferencerole/"+role]
}

// scale does what the scale subresource does: it sets the number of replicas. The function no longer owns it
// then, and the API server keeps it although the function leaves it out.
func (w *world) scale(role string, n int) {
	w.tb.Helper()
	r := w.target(role)
	if r == nil {
		w.tb.Fatalf("role %s has no InferenceRole", role)
		return
	}
	r.Resource = kube.With(r.GetResource(), structpb.NewNumberValue(float64(n)), "spec", "replicas")
}

// apply is a step that writes the status, and keeps the numbers that the response leaves out, as server-side apply does with those
// of another owner. The note of the service goes when the service leaves it out.
func (w *world) apply() *fnv1.RunFunctionResponse {
	w.tb.Helper()
	before := map[string]*structpb.Value{}
	for key, r := range w.req.GetObserved().GetResources() {
		if strings.HasPrefix(key, "inferencerole/") {
			before[key] = kube.Lookup(r.GetResource(), "spec", "replicas")
		}
	}
	rsp := w.step()
	if status := kube.Lookup(rsp.GetDesired().GetComposite().GetResource(), "status"); status != nil {
		w.req.Observed.Composite.Resource = kube.With(w.req.GetObserved().GetComposite().GetResource(), status, "status")
	}
	for key, n := range before {
		if r := w.req.GetObserved().GetResources()[key]; r != nil && kube.Lookup(r.GetResource(), "spec", "replicas") == nil {
			r.Resource = kube.With(r.GetResource(), n, "spec", "replicas")
		}
	}
	return rsp
}

// sent is what a response says of the replicas of an InferenceRole: the number and the note.
func sent(rsp *fnv1.RunFunctionResponse, role string) string {
	o := rsp.GetDesired().GetResources()["inferencerole/"+role].GetResource()
	if o == nil {
		return "none"
	}
	n := kube.Lookup(o, "spec", "replicas")
	if n == nil {
		return "left out" + kube.Lookup(o, "metadata", "annotations", startNote).GetStringValue()
	}
	return fmt.Sprintf("%v noted %s", n.GetNumberValue(), kube.Lookup(o, "metadata", "annotations", startNote).GetStringValue())
}

// limited is what the InferenceRole of a role says of its limits in a response.
func limited(rsp *fnv1.RunFunctionResponse, role string) string {
	l := kube.Lookup(rsp.GetDesired().GetResources()["inferencerole/"+role].GetResource(), "spec", "current", "limit")
	if l == nil {
		return "nothing"
	}
	return kube.Lookup(l.GetStructValue(), "reason").GetStringValue() + ": " + kube.Lookup(l.GetStructValue(), "message").GetStringValue()
}

// setsOf counts the LeaderWorkerSets of a role in a response.
func setsOf(rsp *fnv1.RunFunctionResponse, role string) int {
	n := 0
	for key := range rsp.GetDesired().GetResources() {
		if strings.HasPrefix(key, "leaderworkerset/"+role+"/") {
			n++
		}
	}
	return n
}

// setsOfPair counts the LeaderWorkerSets of the roles p and d.
func setsOfPair(rsp *fnv1.RunFunctionResponse) string {
	return fmt.Sprintf("%d, %d", setsOf(rsp, "p"), setsOf(rsp, "d"))
}

// TestScale takes a role through the life of a scale target: what starts it, who owns the number, its limits.
func TestScale(t *testing.T) {
	w := newWorld(t, fmt.Sprintf(oneRole, "scaling: {minReplicas: 2, maxReplicas: 5}"))
	check := func(when, wantSent string, wantSets int, wantScaled string) {
		t.Helper()
		rsp := w.apply()
		got := []any{sent(rsp, "w"), setsOf(rsp, "w"), fixture.Condition(rsp, "Scaled")}
		if diff := cmp.Diff([]any{wantSent, wantSets, wantScaled}, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", when, diff)
		}
	}
	check("First", "2 noted 2", 2, "FALSE NotCreated")
	check("Repeated", "2 noted 2", 2, "TRUE AsRequested")
	w.scale("w", 4)
	check("Scaled", "left out", 4, "TRUE AsRequested")
	check("LeftAlone", "left out", 4, "TRUE AsRequested")
	w.scale("w", 2)
	check("BackToTheStart", "left out", 2, "TRUE AsRequested")
	w.scale("w", 9)
	check("Above", "left out", 5, "FALSE Maximum")
	w.scale("w", 0)
	check("Below", "left out", 2, "FALSE Minimum")
	w.scale("w", 3)
	check("Between", "left out", 3, "TRUE AsRequested")
	delete(w.req.Observed.Resources, "inferencerole/w")
	check("Gone", "3 noted 3", 3, "FALSE NotCreated")
	r := w.target("w")
	r.Resource = kube.With(r.GetResource(), structpb.NewStringValue("many"), "spec", "replicas")
	check("Unreadable", "3 noted 3", 3, "TRUE AsRequested")
}

// TestScaleVersion proves that the number of the start goes only onto the version that it was read with, and that
// nothing else of an InferenceRole depends on its version.
func TestScaleVersion(t *testing.T) {
	w := newWorld(t, fmt.Sprintf(oneRole, "scaling: {maxReplicas: 5}"))
	version := func(rsp *fnv1.RunFunctionResponse) string {
		return kube.Lookup(rsp.GetDesired().GetResources()["inferencerole/w"].GetResource(), "metadata", "resourceVersion").GetStringValue()
	}
	got := []string{version(w.apply())}
	set := func(v string) {
		r := w.target("w")
		r.Resource = kube.With(r.GetResource(), structpb.NewStringValue(v), "metadata", "resourceVersion")
	}
	for _, v := range []string{"7", "8"} {
		set(v)
		got = append(got, version(w.apply()))
	}
	set("9")
	w.scale("w", 3)
	got = append(got, version(w.apply()))
	if diff := cmp.Diff([]string{"", "7", "8", ""}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestScaleToZero runs nothing where minReplicas lets it, and starts again.
func TestScaleToZero(t *testing.T) {
	w := newWorld(t, fmt.Sprintf(oneRole, "scaling: {minReplicas: 0, maxReplicas: 5}"))
	w.apply()
	w.apply()
	for _, n := range []int{0, 2, 0, 1} {
		w.scale("w", n)
		rsp := w.apply()
		if got := setsOf(rsp, "w"); got != n || fixture.Condition(rsp, "Scaled") != "TRUE AsRequested" {
			t.Errorf("scaled to %d: got %d LeaderWorkerSets, and Scaled is %s", n, got, fixture.Condition(rsp, "Scaled"))
		}
	}
}

// TestScaleFromStatic turns a role with replicas into one with scaling and back. Nothing starts or stops.
func TestScaleFromStatic(t *testing.T) {
	w := newWorld(t, fmt.Sprintf(oneRole, "replicas: 3"))
	w.apply()
	w.apply()
	scaled := fmt.Sprintf(oneRole, "scaling: {maxReplicas: 8}")
	w.edit(scaled)
	rsp := w.apply()
	if got := fmt.Sprint(sent(rsp, "w"), ", ", setsOf(rsp, "w")); got != "3 noted 3, 3" {
		t.Errorf("with scaling: got %s", got)
	}
	w.scale("w", 4)
	w.apply()
	w.edit(strings.Replace(fmt.Sprintf(oneRole, "replicas: 4"), "replicas: 4, ", "", 1))
	got := fixture.Fatals(w.fn.Run(t, w.req))
	if want := "spec.roles[0].replicas: Required value: must be set when scaling is removed: the role runs 4 replicas, and would go to 1"; !strings.Contains(got, want) {
		t.Errorf("want %q, got %q", want, got)
	}
	w.edit(fmt.Sprintf(oneRole, "replicas: 4"))
	rsp = w.apply()
	if got := fmt.Sprint(sent(rsp, "w"), ", ", setsOf(rsp, "w"), ", ", fixture.Condition(rsp, "Scaled")); got != "none, 4, TRUE NoScaling" {
		t.Errorf("without scaling: got %s", got)
	}
}

// TestScaleRatio keeps the ratio of prefill and decode, whichever of them is scaled.
func TestScaleRatio(t *testing.T) {
	cases := map[string]struct {
		prefill, decode, ratio string
		askP, askD             int
		want                   string
	}{
		"Kept":        {"maxReplicas: 8", "maxReplicas: 8", "{prefill: 1, decode: 2}", 2, 4, "2, 4, TRUE AsRequested"},
		"MorePrefill": {"maxReplicas: 8", "maxReplicas: 8", "{prefill: 1, decode: 2}", 2, 6, "3, 6, FALSE Ratio"},
		"MoreDecode":  {"maxReplicas: 8", "maxReplicas: 8", "{prefill: 1, decode: 2}", 3, 2, "3, 6, FALSE Ratio"},
		"Tolerated":   {"maxReplicas: 8", "maxReplicas: 8", "{prefill: 1, decode: 1, tolerancePercent: 50}", 2, 4, "2, 4, TRUE AsRequested"},
		"Beyond":      {"maxReplicas: 8", "maxReplicas: 8", "{prefill: 1, decode: 1, tolerancePercent: 50}", 2, 6, "3, 6, FALSE Ratio"},
		"Highest":     {"maxReplicas: 2", "maxReplicas: 8", "{prefill: 1, decode: 2}", 1, 8, "2, 5, FALSE Ratio"},
		"Lowest":      {"maxReplicas: 3", "minReplicas: 6, maxReplicas: 8", "{prefill: 1, decode: 2}", 1, 8, "3, 7, FALSE Ratio"},
		"Zero":        {"minReplicas: 0, maxReplicas: 4", "minReplicas: 0, maxReplicas: 4", "{prefill: 1, decode: 2}", 0, 0, "0, 0, TRUE AsRequested"},
		"NoneBeside":  {"minReplicas: 0, maxReplicas: 4", "minReplicas: 0, maxReplicas: 4", "{prefill: 1, decode: 4}", 0, 2, "1, 4, FALSE Ratio"},
		"Without":     {"maxReplicas: 8", "maxReplicas: 8", "", 1, 6, "1, 6, TRUE AsRequested"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := fmt.Sprintf(pdRoles, tc.prefill, tc.decode)
			if tc.ratio != "" {
				spec += "scaling: {ratio: " + tc.ratio + "}\n"
			}
			w := newWorld(t, spec)
			w.apply()
			w.apply()
			w.scale("p", tc.askP)
			w.scale("d", tc.askD)
			w.apply() // The gang grows before its replicas do.
			rsp := w.apply()
			if got := fmt.Sprint(setsOfPair(rsp), ", ", fixture.Condition(rsp, "Scaled")); got != tc.want {
				t.Errorf("want %s, got %s", tc.want, got)
			}
		})
	}
}

// TestScaleRatioFollows shows that a role without an autoscaler follows the other one of the pair, also to fewer replicas than it
// started with, and that its InferenceRole says so. One that somebody has scaled, or that has an autoscaler, holds the other one up.
func TestScaleRatioFollows(t *testing.T) {
	const target = ", metrics: [{type: External, external: {metric: {name: m}, target: {type: AverageValue, averageValue: '3'}}}]"
	cases := map[string]struct {
		prefill, decode, tolerance string
		// asked are the numbers that decode is scaled to, one after the other.
		asked []int
		want  string
	}{
		"Down":       {"maxReplicas: 4", "minReplicas: 2, maxReplicas: 8" + target, "0", []int{8, 2}, "1, 2, TRUE AsRequested, 1"},
		"Up":         {"maxReplicas: 4", "minReplicas: 2, maxReplicas: 8" + target, "0", []int{6}, "3, 6, TRUE AsRequested, 3"},
		"Tolerant":   {"maxReplicas: 4", "minReplicas: 2, maxReplicas: 8" + target, "50", []int{4, 8}, "2, 8, TRUE AsRequested, 2"},
		"NoLess":     {"maxReplicas: 4", "minReplicas: 2, maxReplicas: 8" + target, "50", []int{8, 4}, "2, 4, TRUE AsRequested, 2"},
		"Sleeps":     {"minReplicas: 0, maxReplicas: 4", "minReplicas: 0, maxReplicas: 8", "0", []int{4, 0}, "0, 0, TRUE AsRequested, 0"},
		"Least":      {"minReplicas: 2, maxReplicas: 4", "maxReplicas: 8", "0", []int{8, 1}, "2, 4, FALSE Ratio, 2"},
		"Autoscaled": {"minReplicas: 2, maxReplicas: 4" + target, "maxReplicas: 8" + target, "0", []int{8, 1}, "2, 4, FALSE Ratio, 2"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, fmt.Sprintf(pdRoles, tc.prefill, tc.decode)+"scaling: {ratio: {prefill: 1, decode: 2, tolerancePercent: "+tc.tolerance+"}}\n")
			w.apply()
			w.apply()
			for _, n := range tc.asked {
				w.scale("d", n)
				w.apply() // The gang grows before its replicas do.
				w.apply()
			}
			rsp := w.apply()
			asks := kube.Lookup(w.target("p").GetResource(), "spec", "replicas").GetNumberValue()
			if got := fmt.Sprint(setsOfPair(rsp), ", ", fixture.Condition(rsp, "Scaled"), ", ", asks); got != tc.want {
				t.Errorf("want %s, got %s", tc.want, got)
			}
		})
	}
}

// TestScaleRatioStarts shows that a static pair starts with what it runs when it gets a ratio, and follows once somebody scales it.
func TestScaleRatioStarts(t *testing.T) {
	roles := strings.NewReplacer("scaling: {%s}", "%s").Replace(pdRoles)
	w := newWorld(t, fmt.Sprintf(roles, "replicas: 4", "replicas: 6"))
	w.apply()
	w.apply()
	w.edit(fmt.Sprintf(roles, "scaling: {maxReplicas: 4}", "scaling: {maxReplicas: 8}") + "scaling: {ratio: {prefill: 1, decode: 1}}\n")
	w.apply()
	runs := func() string { return setsOfPair(w.apply()) }
	w.apply()
	if diff := cmp.Diff("4, 4", runs()); diff != "" {
		t.Errorf("once it has a ratio: -want, +got:\n%s", diff)
	}
	w.scale("d", 2)
	w.apply()
	if diff := cmp.Diff("2, 2", runs()); diff != "" {
		t.Errorf("once decode is scaled: -want, +got:\n%s", diff)
	}
}

// TestScaleRatioLost deletes the InferenceRole of a role that runs more than anybody asked for. It comes back with what runs.
func TestScaleRatioLost(t *testing.T) {
	w := newWorld(t, fmt.Sprintf(pdRoles, "minReplicas: 0, maxReplicas: 4", "minReplicas: 0, maxReplicas: 8")+"scaling: {ratio: {prefill: 1, decode: 4}}\n")
	w.apply()
	w.apply()
	w.scale("p", 0)
	w.scale("d", 1)
	w.apply()
	runs := func() string { return setsOfPair(w.apply()) }
	ran := runs()
	delete(w.req.Observed.Resources, "inferencerole/p")
	w.apply()
	w.apply()
	if got := runs(); got != ran {
		t.Errorf("it ran %s, and runs %s", ran, got)
	}
}

// TestScaleMaximumLowered lowers maxReplicas below the number with which a role has started. The InferenceRole follows, unless
// somebody has set another number.
func TestScaleMaximumLowered(t *testing.T) {
	w := newWorld(t, fmt.Sprintf(oneRole, "replicas: 6"))
	w.apply()
	w.apply()
	w.edit(fmt.Sprintf(oneRole, "scaling: {maxReplicas: 8}"))
	w.apply()
	w.edit(fmt.Sprintf(oneRole, "scaling: {maxReplicas: 4}"))
	rsp := w.apply()
	if got := fmt.Sprint(sent(rsp, "w"), ", ", setsOf(rsp, "w"), ", ", fixture.Condition(rsp, "Scaled")); got != "4 noted 4, 4, TRUE AsRequested" {
		t.Errorf("nobody has scaled it: got %s", got)
	}
	if got := limited(rsp, "w"); got != "nothing" {
		t.Errorf("nobody has scaled it: the InferenceRole says %s", got)
	}
	w.scale("w", 3)
	w.apply()
	w.edit(fmt.Sprintf(oneRole, "scaling: {maxReplicas: 2}"))
	rsp = w.apply()
	if got := fmt.Sprint(sent(rsp, "w"), ", ", setsOf(rsp, "w"), ", ", fixture.Condition(rsp, "Scaled")); got != "left out, 2, FALSE Maximum" {
		t.Errorf("somebody has scaled it: got %s", got)
	}
	if got := limited(rsp, "w"); got != "Maximum: role w: its InferenceRole asks for 3, and maxReplicas makes it 2" {
		t.Errorf("somebody has scaled it: the InferenceRole says %s", got)
	}
}

// TestScaleLimits refuses at once what a scale target could reach and the platform team does not allow.
func TestScaleLimits(t *testing.T) {
	const input = `{apiVersion: fn.fusioninfer.io/v1alpha1, kind: Input, limits: {replicas: 4}}`
	cases := map[string]struct{ reason, scaling, want string }{
		"Within": {reason: "The role may grow to the limit.", scaling: "scaling: {maxReplicas: 4}"},
		"Beyond": {reason: "One replica would run, and five might.", scaling: "scaling: {maxReplicas: 5}", want: "5 replicas"},
		"Surge":  {reason: "What a rollout adds counts.", scaling: "scaling: {maxReplicas: 4}", want: "5 replicas"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := fmt.Sprintf(oneRole, tc.scaling)
			if name == "Surge" {
				spec += "rollout: {maxSurge: 1}\n"
			}
			got := fixture.Fatals(function.Start(t).Run(t, fixture.Request(t, fixture.Service(spec), input)))
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("%s want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

// TestScaleIsNeverTooLarge refuses a role at once whose most replicas fit into no answer of Crossplane, however few
// run now.
func TestScaleIsNeverTooLarge(t *testing.T) {
	cases := map[string]struct {
		reason, scaling string
		refused         bool
	}{
		"Fits":    {reason: "Some hundred replicas fit.", scaling: "scaling: {maxReplicas: 200}"},
		"Large":   {reason: "As many with a large template do not.", scaling: "scaling: {maxReplicas: 2000}", refused: true},
		"Ordered": {reason: "So are replicas that run at once.", scaling: "replicas: 2000", refused: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			env := fmt.Sprintf("env: [{name: LARGE, value: %s}]", strings.Repeat("x", 4<<10))
			spec := strings.Replace(fmt.Sprintf(oneRole, tc.scaling), "image: v1", "image: v1, "+env, 1)
			if !strings.Contains(spec, "LARGE") {
				t.Fatalf("the template has another image:\n%s", spec)
			}
			got := fixture.Fatals(function.Start(t).Run(t, fixture.Request(t, fixture.Service(spec), "")))
			if strings.Contains(got, "replicas of this role fit") != tc.refused {
				t.Errorf("%s refused: want %t, got %q", tc.reason, tc.refused, got)
			}
		})
	}
}

// TestScaleStaysAccepted scales a role with the largest maxReplicas that is accepted, and rolls it out. It is never refused
// then.
func TestScaleStaysAccepted(t *testing.T) {
	env := fmt.Sprintf("env: [{name: LARGE, value: %s}]", strings.Repeat("x", 4<<10))
	service := func(scaling, more string) string {
		return strings.Replace(fmt.Sprintf(oneRole, scaling), "image: v1", "image: v1, "+env, 1) + more
	}
	for name, more := range map[string]string{"Plain": "", "Surge": "rollout: {maxSurge: 1}\n"} {
		t.Run(name, func(t *testing.T) {
			refused := fixture.Fatals(function.Start(t).Run(t, fixture.Request(t, fixture.Service(service("scaling: {minReplicas: 0, maxReplicas: 2000}", more)), "")))
			fit := 0
			if _, after, ok := strings.Cut(refused, "at most "); !ok {
				t.Fatalf("want how many fit, got %q", refused)
			} else if _, err := fmt.Sscan(after, &fit); err != nil {
				t.Fatal(err)
			}
			spec := service(fmt.Sprintf("scaling: {minReplicas: 0, maxReplicas: %d}", fit), more)
			w := newWorld(t, spec)
			w.apply()
			for _, n := range []int{fit, 0, fit / 2} {
				w.scale("w", n)
				if rsp := w.apply(); fixture.IsFatal(rsp) {
					t.Fatalf("%d of %d replicas: %s", n, fit, fixture.Fatals(rsp))
				}
			}
			w.edit(strings.Replace(spec, "image: v1", "image: v2", 1))
			for range 4 {
				if rsp := w.apply(); fixture.IsFatal(rsp) {
					t.Fatalf("%d of %d replicas get another image: %s", fit/2, fit, fixture.Fatals(rsp))
				}
			}
		})
	}
}

// TestScaleInFleetIsAccepted accepts a role that may have hundreds of replicas before any is placed.
func TestScaleInFleetIsAccepted(t *testing.T) {
	env := fmt.Sprintf("env: [{name: LARGE, value: %s}]", strings.Repeat("x", 4<<10))
	spec := strings.Replace(fmt.Sprintf(oneRole, "scaling: {maxReplicas: 250}"), "image: v1", "image: v1, "+env, 1) + "placement: {policy: Failover, clusterSelector: {}}\n"
	if got := fixture.Fatals(function.Start(t).Run(t, fixture.Request(t, fixture.Service(spec), ""))); got != "" {
		t.Errorf("got %q", got)
	}
}

// TestScaleTargetDeleted deletes the InferenceRole of a role whose scaling has just been taken away. That says of no replica
// that it may go.
func TestScaleTargetDeleted(t *testing.T) {
	w := newWorld(t, fmt.Sprintf(oneRole, "scaling: {maxReplicas: 8}"))
	w.apply()
	w.scale("w", 4)
	w.apply()
	w.apply()
	w.edit(strings.Replace(fmt.Sprintf(oneRole, "replicas: 4"), "replicas: 4, ", "", 1))
	delete(w.req.Observed.Resources, "inferencerole/w")
	if got := fixture.Fatals(w.fn.Run(t, w.req)); !strings.Contains(got, "the role runs 4 replicas") {
		t.Errorf("got %q", got)
	}
}

// TestScaleNumbers shows which numbers of an InferenceRole count, and onto what the service writes its own.
func TestScaleNumbers(t *testing.T) {
	cases := map[string]struct {
		reason string
		number *structpb.Value
		want   string
	}{
		"None":     {reason: "Somebody has removed it.", number: nil, want: "4 noted 4 onto 77, 4"},
		"Negative": {reason: "It is no number of replicas.", number: structpb.NewNumberValue(-1), want: "4 noted 4 onto 77, 4"},
		"TooLarge": {reason: "Nor is this.", number: structpb.NewNumberValue(1e9), want: "4 noted 4 onto 77, 4"},
		"Zero":     {reason: "This is one.", number: structpb.NewNumberValue(0), want: "left out onto , 0"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, fmt.Sprintf(oneRole, "scaling: {minReplicas: 0, maxReplicas: 8}"))
			w.apply()
			w.scale("w", 4)
			w.apply()
			w.apply()
			r := w.target("w")
			r.Resource = kube.With(r.GetResource(), structpb.NewStringValue("77"), "metadata", "resourceVersion")
			r.Resource = kube.With(r.GetResource(), structpb.NewNullValue(), "spec", "replicas")
			if tc.number != nil {
				r.Resource = kube.With(r.GetResource(), tc.number, "spec", "replicas")
			}
			rsp := w.fn.Run(t, w.req)
			version := kube.Lookup(rsp.GetDesired().GetResources()["inferencerole/w"].GetResource(), "metadata", "resourceVersion").GetStringValue()
			if got := fmt.Sprint(sent(rsp, "w"), " onto ", version, ", ", setsOf(rsp, "w")); got != tc.want {
				t.Errorf("%s want %s, got %s", tc.reason, tc.want, got)
			}
		})
	}
}

// TestScaleFromStaticKeeps starts with what the service wanted, although one replica is just being made anew, or none is
// wanted.
func TestScaleFromStaticKeeps(t *testing.T) {
	w := newWorld(t, fmt.Sprintf(oneRole, "replicas: 3"))
	w.apply()
	w.apply()
	last := w.req.GetObserved().GetResources()["leaderworkerset/w/2"]
	last.Resource = kube.With(last.GetResource(), structpb.NewStringValue("2026-01-01T00:00:00Z"), "metadata", "deletionTimestamp")
	w.edit(fmt.Sprintf(oneRole, "scaling: {maxReplicas: 8}"))
	if got := sent(w.apply(), "w"); got != "3 noted 3" {
		t.Errorf("while the last one is deleted: got %s", got)
	}

	w = newWorld(t, fmt.Sprintf(oneRole, "replicas: 0"))
	w.apply()
	w.apply()
	w.edit(fmt.Sprintf(oneRole, "scaling: {minReplicas: 0, maxReplicas: 8}"))
	rsp := w.apply()
	if got := fmt.Sprint(sent(rsp, "w"), ", ", setsOf(rsp, "w")); got != "0 noted 0, 0" {
		t.Errorf("from 0 replicas: got %s", got)
	}

	w = newWorld(t, fmt.Sprintf(oneRole, "replicas: 0"))
	w.apply()
	w.apply()
	w.edit(fmt.Sprintf(oneRole, "scaling: {minReplicas: 2, maxReplicas: 8}"))
	rsp = w.apply()
	if got := fmt.Sprint(sent(rsp, "w"), ", ", setsOf(rsp, "w")); got != "2 noted 2, 2" {
		t.Errorf("from 0 replicas to 2 at least: got %s", got)
	}
}

// TestScaleFromFleet leaves a fleet and gets scaling in one edit. The status still has the replicas of all clusters.
func TestScaleFromFleet(t *testing.T) {
	w := newWorld(t, fmt.Sprintf(oneRole, "replicas: 2"))
	w.apply()
	w.apply()
	composite := w.req.GetObserved().GetComposite()
	status := fixture.YAML(t, `{components: {w: {desiredReplicas: 6}}, clusters: [{name: east}, {name: west}, {name: north}]}`)
	composite.Resource = kube.With(composite.GetResource(), structpb.NewStructValue(status), "status")
	w.edit(fmt.Sprintf(oneRole, "scaling: {maxReplicas: 8}"))
	if got := sent(w.apply(), "w"); got != "2 noted 2" {
		t.Errorf("got %s", got)
	}
}

// TestScaleRatioOfNonsense gives a ratio limits that no schema allows. The call ends, and names them.
func TestScaleRatioOfNonsense(t *testing.T) {
	spec := fmt.Sprintf(pdRoles, "minReplicas: -9, maxReplicas: -5", "minReplicas: -2147483648, maxReplicas: 8") + "scaling: {ratio: {prefill: 1, decode: 1}}\n"
	got := fixture.Fatals(function.Start(t).Run(t, fixture.Request(t, fixture.Service(spec), "")))
	if !strings.Contains(got, "spec.roles[0].scaling.maxReplicas") || !strings.Contains(got, "spec.roles[1].scaling.minReplicas") {
		t.Errorf("got %q", got)
	}
}

// TestForgedTarget calls the function for an InferenceRole that no service has made. It copies what the spec
// says of itself, and composes nothing.
func TestForgedTarget(t *testing.T) {
	const xr = "{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceRole, metadata: {name: chat-w, namespace: team, uid: me}, spec: {%s}}"
	cases := map[string]struct {
		reason, spec, fatal, scaled string
		status                      map[string]any
	}{
		"Made": {
			reason: "The status is what the spec says of what runs.",
			spec:   "serviceName: chat, roleName: w, replicas: 9, current: {replicas: 2, selector: a=b}",
			status: map[string]any{"replicas": float64(2), "selector": "a=b"}, scaled: "TRUE AsRequested",
		},
		"Limited": {
			reason: "The condition is what the spec says of the limits.",
			spec:   "serviceName: chat, roleName: w, replicas: 9, current: {replicas: 2, limit: {reason: NoCapacity, message: m}}",
			status: map[string]any{"replicas": float64(2)}, scaled: "FALSE NoCapacity",
		},
		"Reason": {
			reason: "No condition can have any other reason.",
			spec:   "serviceName: chat, roleName: w, current: {limit: {reason: no reason}}", fatal: "spec.current.limit.reason: Unsupported value",
		},
		"Nothing": {reason: "It has to name its role.", spec: "", fatal: "spec.roleName: Required value"},
		"Negative": {
			reason: "Numbers are in the range of replicas.",
			spec:   "serviceName: chat, roleName: w, replicas: -1, current: {replicas: 100000}", fatal: "spec.current.replicas: Invalid value: 100000",
		},
		"Types": {reason: "Fields of a wrong type are named.", spec: "serviceName: chat, roleName: w, current: [x]", fatal: "spec.current"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			rsp := function.Start(t).Run(t, fixture.Request(t, fmt.Sprintf(xr, tc.spec), ""))
			if got := fixture.Fatals(rsp); (got == "") != (tc.fatal == "") || !strings.Contains(got, tc.fatal) {
				t.Fatalf("%s want %q, got %q", tc.reason, tc.fatal, got)
			}
			if n := len(rsp.GetDesired().GetResources()); n > 0 {
				t.Errorf("it composes %d objects", n)
			}
			if got := fixture.Condition(rsp, "Scaled"); tc.scaled != "" && got != tc.scaled {
				t.Errorf("%s want %s, got %s", tc.reason, tc.scaled, got)
			}
			status := kube.Lookup(rsp.GetDesired().GetComposite().GetResource(), "status").GetStructValue()
			if diff := cmp.Diff(tc.status, status.AsMap(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestScaleWithoutRoom proves that a scale-up asks the fleet for room. Without any, the service and the InferenceRole say so, and what
// runs serves. The InferenceRole does so only once the cluster has answered.
func TestScaleWithoutRoom(t *testing.T) {
	fn := function.Start(t)
	req := fixture.Request(t, fixture.Service(fmt.Sprintf(oneRole, "scaling: {minReplicas: 2, maxReplicas: 6}")+"placement: {policy: Failover, clusterSelector: {}}"), "")
	pending := ""
	scaled := func(n int, generation int) *fnv1.RunFunctionResponse {
		t.Helper()
		rsp := settle(t, fn, req, []string{strings.Replace(strings.Replace(memberOf("east", "None", generation), "group: 0, ", "", 1), "status: {", "status: {"+pending, 1)})
		if r := req.GetObserved().GetResources()["inferencerole/w"]; r != nil && n > 0 {
			r.Resource = kube.With(r.GetResource(), structpb.NewNumberValue(float64(n)), "spec", "replicas")
		}
		return rsp
	}
	scaled(0, 0)
	scaled(0, 1)
	scaled(4, 1) // The next call reads the number.
	scaled(4, 1)
	rsp := scaled(4, 1)
	runs := 0
	for k := range rsp.GetDesired().GetResources() {
		if _, is := key.Parse(k).ReplicaID(); is {
			runs++
		}
	}
	if runs != 2 {
		t.Errorf("it runs %d replicas, want the 2 that are reserved", runs)
	}
	got := []string{fixture.Condition(rsp, "Accepted"), fixture.Condition(rsp, "WorkloadsReady"), fixture.Condition(rsp, "Scaled")}
	if diff := cmp.Diff([]string{"TRUE Accepted", "FALSE WaitingForCapacity", "FALSE NoCapacity"}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if got := limited(rsp, "w"); got != "nothing" {
		t.Errorf("before the cluster has answered: the InferenceRole says %s", got)
	}
	pending = "pending: [{uid: me, namespace: team, name: chat, message: no room}], "
	if got := limited(scaled(4, 1), "w"); got != "NoCapacity: role w: 2 of 4 replicas wait for capacity in the fleet" {
		t.Errorf("the InferenceRole says %s", got)
	}
	delete(req.GetObserved().GetResources(), "inferencerole/w")
	if got := sent(scaled(0, 1), "w"); got != "4 noted 4" {
		t.Errorf("without its InferenceRole: want the 4 that it asked for, got %s", got)
	}
}
