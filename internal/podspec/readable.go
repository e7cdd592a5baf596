package podspec

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

const (
	// maxErrors is how many problems of a template are reported.
	maxErrors = 50
	// maxValue, maxDetail and maxPath limit the parts of an error, which repeat what a user
	// wrote, in bytes.
	maxValue  = 80
	maxDetail = 400
	maxPath   = 250
)

// readable shortens errors and sorts them, because the library ranges over maps. It adds a
// remedy to errors without a detail.
func readable(errs field.ErrorList) field.ErrorList {
	for _, e := range errs {
		e.Field, e.Detail = text.Cut(e.Field, maxPath), text.Cut(e.Detail, maxDetail)
		e.BadValue = value(e.BadValue)
		if e.Detail == "" {
			e.Detail = remedy(e)
		}
	}
	slices.SortStableFunc(errs, func(a, b *field.Error) int {
		return cmp.Or(strings.Compare(a.Field, b.Field), strings.Compare(valueText(a.BadValue), valueText(b.BadValue)), strings.Compare(a.Detail, b.Detail))
	})
	if more := len(errs) - maxErrors; more > 0 {
		last := errs[maxErrors-1]
		last.Detail = fmt.Sprintf("%s (there are %d more problems in this template)", last.Detail, more)
		errs = errs[:maxErrors]
	}
	return errs
}

// valueText returns the text by which errors of one field are sorted. Errors with numbers are
// already in the order of the template.
func valueText(v any) string {
	s, _ := v.(string)
	return s
}

// remedy returns the detail of an error for which the library gives only a type.
func remedy(e *field.Error) string {
	switch {
	case e.Type == field.ErrorTypeRequired:
		return "must be set: Kubernetes creates no pod without it"
	case e.Type == field.ErrorTypeNotFound && (strings.Contains(e.Field, ".volumeMounts[") || strings.Contains(e.Field, ".volumeDevices[")):
		return "must be the name of one of the template's volumes"
	case e.Type == field.ErrorTypeNotFound:
		return "must be a name that the template defines"
	}
	return ""
}

// value returns a short form of a value for an error. The library repeats whole objects, in
// Go's notation.
func value(v any) any {
	if q, ok := v.(resource.Quantity); ok {
		return text.Cut(q.String(), maxValue)
	}
	r := reflect.ValueOf(v)
	for r.Kind() == reflect.Pointer && !r.IsNil() {
		r = r.Elem()
	}
	if r.Kind() != reflect.Invalid && r.CanInt() {
		return r.Int()
	}
	switch r.Kind() { //nolint:exhaustive // No error has a value of another kind.
	case reflect.String:
		return text.Cut(r.String(), maxValue)
	case reflect.Bool, reflect.Float64, reflect.Float32:
		return r.Interface()
	case reflect.Slice, reflect.Array:
		return "[...]"
	case reflect.Struct, reflect.Map:
		return "{...}"
	}
	return v
}

// moved replaces a path in errors at it and below it.
func moved(errs field.ErrorList, from, to *field.Path) field.ErrorList {
	was := from.String()
	for _, e := range errs {
		if rest, ok := strings.CutPrefix(e.Field, was); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			e.Field = to.String() + rest
		}
	}
	return errs
}

// keyed adds the key to the path of errors about a map's values. The library names only the
// map and the value.
func keyed(errs field.ErrorList, path *field.Path, values map[string]string) field.ErrorList {
	at := path.String()
	var keys map[string][]string
	for _, e := range errs {
		v, ok := e.BadValue.(string)
		if e.Field != at || !ok {
			continue
		}
		if keys == nil {
			keys = make(map[string][]string, len(values))
			for _, k := range slices.Sorted(maps.Keys(values)) {
				keys[values[k]] = append(keys[values[k]], k)
			}
		}
		if all := keys[v]; len(all) > 0 {
			e.Field, keys[v] = path.Key(all[0]).String(), all[1:]
		}
	}
	return errs
}

// without removes the errors of one field.
func without(errs field.ErrorList, path *field.Path) field.ErrorList {
	at := path.String()
	return slices.DeleteFunc(errs, func(e *field.Error) bool { return e.Field == at })
}
