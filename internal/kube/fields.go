package kube

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"sync"

	"google.golang.org/protobuf/types/known/structpb"
)

// A Document is a part of an object that is kept as its author wrote it, including fields
// that the types here lack. It is shared with its request, so nobody may change it.
type Document = structpb.Struct

// A fieldInfo describes how one struct field appears in JSON.
type fieldInfo struct {
	name      string
	index     []int
	kind      reflect.Kind
	omitEmpty bool
}

// isSet reports whether a field is encoded. Fields that omitempty leaves out are not, as in
// encoding/json. Nor are nulls: in server-side apply, a null claims the field.
func (f *fieldInfo) isSet(v reflect.Value) bool {
	switch f.kind {
	case reflect.Pointer, reflect.Interface:
		return !v.IsNil()
	case reflect.Map, reflect.Slice:
		return !v.IsNil() && (!f.omitEmpty || v.Len() > 0)
	case reflect.Array:
		return !f.omitEmpty || v.Len() > 0
	case reflect.Struct:
		return true
	default:
		return !f.omitEmpty || !v.IsZero()
	}
}

// of returns the value of the field in a struct.
func (f *fieldInfo) of(v reflect.Value) reflect.Value {
	if len(f.index) == 1 {
		return v.Field(f.index[0])
	}
	return v.FieldByIndex(f.index)
}

// Unknown has the names of the fields that an object has and its type does not, in order. The decoder sets it
// in a struct that has such a field, so that validation can name them.
type Unknown []string

// A typeInfo has what reflection finds out about a type. infoOf keeps it for later calls.
type typeInfo struct {
	// fields are those of a struct, and byName their indices by their names in JSON.
	fields []fieldInfo
	byName map[string]int
	// marshals is true if the type implements Marshaler, pointerMarshals if only its pointer
	// does, and unmarshals if its pointer implements Unmarshaler.
	marshals, pointerMarshals, unmarshals bool
	// unknown is where a struct has its Unknown. It is empty if it has none.
	unknown []int
}

var typeInfos sync.Map // reflect.Type -> *typeInfo

func infoOf(t reflect.Type) *typeInfo {
	if i, ok := typeInfos.Load(t); ok {
		return i.(*typeInfo) //nolint:forcetypeassert // Only this function stores.
	}
	p := reflect.PointerTo(t)
	info := &typeInfo{
		marshals:        t.Implements(marshalerType) || t.Implements(textMarshalerType),
		pointerMarshals: p.Implements(marshalerType) && !t.Implements(marshalerType),
		unmarshals:      p.Implements(unmarshalerType) || p.Implements(textUnmarshalerType),
	}
	if t.Kind() == reflect.Struct {
		collectFields(t, nil, info)
	}
	info.byName = make(map[string]int, len(info.fields))
	for i, f := range info.fields {
		info.byName[f.name] = i
	}
	i, _ := typeInfos.LoadOrStore(t, info)
	return i.(*typeInfo) //nolint:forcetypeassert // Only this function stores.
}

// collectFields appends the JSON fields of a struct type. Embedded structs
// without a name of their own are inlined.
func collectFields(t reflect.Type, at []int, into *typeInfo) {
	for i := range t.NumField() {
		f := t.Field(i)
		index := append(append([]int(nil), at...), i)
		if f.Type == unknownType {
			into.unknown = index
		}
		tag := f.Tag.Get("json")
		if tag == "-" || (!f.IsExported() && !f.Anonymous) {
			continue
		}
		name, opts, _ := strings.Cut(tag, ",")
		if f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct {
			collectFields(f.Type, index, into)
			continue
		}
		if name == "" {
			name = f.Name
		}
		into.fields = append(into.fields, fieldInfo{
			name:      name,
			index:     index,
			kind:      f.Type.Kind(),
			omitEmpty: strings.Contains(opts, "omitempty") || strings.Contains(opts, "omitzero"),
		})
	}
}

var (
	marshalerType       = reflect.TypeFor[json.Marshaler]()
	textMarshalerType   = reflect.TypeFor[encoding.TextMarshaler]()
	unmarshalerType     = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
	stringsType         = reflect.TypeFor[map[string]string]()
	unknownType         = reflect.TypeFor[Unknown]()
	documentType        = reflect.TypeFor[*Document]()
)
