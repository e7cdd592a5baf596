package workload

import (
	"slices"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

// The template of a request is shared and must not change. These functions copy what they
// change, and nothing else.

// child replaces the object in a field by a copy, which the caller may change. It adds an empty
// object if there is none.
func child(of *structpb.Struct, field string) *structpb.Struct {
	c := kube.Copy(of.GetFields()[field].GetStructValue())
	of.Fields[field] = structpb.NewStructValue(c)
	return c
}

// elements returns the list in a field, or nil. It is shared.
func elements(of *structpb.Struct, field string) []*structpb.Value {
	return of.GetFields()[field].GetListValue().GetValues()
}

// set sets the list in a field. It removes the field if the list is empty.
func set(of *structpb.Struct, field string, list []*structpb.Value) {
	if len(list) == 0 {
		delete(of.GetFields(), field)
		return
	}
	of.Fields[field] = structpb.NewListValue(&structpb.ListValue{Values: list})
}

// add appends an element to the list in a field.
func add(of *structpb.Struct, field string, element any) error {
	v, err := kube.EncodeValue(element)
	if err != nil {
		return err
	}
	set(of, field, append(slices.Clip(elements(of, field)), v))
	return nil
}

// at returns the object at an index of a list, or nil.
func at(list []*structpb.Value, i int) *structpb.Struct {
	if i >= len(list) {
		return nil
	}
	return list[i].GetStructValue()
}

// is tells whether a value is the number.
func is(v *structpb.Value, number int32) bool {
	n, ok := v.GetKind().(*structpb.Value_NumberValue)
	return ok && n.NumberValue == float64(number)
}

func number(n int32) *structpb.Value { return structpb.NewNumberValue(float64(n)) }
