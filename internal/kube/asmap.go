package kube

import (
	"math"

	"google.golang.org/protobuf/types/known/structpb"
)

// AsMap converts a Struct into the types of a YAML parser: map[string]any, []any, string, bool,
// int64 for whole numbers, float64 and nil.
func AsMap(s *structpb.Struct) map[string]any {
	m := make(map[string]any, len(s.GetFields()))
	for k, v := range s.GetFields() {
		m[k] = asAny(v)
	}
	return m
}

func asAny(v *structpb.Value) any {
	switch t := v.GetKind().(type) {
	case *structpb.Value_StringValue:
		return t.StringValue
	case *structpb.Value_NumberValue:
		if i, ok := wholeNumber(t.NumberValue); ok {
			return i
		}
		return t.NumberValue
	case *structpb.Value_BoolValue:
		return t.BoolValue
	case *structpb.Value_StructValue:
		return AsMap(t.StructValue)
	case *structpb.Value_ListValue:
		l := make([]any, len(t.ListValue.GetValues()))
		for i, e := range t.ListValue.GetValues() {
			l[i] = asAny(e)
		}
		return l
	}
	return nil
}

func wholeNumber(f float64) (int64, bool) {
	if f != math.Trunc(f) || math.Abs(f) > maxExactInt {
		return 0, false
	}
	return int64(f), true
}
