package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// A ledgerPlan has the reservations of a cluster and the pending requests.
type ledgerPlan struct {
	reservation.Result

	// ledger is the encoded list of the reservations.
	ledger string
	// unchanged tells whether everything stays as it was, because the capacity requests are
	// not known. Then only the reservations of the ledger are set.
	unchanged bool
	// notSchedulable and message are why nothing new is reserved, as the reason and the
	// message of a condition. Both are empty where capacity is reserved.
	notSchedulable, message string
	// namespaces are those that services need in the cluster.
	namespaces []string
}

const (
	// maxLedger is the most bytes that the reservations take, in the ledger and beyond it in
	// the status. A ConfigMap takes at most 1 MiB, and etcd about 1.5 MiB of an object.
	maxLedger = 900 << 10
	// maxPending is the most pending requests in the status, which take some 300 KiB.
	maxPending = 1000
)

// Reasons why a cluster reserves nothing new, besides those that placements of services also
// have: scheduling.Stopped and scheduling.ReasonUnreachable.
const (
	reasonNoLedger      = "LedgerMissing"
	reasonNodes         = "NodesNotObserved"
	reasonFull          = "LedgerFull"
	reasonRequests      = "RequestsNotResolved"
	reasonOvercommitted = "Overcommitted"
)

// planLedger keeps the reservations that are still requested, and reserves more capacity
// for pending requests.
func planLedger(c *parsed, state *observedState) (*ledgerPlan, error) {
	p := &ledgerPlan{}
	p.notSchedulable, p.message = notSchedulable(c, state)
	if !state.resolved {
		p.unchanged, p.Reservations = true, state.ledger.reservations
		return p, p.write()
	}
	p.Result = reservation.Reserve(c.Name, state.free, state.ledger.reservations, state.requests, p.message)
	if err := p.write(); err != nil {
		return p, err
	}
	if n := p.size(); n > maxLedger && p.notSchedulable == "" {
		p.notSchedulable, p.message = reasonFull, fmt.Sprintf("the reservations would take %d bytes, and the limit is %d", n, maxLedger)
		p.Result = reservation.Reserve(c.Name, state.free, state.ledger.reservations, withoutRunning(c.Name, state.requests), p.message)
		if err := p.write(); err != nil {
			return p, err
		}
	}
	p.namespaces = needed(c.Name, p.Reservations, state.requests)
	return p, nil
}

// withoutRunning leaves out the replicas that services claim to run. They get no reservations
// in a full ledger either: it would be too large to be written, and every reconcile of the
// cluster would fail.
func withoutRunning(cluster string, requests []reservation.CapacityRequest) []reservation.CapacityRequest {
	some := slices.Clone(requests)
	for i := range some {
		if at, requested := some[i].Clusters[cluster]; requested {
			at.Running = nil
			some[i].Clusters = map[string]reservation.ClusterRequest{cluster: at}
		}
	}
	return some
}

// size of what is reserved, in bytes of the ledger or of the status, whichever is more.
func (p *ledgerPlan) size() int {
	// Names of fields, and numbers, of a reservation and of the replicas of a group and role.
	const more, ofReplicas = 150, 50
	n := len(p.ledger) + more*len(p.Reservations)
	for i := range p.Reservations {
		for _, r := range scheduling.ReplicasToStatus(p.Reservations[i].Replicas) {
			n += ofReplicas + len(r.Role)
		}
	}
	for _, u := range p.Usage {
		for name := range u.Resources {
			n += len(name) + len(`"":"1000000Mi",`)
		}
	}
	return n
}

func (p *ledgerPlan) write() (err error) {
	p.ledger, err = reservation.EncodeLedger(p.Reservations)
	return err
}

// notSchedulable says why a cluster reserves nothing new.
func notSchedulable(c *parsed, state *observedState) (reason, message string) {
	reason, message = scheduling.Stopped(c.Spec.StopPolicy, c.Spec.StopMessage)
	if reason == "" {
		reason, message = state.identity.notSchedulable()
	}
	switch {
	case reason != "":
		return reason, message
	case !state.ledger.exists:
		return reasonNoLedger, "the cluster has no ledger yet"
	case !state.reach.Readable():
		return scheduling.ReasonUnreachable, "the cluster cannot be read"
	case len(state.unknown) > 0:
		return reasonNodes, "the nodes are not known: " + strings.Join(state.unknown, "; ")
	}
	if message = state.unsettled(); message != "" {
		return reasonNotRecorded, message
	}
	return "", ""
}

// needed returns the namespaces of services with a reservation. A request may name any
// namespace, so only one with the name of its tenant's namespace is created. If a service
// entered the fleet with another namespace, that namespace exists already.
func needed(cluster string, reservations []reservation.Reservation, requests []reservation.CapacityRequest) []string {
	reserved := map[reservation.ServiceID]bool{}
	for _, r := range reservations {
		reserved[r.ServiceID()] = true
	}
	all := map[string]bool{}
	for i := range requests {
		if r := &requests[i]; reserved[r.ServiceID()] && r.Clusters[cluster].Namespace == r.Namespace {
			all[r.Namespace] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}
