package main

import (
	"encoding/json"
	"fmt"
	"go/build"
	"os"
	"path/filepath"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// gatewaySchemas returns the schemas of the specs of HTTPRoutes and Gateways. The experimental channel of the Gateway API has further
// fields, and is stricter with some of the others, which clusters with the standard channel accept.
func gatewaySchemas() (map[string][]byte, error) {
	pkg, err := build.Import("sigs.k8s.io/gateway-api/apis/v1", ".", build.FindOnly)
	if err != nil {
		return nil, fmt.Errorf("cannot find the Gateway API's module: %w", err)
	}
	files := map[string][]byte{}
	for _, kind := range []string{"httproute", "gateway"} {
		spec, err := specOf(filepath.Join(pkg.Dir, "..", "..", "config", "crd", "standard", "gateway.networking.k8s.io_"+kind+"s.yaml"))
		if err != nil {
			return nil, err
		}
		further, err := specOf(filepath.Join(pkg.Dir, "..", "..", "config", "crd", "experimental", "gateway.networking.k8s.io_"+kind+"s.yaml"))
		if err != nil {
			return nil, err
		}
		addFields(spec, further)
		checked(spec)
		// The function gives a route without rules one.
		if rules, has := spec.Properties["rules"]; has {
			rules.MinItems = nil
			spec.Properties["rules"] = rules
		}
		b, err := json.MarshalIndent(spec, "", " ")
		if err != nil {
			return nil, fmt.Errorf("cannot write the schema of %ss: %w", kind, err)
		}
		files["internal/gatewayschema/"+kind+".json"] = append(b, '\n')
	}
	return files, nil
}

func specOf(file string) (*extv1.JSONSchemaProps, error) {
	b, err := os.ReadFile(file) //nolint:gosec // A file of a module.
	if err != nil {
		return nil, err
	}
	crd := &extv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(b, crd); err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", file, err)
	}
	for _, v := range crd.Spec.Versions {
		if v.Name == "v1" {
			spec := v.Schema.OpenAPIV3Schema.Properties["spec"]
			return &spec, nil
		}
	}
	return nil, fmt.Errorf("%s has no version v1", file)
}

// addFields adds the fields that only the other schema has.
func addFields(to, from *extv1.JSONSchemaProps) {
	for name, p := range from.Properties {
		if has, ok := to.Properties[name]; ok {
			addFields(&has, &p)
			p = has
		}
		if to.Properties == nil {
			to.Properties = map[string]extv1.JSONSchemaProps{}
		}
		to.Properties[name] = p
	}
	if to.Items != nil && from.Items != nil {
		addFields(to.Items.Schema, from.Items.Schema)
	}
}

// checked leaves what the function checks: no texts, no defaults, no rules of CEL, and no alternatives, which go by defaults.
func checked(s *extv1.JSONSchemaProps) {
	s.Description, s.Default, s.XValidations, s.OneOf = "", nil, nil, nil
	for name, p := range s.Properties {
		checked(&p)
		s.Properties[name] = p
	}
	// A later Gateway API may have more types of filters. For these, the cluster decides.
	if of, filter := s.Properties["type"]; filter && s.Properties["extensionRef"].Type != "" {
		of.Enum = nil
		s.Properties["type"] = of
	}
	// The function writes the group, kind and namespace of a backend that names its own pool.
	if _, backend := s.Properties["weight"]; backend {
		for _, name := range []string{"kind", "namespace"} {
			of := s.Properties[name]
			of.MinLength, of.Pattern = nil, "^$|"+of.Pattern
			s.Properties[name] = of
		}
	}
	if s.Items != nil {
		checked(s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		checked(s.AdditionalProperties.Schema)
	}
}
