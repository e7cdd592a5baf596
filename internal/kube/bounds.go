package kube

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// MaxProblems is how many problems of one document are reported. Without a limit, the
	// errors could take more memory than the document.
	MaxProblems = 32
	// maxElements limits the elements of a list and the fields of an object. Kubernetes limits
	// few lists of a pod, but real pods have at most some hundreds of anything.
	maxElements = 1000
	// MaxDepth limits how deep lists and objects are nested. Objects of Kubernetes are nested
	// less than half as deep.
	MaxDepth = 64
	// MaxValues limits the values of a document in all. An empty container takes two hundred
	// times as much memory decoded as encoded.
	MaxValues = 50_000
)

// CheckBounds checks the size of a document that a user wrote, including fields that nobody
// reads. Call it first: later code may take time and memory in proportion to the document.
// It skips the top-level fields in passOver.
func CheckBounds(s *structpb.Struct, at *field.Path, passOver ...string) field.ErrorList {
	if values := 0; withinBounds(s.GetFields(), passOver, &values) {
		return nil
	}
	b := bounds{}
	if !b.fits(len(s.GetFields()), 1, "fields", func() *field.Path { return at }) {
		return b.errs
	}
	for _, name := range slices.Sorted(maps.Keys(s.GetFields())) {
		if !slices.Contains(passOver, name) {
			b.value(s.GetFields()[name], 1, below(at, step{name: name}))
		}
	}
	if b.values > MaxValues {
		b.errs = append(b.errs, field.Invalid(at, fmt.Sprintf("more than %d values", MaxValues), fmt.Sprintf("must have at most %d values in all", MaxValues)))
	}
	return b.errs
}

// withinBounds reports whether a document is within all limits, without making paths or
// sorting. Nearly all documents are.
func withinBounds(fields map[string]*structpb.Value, passOver []string, values *int) bool {
	if len(fields) > maxElements {
		return false
	}
	for name, v := range fields {
		if !slices.Contains(passOver, name) && !within(v, 1, values) {
			return false
		}
	}
	return *values <= MaxValues
}

func within(v *structpb.Value, depth int, values *int) bool {
	if *values++; *values > MaxValues {
		return false
	}
	switch t := v.GetKind().(type) {
	case *structpb.Value_StructValue:
		if !fits(len(t.StructValue.GetFields()), depth) {
			return false
		}
		for _, e := range t.StructValue.GetFields() {
			if !within(e, depth+1, values) {
				return false
			}
		}
	case *structpb.Value_ListValue:
		if !fits(len(t.ListValue.GetValues()), depth) {
			return false
		}
		for _, e := range t.ListValue.GetValues() {
			if !within(e, depth+1, values) {
				return false
			}
		}
	}
	return true
}

// fits reports whether a list or an object of n elements is allowed at a depth.
func fits(n, depth int) bool { return n <= maxElements && (n == 0 || depth <= MaxDepth) }

// bounds collects the problems of a document, in the order of its fields' names.
type bounds struct {
	values int
	errs   field.ErrorList
}

// A pathFunc makes the path of a value. It is called only for an error.
type pathFunc func() *field.Path

func below(at *field.Path, s step) pathFunc {
	return func() *field.Path { return s.from(at) }
}

func (p pathFunc) step(s step) pathFunc {
	return func() *field.Path { return s.from(p()) }
}

// done reports whether to stop: there are too many values or problems.
func (b *bounds) done() bool { return b.values > MaxValues || len(b.errs) >= MaxProblems }

func (b *bounds) value(v *structpb.Value, depth int, at pathFunc) {
	b.values++
	if b.done() {
		return
	}
	switch t := v.GetKind().(type) {
	case *structpb.Value_StructValue:
		fields := t.StructValue.GetFields()
		if !b.fits(len(fields), depth, "fields", at) {
			return
		}
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			b.value(fields[name], depth+1, at.step(step{name: name}))
		}
	case *structpb.Value_ListValue:
		if !b.fits(len(t.ListValue.GetValues()), depth, "elements", at) {
			return
		}
		for i, e := range t.ListValue.GetValues() {
			b.value(e, depth+1, at.step(step{index: i}))
		}
	}
}

// fits reports whether a list or an object is within the limits, and adds an error if not.
func (b *bounds) fits(n, depth int, of string, at pathFunc) bool {
	switch {
	case n > maxElements:
		b.errs = append(b.errs, field.Invalid(at(), fmt.Sprintf("%d %s", n, of), fmt.Sprintf("must have at most %d", maxElements)))
	case n > 0 && depth > MaxDepth:
		b.errs = append(b.errs, field.Invalid(at(), "...", fmt.Sprintf("must be nested at most %d deep", MaxDepth)))
	default:
		return true
	}
	return false
}
