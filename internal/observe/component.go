package observe

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/plan"
)

// A tally counts the replicas of one role.
type tally struct {
	nodes                               int32
	desired, existing, ready, podsReady int32
	failed, unknown                     bool
	newest                              time.Time
}

// count adds one replica, of which there may be no object (it is held) and no
// pods (none was found, or they are not read).
func (t *tally) count(s *subject, pods *podFacts) {
	t.desired++
	if s != nil && s.reason != ReasonNotCreated {
		t.existing++
	}
	if s != nil {
		t.unknown = t.unknown || unknown(s.reason)
		t.newest = newest(t.newest, s.timestamps()...)
		if s.ready {
			t.ready++
		}
	}
	if pods == nil {
		t.podsReady += podsByGroup(s, t.nodes)
		return
	}
	t.podsReady += min(pods.ready, t.nodes)
	t.failed = t.failed || len(pods.failures) > 0
	if pods.newest.After(t.newest) {
		t.newest = pods.newest
	}
}

// podsByGroup counts pods by the LeaderWorkerSet's word: it says whether the group
// is ready with all its pods.
func podsByGroup(s *subject, nodes int32) int32 {
	if s == nil || s.seen == nil || unknown(s.reason) || s.seen.Status.ReadyReplicas < 1 {
		return 0
	}
	return nodes
}

// timestamps of what was observed.
func (s *subject) timestamps() []string {
	if s.seen == nil {
		return nil
	}
	all := []string{s.seen.Metadata.CreationTimestamp}
	for _, c := range s.seen.Status.Conditions {
		all = append(all, c.LastTransitionTime)
	}
	return all
}

// merge adds the tally of another cluster.
func (t *tally) merge(o tally) {
	t.desired += o.desired
	t.existing += o.existing
	t.ready += o.ready
	t.podsReady += o.podsReady
	t.failed = t.failed || o.failed
	t.unknown = t.unknown || o.unknown
	if o.newest.After(t.newest) {
		t.newest = o.newest
	}
}

func (t *tally) phase() v1alpha1.ComponentPhase {
	switch {
	case t.failed:
		return v1alpha1.ComponentPhaseFailed
	case t.unknown:
		return v1alpha1.ComponentPhaseUnknown
	case t.ready == t.desired:
		return v1alpha1.ComponentPhaseRunning
	case t.existing == 0:
		return v1alpha1.ComponentPhasePending
	}
	return v1alpha1.ComponentPhaseDeploying
}

func (t *tally) status() v1alpha1.ComponentStatus {
	s := v1alpha1.ComponentStatus{
		DesiredReplicas: t.desired,
		ReadyReplicas:   t.ready,
		NodesPerReplica: t.nodes,
		TotalPods:       t.desired * t.nodes,
		ReadyPods:       t.podsReady,
		Phase:           t.phase(),
	}
	if !t.newest.IsZero() {
		s.LastUpdateTime = &metav1.Time{Time: t.newest.UTC()}
	}
	return s
}

// A census has a tally for each role.
type census map[string]*tally

func newCensus(p *plan.Plan) census {
	c := make(census, len(p.Roles))
	for _, r := range p.Roles {
		c[r.Name] = &tally{nodes: r.Nodes}
	}
	return c
}

func (c census) merge(o census) {
	for name, t := range o {
		c[name].merge(*t)
	}
}

func (c census) components() map[string]v1alpha1.ComponentStatus {
	all := make(map[string]v1alpha1.ComponentStatus, len(c))
	for name, t := range c {
		all[name] = t.status()
	}
	return all
}

// troubled tells that a role has failed or cannot be judged.
func (c census) troubled() bool {
	for _, t := range c {
		if t.failed || t.unknown {
			return true
		}
	}
	return false
}

// line is one line for people, in the order of the spec.
func (c census) line(p *plan.Plan) string {
	parts := make([]string, 0, len(p.Roles))
	for _, r := range p.Roles {
		parts = append(parts, fmt.Sprintf("%s %d/%d", r.Name, c[r.Name].ready, c[r.Name].desired))
	}
	return strings.Join(parts, ", ")
}
