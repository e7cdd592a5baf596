package oracle

import (
	"math"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/test/fixture"
)

// wrongValues are the values that mutations insert. Each is wrong for most fields.
func wrongValues() []*structpb.Value {
	return []*structpb.Value{
		structpb.NewNullValue(),
		structpb.NewStringValue(""),
		structpb.NewStringValue("x"),
		structpb.NewNumberValue(0),
		structpb.NewNumberValue(-1),
		structpb.NewNumberValue(3),
		structpb.NewNumberValue(2e9),
		structpb.NewNumberValue(1.5),
		structpb.NewBoolValue(true),
		structpb.NewStructValue(&structpb.Struct{}),
		structpb.NewListValue(&structpb.ListValue{}),
		structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{structpb.NewNullValue()}}),
		structpb.NewStringValue(strings.Repeat("a", 64)),
		structpb.NewStringValue("$(X) '\"\n"),
		structpb.NewStringValue("None"),
		structpb.NewStringValue("MinimumFirst"),
		structpb.NewStringValue("VLLM"),
		structpb.NewStringValue("router"),
		structpb.NewStringValue("decoder"),
		structpb.NewStringValue("1e300000000"),
		structpb.NewNumberValue(math.NaN()),
		longList(structpb.NewNullValue()),
		longList(structpb.NewStructValue(&structpb.Struct{})),
	}
}

// longList returns a list that is longer than any list may be.
func longList(of *structpb.Value) *structpb.Value {
	return structpb.NewListValue(&structpb.ListValue{Values: slices.Repeat([]*structpb.Value{of}, 2000)})
}

// Mutate replaces one value of the request's XR, Input or observed objects by a wrong one.
func Mutate(req *fnv1.RunFunctionRequest, index int, with uint8) {
	roots := []*structpb.Struct{req.GetObserved().GetComposite().GetResource(), req.GetInput()}
	for _, k := range fixture.Keys(req.GetObserved().GetResources()) {
		roots = append(roots, req.GetObserved().GetResources()[k].GetResource())
	}
	var set []func(*structpb.Value)
	for _, r := range roots {
		collect(structpb.NewStructValue(r), &set)
	}
	if len(set) > 0 {
		values := wrongValues()
		set[index%len(set)](values[int(with)%len(values)])
	}
}

func collect(v *structpb.Value, set *[]func(*structpb.Value)) {
	if s := v.GetStructValue(); s != nil {
		for _, k := range fixture.Keys(s.GetFields()) {
			*set = append(*set, func(w *structpb.Value) { s.Fields[k] = w })
			collect(s.GetFields()[k], set)
		}
	}
	if l := v.GetListValue(); l != nil {
		for i, e := range l.GetValues() {
			*set = append(*set, func(w *structpb.Value) { l.Values[i] = w })
			collect(e, set)
		}
	}
}
