package codec

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
)

// deep returns a Struct with values that are nested n deep, in objects or in lists.
func deep(n int, lists bool) *structpb.Struct {
	v := structpb.NewNullValue()
	for range n {
		if lists {
			v = structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{v}})
		} else {
			v = structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{"a": v}})
		}
	}
	return &structpb.Struct{Fields: map[string]*structpb.Value{"spec": v}}
}

func depth(v *structpb.Value) int {
	switch t := v.GetKind().(type) {
	case *structpb.Value_StructValue:
		for _, e := range t.StructValue.GetFields() {
			return 1 + depth(e)
		}
	case *structpb.Value_ListValue:
		for _, e := range t.ListValue.GetValues() {
			return 1 + depth(e)
		}
	}
	return 0
}

// TestDeep shows that the function can refuse a user's document that is nested too deep.
// Without the codec, gRPC would fail without a path. The desired state of other functions is
// not cut.
func TestDeep(t *testing.T) {
	for name, lists := range map[string]bool{"Lists": true, "Objects": false} {
		t.Run(name, func(t *testing.T) {
			for _, n := range []int{100, 4000, 20_000} {
				b, err := proto.Marshal(&fnv1.RunFunctionRequest{Observed: &fnv1.State{Composite: &fnv1.Resource{Resource: deep(n, lists)}}})
				if err != nil {
					t.Fatal(err)
				}
				req := &fnv1.RunFunctionRequest{}
				if err := unmarshal(string(b), req); err != nil {
					t.Fatalf("%d deep: %v", n, err)
				}
				if got := depth(req.GetObserved().GetComposite().GetResource().GetFields()["spec"]); got > cutDepth || got < min(n, cutDepth-1) {
					t.Errorf("a document %d deep was decoded as %d deep", n, got)
				}
			}
		})
	}
	b, err := proto.Marshal(&fnv1.RunFunctionRequest{Desired: &fnv1.State{Composite: &fnv1.Resource{Resource: deep(2000, true)}}})
	if err != nil {
		t.Fatal(err)
	}
	req := &fnv1.RunFunctionRequest{}
	if err := unmarshal(string(b), req); err != nil {
		t.Fatal(err)
	}
	if got := depth(req.GetDesired().GetComposite().GetResource().GetFields()["spec"]); got != 2000 {
		t.Errorf("the desired state of another function was 2000 deep, and is %d", got)
	}
}
