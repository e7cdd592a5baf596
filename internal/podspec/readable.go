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
)

const (
	// maxErrors is how many problems of a template are told.
	maxErrors = 50
	// maxValue, maxDetail and maxPath are how much is repeated of what a user wrote.
	maxValue  = 80
	maxDetail = 400
	maxPath   = 250
)

// readable bounds errors, orders them, and gives a remedy to those that the
// library leaves without. It goes through maps, in any order.
func readable(errs field.ErrorList) field.ErrorList {
	for _, e := range errs {
		e.Field, e.Detail = shown(e.Field, maxPath), shown(e.Detail, maxDetail)
		e.BadValue = value(e.BadValue)
		if e.Detail == "" {
			e.Detail = remedy(e)
		}
	}
	slices.SortStableFunc(errs, func(a, b *field.Error) int {
		return cmp.Or(strings.Compare(a.Field, b.Field), strings.Compare(text(a.BadValue), text(b.BadValue)), strings.Compare(a.Detail, b.Detail))
	})
	if more := len(errs) - maxErrors; more > 0 {
		last := errs[maxErrors-1]
		last.Detail = fmt.Sprintf("%s (there are %d more problems in this template)", last.Detail, more)
		errs = errs[:maxErrors]
	}
	return errs
}

// text is a value by which errors of one field are ordered. Those with numbers come in
// the order of the template already.
func text(v any) string {
	s, _ := v.(string)
	return s
}

// remedy of an error of which the library says only what kind it is.
func remedy(e *field.Error) string {
	switch {
	case e.Type == field.ErrorTypeRequired:
		return "must be set: Kubernetes makes no pod without it"
	case e.Type == field.ErrorTypeNotFound && (strings.Contains(e.Field, ".volumeMounts[") || strings.Contains(e.Field, ".volumeDevices[")):
		return "must be the name of one of the template's volumes"
	case e.Type == field.ErrorTypeNotFound:
		return "must be a name that the template defines"
	}
	return ""
}

// value is what an error repeats of a value. The library repeats whole objects, in
// the notation of Go.
func value(v any) any {
	if q, ok := v.(resource.Quantity); ok {
		return shown(q.String(), maxValue)
	}
	r := reflect.ValueOf(v)
	for r.Kind() == reflect.Pointer && !r.IsNil() {
		r = r.Elem()
	}
	if r.Kind() != reflect.Invalid && r.CanInt() {
		return r.Int()
	}
	switch r.Kind() { //nolint:exhaustive // Of the rest, no error has a value.
	case reflect.String:
		return shown(r.String(), maxValue)
	case reflect.Bool, reflect.Float64, reflect.Float32:
		return r.Interface()
	case reflect.Slice, reflect.Array:
		return "[...]"
	case reflect.Struct, reflect.Map:
		return "{...}"
	}
	return v
}

func shown(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "..."
}

// moved gives errors at one path, and below it, another.
func moved(errs field.ErrorList, from, to *field.Path) field.ErrorList {
	was := from.String()
	for _, e := range errs {
		if rest, ok := strings.CutPrefix(e.Field, was); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			e.Field = to.String() + rest
		}
	}
	return errs
}

// keyed adds the key to the path of errors about the values of a map. The library names
// the map and the value only.
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

// without leaves out what is said of one field.
func without(errs field.ErrorList, path *field.Path) field.ErrorList {
	at := path.String()
	return slices.DeleteFunc(errs, func(e *field.Error) bool { return e.Field == at })
}
