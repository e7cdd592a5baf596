package v1alpha1_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/schematest"
)

func TestValidateCluster(t *testing.T) {
	cases := map[string]struct {
		reason string
		doc    string
		// schema has the paths that a tool with the schema complains about.
		schema []string
		// want are the function's errors.
		want []string
	}{
		"Empty": {
			reason: "All fields are optional.",
			doc:    `{}`,
		},
		"Full": {
			reason: "A ClusterInput may have every one of its fields.",
			doc: `
namespace: platform
serviceNamespaces: {labels: {a: b}, annotations: {Example.com/Note: any text}}
podSecurity: {enforce: restricted, enforceVersion: v1.34, allowedCapabilities: [IPC_LOCK]}
tenants: [{namespaces: ["research-*"], podSecurity: {enforce: privileged}}]
labels: {example.com/team: a}
annotations: {example.com/note: b}
`,
		},
		"Namespace": {
			reason: "The namespace of the ledgers has to be a valid name.",
			doc:    `{namespace: a.b}`,
			schema: []string{"namespace"},
			want:   []string{`input.namespace: Invalid value: "a.b": must consist of lower case letters, digits and '-', and start and end with a letter or digit`},
		},
		"ServiceNamespaces": {
			reason: "An API server would refuse the namespaces later.",
			doc:    `{serviceNamespaces: {labels: {a: "b c"}, annotations: {"a b": c}}}`,
			want: []string{
				`input.serviceNamespaces.labels[a]: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`,
				`input.serviceNamespaces.annotations[a b]: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`,
			},
		},
		"PodSecurity": {
			reason: "A mistyped standard is refused: it must not mean no standard.",
			doc:    `{podSecurity: {enforce: Baseline}, tenants: [{namespaces: [a], podSecurity: {enforceVersion: "1.34"}}]}`,
			schema: []string{"podSecurity.enforce", "tenants[0].podSecurity.enforceVersion"},
			want: []string{
				`input.podSecurity.enforce: Unsupported value: "Baseline": supported values: "privileged", "baseline", "restricted" (did you mean "baseline"?)`,
				`input.tenants[0].podSecurity.enforceVersion: Invalid value: "1.34": must be latest, or a version of Kubernetes such as v1.34`,
			},
		},
		"Tenants": {
			reason: "A tenant needs namespaces.",
			doc:    `{tenants: [{namespaces: []}, {namespaces: ["Team-*"]}]}`,
			schema: []string{"tenants[0].namespaces"},
			want: []string{
				`input.tenants[0].namespaces: Required value: must list namespaces, or patterns such as research-*`,
				`input.tenants[1].namespaces[0]: Invalid value: "Team-*": must be a name of lower case letters, digits, '-' and '.', in which '*' stands for any text`,
			},
		},
		"Labels": {
			reason: "An invalid label would make every object invalid.",
			doc:    `{labels: {a: "b c"}}`,
			want:   []string{`input.labels[a]: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`},
		},
	}
	s, err := schematest.New(schematest.ClusterInput)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := &inputv1alpha1.ClusterInput{}
			errs := decodeInto(t, []byte(tc.doc), in)
			inputv1alpha1.DefaultCluster(in)
			var got []string
			for _, err := range append(errs, inputv1alpha1.ValidateCluster(in, field.NewPath("input"))...) {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nfunction: -want +got:\n%s", tc.reason, diff)
			}
			var paths []string
			for _, err := range s.Validate([]byte(tc.doc)) {
				paths = append(paths, err.Field)
			}
			slices.Sort(paths)
			if diff := cmp.Diff(tc.schema, slices.Compact(paths)); diff != "" {
				t.Errorf("%s\nschema: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPodSecurityOf(t *testing.T) {
	const input = `
podSecurity: {enforce: restricted}
tenants:
- {namespaces: [a], podSecurity: {enforceVersion: v1.34}}
- {namespaces: ["*"], podSecurity: {enforce: privileged, enforceVersion: v1.33}}
- {namespaces: [b]}
`
	cases := map[string]struct {
		reason    string
		input     string
		namespace string
		want      inputv1alpha1.PodSecurity
	}{
		"Default": {
			reason:    "A namespace that no tenant selects has the defaults.",
			input:     `{}`,
			namespace: "a",
			want:      inputv1alpha1.PodSecurity{Enforce: "baseline", EnforceVersion: "latest"},
		},
		"FirstTenant": {
			reason:    "For each field, the first tenant that sets it counts.",
			input:     input,
			namespace: "a",
			want:      inputv1alpha1.PodSecurity{Enforce: "privileged", EnforceVersion: "v1.34"},
		},
		"UnsetTenant": {
			reason:    "A tenant that sets nothing changes nothing.",
			input:     input,
			namespace: "b",
			want:      inputv1alpha1.PodSecurity{Enforce: "privileged", EnforceVersion: "v1.33"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := &inputv1alpha1.ClusterInput{}
			if errs := decodeInto(t, []byte(tc.input), in); len(errs) > 0 {
				t.Fatal(errs.ToAggregate())
			}
			if diff := cmp.Diff(&tc.want, in.PodSecurityOf(tc.namespace)); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
