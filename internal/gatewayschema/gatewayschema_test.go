package gatewayschema_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/gatewayschema"
)

func TestCheck(t *testing.T) {
	rules := func(rule map[string]any) map[string]any { return map[string]any{"rules": []any{rule}} }
	headers := func(all ...any) map[string]any {
		return rules(map[string]any{"filters": []any{map[string]any{"type": "RequestHeaderModifier", "requestHeaderModifier": map[string]any{"remove": all}}}})
	}
	cases := map[string]struct {
		reason string
		schema *gatewayschema.Schema
		spec   map[string]any
		want   []string
	}{
		"Valid":   {"Nothing is wrong.", gatewayschema.HTTPRoute, headers("a", "b"), nil},
		"Later":   {"A field of a later Gateway API is the cluster's to judge.", gatewayschema.HTTPRoute, rules(map[string]any{"later": "x"}), nil},
		"Missing": {"What a kind needs.", gatewayschema.Gateway, map[string]any{"gatewayClassName": "c"}, []string{"spec.listeners: Required value: must be set"}},
		"Set":     {"A set has each element once.", gatewayschema.HTTPRoute, headers("a", "b", "a"), []string{`spec.rules[0].filters[0].requestHeaderModifier.remove[2]: Duplicate value: "a"`}},
		"Key":     {"A tenant chooses the keys of maps.", gatewayschema.Gateway, map[string]any{"gatewayClassName": "c", "listeners": []any{map[string]any{"name": "a", "port": int64(80), "protocol": "HTTP"}}, "infrastructure": map[string]any{"labels": map[string]any{"a/b": "!"}}}, []string{`spec.infrastructure.labels[a/b]: Invalid value: "!": must match '^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$'`}},
		"Sorted": {
			"In the order of the names.", gatewayschema.HTTPRoute,
			rules(map[string]any{"backendRefs": []any{map[string]any{"weight": int64(-1)}}, "name": "A", "matches": []any{map[string]any{"method": "get"}}}),
			[]string{
				"spec.rules[0].backendRefs[0].name: Required value: must be set",
				"spec.rules[0].backendRefs[0].weight: Invalid value: -1: must be from 0 to 1000000",
				`spec.rules[0].matches[0].method: Unsupported value: "get": supported values: "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH" (did you mean "GET"?)`,
				`spec.rules[0].name: Invalid value: "A": must match '^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$'`,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, e := range tc.schema.Check(field.NewPath("spec"), tc.spec) {
				got = append(got, e.Error())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
