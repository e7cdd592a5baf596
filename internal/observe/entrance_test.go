package observe

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/plan"
)

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
	w := World(&fnv1.RunFunctionRequest{Observed: &fnv1.State{Resources: map[string]*fnv1.Resource{
		plan.SlicePrefix + "east": {Resource: slice},
		plan.SlicePrefix + "west": {Resource: &structpb.Struct{}},
	}}}, time.Time{})
	if diff := cmp.Diff(map[string]*v1alpha1.GatewayStatus{"east": {Address: "10.1.0.10", Port: 80}}, w.Entrances); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
