package service

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/service/require"
	"github.com/fusioninfer/function-inferenceservice/test/fixture"
)

// another makes Crossplane answer a requirement with an object of a kind that another service has.
func (w *world) another(requirement, kind, name string) {
	w.tb.Helper()
	if w.req.RequiredResources == nil {
		w.req.RequiredResources = map[string]*fnv1.Resources{}
	}
	w.req.RequiredResources[requirement] = fixture.Resources(w.tb, fmt.Sprintf(
		"{apiVersion: v1, kind: %s, metadata: {name: %s, namespace: team, ownerReferences: [{kind: InferenceService, name: other, uid: other, controller: true}]}}", kind, name))
}

// setKeys are the keys of the gangs and the sets of a response.
func setKeys(rsp *fnv1.RunFunctionResponse) string {
	var all []string
	for _, key := range fixture.Keys(rsp.GetDesired().GetResources()) {
		if strings.HasPrefix(key, "leaderworkerset/") || strings.HasPrefix(key, "podgroup") {
			all = append(all, strings.TrimPrefix(key, "leaderworkerset/"))
		}
	}
	return strings.Join(all, " ")
}

// TestNameTaken scales a service to a replica whose name another service has, and then rolls out a new image. Everything else goes on.
func TestNameTaken(t *testing.T) {
	worker := func(n int, image, more string) string {
		return fmt.Sprintf("roles: [{name: w, componentType: worker, replicas: %d, template: {spec: {containers: [{name: engine, image: %s, command: [vllm, serve, /m]}]}}}]\n%s", n, image, more)
	}
	multinode := func(n int, image, more string) string {
		return strings.Replace(worker(n, image, more), "componentType: worker,", "componentType: worker, multinode: {nodeCount: 2},", 1)
	}
	const lws, pg = "LeaderWorkerSet", "PodGroup"
	const exists = `: already exists and belongs to InferenceService "other"; give `
	cases := map[string]struct {
		reason string
		// spec of two and of three replicas or groups, with an image.
		spec func(n int, image, more string) string
		// more of the spec during the rollout.
		more string
		// taken names, by the keys of the requirements: each a kind and a name.
		taken map[string][2]string
		// scaled and rolled are the sets after scaling out, and after the rollout.
		scaled, rolled string
		// want of the condition WorkloadsReady.
		want string
	}{
		"Replica": {
			reason: "One replica is left out.", spec: worker,
			taken:  map[string][2]string{"existing/leaderworkerset/w/2": {lws, "chat-w-2"}},
			scaled: "w/0 w/1", rolled: "w/0 w/1",
			want: `NameConflict: spec.roles[0].name: Invalid value: "LeaderWorkerSet chat-w-2"` + exists + "this role or this service another name",
		},
		"Service": {
			reason: "LeaderWorkerSet would use the Service of another one.", spec: worker,
			taken:  map[string][2]string{"headless/leaderworkerset/w/2": {"Service", "chat-w-2"}},
			scaled: "w/0 w/1", rolled: "w/0 w/1",
			want: `NameConflict: spec.roles[0].name: Invalid value: "LeaderWorkerSet chat-w-2": needs a Service of its own name for its pods, and another Service has that name; give this role or this service another name`,
		},
		"Workers": {
			reason: "The workers of the replica would have the name of another's LeaderWorkerSet. The gang counts what runs.", spec: multinode,
			taken:  map[string][2]string{"below/leaderworkerset/w/2": {lws, "chat-w-2-0"}},
			scaled: "w/0 w/1 podgroup", rolled: "w/0 w/1 podgroup",
			want: `NameConflict: spec.roles[0].name: Invalid value: "LeaderWorkerSet chat-w-2": needs a StatefulSet for its workers that has the name of LeaderWorkerSet chat-w-2-0; give this role or this service another name`,
		},
		"Group": {
			reason: "A group is left out as a whole, because its roles need each other.",
			spec:   groups,
			taken:  map[string][2]string{"existing/leaderworkerset/2/p/0": {lws, "chat-2-p-0"}},
			scaled: "0/d/0 0/p/0 1/d/0 1/p/0 podgroup/0 podgroup/1", rolled: "0/d/0 0/p/0 1/d/0 1/p/0 podgroup/0 podgroup/1",
			want: `NameConflict: spec.roles[0].name: Invalid value: "LeaderWorkerSet chat-2-p-0"` + exists + "this role or this service another name",
		},
		"Gang": {
			reason: "A group without a gang of its own would start in that of another service.",
			spec:   groups,
			taken:  map[string][2]string{"existing/podgroup/2": {pg, "chat-2"}},
			scaled: "0/d/0 0/p/0 1/d/0 1/p/0 podgroup/0 podgroup/1", rolled: "0/d/0 0/p/0 1/d/0 1/p/0 podgroup/0 podgroup/1",
			want: `NameConflict: metadata.name: Invalid value: "PodGroup chat-2"` + exists + "this service another name",
		},
		"Surge": {
			reason: "An extra replica is left out, and the others are replaced without it.", spec: func(n int, image, more string) string { return worker(min(n, 2), image, more) },
			more:   "rollout: {maxSurge: 1, maxUnavailable: 1}\n",
			taken:  map[string][2]string{"existing/leaderworkerset/w/2": {lws, "chat-w-2"}},
			scaled: "w/0 w/1", rolled: "w/0 w/1",
			want: "AllReady: ",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.spec(2, "v1", ""))
			w.steps(6)
			for requirement, o := range tc.taken {
				w.another(requirement, o[0], o[1])
			}
			w.edit(tc.spec(3, "v1", ""))
			w.steps(3)
			rsp := w.step()
			if got := setKeys(rsp); got != tc.scaled {
				t.Errorf("%s Want %s, got %s", tc.reason, tc.scaled, got)
			}
			if got := conditionOf(rsp, "WorkloadsReady"); got != tc.want {
				t.Errorf("want WorkloadsReady %q, got %q", tc.want, got)
			}
			if got := conditionOf(rsp, "RolledOut"); strings.Contains(got, "somebody else has") != (tc.more == "") {
				t.Errorf("want RolledOut to say which replicas wait for names, got %q", got)
			}
			// Crossplane calls again until the requirements stay the same.
			before := proto.Clone(w.req).(*fnv1.RunFunctionRequest)
			maps.DeleteFunc(before.GetRequiredResources(), func(k string, _ *fnv1.Resources) bool { _, taken := tc.taken[k]; return taken })
			if diff := cmp.Diff(w.fn.Run(t, before).GetRequirements(), w.fn.Run(t, w.req).GetRequirements(), protocmp.Transform()); diff != "" {
				t.Errorf("the requirements depend on what they find. -before +after:\n%s", diff)
			}
			fewest, last := w.rollOut(tc.spec(3, "v2", tc.more))
			if images := w.images(); strings.Contains(images, "v1") || fewest < len(w.sets)/2 {
				t.Errorf("want all sets with the newest image, and half of them serving: got %s, and %d", images, fewest)
			}
			if got := setKeys(last); got != tc.rolled {
				t.Errorf("after the rollout: want %s, got %s", tc.rolled, got)
			}
			maps.DeleteFunc(w.req.RequiredResources, func(k string, _ *fnv1.Resources) bool { _, taken := tc.taken[k]; return taken })
			w.steps(6)
			if got := conditionOf(w.step(), "WorkloadsReady"); got != "AllReady: " {
				t.Errorf("the name is free: want AllReady, got %q", got)
			}
		})
	}
}

// TestBudgetTaken scales a role to a second replica, and so to a PodDisruptionBudget whose name another service has. The replicas run
// without it, and a warning says so.
func TestBudgetTaken(t *testing.T) {
	const budget = "poddisruptionbudget/role/w"
	first := newWorld(t, fmt.Sprintf(oneRole, "replicas: 2"))
	first.another("existing/"+budget, "PodDisruptionBudget", "chat-w-engines")
	if got := fixture.Condition(first.fn.Run(t, first.req), "Accepted"); got != "FALSE NameConflict" {
		t.Errorf("before anything runs: want a refusal, got %s", got)
	}
	w := newWorld(t, fmt.Sprintf(oneRole, "scaling: {maxReplicas: 5}"))
	w.apply()
	w.apply()
	w.another("existing/"+budget, "PodDisruptionBudget", "chat-w-engines")
	w.scale("w", 2)
	w.apply()
	w.apply()
	rsp := w.apply()
	got := []any{setsOf(rsp, "w"), rsp.GetDesired().GetResources()[budget] != nil, conditionOf(rsp, "NoWarnings"), conditionOf(rsp, "WorkloadsReady"), rsp.GetDesired().GetComposite().GetReady()}
	want := []any{2, false, `Suspicious: metadata.name: PodDisruptionBudget chat-w-engines is left out. It already exists and belongs to InferenceService "other"; give this service another name`, "AllReady: ", fnv1.Ready_READY_UNSPECIFIED}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	delete(w.req.RequiredResources, "existing/"+budget)
	if rsp := w.apply(); rsp.GetDesired().GetResources()[budget] == nil {
		t.Error("the name is free: want the PodDisruptionBudget")
	}
}

// TestBudgetTakenElsewhere gives the PodDisruptionBudget of a role in another cluster to another controller there. Its Object stays: without
// it, provider-kubernetes would delete what belongs to somebody else, and the next call would make it again.
func TestBudgetTakenElsewhere(t *testing.T) {
	const budget = "cluster/east/poddisruptionbudget/role/w"
	w := newWorld(t, fmt.Sprintf(oneRole, "replicas: 2")+"placement: {clusters: [{name: east, namespace: team, providerConfigRef: {name: one}}]}\n")
	w.req.Input = fixture.YAML(t, `{apiVersion: fn.fusioninfer.io/v1alpha1, kind: Input, allowedProviderConfigs: [{name: one, namespaces: ["*"]}]}`)
	w.req.RequiredResources = map[string]*fnv1.Resources{require.Configs: {}}
	fixture.Observe(w.req, w.fn.Run(t, w.req))
	there := w.req.GetObserved().GetResources()[budget].GetResource()
	if there == nil {
		t.Fatal("there is no PodDisruptionBudget")
	}
	there.Fields["status"] = structpb.NewStructValue(fixture.YAML(t, `{atProvider: {manifest: {apiVersion: policy/v1, kind: PodDisruptionBudget,
		metadata: {name: taken, ownerReferences: [{apiVersion: v1, kind: Operator, name: other, uid: u, controller: true}]}}}}`))
	rsp := w.fn.Run(t, w.req)
	got := []any{fixture.Fatals(rsp), rsp.GetDesired().GetResources()[budget] != nil, conditionOf(rsp, "NoWarnings")}
	want := []any{"", true, `Suspicious: spec.placement.clusters[east]: PodDisruptionBudget taken there belongs to Operator "other": give this service another name, or delete what is there`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestOwnWorkersName takes a role from two nodes to one, and adds a role whose first replica has the name of the workers' StatefulSet that
// goes. Both LeaderWorkerSets would write into it, so the new one follows once the other runs on one node.
func TestOwnWorkersName(t *testing.T) {
	const (
		first = "{name: w, componentType: worker, %s template: {spec: {containers: [{name: engine, image: v1, command: [vllm, serve, /m]}]}}}"
		added = "{name: w-0, componentType: worker, replicas: 2, template: {spec: {containers: [{name: engine, image: v1, command: [vllm, serve, /m]}]}}}"
		next  = "leaderworkerset/w-0/0"
	)
	size := func(rsp *fnv1.RunFunctionResponse) float64 {
		set := rsp.GetDesired().GetResources()["leaderworkerset/w/0"].GetResource()
		if kube.Lookup(set, "spec", "rolloutStrategy", "rollingUpdateConfiguration", "partition").GetNumberValue() > 0 {
			return 2
		}
		return kube.Lookup(set, "spec", "leaderWorkerTemplate", "size").GetNumberValue()
	}
	w := newWorld(t, "roles: ["+fmt.Sprintf(first, "multinode: {nodeCount: 2},")+"]\n")
	w.steps(4)
	w.edit("roles: [" + fmt.Sprintf(first, "") + ", " + added + "]\n")
	var last *fnv1.RunFunctionResponse
	for range 12 {
		before := w.sets["leaderworkerset/w/0"].size
		last = w.step()
		if last.GetDesired().GetResources()[next] != nil && (before > 1 || size(last) > 1) {
			t.Fatalf("%s is there while the pods of w/0 have workers", next)
		}
	}
	got := []any{setKeys(last), size(last), conditionOf(last, "WorkloadsReady")}
	if diff := cmp.Diff([]any{"w-0/0 w-0/1 w/0", 1.0, "AllReady: "}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestNameTakenElsewhere scales a service in another cluster to a replica whose Object another service has.
func TestNameTakenElsewhere(t *testing.T) {
	const third = "cluster/east/leaderworkerset/w/2"
	spec := func(n int) string {
		return fmt.Sprintf(oneRole, fmt.Sprintf("replicas: %d", n)) + "placement: {clusters: [{name: east, namespace: team, providerConfigRef: {name: one}}]}\n"
	}
	w := newWorld(t, spec(2))
	w.req.Input = fixture.YAML(t, `{apiVersion: fn.fusioninfer.io/v1alpha1, kind: Input, allowedProviderConfigs: [{name: one, namespaces: ["*"]}]}`)
	w.req.RequiredResources = map[string]*fnv1.Resources{require.Configs: {}}
	fixture.Observe(w.req, w.fn.Run(t, w.req))
	w.edit(spec(3))
	name := kube.Lookup(w.fn.Run(t, w.req).GetDesired().GetResources()[third].GetResource(), "metadata", "name").GetStringValue()
	w.another("existing/"+third, "Object", name)
	rsp := w.fn.Run(t, w.req)
	got := []any{fixture.Fatals(rsp), rsp.GetDesired().GetResources()[third] != nil, conditionOf(rsp, "WorkloadsReady")}
	want := []any{"", false, `NameConflict: cluster east: spec.roles[0].name: Invalid value: "Object ` + name + `": already exists and belongs to InferenceService "other"; give this role or this service another name`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
