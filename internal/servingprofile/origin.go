package servingprofile

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
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
		at, _ := kube.Find(roles, path)
		if !below || at == roles {
			continue
		}
		if e.Type == field.ErrorTypeRequired && a.otherContainer(e, own) {
			continue
		}
		switch mine, theirs := count(at, own); {
		case mine > 0 && theirs == 0:
			e.Detail += " (this comes from profile " + a.Name + ")"
		case mine > 0:
			e.Detail += " (in the service merged with profile " + a.Name + ")"
		}
	}
}

// imageOf matches the path of a container's image, in its parts: the role, the template, and the list with the index.
var imageOf = regexp.MustCompile(`^spec\.roles\[(\d+)\]\.(template|leaderTemplate)\.spec\.(containers|initContainers)\[(\d+)\]\.image$`)

// otherContainer makes of a container without an image, which only the service has, an error about its name.
// The profile has containers of other names, and one of them may be meant. It tells whether that is so.
func (a *Applied) otherContainer(e *field.Error, own map[*structpb.Value]bool) bool {
	m := imageOf.FindStringSubmatch(e.Field)
	if m == nil {
		return false
	}
	role, _ := kube.Find(a.spec.GetFields()[fieldRoles], "["+m[1]+"]")
	container, rest := kube.Find(role, fmt.Sprintf(".%s.spec.%s[%s]", m[2], m[3], m[4]))
	mine, _ := count(container, own)
	theirs := a.containers(role.GetStructValue().GetFields()[fieldComponentType].GetStringValue(), m[2], m[3])
	if rest != "" || mine > 0 || len(theirs) == 0 {
		return false
	}
	at := a.inService(m, nameOf(container))
	if at == "" {
		return false
	}
	*e = field.Error{Type: field.ErrorTypeInvalid, Field: at, BadValue: text.Value(nameOf(container))}
	if e.Detail = fmt.Sprintf("profile %s has only container %s: use that name to change it, or set an image to add another container", a.Name, theirs[0]); len(theirs) > 1 {
		e.Detail = fmt.Sprintf("profile %s has only containers %s: use one of these names to change it, or set an image to add another container", a.Name, text.Names(theirs, maxNames))
	}
	return true
}

// containers returns the names in a list of containers of the profile's template for a type of role, in quotes.
func (a *Applied) containers(of, template, list string) []string {
	all, rest := kube.Find(a.fragment(of, template), ".spec."+list)
	if rest != "" {
		return nil
	}
	var names []string
	for _, c := range all.GetListValue().GetValues() {
		names = append(names, strconv.Quote(text.Value(nameOf(c))))
	}
	return names
}

// inService is the path of the name of a container in the service itself, or nothing. A leader whose template
// only the profile has gets what the service says of the template.
func (a *Applied) inService(m []string, name string) string {
	for _, template := range []string{m[2], fieldTemplate} {
		at := fmt.Sprintf("[%s].%s.spec.%s", m[1], template, m[3])
		list, rest := kube.Find(a.service.GetFields()[fieldRoles], at)
		i := slices.IndexFunc(list.GetListValue().GetValues(), func(c *structpb.Value) bool { return nameOf(c) == name })
		if rest == "" && i >= 0 {
			return fmt.Sprintf("spec.%s%s[%d].name", fieldRoles, at, i)
		}
	}
	return ""
}

func nameOf(container *structpb.Value) string {
	return container.GetStructValue().GetFields()["name"].GetStringValue()
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
