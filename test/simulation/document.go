package simulation

import (
	"maps"

	"google.golang.org/protobuf/types/known/structpb"
)

// A document is an object of an API server. Nobody changes one that is stored: with returns a copy.
type document = *structpb.Struct

// fields are the fields of a document that is written in Go.
type fields = map[string]any

// newDocument returns a document of plain Go values.
func newDocument(f fields) document {
	s, err := structpb.NewStruct(f)
	if err != nil {
		panic(err) // A mistake in the simulation.
	}
	return s
}

// list returns a list as newDocument takes it.
func list[T any](of ...T) []any {
	all := make([]any, 0, len(of))
	for _, v := range of {
		all = append(all, v)
	}
	return all
}

// at returns the value at a path, or nil.
func at(d document, path ...string) *structpb.Value {
	for i, name := range path {
		v := d.GetFields()[name]
		if i == len(path)-1 || v == nil {
			return v
		}
		d = v.GetStructValue()
	}
	return structpb.NewStructValue(d)
}

// parsed returns the document that a text is. It is empty if the text is none.
func parsed(s string) document {
	d := &structpb.Struct{}
	_ = d.UnmarshalJSON([]byte(s))
	return d
}

// text returns the string at a path, or "".
func text(d document, path ...string) string { return at(d, path...).GetStringValue() }

// number returns the number at a path, or 0.
func number(d document, path ...string) int { return int(at(d, path...).GetNumberValue()) }

// object returns the object at a path, or nil.
func object(d document, path ...string) document { return at(d, path...).GetStructValue() }

// items returns the objects of the list at a path.
func items(d document, path ...string) []document {
	var all []document
	for _, v := range at(d, path...).GetListValue().GetValues() {
		all = append(all, v.GetStructValue())
	}
	return all
}

// texts returns the strings of the object at a path.
func texts(d document, path ...string) map[string]string {
	f := object(d, path...).GetFields()
	if len(f) == 0 {
		return nil
	}
	all := make(map[string]string, len(f))
	for k, v := range f {
		all[k] = v.GetStringValue()
	}
	return all
}

// with returns a copy of a document with another value at a path. Nil removes the value.
func with(d document, v *structpb.Value, path ...string) document {
	c := &structpb.Struct{Fields: maps.Clone(d.GetFields())}
	if c.Fields == nil {
		c.Fields = map[string]*structpb.Value{}
	}
	switch {
	case len(path) > 1:
		c.Fields[path[0]] = structpb.NewStructValue(with(object(d, path[0]), v, path[1:]...))
	case v == nil:
		delete(c.Fields, path[0])
	default:
		c.Fields[path[0]] = v
	}
	return c
}

// withText returns a copy of a document with a string at a path.
func withText(d document, v string, path ...string) document {
	return with(d, structpb.NewStringValue(v), path...)
}

// value returns a Go value as a document has it.
func value(v any) *structpb.Value {
	if d, ok := v.(document); ok {
		return structpb.NewStructValue(d)
	}
	s, err := structpb.NewValue(v)
	if err != nil {
		panic(err) // A mistake in the simulation.
	}
	return s
}

// equal compares values. It is much faster than proto.Equal, and shared parts cost nothing.
func equal(a, b *structpb.Value) bool {
	if a == b {
		return true
	}
	if a == nil || b == nil {
		return false
	}
	switch x := a.GetKind().(type) {
	case *structpb.Value_StructValue:
		y, ok := b.GetKind().(*structpb.Value_StructValue)
		return ok && equalDocuments(x.StructValue, y.StructValue)
	case *structpb.Value_ListValue:
		y, ok := b.GetKind().(*structpb.Value_ListValue)
		if !ok || len(x.ListValue.GetValues()) != len(y.ListValue.GetValues()) {
			return false
		}
		for i, v := range x.ListValue.GetValues() {
			if !equal(v, y.ListValue.GetValues()[i]) {
				return false
			}
		}
		return true
	case *structpb.Value_StringValue:
		y, ok := b.GetKind().(*structpb.Value_StringValue)
		return ok && x.StringValue == y.StringValue
	case *structpb.Value_NumberValue:
		y, ok := b.GetKind().(*structpb.Value_NumberValue)
		return ok && x.NumberValue == y.NumberValue
	case *structpb.Value_BoolValue:
		y, ok := b.GetKind().(*structpb.Value_BoolValue)
		return ok && x.BoolValue == y.BoolValue
	}
	_, x := a.GetKind().(*structpb.Value_NullValue)
	_, y := b.GetKind().(*structpb.Value_NullValue)
	return x && y
}

func equalDocuments(a, b document) bool {
	if a == b {
		return true
	}
	if len(a.GetFields()) != len(b.GetFields()) {
		return false
	}
	for k, v := range a.GetFields() {
		w, ok := b.GetFields()[k]
		if !ok || !equal(v, w) {
			return false
		}
	}
	return true
}
