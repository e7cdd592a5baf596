package cli

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/service/observe"
)

// clocked is a function of the time and the request.
type clocked struct {
	now time.Time
	fn  func(now time.Time, req *fnv1.RunFunctionRequest) map[string]any
}

// At returns the function at a time.
func (c clocked) At(t time.Time) Runner { c.now = t; return c }

// RunFunction answers with a status.
func (c clocked) RunFunction(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	status := c.fn(c.now, req)
	if why, refused := status["refused"].(string); refused {
		return &fnv1.RunFunctionResponse{Results: []*fnv1.Result{{Severity: fnv1.Severity_SEVERITY_FATAL, Message: why}}}, nil
	}
	xr, err := structpb.NewStruct(map[string]any{"status": status})
	return &fnv1.RunFunctionResponse{Desired: &fnv1.State{Composite: &fnv1.Resource{Resource: xr}}}, err
}

const (
	east = `apiVersion: fusioninfer.io/v1alpha1
kind: InferenceCluster
metadata: {name: east}
spec: {providerConfigRef: {name: east}, pools: [{name: a, nodeCount: 1, allocatable: {cpu: 1}}]}
`
	planned = east + `---
apiVersion: fusioninfer.io/v1alpha1
kind: InferenceService
metadata: {name: chat, namespace: team}
spec: {placement: {clusterSelector: {}, failoverAfterSeconds: 7200}}
status: {clusters: [{name: east, state: Placed}]}
`
	nodes = `apiVersion: fusioninfer.io/v1alpha1
kind: InferenceCluster
metadata: {name: west}
spec: {providerConfigRef: {name: west}, pools: [{name: a, nodeSelector: {a: b}}]}
status:
  conditions: [{type: NodesObserved, status: Unknown, reason: NotObserved}]
  pools: [{name: a, nodeCount: 0, nodeSelector: {a: b}}]
  reservations: [{uid: gone, namespace: team, name: other}]
`
	scaledService = `---
apiVersion: fusioninfer.io/v1alpha1
kind: InferenceService
metadata: {name: scaled, namespace: team}
spec:
  placement: {clusterSelector: {}}
  roles:
  - {name: router, componentType: router}
  - {name: decode, componentType: decoder, scaling: {maxReplicas: 4}}
  - {name: prefill, componentType: prefiller, scaling: {maxReplicas: 4}}
status: {clusters: [{name: east, state: Placed}]}
`
)

// services returns services of a fleet with some names.
func services(names ...string) string {
	var b strings.Builder
	for _, name := range names {
		b.WriteString("---\napiVersion: fusioninfer.io/v1alpha1\nkind: InferenceService\nmetadata: {name: " + name + ", namespace: team}\nspec:\n  placement: {clusterSelector: {}}\n")
	}
	return b.String()
}

// pausedService returns a service of a fleet with some annotations.
func pausedService(name, annotations string) string {
	return "---\napiVersion: fusioninfer.io/v1alpha1\nkind: InferenceService\nmetadata: {name: " + name + ", namespace: team, annotations: {" + annotations + "}}\n" +
		"spec: {placement: {clusterSelector: {}, failoverAfterSeconds: 7200}}\nstatus: {clusters: [{name: east, state: Placed}]}\n"
}

// rolesService returns a service of a fleet with some roles and a router.
func rolesService(roles ...string) string {
	var b strings.Builder
	b.WriteString("---\napiVersion: fusioninfer.io/v1alpha1\nkind: InferenceService\nmetadata: {name: roles, namespace: team}\nspec:\n  placement: {clusterSelector: {}}\n  roles:\n  - {name: router, componentType: router}\n")
	for _, role := range roles {
		b.WriteString("  - {name: " + role + ", componentType: worker, replicas: 2}\n")
	}
	b.WriteString("status: {clusters: [{name: east, state: Placed}]}\n")
	return b.String()
}

// countsRoles places every service in the cluster east, with all replicas of its roles.
func countsRoles(now time.Time, req *fnv1.RunFunctionRequest) map[string]any {
	status, components := stays(now, req), map[string]any{}
	spec := req.GetObserved().GetComposite().GetResource().GetFields()["spec"].GetStructValue()
	for _, role := range spec.GetFields()["roles"].GetListValue().GetValues() {
		components[role.GetStructValue().GetFields()["name"].GetStringValue()] = map[string]any{"desiredReplicas": 2}
	}
	status["components"], status["conditions"] = components, []any{map[string]any{"type": observe.IsPlaced, "status": "True", "reason": "Placed"}}
	return status
}

// stays places every service in the cluster east.
func stays(time.Time, *fnv1.RunFunctionRequest) map[string]any {
	return map[string]any{"clusters": []any{map[string]any{"name": "east", "state": "Placed"}}}
}

//nolint:dupword // A table has the cluster before and after.
func TestPlan(t *testing.T) {
	counter := 0
	type want struct {
		out, err string
		code     int
	}
	cases := map[string]struct {
		reason string
		fn     func(time.Time, *fnv1.RunFunctionRequest) map[string]any
		files  map[string]string
		plan   Plan
		want   want
	}{
		"NoChange": {
			reason: "A plan is about a change.",
			fn:     stays,
			want:   want{err: "error: nothing to plan: say what changes with --change, --drain, --abandon, --lose or --delete\n", code: 1},
		},
		"UnknownCluster": {
			reason: "An error names what the fleet has.",
			fn:     stays,
			plan:   Plan{Lose: []string{"eats"}},
			want:   want{err: "error: --lose eats: the fleet has no InferenceCluster of that name. It has: east\n", code: 1},
		},
		"MisspeltCluster": {
			reason: "An error asks for what is meant.",
			fn:     stays,
			plan:   Plan{Drain: []string{"eastt"}},
			want:   want{err: "error: --drain eastt: the fleet has no InferenceCluster of that name. Did you mean east? It has: east\n", code: 1},
		},
		"MisspeltName": {
			reason: "So does one of a service.",
			fn:     stays,
			plan:   Plan{Delete: []string{"team/chta"}},
			want:   want{err: "error: --delete team/chta: the fleet has no InferenceCluster, and no NAMESPACE/NAME of an InferenceService, like that. Did you mean team/chat? It has: east, team/chat\n", code: 1},
		},
		"UnknownName": {
			reason: "A service is deleted by namespace and name.",
			fn:     stays,
			plan:   Plan{Delete: []string{"chat"}},
			want:   want{err: "error: --delete chat: the fleet has no InferenceCluster, and no NAMESPACE/NAME of an InferenceService, like that. Did you mean team/chat? It has: east, team/chat\n", code: 1},
		},
		"Twice": {
			reason: "Two versions of one object contradict each other.",
			fn:     stays,
			files:  map[string]string{"change.yaml": planned + "---\n" + planned},
			plan:   Plan{Change: []string{"change.yaml"}},
			want:   want{err: "error: cannot use --change: InferenceCluster east is there twice in \"change.yaml\"\n", code: 1},
		},
		"Claim": {
			reason: "What a claim composes belongs to its composite resource, which other capacity requests name.",
			fn:     stays,
			files:  map[string]string{"change.yaml": "apiVersion: fusioninfer.io/v1alpha1\nkind: InferenceService\nmetadata: {name: chat, namespace: team}\nspec: {resourceRef: {apiVersion: fusioninfer.io/v1alpha1, kind: XInferenceService, name: chat-x}}\n"},
			plan:   Plan{Change: []string{"change.yaml"}},
			want:   want{err: "error: cannot use --change: InferenceService team/chat is a claim. Use its composite resource, of kind XInferenceService\n", code: 1},
		},
		"OtherKind": {
			reason: "A change that the plan would not show is refused.",
			fn:     stays,
			files:  map[string]string{"change.yaml": "{apiVersion: apiextensions.crossplane.io/v1, kind: Composition, metadata: {name: c}}"},
			plan:   Plan{Change: []string{"change.yaml"}},
			want:   want{err: "error: cannot use --change: Composition c is of a kind that a plan does not change. It takes CustomResourceDefinition, InferenceCluster, InferenceRole, InferenceService, ModelCache, Namespace, XInferenceService, XModelCache. Run one plan with --composition of before and one with that of after\n", code: 1},
		},
		"OtherVersion": {
			reason: "So is one in another version.",
			fn:     stays,
			files:  map[string]string{"change.yaml": "{apiVersion: fusioninfer.io/v1, kind: InferenceCluster, metadata: {name: east}}"},
			plan:   Plan{Change: []string{"change.yaml"}},
			want:   want{err: "error: cannot use --change: InferenceCluster east is of version fusioninfer.io/v1, and must be of fusioninfer.io/v1alpha1\n", code: 1},
		},
		"Read": {
			reason: "Namespaces are read, and definitions of kinds.",
			fn:     stays,
			files:  map[string]string{"change.yaml": "{apiVersion: v1, kind: Namespace, metadata: {name: team}}\n---\n{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a.b}}"},
			plan:   Plan{Change: []string{"change.yaml"}},
			want: want{out: `Plan: 1 service stays as it is.

     CLUSTER  CHANGE  FREE BEFORE  FREE AFTER
     east     -       -            -
`},
		},
		"NotRead": {
			reason: "A directory may have objects of other kinds beside the services.",
			fn:     stays,
			files:  map[string]string{"change.yaml": "{apiVersion: v1, kind: Namespace, metadata: {name: team}}\n---\n{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: team}}"},
			plan:   Plan{Change: []string{"change.yaml"}},
			want: want{
				out: `Plan: 1 service stays as it is.

     CLUSTER  CHANGE  FREE BEFORE  FREE AFTER
     east     -       -            -
`,
				err: "warning: --change: Secret team/s is not read, because a plan does not change its kind\n",
			},
		},
		"VersionInFleet": {
			reason: "What is not planned is said.",
			fn:     stays,
			files:  map[string]string{"more.yaml": "{apiVersion: fusioninfer.io/v1beta1, kind: InferenceService, metadata: {name: b, namespace: team}}"},
			plan:   Plan{Fleet: []string{"fleet.yaml", "more.yaml"}, Drain: []string{"east"}},
			want: want{
				out: `Plan: 1 service stays as it is.

     CLUSTER  CHANGE            FREE BEFORE  FREE AFTER
  ~  east     stopPolicy Drain  -            -
`,
				err: "warning: fleet: InferenceService team/b: unknown version fusioninfer.io/v1beta1, so it counts as missing: write it as fusioninfer.io/v1alpha1\n",
			},
		},
		"NeverSettles": {
			reason: "The rounds are bounded, and the error names what still changes.",
			fn: func(time.Time, *fnv1.RunFunctionRequest) map[string]any {
				counter++
				return map[string]any{"summary": strconv.Itoa(counter)}
			},
			plan: Plan{Lose: []string{"east"}},
			want: want{
				err:  "error: the fleet does not settle: after 300 rounds, these still change: InferenceService team/chat, InferenceCluster east. That is a bug of the function, or a fleet that no real one is like: please report it with the files\n",
				code: 1,
			},
		},
		"WarnedOfTheFleet": {
			reason: "What the fleet lacks may be why it does not settle.",
			fn: func(time.Time, *fnv1.RunFunctionRequest) map[string]any {
				counter++
				return map[string]any{"summary": strconv.Itoa(counter)}
			},
			files: map[string]string{"fleet.yaml": nodes},
			plan:  Plan{Lose: []string{"west"}},
			want: want{
				err: "warning: west: the nodes of pool a are observed, and its status does not have them, so nothing is placed there. Write nodeCount and allocatable into the file\n" +
					"error: the fleet does not settle: after 300 rounds, these still change: InferenceCluster west. That is a bug of the function, or a fleet that no real one is like: please report it with the files\n",
				code: 1,
			},
		},
		"WarnedOfTheChange": {
			reason: "So it is with what the change lacks.",
			fn: func(now time.Time, req *fnv1.RunFunctionRequest) map[string]any {
				if req.GetObserved().GetComposite().GetResource().GetFields()["metadata"].GetStructValue().GetFields()["name"].GetStringValue() == "new" {
					return map[string]any{"refused": "spec.a: wrong"}
				}
				return stays(now, req)
			},
			files: map[string]string{"change.yaml": nodes + services("new")},
			plan:  Plan{Change: []string{"change.yaml"}},
			want: want{
				err: "warning: west: the nodes of pool a are observed, and its status does not have them, so nothing is placed there. Write nodeCount and allocatable into the file\n" +
					"error: --change: InferenceService team/new is refused: spec.a: wrong\n",
				code: 1,
			},
		},
		"TimePasses": {
			reason: "The simulated time goes beyond the longest failover, and times alone are no change.",
			fn: func(now time.Time, _ *fnv1.RunFunctionRequest) map[string]any {
				state := "Placed"
				if now.Sub(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)) > 6*time.Hour {
					state = "Leaving"
				}
				return map[string]any{"now": stamp(now), "clusters": []any{map[string]any{"name": "east", "state": state}}}
			},
			plan: Plan{Lose: []string{"east"}, DetailedExitcode: true},
			want: want{
				out: `Plan: 1 service cannot be placed completely.

     SERVICE    BEFORE  AFTER                WHY
  !  team/chat  east    east (out of reach)

     CLUSTER  CHANGE        FREE BEFORE  FREE AFTER
  ~  east     out of reach  -            -
`,
				code: 3,
			},
		},
		"Strict": {
			reason: "With --strict an unknown field of a change is an error.",
			fn:     stays,
			files:  map[string]string{"new.yaml": "{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceService, metadata: {name: new, namespace: team}, spec: {modl: {}}}"},
			plan:   Plan{Change: []string{"new.yaml"}, Strict: true},
			want: want{
				err: "warning: --change: InferenceService team/new: unknown field spec.modl (did you mean spec.model?): kubectl apply refuses it, other clients drop it\n" +
					"warning: InferenceService team/new has no placement, so the plan does not show what its change does: render shows that\n" +
					"error: --strict refuses the files because of the unknown fields above\n",
				code: 1,
			},
		},
		"Nulls": {
			reason: "A null of a change is said to have no effect.",
			fn:     stays,
			files:  map[string]string{"new.yaml": "{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceService, metadata: {name: new, namespace: team}, spec: {modl: {}, replicas: null}}"},
			plan:   Plan{Change: []string{"new.yaml"}, Strict: true},
			want: want{
				err: "warning: --change: InferenceService team/new: unknown field spec.modl (did you mean spec.model?): kubectl apply refuses it, other clients drop it\n" +
					"warning: --change: InferenceService team/new: spec.replicas is null: an API server removes it, as if it were not there\n" +
					"warning: InferenceService team/new has no placement, so the plan does not show what its change does: render shows that\n" +
					"error: --strict refuses the files because of the unknown fields above\n",
				code: 1,
			},
		},
		"Refused": {
			reason: "A service that the function refuses holds nothing here, so everything else may differ from the fleet.",
			fn: func(now time.Time, req *fnv1.RunFunctionRequest) map[string]any {
				if req.GetObserved().GetComposite().GetResource().GetFields()["kind"].GetStringValue() == "InferenceService" {
					return map[string]any{"refused": "spec.a: wrong; spec.b: wrong"}
				}
				return stays(now, req)
			},
			files: map[string]string{"in.yaml": inputDoc},
			plan:  Plan{Input: []string{"in.yaml"}, Drain: []string{"east"}, DetailedExitcode: true},
			want: want{
				out: `Plan: 1 service is refused.

     SERVICE    BEFORE  AFTER  WHY
  !  team/chat  east    east   refused: spec.a: wrong
                               spec.b: wrong

     CLUSTER  CHANGE            FREE BEFORE  FREE AFTER
  ~  east     stopPolicy Drain  -            -
`,
				code: 1,
				err:  "warning: InferenceService team/chat is refused with this Input, so it neither moves nor takes capacity here: spec.a: wrong; spec.b: wrong\n",
			},
		},
		"RefusedAlike": {
			reason: "A mistake in the Input refuses each service. It is told once, with some of their names.",
			fn: func(now time.Time, req *fnv1.RunFunctionRequest) map[string]any {
				fields := req.GetObserved().GetComposite().GetResource().GetFields()
				switch name := fields["metadata"].GetStructValue().GetFields()["name"].GetStringValue(); {
				case fields["kind"].GetStringValue() != "InferenceService":
					return stays(now, req)
				case name == "other":
					return map[string]any{"refused": "spec.a: wrong"}
				}
				return map[string]any{"refused": "input.a: wrong; input.b: wrong"}
			},
			files: map[string]string{"in.yaml": inputDoc, "fleet.yaml": planned + services("other", "s1", "s2", "s3")},
			plan:  Plan{Input: []string{"in.yaml"}, Drain: []string{"east"}},
			want: want{
				out: `Plan: 5 services are refused.

     SERVICE     BEFORE  AFTER  WHY
  !  team/chat   east    east   refused: input.a: wrong
                                input.b: wrong
  !  team/other  -       -      refused: spec.a: wrong
  !  team/s1     -       -      refused as team/chat is
  !  team/s2     -       -      refused as team/chat is
  !  team/s3     -       -      refused as team/chat is

     CLUSTER  CHANGE            FREE BEFORE  FREE AFTER
  ~  east     stopPolicy Drain  -            -
`,
				err: "warning: InferenceServices team/chat, team/s1, team/s2, and 1 more are refused with this Input, so they neither move nor take capacity here: input.a: wrong; input.b: wrong\n" +
					"warning: InferenceService team/other is refused with this Input, so it neither moves nor takes capacity here: spec.a: wrong\n",
			},
		},
		"ClustersRefusedAlike": {
			reason: "The same goes for clusters.",
			fn: func(now time.Time, req *fnv1.RunFunctionRequest) map[string]any {
				if req.GetObserved().GetComposite().GetResource().GetFields()["kind"].GetStringValue() == "InferenceCluster" {
					return map[string]any{"refused": "input.a: wrong"}
				}
				return stays(now, req)
			},
			files: map[string]string{"more.yaml": strings.ReplaceAll(east, "east", "west")},
			plan:  Plan{Fleet: []string{"fleet.yaml", "more.yaml"}, Drain: []string{"east"}},
			want: want{
				out: `Plan: 1 service stays as it is.

     CLUSTER  CHANGE                     FREE BEFORE  FREE AFTER
  !  east     stopPolicy Drain, refused  -            -
  !  west     refused                    -            -
`,
				err: "warning: InferenceClusters east, west are refused, so nothing runs or is placed in them here, whatever their status says: input.a: wrong\n",
			},
		},
		"ControlCharacters": {
			reason: "What strangers have written does not control the terminal.",
			fn: func(now time.Time, req *fnv1.RunFunctionRequest) map[string]any {
				if req.GetObserved().GetComposite().GetResource().GetFields()["kind"].GetStringValue() == "InferenceService" {
					return map[string]any{"refused": "spec.a: \x1b[2Jwrong\u009b"}
				}
				return stays(now, req)
			},
			plan: Plan{Drain: []string{"east"}},
			want: want{
				out: `Plan: 1 service is refused.

     SERVICE    BEFORE  AFTER  WHY
  !  team/chat  east    east   refused: spec.a: �[2Jwrong�

     CLUSTER  CHANGE            FREE BEFORE  FREE AFTER
  ~  east     stopPolicy Drain  -            -
`,
				err: "warning: InferenceService team/chat is refused without an Input (pass yours with --input), so it neither moves nor takes capacity here: spec.a: �[2Jwrong�\n",
			},
		},
		"ControlCharactersInAnError": {
			reason: "Nor do they in an error.",
			fn: func(time.Time, *fnv1.RunFunctionRequest) map[string]any {
				return map[string]any{"refused": "spec.a: \x1b[2Jwrong"}
			},
			files: map[string]string{"change.yaml": "{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceService, metadata: {name: new}, spec: {roles: []}}"},
			plan:  Plan{Change: []string{"change.yaml"}},
			want: want{
				err: "warning: InferenceCluster east is refused, so nothing runs or is placed there here, whatever its status says: spec.a: �[2Jwrong\n" +
					"warning: InferenceService team/chat is refused without an Input (pass yours with --input), so it neither moves nor takes capacity here: spec.a: �[2Jwrong\n" +
					"warning: InferenceService default/new has no placement, so the plan does not show what its change does: render shows that\n" +
					"error: --change: InferenceService default/new is refused: spec.a: �[2Jwrong\n",
				code: 1,
			},
		},
		"RefusedBeforeItRuns": {
			reason: "A refused service runs nowhere, and is not taken for one that waits for capacity. Without the flag, a plan is a plan.",
			fn: func(now time.Time, req *fnv1.RunFunctionRequest) map[string]any {
				if req.GetObserved().GetComposite().GetResource().GetFields()["metadata"].GetStructValue().GetFields()["name"].GetStringValue() == "waits" {
					return map[string]any{"refused": "spec.a: wrong"}
				}
				return stays(now, req)
			},
			files: map[string]string{"more.yaml": "{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceService, metadata: {name: waits, namespace: team}, spec: {placement: {clusterSelector: {}}}}"},
			plan:  Plan{Fleet: []string{"fleet.yaml", "more.yaml"}, Drain: []string{"east"}},
			want: want{
				out: `Plan: 1 service is refused, 1 stays as it is.

     SERVICE     BEFORE  AFTER  WHY
  !  team/waits  -       -      refused: spec.a: wrong

     CLUSTER  CHANGE            FREE BEFORE  FREE AFTER
  ~  east     stopPolicy Drain  -            -
`,
				err: "warning: InferenceService team/waits is refused without an Input (pass yours with --input), so it neither moves nor takes capacity here: spec.a: wrong\n",
			},
		},
		"ClusterRefused": {
			reason: "Nobody knows what becomes of the services in a cluster that the function refuses.",
			fn: func(now time.Time, req *fnv1.RunFunctionRequest) map[string]any {
				if req.GetObserved().GetComposite().GetResource().GetFields()["kind"].GetStringValue() == "InferenceCluster" {
					return map[string]any{"refused": "spec.a: wrong"}
				}
				return stays(now, req)
			},
			plan: Plan{Drain: []string{"east"}, DetailedExitcode: true},
			want: want{
				out: `Plan: 1 service stays as it is.

     CLUSTER  CHANGE                     FREE BEFORE  FREE AFTER
  !  east     stopPolicy Drain, refused  -            -
`,
				err:  "warning: InferenceCluster east is refused, so nothing runs or is placed there here, whatever its status says: spec.a: wrong\n",
				code: 1,
			},
		},
		"InputOfChange": {
			reason: "An Input without a name is told where it belongs.",
			fn:     stays,
			files:  map[string]string{"change.yaml": "{apiVersion: fn.fusioninfer.io/v1alpha1, kind: Input}"},
			plan:   Plan{Change: []string{"change.yaml"}},
			want:   want{err: "error: cannot use the Input in \"change.yaml\" of --change: pass it with --input\n", code: 1},
		},
		"InputInDirectory": {
			reason: "Of a directory, the error names the file to take out.",
			fn:     stays,
			files:  map[string]string{"fleet/a.yaml": planned, "fleet/settings.yaml": "{apiVersion: fn.fusioninfer.io/v1alpha1, kind: ClusterInput}"},
			plan:   Plan{Fleet: []string{"fleet"}, Drain: []string{"east"}},
			want:   want{err: "error: cannot use the ClusterInput in \"fleet/settings.yaml\" of fleet: pass it with --input\n", code: 1},
		},
		"CompositionOfFleet": {
			reason: "A Composition there would count for nothing.",
			fn:     stays,
			files:  map[string]string{"fleet/a.yaml": planned, "fleet/c.yaml": compositionDoc},
			plan:   Plan{Fleet: []string{"fleet"}, Drain: []string{"east"}},
			want:   want{err: "error: cannot use the Composition in \"fleet/c.yaml\" of fleet: pass it with --composition\n", code: 1},
		},
		"InputOfModels": {
			reason: "An Input of any kind is one.",
			fn:     stays,
			files:  map[string]string{"fleet/a.yaml": planned, "fleet/in.yaml": "{apiVersion: fn.fusioninfer.io/v1alpha1, kind: ModelInput, metadata: {name: a}}"},
			plan:   Plan{Fleet: []string{"fleet"}, Drain: []string{"east"}},
			want:   want{err: "error: cannot use the ModelInput in \"fleet/in.yaml\" of fleet: pass it with --input\n", code: 1},
		},
		"CompositionOfOthers": {
			reason: "Compositions of other kinds say nothing of the fleet, and may be in its directory.",
			fn:     stays,
			files:  map[string]string{"fleet/a.yaml": planned, "fleet/c.yaml": strings.Replace(compositionDoc, "fusioninfer.io/v1alpha1, kind: InferenceService", "example.org/v1, kind: InferenceService", 1)},
			plan:   Plan{Fleet: []string{"fleet"}, Drain: []string{"east"}},
			want: want{out: `Plan: 1 service stays as it is.

     CLUSTER  CHANGE            FREE BEFORE  FREE AFTER
  ~  east     stopPolicy Drain  -            -
`},
		},
		"TwiceInDirectory": {
			reason: "So does one about an object that two files have.",
			fn:     stays,
			files:  map[string]string{"fleet/a.yaml": planned, "fleet/b.yaml": east},
			plan:   Plan{Fleet: []string{"fleet"}, Drain: []string{"east"}},
			want:   want{err: "error: cannot use fleet: InferenceCluster east is there twice, in \"fleet/a.yaml\" and in \"fleet/b.yaml\"\n", code: 1},
		},
		"NamelessInDirectory": {
			reason: "Nor would anybody find an object without a name.",
			fn:     stays,
			files:  map[string]string{"fleet/a.yaml": planned, "fleet/b.yaml": strings.Replace(east, "name: east", "labels: {}", 1)},
			plan:   Plan{Fleet: []string{"fleet"}, Drain: []string{"east"}},
			want:   want{err: "error: cannot use an object of kind InferenceCluster in \"fleet/b.yaml\" of fleet: it has no metadata.name\n", code: 1},
		},
		"ChangeRefused": {
			reason: "A change that the function refuses is no plan.",
			fn: func(_ time.Time, req *fnv1.RunFunctionRequest) map[string]any {
				if req.GetObserved().GetComposite().GetResource().GetFields()["metadata"].GetStructValue().GetFields()["name"].GetStringValue() == "new" {
					return map[string]any{"refused": "spec.a: wrong; spec.b: wrong"}
				}
				return map[string]any{}
			},
			files: map[string]string{"change.yaml": "{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceService, metadata: {name: new}, spec: {roles: []}}"},
			plan:  Plan{Change: []string{"change.yaml"}},
			want: want{
				err: "warning: team/chat runs in east by its status, and would not stay there even without the change\n" +
					"warning: InferenceService default/new has no placement, so the plan does not show what its change does: render shows that\n" +
					"error: --change: InferenceService default/new is refused: spec.a: wrong\n  spec.b: wrong\n",
				code: 1,
			},
		},
		"ChangesRefused": {
			reason: "All problems of a change are told at once: unknown fields, what the fleet has already, and each refusal.",
			fn: func(_ time.Time, req *fnv1.RunFunctionRequest) map[string]any {
				switch req.GetObserved().GetComposite().GetResource().GetFields()["metadata"].GetStructValue().GetFields()["name"].GetStringValue() {
				case "one", "two":
					return map[string]any{"refused": "spec.a: wrong; spec.b: wrong"}
				case "chat", "three":
					return map[string]any{"refused": "spec.c: wrong"}
				}
				return map[string]any{}
			},
			files: map[string]string{"change.yaml": services("one", "two", "three") + "  modl: {}\n"},
			plan:  Plan{Change: []string{"change.yaml"}, Strict: true},
			want: want{
				err: "warning: --change: InferenceService team/three: unknown field spec.modl (did you mean spec.model?): kubectl apply refuses it, other clients drop it\n" +
					"warning: InferenceService team/chat is refused without an Input (pass yours with --input), so it neither moves nor takes capacity here: spec.c: wrong\n" +
					"error: --change: InferenceServices team/one, team/two are refused: spec.a: wrong\n  spec.b: wrong\n" +
					"--change: InferenceService team/three is refused: spec.c: wrong\n" +
					"--strict refuses the files because of the unknown fields above\n",
				code: 1,
			},
		},
		"StrictPlan": {
			reason: "With --strict there is no plan, and all that is found is told.",
			fn: func(now time.Time, req *fnv1.RunFunctionRequest) map[string]any {
				if req.GetObserved().GetComposite().GetResource().GetFields()["metadata"].GetStructValue().GetFields()["name"].GetStringValue() == "chat" {
					return map[string]any{"refused": "spec.c: wrong"}
				}
				return stays(now, req)
			},
			files: map[string]string{"change.yaml": services("one") + "  modl: {}\n"},
			plan:  Plan{Change: []string{"change.yaml"}, Drain: []string{"east"}, Strict: true},
			want: want{
				err: "warning: --change: InferenceService team/one: unknown field spec.modl (did you mean spec.model?): kubectl apply refuses it, other clients drop it\n" +
					"warning: InferenceService team/chat is refused without an Input (pass yours with --input), so it neither moves nor takes capacity here: spec.c: wrong\n" +
					"error: --strict refuses the files because of the unknown fields above\n",
				code: 1,
			},
		},
		"WithoutPlacement": {
			reason: "What the plan does not compare is said.",
			fn:     stays,
			files:  map[string]string{"change.yaml": "{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceService, metadata: {name: here, namespace: team}, spec: {roles: []}}"},
			plan:   Plan{Change: []string{"change.yaml"}},
			want: want{
				out: `Plan: 1 service stays as it is.

     CLUSTER  CHANGE  FREE BEFORE  FREE AFTER
     east     -       -            -
`,
				err: "warning: InferenceService team/here has no placement, so the plan does not show what its change does: render shows that\n",
			},
		},
		"BeingDeleted": {
			reason: "A service that is being deleted goes, with its reservation. Who has a cluster deleted says so once more.",
			fn:     stays,
			files: map[string]string{"more.yaml": strings.Replace(nodes, "{name: west}", `{name: west, deletionTimestamp: "2024-01-01T00:00:00Z"}`, 1) + `---
apiVersion: fusioninfer.io/v1alpha1
kind: InferenceService
metadata: {name: other, namespace: team, uid: gone, deletionTimestamp: "2024-01-01T00:00:00Z"}
spec: {placement: {clusterSelector: {}}}
status: {clusters: [{name: west, state: Placed}]}
`},
			plan: Plan{Fleet: []string{"fleet.yaml", "more.yaml"}, Drain: []string{"west"}},
			want: want{
				out: `Plan: 1 service stays as it is.

     CLUSTER  CHANGE            FREE BEFORE  FREE AFTER
     east     -                 -            -
  ~  west     stopPolicy Drain  -            -
`,
				err: "warning: west is being deleted, and counts as if it stayed. With plan --delete west it goes\n" +
					"warning: team/other is being deleted, so it counts as gone, and its capacity as free\n" +
					"warning: west: the nodes of pool a are observed, and its status does not have them, so nothing is placed there. Write nodeCount and allocatable into the file\n",
			},
		},
		"DeletedWithoutPlacement": {
			reason: "So is a deletion that the plan does not show.",
			fn:     stays,
			files:  map[string]string{"more.yaml": "{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceService, metadata: {name: here, namespace: team}, spec: {roles: []}}"},
			plan:   Plan{Fleet: []string{"fleet.yaml", "more.yaml"}, Delete: []string{"team/here"}},
			want: want{
				out: `Plan: 1 service stays as it is.

     CLUSTER  CHANGE  FREE BEFORE  FREE AFTER
     east     -       -            -
`,
				err: "warning: InferenceService team/here has no placement, so the plan does not show that it is deleted\n",
			},
		},
		"DeletedTwice": {
			reason: "A name that is given twice is one deletion.",
			fn:     stays,
			files:  map[string]string{"more.yaml": strings.ReplaceAll(east, "east", "west")},
			plan:   Plan{Fleet: []string{"fleet.yaml", "more.yaml"}, Delete: []string{"team/chat", "west", "team/chat", "west"}},
			want: want{out: `Plan: 1 service is deleted.

     SERVICE    BEFORE  AFTER  WHY
  -  team/chat  east    -

     CLUSTER  CHANGE   FREE BEFORE  FREE AFTER
     east     -        -            -
  ~  west     deleted  -            -
`},
		},
		"ClaimOfTheFleet": {
			reason: "A claim as its owner writes it names nothing, and the composite resource names the claim.",
			fn:     stays,
			files: map[string]string{
				"more.yaml":   "{apiVersion: fusioninfer.io/v1alpha1, kind: XInferenceService, metadata: {name: mine-x7k2p, labels: {crossplane.io/claim-name: mine, crossplane.io/claim-namespace: team}}, spec: {claimRef: {name: mine, namespace: team}, placement: {clusterSelector: {}}}}",
				"change.yaml": "{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceService, metadata: {name: mine, namespace: team}, spec: {placement: {clusterSelector: {}}}}",
			},
			plan: Plan{Fleet: []string{"fleet.yaml", "more.yaml"}, Change: []string{"change.yaml"}},
			want: want{err: "error: cannot use --change: InferenceService team/mine is the claim of XInferenceService mine-x7k2p. Change that one instead\n", code: 1},
		},
		"Labels": {
			reason: "A placement may select a cluster by its labels.",
			fn:     stays,
			files:  map[string]string{"change.yaml": strings.Replace(east, "name: east", "name: east, labels: {a: b}", 1)},
			plan:   Plan{Change: []string{"change.yaml"}},
			want: want{out: `Plan: 1 service stays as it is.

     CLUSTER  CHANGE          FREE BEFORE  FREE AFTER
  ~  east     labels changed  -            -
`},
		},
		"SeveralEdits": {
			reason: "One edit does not hide another.",
			fn:     stays,
			files:  map[string]string{"change.yaml": strings.Replace(strings.Replace(east, "name: east", "name: east, labels: {a: b}", 1), "nodeCount: 1", "nodeCount: 2", 1)},
			plan:   Plan{Change: []string{"change.yaml"}, Drain: []string{"east"}},
			want: want{out: `Plan: 1 service stays as it is.

     CLUSTER  CHANGE                                          FREE BEFORE  FREE AFTER
  ~  east     stopPolicy Drain, spec changed, labels changed  -            -
`},
		},
		"Paused": {
			reason: "As with kubectl apply, an annotation that others set stays. One of the file that was applied before goes with it.",
			fn: func(now time.Time, req *fnv1.RunFunctionRequest) map[string]any {
				if strings.Contains(fmt.Sprint(req.GetObserved().GetComposite().GetResource().AsMap()["spec"]), "failoverAfterSeconds:60") {
					return map[string]any{}
				}
				return stays(now, req)
			},
			files: map[string]string{
				"fleet.yaml": planned + pausedService("held", `crossplane.io/paused: "true"`) + pausedService("set", `crossplane.io/paused: "true"`) +
					pausedService("mended", `crossplane.io/paused: "true", kubectl.kubernetes.io/last-applied-configuration: '{"metadata":{"annotations":{"crossplane.io/paused":"true"}}}'`),
				"change.yaml": strings.ReplaceAll(pausedService("held", "")+pausedService("set", `crossplane.io/paused: "false"`)+pausedService("mended", ""), "7200", "60"),
			},
			plan: Plan{Change: []string{"change.yaml"}},
			want: want{out: `Plan: 3 services cannot be placed completely, 1 stays as it is.

     SERVICE      BEFORE  AFTER    WHY
  !  team/held    east    east
  !  team/mended  east    nowhere  east: the placement does not name or select it
  !  team/set     east    nowhere  east: the placement does not name or select it

     CLUSTER  CHANGE  FREE BEFORE  FREE AFTER
     east     -       -            -
`},
		},
		"ScaledRoles": {
			reason: "What an InferenceRole asks for decides how much room a service needs. The plan shows with how many replicas it counts each role with scaling.",
			fn: func(_ time.Time, req *fnv1.RunFunctionRequest) map[string]any {
				fields := req.GetObserved().GetComposite().GetResource().GetFields()
				if fields["kind"].GetStringValue() != "InferenceService" {
					return map[string]any{}
				}
				status := stays(time.Time{}, req)
				decode := map[string]any{"desiredReplicas": 2, "scaling": map[string]any{"requestedReplicas": 2}}
				if strings.Contains(fmt.Sprint(fields["spec"].AsInterface()), "maxReplicas:3") {
					decode = map[string]any{"desiredReplicas": 3, "scaling": map[string]any{"requestedReplicas": 6, "reason": "Maximum"}}
				}
				status["components"] = map[string]any{"decode": decode, "prefill": map[string]any{"desiredReplicas": 3, "scaling": map[string]any{"requestedReplicas": 3}}, "router": map[string]any{"desiredReplicas": 1}}
				return status
			},
			files: map[string]string{
				"fleet.yaml":  planned + scaledService,
				"change.yaml": strings.Replace(scaledService, "decoder, scaling: {maxReplicas: 4}", "decoder, scaling: {maxReplicas: 3}", 1),
			},
			plan: Plan{Change: []string{"change.yaml"}, All: true},
			want: want{
				out: `Plan: 1 service cannot be placed completely, 1 stays as it is.

     SERVICE      BEFORE  AFTER  SCALED ROLES                            WHY
     team/chat    east    east   -
  !  team/scaled  east    east   2 to 3 decode (6 asked for); 3 prefill  scales role decode from 2 to 3 replicas

     CLUSTER  CHANGE  FREE BEFORE  FREE AFTER
     east     -       -            -
`,
			},
		},
		"AddedRole": {
			reason: "A role that comes has new pods, although the others stay as they are.",
			fn:     countsRoles,
			files:  map[string]string{"fleet.yaml": planned + rolesService("decode"), "change.yaml": rolesService("decode", "more")},
			plan:   Plan{Change: []string{"change.yaml"}, DetailedExitcode: true},
			want: want{
				out: `Plan: 1 service changes its pods, 1 stays as it is.

     SERVICE     BEFORE  AFTER  WHY
  ~  team/roles  east    east   adds role more with 2 replicas

     CLUSTER  CHANGE  FREE BEFORE  FREE AFTER
     east     -       -            -
`,
				code: 2,
			},
		},
		"RemovedRole": {
			reason: "One that goes takes its pods with it. A role with another name is another role.",
			fn:     countsRoles,
			files:  map[string]string{"fleet.yaml": planned + rolesService("decode", "more"), "change.yaml": rolesService("renamed", "more")},
			plan:   Plan{Change: []string{"change.yaml"}, DetailedExitcode: true},
			want: want{
				out: `Plan: 1 service changes its pods, 1 stays as it is.

     SERVICE     BEFORE  AFTER  WHY
  ~  team/roles  east    east   adds role renamed with 2 replicas
                                removes role decode

     CLUSTER  CHANGE  FREE BEFORE  FREE AFTER
     east     -       -            -
`,
				code: 2,
			},
		},
		"RolesOfNothing": {
			reason: "An InferenceRole without its service or role changes nothing, as a misspelt one would not either.",
			fn:     stays,
			files: map[string]string{
				"fleet.yaml": planned + scaledService +
					"---\n{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceRole, metadata: {name: gone-decode, namespace: team}, spec: {serviceName: gone, roleName: decode, replicas: 2}}\n" +
					"---\n{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceRole, metadata: {name: scaled-prefill, namespace: team}, spec: {serviceName: scaled, roleName: prefill, replicas: 2}}\n" +
					"---\n{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceRole, metadata: {name: any, namespace: team}}\n",
				"change.yaml": "{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceRole, metadata: {name: scaled-router, namespace: team}, spec: {serviceName: scaled, roleName: router, replicas: 2}}\n" +
					"---\n{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceRole, metadata: {name: scaled-decod, namespace: team}, spec: {serviceName: scaled, roleName: decod, replicas: 2}}\n" +
					"---\n{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceRole, metadata: {name: decode, namespace: team}, spec: {serviceName: scaled, roleName: decode, replicas: 2}}\n" +
					"---\n{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceRole, metadata: {name: scaled-decode}, spec: {serviceName: scaled, roleName: decode, replicas: 2}}\n",
			},
			plan: Plan{Change: []string{"change.yaml"}},
			want: want{
				out: `Plan: 2 services stay as they are.

     CLUSTER  CHANGE  FREE BEFORE  FREE AFTER
     east     -       -            -
`,
				err: "warning: fleet: InferenceRole team/gone-decode counts for nothing: InferenceService team/gone is not in the files\n" +
					"warning: fleet: InferenceRole team/any counts for nothing: no role with scaling of the services in the files has its name, which is that of the service, a hyphen and that of the role\n" +
					"warning: --change: InferenceRole team/scaled-router counts for nothing: InferenceService team/scaled has no role router with scaling\n" +
					"warning: --change: InferenceRole team/scaled-decod counts for nothing: InferenceService team/scaled has no role decod with scaling\n" +
					"warning: --change: InferenceRole team/decode counts for nothing: the one of role decode of InferenceService team/scaled is named scaled-decode\n" +
					"warning: --change: InferenceRole default/scaled-decode counts for nothing: InferenceService default/scaled is not in the files\n",
			},
		},
		"NumbersOfRoles": {
			reason: "A number that cannot be read would count as one that nobody has set.",
			fn:     stays,
			files: map[string]string{
				"roles.yaml": "{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceRole, metadata: {name: chat-decode, namespace: team}, spec: {serviceName: chat, roleName: decode, replicas: three}}\n" +
					"---\n{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceRole, metadata: {name: chat-prefill, namespace: team}, spec: {serviceName: chat, roleName: prefill, replicas: 9999}}\n",
			},
			plan: Plan{Fleet: []string{"fleet.yaml", "roles.yaml"}, Drain: []string{"east"}},
			want: want{
				err: "error: cannot use InferenceRole team/chat-decode in \"roles.yaml\": spec.replicas: Invalid value: \"three\": must be a whole number\n" +
					"cannot use InferenceRole team/chat-prefill in \"roles.yaml\": spec.replicas: Invalid value: 9999: must be from 0 to 2000\n",
				code: 1,
			},
		},
		"LargeNumbersOfRoles": {
			reason: "A number may have more digits than a request can have.",
			fn:     stays,
			files: map[string]string{
				"roles.yaml": "{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceRole, metadata: {name: chat-decode, namespace: team}, spec: {serviceName: chat, roleName: decode, replicas: 9007199254740993}}\n",
			},
			plan: Plan{Fleet: []string{"fleet.yaml", "roles.yaml"}, Drain: []string{"east"}},
			want: want{err: "error: cannot use InferenceRole team/chat-decode in \"roles.yaml\": spec.replicas: Invalid value: 9007199254740992: must be a whole number of at most 32 bits\n", code: 1},
		},
		"NumberOfChangedRole": {
			reason: "So would one of a change.",
			fn:     stays,
			files:  map[string]string{"change.yaml": "{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceRole, metadata: {name: chat-decode, namespace: team}, spec: {serviceName: chat, roleName: decode, replicas: 1.5}}\n"},
			plan:   Plan{Change: []string{"change.yaml"}},
			want:   want{err: "error: cannot use InferenceRole team/chat-decode in \"change.yaml\": spec.replicas: Invalid value: 1.5: must be a whole number\n", code: 1},
		},
		"OtherReplicas": {
			reason: "Only the numbers of replicas are taken over, so a plan may have others in a cluster than run there.",
			fn: func(time.Time, *fnv1.RunFunctionRequest) map[string]any {
				return map[string]any{"clusters": []any{map[string]any{"name": "east", "state": "Placed", "assigned": []any{map[string]any{"role": "w", "indexes": []any{0, 1}}}}}}
			},
			files: map[string]string{"fleet.yaml": east + `---
apiVersion: fusioninfer.io/v1alpha1
kind: InferenceService
metadata: {name: same, namespace: team}
spec: {placement: {policy: Spread, clusterSelector: {}}}
status: {clusters: [{name: east, state: Placed, assigned: [{role: w, indexes: [0, 1]}]}]}
---
apiVersion: fusioninfer.io/v1alpha1
kind: InferenceService
metadata: {name: other, namespace: team}
spec: {placement: {policy: Spread, clusterSelector: {}}}
status: {clusters: [{name: east, state: Placed, assigned: [{role: w, indexes: [0, 2]}]}]}
`},
			plan: Plan{Drain: []string{"east"}},
			want: want{
				out: `Plan: 2 services stay as they are.

     CLUSTER  CHANGE            FREE BEFORE  FREE AFTER
  ~  east     stopPolicy Drain  -            -
`,
				err: "warning: team/other has 2 w (0 2) in east by its status, and 2 w (0-1) in this plan, so the plan does not show which of its replicas move\n",
			},
		},
		"NamespaceOfCluster": {
			reason: "A cluster belongs to no namespace, whatever its file says.",
			fn:     stays,
			files:  map[string]string{"fleet.yaml": strings.Replace(planned, "{name: east}", "{name: east, namespace: team}", 1)},
			plan:   Plan{Drain: []string{"east"}},
			want: want{out: `Plan: 1 service stays as it is.

     CLUSTER  CHANGE            FREE BEFORE  FREE AFTER
  ~  east     stopPolicy Drain  -            -
`},
		},
		"UnknownNodes": {
			reason: "What cannot be known is said: nodes, and services that have a reservation.",
			fn:     stays,
			files:  map[string]string{"more.yaml": nodes},
			plan:   Plan{Fleet: []string{"fleet.yaml", "more.yaml"}, Drain: []string{"west"}},
			want: want{
				out: `Plan: 1 service stays as it is.

     CLUSTER  CHANGE            FREE BEFORE  FREE AFTER
     east     -                 -            -
  ~  west     stopPolicy Drain  -            -
`,
				err: "warning: west: the nodes of pool a are observed, and its status does not have them, so nothing is placed there. Write nodeCount and allocatable into the file\n" +
					"warning: west has a reservation for team/other, which is not in the files: its capacity counts as free\n",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"fleet.yaml": planned}
			for f, text := range tc.files {
				files[f] = text
			}
			inDirectory(t, files)
			if tc.plan.Fleet == nil {
				tc.plan.Fleet = []string{"fleet.yaml"}
			}
			out, errs := &bytes.Buffer{}, &bytes.Buffer{}
			err := tc.plan.Run(t.Context(), clocked{fn: tc.fn}, Streams{In: strings.NewReader(""), Out: out, Err: errs})
			got := want{code: Exit(errs, err), out: out.String(), err: errs.String()}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s\nPlan: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
