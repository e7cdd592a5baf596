package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// schedule decides which clusters of the fleet the service runs in, and plans each of them.
func (p *Plan) schedule(demand *scheduling.Demand) {
	if p.Schedule = scheduling.Schedule(demand, p.snapshot); p.Schedule.TooMany > 0 {
		return // The service is refused.
	}
	p.nameClusters()
	clusters := field.NewPath("spec", "placement", "clusters")
	if p.Service.OfCache {
		clusters = field.NewPath("spec", "clusters")
	}
	for _, warning := range p.Schedule.Warnings {
		p.warn(clusters, "%s", warning)
	}
	for i := range p.Schedule.Assignments {
		p.decideAt(p.Schedule.Assignments[i].Due)
	}
	p.planClusters()
	p.warnOfPriorityClass()
	p.planUnschedulable()
}

// checkStates refuses objects in more clusters than a capacity request can name, before anything is planned for each of them. No service
// makes them. A user may have made objects and have let the XR refer to them.
func checkStates(at *field.Path, snapshot *scheduling.Snapshot) field.ErrorList {
	n := len(snapshot.States)
	if n <= reservation.MaxClusters {
		return nil
	}
	return field.ErrorList{field.Invalid(at, fmt.Sprintf("%d clusters", n), fmt.Sprintf(
		"the XR refers to objects in too many clusters: at most %d are allowed. Remove objects that the service has not made from spec.crossplane.resourceRefs, or from spec.resourceRefs of a claim's XR", reservation.MaxClusters))}
}

// planClusters plans each cluster that has something of the service. Capacity for the same replicas
// may be requested of several clusters at once. Only one of them will run the replicas, so they
// are pending in the first one. A replica that runs in a cluster which it does not leave is pending nowhere.
func (p *Plan) planClusters() {
	once := p.spec.Placement != nil && p.policy() != v1alpha1.PlacementReplicate
	counted := map[key.ReplicaID]bool{}
	for i := range p.Schedule.Assignments {
		if a := &p.Schedule.Assignments[i]; once && a.State != v1alpha1.StateLeaving {
			maps.Copy(counted, a.Run)
		}
	}
	for i := range p.Schedule.Assignments {
		a := &p.Schedule.Assignments[i]
		if len(a.Run)+len(a.Pending)+len(a.Groups) == 0 && !a.KeepsRouter {
			continue
		}
		pending := map[key.ReplicaID]bool{}
		for _, name := range a.Pending {
			pending[name] = !once || !counted[name]
			counted[name] = true
		}
		if len(a.Run) == 0 && len(a.Pending) > 0 && a.Existing == nil && !slices.Contains(slices.Collect(maps.Values(pending)), true) {
			continue
		}
		p.planCluster(a, pending)
	}
}

// planCluster plans one cluster. Its groups have the replicas that are reserved or exist there.
// pending has the replicas whose capacity is requested.
func (p *Plan) planCluster(a *scheduling.Assignment, pending map[key.ReplicaID]bool) {
	c := p.layout(a.Target, func(r key.ReplicaID) bool { return a.Run[r] || pending[r] })
	c.LocalQueue, c.GangQueue = a.LocalQueue, a.GangQueue
	c.AwaitsAnswer = a.Reason == scheduling.ReasonRequested
	c.NotStarted, c.Leaving, c.Abandoned = !hasRun(a) && a.Existing == nil, a.State == v1alpha1.StateLeaving, a.Abandoned
	extra := p.extraReplicas(&c, p.extra[a.Name])
	var groups []Group
	for _, g := range c.Groups {
		var run []Replica
		for _, r := range g.Replicas {
			if a.Run[r.ID] {
				run = append(run, r.assigned(a))
			} else {
				c.Pending = append(c.Pending, r)
			}
		}
		if g.Replicas = run; len(run) == 0 {
			continue
		}
		c.addGang(p, &g, p.gang)
		groups = append(groups, g)
	}
	c.Groups = groups
	p.planExtra(&c, extra, a)
	for i := range c.Groups {
		c.addWorkloads(&c.Groups[i], a.Existing)
	}
	p.Clusters = append(p.Clusters, c)
	p.deferPending(&c, DeferredForCapacity, "replicas wait for capacity: "+a.Message)
}

// deferPending defers the pending replicas of a cluster that is planned, and their PodGroups: the gang is missing, too. A PodGroup
// that other replicas have there, such as the extra ones of a rollout, stays.
func (p *Plan) deferPending(c *ClusterPlan, reason, message string) {
	known := map[key.Key]bool{}
	for i := range p.Clusters {
		if p.Clusters[i].Target.Cluster != c.Target.Cluster {
			continue
		}
		for _, g := range p.Clusters[i].Groups {
			if g.PodGroup != nil {
				known[g.PodGroup.Key] = true
			}
		}
	}
	var gangs []Deferred
	for _, r := range c.Pending {
		p.Deferred = append(p.Deferred, Deferred{Key: r.Key, Reason: reason, Message: message})
		if at := c.podGroupKey(p, &Group{Index: r.Group}); p.gang.exists() && !known[at] {
			known[at] = true
			gangs = append(gangs, Deferred{Key: at, Reason: reason, Message: message})
		}
	}
	p.Deferred = append(p.Deferred, gangs...)
}

// planExtra adds the extra replicas of a rollout that run in a cluster, and notes those that wait for
// their capacity there.
func (p *Plan) planExtra(c *ClusterPlan, extra []Replica, a *scheduling.Assignment) {
	var run []Replica
	for _, r := range extra {
		switch {
		case a.Run[r.ID]:
			r.Partial = a.Partial[r.ID]
			run = append(run, r.assigned(a))
		case a.Extra[r.ID]:
			c.ExtraPending = append(c.ExtraPending, r)
		default:
			continue
		}
		p.Rollout.Surge = true
	}
	c.addExtra(p, run)
}

// assigned returns the replica as it runs in a cluster of the fleet, by the decision about that cluster.
func (r Replica) assigned(a *scheduling.Assignment) Replica {
	r.Generation = a.Generations[r.ID]
	if a.Held[r.ID] {
		told := a.Existing.Told[r.ID]
		r.Held, r.Template, r.Nodes, r.Generation = true, told.Pods, cmp.Or(told.Nodes, r.Nodes), told.Generation
	}
	r.Pin, r.Note = a.Pins[r.ID], a.Notes[r.ID]
	if a.Existing != nil {
		r.FormerPin = a.Existing.Pins[r.ID]
	}
	return r
}

// hasRun tells whether a cluster runs replicas, or has reservations and nothing pending.
func hasRun(a *scheduling.Assignment) bool {
	return len(a.Run) > 0 || len(a.Groups) > 0 && len(a.Pending) == 0
}

// planUnschedulable adds a cluster plan for the replicas that no cluster accepts. Nothing is
// rendered for it. The replicas count as wanted, so that the status reports them.
func (p *Plan) planUnschedulable() {
	if len(p.Schedule.Unassigned) == 0 {
		return
	}
	c := p.layout(p.Local(), func(r key.ReplicaID) bool { return p.Schedule.Unassigned[r] })
	groups := c.Groups
	c.Groups, c.Endpoint, c.NotStarted, c.Unschedulable = nil, nil, true, true
	for _, g := range groups {
		c.Pending = append(c.Pending, g.Replicas...)
	}
	p.Clusters = append(p.Clusters, c)
	p.deferPending(&c, DeferredForCluster, "no cluster accepts these replicas: see the condition Placed")
}
