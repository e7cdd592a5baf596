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
func EncodeValue(v any) (*structpb.Value, error) { return new(encoder).any(v) }

// An encoder encodes one value.
type encoder struct{ Values }

func (w *encoder) any(v any) (*structpb.Value, error) {
	switch t := v.(type) {
	case nil:
		return structpb.NewNullValue(), nil
	case string:
		return w.String(t), nil
	case bool:
		return structpb.NewBoolValue(t), nil
	case int64:
		return w.int(t)
	case float64:
		return w.Number(t), nil
	case map[string]any:
		return w.document(t)
	case []any:
		return w.list(t)
	case []string:
		values := make([]*structpb.Value, len(t))
		for i, e := range t {
			values[i] = w.String(e)
		}
		return w.List(values), nil
	case map[string]string:
		fields := make(map[string]*structpb.Value, len(t))
		for k, e := range t {
			fields[k] = w.String(e)
		}
		return w.Object(fields), nil
	case *structpb.Value:
		return t, nil
	case *structpb.Struct:
		return structpb.NewStructValue(t), nil
	}
	return w.reflect(reflect.ValueOf(v))
}

func (w *encoder) document(d map[string]any) (*structpb.Value, error) {
	fields := make(map[string]*structpb.Value, len(d))
	for k, v := range d {
		e, err := w.any(v)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k, err)
		}
		fields[k] = e
	}
	return w.Object(fields), nil
}

func (w *encoder) list(l []any) (*structpb.Value, error) {
	values := make([]*structpb.Value, len(l))
	for i, v := range l {
		e, err := w.any(v)
		if err != nil {
			return nil, fmt.Errorf("[%d]: %w", i, err)
		}
		values[i] = e
	}
	return w.List(values), nil
}

func (w *encoder) int(i int64) (*structpb.Value, error) {
	if i > maxExactInt || i < -maxExactInt {
		return nil, fmt.Errorf("the number %d has more digits than a protobuf Struct can hold", i)
	}
	return w.Number(float64(i)), nil
}

func (w *encoder) reflect(v reflect.Value) (*structpb.Value, error) {
	switch v.Kind() { //nolint:exhaustive // The others are named in the error below.
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return structpb.NewNullValue(), nil
		}
		if v.Kind() == reflect.Interface {
			return w.any(v.Interface())
		}
		if infoOf(v.Type().Elem()).pointerMarshals {
			return encodeJSON(v.Interface())
		}
		return w.reflect(v.Elem())
	case reflect.String:
		return w.String(v.String()), nil
	case reflect.Bool:
		return structpb.NewBoolValue(v.Bool()), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return w.int(v.Int())
	case reflect.Float32, reflect.Float64:
		return w.Number(v.Float()), nil
	case reflect.Map:
		return w.stringMap(v)
	case reflect.Slice, reflect.Array:
		values := make([]*structpb.Value, v.Len())
		for i := range values {
			e, err := w.reflect(v.Index(i))
			if err != nil {
				return nil, fmt.Errorf("[%d]: %w", i, err)
			}
			values[i] = e
		}
		return w.List(values), nil
	case reflect.Struct:
		return w.structFields(v)
	}
	return nil, fmt.Errorf("a %s has no form in JSON", v.Type())
}

func (w *encoder) stringMap(v reflect.Value) (*structpb.Value, error) {
	if v.Type() == stringsType {
		return w.any(v.Interface())
	}
	if v.Type().Key().Kind() != reflect.String {
		return nil, fmt.Errorf("a %s has no form in JSON", v.Type())
	}
	fields := make(map[string]*structpb.Value, v.Len())
	for it := v.MapRange(); it.Next(); {
		e, err := w.reflect(it.Value())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", it.Key(), err)
		}
		fields[it.Key().String()] = e
	}
	return w.Object(fields), nil
}

func (w *encoder) structFields(v reflect.Value) (*structpb.Value, error) {
	info := infoOf(v.Type())
	if info.marshals {
		return w.own(v.Interface())
	}
	// Types have many fields, of which few are set.
	fields := map[string]*structpb.Value{}
	for i := range info.fields {
		f := &info.fields[i]
		fv := f.of(v)
		if !f.isSet(fv) {
			continue
		}
		e, err := w.reflect(fv)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		fields[f.name] = e
	}
	return w.Object(fields), nil
}

// own encodes what has a JSON form of its own.
func (w *encoder) own(v any) (*structpb.Value, error) {
	switch t := v.(type) {
	case resource.Quantity:
		return w.String(t.String()), nil
	case intstr.IntOrString:
		if t.Type == intstr.String {
			return w.String(t.StrVal), nil
		}
		return w.Number(float64(t.IntVal)), nil
	}
	return encodeJSON(v)
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
