package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTooMany shows which replicas are refused because no answer could carry them, and how many would do.
func TestTooMany(t *testing.T) {
	const (
		limit = "LeaderWorkerSets in all, and fewer than 4096 fit into an answer of 4 MiB, Crossplane's limit: "
		two   = "\nplacement: {clusters: [{name: a, providerConfigRef: {name: a}}, {name: b, providerConfigRef: {name: b}}]}"
	)
	roles := func(replicas ...int) string {
		var all []string
		for i, n := range replicas {
			all = append(all, fmt.Sprintf("{name: w%d, componentType: worker, replicas: %d, %s}", i, n, anEngine))
		}
		return "roles: [" + strings.Join(all, ", ") + "]"
	}
	cases := map[string]struct {
		reason, spec, want string
	}{
		"Fit":               {"These may fit.", roles(2000, 2000), ""},
		"TooManyInOneRole":  {"The largest role is reduced.", roles(100, 2000, 1999), "spec.roles[1].replicas: Invalid value: 2000: would make 4099 " + limit + "must be at most 1997"},
		"TooManyInRoles":    {"No number of one role would do.", roles(2000, 2000, 2000, 2000), "spec.roles: Invalid value: \"8000 replicas\": would make 8000 " + limit + "all roles together may have at most 4096 replicas"},
		"TooManyInGroups":   {"Fewer groups fit.", "replicas: 5\n" + roles(1000), "spec.replicas: Invalid value: 5: would make 5000 " + limit + "must be at most 4"},
		"TooManyInOneGroup": {"Not even one group fits.", "replicas: 1\n" + roles(2000, 2000, 2000), "spec.roles: Invalid value: \"6000 replicas\": would make 6000 " + limit + "all roles together may have at most 4096 replicas"},
		"TooManyInClusters": {"Each cluster has all of them.", "replicas: 1\n" + roles(2000, 2000) + two, "spec.roles: Invalid value: \"4000 replicas\": would make 8000 " + limit + "all roles together may have at most 2048 replicas"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := build(t, tc.spec, "allowedProviderConfigs: [{name: a}, {name: b}]")
			got := ""
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
