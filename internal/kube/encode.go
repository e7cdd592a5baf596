package kube

import (
	"encoding/json"
	"fmt"
	"reflect"

	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// maxExactInt is the largest whole number that a Struct, whose numbers are
// float64, holds without losing digits.
const maxExactInt = 1 << 53

// Encode returns an object as a Struct. It takes apply configurations, other
// structs with JSON tags, and Documents. Fields that are not set stay away,
// while an empty object that is set (emptyDir: {}) is kept.
//
// A *structpb.Value or *structpb.Struct found inside the object is used as it
// is, so that parts that many objects have in common are encoded once. Nobody
// may change a Struct after it was encoded.
func Encode(obj any) (*structpb.Struct, error) {
	v, err := EncodeValue(obj)
	if err != nil {
		return nil, fmt.Errorf("cannot encode %T: %w", obj, err)
	}
	s := v.GetStructValue()
	if s == nil {
		return nil, fmt.Errorf("cannot encode %T: not an object", obj)
	}
	return s, nil
}

// EncodeValue returns any value that has a form in JSON.
func EncodeValue(v any) (*structpb.Value, error) {
	switch t := v.(type) {
	case nil:
		return structpb.NewNullValue(), nil
	case string:
		return structpb.NewStringValue(t), nil
	case bool:
		return structpb.NewBoolValue(t), nil
	case int64:
		return encodeInt(t)
	case float64:
		return structpb.NewNumberValue(t), nil
	case map[string]any:
		return encodeDocument(t)
	case []any:
		return encodeList(t)
	case *structpb.Value:
		return t, nil
	case *structpb.Struct:
		return structpb.NewStructValue(t), nil
	}
	return encodeReflect(reflect.ValueOf(v))
}

func encodeDocument(d map[string]any) (*structpb.Value, error) {
	fields := make(map[string]*structpb.Value, len(d))
	for k, v := range d {
		e, err := EncodeValue(v)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k, err)
		}
		fields[k] = e
	}
	return structpb.NewStructValue(&structpb.Struct{Fields: fields}), nil
}

func encodeList(l []any) (*structpb.Value, error) {
	values := make([]*structpb.Value, len(l))
	for i, v := range l {
		e, err := EncodeValue(v)
		if err != nil {
			return nil, fmt.Errorf("[%d]: %w", i, err)
		}
		values[i] = e
	}
	return structpb.NewListValue(&structpb.ListValue{Values: values}), nil
}

func encodeInt(i int64) (*structpb.Value, error) {
	if i > maxExactInt || i < -maxExactInt {
		return nil, fmt.Errorf("the number %d has more digits than a protobuf Struct can hold", i)
	}
	return structpb.NewNumberValue(float64(i)), nil
}

func encodeReflect(v reflect.Value) (*structpb.Value, error) {
	switch v.Kind() { //nolint:exhaustive // The others are named in the error below.
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return structpb.NewNullValue(), nil
		}
		if v.Kind() == reflect.Interface {
			return EncodeValue(v.Interface())
		}
		if m := v.Type(); m.Implements(marshalerType) && !m.Elem().Implements(marshalerType) {
			return encodeJSON(v.Interface())
		}
		return encodeReflect(v.Elem())
	case reflect.String:
		return structpb.NewStringValue(v.String()), nil
	case reflect.Bool:
		return structpb.NewBoolValue(v.Bool()), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return encodeInt(v.Int())
	case reflect.Float32, reflect.Float64:
		return structpb.NewNumberValue(v.Float()), nil
	case reflect.Map:
		return encodeMap(v)
	case reflect.Slice, reflect.Array:
		values := make([]*structpb.Value, v.Len())
		for i := range values {
			e, err := encodeReflect(v.Index(i))
			if err != nil {
				return nil, fmt.Errorf("[%d]: %w", i, err)
			}
			values[i] = e
		}
		return structpb.NewListValue(&structpb.ListValue{Values: values}), nil
	case reflect.Struct:
		return encodeStruct(v)
	}
	return nil, fmt.Errorf("a %s has no form in JSON", v.Type())
}

func encodeMap(v reflect.Value) (*structpb.Value, error) {
	if v.Type().Key().Kind() != reflect.String {
		return nil, fmt.Errorf("a %s has no form in JSON", v.Type())
	}
	fields := make(map[string]*structpb.Value, v.Len())
	for it := v.MapRange(); it.Next(); {
		e, err := encodeReflect(it.Value())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", it.Key(), err)
		}
		fields[it.Key().String()] = e
	}
	return structpb.NewStructValue(&structpb.Struct{Fields: fields}), nil
}

func encodeStruct(v reflect.Value) (*structpb.Value, error) {
	switch t := v.Interface().(type) {
	case resource.Quantity:
		return structpb.NewStringValue(t.String()), nil
	case intstr.IntOrString:
		if t.Type == intstr.String {
			return structpb.NewStringValue(t.StrVal), nil
		}
		return structpb.NewNumberValue(float64(t.IntVal)), nil
	}
	if t := v.Type(); t.Implements(marshalerType) || t.Implements(textMarshalerType) {
		return encodeJSON(v.Interface())
	}
	info := infoOf(v.Type())
	fields := make(map[string]*structpb.Value, len(info.fields))
	for _, f := range info.fields {
		fv := v.FieldByIndex(f.index)
		if f.omitEmpty && isEmpty(fv) || isNil(fv) {
			continue
		}
		e, err := encodeReflect(fv)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		fields[f.name] = e
	}
	return structpb.NewStructValue(&structpb.Struct{Fields: fields}), nil
}

// encodeJSON asks the value for its own JSON.
func encodeJSON(v any) (*structpb.Value, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	e := &structpb.Value{}
	return e, e.UnmarshalJSON(b)
}

// isEmpty is what omitempty of encoding/json means.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Map, reflect.Slice, reflect.Array, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	default:
		return v.IsZero()
	}
}

// isNil tells fields that would be encoded as null. A null in server-side
// apply claims the field, so it is never sent.
func isNil(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Map, reflect.Slice, reflect.Pointer, reflect.Interface:
		return v.IsNil()
	default:
		return false
	}
}
