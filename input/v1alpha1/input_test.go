package v1alpha1_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
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
			reason: "All fields are optional.",
			doc:    `{}`,
		},
		"Full": {
			reason: "An Input may have every one of its fields.",
			doc: `
endpointPicker:
  image: mirror/epp:v1
  dialect: LLMD
  images: {gaie: mirror/gaie:v1, llmd: mirror/llmd:v1}
  imagePullPolicy: Always
  revisionScreening: Enabled
  imagePullSecrets: [{name: mirror}]
  tolerations: [{operator: Exists}, {key: a, value: b, effect: NoSchedule}]
  nodeSelector: {pool: system}
  resources: {requests: {cpu: 1}, limits: {cpu: 1}}
sidecar: {image: mirror/sidecar:v1, kvConnector: nixlv2, ssrfProtection: Disabled, resources: {limits: {cpu: 1}}}
ray: {port: 6380}
gateway: {istioDestinationRule: true, parentRefs: [{group: gateway.networking.k8s.io, kind: Gateway, namespace: gw, name: main, sectionName: https, port: 443}]}
defaults: {schedulingStrategy: {schedulerName: volcano, queueName: research, gang: {mode: MinimumFirst, priorityClassName: low}}}
fleet: {parentRefs: [{name: all}], hostnameBackends: ServiceEntry}
labels: {example.com/team: a}
annotations: {Example.com/Note: "any text"}
scaling: {provider: HPA, source: Prometheus}
missingKinds: Skip
podObservationLimit: 0
`,
		},
		"ImageWithoutDialect": {
			reason: "Each image reads one dialect only.",
			doc:    `{endpointPicker: {image: x}}`,
			schema: []string{"endpointPicker"},
			want:   []string{`input.endpointPicker.dialect: Required value: must be the dialect that the image reads, GAIE or LLMD; to replace only a default image, use images`},
		},
		"DialectWithoutImage": {
			reason: "A dialect needs the image that reads it.",
			doc:    `{endpointPicker: {dialect: GAIE}}`,
			schema: []string{"endpointPicker"},
			want:   []string{`input.endpointPicker.image: Required value: must be an image that reads the dialect; to replace only a default image, use images`},
		},
		"Enums": {
			reason: "The errors list the supported values.",
			doc:    `{endpointPicker: {image: x, dialect: gaie, imagePullPolicy: Sometimes, revisionScreening: Never}, defaults: {schedulingStrategy: {gang: {mode: All}}}, fleet: {hostnameBackends: Backend}, missingKinds: skip}`,
			schema: []string{"defaults.schedulingStrategy.gang.mode", "endpointPicker.dialect", "endpointPicker.imagePullPolicy", "endpointPicker.revisionScreening", "fleet.hostnameBackends", "missingKinds"},
			want: []string{
				`input.endpointPicker.dialect: Unsupported value: "gaie": supported values: "GAIE", "LLMD" (did you mean "GAIE"?)`,
				`input.endpointPicker.revisionScreening: Unsupported value: "Never": supported values: "Auto", "Enabled", "Disabled"`,
				`input.endpointPicker.imagePullPolicy: Unsupported value: "Sometimes": supported values: "Always", "IfNotPresent", "Never"`,
				`input.fleet.hostnameBackends: Unsupported value: "Backend": supported values: "EndpointSlice", "ExternalName", "ServiceEntry"`,
				`input.defaults.schedulingStrategy.gang.mode: Unsupported value: "All": supported values: "AllOrNothing", "MinimumFirst", "None"`,
				`input.missingKinds: Unsupported value: "skip": supported values: "Fail", "Skip" (did you mean "Skip"?)`,
			},
		},
		"Numbers": {
			reason: "Ports and limits are within their ranges.",
			doc:    `{ray: {port: 0}, gateway: {parentRefs: [{name: a, port: 65536}]}, podObservationLimit: -1}`,
			schema: []string{"gateway.parentRefs[0].port", "podObservationLimit", "ray.port"},
			want: []string{
				`input.ray.port: Invalid value: 0: must be from 1 to 65535`,
				`input.gateway.parentRefs[0].port: Invalid value: 65536: must be from 1 to 65535`,
				`input.podObservationLimit: Invalid value: -1: must be from 0 to 1000`,
			},
		},
		"NumbersAsStrings": {
			reason: "A number in quotes is a string, and refused.",
			doc:    `{ray: {port: "6379"}, podObservationLimit: "64"}`,
			schema: []string{"podObservationLimit", "ray.port"},
			want: []string{
				`input.podObservationLimit: Invalid value: "64": must be a whole number`,
				`input.ray.port: Invalid value: "6379": must be a whole number`,
			},
		},
		"Labels": {
			reason: "An invalid label would make every object invalid.",
			doc:    `{labels: {"a b": c, d: "e f"}, annotations: {"a/b/c": d}, endpointPicker: {nodeSelector: {"": x}}}`,
			want: []string{
				`input.endpointPicker.nodeSelector[]: Invalid value: "": name part must be non-empty`,
				`input.labels[a b]: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`,
				`input.labels[d]: Invalid value: "e f": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`,
				`input.annotations[a/b/c]: Invalid value: "a/b/c": a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
			},
		},
		"Names": {
			reason: "The fields name Kubernetes objects.",
			doc:    `{gateway: {parentRefs: [{name: A, namespace: a.b, group: A_b, sectionName: Http}, {}]}, defaults: {schedulingStrategy: {queueName: Q, gang: {priorityClassName: P}}}, fleet: {parentRefs: [{name: B}]}, endpointPicker: {imagePullSecrets: [{name: S}]}}`,
			schema: []string{"defaults.schedulingStrategy.gang.priorityClassName", "defaults.schedulingStrategy.queueName", "fleet.parentRefs[0].name", "gateway.parentRefs[0].group", "gateway.parentRefs[0].name", "gateway.parentRefs[0].namespace", "gateway.parentRefs[0].sectionName", "gateway.parentRefs[1].name"},
			want: []string{
				`input.endpointPicker.imagePullSecrets[0].name: Invalid value: "S": must be the name of a Kubernetes object: lower case letters, digits, '-' and '.', starting and ending with a letter or digit`,
				`input.gateway.parentRefs[0].name: Invalid value: "A": must be the name of a Kubernetes object: lower case letters, digits, '-' and '.', starting and ending with a letter or digit`,
				`input.gateway.parentRefs[0].group: Invalid value: "A_b": must be the name of a Kubernetes object: lower case letters, digits, '-' and '.', starting and ending with a letter or digit`,
				`input.gateway.parentRefs[0].namespace: Invalid value: "a.b": must consist of lower case letters, digits and '-', and start and end with a letter or digit`,
				`input.gateway.parentRefs[0].sectionName: Invalid value: "Http": must be the name of a Kubernetes object: lower case letters, digits, '-' and '.', starting and ending with a letter or digit`,
				`input.gateway.parentRefs[1].name: Required value: must be the name of a gateway`,
				`input.fleet.parentRefs[0].name: Invalid value: "B": must be the name of a Kubernetes object: lower case letters, digits, '-' and '.', starting and ending with a letter or digit`,
				`input.defaults.schedulingStrategy.queueName: Invalid value: "Q": must be the name of a Kubernetes object: lower case letters, digits, '-' and '.', starting and ending with a letter or digit`,
				`input.defaults.schedulingStrategy.gang.priorityClassName: Invalid value: "P": must be the name of a Kubernetes object: lower case letters, digits, '-' and '.', starting and ending with a letter or digit`,
			},
		},
		"ParentRefs": {
			reason: "The API server would refuse every HTTPRoute that has them.",
			doc:    `{gateway: {parentRefs: [{kind: Gate way, name: a}, {name: b}, {name: c}, {name: b, port: 80}, {name: b}]}, fleet: {parentRefs: [` + manyRefs(33) + `]}}`,
			schema: []string{"fleet.parentRefs", "gateway.parentRefs[0].kind"},
			want: []string{
				`input.gateway.parentRefs[0].kind: Invalid value: "Gate way": must be a kind, such as Gateway: at most 63 letters, digits and '-', starting with a letter and ending with a letter or digit`,
				`input.gateway.parentRefs[3]: Invalid value: "b": must have another sectionName than input.gateway.parentRefs[1], which names the same gateway, and both need one`,
				`input.gateway.parentRefs[4]: Duplicate value: "b"`,
				`input.fleet.parentRefs: Too many: 33: must have at most 32 items`,
			},
		},
		"SameParent": {
			reason: "Neither channel of the Gateway API takes a gateway and a listener of it, whatever is left out because it is the default.",
			doc:    `{fleet: {parentRefs: [{name: b, sectionName: https}, {name: b, kind: Gateway, group: gateway.networking.k8s.io}]}}`,
			want: []string{
				`input.fleet.parentRefs[1]: Invalid value: "b": must have another sectionName than input.fleet.parentRefs[0], which names the same gateway, and both need one`,
			},
		},
		"SameParentByPort": {
			reason: "The experimental channel wants a port of all references to one gateway, or of none.",
			doc:    `{routes: {experimentalFields: Allow}, gateway: {parentRefs: [{name: b, sectionName: a, port: 1}, {name: b, sectionName: b}]}}`,
			want: []string{
				`input.gateway.parentRefs[1]: Invalid value: "b": must have another sectionName or port than input.gateway.parentRefs[0], which names the same gateway, and each of the two only if that has it too`,
			},
		},
		"OtherParents": {
			reason: "One channel or the other takes them, or they name different gateways.",
			doc: `{gateway: {parentRefs: [{name: b, sectionName: a}, {name: b, sectionName: b}, {name: c, port: 1}, {name: c, port: 2}, {name: d, sectionName: a, port: 1}, {name: d, sectionName: b},
				{name: e}, {name: e, namespace: x}, {name: e, kind: XListenerSet}, {name: e, group: x}]}}`,
		},
		"Tolerations": {
			reason: "A pod with an invalid toleration cannot be created.",
			doc:    `{endpointPicker: {tolerations: [{}, {key: a, operator: Like}, {operator: Exists, value: x}, {key: a, effect: Never}]}}`,
			want: []string{
				`input.endpointPicker.tolerations[0].operator: Invalid value: "": must be Exists if there is no key`,
				`input.endpointPicker.tolerations[1].operator: Unsupported value: "Like": supported values: "Equal", "Exists", "Lt", "Gt"`,
				`input.endpointPicker.tolerations[2].value: Invalid value: "x": must be left out if operator is Exists`,
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
			inputv1alpha1.Default(in)
			var got []string
			for _, err := range append(errs, inputv1alpha1.Validate(in, field.NewPath("input"))...) {
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

// TestNoSchemaDefaults shows that only the function sets defaults. A default of the schema
// could never change, and would look like a setting of the platform team.
func TestNoSchemaDefaults(t *testing.T) {
	// Kubernetes has this one in a type of its own.
	want := map[schematest.Flavour][]string{schematest.Input: {"endpointPicker.imagePullSecrets.name", "modelLoader.imagePullSecrets.name"}}
	for _, f := range []schematest.Flavour{schematest.Input, schematest.ClusterInput} {
		s, err := schematest.New(f)
		if err != nil {
			t.Fatal(err)
		}
		got := defaults(s.CRD.Spec.Versions[0].Schema.OpenAPIV3Schema, nil)
		if diff := cmp.Diff(want[f], got); diff != "" {
			t.Errorf("fields of the %s with a default: -want +got:\n%s", f, diff)
		}
	}
}

// defaults returns the paths of the fields that have a default in the schema.
func defaults(s *extv1.JSONSchemaProps, path *field.Path) []string {
	var all []string
	if s.Default != nil {
		all = append(all, path.String())
	}
	if s.Items != nil && s.Items.Schema != nil {
		all = append(all, defaults(s.Items.Schema, path)...)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		all = append(all, defaults(&p, path.Child(name))...)
	}
	return all
}

// TestDefaultKeeps shows that fields that are set keep their values.
func TestDefaultKeeps(t *testing.T) {
	doc := []byte(`
endpointPicker: {images: {gaie: a, llmd: b}, imagePullPolicy: Never, revisionScreening: Disabled}
sidecar: {image: c, kvConnector: d, ssrfProtection: Disabled}
modelLoader: {hubImage: e, bucketImage: f, resources: {}, runAsUser: 7}
ray: {port: 1}
defaults: {schedulingStrategy: {gang: {mode: None}}}
fleet: {namespace: d}
scaling: {provider: HPA, source: Prometheus}
missingKinds: Skip
podObservationLimit: 0
`)
	want, errs := decode(t, doc)
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	got, _ := decode(t, doc)
	inputv1alpha1.Default(got)
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

func decode(t *testing.T, doc []byte) (*inputv1alpha1.Input, field.ErrorList) {
	t.Helper()
	in := &inputv1alpha1.Input{}
	return in, decodeInto(t, doc, in)
}

func decodeInto(t *testing.T, doc []byte, in any) field.ErrorList {
	t.Helper()
	b, err := yaml.YAMLToJSON(doc)
	if err != nil {
		t.Fatal(err)
	}
	s := &structpb.Struct{}
	if err := s.UnmarshalJSON(b); err != nil {
		t.Fatal(err)
	}
	return kube.Decode(s, field.NewPath("input"), in)
}

// manyRefs returns the elements of a list of n parentRefs that differ.
func manyRefs(n int) string {
	refs := make([]string, n)
	for i := range refs {
		refs[i] = fmt.Sprintf("{name: g%d}", i)
	}
	return strings.Join(refs, ", ")
}
