package plan

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/gatewayschema"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

// How many specs a test makes up for a field. Each takes some 2 ms. Fields with more rules get more of them.
const (
	someSpecs = 300
	manySpecs = 1000
)

// TestRandomRoutes makes up routes by the real CRDs. Whatever an API server refuses of them is refused here, too. What it accepts may
// still be refused, but not by the schema.
func TestRandomRoutes(t *testing.T) {
	randomly(t, "httproutes", `{"parentRefs": [{"name": "g"}]}`, gatewayschema.HTTPRoute, checkedRoute, map[string]uint64{"parentRefs": someSpecs, "rules": manySpecs})
}

// TestRandomGateways does the same with Gateways.
func TestRandomGateways(t *testing.T) {
	randomly(t, "gateways", `{"gatewayClassName": "c", "listeners": [{"name": "l", "port": 1, "protocol": "HTTP"}]}`, gatewayschema.Gateway, checkedGateway,
		map[string]uint64{"addresses": someSpecs, "infrastructure": someSpecs, "listeners": manySpecs, "tls": someSpecs})
}

// randomly checks specs with one random field, so many for each.
func randomly(t *testing.T, plural, rest string, schema *gatewayschema.Schema, check func(t *testing.T, doc string, access inputv1alpha1.Access) field.ErrorList, fields map[string]uint64) {
	t.Helper()
	for access, crd := range definitions(t, plural) {
		spec := crd.CRD.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		for name, specs := range fields {
			t.Run(channels[access]+" "+name, func(t *testing.T) {
				of := spec.Properties[name]
				var accepted, refused uint64
				for seed := range specs {
					r := random{rand.New(rand.NewPCG(seed, 0))}
					doc := map[string]any{}
					if err := json.Unmarshal([]byte(rest), &doc); err != nil {
						t.Fatal(err)
					}
					doc[name] = r.field(&of)
					b, err := json.Marshal(doc)
					if err != nil {
						t.Fatal(err)
					}
					api := crd.Validate([]byte(`{apiVersion: gateway.networking.k8s.io/v1, kind: ` + crd.CRD.Spec.Names.Kind + `, metadata: {name: a, namespace: b}, spec: ` + string(b) + `}`))
					if len(api) == 0 {
						accepted++
						if errs := schema.Check(field.NewPath("spec"), kube.AsMap(document(t, string(b)))); len(errs) > 0 {
							t.Errorf("seed %d: the API server accepts %s: %v", seed, b, errs)
						}
						continue
					}
					refused++
					if errs := check(t, string(b), access); len(errs) == 0 {
						t.Errorf("seed %d: nothing is wrong with %s; the API server says %v", seed, b, api)
					}
				}
				if min(accepted, refused) < specs/20 {
					t.Errorf("the API server accepts %d specs and refuses %d: these show little", accepted, refused)
				}
			})
		}
	}
}

// random makes up values by a schema.
type random struct{ *rand.Rand }

// field makes up the value of a field of a spec. A list has one element, or less often two, and each of them few fields.
func (r random) field(s *extv1.JSONSchemaProps) any {
	if s.Type != "array" {
		return r.value(s)
	}
	l := []any{}
	for range 1 + r.IntN(3)/2 {
		element := r.value(s.Items.Schema)
		r.shorten(element.(map[string]any), s.Items.Schema.Required)
		l = append(l, element)
	}
	return l
}

func (r random) value(s *extv1.JSONSchemaProps) any {
	switch {
	case len(s.Enum) > 0 && r.IntN(20) > 0:
		var v any
		if err := json.Unmarshal(s.Enum[r.IntN(len(s.Enum))].Raw, &v); err != nil {
			panic(err)
		}
		return v
	case s.Type == "object" && s.Properties["extensionRef"].Type != "":
		return r.filter(s)
	case s.AdditionalProperties != nil:
		o := map[string]any{}
		for range r.IntN(3) {
			o[r.text()] = r.value(s.AdditionalProperties.Schema)
		}
		return o
	case s.Type == "object":
		o := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			p := s.Properties[name]
			if slices.Contains(s.Required, name) && r.IntN(30) > 0 || r.IntN(3) == 0 {
				o[name] = r.value(&p)
			}
		}
		return o
	case s.Type == "array":
		l := []any{}
		for range r.IntN(3) {
			l = append(l, r.value(s.Items.Schema))
		}
		return l
	case s.Type == "integer":
		return []int{1, 1, 80, 80, 100, 0, -1, 200, 65536}[r.IntN(9)]
	case s.Type == "boolean":
		return r.IntN(2) == 0
	}
	return r.text()
}

func (r random) text() string {
	all := []string{"a", "a", "b", "b", "/v1", "a.example.com", "10s", "*", "A", "", "Service", "x_y", "10.0.0.1", "Hostname", "NamedAddress", "example.com/x"}
	return all[r.IntN(len(all))]
}

// filter makes up a filter that often has the field of its type. It has no type that the CRD does not know: that may be one of a later
// Gateway API.
func (r random) filter(s *extv1.JSONSchemaProps) any {
	of := s.Properties["type"]
	var kind string
	if err := json.Unmarshal(of.Enum[r.IntN(len(of.Enum))].Raw, &kind); err != nil {
		panic(err)
	}
	f := map[string]any{"type": kind}
	name := ""
	for _, n := range slices.Sorted(maps.Keys(s.Properties)) {
		if strings.EqualFold(n, kind) {
			p := s.Properties[n]
			name, f[n] = n, r.value(&p)
		}
	}
	switch r.IntN(20) {
	case 0:
		delete(f, name)
	case 1:
		f["type"] = strings.ToLower(kind)
	}
	return f
}

// shorten leaves two fields of an object, and those that it has to have: with all of them, hardly any would be valid.
func (r random) shorten(o map[string]any, required []string) {
	for {
		names := slices.DeleteFunc(slices.Sorted(maps.Keys(o)), func(name string) bool { return slices.Contains(required, name) })
		if len(names) <= 2 {
			return
		}
		delete(o, names[r.IntN(len(names))])
	}
}
