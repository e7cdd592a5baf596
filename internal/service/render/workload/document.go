package workload

import "google.golang.org/protobuf/types/known/structpb"

// objectAt returns the object at an index of a list, or nil.
func objectAt(list []*structpb.Value, i int) *structpb.Struct {
	if i >= len(list) {
		return nil
	}
	return list[i].GetStructValue()
}

// isNumber tells whether a value is the number.
func isNumber(v *structpb.Value, number int32) bool {
	n, ok := v.GetKind().(*structpb.Value_NumberValue)
	return ok && n.NumberValue == float64(number)
}

func number(n int32) *structpb.Value { return structpb.NewNumberValue(float64(n)) }
