package observe

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/types/known/structpb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/plan"
	"github.com/fusioninfer/function-inferenceservice/internal/require"
)

// TestWorldIsLeftAlone proves that nothing is looked at of a service that was never
// placed in the fleet, and all of one that still asks it for room.
func TestWorldIsLeftAlone(t *testing.T) {
	set, err := structpb.NewStruct(map[string]any{"kind": "LeaderWorkerSet", "status": map[string]any{"readyReplicas": 1}})
	if err != nil {
		t.Fatal(err)
	}
	observed := map[string]*fnv1.Resource{"leaderworkerset/worker/0": {Resource: set}}
	req := &fnv1.RunFunctionRequest{Observed: &fnv1.State{Resources: observed}}
	if diff := cmp.Diff(plan.World{}, World(req, &v1alpha1.InferenceServiceSpec{}, time.Time{})); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	observed[plan.AskKey] = &fnv1.Resource{Resource: &structpb.Struct{}}
	if w := World(req, &v1alpha1.InferenceServiceSpec{}, time.Time{}); w.Places[""] == nil || !w.Places[""].Ready["worker/0"] {
		t.Errorf("the replica beside the XR is not known: %+v", w.Places)
	}
}

// TestEntrances proves that the addresses to which the route over all clusters leads are
// remembered by its slices.
func TestEntrances(t *testing.T) {
	slice := &structpb.Struct{}
	if err := slice.UnmarshalJSON([]byte(`{
		"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": {"name": "llama-at-east-0", "namespace": "team-a", "uid": "u"},
		"addressType": "IPv4", "endpoints": [{"addresses": ["10.1.0.10"], "conditions": {"ready": true}}], "ports": [{"name": "http", "port": 80, "protocol": "TCP"}]
	}`)); err != nil {
		t.Fatal(err)
	}
	slice6 := &structpb.Struct{}
	if err := slice6.UnmarshalJSON([]byte(`{"addressType": "IPv6", "endpoints": [{"addresses": ["2001:db8::10"]}], "ports": [{"port": 8080}]}`)); err != nil {
		t.Fatal(err)
	}
	inFleet := &v1alpha1.InferenceServiceSpec{Placement: &v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}}}
	w := World(&fnv1.RunFunctionRequest{Observed: &fnv1.State{Resources: map[string]*fnv1.Resource{
		plan.SlicePrefix + "east": {Resource: slice},
		plan.SlicePrefix + "west": {Resource: &structpb.Struct{}},
		// Its address was of the other family before, or is of it from now on.
		plan.SlicePrefix6 + "east":  {Resource: slice6},
		plan.SlicePrefix6 + "south": {Resource: slice6},
	}}}, inFleet, time.Time{})
	if diff := cmp.Diff(map[string]*v1alpha1.GatewayStatus{"east": {Address: "10.1.0.10", Port: 80}, "south": {Address: "2001:db8::10", Port: 8080}}, w.Entrances); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestRouted proves that requests are led to new clusters, and away from old ones, only by gateways
// that have all taken the route up as it is.
func TestRouted(t *testing.T) {
	const route = `{
		"metadata": {"namespace": "team-a", "generation": 7},
		"spec": {
			"parentRefs": [{"name": "a", "namespace": "hub"}, {"name": "b"}],
			"rules": [{"backendRefs": [{"name": "old", "weight": 0}, {"name": "new", "weight": 2}]}]
		},
		"status": {"parents": [%s]}
	}`
	says := func(ref, status string, generation int) string {
		return fmt.Sprintf(`{"parentRef": %s, "conditions": [{"type": "Accepted", "status": %q, "observedGeneration": %d}]}`, ref, status, generation)
	}
	a, b := `{"name": "a", "namespace": "hub"}`, `{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "b", "namespace": "team-a"}`
	all := map[string]bool{"old": true, "new": true}
	now := map[string]bool{"new": true}
	cases := map[string]struct {
		reason     string
		parents    string
		leads, may map[string]bool
	}{
		"All":     {"Both have it.", says(a, "True", 7) + "," + says(b, "True", 7), now, now},
		"One":     {"The other may still lead to what was there before.", says(a, "True", 7) + "," + says(b, "True", 6), nil, all},
		"Refused": {"It does not lead there.", says(a, "True", 7) + "," + says(b, "False", 7), nil, all},
		"Absent":  {"It has said nothing yet.", says(a, "True", 7), nil, all},
		"Former":  {"What was a parent before counts for none.", says(a, "True", 7) + "," + says(`{"name": "c"}`, "True", 7), nil, all},
		"None":    {"Nobody has said anything.", "", nil, all},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := &structpb.Struct{}
			if err := s.UnmarshalJSON(fmt.Appendf(nil, route, tc.parents)); err != nil {
				t.Fatal(err)
			}
			leads, may := routed(s)
			if diff := cmp.Diff([]map[string]bool{tc.leads, tc.may}, []map[string]bool{leads, may}, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// An XR's references to what is composed are its owner's to edit. The ask is found without.
func TestWorldFindsAsk(t *testing.T) {
	ask := func(uid string) *structpb.Struct {
		s := &structpb.Struct{}
		if err := s.UnmarshalJSON([]byte(`{"metadata": {"ownerReferences": [{"uid": "` + uid + `", "controller": true}]}, "data": {"ask": "{\"uid\":\"u\",\"namespace\":\"n\",\"name\":\"s\"}"}}`)); err != nil {
			t.Fatal(err)
		}
		return s
	}
	xr := &structpb.Struct{}
	if err := xr.UnmarshalJSON([]byte(`{"metadata": {"uid": "u"}}`)); err != nil {
		t.Fatal(err)
	}
	spec := &v1alpha1.InferenceServiceSpec{Placement: &v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}}}
	for uid, want := range map[string]bool{"u": true, "another": false} {
		w := World(&fnv1.RunFunctionRequest{
			Observed:          &fnv1.State{Composite: &fnv1.Resource{Resource: xr}},
			RequiredResources: map[string]*fnv1.Resources{require.Existing(plan.AskKey): {Items: []*fnv1.Resource{{Resource: ask(uid)}}}},
		}, spec, time.Time{})
		if got := w.Ask != nil; got != want {
			t.Errorf("an ask that %s controls is the service's: %t, want %t", uid, got, want)
		}
	}
}
