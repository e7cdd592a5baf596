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

// gatewaySchemas returns the schemas of the specs of HTTPRoutes and Gateways, as the Gateway API's module has them.
func gatewaySchemas() (map[string][]byte, error) {
	pkg, err := build.Import("sigs.k8s.io/gateway-api/apis/v1", ".", build.FindOnly)
	if err != nil {
		return nil, fmt.Errorf("cannot find the Gateway API's module: %w", err)
	}
	files := map[string][]byte{}
	for _, kind := range []string{"httproute", "gateway"} {
		b, err := os.ReadFile(filepath.Join(pkg.Dir, "..", "..", "config", "crd", "experimental", "gateway.networking.k8s.io_"+kind+"s.yaml"))
		if err != nil {
			return nil, err
		}
		crd := &extv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(b, crd); err != nil {
			return nil, fmt.Errorf("cannot read the CRD of %ss: %w", kind, err)
		}
		if files["internal/gatewayschema/"+kind+".json"], err = specOf(crd); err != nil {
			return nil, fmt.Errorf("cannot write the schema of %ss: %w", kind, err)
		}
	}
	return files, nil
}

func specOf(crd *extv1.CustomResourceDefinition) ([]byte, error) {
	for _, v := range crd.Spec.Versions {
		if v.Name != "v1" {
			continue
		}
		spec := v.Schema.OpenAPIV3Schema.Properties["spec"]
		checked(&spec)
		b, err := json.MarshalIndent(spec, "", " ")
		return append(b, '\n'), err
	}
	return nil, fmt.Errorf("%s has no version v1", crd.Name)
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
	if s.Items != nil {
		checked(s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		checked(s.AdditionalProperties.Schema)
	}
}
