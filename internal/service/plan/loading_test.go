package plan

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/rollout"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// TestFindsLoaderPods shows in which clusters the pods of a loading Job are found, and which of them are observed.
func TestFindsLoaderPods(t *testing.T) {
	type want struct {
		Finds  bool
		Pods   []string
		Failed int32
		Later  int
	}
	made := time.Date(2026, 5, 4, 8, 0, 0, 0, time.UTC)
	active := JobView{Exists: true, Active: true, FailedPods: 2, Created: made}
	cases := map[string]struct {
		reason string
		edit   func(*Plan)
		// found are the names of pods that the collection has found.
		found []string
		job   JobView
		// loaded tells that the status of the last call has the weights.
		loaded bool
		want   want
	}{
		"NoPod":    {reason: "While the Job has no pod, none is looked for.", job: JobView{Exists: true, Created: made}, want: want{Later: 4}},
		"Active":   {reason: "They have random names.", job: active, want: want{Finds: true, Failed: 2, Later: 3}},
		"Found":    {reason: "Each is observed.", job: active, found: []string{"a", "b"}, want: want{Finds: true, Failed: 2, Pods: []string{"a", "b"}, Later: 1}},
		"Many":     {reason: "A Job has one at a time.", job: active, found: []string{"a", "b", "c", "d"}, want: want{Finds: true, Failed: 2, Pods: []string{"a", "b", "c"}}},
		"Limited":  {reason: "The platform team may want fewer.", job: active, found: []string{"a", "b"}, edit: func(p *Plan) { p.PodLimit = 1 }, want: want{Finds: true, Failed: 2, Pods: []string{"a"}}},
		"Never":    {reason: "Or none at all.", job: active, found: []string{"a"}, edit: func(p *Plan) { p.PodLimit = 0 }, want: want{}},
		"Here":     {reason: "In the cluster of the XR they are read by their label.", job: active, found: []string{"a"}, edit: func(p *Plan) { p.Clusters[0].Target.Cluster = "" }, want: want{}},
		"Complete": {reason: "A Job that is complete has none that could say anything.", job: JobView{Exists: true, Complete: true, Created: made}, found: []string{"a"}, want: want{}},
		"Loaded":   {reason: "The Job goes, and what finds its pods.", job: active, loaded: true, found: []string{"a"}, want: want{}},
		"Leaving":  {reason: "Nothing is loaded in a cluster that is left.", job: active, edit: func(p *Plan) { p.Clusters[0].Leaving = true }, want: want{Later: 4}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, err := build(t, cachedModel(`uri: "hf://a/b", cache: {claimName: weights}`), "")
			if err != nil {
				t.Fatal(err)
			}
			p.Clusters = []ClusterPlan{{
				Target: scheduling.Target{Cluster: "east", Namespace: "ns"},
				Groups: []Group{{Replicas: []Replica{{Role: p.Roles[0]}}}},
			}}
			v := WeightsView{
				Loaded:   func(string, string) (string, bool) { return "", tc.loaded },
				Job:      func(key.Key) JobView { return tc.job },
				PodNames: func(limit int) []string { return tc.found[:min(len(tc.found), limit)] },
			}
			if tc.edit != nil {
				tc.edit(p)
			}
			p.load(&Running{Now: made, Loader: "x", Replica: func(key.Key) rollout.State { return rollout.State{} }, Weights: func(*ClusterPlan) WeightsView { return v }})
			l := p.Clusters[0].Loading
			if diff := cmp.Diff(tc.want, want{l.FindsPods, l.PodNames, l.FailedPods, p.LaterLoaderObjects()}); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
