package incoming

import (
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

// An Object is an observed or required object. Only Views, Paths and the methods here can
// read it.
type Object struct{ raw *structpb.Struct }

// ObjectOf wraps an object for Views and Paths, such as a rendered one.
func ObjectOf(raw *structpb.Struct) Object { return Object{raw} }

// Exists reports whether there is an object.
func (o Object) Exists() bool { return o.raw != nil }

// Empty reports whether an object has no fields.
func (o Object) Empty() bool { return len(o.raw.GetFields()) == 0 }

// The fields that objects of all kinds have.
var (
	apiVersion        = NewPath("apiVersion")
	kind              = NewPath("kind")
	name              = NewPath("metadata", "name")
	namespace         = NewPath("metadata", "namespace")
	deletionTimestamp = NewPath("metadata", "deletionTimestamp")
)

// APIVersion returns the object's apiVersion.
func (o Object) APIVersion() string { return apiVersion.Text(o) }

// Kind returns the object's kind.
func (o Object) Kind() string { return kind.Text(o) }

// Name returns the object's name.
func (o Object) Name() string { return name.Text(o) }

// Namespace returns the object's namespace.
func (o Object) Namespace() string { return namespace.Text(o) }

// DeletionTimestamp returns the object's deletionTimestamp. It is empty unless the object is
// being deleted.
func (o Object) DeletionTimestamp() string { return deletionTimestamp.Text(o) }

// A labelled object has labels.
type labelled struct {
	Metadata struct {
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
}

var labelledView = NewView[labelled]()

// Labels returns the object's labels. Those of a wrong type count as absent.
func (o Object) Labels() map[string]string { return labelledView.In(o).Metadata.Labels }

// WithDeletionTimestamp returns a copy of the object with another deletionTimestamp.
func (o Object) WithDeletionTimestamp(t string) Object {
	return Object{kube.With(o.raw, structpb.NewStringValue(t), deletionTimestamp.names...)}
}

// A View decodes the part of an observed or required object that T describes.
type View[T any] struct{ declared bool }

// NewView declares that observed and required objects are decoded into T. Call it only to
// initialize a package variable.
func NewView[T any]() View[T] {
	declare(&objects, fieldsOf[T]())
	return View[T]{declared: true}
}

// Read decodes an object as kube.Decode does.
func (v View[T]) Read(o Object, into *T) field.ErrorList {
	check(v.declared)
	return kube.Decode(o.raw, nil, into)
}

// In returns what an object has of T. Fields of a wrong type count as absent.
func (v View[T]) In(o Object) T {
	var found T
	_ = v.Read(o, &found)
	return found
}

// A Path reads one field of observed and required objects, with everything below it.
type Path struct{ names []string }

// NewPath declares that a field is read, with everything below it. Call it only to initialize
// a package variable. Prefer a View for a large field of which little is read: the codec then
// skips the rest.
func NewPath(names ...string) Path {
	declare(&objects, kube.FieldAt(names, nil))
	return Path{names}
}

// In returns the value of the field in an object, or nil.
func (p Path) In(o Object) *structpb.Value {
	check(p.names != nil)
	return kube.Lookup(o.raw, p.names...)
}

// Text returns the value of the field if it is a string, and "" otherwise.
func (p Path) Text(o Object) string { return p.In(o).GetStringValue() }

// A Nested reads an object that is a field of another object.
type Nested struct{ names []string }

// NewNested declares that a field holds an object, which is read by the same Views and
// Paths as any object. Call it only to initialize a package variable.
func NewNested(names ...string) Nested {
	declare(&nested, names)
	return Nested{names}
}

// In returns the nested object of an object. It may not exist.
func (n Nested) In(o Object) Object {
	check(n.names != nil)
	return Object{kube.Lookup(o.raw, n.names...).GetStructValue()}
}
