package v1alpha1_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/types/known/structpb"
	"sigs.k8s.io/yaml"

	"github.com/fusioninfer/function-inferenceservice/internal/api/schematest"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

// ofModel returns an InferenceModel with these fields of the spec.
func ofModel(fields string) string {
	return `{metadata: {name: bot, namespace: default}, spec: {` + fields + `}}`
}

func modelProblems(t *testing.T, doc string) []string {
	t.Helper()
	b, err := yaml.YAMLToJSON([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	s := &structpb.Struct{}
	if err := s.UnmarshalJSON(b); err != nil {
		t.Fatal(err)
	}
	xr := &v1alpha1.InferenceModel{}
	errs := kube.Decode(s, nil, xr)
	v1alpha1.DefaultModel(&xr.Spec, xr.Name)
	errs = append(errs, composite.WithoutConsequences(v1alpha1.ValidateModel(xr, v1alpha1.ClaimReference{}), slices.Clone(errs))...)
	var all []string
	for _, e := range errs {
		all = append(all, e.Error())
	}
	return all
}

// TestValidateInferenceModel shows what the schema and the function refuse of an InferenceModel, in each flavour.
func TestValidateInferenceModel(t *testing.T) {
	cases := map[string]struct {
		reason string
		doc    string
		// schema has the paths that an API server complains about.
		schema []string
		// want are the function's errors.
		want []string
	}{
		"Least": {reason: "Only the service is required.", doc: ofModel(`serviceName: chat`)},
		"Full":  {reason: "A model may have every one of its fields.", doc: ofModel(`serviceName: chat, modelName: "org/chat:1", priority: -10, targets: [{name: a, weight: 90}, {name: b, weight: 0}]`)},
		"NoService": {
			reason: "A model without a service is nobody's.", doc: ofModel(`modelName: m`),
			schema: []string{"spec.serviceName"},
			want:   []string{"spec.serviceName: Required value: must be the name of an InferenceService in this namespace"},
		},
		"ServiceName": {
			reason: "No service can have this name.", doc: ofModel(`serviceName: a.b`),
			schema: []string{"spec.serviceName"},
			want:   []string{`spec.serviceName: Invalid value: "a.b": must be the name of an InferenceService: lower case letters, digits and '-', starting with a letter and ending with a letter or digit`},
		},
		"Name": {
			reason: "The name of the object becomes a label.", doc: `{metadata: {name: a.b, namespace: default}, spec: {serviceName: chat}}`,
			schema: []string{"metadata.name"},
			want:   []string{`metadata.name: Invalid value: "a.b": must consist of lower case letters, digits and '-', and start and end with a letter or digit`},
		},
		"PriorityTwice": {
			reason: "priority and criticality set the same thing.", doc: ofModel(`serviceName: chat, priority: 1, criticality: Standard`),
			schema: []string{"spec"},
			want:   []string{`spec.criticality: Invalid value: "Standard": must be left out if priority is set: both set the priority of the model`},
		},
		"Adapters": {reason: "An adapter is in a hub or in a bucket.", doc: ofModel(`serviceName: chat, targets: [{name: a, adapter: {uri: "hf://acme/a", revision: v1}}, {name: b, adapter: {uri: "s3://loras/b"}}]`)},
		"OtherAdapters": {
			reason: "A claim holds them, and is no source. Only a hub has revisions.", doc: ofModel(`serviceName: chat, targets: [{name: a, adapter: {uri: "pvc://claim/a"}}, {name: b, adapter: {uri: "s3://loras/b", revision: "-v1"}}]`),
			schema: []string{"spec.targets[0].adapter.uri", "spec.targets[1].adapter.revision"},
			want: []string{
				`spec.targets[0].adapter.uri: Invalid value: "pvc://claim/a": must be hf://{organization}/{name} or s3://{bucket}/{prefix}`,
				`spec.targets[1].adapter.revision: Invalid value: "-v1": must be a branch, a tag or a commit`,
				`spec.targets[1].adapter.revision: Invalid value: "-v1": must be left out: only an adapter of a hub, hf://, has revisions`,
			},
		},
		"AdapterFirst": {
			reason: "Whether an adapter has revisions is said once the uri tells.", doc: ofModel(`serviceName: chat, targets: [{name: a, adapter: {uri: "acme/a", revision: v1}}]`),
			schema: []string{"spec.targets[0].adapter.uri"},
			want:   []string{`spec.targets[0].adapter.uri: Invalid value: "acme/a": must be hf://{organization}/{name} or s3://{bucket}/{prefix}`},
		},
		"NoWeight": {
			reason: "At least one target needs a weight above 0.", doc: ofModel(`serviceName: chat, targets: [{name: a, weight: 0}]`),
			schema: []string{"spec"},
			want:   []string{`spec.targets: Invalid value: "every weight is 0": must have at least one target with a weight above 0: otherwise nothing answers requests for the model`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, f := range schematest.Models() {
				s, err := schematest.New(f)
				if err != nil {
					t.Fatal(err)
				}
				if f == schematest.ClaimedModel && name == "Name" {
					continue
				}
				if diff := cmp.Diff(tc.schema, paths(s.Validate([]byte(tc.doc))), cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("%s\nthe schema of the %s complains about: -want, +got:\n%s", tc.reason, f, diff)
				}
			}
			if diff := cmp.Diff(tc.want, modelProblems(t, tc.doc), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nerrors: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestInferenceModelUpdate shows which fields of an InferenceModel can be changed.
func TestInferenceModelUpdate(t *testing.T) {
	cases := map[string]struct {
		before, after string
		schema        []string
	}{
		"Targets":       {before: `serviceName: chat, modelName: m`, after: `serviceName: chat, modelName: m, targets: [{name: a}], priority: 1`},
		"Service":       {before: `serviceName: chat`, after: `serviceName: other`, schema: []string{"spec.serviceName"}},
		"Name":          {before: `serviceName: chat, modelName: m`, after: `serviceName: chat, modelName: n`, schema: []string{"spec.modelName"}},
		"NameIsAdded":   {before: `serviceName: chat`, after: `serviceName: chat, modelName: n`, schema: []string{"spec.modelName"}},
		"NameIsRemoved": {before: `serviceName: chat, modelName: m`, after: `serviceName: chat`, schema: []string{"spec.modelName"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, f := range schematest.Models() {
				s, err := schematest.New(f)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.schema, paths(s.ValidateUpdate([]byte(ofModel(tc.after)), []byte(ofModel(tc.before)))), cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("the schema of the %s complains about: -want, +got:\n%s", f, diff)
				}
			}
		})
	}
}
