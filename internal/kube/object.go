package kube

import "google.golang.org/protobuf/types/known/structpb"

// An Object is a rendered object under the key that Crossplane knows it by.
type Object struct {
	// Key in the composed resources. Package plan makes it.
	Key string
	// Resource is the whole object. It may share parts with other objects and is
	// never changed.
	Resource *structpb.Struct
}

// APIVersion of the object.
func (o Object) APIVersion() string { return Lookup(o.Resource, "apiVersion").GetStringValue() }

// Kind of the object.
func (o Object) Kind() string { return Lookup(o.Resource, "kind").GetStringValue() }

// Name of the object.
func (o Object) Name() string { return Lookup(o.Resource, "metadata", "name").GetStringValue() }

// With returns a copy of a Struct in which the value at path is v. Only the
// objects on the path are copied; the rest is shared with s.
func With(s *structpb.Struct, v *structpb.Value, path ...string) *structpb.Struct {
	c := &structpb.Struct{Fields: make(map[string]*structpb.Value, len(s.GetFields())+1)}
	for k, e := range s.GetFields() {
		c.Fields[k] = e
	}
	if len(path) == 1 {
		c.Fields[path[0]] = v
		return c
	}
	c.Fields[path[0]] = structpb.NewStructValue(With(c.Fields[path[0]].GetStructValue(), v, path[1:]...))
	return c
}
