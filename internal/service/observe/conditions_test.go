package observe

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

func typesOf(conditions []composite.Condition) []string {
	var all []string
	for _, c := range conditions {
		all = append(all, c.Type)
	}
	return all
}

// One that is no longer sent would stay as it was.
func TestConditionsAreAlwaysAllThere(t *testing.T) {
	for name, v := range map[string][]composite.Condition{
		"First":   newScene(t).evaluate().Conditions,
		"Ready":   running(newScene(t)).evaluate().Conditions,
		"Router":  newScene(t).routed(plan.Router{HasRoute: true}).evaluate().Conditions,
		"Refused": composite.Refused(ConditionTypes(), &composite.ProblemsError{Reason: composite.ReasonInvalidSpec, Errors: field.ErrorList{field.Required(nil, "roles")}}),
	} {
		if diff := cmp.Diff(ConditionTypes(), typesOf(v)); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", name, diff)
		}
		for _, c := range v {
			if c.Reason == "" || !slices.Contains([]composite.Status{composite.True, composite.False, composite.Unknown}, c.Status) {
				t.Errorf("%s: a condition needs a status and a reason: %+v", name, c)
			}
			if c.Status != composite.True && c.Message == "" {
				t.Errorf("%s: a condition that is not True needs a message: %+v", name, c)
			}
		}
	}
	for _, reserved := range []string{"Ready", "Synced", "Healthy", "UpToDate", "Responsive"} {
		if slices.Contains(ConditionTypes(), reserved) {
			t.Errorf("%s is Crossplane's", reserved)
		}
	}
}

func TestRefused(t *testing.T) {
	errs := field.ErrorList{
		field.Required(field.NewPath("spec", "roles"), "at least one"),
		field.Invalid(field.NewPath("spec", "replicas"), -1, "must not be negative"),
	}
	for _, c := range composite.Refused(ConditionTypes(), &composite.ProblemsError{Reason: composite.ReasonNameConflict, Errors: errs}) {
		want := composite.Condition{Type: c.Type, Status: composite.Unknown, Reason: composite.ReasonNotEvaluated, Message: "not evaluated while Accepted is False"}
		if c.Type == composite.Accepted {
			want = composite.Condition{Type: composite.Accepted, Status: composite.False, Reason: composite.ReasonNameConflict, Message: "spec.roles: Required value: at least one; spec.replicas: Invalid value: -1: must not be negative"}
		}
		if diff := cmp.Diff(want, c); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
	}
}

func TestJoin(t *testing.T) {
	many := make([]string, 100)
	for i := range many {
		many[i] = fmt.Sprintf("LeaderWorkerSet qwen-engine-%d: not created yet", i)
	}
	cases := map[string]struct {
		reason string
		items  []string
		want   string
	}{
		"Few":     {reason: "Few items are all there.", items: []string{"a", "b"}, want: "a; b"},
		"Same":    {reason: "An item is said once.", items: []string{"a", "a", "b", "a"}, want: "a; b"},
		"Many":    {reason: "What does not fit is counted.", items: many, want: strings.Join(many[:21], "; ") + "; and 79 more"},
		"TooLong": {reason: "A single item is cut.", items: []string{strings.Repeat("x", 2000)}, want: strings.Repeat("x", text.MaxMessage) + "..."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, text.Join(tc.items, text.MaxMessage)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestOneLine(t *testing.T) {
	if got, want := text.OneLine("a\n\tb  c"), "a b c"; got != want {
		t.Errorf("want %q, got %q", want, got)
	}
	if got := text.OneLine(strings.Repeat("é", 200)); got != strings.Repeat("é", 128)+"..." {
		t.Errorf("a message is cut between characters: %q", got)
	}
	if got := text.OneLine("a" + strings.Repeat("é", 200)); got != "a"+strings.Repeat("é", 127)+"..." {
		t.Errorf("a message is cut between characters: %q", got)
	}
}

func TestEvaluatePlaced(t *testing.T) {
	deselected := scheduling.Decision{State: v1alpha1.StateLeaving, Reason: scheduling.ReasonDeselected, Message: "the placement no longer names or selects it"}
	of := func(name string, state v1alpha1.PlacementState, reason, message string) scheduling.Decision {
		return scheduling.Decision{Name: name, State: state, Reason: reason, Message: message}
	}
	const since, gone = "out of reach since 2026-03-01T10:00:00Z", "there is no InferenceCluster east"
	named := deselected
	named.Name = "east"
	lost := of("east", v1alpha1.StatePlaced, scheduling.ReasonUnreachable, since)
	unknown := of("east", v1alpha1.StatePlaced, scheduling.ReasonUnknown, gone)
	cases := map[string]struct {
		reason string
		of     []scheduling.Decision
		want   string
	}{
		"Cluster":      {"A cluster has the name of the placement.", []scheduling.Decision{named}, "False NotSelected: east: the placement no longer names or selects it"},
		"ControlPlane": {"The cluster of the XR has no name there.", []scheduling.Decision{deselected}, "False NotSelected: the control plane's cluster: the placement no longer names or selects it"},
		"Unreachable": {
			"It has its reservation there, and stays for now.",
			[]scheduling.Decision{lost, of("west", v1alpha1.StateNotPlaced, scheduling.ReasonNotNeeded, "it runs in east")},
			"True Unreachable: east: " + since,
		},
		"AllUnreachable": {
			"Where it runs comes first, whatever the order of the placement is.",
			[]scheduling.Decision{of("west", v1alpha1.StateNotPlaced, scheduling.ReasonUnreachable, since), lost},
			"True Unreachable: east: " + since + "; west: " + since,
		},
		"OneOfTwo": {
			"A copy in another cluster does not hide that one is out of reach.",
			[]scheduling.Decision{of("west", v1alpha1.StatePlaced, "", ""), lost},
			"True Unreachable: east: " + since,
		},
		"ClusterUnknown": {
			"Nothing tells whether anything is reserved for it.",
			[]scheduling.Decision{unknown, of("west", v1alpha1.StateNotPlaced, scheduling.ReasonNotNeeded, "it runs in east")},
			"Unknown ClusterUnknown: east: " + gone,
		},
		"UnknownAndUnreachable": {
			"What is not known at all is worse.",
			[]scheduling.Decision{of("west", v1alpha1.StatePlaced, scheduling.ReasonUnreachable, since), unknown},
			"Unknown ClusterUnknown: east: " + gone + "; west: " + since,
		},
		"UnknownAndLeaving": {
			"That it moves is known.",
			[]scheduling.Decision{unknown, of("west", v1alpha1.StateLeaving, scheduling.ReasonDraining, "the cluster is drained")},
			"False Draining: west: the cluster is drained; east: " + gone,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := running(newScene(t))
			s.plan.Schedule = &scheduling.Result{}
			for _, d := range tc.of {
				s.plan.Schedule.Assignments = append(s.plan.Schedule.Assignments, scheduling.Assignment{Decision: d})
			}
			if diff := cmp.Diff(tc.want, conditionLine(s.evaluate(), IsPlaced)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestEvaluateSecrets(t *testing.T) {
	east, west := scheduling.Target{Cluster: "east", Namespace: namespace}, scheduling.Target{Cluster: "west", Namespace: "llm"}
	const copied = "True NotChecked: Secrets are not copied to other clusters. Pods need hf-token, registry in "
	cases := map[string]struct {
		reason  string
		secrets []string
		targets []scheduling.Target
		want    string
	}{
		"None":      {reason: "Pods need none.", targets: []scheduling.Target{east}, want: "True NoneElsewhere"},
		"Clusters":  {reason: "Each cluster has its namespace.", secrets: []string{"hf-token", "registry"}, targets: []scheduling.Target{east, west}, want: copied + "namespace " + namespace + " of cluster east, namespace llm of cluster west"},
		"NoCluster": {reason: "No cluster accepts the service yet, and the Secrets may be there before one does.", secrets: []string{"hf-token", "registry"}, want: copied + "namespace " + namespace + " of each cluster where they run"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, tc.targets...)
			s.plan.Secrets = tc.secrets
			if len(tc.targets) == 0 {
				s.plan.Clusters[0].NotStarted, s.plan.Clusters[0].Unschedulable = true, true
			}
			if diff := cmp.Diff(tc.want, conditionLine(s.evaluate(), SecretsInPlace)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestEvaluateKinds(t *testing.T) {
	s := newScene(t)
	if got, want := conditionLine(s.evaluate(), KindsAvailable), "True NotChecked: the Composition's input does not set missingKinds to Skip"; got != want {
		t.Errorf("unchecked: want %q, got %q", want, got)
	}
	if got := conditionLine(running(s).evaluate(), KindsAvailable); got != "True AllAvailable" {
		t.Errorf("what exists has a kind: got %q", got)
	}
	for _, k := range []string{lws0, lws1} {
		s.deferObject(plan.Deferred{Key: key.Parse(k), Reason: plan.DeferredForKind, Message: "the cluster does not have the kind LeaderWorkerSet of leaderworkerset.x-k8s.io/v1"})
	}
	v := s.evaluate()
	if got, want := conditionLine(v, KindsAvailable), "False KindMissing: the cluster does not have the kind LeaderWorkerSet of leaderworkerset.x-k8s.io/v1"; got != want || !v.Deferred {
		t.Errorf("missing: want %q, got %q, deferred %t", want, got, v.Deferred)
	}
}

// TestEvaluateKindsElsewhere proves which kinds another cluster is known to lack.
func TestEvaluateKindsElsewhere(t *testing.T) {
	east := scheduling.Target{Cluster: "east", Namespace: "models", ProviderConfig: v1alpha1.ProviderConfigRef{Kind: "ClusterProviderConfig", Name: "c"}}
	const missing = `observe failed: cannot get object: no matches for kind "LeaderWorkerSet" in version "leaderworkerset.x-k8s.io/v1"`
	cases := map[string]struct {
		reason, message, want string
	}{
		"Missing":     {"The provider says so.", missing, "False KindMissing: cluster east: the cluster does not have the kind LeaderWorkerSet of leaderworkerset.x-k8s.io/v1"},
		"OtherKind":   {"It says so of another kind.", `create failed: no matches for kind "Policy" in version "v1"`, "True AllAvailable"},
		"Unreachable": {"Nothing is known of it.", "connect failed: no route to host", "True AllAvailable"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, east)
			s.plan.SkipsMissingKinds = true
			for _, k := range []string{lws0, lws1} {
				s.seeRemote("cluster/east/"+k, nil, synced("False", tc.message))
			}
			v := s.evaluate()
			if diff := cmp.Diff(tc.want, conditionLine(v, KindsAvailable)); diff != "" || v.Deferred {
				t.Errorf("%s deferred %t\n-want, +got:\n%s", tc.reason, v.Deferred, diff)
			}
		})
	}
}

func TestEvaluateWarnings(t *testing.T) {
	s := running(newScene(t))
	s.plan.Warnings = []plan.Warning{{Path: "spec.roles[0].template", Message: "quote it"}}
	if got, want := conditionLine(s.evaluate(), NoWarnings), "False Suspicious: spec.roles[0].template: quote it"; got != want {
		t.Errorf("want %q, got %q", want, got)
	}
}
