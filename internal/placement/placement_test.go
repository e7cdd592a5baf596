package placement

import (
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/plan"
)

var (
	service = plan.Service{Name: "qwen", Namespace: "team-a"}
	claimed = plan.Service{Name: "qwen", Namespace: "team-a", Claimed: true}
	east    = plan.Target{Cluster: "east", Namespace: "models", ProviderConfig: v1alpha1.ProviderConfigRef{Kind: "ClusterProviderConfig", Name: "east"}}
)

func encode(tb testing.TB, d map[string]any) *structpb.Struct {
	tb.Helper()
	s, err := kube.Encode(d)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func configMap(name string) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": name, "namespace": "models"},
		"data":     map[string]any{"k": "v"},
	}
}

func TestWrap(t *testing.T) {
	leaders := map[string]any{"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": map[string]any{"name": "qwen-engine-0"}}
	cases := map[string]struct {
		reason  string
		service plan.Service
		object  map[string]any
		want    map[string]any
	}{
		"Namespaced": {
			reason:  "A namespaced XR composes namespaced Objects, beside itself.",
			service: service,
			object:  configMap("qwen-epp-config"),
			want: map[string]any{
				"apiVersion": "kubernetes.m.crossplane.io/v1alpha1", "kind": "Object",
				"metadata": map[string]any{"name": "qwen-epp-config-configmap-9e79f1bd50b5", "namespace": "team-a", "labels": map[string]any{"fusioninfer.io/service": "qwen"}},
				"spec": map[string]any{
					"forProvider":       map[string]any{"manifest": configMap("qwen-epp-config")},
					"providerConfigRef": map[string]any{"kind": "ClusterProviderConfig", "name": "east"},
					"readiness":         map[string]any{"policy": "SuccessfulCreate"},
				},
			},
		},
		"Claimed": {
			reason:  "The XR behind a claim composes cluster-scoped Objects, which know one kind of configuration. What reports a status is watched.",
			service: claimed,
			object:  leaders,
			want: map[string]any{
				"apiVersion": "kubernetes.crossplane.io/v1alpha2", "kind": "Object",
				"metadata": map[string]any{"name": "qwen-engine-0-leaderworkerset-fea30b650bac", "labels": map[string]any{"fusioninfer.io/service": "qwen"}},
				"spec": map[string]any{
					"forProvider":       map[string]any{"manifest": leaders},
					"providerConfigRef": map[string]any{"name": "east"},
					"readiness": map[string]any{
						"policy":   "DeriveFromCelQuery",
						"celQuery": `has(object.status) && has(object.status.conditions) && object.status.conditions.exists(c, c.type == "Available" && c.status == "True")`,
					},
					"watch": true,
				},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Wrap(kube.Object{Key: "cluster/east/k", Resource: encode(t, tc.object)}, tc.service, east, false)
			if err != nil {
				t.Fatal(err)
			}
			if got.Key != "cluster/east/k" {
				t.Errorf("the key is the plan's: %s", got.Key)
			}
			if diff := cmp.Diff(tc.want, kube.AsMap(got.Resource)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// Two services that want one remote object meet at one name; whatever differs in
// what they want keeps them apart.
func TestWrapNames(t *testing.T) {
	name := func(s plan.Service, target plan.Target, d map[string]any) string {
		o, err := Wrap(kube.Object{Resource: encode(t, d)}, s, target, false)
		if err != nil {
			t.Fatal(err)
		}
		return o.Name()
	}
	want := name(claimed, east, configMap("a"))
	if got := name(plan.Service{Name: "other", Namespace: "team-b", Claimed: true}, east, configMap("a")); got != want {
		t.Errorf("another service: %s and %s", want, got)
	}
	kind := east
	kind.ProviderConfig.Kind = "ProviderConfig"
	if got := name(claimed, kind, configMap("a")); got != want {
		t.Errorf("a claim's Objects know one kind of configuration: %s and %s", want, got)
	}
	namespace, config := east, east
	namespace.Namespace = "other"
	config.ProviderConfig.Name = "other"
	secret := configMap("a")
	secret["kind"] = "Secret"
	seen := map[string]bool{want: true}
	for _, n := range []string{
		name(claimed, namespace, configMap("a")), name(claimed, config, configMap("a")),
		name(claimed, east, configMap("b")), name(claimed, east, secret),
		name(service, east, configMap("a")), name(service, kind, configMap("a")),
		name(service, east, configMap(strings.Repeat("a", 63))), name(service, east, configMap(strings.Repeat("a", 62)+"b")),
	} {
		if seen[n] {
			t.Errorf("%s is taken", n)
		}
		seen[n] = true
		if errs := validation.IsDNS1123Label(n); len(errs) > 0 {
			t.Errorf("%s: %v", n, errs)
		}
	}
}

// carry does what provider-kubernetes does when the cluster takes an Object.
func carry(o *structpb.Struct, conditions ...any) *structpb.Struct {
	l, _ := structpb.NewList(conditions)
	o = kube.With(o, structpb.NewListValue(l), "status", "conditions")
	return kube.With(o, structpb.NewStructValue(Manifest(o)), "status", "atProvider", "manifest")
}

func FuzzWrap(f *testing.F) {
	for _, s := range []string{
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"v"}}`,
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","labels":{"x":"y"}},"spec":{"replicas":1,"template":{"spec":{"volumes":[{"emptyDir":{}}]}}}}`,
		`{"kind":"Object","apiVersion":"kubernetes.crossplane.io/v1alpha2","status":{"atProvider":{}}}`,
		`{"x":null,"y":[1,2.5,true,{"z":[]}]}`,
	} {
		f.Add(s, true)
		f.Add(s, false)
	}
	f.Fuzz(func(t *testing.T, raw string, claim bool) {
		o := &structpb.Struct{}
		if o.UnmarshalJSON([]byte(raw)) != nil || len(o.GetFields()) == 0 {
			t.Skip()
		}
		s := service
		s.Claimed = claim
		before := proto.Clone(o)
		w, err := Wrap(kube.Object{Key: "k", Resource: o}, s, east, false)
		if err != nil {
			t.Fatal(err)
		}
		got, state := Unwrap(carry(w.Resource, map[string]any{"type": "Synced", "status": "True"}))
		if !state.Readable() {
			t.Fatalf("not readable: %+v", state)
		}
		if diff := cmp.Diff(before, proto.Message(got), protocmp.Transform()); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
	})
}

func TestUnwrap(t *testing.T) {
	wrapped, err := Wrap(kube.Object{Resource: encode(t, configMap("a"))}, service, east, false)
	if err != nil {
		t.Fatal(err)
	}
	object := wrapped.Resource
	deleting := configMap("a")
	deleting["metadata"].(map[string]any)["deletionTimestamp"] = "2026-03-01T12:00:00Z"

	type want struct {
		remote map[string]any
		state  State
	}
	cases := map[string]struct {
		reason   string
		observed *structpb.Struct
		want     want
	}{
		"Local": {
			reason:   "What is no Object lives here.",
			observed: encode(t, configMap("a")),
			want:     want{remote: configMap("a")},
		},
		"ForeignObject": {
			reason:   "A kind called Object of another group is not provider-kubernetes's.",
			observed: encode(t, map[string]any{"apiVersion": "example.com/v1", "kind": "Object"}),
			want:     want{remote: map[string]any{"apiVersion": "example.com/v1", "kind": "Object"}},
		},
		"JustCreated": {
			reason:   "An Object without a status has not been carried anywhere.",
			observed: object,
			want:     want{remote: map[string]any{}, state: State{Reason: NotThereYet, Message: "provider-kubernetes has not reported it yet"}},
		},
		"Carried": {
			reason:   "What was found in the cluster is the object.",
			observed: carry(object, map[string]any{"type": "Synced", "status": "True"}, map[string]any{"type": "Ready", "status": "False"}),
			want:     want{remote: configMap("a")},
		},
		"NotSynced": {
			reason:   "After a failure what the Object holds is of the past.",
			observed: carry(object, map[string]any{"type": "Synced", "status": "False", "message": "no route to host"}),
			want:     want{remote: configMap("a"), state: State{Reason: NotSynced, Message: "no route to host"}},
		},
		"NeverSynced": {
			reason: "A cluster that never answered cannot be read either.",
			observed: kube.With(object, encode(t, map[string]any{"l": []any{map[string]any{"type": "Synced", "status": "False", "message": "no kubeconfig"}}}).GetFields()["l"],
				"status", "conditions"),
			want: want{remote: map[string]any{}, state: State{Reason: NotSynced, Message: "no kubeconfig"}},
		},
		"Deleting": {
			reason:   "An Object that is being deleted takes the remote object with it.",
			observed: kube.With(carry(object), structpb.NewStringValue("2026-03-01T12:00:00Z"), "metadata", "deletionTimestamp"),
			want:     want{remote: deleting},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			remote, state := Unwrap(tc.observed)
			if diff := cmp.Diff(tc.want, want{remote: kube.AsMap(remote), state: state}, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestQueries evaluates the readiness queries in the way provider-kubernetes does.
func TestQueries(t *testing.T) {
	conditions := func(kind, status string) []any { return []any{map[string]any{"type": kind, "status": status}} }
	parents := func(status string) map[string]any {
		return map[string]any{"parents": []any{map[string]any{}, map[string]any{"conditions": conditions("Accepted", status)}}}
	}
	cases := map[string]struct{ ready, notReady []map[string]any }{
		"LeaderWorkerSet.leaderworkerset.x-k8s.io": {
			ready:    []map[string]any{{"conditions": conditions("Available", "True")}},
			notReady: []map[string]any{{"conditions": conditions("Available", "False")}, {"conditions": conditions("Progressing", "True")}},
		},
		"Deployment.apps": {
			ready:    []map[string]any{{"conditions": conditions("Available", "True")}},
			notReady: []map[string]any{{"conditions": conditions("Available", "False")}},
		},
		"Gateway.gateway.networking.k8s.io": {
			ready:    []map[string]any{{"conditions": conditions("Programmed", "True")}},
			notReady: []map[string]any{{"conditions": conditions("Programmed", "Unknown")}},
		},
		"HTTPRoute.gateway.networking.k8s.io":       {ready: []map[string]any{parents("True")}, notReady: []map[string]any{parents("False")}},
		"InferencePool.inference.networking.k8s.io": {ready: []map[string]any{parents("True")}, notReady: []map[string]any{parents("Unknown")}},
		"PodGroup.scheduling.volcano.sh": {
			ready:    []map[string]any{{"phase": "Running"}, {"phase": "Completed"}},
			notReady: []map[string]any{{"phase": "Inqueue"}, {"phase": "Unknown"}},
		},
	}
	for kind := range queries {
		if _, ok := cases[kind]; !ok {
			t.Errorf("no case for %s", kind)
		}
	}
	for kind, tc := range cases {
		t.Run(kind, func(t *testing.T) {
			q := program(t, queries[kind])
			for _, s := range tc.ready {
				if !evaluate(t, q, map[string]any{"status": s}) {
					t.Errorf("not ready: %v", s)
				}
			}
			for _, o := range append([]map[string]any{{}, {"status": map[string]any{}}}, statuses(tc.notReady)...) {
				if evaluate(t, q, o) {
					t.Errorf("ready: %v", o)
				}
			}
		})
	}
}

func statuses(all []map[string]any) []map[string]any {
	objects := make([]map[string]any, 0, len(all))
	for _, s := range all {
		objects = append(objects, map[string]any{"status": s})
	}
	return objects
}

func program(t *testing.T, query string) cel.Program {
	t.Helper()
	env, err := cel.NewEnv(cel.Variable("object", cel.AnyType))
	if err != nil {
		t.Fatal(err)
	}
	ast, issues := env.Compile(query)
	if issues.Err() != nil {
		t.Fatal(issues.Err())
	}
	if ast.OutputType() != cel.BoolType {
		t.Fatalf("provider-kubernetes takes bool only, not %s", ast.OutputType())
	}
	p, err := env.Program(ast)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func evaluate(t *testing.T, p cel.Program, object map[string]any) bool {
	t.Helper()
	v, _, err := p.Eval(map[string]any{"object": object})
	if err != nil {
		t.Fatal(err)
	}
	ready, isBool := v.Value().(bool)
	if !isBool {
		t.Fatalf("not a bool: %v", v)
	}
	return ready
}
