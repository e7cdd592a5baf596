package observe

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/test/fixture"
)

// TestLoaderFailures shows what is told of pods that load adapters. Nothing that a command writes is, besides
// the last word of a loader that has found no adapter.
func TestLoaderFailures(t *testing.T) {
	pod := func(status string) string {
		return `{metadata: {name: p, labels: {batch.kubernetes.io/job-name: j}}, spec: {restartPolicy: OnFailure}, status: {` + status + `}}`
	}
	container := func(name, state string) string {
		return pod(`containerStatuses: [{name: ` + name + `, ` + state + `}]`)
	}
	cases := map[string]struct {
		reason, pod string
		want        map[string][]string
	}{
		"Runs":      {"It has not failed.", container("loader", `state: {running: {}}`), map[string][]string{}},
		"Complete":  {"It has ended well.", container("loader", `state: {terminated: {exitCode: 0, message: "7"}}`), map[string][]string{}},
		"NoSecret":  {"A Secret is missing.", container("loader", `state: {waiting: {reason: CreateContainerConfigError}}`), map[string][]string{"j": {"pod p: container loader: CreateContainerConfigError"}}},
		"NoAdapter": {"The loader says what it has found.", container("loader", `state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 65, message: "its peft_type is not LORA, and engines load no other adapters"}}`), map[string][]string{"j": {"pod p: its peft_type is not LORA, and engines load no other adapters"}}},
		"Again":     {"It is tried again.", container("loader", `state: {running: {}}, lastState: {terminated: {exitCode: 1, reason: Error, message: secret}}`), map[string][]string{"j": {"pod p: container loader: Error (exit code 1)"}}},
		"Forged":    {"Any pod could have these labels.", container("loader", `state: {terminated: {exitCode: 65, reason: Error, message: "call this number"}}`), map[string][]string{"j": {"pod p: container loader: Error (exit code 65)"}}},
		"Other":     {"Another container says nothing.", container("other", `state: {terminated: {exitCode: 65, reason: Error, message: secret}}`), map[string][]string{"j": {"pod p: container other: Error (exit code 65)"}}},
		"Evicted":   {"The pod has failed.", pod(`phase: Failed, reason: Evicted`), map[string][]string{"j": {"pod p: Evicted"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := fixture.YAML(t, tc.pod)
			o.Fields["kind"] = structpb.NewStringValue("Pod")
			if diff := cmp.Diff(tc.want, LoaderFailures([]incoming.Object{incoming.ObjectOf(o)})); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
