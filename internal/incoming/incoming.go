/*
Package incoming reads RunFunctionRequests.

Nobody reads most of a request: the managed fields and pod templates of observed objects.
The codec skips them, so it must know which fields are read. Views and Paths declare these,
and are the only ways to read an object of a request. Packages declare their Views and Paths
in package variables. Before main starts, all fields that the binary can read are therefore
declared, and Fields returns them.

Only packages that pass requests on, such as the codec, may use the raw type. A test enforces
this.
*/
package incoming

import (
	"maps"
	"slices"

	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/util/validation/field"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

// A Request is a RunFunctionRequest, which Crossplane sends to the function.
type Request struct{ raw *fnv1.RunFunctionRequest }

// Of wraps a raw request.
func Of(raw *fnv1.RunFunctionRequest) Request { return Request{raw} }

// Composite returns the composite resource.
func (r Request) Composite() Composite {
	return Composite{ObjectOf(r.raw.GetObserved().GetComposite().GetResource())}
}

// Observed returns the observed composed resource with a key.
func (r Request) Observed(k key.Key) Object {
	return ObjectOf(r.raw.GetObserved().GetResources()[k.String()].GetResource())
}

// ObservedKeys returns the keys of the observed composed resources, in the order of their text.
func (r Request) ObservedKeys() []key.Key {
	keys := make([]key.Key, 0, len(r.raw.GetObserved().GetResources()))
	for _, k := range slices.Sorted(maps.Keys(r.raw.GetObserved().GetResources())) {
		keys = append(keys, key.Parse(k))
	}
	return keys
}

// Required returns the objects that Crossplane found for a requirement. If resolved is false,
// Crossplane has not looked for them yet, so some may exist.
func (r Request) Required(requirement string) (objects []Object, resolved bool) {
	found, resolved := r.raw.GetRequiredResources()[requirement]
	for _, i := range found.GetItems() {
		objects = append(objects, ObjectOf(i.GetResource()))
	}
	return objects, resolved
}

// Input returns the whole input of the function.
func (r Request) Input() *structpb.Struct { return r.raw.GetInput() }

// Desired returns the whole desired state of the functions earlier in the pipeline. Nobody may
// change it.
func (r Request) Desired() *fnv1.State { return r.raw.GetDesired() }

// A Composite is the composite resource of a request. It can be read like any Object, and
// by CompositeViews.
type Composite struct{ Object }

// Spec returns the whole spec, or nil.
func (c Composite) Spec() *structpb.Value { return kube.Lookup(c.raw, fieldSpec) }

// WithSpec returns a copy of the composite resource with another spec. It shares the rest.
func (c Composite) WithSpec(spec *structpb.Struct) Composite {
	return Composite{Object{kube.With(c.raw, structpb.NewStructValue(spec), fieldSpec)}}
}

// fieldSpec is the field of a composite resource that the codec keeps whole.
const fieldSpec = "spec"

// A CompositeView decodes the part of a composite resource that T describes.
type CompositeView[T any] struct{ declared bool }

// NewCompositeView declares that composite resources are decoded into T. Call it only to
// initialize a package variable.
func NewCompositeView[T any]() CompositeView[T] {
	declare(&composites, fieldsOf[T]())
	return CompositeView[T]{declared: true}
}

// Read decodes a composite resource as kube.Decode does.
func (v CompositeView[T]) Read(c Composite, into *T) field.ErrorList {
	check(v.declared)
	return kube.Decode(c.raw, nil, into)
}

// In returns what a composite resource has of T. Fields of a wrong type count as absent.
func (v CompositeView[T]) In(c Composite) T {
	var found T
	_ = v.Read(c, &found)
	return found
}
