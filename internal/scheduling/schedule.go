package scheduling

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// A Demand is what scheduling knows of an InferenceService: what it needs, and where it may run.
type Demand struct {
	// ServiceID of the service that has the reservations.
	reservation.ServiceID
	// Claimed tells that the service is behind a claim. Its Objects are cluster-scoped.
	Claimed bool
	// Placement of its spec. Nil where the service runs beside the XR.
	Placement *v1alpha1.Placement
	// Groups of its replicas, in the order of the spec.
	Groups []reservation.ReplicaGroup
	// AnswerAlone are the roles of which a replica answers requests without one of another role.
	AnswerAlone map[string]bool
	// Extra are the groups that a rollout runs beyond them, by the cluster.
	Extra map[string][]reservation.ReplicaGroup
	// PodRequirements of the pods of these replicas, by the names that the replicas use.
	PodRequirements map[string]capacity.PodRequirements
	// Size returns the bytes that a replica takes of an answer to Crossplane, and Room is how many bytes there
	// are for all of them. It is called only if something moves. Nil means that two copies of everything fit.
	Size func(key.ReplicaID) int
	Room int
	// HasRouter tells that requests are answered only where an endpoint picker runs.
	HasRouter bool
	// Waits tells that requests wait in the endpoint picker as long as no replica is ready.
	Waits bool
	// HasGang tells that its replicas start as a gang.
	HasGang bool
	// HasFleetRoute tells that one route sends requests to all clusters.
	HasFleetRoute bool
	// Scope are the clusters of the fleet in which it may start. Nil means all of them.
	Scope *Scope
	// UsedBy tells whether others use what runs in an InferenceCluster, so that it has to stay there. Nil means that nobody does.
	UsedBy func(cluster string) bool
	// MaxRequested is the most replicas that may be requested of all clusters. 0 means any number.
	MaxRequested int
	// HostnameBackend is the way in which that route leads to DNS names. Empty means that it does not.
	HostnameBackend key.HostnameBackend
}

// A Scope is some of the clusters of the fleet: those of these names, or those with these labels.
type Scope struct {
	Names    []string
	Selector *metav1.LabelSelector
	// Reason and Message say why a service starts in no other cluster.
	Reason, Message string
}

// without says why the service does not start in a cluster. Both are empty if it may.
func (d *Demand) without(c *v1alpha1.InferenceCluster) (reason, message string) {
	if d.HasGang && c.Spec.LocalQueue() != "" {
		return ReasonGang, "Kueue admits each replica by itself there, and this service starts as a gang: set spec.schedulingStrategy.gang.mode to None"
	}
	s := d.Scope
	if s == nil || slices.Contains(s.Names, c.Name) || selects(s.Selector, c.Labels) {
		return "", ""
	}
	return s.Reason, s.Message
}

// A Result is where a service runs.
type Result struct {
	// TooMany is how many replicas would be requested of all clusters, if these are more than the Demand allows. Nothing else is decided then.
	TooMany int
	// Assignments of the members, in the order of the placement.
	Assignments []Assignment
	// Selector is what the placement selects clusters by, for people. It is empty if it selects none or all.
	Selector string
	// Unassigned are the replicas that no cluster accepts. Nothing is rendered for them.
	Unassigned map[key.ReplicaID]bool
	// Request is the capacity that the service requests. It is to be written over RequestVersion
	// only, the resourceVersion of the last one. That is empty if there is none.
	Request        *reservation.CapacityRequest
	RequestVersion string
	// Withdrawn are the clusters that may have grants for the service, and that it requests
	// nothing of any more. They have to read that.
	Withdrawn []string
	// Awaits are the clusters whose answers the service reads. Silent are those that have not
	// answered in time.
	Awaits, Silent []string
	// ReadsNamespace tells that a cluster allows namespaces by their labels.
	ReadsNamespace bool
	// Warnings about spec.placement.clusters.
	Warnings []string
}

// An Assignment is the decision about one cluster, and what it is based on.
type Assignment struct {
	Decision

	Target Target
	// Existing is what exists of the service there. Nil where nothing does.
	Existing *ClusterState
	// Entrypoint is where requests reach the cluster. Nil where that is not known.
	Entrypoint *v1alpha1.EntrypointStatus
	// UnusedHostname is the DNS name of its entrypoint, if the fleet route cannot lead there.
	UnusedHostname string
	// MayReceiveTraffic tells that a gateway may still send requests there by the fleet route.
	MayReceiveTraffic bool
	// Weighted tells that the fleet route as it was read gives the cluster a weight.
	Weighted bool
	// LocalQueue is the queue from which Kueue admits what runs there. Empty where the ledger
	// does.
	LocalQueue string
	// GangQueue is Volcano's queue for what runs there, if the service names none. Empty where the Input's counts.
	GangQueue string
	// Pins of the pods of the replicas that run there. Those without one may go to any pool.
	Pins Pins
	// Notes of the replicas that run there, as their objects get them.
	Notes Notes
	// KeepsRouter tells that a service of no replicas keeps its router there.
	KeepsRouter bool
}

// selectorText is a selector for people, or nothing for one that selects nothing or everything.
func selectorText(s *metav1.LabelSelector) string {
	if s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		return ""
	}
	return text.Value(metav1.FormatLabelSelector(s))
}

// Schedule decides where a service runs.
func Schedule(demand *Demand, snapshot *Snapshot) *Result {
	v := newView(demand, snapshot)
	members, warnings := v.members()
	p := Problem{
		Policy:          v.placement.Policy,
		Groups:          demand.Groups,
		PodRequirements: demand.PodRequirements,
		AnswerAlone:     demand.AnswerAlone,
		Homes:           v.last.Homes,
		Waits:           demand.Waits,
		FailoverAfter:   v.placement.FailoverAfter(),
		StartTimeout:    v.placement.StartTimeout(),
		Selected:        v.placement.ClusterSelector != nil,
		Seed:            demand.UID,
		Size:            demand.Size,
		Room:            demand.Room,
		Now:             snapshot.Now,
	}
	for _, m := range members {
		p.Candidates = append(p.Candidates, v.candidate(m))
	}
	v.markDuplicates(members, p.Candidates)
	solution := Assign(p)
	decisions := solution.Decisions
	// What is requested includes extra replicas, and what has no capacity is held. Only then is it known
	// of which extra groups a part would not run.
	v.addExtra(members, p.Candidates, decisions)
	if n := requestedOf(members, decisions); demand.MaxRequested > 0 && n > demand.MaxRequested {
		return &Result{TooMany: n}
	}
	r := &Result{ReadsNamespace: v.readsNamespace, Warnings: warnings, Request: v.request(members, decisions, solution.Homes), RequestVersion: snapshot.RequestVersion, Selector: selectorText(v.placement.ClusterSelector)}
	r.Awaits = v.awaits()
	r.Silent = v.silent(r.Awaits, members, p.Candidates)
	pins := make([]Pins, len(members))
	for i, m := range members {
		v.hold(m, &p.Candidates[i], &decisions[i], r.Request)
		v.wholeExtra(m, &p.Candidates[i], &decisions[i])
		pins[i] = v.pins(m, &decisions[i])
	}
	v.claimRunning(r.Request, members, decisions, pins)
	v.noteLeft(r.Request)
	r.Withdrawn = v.withdrawn(r.Request)
	r.Unassigned = addUnassigned(demand.Groups, decisions)
	for i, m := range members {
		localQueue, gangQueue := v.queues(m)
		r.Assignments = append(r.Assignments, Assignment{
			Decision:          decisions[i],
			Target:            m.target,
			Existing:          snapshot.States[m.target.Cluster],
			Entrypoint:        v.entrypoint(m),
			UnusedHostname:    v.unusedHostname(m),
			MayReceiveTraffic: p.Candidates[i].MayReceiveTraffic,
			Weighted:          p.Candidates[i].Weighted,
			LocalQueue:        localQueue,
			GangQueue:         gangQueue,
			Pins:              pins[i],
			Notes:             v.notes(m, &decisions[i], solution.Homes),
			KeepsRouter:       v.keepsRouter(&p.Candidates[i], &decisions[i]),
		})
	}
	return r
}

// addUnassigned adds the replicas that neither run in a cluster nor are pending in one to the pending
// ones of a cluster, because they are wanted. It is the cluster with the rest of their group, or else
// one with the service. It returns those for which there is no such cluster.
func addUnassigned(groups []reservation.ReplicaGroup, decisions []Decision) map[key.ReplicaID]bool {
	assigned, none := map[key.ReplicaID]bool{}, map[key.ReplicaID]bool{}
	for _, d := range decisions {
		for _, name := range d.Pending {
			assigned[name] = true
		}
		maps.Copy(assigned, d.Run)
	}
	for _, g := range groups {
		missing := slices.DeleteFunc(slices.Clone(g.Replicas), func(r reservation.ReplicaRequest) bool { return assigned[r.Name] })
		if len(missing) == 0 {
			continue
		}
		at := slices.IndexFunc(decisions, func(d Decision) bool { return runsSome(&d, &g) })
		if at < 0 {
			at = slices.IndexFunc(decisions, func(d Decision) bool { return d.State == v1alpha1.StatePlaced })
		}
		for _, r := range missing {
			if at < 0 {
				none[r.Name] = true
			} else {
				decisions[at].Pending = append(decisions[at].Pending, r.Name)
			}
		}
	}
	return none
}

// keepsRouter tells whether a service without replicas keeps its router in a cluster. It does
// until it leaves the cluster, or the cluster is abandoned and its objects can be forgotten.
func (v *view) keepsRouter(c *Candidate, d *Decision) bool {
	if d.Abandoned {
		return c.Exists && !c.Orphaned
	}
	return c.Exists && len(v.demand.Groups) == 0 && !c.Deselected && c.StopPolicy != v1alpha1.StopDrain
}
