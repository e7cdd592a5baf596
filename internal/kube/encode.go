package kube

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"

	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/fusioninfer/function-inferenceservice/internal/key"
)

// maxExactInt is the largest whole number that a Struct holds without losing digits. Its
// numbers are float64.
const maxExactInt = 1 << 53

// Encode returns an object as a Struct. It takes apply configurations, other structs with
// JSON tags, maps, and Documents. It leaves out fields that are not set, but keeps an empty
// object that is set (emptyDir: {}).
//
// A *structpb.Value or *structpb.Struct inside the object is used without a copy, so parts
// that many objects share are encoded once. Nobody may change a Struct after that.
func Encode(obj any) (*structpb.Struct, error) { return new(Encoder).Encode(obj) }

// Render encodes an object under a key.
func Render(k key.Key, obj any) (Object, error) {
	s, err := Encode(obj)
	if err != nil {
		return Object{}, fmt.Errorf("cannot render %s: %w", k, err)
	}
	return Object{Key: k, Resource: s}, nil
}

// EncodeValue encodes a value of any type that has a form in JSON, as Encode does an object.
func EncodeValue(v any) (*structpb.Value, error) { return new(Encoder).any(v) }

// MustEncode encodes a value that many objects share, for a package variable. Encode uses its
// result without a copy, so nobody may change it. It panics if the value has no form in JSON.
func MustEncode(v any) *structpb.Value {
	e, err := EncodeValue(v)
	if err != nil {
		panic(fmt.Sprintf("cannot encode %T: %v", v, err)) // Any test would show it.
	}
	return e
}

// An Encoder encodes several objects of one response with fewer allocations. They are freed
// together, so use a new Encoder for each response. The zero value is ready for use.
type Encoder struct{ values Values }

// Encode encodes like the function Encode.
func (w *Encoder) Encode(obj any) (*structpb.Struct, error) {
	v, err := w.any(obj)
	if err != nil {
		return nil, fmt.Errorf("cannot encode %T: %w", obj, err)
	}
	s := v.GetStructValue()
	if s == nil {
		return nil, fmt.Errorf("cannot encode %T: not an object", obj)
	}
	return s, nil
}

func (w *Encoder) any(v any) (*structpb.Value, error) {
	switch t := v.(type) {
	case nil:
		return structpb.NewNullValue(), nil
	case string:
		return w.values.String(t), nil
	case bool:
		return structpb.NewBoolValue(t), nil
	case int64:
		return w.int(t)
	case float64:
		return w.values.Number(t), nil
	case map[string]any:
		return w.document(t)
	case []any:
		return w.list(t)
	case []string:
		values := make([]*structpb.Value, len(t))
		for i, e := range t {
			values[i] = w.values.String(e)
		}
		return w.values.List(values), nil
	case map[string]string:
		fields := make(map[string]*structpb.Value, len(t))
		for k, e := range t {
			fields[k] = w.values.String(e)
		}
		return w.values.Object(fields), nil
	case *structpb.Value:
		return t, nil
	case *structpb.Struct:
		return structpb.NewStructValue(t), nil
	}
	return w.reflect(reflect.ValueOf(v))
}

func (w *Encoder) document(d map[string]any) (*structpb.Value, error) {
	fields := make(map[string]*structpb.Value, len(d))
	for k, v := range d {
		e, err := w.any(v)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k, err)
		}
		fields[k] = e
	}
	return w.values.Object(fields), nil
}

func (w *Encoder) list(l []any) (*structpb.Value, error) {
	values := make([]*structpb.Value, len(l))
	for i, v := range l {
		e, err := w.any(v)
		if err != nil {
			return nil, fmt.Errorf("[%d]: %w", i, err)
		}
		values[i] = e
	}
	return w.values.List(values), nil
}

func (w *Encoder) int(i int64) (*structpb.Value, error) {
	if i > maxExactInt || i < -maxExactInt {
		return nil, fmt.Errorf("the number %d has more digits than a protobuf Struct can hold", i)
	}
	return w.values.Number(float64(i)), nil
}

func (w *Encoder) reflect(v reflect.Value) (*structpb.Value, error) {
	switch v.Kind() { //nolint:exhaustive // All others are an error.
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return structpb.NewNullValue(), nil
		}
		if v.Kind() == reflect.Interface {
			return w.any(v.Interface())
		}
		return w.pointer(v)
	case reflect.String:
		return w.values.String(v.String()), nil
	case reflect.Bool:
		return structpb.NewBoolValue(v.Bool()), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return w.int(v.Int())
	case reflect.Float32, reflect.Float64:
		return w.values.Number(v.Float()), nil
	case reflect.Map:
		return w.stringMap(v)
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 {
			return w.values.String(base64.StdEncoding.EncodeToString(v.Bytes())), nil
		}
		return w.elements(v)
	case reflect.Struct:
		return w.structFields(v)
	}
	return nil, fmt.Errorf("a %s has no form in JSON", v.Type())
}

func (w *Encoder) pointer(v reflect.Value) (*structpb.Value, error) {
	if v.Type().Elem().PkgPath() == "" {
		return w.reflect(v.Elem()) // A predeclared type such as int32.
	}
	if s, ok := v.Interface().(*structpb.Struct); ok {
		return structpb.NewStructValue(s), nil
	}
	if infoOf(v.Type().Elem()).pointerMarshals {
		return encodeJSON(v.Interface())
	}
	return w.reflect(v.Elem())
}

func (w *Encoder) elements(v reflect.Value) (*structpb.Value, error) {
	values := make([]*structpb.Value, v.Len())
	for i := range values {
		e, err := w.reflect(v.Index(i))
		if err != nil {
			return nil, fmt.Errorf("[%d]: %w", i, err)
		}
		values[i] = e
	}
	return w.values.List(values), nil
}

func (w *Encoder) stringMap(v reflect.Value) (*structpb.Value, error) {
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
	return w.values.Object(fields), nil
}

func (w *Encoder) structFields(v reflect.Value) (*structpb.Value, error) {
	info := infoOf(v.Type())
	if info.marshals {
		return w.own(v.Interface())
	}
	// Without a size: types have many fields, and few of them are set.
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
	return w.values.Object(fields), nil
}

// own encodes a value that has its own JSON form. It does so itself for the most common
// types.
func (w *Encoder) own(v any) (*structpb.Value, error) {
	switch t := v.(type) {
	case resource.Quantity:
		return w.values.String(t.String()), nil
	case intstr.IntOrString:
		if t.Type == intstr.String {
			return w.values.String(t.StrVal), nil
		}
		return w.values.Number(float64(t.IntVal)), nil
	}
	return encodeJSON(v)
}

// encodeJSON encodes a value through its own JSON form.
func encodeJSON(v any) (*structpb.Value, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	e := &structpb.Value{}
	return e, e.UnmarshalJSON(b)
}
