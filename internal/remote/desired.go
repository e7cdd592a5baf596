package remote

import (
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
)

// A DesiredPath reads one field of an object as it was desired last. Beside the XR that is the field of the object
// itself. In an Object it is that of the manifest.
type DesiredPath struct{ beside, carried incoming.Path }

// NewDesiredPath declares that a field is read, with everything below it. Call it only to initialize a package
// variable.
func NewDesiredPath(names ...string) DesiredPath {
	return DesiredPath{incoming.NewPath(names...), incoming.NewPath(append([]string{"spec", "forProvider", "manifest"}, names...)...)}
}

// In returns the value of the field, or nil.
func (p DesiredPath) In(o incoming.Object) *structpb.Value {
	if isObject(o) {
		return p.carried.In(o)
	}
	return p.beside.In(o)
}

// Text returns the value of the field if it is a string, and "" otherwise.
func (p DesiredPath) Text(o incoming.Object) string { return p.In(o).GetStringValue() }

// A carrier is the part of an Object that has what the function wrote of an object.
type carrier[T any] struct {
	Spec struct {
		ForProvider struct {
			Manifest T `json:"manifest"`
		} `json:"forProvider"`
	} `json:"spec"`
}

// A DesiredView decodes the part that T describes of an object as it was desired last, wherever it is.
type DesiredView[T any] struct {
	beside  incoming.View[T]
	carried incoming.View[carrier[T]]
}

// NewDesiredView declares that objects, and manifests of Objects, are decoded into T. Call it only to initialize a
// package variable.
func NewDesiredView[T any]() DesiredView[T] {
	return DesiredView[T]{incoming.NewView[T](), incoming.NewView[carrier[T]]()}
}

// Read decodes an object as kube.Decode does.
func (v DesiredView[T]) Read(o incoming.Object) (T, field.ErrorList) {
	if isObject(o) {
		var found carrier[T]
		errs := v.carried.Read(o, &found)
		return found.Spec.ForProvider.Manifest, errs
	}
	var found T
	errs := v.beside.Read(o, &found)
	return found, errs
}

// In returns what an object has of T. Fields of a wrong type count as absent.
func (v DesiredView[T]) In(o incoming.Object) T {
	found, _ := v.Read(o)
	return found
}
