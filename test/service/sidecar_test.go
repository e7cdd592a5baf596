package service

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/test/fixture"
)

// sidecarAccounts returns the service accounts whose sidecars may read the pool.
func sidecarAccounts(rsp *fnv1.RunFunctionResponse) []string {
	var all []string
	for _, s := range kube.Lookup(rsp.GetDesired().GetResources()["rolebinding/sidecar"].GetResource(), "subjects").GetListValue().GetValues() {
		all = append(all, s.GetStructValue().GetFields()["name"].GetStringValue())
	}
	return all
}

// TestHeldSidecars shows that the sidecars of pods with a former template may read the pool as long as these
// pods run.
func TestHeldSidecars(t *testing.T) {
	const spec = `replicas: 2
roles:
- {name: p, componentType: prefiller, template: {spec: {containers: [{name: engine, image: v1, command: [vllm, serve, /m]}]}}}
- {name: d, componentType: decoder, template: {spec: {serviceAccountName: %s, containers: [{name: engine, image: v1, command: [vllm, serve, /m]}]}}}
rollout: %s
`
	const held = "{partition: 1}"
	type edit struct{ account, rollout, protection string }
	var many []edit
	for i := range 40 {
		many = append(many, edit{fmt.Sprintf("a%02d", i), "{paused: true}", "Enabled"})
	}
	cases := map[string]struct {
		reason string
		edits  []edit
		want   []string
	}{
		"Account": {
			reason: "Decode of group 0 has the former account.",
			edits:  []edit{{"two", held, "Enabled"}}, want: []string{"one", "two"},
		},
		"AccountTwice": {
			reason: "It is the first account that decode of group 0 has.",
			edits:  []edit{{"two", held, "Enabled"}, {"three", held, "Enabled"}}, want: []string{"one", "two", "three"},
		},
		"AccountPutBack": {
			reason: "All pods have the former account.",
			edits:  []edit{{"two", "{paused: true}", "Enabled"}, {"one", "{paused: true}", "Enabled"}}, want: []string{"one"},
		},
		"AccountEverywhere": {
			reason: "No pod has the former account any more.",
			edits:  []edit{{"two", held, "Enabled"}, {"two", "{}", "Enabled"}}, want: []string{"two"},
		},
		"Unprotected": {
			reason: "The sidecar of decode of group 0 reads the pool.",
			edits:  []edit{{"one", held, "Disabled"}}, want: []string{"one"},
		},
		"UnprotectedEverywhere": {
			reason: "No sidecar reads the pool any more.",
			edits:  []edit{{"one", held, "Disabled"}, {"one", "{}", "Disabled"}},
		},
		"ManyAccounts": {
			reason: "Pods may have the oldest ones. The number of the others is limited.",
			edits:  many, want: strings.Fields("one a00 a01 a02 a03 a04 a05 a06 a07 a08 a09 a10 a11 a12 a13 a14 a39"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, fmt.Sprintf(spec, "one", "{}"))
			_, rsp := w.rollOut(fmt.Sprintf(spec, "one", "{}"))
			if diff := cmp.Diff([]string{"one"}, sidecarAccounts(rsp)); diff != "" {
				t.Fatalf("at first: -want +got:\n%s", diff)
			}
			for i, e := range tc.edits {
				w.req.Input = fixture.YAML(t, fmt.Sprintf("{apiVersion: fn.fusioninfer.io/v1alpha1, kind: Input, sidecar: {ssrfProtection: %s}}", e.protection))
				w.edit(fmt.Sprintf(spec, e.account, e.rollout))
				steps := 1
				if i == len(tc.edits)-1 {
					steps = 30
				}
				for range steps {
					rsp = w.step()
				}
			}
			if diff := cmp.Diff(tc.want, sidecarAccounts(rsp)); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
			if has := rsp.GetDesired().GetResources()["role/sidecar"] != nil; has != (tc.want != nil) {
				t.Errorf("%s The Role exists: %t", tc.reason, has)
			}
		})
	}
}
