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
	"sync"

	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/util/validation/field"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

// A Request is a RunFunctionRequest, which Crossplane sends to the function.
type Request struct {
	raw *fnv1.RunFunctionRequest
	// observed are the keys of the observed composed resources. Many readers want them, some of them for each cluster. A tenant's
	// request may have thousands of both.
	observed func() *observedKeys
}

// observedKeys are the keys of the observed composed resources, in the order of their text.
type observedKeys struct {
	all    []key.Key
	groups map[keyGroup][]key.Key
}

// A keyGroup is what the keys of one kind in one cluster have in common.
type keyGroup struct{ cluster, kind string }

// Of wraps a raw request. Its observed composed resources must not change any more.
func Of(raw *fnv1.RunFunctionRequest) Request {
	return Request{raw: raw, observed: sync.OnceValue(func() *observedKeys { return readKeys(raw.GetObserved().GetResources()) })}
}

func readKeys(resources map[string]*fnv1.Resource) *observedKeys {
	o := &observedKeys{all: make([]key.Key, 0, len(resources)), groups: map[keyGroup][]key.Key{}}
	for _, s := range slices.Sorted(maps.Keys(resources)) {
		k := key.Parse(s)
		group := keyGroup{cluster: k.Cluster, kind: k.Kind}
		o.all, o.groups[group] = append(o.all, k), append(o.groups[group], k)
	}
	return o
}

// Composite returns the composite resource.
func (r Request) Composite() Composite {
	return Composite{ObjectOf(r.raw.GetObserved().GetComposite().GetResource())}
}

// Observed returns the observed composed resource with a key.
func (r Request) Observed(k key.Key) Object {
	return ObjectOf(r.raw.GetObserved().GetResources()[k.String()].GetResource())
}

// ObservedKeys returns the keys of the observed composed resources, in the order of their text. Nobody may change them.
func (r Request) ObservedKeys() []key.Key { return r.observed().all }

// ObservedOf returns the keys of the observed composed resources of one kind in one cluster, in the order of their text. Nobody
// may change them.
func (r Request) ObservedOf(cluster, kind string) []key.Key {
	return r.observed().groups[keyGroup{cluster: cluster, kind: kind}]
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
