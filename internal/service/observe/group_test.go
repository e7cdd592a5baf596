package observe

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

// TestConditionOf proves which condition is about the rights and policies of the roles and
// of the router.
func TestConditionOf(t *testing.T) {
	e := &evaluator{plan: &plan.Plan{Router: &plan.Router{HasRoute: true}}}
	for k, want := range map[string]string{
		"networkpolicy":              WorkloadsReady,
		"cluster/east/networkpolicy": WorkloadsReady,
		"role/sidecar":               WorkloadsReady,
		"rolebinding/sidecar":        WorkloadsReady,
		"role/epp":                   RouterReady,
	} {
		if got := e.conditionOf(key.Parse(k)); got != want {
			t.Errorf("conditionOf(%q) = %s, want %s", k, got, want)
		}
	}
}

// TestClose proves that a text begins with the objects that it is about, whatever somebody else says of them.
func TestClose(t *testing.T) {
	const why = "cannot get object: dial tcp: i/o timeout"
	cases := map[string]struct {
		reason string
		who    []string
		want   string
	}{
		"One":         {"The cluster is part of its name.", []string{"cluster east: Service a"}, "cluster east: Service a: " + why},
		"Here":        {"No cluster is named.", []string{"Service a", "Role b"}, "Service a, Role b: " + why},
		"OneCluster":  {"Their cluster is named once.", []string{"cluster east: Service a", "cluster east: Role b"}, "cluster east: Service a, Role b: " + why},
		"SeveralOnes": {"Each has its cluster.", []string{"cluster east: Service a", "cluster west: Service a"}, "cluster east: Service a, cluster west: Service a: " + why},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := findings{}
			for _, who := range tc.who {
				f.lack(ReasonNotReady, who, why)
			}
			f.close()
			if diff := cmp.Diff([]string{tc.want}, f.texts); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
