package v1alpha1_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/schematest"
)

func TestValidateProfiles(t *testing.T) {
	many := make([]string, 65)
	for i := range many {
		many[i] = fmt.Sprintf("{name: p%d, roles: [{componentType: worker}]}", i)
	}
	cases := map[string]struct {
		reason string
		doc    string
		// schema has the paths that a tool with the schema complains about.
		schema []string
		// want are the function's errors.
		want []string
	}{
		"Full": {
			reason: "A profile may have every one of its fields, and any part of a template.",
			doc: `[{name: p, maxContextLength: 32768, roles: [
				{componentType: router, strategy: queue-size, endpointPicker: {failureMode: FailOpen, resources: {requests: {cpu: 500m}}, kvConnector: nixlv2}},
				{componentType: worker, multinode: {nodeCount: 2, launcher: VLLM}, lifecycle: {startupSeconds: 10, drainSeconds: 0, shutdownSeconds: 1},
				 template: {metadata: {labels: {a: b}}, spec: {containers: [{name: vllm}], young: {}}}, leaderTemplate: {}},
				{componentType: prefiller, multinode: {launcher: SGLang}}, {componentType: decoder}]}]`,
		},
		"Names": {
			reason: "Each profile has a name of its own, which a service can write.",
			doc:    `[{name: "A b", roles: [{componentType: worker}]}, {roles: [{componentType: worker}]}, {name: p, roles: [{componentType: worker}]}, {name: p, roles: []}]`,
			schema: []string{"profiles[0].name", "profiles[1].name", "profiles[3]", "profiles[3].roles"},
			want: []string{
				`input.profiles[0].name: Invalid value: "A b": must consist of lower case letters, digits and '-', and start and end with a letter or digit`,
				`input.profiles[1].name: Required value: must be a name that no other profile has`,
				`input.profiles[3].name: Duplicate value: "p"`,
				`input.profiles[3].roles: Required value: must have at least one role`,
			},
		},
		"Context": {
			reason: "No model has a context of no token, or of more than a billion.",
			doc:    `[{name: p, maxContextLength: 0, roles: [{componentType: worker}]}, {name: q, maxContextLength: 1000000001, roles: [{componentType: worker}]}]`,
			schema: []string{"profiles[0].maxContextLength", "profiles[1].maxContextLength"},
			want: []string{
				`input.profiles[0].maxContextLength: Invalid value: 0: must be from 1 to 1000000000`,
				`input.profiles[1].maxContextLength: Invalid value: 1000000001: must be from 1 to 1000000000`,
			},
		},
		"TooMany": {
			reason: "The number of profiles is bounded.",
			doc:    `[` + strings.Join(many, ", ") + `]`,
			schema: []string{"profiles"},
			want:   []string{`input.profiles: Too many: 65: must have at most 64 items`},
		},
		"Types": {
			reason: "There is one role for each type.",
			doc:    `[{name: p, roles: [{componentType: worker}, {componentType: worker}, {componentType: leader}, {}]}]`,
			schema: []string{"profiles[0].roles[1]", "profiles[0].roles[2].componentType", "profiles[0].roles[3].componentType"},
			want: []string{
				`input.profiles[0].roles[1].componentType: Duplicate value: "worker"`,
				`input.profiles[0].roles[2].componentType: Unsupported value: "leader": supported values: "router", "prefiller", "decoder", "worker"`,
				`input.profiles[0].roles[3].componentType: Required value: must be router, prefiller, decoder or worker`,
			},
		},
		"Values": {
			reason: "Values that no role may have are errors of the Input, not of each service.",
			doc: `[{name: p, roles: [{componentType: router, strategy: fastest, endpointPicker: {failureMode: Open, kvConnector: "A b"}},
				{componentType: worker, multinode: {nodeCount: 0, launcher: vLLM}, lifecycle: {startupSeconds: 9, drainSeconds: -1, shutdownSeconds: 1801}}]}]`,
			schema: []string{
				"profiles[0].roles[0].endpointPicker.failureMode", "profiles[0].roles[0].endpointPicker.kvConnector", "profiles[0].roles[0].strategy",
				"profiles[0].roles[1].lifecycle.drainSeconds", "profiles[0].roles[1].lifecycle.shutdownSeconds", "profiles[0].roles[1].lifecycle.startupSeconds",
				"profiles[0].roles[1].multinode.launcher", "profiles[0].roles[1].multinode.nodeCount",
			},
			want: []string{
				`input.profiles[0].roles[0].strategy: Unsupported value: "fastest": supported values: "prefix-cache", "kv-cache-utilization", "queue-size", "lora-affinity", "pd-disaggregation"`,
				`input.profiles[0].roles[0].endpointPicker.failureMode: Unsupported value: "Open": supported values: "FailClose", "FailOpen"`,
				`input.profiles[0].roles[0].endpointPicker.kvConnector: Invalid value: "A b": must consist of lower case letters, digits and '-', and start and end with a letter or digit`,
				`input.profiles[0].roles[1].multinode.nodeCount: Invalid value: 0: must be from 1 to 1024`,
				`input.profiles[0].roles[1].multinode.launcher: Unsupported value: "vLLM": supported values: "Ray", "VLLM", "VLLMDataParallel", "SGLang", "None" (did you mean "VLLM"?)`,
				`input.profiles[0].roles[1].lifecycle.startupSeconds: Invalid value: 9: must be from 10 to 86400`,
				`input.profiles[0].roles[1].lifecycle.drainSeconds: Invalid value: -1: must be from 0 to 1800`,
				`input.profiles[0].roles[1].lifecycle.shutdownSeconds: Invalid value: 1801: must be from 1 to 1800`,
			},
		},
		"Fields": {
			reason: "A role has the fields of its type.",
			doc:    `[{name: p, roles: [{componentType: router, template: {}, leaderTemplate: {}, multinode: {}, lifecycle: {}}, {componentType: worker, strategy: queue-size, endpointPicker: {}}]}]`,
			schema: []string{"profiles[0].roles[0]", "profiles[0].roles[1]"},
			want: []string{
				`input.profiles[0].roles[0].multinode: Forbidden: must be left out: only a worker, prefiller or decoder may have it`,
				`input.profiles[0].roles[0].lifecycle: Forbidden: must be left out: only a worker, prefiller or decoder may have it`,
				`input.profiles[0].roles[0].template: Forbidden: must be left out: only a worker, prefiller or decoder may have it`,
				`input.profiles[0].roles[0].leaderTemplate: Forbidden: must be left out: only a worker, prefiller or decoder may have it`,
				`input.profiles[0].roles[1].strategy: Forbidden: must be left out: only a router may have it`,
				`input.profiles[0].roles[1].endpointPicker: Forbidden: must be left out: only a router may have it`,
			},
		},
		"Templates": {
			reason: "A template has to be readable, and says what is wanted.",
			doc:    `[{name: p, roles: [{componentType: worker, template: {spec: {containers: [{name: vllm, args: x, $patch: replace}]}}, leaderTemplate: {metadata: {labels: {a: 1}}}}]}]`,
			want: []string{
				`input.profiles[0].roles[0].template.spec.containers[0].args: Invalid value: "x": must be a list`,
				`input.profiles[0].roles[0].template.spec.containers[0].$patch: Forbidden: is a directive of a strategic merge patch: write only what the template has, and null for a field that it must not have`,
				`input.profiles[0].roles[0].leaderTemplate.metadata.labels[a]: Invalid value: 1: must be a string`,
			},
		},
	}
	s, err := schematest.New(schematest.Input)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			doc := []byte(`{profiles: ` + strings.ReplaceAll(tc.doc, "\t", " ") + `}`)
			in, errs := decode(t, doc)
			inputv1alpha1.Default(in)
			var got []string
			for _, err := range append(errs, inputv1alpha1.Validate(in, field.NewPath("input"))...) {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nfunction: -want +got:\n%s", tc.reason, diff)
			}
			var paths []string
			for _, err := range s.Validate(doc) {
				paths = append(paths, err.Field)
			}
			slices.Sort(paths)
			if diff := cmp.Diff(tc.schema, slices.Compact(paths)); diff != "" {
				t.Errorf("%s\nschema: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
