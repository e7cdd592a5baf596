package kube

import (
	"maps"
	"slices"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/fusioninfer/function-inferenceservice/internal/key"
)

// An Object is a rendered object with its key.
type Object struct {
	// Key identifies the composed resource for Crossplane.
	Key key.Key
	// Resource is the whole object. It may share parts with other objects, so nobody may
	// change it.
	Resource *structpb.Struct
}

// Metadata is the metadata of an object that is rendered from a struct of this module. What is empty is left out.
type Metadata struct {
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// APIVersion of the object.
func (o Object) APIVersion() string { return Lookup(o.Resource, "apiVersion").GetStringValue() }

// Kind of the object.
func (o Object) Kind() string { return Lookup(o.Resource, "kind").GetStringValue() }

// Name of the object.
func (o Object) Name() string { return Lookup(o.Resource, "metadata", "name").GetStringValue() }

// Namespace returns the namespace of the object, which is empty for one without.
func (o Object) Namespace() string {
	return Lookup(o.Resource, "metadata", "namespace").GetStringValue()
}

// Copy returns a shallow copy of a Struct, whose fields may be replaced. Its values are shared
// with s, so nobody may change them.
func Copy(s *structpb.Struct) *structpb.Struct {
	if s.GetFields() == nil {
		return &structpb.Struct{Fields: map[string]*structpb.Value{}}
	}
	return &structpb.Struct{Fields: maps.Clone(s.GetFields())}
}

// With returns a copy of a Struct in which the value at path is v. Only the
// objects on the path are copied; the rest is shared with s.
func With(s *structpb.Struct, v *structpb.Value, path ...string) *structpb.Struct {
	c := Copy(s)
	if len(path) > 1 {
		v = structpb.NewStructValue(With(c.GetFields()[path[0]].GetStructValue(), v, path[1:]...))
	}
	c.Fields[path[0]] = v
	return c
}

// WithoutNulls returns a Struct without the fields that are null, or s itself if there are
// none. A null means that the field is absent, but in server-side apply it claims the field.
func WithoutNulls(s *structpb.Struct) *structpb.Struct {
	if !hasNulls(s) {
		return s
	}
	c := &structpb.Struct{Fields: make(map[string]*structpb.Value, len(s.GetFields()))}
	for k, v := range s.GetFields() {
		if !isNull(v) {
			c.Fields[k] = withoutNulls(v)
		}
	}
	return c
}

func withoutNulls(v *structpb.Value) *structpb.Value {
	switch t := v.GetKind().(type) {
	case *structpb.Value_StructValue:
		return structpb.NewStructValue(WithoutNulls(t.StructValue))
	case *structpb.Value_ListValue:
		l := &structpb.ListValue{Values: make([]*structpb.Value, len(t.ListValue.GetValues()))}
		for i, e := range t.ListValue.GetValues() {
			l.Values[i] = withoutNulls(e)
		}
		return structpb.NewListValue(l)
	}
	return v
}

func hasNulls(s *structpb.Struct) bool {
	for _, v := range s.GetFields() {
		if isNull(v) || nullsBelow(v) {
			return true
		}
	}
	return false
}

func nullsBelow(v *structpb.Value) bool {
	switch t := v.GetKind().(type) {
	case *structpb.Value_StructValue:
		return hasNulls(t.StructValue)
	case *structpb.Value_ListValue:
		return slices.ContainsFunc(t.ListValue.GetValues(), nullsBelow)
	}
	return false
}

func isNull(v *structpb.Value) bool {
	_, null := v.GetKind().(*structpb.Value_NullValue)
	return null || v.GetKind() == nil
}
