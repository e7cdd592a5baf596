package plan

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// numbered returns n elements of a list or an object. In each, # is its index.
func numbered(n int, element string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = strings.ReplaceAll(element, "#", strconv.Itoa(i))
	}
	return strings.Join(all, ", ")
}

// TestPodSize shows how many containers and resources a template may have.
func TestPodSize(t *testing.T) {
	const engine, init, resource = "{name: vllm, image: i}", "{name: init-#, image: i}", "example.com/r#: 1"
	cases := map[string]struct {
		reason string
		spec   string
		want   []string
	}{
		"Limit":     {reason: "So much is accepted.", spec: "containers: [" + engine + "], initContainers: [" + numbered(64, init) + "], overhead: {" + numbered(64, resource) + "}"},
		"Init":      {reason: "Each would add up the sidecars again.", spec: "containers: [" + engine + "], initContainers: [" + numbered(65, init) + "]", want: []string{"template.spec.initContainers: Too many: 65: must have at most 64 items"}},
		"Container": {reason: "No pod has as many.", spec: "containers: [" + engine + ", " + numbered(64, init) + "]", want: []string{"template.spec.containers: Too many: 65: must have at most 64 items"}},
		"Ephemeral": {reason: "No template has any, and each would be checked with every container.", spec: "containers: [" + engine + "], ephemeralContainers: [" + numbered(65, init) + "]", want: []string{"template.spec.ephemeralContainers: Too many: 65: must have at most 64 items"}},
		"Resources": {
			reason: "They count over all containers together, each once.",
			spec: "initContainers: [{name: a, image: i, resources: {limits: {" + numbered(30, resource) + "}}}, {name: b, image: i, resources: {requests: {" + numbered(40, resource) + "}}}], " +
				"containers: [{name: vllm, image: i, resources: {limits: {" + numbered(20, "example.com/s#: 1") + "}}}], resources: {requests: {cpu: 1}, limits: {memory: 1}}, overhead: {a: 1, b: 1, c: 1}",
			want: []string{`template.spec: Invalid value: "65 different resources": must be at most 64, in the requests and limits of all containers together`},
		},
		"All": {
			reason: "Both are said at once.", spec: "containers: [" + engine + "], initContainers: [" + numbered(65, init) + "], overhead: {" + numbered(1000, resource) + "}",
			want: []string{
				"template.spec.initContainers: Too many: 65: must have at most 64 items",
				`template.spec: Invalid value: "1000 different resources": must be at most 64, in the requests and limits of all containers together`,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			p, _, errs := readTemplate(document(t, "{spec: {"+tc.spec+"}}"), field.NewPath("template"))
			for _, e := range errs {
				got = append(got, e.Error())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
			if (p == nil) != (len(tc.want) > 0) {
				t.Errorf("%s\nwant a template only if it is not refused, got %v", tc.reason, p)
			}
		})
	}
}
