package gatewayschema

import (
	"regexp"
	"testing"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// TestPatterns proves that Go can compile the patterns of the schemas.
func TestPatterns(t *testing.T) {
	found := 0
	var walk func(s *spec.Schema)
	walk = func(s *spec.Schema) {
		if _, err := regexp.Compile(s.Pattern); err != nil {
			t.Error(err)
		}
		if s.Pattern != "" {
			found++
		}
		for _, p := range s.Properties {
			walk(&p)
		}
		if s.Items != nil {
			walk(s.Items.Schema)
		}
		if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
			walk(s.AdditionalProperties.Schema)
		}
	}
	walk(HTTPRoute.spec())
	walk(Gateway.spec())
	if found < 50 {
		t.Errorf("there are only %d patterns", found)
	}
}
