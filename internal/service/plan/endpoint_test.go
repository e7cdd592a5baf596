package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/rollout"
)

// TestKeepSelectors shows when the Service of one role turns to a further one that listens on the same port now.
func TestKeepSelectors(t *testing.T) {
	exists, serving, broken := rollout.State{Exists: true}, rollout.State{Exists: true, Serving: true}, rollout.State{Exists: true, Broken: true}
	cases := map[string]struct {
		reason  string
		alone   string
		port    int32
		updated bool
		state   rollout.State
		first   rollout.State
		want    string
	}{
		"Held":      {"Its pods may listen on the former port.", "a", 8000, false, serving, serving, "a"},
		"Updating":  {"Some of them may still be the former ones.", "a", 8000, true, exists, serving, "a"},
		"Updated":   {"All of its pods listen on that port.", "a", 8000, true, serving, serving, ""},
		"Broken":    {"It serves nowhere, and gets requests as soon as it does.", "a", 8000, false, broken, serving, ""},
		"None":      {"It has no pods.", "a", 8000, false, rollout.State{}, serving, ""},
		"Stopped":   {"The role that it selects serves nowhere, so some requests are better than none.", "a", 8000, false, serving, rollout.State{}, ""},
		"NotAlone":  {"The Service has selected both roles.", "", 8000, false, serving, serving, ""},
		"OtherRole": {"The role that it selects is gone.", "c", 8000, false, serving, serving, ""},
		"OtherPort": {"The Service is for another port.", "a", 9000, false, serving, serving, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := &Role{Name: "a", Type: v1alpha1.ComponentTypeWorker, Port: tc.port}
			b := &Role{Name: "b", Type: v1alpha1.ComponentTypeWorker, Port: 8000}
			p := &Plan{Roles: []*Role{a, b}, Clusters: []ClusterPlan{{
				Endpoint: &Endpoint{Port: 8000, Selector: map[string]string{}},
				Groups:   []Group{{Replicas: []Replica{{Role: a, Key: key.New("", key.LeaderWorkerSet, "a"), Updated: true}, {Role: b, Key: key.New("", key.LeaderWorkerSet, "b"), Updated: tc.updated}}}},
			}}}
			states := map[string]rollout.State{"a": tc.first, "b": tc.state}
			p.keepSelectors(&Running{Replica: func(k key.Key) rollout.State { return states[k.Name] }, ServiceRole: func(key.Key) string { return tc.alone }})
			if diff := cmp.Diff(tc.want, p.Clusters[0].Endpoint.Selector[naming.LabelRoleName]); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
