package workload

import "google.golang.org/protobuf/types/known/structpb"

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
