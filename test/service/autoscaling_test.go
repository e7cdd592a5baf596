package service

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/test/fixture"
	"github.com/fusioninfer/function-inferenceservice/test/function"
)

const (
	byQueue = "metrics: [{type: External, external: {metric: {name: q}, target: {type: AverageValue, averageValue: 4}}}]"
	hpaOfW  = "horizontalpodautoscaler/w"
	kedaOfW = "scaledobject/w"
)

// autoscalers are the keys of the autoscalers of a response.
func autoscalers(rsp *fnv1.RunFunctionResponse) []string {
	return slices.DeleteFunc(fixture.Keys(rsp.GetDesired().GetResources()), func(k string) bool {
		return !strings.HasPrefix(k, "horizontalpodautoscaler/") && !strings.HasPrefix(k, "scaledobject/")
	})
}

// TestAutoscalerLives takes the autoscaler of a role through its life. None of it changes the number of replicas.
func TestAutoscalerLives(t *testing.T) {
	const allows = `{apiVersion: fn.fusioninfer.io/v1alpha1, kind: Input, allowedTriggers: ["*"]}`
	scaled := func(more string) string { return fmt.Sprintf(oneRole, "scaling: {maxReplicas: 5, "+more+"}") }
	w := newWorld(t, fmt.Sprintf(oneRole, "scaling: {maxReplicas: 5}"))
	w.req.Input = fixture.YAML(t, allows)
	check := func(when, wantScaled string, want ...string) {
		t.Helper()
		rsp := w.apply()
		got := []any{autoscalers(rsp), setsOf(rsp, "w"), sent(rsp, "w"), fixture.Condition(rsp, "Scaled")}
		if diff := cmp.Diff([]any{want, 3, "left out", wantScaled}, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: -want +got:\n%s", when, diff)
		}
	}
	w.apply()
	w.scale("w", 3)
	w.apply()
	check("Without", "TRUE AsRequested")
	w.edit(scaled(byQueue))
	check("Added", "FALSE NotCreated", hpaOfW)
	check("There", "TRUE AsRequested", hpaOfW)
	w.edit(scaled("triggers: [{type: cron, metadata: {}}]"))
	check("OfKEDA", "FALSE NotCreated", kedaOfW)
	w.edit(scaled(byQueue))
	check("Back", "FALSE NotCreated", hpaOfW)
	w.edit(fmt.Sprintf(oneRole, "scaling: {maxReplicas: 5}"))
	check("Removed", "TRUE AsRequested")
}

// TestAutoscalerWaits proves that no autoscaler is there before its scale target, and that one stays where
// somebody deletes the target.
func TestAutoscalerWaits(t *testing.T) {
	w := newWorld(t, fmt.Sprintf(oneRole, "scaling: {minReplicas: 2, maxReplicas: 5, "+byQueue+"}"))
	if got := autoscalers(w.apply()); len(got) > 0 {
		t.Errorf("before the InferenceRole is there: got %q", got)
	}
	if got := autoscalers(w.apply()); len(got) != 1 {
		t.Errorf("with the InferenceRole: got %q", got)
	}
	delete(w.req.Observed.Resources, "inferencerole/w")
	rsp := w.apply()
	if got := autoscalers(rsp); len(got) != 1 || sent(rsp, "w") != "2 noted 2" {
		t.Errorf("without the InferenceRole: got %q, and the InferenceRole has %s", got, sent(rsp, "w"))
	}
}

// TestAutoscalerOfAnother refuses to take over what somebody else has made.
func TestAutoscalerOfAnother(t *testing.T) {
	w := newWorld(t, fmt.Sprintf(oneRole, "scaling: {maxReplicas: 5, "+byQueue+"}"))
	w.apply()
	w.req.RequiredResources = map[string]*fnv1.Resources{"existing/" + hpaOfW: fixture.Resources(t, "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: chat-w, namespace: team}}")}
	const want = `spec.roles[0].scaling: Invalid value: "HorizontalPodAutoscaler chat-w": already exists and belongs to nobody; give this role another name, or delete what is there`
	if got := fixture.Fatals(w.fn.Run(t, w.req)); !strings.Contains(got, want) {
		t.Errorf("want %q, got %q", want, got)
	}
}

// TestStoppedAutoscaler says that a HorizontalPodAutoscaler does nothing for a role that KEDA had stopped.
func TestStoppedAutoscaler(t *testing.T) {
	w := newWorld(t, fmt.Sprintf(oneRole, "scaling: {maxReplicas: 5, "+byQueue+"}"))
	w.apply()
	w.apply()
	w.scale("w", 0)
	const want = "role w: its InferenceRole asks for 0, and minReplicas makes it 1. Its HorizontalPodAutoscaler does nothing until it asks for more: kubectl scale inferenceroles.fusioninfer.io chat-w --namespace=team --replicas=1"
	if got := conditionOf(w.apply(), "Scaled"); got != "Minimum: "+want {
		t.Errorf("want %q, got %q", want, got)
	}
	w.scale("w", 1)
	if got := fixture.Condition(w.apply(), "Scaled"); got != "TRUE AsRequested" {
		t.Errorf("once it is scaled: got %q", got)
	}
}

// TestScaledObjectMissing proves that ScaledObjects are left out until KEDA's definition exists, and that
// everything else is there meanwhile.
func TestScaledObjectMissing(t *testing.T) {
	const definition = "kind/scaledobjects.keda.sh"
	w := newWorld(t, fmt.Sprintf(oneRole, "scaling: {maxReplicas: 5, triggers: [{type: cron, metadata: {}}]}"))
	w.req.Input = fixture.YAML(t, `{apiVersion: fn.fusioninfer.io/v1alpha1, kind: Input, allowedTriggers: [cron]}`)
	w.apply()
	w.req.Input = fixture.YAML(t, `{apiVersion: fn.fusioninfer.io/v1alpha1, kind: Input, missingKinds: Skip, podObservationLimit: 0, allowedTriggers: [cron]}`)
	w.req.RequiredResources = map[string]*fnv1.Resources{definition: {}}
	rsp := w.fn.Run(t, w.req)
	got := []any{autoscalers(rsp), setsOf(rsp, "w"), fixture.Condition(rsp, "KindsAvailable"), fixture.Condition(rsp, "Scaled")}
	if diff := cmp.Diff([]any{[]string{}, 1, "FALSE KindMissing", "FALSE KindMissing"}, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("without the kind: -want +got:\n%s", diff)
	}
	w.req.RequiredResources[definition] = fixture.Definition(t, "v1alpha1", "")
	if got := autoscalers(w.fn.Run(t, w.req)); !slices.Equal(got, []string{kedaOfW}) {
		t.Errorf("with the kind: got %q", got)
	}
}

// TestAutoscalerCounts refuses a service at once whose answer only its autoscalers make too large, and not when
// they follow.
func TestAutoscalerCounts(t *testing.T) {
	fn := function.Start(t)
	const input = `{apiVersion: fn.fusioninfer.io/v1alpha1, kind: Input, allowedTriggers: ["*"]}`
	role := func(i int, more string) string {
		return fmt.Sprintf("- {name: r%d, componentType: worker, scaling: {maxReplicas: 1%s}, template: {spec: {containers: [{name: engine, image: v1, command: [vllm, serve, /m], env: [{name: X, value: %s}]}]}}}\n", i, more, strings.Repeat("x", 100<<10))
	}
	large := fmt.Sprintf(", triggers: [{type: cron, metadata: {x: %s}}]", strings.Repeat("x", 40<<10))
	for name, tc := range map[string]struct {
		reason, more string
		refused      bool
	}{
		"Without": {reason: "The LeaderWorkerSets alone fit."},
		"With":    {reason: "The autoscalers do not fit beside them.", more: large, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			spec := &strings.Builder{}
			spec.WriteString("roles:\n")
			for i := range 32 {
				spec.WriteString(role(i, tc.more))
			}
			req := fixture.Request(t, fixture.Service(spec.String()), input)
			rsp := fn.Run(t, req)
			if got := fixture.Fatals(rsp); (got != "") != tc.refused || tc.refused && !strings.Contains(got, "Crossplane takes") {
				t.Errorf("%s got %.300q", tc.reason, got)
			}
			for key, r := range rsp.GetDesired().GetResources() {
				if kube.Lookup(r.GetResource(), "kind").GetStringValue() == "ScaledObject" {
					t.Errorf("%s is there already", key)
				}
			}
		})
	}
}

// TestAutoscalerStays proves that an object is the same whatever others write into it.
func TestAutoscalerStays(t *testing.T) {
	w := newWorld(t, fmt.Sprintf(oneRole, "scaling: {maxReplicas: 5, "+byQueue+"}"))
	w.apply()
	first := w.apply().GetDesired().GetResources()[hpaOfW].GetResource()
	r := w.req.GetObserved().GetResources()[hpaOfW]
	r.Resource = kube.With(r.GetResource(), structpb.NewNumberValue(4), "status", "desiredReplicas")
	w.scale("w", 4)
	second := w.apply().GetDesired().GetResources()[hpaOfW].GetResource()
	if diff := cmp.Diff(first.AsMap(), second.AsMap()); diff != "" {
		t.Errorf("-first +second:\n%s", diff)
	}
}

// TestAutoscalerKeepsHeld proves that an autoscaler stops no replicas of a rollout that is paused, or that does not get on. They would come
// back with the newest template.
func TestAutoscalerKeepsHeld(t *testing.T) {
	spec := func(image, rollout string) string {
		return strings.ReplaceAll(fmt.Sprintf(oneRole, "scaling: {maxReplicas: 9, "+byQueue+"}"), "v1", image) + rollout
	}
	cases := map[string]struct {
		reason, spec string
		crashes      bool
		want         float64
	}{
		"Done":      {reason: "All have the newest template.", spec: spec("v1", ""), want: 1},
		"Paused":    {reason: "None is released.", spec: spec("v2", "rollout: {paused: true}\n"), want: 4},
		"Partition": {reason: "Two are not released.", spec: spec("v2", "rollout: {partition: 2}\n"), want: 2},
		"Crashes":   {reason: "Three wait for the last one.", spec: spec("v2", ""), crashes: true, want: 3},
		"GoesOn":    {reason: "All have the newest template in the end.", spec: spec("v2", ""), want: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, spec("v1", ""))
			w.apply()
			w.apply()
			w.scale("w", 4)
			w.apply()
			w.edit(tc.spec)
			var rsp *fnv1.RunFunctionResponse
			for range 12 {
				if rsp = w.apply(); tc.crashes {
					w.crash("leaderworkerset/w/3")
				}
			}
			if got := kube.Lookup(rsp.GetDesired().GetResources()[hpaOfW].GetResource(), "spec", "minReplicas").GetNumberValue(); got != tc.want {
				t.Errorf("%s minReplicas is %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}
