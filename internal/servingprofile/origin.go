package servingprofile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// An Origin says where one value of the roles comes from.
type Origin struct {
	// Path of the value in the merged service, such as spec.roles[0].replicas.
	Path string
	// Value as JSON.
	Value string
	// Profile that the value comes from. It is empty if the service itself has it.
	Profile string
}

// Origins returns where each value of a spec's roles comes from, in the order of lists and of the names
// of fields. The Applied may be nil: then all of them are the service's.
func Origins(spec *structpb.Struct, a *Applied) []Origin {
	var all []Origin
	own := a.own()
	each(spec.GetFields()[fieldRoles], "spec."+fieldRoles, func(path string, v *structpb.Value) {
		o := Origin{Path: path, Value: jsonText(v)}
		if own[v] {
			o.Profile = a.Name
		}
		all = append(all, o)
	})
	return all
}

// each calls f for each value that has no values below it, apart from nulls.
func each(v *structpb.Value, path string, f func(string, *structpb.Value)) {
	o, l := v.GetStructValue().GetFields(), v.GetListValue().GetValues()
	if len(o)+len(l) == 0 {
		if isSet(v) {
			f(path, v)
		}
		return
	}
	for _, name := range slices.Sorted(maps.Keys(o)) {
		each(o[name], path+Step(name), f)
	}
	for i, e := range l {
		each(e, fmt.Sprintf("%s[%d]", path, i), f)
	}
}

// Step is a field's part of a path, as field.Path has it for fields and for keys of maps.
func Step(name string) string {
	if strings.ContainsAny(name, "./") {
		return "[" + name + "]"
	}
	return "." + name
}

// jsonText returns a value as JSON on one line.
func jsonText(v *structpb.Value) string {
	b, err := v.MarshalJSON()
	if err != nil {
		return "?" // No value of a document lacks a form in JSON.
	}
	return string(b)
}

// own returns the values that are the profile's. A merged spec shares them with the fragments.
func (a *Applied) own() map[*structpb.Value]bool {
	all := map[*structpb.Value]bool{}
	if a == nil {
		return all
	}
	for _, f := range a.fragments {
		leaves(structpb.NewStructValue(f), func(v *structpb.Value) { all[v] = true })
	}
	return all
}

// leaves calls f for each value that has no values below it, in any order.
func leaves(v *structpb.Value, f func(*structpb.Value)) {
	o, l := v.GetStructValue().GetFields(), v.GetListValue().GetValues()
	if len(o)+len(l) == 0 {
		f(v)
	}
	for _, e := range o {
		leaves(e, f)
	}
	for _, e := range l {
		leaves(e, f)
	}
}

// Explain says in errors about roles that the value is the profile's, or that it is merged with the
// profile's. An index in the path of a merged value may be another one than in the service. The Applied
// may be nil.
func (a *Applied) Explain(errs field.ErrorList) {
	if a == nil || len(errs) == 0 {
		return
	}
	own, roles := a.own(), a.spec.GetFields()[fieldRoles]
	for _, e := range errs {
		path, below := strings.CutPrefix(e.Field, "spec."+fieldRoles)
		at := find(roles, path)
		if !below || at == roles {
			continue
		}
		switch mine, theirs := count(at, own); {
		case mine > 0 && theirs == 0:
			e.Detail += " (this comes from profile " + a.Name + ")"
		case mine == 0 && e.Type == field.ErrorTypeRequired && strings.HasSuffix(e.Field, ".image"):
			e.Detail += " (profile " + a.Name + " has no container of this name)"
		case mine > 0:
			e.Detail += " (in the service merged with profile " + a.Name + ")"
		}
	}
}

// count returns how many values at a place are the profile's, and how many are not.
func count(v *structpb.Value, own map[*structpb.Value]bool) (mine, theirs int) {
	leaves(v, func(leaf *structpb.Value) {
		if own[leaf] {
			mine++
		} else {
			theirs++
		}
	})
	return mine, theirs
}

// find returns the value at a path, or the last one on the way to it.
func find(v *structpb.Value, path string) *structpb.Value {
	for path != "" {
		next, rest := descend(v, path)
		if next == nil {
			return v
		}
		v, path = next, rest
	}
	return v
}

// descend follows the first step of a path. Of several fields that it may be, it is the longest: a key
// of a map may have dots.
func descend(v *structpb.Value, path string) (next *structpb.Value, rest string) {
	length := 0
	for name, e := range v.GetStructValue().GetFields() {
		for _, s := range []string{"." + name, "[" + name + "]"} {
			after, ok := strings.CutPrefix(path, s)
			if ok && len(s) > length && (after == "" || after[0] == '.' || after[0] == '[') {
				next, rest, length = e, after, len(s)
			}
		}
	}
	i := 0
	if n, err := fmt.Sscanf(path, "[%d]", &i); next == nil && n == 1 && err == nil && i >= 0 && i < len(v.GetListValue().GetValues()) {
		return v.GetListValue().GetValues()[i], path[strings.IndexByte(path, ']')+1:]
	}
	return next, rest
}
