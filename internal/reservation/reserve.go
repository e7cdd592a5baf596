package reservation

import (
	"cmp"
	"slices"

	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
)

// A Reservation is the capacity that a cluster has reserved for a service. A cluster keeps its
// reservations in one ledger, in the order in which it made them.
type Reservation struct {
	UID       string          `json:"uid"`
	Namespace string          `json:"namespace"`
	Name      string          `json:"name"`
	Replicas  []key.ReplicaID `json:"replicas"`
	// PodRequirements of the pods as they are counted, by the names of the request. A ledger
	// that was restored from the status has none.
	PodRequirements map[string]capacity.PodRequirements `json:"podRequirements,omitempty"`
	// Generation of the requests that the reservation answers. See
	// CapacityRequest.AssignGenerations.
	Generation int64 `json:"generation,omitempty"`
}

// ServiceID returns the ServiceID of the service that has the reservation.
func (r *Reservation) ServiceID() ServiceID { return ServiceID{r.Namespace, r.Name, r.UID} }

// A Pending is what a service requests and has not reserved.
type Pending struct {
	UID, Namespace, Name string
	Replicas             []key.ReplicaID
	Message              string
	// Running are those of the replicas that the service claims to run nevertheless.
	Running []key.ReplicaID
}

// A Result is what Reserve returns.
type Result struct {
	// Reservations, in the order in which they were made.
	Reservations []Reservation
	// Pending has the pending replicas by service, the oldest service first.
	Pending []Pending
	// Free is the capacity that is left.
	Free capacity.Free
	// Usage has what each reservation uses, by the same indexes.
	Usage []Usage
	// Overcommitted tells that the reservations do not fit any more, because nodes are gone or
	// replicas have more pods. Meanwhile nothing new is reserved.
	Overcommitted bool
	// RequirementsChanged are the services whose pods have changed since capacity was reserved
	// for them, and do not fit as they are now. They keep their reservations as these were, so
	// they can change back, and other services are not worse off. Nothing more is reserved for
	// them.
	RequirementsChanged []ServiceID
}

// MessageRequirementsChanged is why a cluster reserves nothing more for a service whose pods
// have changed.
const MessageRequirementsChanged = "the requirements of its pods have changed since capacity was reserved here, and do not fit as they are now"

// A Usage is what the replicas of a reservation request.
type Usage struct {
	Resources capacity.Resources
	Pods      int64
}

// Reserve updates the reservations of a cluster. A reservation is kept for as long as its
// replicas are requested. Replicas that already run are counted next, if they fit. What else is
// requested is reserved if it fits, for the oldest service first. Free is the capacity of the
// cluster without any reservation. A cluster that is not schedulable reserves nothing new, and
// notSchedulable says why. It also reserves nothing new for a service that is not allowed.
func Reserve(cluster string, free capacity.Free, reservations []Reservation, requests []CapacityRequest, notSchedulable string) Result {
	requests = slices.Clone(requests)
	slices.SortStableFunc(requests, func(a, b CapacityRequest) int { return CompareAge(&a, &b) })
	rs := &reserver{cluster: cluster, Result: Result{Free: free.Clone()}}
	rs.Free.Budget = new(reserveBudget)
	free.Budget = rs.Free.Budget
	rs.keepReserved(reservations, requests)
	rs.allocate()
	rs.applyChanges(&free)
	rs.reserveRunning(&free, requests)
	budgets := sharedBudget(requests)
	for i := range requests {
		rs.Free.Budget = budgets[requests[i].Namespace]
		rs.reserve(&requests[i], cmp.Or(requests[i].NotAllowed, notSchedulable))
	}
	rs.Free.Budget = nil
	for i := range rs.Reservations {
		total, pods := capacity.Sum(rs.podSets(i))
		cr := rs.requests[i].Clusters[cluster]
		rs.Reservations[i].Generation = cr.generation()
		rs.Usage = append(rs.Usage, Usage{Resources: total, Pods: pods})
	}
	return rs.Result
}

// reserveBudget is how many node classes the searches for existing reservations may look at, and
// again those for new ones of all namespaces. Each namespace may look at SearchSteps at least.
// Without it, a service could request thousands of groups, each of which starts a search.
// Reservations are kept, so the next call continues where this one stopped.
const reserveBudget = 50 * capacity.SearchSteps

// sharedBudget divides the budget among the namespaces, so that no tenant uses up the share of
// another.
func sharedBudget(requests []CapacityRequest) map[string]*int {
	all := map[string]*int{}
	for i := range requests {
		all[requests[i].Namespace] = nil
	}
	for namespace := range all {
		all[namespace] = new(max(reserveBudget/len(all), capacity.SearchSteps))
	}
	return all
}

type reserver struct {
	Result

	cluster string
	// requests of the reservations, by the same indexes.
	requests []*CapacityRequest
}

// keepReserved keeps what is reserved and still requested.
func (rs *reserver) keepReserved(reservations []Reservation, requests []CapacityRequest) {
	byService := make(map[ServiceID]*CapacityRequest, len(requests))
	for i := range requests {
		byService[requests[i].ServiceID()] = &requests[i]
	}
	known := map[ServiceID]bool{}
	for _, existing := range reservations {
		req := byService[existing.ServiceID()]
		if req == nil || known[existing.ServiceID()] {
			continue
		}
		known[existing.ServiceID()] = true
		var names []key.ReplicaID
		for _, r := range Replicas(req.Clusters[rs.cluster].Groups) {
			if slices.Contains(existing.Replicas, r.Name) {
				names = append(names, r.Name)
			}
		}
		if len(names) > 0 {
			existing.Replicas = names
			rs.Reservations = append(rs.Reservations, existing)
			rs.requests = append(rs.requests, req)
			rs.updateRequirements(len(rs.Reservations) - 1)
		}
	}
}

// updateRequirements drops pod requirements that no replica of a reservation uses any more. It
// takes over those that are new, and those that request less than before, which always fit.
func (rs *reserver) updateRequirements(i int) {
	was, now := rs.Reservations[i].PodRequirements, rs.requests[i].PodRequirements
	requirements := map[string]capacity.PodRequirements{}
	for _, r := range rs.reserved(i) {
		for name := range r.Pods {
			requirement, known := was[name]
			if smaller := now[name]; !known || requirement.Covers(&smaller) {
				requirement = smaller
			}
			requirements[name] = requirement
		}
	}
	rs.Reservations[i].PodRequirements = requirements
}

// reserveRunning reserves what runs without a reservation. Such a service joined the fleet and
// stays where it ran, or the ledger and the status were lost. It comes before anything new, and
// a cluster that is not schedulable does it too, because these replicas already use capacity.
//
// Only the request says that they run, and a tenant may write that. So they are counted only if
// they fit. Otherwise they are pending and reported, and other services use the free capacity.
// If they do run, the cluster uses capacity that it has not counted, which an administrator
// should look at. If they do not, no other service is worse off. Nothing is reserved for a
// service that is not allowed.
func (rs *reserver) reserveRunning(initial *capacity.Free, requests []CapacityRequest) {
	var running []*CapacityRequest
	var podSets []capacity.PodSet
	for i := range requests {
		if r := rs.unreserved(&requests[i]); len(r) > 0 && requests[i].NotAllowed == "" && !slices.Contains(rs.RequirementsChanged, requests[i].ServiceID()) {
			running, podSets = append(running, &requests[i]), append(podSets, requests[i].PodSets(r)...)
		}
	}
	if len(running) == 0 || rs.Overcommitted {
		return
	}
	// Reservations that were made one by one may only fit if all of them are placed at once.
	free := initial.Clone()
	if ok, _ := free.Allocate(append(podSets, rs.allPodSets()...)); ok {
		rs.Free = free
		for _, req := range running {
			rs.add(req, rs.unreserved(req))
		}
		return
	}
	for _, req := range running {
		for _, r := range rs.unreserved(req) {
			if ok, _ := rs.Free.Allocate(req.PodSets([]ReplicaRequest{r})); ok {
				rs.add(req, []ReplicaRequest{r})
			}
		}
	}
}

// unreserved returns the replicas that a service claims to run, and for which nothing is
// reserved.
func (rs *reserver) unreserved(req *CapacityRequest) []ReplicaRequest {
	cr := req.Clusters[rs.cluster]
	if len(cr.Running) == 0 {
		return nil
	}
	var reserved []key.ReplicaID
	if i := rs.find(req); i >= 0 {
		reserved = rs.Reservations[i].Replicas
	}
	return slices.DeleteFunc(Replicas(cr.Groups), func(r ReplicaRequest) bool {
		return !slices.Contains(cr.Running, r.Name) || slices.Contains(reserved, r.Name)
	})
}

// allocate puts the pods of all reservations onto nodes.
func (rs *reserver) allocate() {
	// Place all at once, so that the largest pods come first, whatever the order of the
	// reservations. Only if that fails, place one reservation after the other.
	if ok, _ := rs.Free.Allocate(rs.allPodSets()); ok {
		return
	}
	for i := range rs.Reservations {
		if !rs.Free.ForceAllocate(rs.podSets(i)) {
			rs.Overcommitted = true
		}
	}
}

// podSets returns the pods of a reservation as it counts them.
func (rs *reserver) podSets(i int) []capacity.PodSet {
	counted := CapacityRequest{PodRequirements: rs.Reservations[i].PodRequirements}
	return counted.PodSets(rs.reserved(i))
}

// allPodSets returns the pods of all reservations.
func (rs *reserver) allPodSets() []capacity.PodSet {
	var podSets []capacity.PodSet
	for i := range rs.Reservations {
		podSets = append(podSets, rs.podSets(i)...)
	}
	return podSets
}

// reserved returns the replicas of a reservation.
func (rs *reserver) reserved(i int) []ReplicaRequest {
	return slices.DeleteFunc(Replicas(rs.requests[i].Clusters[rs.cluster].Groups), func(r ReplicaRequest) bool { return !slices.Contains(rs.Reservations[i].Replicas, r.Name) })
}

// Replicas returns the replicas of all groups.
func Replicas(groups []ReplicaGroup) []ReplicaRequest {
	var replicas []ReplicaRequest
	for _, group := range groups {
		replicas = append(replicas, group.Replicas...)
	}
	return replicas
}
