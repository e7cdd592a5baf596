package kube

import "google.golang.org/protobuf/types/known/structpb"

// Values makes structpb.Values, as the constructors of structpb do, but several with one allocation: they are
// most of what a call allocates. Those of one allocation are freed together. The zero value is ready for use.
type Values struct {
	strings []stringValue
	numbers []numberValue
	objects []objectValue
	lists   []listValue
	// made counts the Values of each kind so far. The next allocation grows with it.
	made struct{ strings, numbers, objects, lists int }
}

type stringValue struct {
	value structpb.Value
	kind  structpb.Value_StringValue
}

type numberValue struct {
	value structpb.Value
	kind  structpb.Value_NumberValue
}

type objectValue struct {
	value  structpb.Value
	kind   structpb.Value_StructValue
	object structpb.Struct
}

type listValue struct {
	value structpb.Value
	kind  structpb.Value_ListValue
	list  structpb.ListValue
}

// String returns a text as a Value.
func (m *Values) String(s string) *structpb.Value {
	v := take(&m.strings, &m.made.strings)
	v.kind.StringValue = s
	v.value.Kind = &v.kind
	return &v.value
}

// Number returns a number as a Value.
func (m *Values) Number(n float64) *structpb.Value {
	v := take(&m.numbers, &m.made.numbers)
	v.kind.NumberValue = n
	v.value.Kind = &v.kind
	return &v.value
}

// Object returns an object with these fields as a Value.
func (m *Values) Object(fields map[string]*structpb.Value) *structpb.Value {
	v := take(&m.objects, &m.made.objects)
	v.object.Fields = fields
	v.kind.StructValue = &v.object
	v.value.Kind = &v.kind
	return &v.value
}

// List returns a list of these values as a Value.
func (m *Values) List(values []*structpb.Value) *structpb.Value {
	v := take(&m.lists, &m.made.lists)
	v.list.Values = values
	v.kind.ListValue = &v.list
	v.value.Kind = &v.kind
	return &v.value
}

// maxAhead is the largest number of Values in one allocation.
const maxAhead = 32

// take returns the next unused Value, and allocates more if there is none.
func take[T any](ahead *[]T, made *int) *T {
	if len(*ahead) == 0 {
		*ahead = make([]T, min(*made/2+2, maxAhead))
		*made += len(*ahead)
	}
	v := &(*ahead)[0]
	*ahead = (*ahead)[1:]
	return v
}
