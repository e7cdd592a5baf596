package cli

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestExplain shows that each value of the roles has a line that says where it comes from.
func TestExplain(t *testing.T) {
	const service = `
apiVersion: fusioninfer.io/v1alpha1
kind: InferenceService
metadata: {name: s, namespace: default}
spec:
  profileName: p
  roles: [{name: w, componentType: worker, template: {spec: {containers: [{name: vllm, args: [m]}]}}}]
`
	const input = `
apiVersion: fn.fusioninfer.io/v1alpha1
kind: Input
profiles: [{name: p, roles: [{componentType: worker, template: {spec: {containers: [{name: vllm, image: i, args: [--a]}]}}}]}]
`
	cases := map[string]struct {
		reason, xr, input string
		want, err         string
	}{
		"Profile": {
			reason: "The profile is named.",
			xr:     service, input: input,
			want: `spec.roles[0].componentType: "worker" (spec)
spec.roles[0].name: "w" (spec)
spec.roles[0].template.spec.containers[0].args[0]: "m" (spec)
spec.roles[0].template.spec.containers[0].args[1]: "--a" (profile p)
spec.roles[0].template.spec.containers[0].image: "i" (profile p)
spec.roles[0].template.spec.containers[0].name: "vllm" (spec)
spec.roles[0].template: no pods are rendered, so what the function adds to them is not known: --format summary says what they wait for
`,
		},
		"NoProfile": {
			reason: "Without a profile all is the service's.",
			xr:     xrDoc, input: input,
			want: `spec.roles[0].componentType: "worker" (spec)
spec.roles[0].name: "a" (spec)
spec.roles[0].template.spec: {} (spec)
spec.roles[0].template: no pods are rendered, so what the function adds to them is not known: --format summary says what they wait for
`,
		},
		"ControlCharacters": {
			reason: "What a stranger has written does not control the terminal.",
			xr:     `{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceService, metadata: {name: s}, spec: {roles: [{name: w, template: {metadata: {labels: {"a\e[2J": "\x9b"}}}}]}}`,
			input:  input,
			want: `spec.roles[0].name: "w" (spec)
spec.roles[0].template.metadata.labels.a�[2J: "�" (spec)
spec.roles[0].template: no pods are rendered, so what the function adds to them is not known: --format summary says what they wait for
`,
		},
		"Cluster": {
			reason: "A cluster has no roles.",
			xr:     "{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceCluster, metadata: {name: c}}",
			input:  "{apiVersion: fn.fusioninfer.io/v1alpha1, kind: ClusterInput}",
			err:    "--explain is for InferenceServices: an InferenceCluster has no roles",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inDirectory(t, map[string]string{"xr.yaml": tc.xr, "input.yaml": tc.input})
			out, message := &bytes.Buffer{}, ""
			r := Render{XR: "xr.yaml", Input: "input.yaml", Explain: true}
			if err := r.Run(t.Context(), runnerFn(echo), Streams{Out: out, Err: &bytes.Buffer{}}); err != nil {
				message = err.Error()
			}
			if diff := cmp.Diff([]string{tc.want, tc.err}, []string{out.String(), message}); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
