package cli

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
	"sigs.k8s.io/yaml"

	"github.com/fusioninfer/function-inferenceservice/internal/servingprofile"
)

// TestNumberAsRendered shows that no path of an argument stands for two values.
func TestNumberAsRendered(t *testing.T) {
	const args = "spec.roles[0].template.spec.containers[0].args"
	cases := map[string]struct {
		reason, composed string
		want             []string
	}{
		"ModelFirst": {
			reason:   "What the function puts before an argument moves it, and the same value counts once.",
			composed: set("workerTemplate: {spec: {containers: [{name: vllm, args: [m, --a, x, --b, x]}]}}"),
			want:     []string{args + "[1]", args + "[2]", args + "[3]", args + "[4]"},
		},
		"Leader": {
			reason:   "The pods of leaders say where it is, as the lines of the function do.",
			composed: set("workerTemplate: {spec: {containers: [{name: vllm, args: [--a, x, --b, x]}]}}, leaderTemplate: {spec: {containers: [{name: side, args: [--a]}, {name: vllm, args: [m, --a, x, --b, x]}]}}"),
			want:     []string{args + "[1]", args + "[2]", args + "[3]", args + "[4]"},
		},
		"Script": {
			reason:   "A launcher writes arguments into a script.",
			composed: set("workerTemplate: {spec: {containers: [{name: vllm, args: ['vllm --a x --b x']}]}}"),
			want:     []string{args + ", in the command of the launcher", args + ", in the command of the launcher", args + ", in the command of the launcher", args + ", in the command of the launcher"},
		},
		"NoPods": {
			reason:   "Without pods it is the index in the merged service.",
			composed: "{apiVersion: v1, kind: ConfigMap}",
			want:     []string{args + "[0]", args + "[1]", args + "[2]", args + "[3]"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec, o := &structpb.Struct{}, object{}
			if err := protojson.Unmarshal([]byte(`{"roles": [{"name": "w", "template": {"spec": {"containers": [{"name": "vllm", "args": ["--a", "x", "--b", "x"]}]}}}]}`), spec); err != nil {
				t.Fatal(err)
			}
			if err := yaml.Unmarshal([]byte(tc.composed), &o.Object); err != nil {
				t.Fatal(err)
			}
			origins := servingprofile.Origins(spec, nil)
			numberAsRendered(origins, spec, []object{o})
			var got []string
			for _, o := range origins[1 : len(origins)-1] {
				got = append(got, o.Path)
			}
			if diff := cmp.Diff(tc.want, got[:4]); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
