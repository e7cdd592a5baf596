package remote

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
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming/incomingtest"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

var (
	service = naming.Identity{Name: "qwen", Namespace: "team-a"}
	claimed = naming.Identity{Name: "qwen", Namespace: "team-a", Claimed: true}
	east    = scheduling.Target{Cluster: "east", Namespace: "models", ProviderConfig: v1alpha1.ProviderConfigRef{Kind: "ClusterProviderConfig", Name: "east"}}
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
		service naming.Identity
		object  map[string]any
		want    map[string]any
	}{
		"Namespaced": {
			reason:  "A namespaced XR composes Objects in its namespace.",
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
			reason:  "The XR of a claim composes cluster-scoped Objects, which do not name the kind of their configuration. Objects with a readiness query are watched.",
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
			got, err := Wrap(kube.Object{Key: key.Parse("cluster/east/k"), Resource: encode(t, tc.object)}, tc.service, east, false)
			if err != nil {
				t.Fatal(err)
			}
			if got.Key.String() != "cluster/east/k" {
				t.Errorf("want the key of the plan, got %s", got.Key)
			}
			if diff := cmp.Diff(tc.want, kube.AsMap(got.Resource)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestWrapNames proves that the Objects of two services have the same name exactly if the
// services want the same remote object.
func TestWrapNames(t *testing.T) {
	name := func(s naming.Identity, target scheduling.Target, d map[string]any) string {
		o, err := Wrap(kube.Object{Resource: encode(t, d)}, s, target, false)
		if err != nil {
			t.Fatal(err)
		}
		return o.Name()
	}
	want := name(claimed, east, configMap("a"))
	if got := name(naming.Identity{Name: "other", Namespace: "team-b", Claimed: true}, east, configMap("a")); got != want {
		t.Errorf("another service: %s and %s", want, got)
	}
	kind := east
	kind.ProviderConfig.Kind = "ProviderConfig"
	if got := name(claimed, kind, configMap("a")); got != want {
		t.Errorf("a claim's Objects do not name the kind of configuration: %s and %s", want, got)
	}
	namespace, config := east, east
	namespace.Namespace = "other"
	config.ProviderConfig.Name = "other"
	secret := configMap("a")
	secret["kind"] = "Secret"
	taken := map[string]bool{want: true}
	for _, n := range []string{
		name(claimed, namespace, configMap("a")), name(claimed, config, configMap("a")),
		name(claimed, east, configMap("b")), name(claimed, east, secret),
		name(service, east, configMap("a")), name(service, kind, configMap("a")),
		name(service, east, configMap(strings.Repeat("a", 63))), name(service, east, configMap(strings.Repeat("a", 62)+"b")),
	} {
		if taken[n] {
			t.Errorf("%s is taken", n)
		}
		taken[n] = true
		if errs := validation.IsDNS1123Label(n); len(errs) > 0 {
			t.Errorf("%s: %v", n, errs)
		}
	}
}

// withStatus sets the status that provider-kubernetes sets when the cluster takes an Object.
func withStatus(o *structpb.Struct, conditions ...any) *structpb.Struct {
	l, _ := structpb.NewList(conditions)
	o = kube.With(o, structpb.NewListValue(l), "status", "conditions")
	return kube.With(o, structpb.NewStructValue(Manifest(o)), "status", "atProvider", "manifest")
}

// everyField compares all fields of objects that the codec keeps, read by a test or not.
var everyField = cmp.Options{cmp.AllowUnexported(incoming.Object{}), protocmp.Transform()}

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
		if o.UnmarshalJSON([]byte(raw)) != nil || len(o.GetFields()) == 0 || len(kube.CheckBounds(o, nil)) > 0 {
			t.Skip()
		}
		s := service
		s.Claimed = claim
		before := proto.CloneOf(o)
		want := incomingtest.Object(t, before)
		w, err := Wrap(kube.Object{Key: key.Parse("k"), Resource: o}, s, east, false)
		if err != nil {
			t.Fatal(err)
		}
		got, state := Unwrap(incomingtest.Object(t, withStatus(w.Resource, map[string]any{"type": "Synced", "status": "True"})))
		if diff := cmp.Diff(before, Manifest(w.Resource), protocmp.Transform()); diff != "" {
			t.Errorf("manifest: -want, +got:\n%s", diff)
		}
		if want.Empty() {
			return // The codec keeps nothing of it, so it looks as if it was never reported.
		}
		if !state.Readable() {
			t.Fatalf("not readable: %+v", state)
		}
		if diff := cmp.Diff(want, got, everyField); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
	})
}

func TestUnwrap(t *testing.T) {
	wrapped, err := Wrap(kube.Object{Resource: encode(t, configMap("a"))}, service, east, false)
	if err != nil {
		t.Fatal(err)
	}
	wrappedObject := wrapped.Resource
	object := func(d map[string]any) incoming.Object { return incomingtest.Object(t, encode(t, d)) }
	deleting := configMap("a")
	deleting["metadata"].(map[string]any)["deletionTimestamp"] = "2026-03-01T12:00:00Z"

	type want struct {
		remote incoming.Object
		state  State
	}
	cases := map[string]struct {
		reason   string
		observed *structpb.Struct
		want     want
	}{
		"Local": {
			reason:   "An object of another kind is local.",
			observed: encode(t, configMap("a")),
			want:     want{remote: object(configMap("a"))},
		},
		"ForeignObject": {
			reason:   "A kind named Object of another group is not provider-kubernetes's.",
			observed: encode(t, map[string]any{"apiVersion": "example.com/v1", "kind": "Object"}),
			want:     want{remote: object(map[string]any{"apiVersion": "example.com/v1", "kind": "Object"})},
		},
		"JustCreated": {
			reason:   "An Object without a status has not been applied yet.",
			observed: wrappedObject,
			want:     want{state: State{Reason: NotCreated, Message: "provider-kubernetes has not reported it yet"}},
		},
		"Synced": {
			reason:   "The object in the status is the remote object.",
			observed: withStatus(wrappedObject, map[string]any{"type": "Synced", "status": "True"}, map[string]any{"type": "Ready", "status": "False"}),
			want:     want{remote: object(configMap("a"))},
		},
		"NotSynced": {
			reason:   "After a failure, the object in the status is outdated.",
			observed: withStatus(wrappedObject, map[string]any{"type": "Synced", "status": "False", "message": "no route to host"}),
			want:     want{remote: object(configMap("a")), state: State{Reason: CannotBeRead, Message: "no route to host"}},
		},
		"NotDryRun": {
			reason:   "Server-side apply is tried before each change, after the object was read.",
			observed: withStatus(wrappedObject, map[string]any{"type": "Synced", "status": "False", "message": "observe failed: cannot get desired state: cannot dry run SSA: admission webhook denied the request"}),
			want: want{remote: object(configMap("a")), state: State{
				Reason: CannotBeRead, Message: "observe failed: cannot get desired state: cannot dry run SSA: admission webhook denied the request", Outdated: true, Refused: true,
			}},
		},
		"NotUpdated": {
			reason:   "The answer may have been lost, and the change accepted.",
			observed: withStatus(wrappedObject, map[string]any{"type": "Synced", "status": "False", "message": "update failed: cannot apply object: cannot create object: forbidden"}),
			want:     want{remote: object(configMap("a")), state: State{Reason: CannotBeRead, Message: "update failed: cannot apply object: cannot create object: forbidden"}},
		},
		"NotTried": {
			reason: "The provider has not tried the newest spec of the Object so far.",
			observed: kube.With(withStatus(wrappedObject, map[string]any{"type": "Synced", "status": "False", "observedGeneration": 2, "message": "observe failed: cannot get desired state: denied"}),
				structpb.NewNumberValue(3), "metadata", "generation"),
			want: want{remote: object(configMap("a")), state: State{Reason: CannotBeRead, Message: "observe failed: cannot get desired state: denied"}},
		},
		"NotRecreated": {
			reason:   "What was read last is gone, so it counts for nothing.",
			observed: withStatus(wrappedObject, map[string]any{"type": "Synced", "status": "False", "message": "create failed: cannot create object: forbidden"}),
			want:     want{remote: object(configMap("a")), state: State{Reason: CannotBeRead, Message: "create failed: cannot create object: forbidden"}},
		},
		"NotRead": {
			reason:   "Only what comes after the read tells that it was read.",
			observed: withStatus(wrappedObject, map[string]any{"type": "Synced", "status": "False", "message": "observe failed: cannot get object: observe failed: cannot get desired state: no"}),
			want:     want{remote: object(configMap("a")), state: State{Reason: CannotBeRead, Message: "observe failed: cannot get object: observe failed: cannot get desired state: no"}},
		},
		"NeverRead": {
			reason: "Without a manifest nothing is known of the object.",
			observed: kube.With(wrappedObject, encode(t, map[string]any{"l": []any{map[string]any{"type": "Synced", "status": "False", "message": "observe failed: cannot get desired state: no"}}}).GetFields()["l"],
				"status", "conditions"),
			want: want{state: State{Reason: CannotBeRead, Message: "observe failed: cannot get desired state: no"}},
		},
		"Outdated": {
			reason:   "The provider has not applied the newest spec.",
			observed: kube.With(withStatus(wrappedObject, map[string]any{"type": "Synced", "status": "True", "observedGeneration": 2}), structpb.NewNumberValue(3), "metadata", "generation"),
			want:     want{remote: object(configMap("a")), state: State{Outdated: true}},
		},
		"Applied": {
			reason:   "The provider has applied the newest spec.",
			observed: kube.With(withStatus(wrappedObject, map[string]any{"type": "Synced", "status": "True", "observedGeneration": 3}), structpb.NewNumberValue(3), "metadata", "generation"),
			want:     want{remote: object(configMap("a"))},
		},
		"NoGeneration": {
			reason:   "A provider that leaves the generation out may have applied it.",
			observed: kube.With(withStatus(wrappedObject, map[string]any{"type": "Synced", "status": "True"}), structpb.NewNumberValue(3), "metadata", "generation"),
			want:     want{remote: object(configMap("a"))},
		},
		"NeverSynced": {
			reason: "A cluster that never answered cannot be read.",
			observed: kube.With(wrappedObject, encode(t, map[string]any{"l": []any{map[string]any{"type": "Synced", "status": "False", "message": "no kubeconfig"}}}).GetFields()["l"],
				"status", "conditions"),
			want: want{state: State{Reason: CannotBeRead, Message: "no kubeconfig"}},
		},
		"Deleting": {
			reason:   "An Object that is being deleted deletes the remote object.",
			observed: kube.With(withStatus(wrappedObject), structpb.NewStringValue("2026-03-01T12:00:00Z"), "metadata", "deletionTimestamp"),
			want:     want{remote: object(deleting)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			remote, state := Unwrap(incomingtest.Object(t, tc.observed))
			if diff := cmp.Diff(tc.want, want{remote: remote, state: state}, cmp.AllowUnexported(want{}), everyField); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestWrapWorkload proves that Kueue's Workload is only ever observed, and that the Object keeps
// its name when the Workload changes.
func TestWrapWorkload(t *testing.T) {
	wrap := func(workload string) map[string]any {
		o, err := WrapWorkload(key.Parse("cluster/east/workload/engine/0"), "qwen-engine-0", workload, service, east)
		if err != nil {
			t.Fatal(err)
		}
		return kube.AsMap(o.Resource)
	}
	want := map[string]any{
		"apiVersion": "kubernetes.m.crossplane.io/v1alpha1", "kind": "Object",
		"metadata": map[string]any{"name": "qwen-engine-0-workload-ea488b23c657", "namespace": "team-a", "labels": map[string]any{"fusioninfer.io/service": "qwen"}},
		"spec": map[string]any{
			"forProvider": map[string]any{"manifest": map[string]any{
				"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
				"metadata": map[string]any{"name": "leaderworkerset-qwen-engine-0-0-1a2b3", "namespace": "models"},
			}},
			"providerConfigRef":  map[string]any{"kind": "ClusterProviderConfig", "name": "east"},
			"managementPolicies": []any{"Observe"},
			"readiness": map[string]any{
				"policy":   "DeriveFromCelQuery",
				"celQuery": `has(object.status) && has(object.status.conditions) && object.status.conditions.exists(c, c.type == "Admitted" && c.status == "True")`,
			},
			"watch": true,
		},
	}
	got := wrap("leaderworkerset-qwen-engine-0-0-1a2b3")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(got["metadata"], wrap("leaderworkerset-qwen-engine-0-0-fffff")["metadata"]); diff != "" {
		t.Errorf("another Workload: -want, +got:\n%s", diff)
	}
}

// TestWrapPod proves that a pod is only ever observed, and polled for as long as it is.
func TestWrapPod(t *testing.T) {
	want := map[string]any{
		"apiVersion": "kubernetes.m.crossplane.io/v1alpha1", "kind": "Object",
		"metadata": map[string]any{"name": "qwen-engine-0-0-pod-3c9e20679516", "namespace": "team-a", "labels": map[string]any{"fusioninfer.io/service": "qwen"}},
		"spec": map[string]any{
			"forProvider": map[string]any{"manifest": map[string]any{
				"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "qwen-engine-0-0", "namespace": "models"},
			}},
			"providerConfigRef":  map[string]any{"kind": "ClusterProviderConfig", "name": "east"},
			"managementPolicies": []any{"Observe"},
			"readiness":          map[string]any{"policy": "DeriveFromCelQuery", "celQuery": "false"},
			"watch":              true,
		},
	}
	got, err := WrapPod(key.Parse("cluster/east/pod/engine/0/0"), "qwen-engine-0-0", service, east)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, kube.AsMap(got.Resource)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestQueries evaluates the readiness queries as provider-kubernetes does.
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
		"PersistentVolumeClaim.": {
			ready:    []map[string]any{{"phase": "Bound"}},
			notReady: []map[string]any{{"phase": "Pending"}, {"phase": "Lost"}},
		},
		"Pod.": {
			notReady: []map[string]any{{"conditions": conditions("Ready", "True")}},
		},
		"Job.batch": {
			ready:    []map[string]any{{"conditions": conditions("Complete", "True")}},
			notReady: []map[string]any{{"active": 1.0}, {"conditions": conditions("Failed", "True")}},
		},
		"Workload.kueue.x-k8s.io": {
			ready:    []map[string]any{{"conditions": conditions("Admitted", "True")}},
			notReady: []map[string]any{{"conditions": conditions("Admitted", "False")}, {"conditions": conditions("QuotaReserved", "True")}},
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
		t.Fatalf("provider-kubernetes accepts bool only, not %s", ast.OutputType())
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
