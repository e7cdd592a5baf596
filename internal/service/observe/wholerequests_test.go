package observe

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	lws "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

// TestWholeRequestsTold turns to another strategy while the cluster is out of reach. An edit that its ConfigMap was told before is not refused
// later: that would keep the service from moving to another cluster.
func TestWholeRequestsTold(t *testing.T) {
	const apart, whole = true, false
	cases := map[string]struct {
		reason string
		// read and told say what the ConfigMap has: as it was read last, and as it was told last.
		read, told, edit bool
		refused          bool
	}{
		"Begin":     {"Prefill and decode may serve there, and would refuse whole requests.", apart, apart, whole, true},
		"BeginTold": {"The cluster applies that as soon as it can, whatever is said now.", apart, whole, whole, false},
		"End":       {"They may get whole requests, and nothing is known to serve that is picked from now on.", whole, whole, apart, true},
		"EndTold":   {"The cluster applies that as soon as it can, whatever is said now.", whole, apart, apart, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, scheduling.Target{Cluster: "east", Namespace: "models"})
			s.routed(plan.Router{PicksApart: tc.edit, ScreensRevisions: true, ScreensBoth: true, Config: "new"})
			if !tc.edit {
				s.plan.Router.Strategy = v1alpha1.StrategyQueueSize
			}
			c := &s.plan.Clusters[0]
			c.Groups, s.plan.Roles = []plan.Group{{}}, nil
			lost := synced("False", "observe failed: cannot get object: no route to host")
			for _, r := range []*plan.Role{{Name: "p", Type: v1alpha1.ComponentTypePrefiller}, {Name: "d", Type: v1alpha1.ComponentTypeDecoder}} {
				s.plan.Roles = append(s.plan.Roles, r)
				replica := plan.Replica{Key: c.Key("leaderworkerset", r.Name, "0"), Role: r}
				c.Groups[0].Replicas = append(c.Groups[0].Replicas, replica)
				s.seeRemote(replica.Key.String(), workload(r.Name, func(w *lws.LeaderWorkerSet) { w.Labels[naming.LabelSpecHash] = "x-both" }), lost)
			}
			config := func(picksApart bool) map[string]any {
				annotations := map[string]any{naming.AnnotationConfigHash: "former"}
				if picksApart {
					annotations[naming.AnnotationPicksApart] = "true"
				}
				if picksApart == tc.edit {
					annotations[naming.AnnotationConfigHash] = s.plan.Router.ConfigHash(c)
				}
				return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x", "annotations": annotations}}
			}
			k := c.ConfigKey().String()
			s.seeRemote(k, config(tc.read), lost)
			o := s.observed[k]
			o.Resource = kube.With(o.GetResource(), encode(t, map[string]any{"x": config(tc.told)}).GetFields()["x"], "spec", "forProvider", "manifest")
			r := Read(s.request(), s.plan)
			errs := append(r.wholeRequestsBegin(), r.wholeRequestsEnd()...)
			if diff := cmp.Diff(tc.refused, len(errs) > 0); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s%v", tc.reason, diff, errs)
			}
		})
	}
}
