package reservation

import (
	"fmt"
	"slices"

	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
)

// reserve reserves what a service requests and has not reserved yet.
func (rs *reserver) reserve(req *CapacityRequest, notSchedulable string) {
	cr, requested := req.Clusters[rs.cluster]
	if !requested {
		return
	}
	pending := Pending{UID: req.UID, Namespace: req.Namespace, Name: req.Name}
	groups := cr.Groups
	if cr.AllOrNothing && rs.find(req) < 0 {
		groups = []ReplicaGroup{merged(groups)}
	}
	for _, group := range groups {
		waiting, why := rs.reserveGroup(req, group, notSchedulable)
		for _, r := range waiting {
			pending.Replicas = append(pending.Replicas, r.Name)
		}
		if pending.Message == "" {
			pending.Message = why
		}
	}
	for _, r := range rs.unreserved(req) {
		pending.Running = append(pending.Running, r.Name)
	}
	if len(pending.Running) > 0 {
		pending.Message = fmt.Sprintf("%d replicas run without a reservation: %s", len(pending.Running), pending.Message)
	}
	if len(pending.Replicas) > 0 {
		rs.Pending = append(rs.Pending, pending)
	}
}

// merged merges all groups into one. If none of the replicas is required, all of them become
// so: a part of the service would reserve capacity that it cannot use.
func merged(groups []ReplicaGroup) ReplicaGroup {
	whole := ReplicaGroup{Replicas: slices.Clone(Replicas(groups))}
	if !slices.ContainsFunc(whole.Replicas, func(r ReplicaRequest) bool { return r.Required }) {
		for i := range whole.Replicas {
			whole.Replicas[i].Required = true
		}
	}
	return whole
}

// reserveGroup reserves all replicas of a group, or those that it requires to start. A group
// that has started gets more, replica by replica. It returns the replicas that are pending, and
// why.
func (rs *reserver) reserveGroup(req *CapacityRequest, group ReplicaGroup, notSchedulable string) ([]ReplicaRequest, string) {
	have := rs.findOrAdd(req)
	var missing []ReplicaRequest
	for _, r := range group.Replicas {
		if !slices.Contains(have.Replicas, r.Name) {
			missing = append(missing, r)
		}
	}
	switch {
	case len(missing) == 0:
		return nil, ""
	case notSchedulable != "":
		rs.dropEmpty(req)
		return missing, notSchedulable
	case slices.Contains(rs.RequirementsChanged, req.ServiceID()):
		return missing, MessageRequirementsChanged
	case rs.Overcommitted:
		rs.dropEmpty(req)
		return missing, "more is reserved than the cluster has"
	case *rs.Free.Budget <= 0:
		rs.dropEmpty(req)
		return missing, "its namespace requests more than one call evaluates, and the next call continues"
	}
	// Replicas that are not required start one by one.
	started := len(missing) < len(group.Replicas) || !slices.ContainsFunc(group.Replicas, func(r ReplicaRequest) bool { return r.Required })
	ok, why := rs.Free.Allocate(req.PodSets(missing))
	if ok {
		rs.add(req, missing)
		return nil, ""
	}
	required := slices.DeleteFunc(slices.Clone(missing), func(r ReplicaRequest) bool { return !r.Required })
	rest := slices.DeleteFunc(slices.Clone(missing), func(r ReplicaRequest) bool { return r.Required })
	if len(required) > 0 && len(rest) > 0 {
		if ok, _ := rs.Free.Allocate(req.PodSets(required)); ok {
			rs.add(req, required)
			started, missing = true, rest
		}
	}
	if !started {
		rs.dropEmpty(req)
		return missing, why
	}
	// The rest is reserved replica by replica.
	var waiting []ReplicaRequest
	for _, r := range missing {
		if ok, short := rs.Free.Allocate(req.PodSets([]ReplicaRequest{r})); ok {
			rs.add(req, []ReplicaRequest{r})
		} else {
			waiting, why = append(waiting, r), short
		}
	}
	rs.dropEmpty(req)
	return waiting, why
}

// find returns the index of the reservation of a service, or -1.
func (rs *reserver) find(req *CapacityRequest) int {
	return slices.IndexFunc(rs.Reservations, func(r Reservation) bool { return r.ServiceID() == req.ServiceID() })
}

// findOrAdd returns the reservation of a service. It adds an empty one if there is none.
func (rs *reserver) findOrAdd(req *CapacityRequest) *Reservation {
	if i := rs.find(req); i >= 0 {
		return &rs.Reservations[i]
	}
	rs.Reservations = append(rs.Reservations, Reservation{UID: req.UID, Namespace: req.Namespace, Name: req.Name, PodRequirements: map[string]capacity.PodRequirements{}})
	rs.requests = append(rs.requests, req)
	return &rs.Reservations[len(rs.Reservations)-1]
}

func (rs *reserver) add(req *CapacityRequest, replicas []ReplicaRequest) {
	reservation := rs.findOrAdd(req)
	for _, r := range replicas {
		reservation.Replicas = append(reservation.Replicas, r.Name)
		for name := range r.Pods {
			reservation.PodRequirements[name] = req.PodRequirements[name]
		}
	}
}

// dropEmpty removes the reservation of a service if it has no replicas.
func (rs *reserver) dropEmpty(req *CapacityRequest) {
	if i := rs.find(req); i >= 0 && len(rs.Reservations[i].Replicas) == 0 {
		rs.Reservations = slices.Delete(rs.Reservations, i, i+1)
		rs.requests = slices.Delete(rs.requests, i, i+1)
	}
}
