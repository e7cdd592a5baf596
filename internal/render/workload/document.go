package workload

import (
	"slices"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

// A template that comes with a request is shared and never changed. These
// functions copy what is about to be changed, and nothing else.

// child puts a copy of the object in a field into its place, and returns it to
// be changed. The object is made if it is missing.
func child(of *structpb.Struct, field string) *structpb.Struct {
	c := kube.Copy(of.GetFields()[field].GetStructValue())
	of.Fields[field] = structpb.NewStructValue(c)
	return c
}

// elements returns the list in a field, or nil. It is shared.
func elements(of *structpb.Struct, field string) []*structpb.Value {
	return of.GetFields()[field].GetListValue().GetValues()
}

// set puts a list into a field, and leaves an empty one out.
func set(of *structpb.Struct, field string, list []*structpb.Value) {
	if len(list) == 0 {
		delete(of.GetFields(), field)
		return
	}
	of.Fields[field] = structpb.NewListValue(&structpb.ListValue{Values: list})
}

// add appends something to the list in a field.
func add(of *structpb.Struct, field string, something any) error {
	v, err := kube.EncodeValue(something)
	if err != nil {
		return err
	}
	set(of, field, append(slices.Clip(elements(of, field)), v))
	return nil
}

// at returns an object that is an element of a list, or nil.
func at(list []*structpb.Value, i int) *structpb.Struct {
	if i >= len(list) {
		return nil
	}
	return list[i].GetStructValue()
}

// is tells whether a value is this number.
func is(v *structpb.Value, number int32) bool {
	n, ok := v.GetKind().(*structpb.Value_NumberValue)
	return ok && n.NumberValue == float64(number)
}

func number(n int32) *structpb.Value { return structpb.NewNumberValue(float64(n)) }
