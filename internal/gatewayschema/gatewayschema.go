/*
Package gatewayschema checks specs of HTTPRoutes and Gateways by the schemas of the Gateway API's CRDs. They are those of the
standard channel, with the fields that only the experimental one has. The schemas are generated: see internal/api/xrdgen.

It has no rules of CEL: these cost 7 MB of binary, 5 MB of heap, most of a second at each start, and a budget for each call. It does
not use the API server's validator either (k8s.io/kube-openapi/pkg/validation/validate). That compares each error with all others,
so the errors of one route within the limits take it most of a minute (result.go, AddErrors).
*/
package gatewayschema

import (
	_ "embed" // The schemas.
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/utils/ptr"

	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

var (
	//go:embed httproute.json
	httpRoute []byte
	//go:embed gateway.json
	gateway []byte
)

// A Schema is that of the spec of a kind.
type Schema struct {
	Kind string

	spec func() *spec.Schema
}

// The schemas. They are read when they are first used.
var (
	HTTPRoute = &Schema{"HTTPRoute", read(httpRoute)}
	Gateway   = &Schema{"Gateway", read(gateway)}
)

func read(file []byte) func() *spec.Schema {
	return sync.OnceValue(func() *spec.Schema {
		s := &spec.Schema{}
		if err := json.Unmarshal(file, s); err != nil {
			panic(fmt.Sprintf("a generated schema is invalid: %v", err)) // TestCheck would fail.
		}
		return s
	})
}

// Fields returns the names of the fields of the spec, sorted.
func (s *Schema) Fields() []string { return slices.Sorted(maps.Keys(s.spec().Properties)) }

// Check returns what the schema refuses of a spec, as kube.AsMap returns it without nulls, and whose values have the types of the
// Gateway API. Fields that the schema does not have may be those of a later Gateway API, so the cluster judges them. It stops after
// kube.MaxProblems errors. Missing fields of an object come first. The others are in the order of the names of the fields.
func (s *Schema) Check(path *field.Path, doc map[string]any) field.ErrorList {
	c := checker{}
	c.value(path, s.spec(), doc)
	return c.errs[:min(len(c.errs), kube.MaxProblems)]
}

type checker struct{ errs field.ErrorList }

func (c *checker) value(path *field.Path, s *spec.Schema, v any) {
	if len(c.errs) >= kube.MaxProblems {
		return
	}
	if len(s.Enum) > 0 {
		c.errs = append(c.errs, oneOf(path, fmt.Sprint(v), s.Enum)...)
	}
	switch v := v.(type) {
	case map[string]any:
		c.object(path, s, v)
	case []any:
		c.list(path, s, v)
	case string:
		c.errs = append(c.errs, ofText(path, s, v)...)
	case int64:
		c.errs = append(c.errs, ofNumber(path, s, v)...)
	}
}

func (c *checker) object(path *field.Path, s *spec.Schema, fields map[string]any) {
	if most := ptr.Deref(s.MaxProperties, int64(len(fields))); int64(len(fields)) > most {
		c.errs = append(c.errs, field.TooMany(path, len(fields), int(most)))
		return
	}
	for _, name := range s.Required {
		if _, has := fields[name]; !has {
			c.errs = append(c.errs, field.Required(path.Child(name), "must be set"))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if of, known := s.Properties[name]; known {
			c.value(path.Child(name), &of, fields[name])
		} else if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
			c.value(path.Key(text.Value(name)), s.AdditionalProperties.Schema, fields[name])
		}
	}
}

// list checks a list, and its elements unless there are too many.
func (c *checker) list(path *field.Path, s *spec.Schema, list []any) {
	n := int64(len(list))
	if least := ptr.Deref(s.MinItems, 0); n < least {
		c.errs = append(c.errs, field.Invalid(path, n, atLeast(least, "items")))
	}
	if most := ptr.Deref(s.MaxItems, n); n > most {
		c.errs = append(c.errs, field.TooMany(path, len(list), int(most)))
		return
	}
	kind, _ := s.Extensions.GetString("x-kubernetes-list-type")
	keys, _ := s.Extensions.GetStringSlice("x-kubernetes-list-map-keys")
	seen := map[string]bool{}
	for i, element := range list {
		c.value(path.Index(i), s.Items.Schema, element)
		if kind != "map" && kind != "set" {
			continue
		}
		at := path.Index(i)
		if len(keys) == 1 {
			at = at.Child(keys[0])
		}
		id, has := identity(element, keys)
		if has && seen[id] {
			c.errs = append(c.errs, field.Duplicate(at, text.Value(id)))
		}
		seen[id] = true
	}
}

// identity returns what an element is told from others by: its keys, if it has them, or in a set the whole element.
func identity(element any, keys []string) (id string, has bool) {
	fields, isMap := element.(map[string]any)
	if !isMap {
		return fmt.Sprint(element), true
	}
	values := make([]string, len(keys))
	for i, k := range keys {
		if fields[k] == nil {
			return "", false // The schema requires the keys.
		}
		values[i] = fmt.Sprint(fields[k])
	}
	return strings.Join(values, ", "), true
}

// atLeast says how much a field has to have.
func atLeast(n int64, what string) string {
	if n == 1 {
		return "must not be empty"
	}
	return fmt.Sprintf("must have at least %d %s", n, what)
}

func oneOf(path *field.Path, v string, enum []any) field.ErrorList {
	valid := make([]string, len(enum))
	for i, e := range enum {
		valid[i] = fmt.Sprint(e)
	}
	if v == "" {
		return field.ErrorList{field.NotSupported(path, v, valid)} // check.OneOf takes it for one that is not set.
	}
	return check.OneOf(path, v, valid...)
}

func ofText(path *field.Path, s *spec.Schema, v string) field.ErrorList {
	var errs field.ErrorList
	if least := ptr.Deref(s.MinLength, 0); int64(utf8.RuneCountInString(v)) < least {
		errs = append(errs, field.Invalid(path, text.Value(v), atLeast(least, "characters")))
	}
	if s.MaxLength != nil {
		errs = append(errs, check.Length(path, v, int(*s.MaxLength))...)
	}
	if len(errs) == 0 && s.Pattern != "" && !compiled(s.Pattern).MatchString(v) {
		errs = append(errs, field.Invalid(path, text.Value(v), fmt.Sprintf("must match '%s'", s.Pattern)))
	}
	return errs
}

var patterns sync.Map

// compiled returns the regular expression of a pattern. The schemas have some twenty of them.
func compiled(pattern string) *regexp.Regexp {
	if re, has := patterns.Load(pattern); has {
		return re.(*regexp.Regexp) //nolint:forcetypeassert // Only these are stored.
	}
	re := regexp.MustCompile(pattern) // TestPatterns would fail.
	patterns.Store(pattern, re)
	return re
}

func ofNumber(path *field.Path, s *spec.Schema, v int64) field.ErrorList {
	switch {
	case s.Minimum != nil && s.Maximum != nil:
		return check.Between(path, v, int64(*s.Minimum), int64(*s.Maximum))
	case s.Minimum != nil && v < int64(*s.Minimum):
		return field.ErrorList{field.Invalid(path, v, fmt.Sprintf("must be at least %d", int64(*s.Minimum)))}
	case s.Maximum != nil && v > int64(*s.Maximum):
		return field.ErrorList{field.Invalid(path, v, fmt.Sprintf("must be at most %d", int64(*s.Maximum)))}
	}
	return nil
}
