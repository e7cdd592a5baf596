/*
Package gatewayschema checks specs of HTTPRoutes and Gateways by the schemas of the Gateway API's CRDs. They are those of the
standard channel, with the fields that only the experimental one has. It has no rules of CEL: these cost 7 MB of binary, 5 MB of heap, most of a second at each start,
and a budget for each call. The schemas are generated: see internal/api/xrdgen.
*/
package gatewayschema

import (
	"cmp"
	_ "embed" // The schemas.
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation/field"
	openapierrors "k8s.io/kube-openapi/pkg/validation/errors"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"

	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

var (
	//go:embed httproute.json
	httpRoute []byte
	//go:embed gateway.json
	gateway []byte
)

// A Schema is that of the spec of one kind.
type Schema func() *spec.Schema

// The schemas. They are read when they are first used.
var (
	HTTPRoute = read(httpRoute)
	Gateway   = read(gateway)
)

func read(file []byte) Schema {
	return sync.OnceValue(func() *spec.Schema {
		s := &spec.Schema{}
		if err := json.Unmarshal(file, s); err != nil {
			panic(fmt.Sprintf("a generated schema is invalid: %v", err)) // TestCheck would fail.
		}
		return s
	})
}

// Check returns what the schema refuses of a spec, as kube.AsMap returns it without nulls. Fields that the schema does not have may be
// those of a later Gateway API, so the cluster judges them. The errors are sorted by their paths.
func (s Schema) Check(path *field.Path, doc map[string]any) field.ErrorList {
	errs := lists(path, s(), doc)
	for _, err := range validate.NewSchemaValidator(s(), nil, path.String(), strfmt.Default).Validate(doc).Errors {
		errs = append(errs, fieldError(path, err))
	}
	slices.SortStableFunc(errs, func(a, b *field.Error) int {
		return cmp.Or(strings.Compare(a.Field, b.Field), strings.Compare(a.Detail, b.Detail))
	})
	return errs
}

// fieldError puts an error of the library into the words of the others.
func fieldError(root *field.Path, err error) *field.Error {
	wrong := &openapierrors.Validation{}
	if !errors.As(err, &wrong) {
		return field.Invalid(root, "", text.OneLine(err.Error()))
	}
	path, value := field.NewPath(text.OneLine(wrong.Name)), wrong.Value // A tenant chooses the keys of maps.
	if s, ok := value.(string); ok {
		value = text.Value(s)
	}
	// Values of headers may be secret.
	if strings.HasSuffix(wrong.Name, "].value") {
		value = "[...]"
	}
	switch wrong.Code() {
	case openapierrors.RequiredFailCode:
		return field.Required(path, "must be set")
	case openapierrors.TooLongFailCode:
		return field.TooLongCharacters(path, fmt.Sprint(value), number(wrong.Valid))
	case openapierrors.MaxItemsFailCode:
		return field.TooMany(path, number(wrong.Value), number(wrong.Valid))
	case openapierrors.EnumFailCode:
		return notSupported(path, value, wrong.Values)
	}
	// The library says what should be, with the path before it.
	_, detail, _ := strings.Cut(wrong.Error(), " in body should ")
	detail = strings.NewReplacer("greater than or equal to", "at least", "less than or equal to", "at most").Replace(detail)
	return field.Invalid(path, value, "must "+cmp.Or(detail, "be of another type"))
}

func number(v any) int {
	n, _ := v.(int64)
	return int(n)
}

func notSupported(path *field.Path, value any, values []any) *field.Error {
	valid := make([]string, len(values))
	for i, v := range values {
		valid[i] = fmt.Sprint(v)
	}
	if errs := check.OneOf(path, fmt.Sprint(value), valid...); len(errs) > 0 {
		return errs[0]
	}
	return field.NotSupported(path, fmt.Sprint(value), valid)
}

// lists returns the elements that a list has twice, which the library does not look for: those with the same keys, and those of sets.
func lists(path *field.Path, s *spec.Schema, v any) field.ErrorList {
	var errs field.ErrorList
	switch v := v.(type) {
	case map[string]any:
		for name, of := range s.Properties {
			if in, has := v[name]; has {
				errs = append(errs, lists(path.Child(name), &of, in)...)
			}
		}
	case []any:
		if s.Items == nil || s.Items.Schema == nil {
			return nil
		}
		errs = twice(path, s, v)
		for i, element := range v {
			errs = append(errs, lists(path.Index(i), s.Items.Schema, element)...)
		}
	}
	return errs
}

func twice(path *field.Path, s *spec.Schema, list []any) field.ErrorList {
	kind, _ := s.Extensions.GetString("x-kubernetes-list-type")
	keys, _ := s.Extensions.GetStringSlice("x-kubernetes-list-map-keys")
	if kind != "map" && kind != "set" {
		return nil
	}
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, element := range list {
		at := path.Index(i)
		if len(keys) == 1 {
			at = at.Child(keys[0])
		}
		id, has := identity(element, keys)
		if has && seen[id] {
			errs = append(errs, field.Duplicate(at, text.Value(id)))
		}
		seen[id] = true
	}
	return errs
}

// identity returns what an element is told from others by: its keys, if it has them, or in a set the whole element.
func identity(element any, keys []string) (id string, has bool) {
	fields, isMap := element.(map[string]any)
	if !isMap || len(keys) == 0 {
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
