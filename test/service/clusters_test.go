package service

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/service/require"
	"github.com/fusioninfer/function-inferenceservice/test/fixture"
	"github.com/fusioninfer/function-inferenceservice/test/function"
)

// TestClustersAreReplaced shows that an edit of the clusters outside the fleet takes away nothing that
// serves before something else does.
func TestClustersAreReplaced(t *testing.T) {
	in := func(replicas int, clusters string) string {
		spec := "roles:\n" + roleOf("w", "worker", replicas, "v1")
		if clusters != "" {
			spec += "placement: {clusters: [" + clusters + "]}\n"
		}
		return spec
	}
	const (
		east = "{name: east, namespace: a, providerConfigRef: {name: one}}"
		west = "{name: west, namespace: a, providerConfigRef: {name: two}}"
	)
	scaled := func(clusters string) string {
		return strings.Replace(in(4, clusters), "replicas: 4", "scaling: {minReplicas: 2, maxReplicas: 4}", 1)
	}
	// both is a service in two clusters with these roles.
	both := func(roles string) string {
		return "roles:\n" + roles + "placement: {clusters: [" + east + "," + west + "]}\n"
	}
	former, next := roleOf("w", "worker", 4, "v1"), roleOf("new", "worker", 2, "v1")
	cases := map[string]struct {
		reason string
		// steps are the specs one after the other. What they make gets ready, but for the clusters of down, or
		// the role of it there.
		steps   []string
		down    string
		role    string
		refused string
	}{
		"Renamed": {
			reason: "All replicas would go at once.", steps: []string{in(4, east), in(4, west)},
			refused: "spec.placement.clusters: Forbidden: must keep clusters that serve requests until another one does. Removed: east. Not ready: west. To move at once, set the replicas of all roles to 0 first",
		},
		"RenamedScaled": {
			reason: "An InferenceRole has the number, and its limits keep it above 0.", steps: []string{scaled(east), scaled(west)},
			refused: "Not ready: west. To move at once, set the replicas of all roles to 0 first, in place of scaling",
		},
		"LeavesItsOwn": {
			reason: "So would they beside the service.", steps: []string{in(4, ""), in(4, east)},
			refused: "Removed: the control plane's cluster. Not ready: east.",
		},
		"Returns": {
			reason: "And in the other direction.", steps: []string{in(4, east), in(4, "")},
			refused: "Removed: east. Not ready: the control plane's cluster.",
		},
		"NotReady":      {reason: "The second cluster does not serve.", steps: []string{in(4, east), in(4, east+","+west), in(4, west)}, down: "west", refused: "Removed: east. Not ready: west."},
		"OneByOne":      {reason: "The second cluster serves when the first one goes.", steps: []string{in(4, east), in(4, east+","+west), in(4, west)}},
		"Stopped":       {reason: "The user has stopped it before.", steps: []string{in(4, east), in(0, east), in(4, west)}},
		"StoppedScaled": {reason: "So has the user here.", steps: []string{scaled(east), in(0, east), scaled(west)}},
		"NotServing":    {reason: "It does not serve.", steps: []string{in(4, east), in(4, west)}, down: "east"},
		"RoleOfOne": {
			reason: "The new role does not serve in the west, where the former one does.", steps: []string{both(former), both(former + next), both(next)}, down: "west", role: "new",
			refused: "spec.roles: Forbidden: must keep roles that serve requests until the others do. Removed: w. Not ready: new in west. To remove a role at once, set its replicas to 0 first",
		},
		"RoleOfBoth": {reason: "It serves in both.", steps: []string{both(former), both(former + next), both(next)}},
		"RoleOfNone": {reason: "The former role serves in the east only, as the new one does.", steps: []string{both(former), both(former + next), both(next)}, down: "west"},
	}
	fn := function.Start(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := fixture.Request(t, fixture.Service(tc.steps[0]), `{apiVersion: fn.fusioninfer.io/v1alpha1, kind: Input, allowedProviderConfigs: [{name: one, namespaces: ["*"]}, {name: two, namespaces: ["*"]}]}`)
			req.RequiredResources = map[string]*fnv1.Resources{require.Configs: {}}
			refused := ""
			for _, spec := range tc.steps {
				req.Observed.Composite.Resource = fixture.YAML(t, fixture.Service(spec))
				for range 2 {
					rsp := fn.Run(t, req)
					if refused = fixture.Fatals(rsp); refused != "" {
						break
					}
					req.Observed.Resources = map[string]*fnv1.Resource{} // Crossplane deletes what is left out.
					fixture.Observe(req, rsp)
					fixture.MakeReady(t, req)
					for key, r := range req.GetObserved().GetResources() {
						down := tc.down
						if !strings.Contains(key, tc.role) {
							down = ""
						}
						r.Resource = reported(t, r.GetResource(), down)
					}
				}
			}
			if !strings.Contains(refused, tc.refused) || refused != "" && tc.refused == "" {
				t.Errorf("%s\ngot %q, want %q", tc.reason, refused, tc.refused)
			}
		})
	}
}

// TestRoleAloneInCluster removes a role from a service that is spread over the fleet, while one cluster
// runs no other role. Gateways send requests there until the fleet route has left the cluster. Without one, clients do.
func TestRoleAloneInCluster(t *testing.T) {
	for name, fleet := range map[string]string{"FleetRoute": "{parentRefs: [{name: hub}]}", "NoFleetRoute": "{}"} {
		t.Run(name, func(t *testing.T) { testRoleAloneInCluster(t, fleet) })
	}
}

func testRoleAloneInCluster(t *testing.T, fleet string) {
	t.Helper()
	fn := function.Start(t)
	const router = `- {name: r, componentType: router, httproute: {parentRefs: [{name: gw}], hostnames: [h.example.com]}}` + "\n"
	input := fmt.Sprintf(`{apiVersion: fn.fusioninfer.io/v1alpha1, kind: Input, fleet: %s, routes: {allowedHostnames: ["*"]}}`, fleet)
	spec := func(roles string) string {
		return "roles:\n" + router + roles + "placement: {policy: Spread, clusterSelector: {}}\n"
	}
	both := roleOf("a", "worker", 1, "v1") + roleOf("b", "worker", 1, "v1")
	member := func(name, role string, reserved bool) string {
		reservations := ""
		if reserved {
			reservations = fmt.Sprintf("{uid: me, namespace: team, name: chat, replicas: [{role: %s, indexes: [0], generation: 1}]}", role)
		}
		return fmt.Sprintf(`{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceCluster, metadata: {name: %s}, spec: {providerConfigRef: {name: %[1]s}, pools: []},
		  status: {pools: [{name: p, nodeCount: 9, free: [{nodeCount: 9}]}], reservations: [%s]}}`, name, reservations)
	}
	req := fixture.Request(t, fixture.Service(spec(both)), input)
	steps := []struct {
		spec, refused string
		want          []string
	}{
		{spec(both), "", nil},
		{spec(both), "", []string{"us-east", "us-west"}},
		{spec(both), "", []string{"us-east", "us-west"}},
		{spec(roleOf("a", "worker", 1, "v1")), "Removed: b. Not ready: any other role in us-east. To remove a role at once, set its replicas to 0 first", []string{"us-east", "us-west"}},
		{spec(both), "", []string{"us-east", "us-west"}},
	}
	for i, s := range steps {
		req.Observed.Composite.Resource = kube.With(req.GetObserved().GetComposite().GetResource(), kube.Lookup(fixture.YAML(t, fixture.Service(s.spec)), "spec"), "spec")
		rsp, _ := fixture.Reconcile(t, fn, req, map[string][]string{"fleet": {member("us-east", "b", i > 0), member("us-west", "a", i > 0)}})
		if got := fixture.Fatals(rsp); !strings.Contains(got, s.refused) || got != "" && s.refused == "" {
			t.Fatalf("step %d: got %q, want %q", i, got, s.refused)
		} else if got != "" {
			continue
		}
		if diff := cmp.Diff(s.want, remoteClusters(rsp)); diff != "" {
			t.Fatalf("step %d: -want +got:\n%s", i, diff)
		}
		maps.DeleteFunc(req.GetObserved().GetResources(), func(k string, _ *fnv1.Resource) bool { return rsp.GetDesired().GetResources()[k] == nil })
		fixture.Observe(req, rsp)
		for k, r := range req.GetObserved().GetResources() {
			req.Observed.Resources[k] = &fnv1.Resource{Resource: readyThere(t, r.GetResource())}
		}
		req.Observed.Composite.Resource = kube.With(req.GetObserved().GetComposite().GetResource(), kube.Lookup(rsp.GetDesired().GetComposite().GetResource(), "status"), "status")
	}
}

// reported gives an Object that carries a LeaderWorkerSet the status of one whose pods are ready. They
// are not in the cluster that is down.
func reported(tb testing.TB, o *structpb.Struct, down string) *structpb.Struct {
	tb.Helper()
	manifest := kube.Lookup(o, "spec", "forProvider", "manifest").GetStructValue()
	if kube.Lookup(manifest, "kind").GetStringValue() != "LeaderWorkerSet" {
		return o
	}
	status := "observedGeneration: 1\nreadyReplicas: 1\nupdatedReplicas: 1\nconditions: [{type: Available, status: \"True\"}]"
	if ref := kube.Lookup(o, "spec", "providerConfigRef", "name").GetStringValue(); down != "" && (ref == "one") == (down == "east") {
		status = "observedGeneration: 1\nconditions: [{type: Available, status: \"False\"}]"
	}
	found := kube.With(manifest, structpb.NewNumberValue(1), "metadata", "generation")
	found = kube.With(found, structpb.NewStructValue(fixture.YAML(tb, status)), "status")
	o = kube.With(o, structpb.NewStructValue(fixture.YAML(tb, `conditions: [{type: Ready, status: "True"}, {type: Synced, status: "True"}]`)), "status")
	return kube.With(o, structpb.NewStructValue(found), "status", "atProvider", "manifest")
}
