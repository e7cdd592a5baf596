package observe

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/remote"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

// A roleCount counts the replicas of one role.
type roleCount struct {
	nodes                               int32
	desired, existing, ready, podsReady int32
	// updated and held are of the desired replicas, and extra is in addition to them.
	updated, held, extra int32
	// unread are desired replicas that cannot be read. They count as neither ready nor updated.
	unread          int32
	failed, unknown bool
	newest          time.Time
}

// count adds a replica. The state is nil for a deferred replica. The pods are nil where
// none was found or not all are read. What fails in pods is added apart.
func (c *roleCount) count(r *plan.Replica, s *objectState, pods *podFacts) {
	c.desired++
	switch {
	case s != nil && s.reason == remote.CannotBeRead:
		c.unread++
	case r.Updated && !s.formerPods():
		c.updated++
	}
	if r.Held {
		c.held++
	}
	if s != nil && s.reason != ReasonNotCreated {
		c.existing++
	}
	if s != nil {
		c.unknown = c.unknown || unreadable(s.reason)
		c.newest = newest(c.newest, s.timestamps()...)
		if s.ready || s.serves {
			c.ready++
		}
	}
	if pods == nil {
		c.podsReady += podsByGroup(s, c.nodes)
		return
	}
	c.podsReady += min(pods.ready, c.nodes)
	if pods.newest.After(c.newest) {
		c.newest = pods.newest
	}
}

// countRouter adds the endpoint pickers of one cluster. The state is the one of their
// Deployment, or nil where that is deferred. The pods are nil where they are not read.
func (c *roleCount) countRouter(r *plan.Router, s *objectState, pods *podFacts) {
	c.desired += r.Replicas
	if pods != nil {
		c.failed = c.failed || len(pods.failures) > 0
		if pods.newest.After(c.newest) {
			c.newest = pods.newest
		}
	}
	if s == nil || s.reason == ReasonNotCreated {
		return
	}
	c.existing += r.Replicas
	c.failed = c.failed || s.reason == ReasonFailed
	c.unknown = c.unknown || unreadable(s.reason)
	c.newest = newest(c.newest, s.timestamps()...)
	switch {
	case s.ready || s.serves:
		c.ready += r.Replicas
		c.podsReady += r.Replicas
	case s.reason == ReasonNotReady:
		// Of several endpoint pickers only the leader is ready.
		n := min(max(s.view.Status.AvailableReplicas, 0), r.Replicas)
		c.ready += n
		c.podsReady += n
	}
}

// podsByGroup returns the number of ready pods from the status of a LeaderWorkerSet. The
// status tells only whether all of them are ready.
func podsByGroup(s *objectState, nodes int32) int32 {
	if s == nil || s.view == nil || unreadable(s.reason) || s.view.Status.ReadyReplicas < 1 {
		return 0
	}
	return nodes
}

// timestamps are those of the observed object and of its conditions.
func (s *objectState) timestamps() []string {
	if s.view == nil {
		return nil
	}
	all := []string{s.view.Metadata.CreationTimestamp}
	for _, c := range s.view.Status.Conditions {
		all = append(all, c.LastTransitionTime)
	}
	return all
}

// merge adds the counts of another cluster.
func (c *roleCount) merge(o roleCount) {
	c.desired += o.desired
	c.existing += o.existing
	c.ready += o.ready
	c.updated += o.updated
	c.held += o.held
	c.extra += o.extra
	c.unread += o.unread
	c.podsReady += o.podsReady
	c.failed = c.failed || o.failed
	c.unknown = c.unknown || o.unknown
	if o.newest.After(c.newest) {
		c.newest = o.newest
	}
}

func (c *roleCount) phase() v1alpha1.ComponentPhase {
	switch {
	case c.failed:
		return v1alpha1.ComponentPhaseFailed
	case c.unknown:
		return v1alpha1.ComponentPhaseUnknown
	case c.ready == c.desired:
		return v1alpha1.ComponentPhaseRunning
	case c.existing == 0:
		return v1alpha1.ComponentPhasePending
	}
	return v1alpha1.ComponentPhaseDeploying
}

func (c *roleCount) status() v1alpha1.ComponentStatus {
	s := v1alpha1.ComponentStatus{
		DesiredReplicas: c.desired,
		ReadyReplicas:   c.ready,
		UpdatedReplicas: c.updated,
		NodesPerReplica: c.nodes,
		TotalPods:       c.desired * c.nodes,
		ReadyPods:       c.podsReady,
		Phase:           c.phase(),
	}
	if !c.newest.IsZero() {
		s.LastUpdateTime = &metav1.Time{Time: c.newest.UTC()}
	}
	return s
}

// A roleCounts counts each role, by its name.
type roleCounts map[string]*roleCount

func newRoleCounts(p *plan.Plan) roleCounts {
	c := make(roleCounts, len(p.Roles))
	for _, r := range p.Roles {
		c[r.Name] = &roleCount{nodes: r.Nodes}
	}
	if p.Router != nil {
		c[p.Router.Name] = &roleCount{nodes: 1}
	}
	return c
}

func (c roleCounts) merge(o roleCounts) {
	for name, count := range o {
		c[name].merge(*count)
	}
}

func (c roleCounts) components() map[string]v1alpha1.ComponentStatus {
	all := make(map[string]v1alpha1.ComponentStatus, len(c))
	for name, count := range c {
		all[name] = count.status()
	}
	return all
}

// troubled tells whether a role has failed or its state is unknown.
func (c roleCounts) troubled() bool {
	for _, count := range c {
		if count.failed || count.unknown {
			return true
		}
	}
	return false
}

// answer tells whether requests get an answer: a replica that is no prefill replica is ready, and an endpoint picker, if the service
// has a router.
func (c roleCounts) answer(p *plan.Plan) bool {
	if p.Router != nil && c[p.Router.Name].ready == 0 {
		return false
	}
	return slices.ContainsFunc(p.Roles, func(r *plan.Role) bool { return r.Type != v1alpha1.ComponentTypePrefiller && c[r.Name].ready > 0 })
}

// known writes a number of replicas of which the unread ones may be more.
func (c *roleCount) known(n int32) string {
	switch {
	case c.unread == 0:
		return strconv.Itoa(int(n))
	case n == 0:
		return "?"
	}
	return fmt.Sprintf("%d+?", n)
}

// summary is one line about the roles in the order of the spec. It leaves out the router,
// which the condition RouterReady is about.
func (c roleCounts) summary(p *plan.Plan) string {
	parts := make([]string, 0, len(p.Roles))
	for _, r := range p.Roles {
		parts = append(parts, fmt.Sprintf("%s %s/%d", r.Name, c[r.Name].known(c[r.Name].ready), c[r.Name].desired))
	}
	return strings.Join(parts, ", ")
}

// rollout says how far the newest template has come, of all roles except the router.
func (c roleCounts) rollout(p *plan.Plan) *v1alpha1.RolloutStatus {
	all := roleCount{}
	for _, r := range p.Roles {
		all.merge(*c[r.Name])
	}
	return &v1alpha1.RolloutStatus{
		UpdatedReplicas: all.updated, HeldReplicas: all.held, ExtraReplicas: all.extra,
		Summary: fmt.Sprintf("%s/%d", all.known(all.updated), all.desired),
	}
}
