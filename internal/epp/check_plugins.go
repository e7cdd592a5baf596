package epp

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// roleOfType returns the role of the plugins of a type. A type that only the other dialect has
// may be any plugin of the platform team's image, unless it decides what the endpoint picker
// connects to.
func (v *verifier) roleOfType(pluginType string) role {
	if p, ok := v.d.plugins[pluginType]; ok {
		return p.role
	}
	if r := connecting(pluginType); r != "" {
		return r
	}
	if v.ownImage {
		return unknown
	}
	return other
}

// connecting returns the role of a type that some dialect has as a data source or a discovery.
// For other types it returns an empty string.
func connecting(pluginType string) role {
	for _, d := range []*dialect{&gaie, &llmd} {
		if r := d.plugins[pluginType].role; r == source || r == discovery {
			return r
		}
	}
	return ""
}

// usableTypes returns the types of plugins that a configuration may have, without those
// that only tests need.
func (v *verifier) usableTypes() []string {
	var types []string
	for t, p := range v.d.plugins {
		if !p.experimental && p.role != discovery && t != "header-based-testing-filter" && t != "destination-endpoint-served-verifier" {
			types = append(types, t)
		}
	}
	slices.Sort(types)
	return types
}

func (v *verifier) usableTypesOf(r role) []string {
	return slices.DeleteFunc(v.usableTypes(), func(t string) bool { return v.d.plugins[t].role != r })
}

// checkPlugins checks each plugin of the configuration by itself.
func (v *verifier) checkPlugins() {
	seen := map[string]int{}
	for i, p := range v.conf.Plugins {
		at := v.path.Child("plugins").Index(i)
		if first, twice := seen[p.Name]; twice && p.Name != "" {
			v.fail(field.Duplicate(at.Child("name"), text.Value(p.Name)+fmt.Sprintf(", which is plugins[%d]; give one of them another name", first)))
		} else {
			seen[p.Name] = i
		}
		known, ok := v.d.plugins[p.Type]
		if r := connecting(p.Name); r != "" && !ok && p.Name != p.Type {
			v.failWith(func() *field.Error {
				return field.Invalid(at.Child("name"), p.Name, fmt.Sprintf("must be another name: endpoint pickers use the %s of this name even where no reference names it", r))
			})
		}
		switch {
		case p.Type == "":
			v.fail(field.Required(at.Child("type"), "must be the type of a plugin"))
		case !ok && v.ownImage:
			v.warn(at.Child("type"), func() string {
				return fmt.Sprintf("%s is not a plugin of the known release of dialect %s: the endpoint picker starts only if its image has this plugin", text.Value(p.Type), v.d.name)
			})
		case !ok:
			v.failWith(func() *field.Error { return v.unknownType(at.Child("type"), p.Type) })
		case known.experimental:
			v.fail(field.Forbidden(at.Child("type"), p.Type+" is experimental: the endpoint picker loads it only with the flag --allow-experimental-plugins, which is not set"))
		case known.role == discovery:
			v.fail(field.Forbidden(at.Child("type"), p.Type+" has no use here: "+ownEndpoints))
		default:
			v.checkParameters(at.Child("parameters"), p, known)
		}
	}
}

func (v *verifier) unknownType(at *field.Path, got string) *field.Error {
	for _, o := range []*dialect{&gaie, &llmd} {
		if p, ok := o.plugins[got]; ok && !p.experimental {
			return field.Invalid(at, got, fmt.Sprintf("is a plugin of dialect %s (apiVersion %s), and this configuration is for dialect %s, whose plugins are %s", o.name, o.apiVersions[0], v.d.name, v.known))
		}
	}
	return field.Invalid(at, text.Value(got), fmt.Sprintf("is not a plugin of dialect %s: its plugins are %s", v.d.name, v.known))
}

func (v *verifier) checkParameters(at *field.Path, p pluginSpec, known plugin) {
	if p.Parameters == nil {
		if known.needsParams {
			v.fail(field.Required(at, "this plugin does not start without parameters"))
		}
		return
	}
	if known.params == nil {
		return
	}
	doc, ok := p.Parameters.(map[string]any)
	if !ok {
		v.fail(field.Invalid(at, text.Value(fmt.Sprint(p.Parameters)), "must be an object"))
		return
	}
	into := known.params()
	if v.d.strict {
		v.checkParameterNames(at, p.Type, doc, reflect.TypeOf(into).Elem())
	}
	errs := decodeParameters(doc, at, into)
	if c, ok := into.(checker); ok && len(errs) == 0 {
		errs = c.check(at)
	}
	v.fail(errs...)
}

// checkParameterNames finds parameters that the plugin does not read. It ignores case in
// their names, as encoding/json does.
func (v *verifier) checkParameterNames(at *field.Path, pluginType string, given any, t reflect.Type) {
	switch g := given.(type) {
	case map[string]any:
		if t.Kind() != reflect.Struct {
			return
		}
		known := jsonFields(t)
		names := slices.Sorted(maps.Keys(known))
		for _, name := range slices.Sorted(maps.Keys(g)) {
			reads := fieldThatReads(names, name)
			switch {
			case reads != "":
				v.checkParameterNames(at.Child(name), pluginType, g[name], known[reads])
			case v.ownImage:
				v.warn(at.Child(text.Value(name)), func() string {
					return fmt.Sprintf("is not a parameter of %s in the known release of dialect %s: the endpoint picker starts only if its image has this parameter", pluginType, v.d.name)
				})
			default:
				v.failWith(func() *field.Error {
					return field.Forbidden(at.Child(text.Value(name)), "is not a parameter of this plugin: the parameters are "+listTypes(names))
				})
			}
		}
	case []any:
		for i, e := range g {
			if t.Kind() == reflect.Slice {
				v.checkParameterNames(at.Index(i), pluginType, e, t.Elem())
			}
		}
	}
}

// decodeParameters decodes parameters as kube.DecodeMap does, but ignores case in their names. The path of an error has the
// name of the field.
func decodeParameters(doc map[string]any, at *field.Path, into any) field.ErrorList {
	named, _ := withFieldNames(doc, reflect.TypeOf(into).Elem()).(map[string]any)
	return kube.DecodeMap(named, at, into)
}

// withFieldNames returns parameters under the names of the fields that read them. Of two for one field the last in the order
// of their names counts: endpoint pickers get them in that order.
func withFieldNames(given any, t reflect.Type) any {
	switch g := given.(type) {
	case map[string]any:
		if t.Kind() != reflect.Struct {
			return given
		}
		known := jsonFields(t)
		names := slices.Sorted(maps.Keys(known))
		named := make(map[string]any, len(g))
		for _, name := range slices.Sorted(maps.Keys(g)) {
			if reads := fieldThatReads(names, name); reads != "" {
				named[reads] = withFieldNames(g[name], known[reads])
			}
		}
		return named
	case []any:
		if t.Kind() != reflect.Slice {
			return given
		}
		named := make([]any, len(g))
		for i, e := range g {
			named[i] = withFieldNames(e, t.Elem())
		}
		return named
	}
	return given
}

// fieldThatReads returns the field that a parameter is for, or an empty string. As in encoding/json, its case does not matter.
func fieldThatReads(fields []string, parameter string) string {
	if i := slices.IndexFunc(fields, func(f string) bool { return strings.EqualFold(f, parameter) }); i >= 0 {
		return fields[i]
	}
	return ""
}

// jsonFields returns the types of the fields of a struct, by their names in JSON.
func jsonFields(t reflect.Type) map[string]reflect.Type {
	m := make(map[string]reflect.Type, t.NumField())
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		m[name] = t.Field(i).Type
		if m[name].Kind() == reflect.Pointer {
			m[name] = m[name].Elem()
		}
	}
	return m
}
