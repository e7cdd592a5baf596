package incoming

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"sync"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

// The declarations so far. Only package initialization appends to them. It is sequential,
// and complete before main starts.
var (
	objects, composites []kube.FieldSet
	nested              [][]string
	// complete is true once Fields was called. Later declarations would have no effect.
	complete bool
)

// declare adds a declaration. It panics if the codec may already have skipped the field.
func declare[T any](all *[]T, one T) {
	if complete {
		panic("Views and Paths must be declared in package variables")
	}
	*all = append(*all, one)
}

// check panics for a zero View or Path, which was not declared.
func check(declared bool) {
	if !declared {
		panic("an undeclared View or Path reads a request")
	}
}

func fieldsOf[T any]() kube.FieldSet { return kube.FieldsOf(reflect.TypeFor[T]()) }

// Fields returns the fields that this binary reads of the composite resource, and those that
// it reads of observed and required objects. Do not call it from package initialization.
func Fields() (composite, object kube.FieldSet) { return fields() }

var fields = sync.OnceValues(func() (composite, object kube.FieldSet) {
	complete = true
	of := kube.FieldSet{}
	for _, s := range objects {
		of = of.Union(s)
	}
	// A nested object is read like any object, so the set contains itself.
	object = kube.FieldSet{}
	for _, path := range nested {
		of = of.Union(kube.FieldAt(path, object))
	}
	maps.Copy(object, of)
	for _, path := range nested {
		if !same(at(object, path), object) {
			panic(fmt.Sprintf("%s is a nested object: read it with Views and Paths of its own", strings.Join(path, ".")))
		}
	}
	composite = object.Union(kube.FieldAt([]string{fieldSpec}, nil))
	for _, s := range composites {
		composite = composite.Union(s)
	}
	return composite, object
})

func at(s kube.FieldSet, path []string) kube.FieldSet {
	for _, name := range path {
		s = s[name]
	}
	return s
}

func same(a, b kube.FieldSet) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}
