package v1beta1_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/fusioninfer/function-inferenceservice/input/v1beta1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/schematest"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

func TestValidate(t *testing.T) {
	cases := map[string]struct {
		reason string
		doc    string
		// schema has the paths that a tool with the schema complains about.
		schema []string
		// want are the function's errors.
		want []string
	}{
		"Empty": {
			reason: "All of it is optional.",
			doc:    `{}`,
		},
		"Full": {
			reason: "All of it can be set.",
			doc: `
endpointPicker:
  image: mirror/epp:v1
  dialect: LLMD
  images: {gaie: mirror/gaie:v1, llmd: mirror/llmd:v1}
  imagePullPolicy: Always
  imagePullSecrets: [{name: mirror}]
  tolerations: [{operator: Exists}, {key: a, value: b, effect: NoSchedule}]
  nodeSelector: {pool: system}
  resources: {requests: {cpu: 1}, limits: {cpu: 1}}
sidecar: {image: mirror/sidecar:v1, kvConnector: nixlv2, ssrfProtection: Disabled, resources: {limits: {cpu: 1}}}
ray: {port: 6380}
gateway: {istioDestinationRule: true, parentRefs: [{group: gateway.networking.k8s.io, kind: Gateway, namespace: gw, name: main, sectionName: https, port: 443}]}
scheduling: {schedulerName: volcano, gangMode: SubGroup, queue: research}
fleet: {namespace: platform}
labels: {example.com/team: a}
annotations: {Example.com/Note: "any text"}
requireKinds: true
podObservationLimit: 0
`,
		},
		"ImageWithoutDialect": {
			reason: "Each image reads one dialect only.",
			doc:    `{endpointPicker: {image: x}}`,
			schema: []string{"endpointPicker"},
			want:   []string{`input.endpointPicker.dialect: Required value: an image goes with the dialect that it reads, GAIE or LLMD; to replace only a default image use images`},
		},
		"DialectWithoutImage": {
			reason: "A dialect alone says nothing.",
			doc:    `{endpointPicker: {dialect: GAIE}}`,
			schema: []string{"endpointPicker"},
			want:   []string{`input.endpointPicker.image: Required value: a dialect goes with an image that reads it; to replace only a default image use images`},
		},
		"Enums": {
			reason: "The errors say what there is.",
			doc:    `{endpointPicker: {image: x, dialect: gaie, imagePullPolicy: Sometimes}, scheduling: {gangMode: All}}`,
			schema: []string{"endpointPicker.dialect", "endpointPicker.imagePullPolicy", "scheduling.gangMode"},
			want: []string{
				`input.endpointPicker.dialect: Unsupported value: "gaie": supported values: "GAIE", "LLMD"`,
				`input.endpointPicker.imagePullPolicy: Unsupported value: "Sometimes": supported values: "Always", "IfNotPresent", "Never"`,
				`input.scheduling.gangMode: Unsupported value: "All": supported values: "TaskMember", "SubGroup", "None"`,
			},
		},
		"Numbers": {
			reason: "Ports and limits have a range.",
			doc:    `{ray: {port: 0}, gateway: {parentRefs: [{name: a, port: 65536}]}, podObservationLimit: -1}`,
			schema: []string{"gateway.parentRefs[0].port", "podObservationLimit", "ray.port"},
			want: []string{
				`input.ray.port: Invalid value: 0: must be from 1 to 65535`,
				`input.gateway.parentRefs[0].port: Invalid value: 65536: must be from 1 to 65535`,
				`input.podObservationLimit: Invalid value: -1: must be from 0 to 1000`,
			},
		},
		"NumbersAsStrings": {
			reason: "A number in quotes is a string.",
			doc:    `{ray: {port: "6379"}, podObservationLimit: "64"}`,
			schema: []string{"podObservationLimit", "ray.port"},
			want: []string{
				`input.podObservationLimit: Invalid value: "64": must be a whole number`,
				`input.ray.port: Invalid value: "6379": must be a whole number`,
			},
		},
		"Labels": {
			reason: "One bad label would make every object invalid.",
			doc:    `{labels: {"a b": c, d: "e f"}, annotations: {"a/b/c": d}, endpointPicker: {nodeSelector: {"": x}}}`,
			want: []string{
				`input.endpointPicker.nodeSelector[]: Invalid value: "": name part must be non-empty`,
				`input.labels[a b]: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`,
				`input.labels[d]: Invalid value: "e f": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`,
				`input.annotations[a/b/c]: Invalid value: "a/b/c": a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
			},
		},
		"Names": {
			reason: "They name objects.",
			doc:    `{gateway: {parentRefs: [{name: A, namespace: a.b, group: A_b, sectionName: Http}, {}]}, scheduling: {queue: Q}, fleet: {namespace: a.b}, endpointPicker: {imagePullSecrets: [{name: S}]}}`,
			schema: []string{"fleet.namespace", "gateway.parentRefs[0].group", "gateway.parentRefs[0].name", "gateway.parentRefs[0].namespace", "gateway.parentRefs[0].sectionName", "gateway.parentRefs[1].name", "scheduling.queue"},
			want: []string{
				`input.endpointPicker.imagePullSecrets[0].name: Invalid value: "S": must be the name of a Kubernetes object: lower case letters, digits, '-' and '.', with a letter or digit first and last`,
				`input.gateway.parentRefs[0].name: Invalid value: "A": must be the name of a Kubernetes object: lower case letters, digits, '-' and '.', with a letter or digit first and last`,
				`input.gateway.parentRefs[0].group: Invalid value: "A_b": must be the name of a Kubernetes object: lower case letters, digits, '-' and '.', with a letter or digit first and last`,
				`input.gateway.parentRefs[0].namespace: Invalid value: "a.b": must be lower case letters, digits and '-', with a letter or digit first and last`,
				`input.gateway.parentRefs[0].sectionName: Invalid value: "Http": must be the name of a Kubernetes object: lower case letters, digits, '-' and '.', with a letter or digit first and last`,
				`input.gateway.parentRefs[1].name: Required value: must be the name of a gateway`,
				`input.scheduling.queue: Invalid value: "Q": must be the name of a Kubernetes object: lower case letters, digits, '-' and '.', with a letter or digit first and last`,
				`input.fleet.namespace: Invalid value: "a.b": must be lower case letters, digits and '-', with a letter or digit first and last`,
			},
		},
		"Tolerations": {
			reason: "A pod with a bad one cannot be created.",
			doc:    `{endpointPicker: {tolerations: [{}, {key: a, operator: Like}, {operator: Exists, value: x}, {key: a, effect: Never}]}}`,
			want: []string{
				`input.endpointPicker.tolerations[0].operator: Invalid value: "": must be Exists where there is no key`,
				`input.endpointPicker.tolerations[1].operator: Unsupported value: "Like": supported values: "Equal", "Exists", "Lt", "Gt"`,
				`input.endpointPicker.tolerations[2].value: Invalid value: "x": must be left out where operator is Exists`,
				`input.endpointPicker.tolerations[3].effect: Unsupported value: "Never": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"`,
			},
		},
		"Resources": {
			reason: "A pod with requests above limits cannot be created.",
			doc:    `{sidecar: {resources: {requests: {cpu: 2}, limits: {cpu: 1}}}}`,
			want:   []string{`input.sidecar.resources.requests[cpu]: Invalid value: "2": must be at most the limit, 1`},
		},
	}
	s := schema(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in, errs := decode(t, []byte(tc.doc))
			v1beta1.Default(in)
			var got []string
			for _, err := range append(errs, v1beta1.Validate(in, field.NewPath("input"))...) {
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

// The schema documents the function's own defaults.
func TestDefaultAgrees(t *testing.T) {
	doc := []byte(`{endpointPicker: {images: {}}, sidecar: {}, ray: {}, gateway: {}, scheduling: {}, fleet: {}}`)
	defaulted, err := schema(t).Default(doc)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(defaulted)
	if err != nil {
		t.Fatal(err)
	}
	want, errs := decode(t, b)
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	got := &v1beta1.Input{}
	v1beta1.Default(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-schema +function:\n%s", diff)
	}
}

// What is set stays as it is.
func TestDefaultKeeps(t *testing.T) {
	doc := []byte(`
endpointPicker: {images: {gaie: a, llmd: b}, imagePullPolicy: Never}
sidecar: {image: c, kvConnector: d, ssrfProtection: Disabled}
ray: {port: 1}
scheduling: {gangMode: None}
fleet: {namespace: e}
podObservationLimit: 0
`)
	want, errs := decode(t, doc)
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	got, _ := decode(t, doc)
	v1beta1.Default(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func schema(t *testing.T) *schematest.Schema {
	t.Helper()
	s, err := schematest.New(schematest.Input)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func decode(t *testing.T, doc []byte) (*v1beta1.Input, field.ErrorList) {
	t.Helper()
	b, err := yaml.YAMLToJSON(doc)
	if err != nil {
		t.Fatal(err)
	}
	s := &structpb.Struct{}
	if err := s.UnmarshalJSON(b); err != nil {
		t.Fatal(err)
	}
	in := &v1beta1.Input{}
	return in, kube.Decode(s, field.NewPath("input"), in)
}
