package cli

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
	"sigs.k8s.io/yaml"
)

// TestExplainAdded shows which values of pods are the function's: those that the role does not have at the same
// place of the same element.
func TestExplainAdded(t *testing.T) {
	const role = "roles: [{name: w, template: {spec: {containers: [{name: vllm, args: [--a], ports: [{containerPort: 8000}]}]}}%s}]"
	cases := map[string]struct {
		reason, leaderTemplate, composed, want string
	}{
		"Moved": {
			reason:   "What stands before an argument of the service makes it no other argument.",
			composed: set("workerTemplate: {spec: {containers: [{name: side, image: s}, {name: vllm, args: [m, --a], ports: [{containerPort: 8000, name: http}]}]}}"),
			want: `spec.roles[0].template.spec.containers[0].image: "s" (function)
spec.roles[0].template.spec.containers[0].name: "side" (function)
spec.roles[0].template.spec.containers[1].args[0]: "m" (function)
spec.roles[0].template.spec.containers[1].ports[0].name: "http" (function)
`,
		},
		"Repeated": {
			reason:   "An argument that is there twice is the service's once.",
			composed: set("workerTemplate: {spec: {containers: [{name: vllm, args: [--a, --a]}]}}"),
			want:     "spec.roles[0].template.spec.containers[0].args[1]: \"--a\" (function)\n",
		},
		"Leader": {
			reason:   "What both have is there once.",
			composed: set("leaderTemplate: {spec: {priority: 1, containers: [{name: vllm, args: [head && x]}]}}, workerTemplate: {spec: {priority: 1, containers: [{name: vllm, args: [--a, join]}]}}"),
			want: `spec.roles[0].template.spec.containers[0].args[0]: "head && x" (function, leader)
spec.roles[0].template.spec.priority: 1 (function)
spec.roles[0].template.spec.containers[0].args[1]: "join" (function, workers)
`,
		},
		"LeaderTemplate": {
			reason:         "A leader's own template is what the service gives it.",
			leaderTemplate: ", leaderTemplate: {spec: {priority: 1}}",
			composed:       set("leaderTemplate: {spec: {priority: 1}}, workerTemplate: {spec: {priority: 1}}"),
			want:           "spec.roles[0].template.spec.priority: 1 (function, workers)\n",
		},
		"Elsewhere": {
			reason:   "In another cluster, the LeaderWorkerSet is in an Object.",
			composed: "{apiVersion: kubernetes.m.crossplane.io/v1alpha1, kind: Object, spec: {forProvider: {manifest: " + set("workerTemplate: {metadata: {labels: {a.b/c: d}}}") + "}}}",
			want:     "spec.roles[0].template.metadata.labels[a.b/c]: \"d\" (function)\n",
		},
		"Waiting": {
			reason: "Replicas that wait for a cluster have no pods yet.", composed: "{apiVersion: v1, kind: ConfigMap}",
			want: "spec.roles[0].template: no pods are rendered, so what the function adds to them is not known: --format summary says what they wait for\n",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec, o := &structpb.Struct{}, object{}
			b, err := yaml.YAMLToJSON([]byte(fmt.Sprintf(role, tc.leaderTemplate)))
			if err != nil {
				t.Fatal(err)
			}
			if err := protojson.Unmarshal(b, spec); err != nil {
				t.Fatal(err)
			}
			if err := yaml.Unmarshal([]byte(tc.composed), &o.Object); err != nil {
				t.Fatal(err)
			}
			out := &bytes.Buffer{}
			if err := explainAdded(out, spec, []object{o}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// set is a LeaderWorkerSet of the role w with these templates.
func set(templates string) string {
	return "{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, metadata: {labels: {fusioninfer.io/role-name: w}}, spec: {leaderWorkerTemplate: {" + templates + "}}}"
}
