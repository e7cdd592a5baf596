package scheduling

import (
	"maps"
	"slices"
	"time"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
)

// A Candidate is a cluster that a service can be assigned to, or exists in.
type Candidate struct {
	// Name of the cluster in the service's placement.
	Name string
	// Weight of the cluster under the policy Spread.
	Weight int64
	// OutsideFleet clusters are not of the fleet. Everything fits there, and no capacity is
	// requested of them.
	OutsideFleet bool
	// Unknown says why the cluster cannot be read. Nothing new goes there, and nothing leaves.
	Unknown string
	// Deselected clusters are no longer named by the placement, but something exists there.
	Deselected bool
	// NotAllowed clusters are deselected because they no longer allow the tenant's namespace.
	NotAllowed bool
	// Exists tells that the service has objects there. Gone tells that there is no InferenceCluster.
	Exists, Gone bool
	// StopPolicy of the cluster, and the message that explains it. Empty means None.
	StopPolicy  v1alpha1.StopPolicy
	StopMessage string
	// Unreachable is the time since when the cluster is out of reach, if it is.
	Unreachable *time.Time
	// InOutage tells that most of the fleet went out of reach at the same time. OutageEnds is when this may no
	// longer hold. It is zero while no cluster has come back.
	InOutage   bool
	OutageEnds time.Time
	// Free is the capacity that is free in addition to the service's own reservation.
	Free capacity.Free
	// Uncounted tells that no capacity is counted there, so everything fits: Kueue admits it.
	Uncounted bool
	// OutOfScope is the reason why the service does not start there, and OutOfScopeMessage says so. Both
	// are empty if it may.
	OutOfScope, OutOfScopeMessage string
	// Reserved, Present and Ready replicas of the service there. Reserved are those whose
	// reservation answers the current request, see reservation.ClusterRequest.Reserved. Present
	// are those of which an object exists.
	Reserved, Present, Ready map[key.ReplicaID]bool
	// WasReady replicas were ready when their objects were last read.
	WasReady map[key.ReplicaID]bool
	// Updating replicas have pods that may soon be replaced, or objects that were not written since
	// this is the home. They may still be ready.
	Updating map[key.ReplicaID]bool
	// Created is when the objects of present replicas were created.
	Created map[key.ReplicaID]time.Time
	// Requested are the groups that the last request asks it for, or that sleep there as in their home.
	Requested map[key.GroupID]bool
	// Evaluated tells that the cluster has evaluated what is requested of it now. AskedFor is for
	// how long this has been requested.
	Evaluated bool
	AskedFor  time.Duration
	// Paused tells that Crossplane does not reconcile the cluster, and NotReconciled that it cannot.
	Paused, NotReconciled bool
	// NotSchedulable says why the cluster reserves nothing new. Empty if it does.
	NotSchedulable string
	// PendingMessage is what the cluster says about pending replicas.
	PendingMessage string
	// Orphaned tells that deleting the Objects keeps the remote objects.
	Orphaned bool
	// Refused tells that the gateways there refuse the service.
	Refused bool
	// RouterReady tells that the endpoint picker runs, so requests are answered. With a fleet route,
	// its HTTPRoute and InferencePool have to be there, too. It is true for a service without one.
	RouterReady bool
	// Used tells that others use what runs there.
	Used bool
	// NoEntrypoint tells that the fleet route cannot send requests there, because the cluster's
	// entrypoint is not known.
	NoEntrypoint bool
	// ReceivesTraffic tells that requests reach the cluster. Without a fleet route, they do as soon as the
	// router is ready.
	ReceivesTraffic bool
	// DuplicateOf is another cluster of the placement with the same provider configuration and
	// namespace. Nothing new goes here, since its objects would conflict with those of the
	// other.
	DuplicateOf string
	// MayReceiveTraffic tells that a gateway may still send requests there by the fleet route. Weighted tells that the route as it was
	// read gives the cluster a weight.
	MayReceiveTraffic, Weighted bool
}

// existsOrReserved tells whether a replica exists in the cluster or is reserved there.
func (c *Candidate) existsOrReserved(r *reservation.ReplicaRequest) bool {
	return c.OutsideFleet || c.Reserved[r.Name] || c.Present[r.Name]
}

// mayEvaluate tells whether the cluster may soon evaluate what is requested of it.
func (c *Candidate) mayEvaluate() bool {
	return !c.Evaluated && c.AskedFor < RequestTimeout && c.NotSchedulable == ""
}

// present tells whether any replica of a group exists there.
func (c *Candidate) present(group reservation.ReplicaGroup) bool {
	return slices.ContainsFunc(group.Replicas, func(r reservation.ReplicaRequest) bool { return c.Present[r.Name] })
}

// acceptsFor tells whether the gateways of a candidate accept the service, so that it may replace another candidate. Where they refuse
// it there as well, nothing is lost.
func (c *Candidate) acceptsFor(other *Candidate) bool { return !c.Refused || other.Refused }

// canAnswer tells whether the replicas of a group can answer requests there: one of a role that answers alone is
// ready, or one of each of the other roles.
func (c *Candidate) canAnswer(g *reservation.ReplicaGroup, alone map[string]bool) bool {
	together := map[string]bool{}
	for _, r := range g.Replicas {
		_, role, _, ok := r.Name.Parts()
		switch {
		case !ok:
		case !alone[role]:
			together[role] = together[role] || c.Ready[r.Name]
		case c.Ready[r.Name]:
			return true
		}
	}
	return len(together) > 0 && !slices.Contains(slices.Collect(maps.Values(together)), false)
}

// canStart tells whether a group can start there: its required replicas exist or are reserved.
func (c *Candidate) canStart(group *reservation.ReplicaGroup) bool {
	return c.anyExistsOrReserved(*group) && !slices.ContainsFunc(group.Replicas, func(r reservation.ReplicaRequest) bool { return r.Required && !c.existsOrReserved(&r) })
}

// missing returns the replicas of some groups that neither exist nor are reserved there.
func (c *Candidate) missing(groups []reservation.ReplicaGroup) []reservation.ReplicaRequest {
	return slices.DeleteFunc(reservation.Replicas(groups), func(r reservation.ReplicaRequest) bool { return c.existsOrReserved(&r) })
}

// covers tells whether all that another cluster has of a group is ready here and stays so. Other replicas may be
// pending. If they never fit, waiting for them would keep two copies for ever.
func (c *Candidate) covers(other *Candidate, group *reservation.ReplicaGroup) bool {
	return !slices.ContainsFunc(group.Replicas, func(r reservation.ReplicaRequest) bool {
		return other.Present[r.Name] && !c.staysReady(&r)
	})
}

// hasRequired tells whether all required replicas of a group are ready here and stay so.
func (c *Candidate) hasRequired(group *reservation.ReplicaGroup) bool {
	return !slices.ContainsFunc(group.Replicas, func(r reservation.ReplicaRequest) bool {
		return r.Required && !c.staysReady(&r)
	})
}

// staysReady tells whether a replica is ready here, and no update is about to stop it.
func (c *Candidate) staysReady(r *reservation.ReplicaRequest) bool {
	return c.Ready[r.Name] && !c.Updating[r.Name]
}

// mayEverReceive tells whether requests may reach a cluster, now or once its router is ready. One outside the fleet has a route of
// its own.
func (c *Candidate) mayEverReceive() bool {
	return c.MayReceiveTraffic || !c.NoEntrypoint || c.OutsideFleet
}

// takesOver tells whether the requests of another candidate reach this one, or none can reach either.
func (c *Candidate) takesOver(other *Candidate) bool {
	return c.acceptsFor(other) && (c.ReceivesTraffic || c.NoEntrypoint && c.RouterReady && !other.mayEverReceive())
}

// anyExistsOrReserved tells whether any replica of a group exists there or is reserved there. A group that has
// stopped needs none.
func (c *Candidate) anyExistsOrReserved(group reservation.ReplicaGroup) bool {
	return len(group.Replicas) == 0 || slices.ContainsFunc(group.Replicas, func(r reservation.ReplicaRequest) bool { return c.existsOrReserved(&r) })
}
