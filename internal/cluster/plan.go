package cluster

import (
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// A ledgerPlan has the grants of a cluster and the pending requests.
type ledgerPlan struct {
	reservation.Result

	// ledger is the encoded ledger, and sizes are what is limited of it. former tells that it stays as it was.
	ledger []byte
	sizes  sizes
	former bool
	// notSchedulable and message are why nothing new is reserved, as the reason and the
	// message of a condition. Both are empty where capacity is reserved.
	notSchedulable, message string
	// refused are the namespaces that get nothing new, because the ledger is full and they have more than their share of it.
	refused []string
	// namespaces are those that services need in the cluster.
	namespaces []string
	// next is when the next call tells services what this one has granted, or goes on to look for
	// what missing services have. Zero if there is no such thing.
	next time.Time
	// unreachableSince is since when the cluster is out of reach. It is nil if it is not.
	unreachableSince *metav1.Time
	// lastOutage is when it was out of reach before. It is nil if it never was.
	lastOutage *v1alpha1.Outage
}

const (
	// maxLedger is the most bytes of the ledger as the API server has it, in base64. A ConfigMap
	// takes at most 1 MiB, and etcd about 1.5 MiB of an object.
	maxLedger = 900 << 10
	// maxAnswers is the most bytes of what the answers say is reserved, in all parts together and in base64. So each part has
	// room for its refusals. An answer has a hash for each replica with other pods, which takes next to nothing of a ledger.
	maxAnswers = 940 << 10
	// maxConfigMap is the most bytes with which the ledger is written at all, and the most of these answers.
	maxConfigMap = 1 << 20
	// maxStatus is the most bytes of the reservations in the status, which are for people to
	// read. The ledger has all of them.
	maxStatus = 900 << 10
	// maxPending is the most pending requests in the status, and maxPendingBytes the most bytes of these. A thousand take some 300 KiB.
	maxPending      = 1000
	maxPendingBytes = 400 << 10
	// maxRefused is the most bytes of the names, UIDs and messages of pending requests in one part of the answers,
	// which takes some 700 services. Crossplane takes 4 MiB of all that a cluster is composed of.
	maxRefused = 48 << 10
)

// Reasons why a cluster reserves nothing new, besides those that placements of services also
// have: scheduling.Stopped and scheduling.ReasonUnreachable.
const (
	reasonNoLedger = "LedgerMissing"
	reasonNodes    = "NodesNotObserved"
	reasonFull     = "LedgerFull"
	reasonRequests = "RequestsNotResolved"
	// ReasonOvercommitted tells that more is reserved in a cluster, or in one of its pools, than it has.
	ReasonOvercommitted = "Overcommitted"
)

// planLedger decides what is granted. While the capacity requests are not known, everything stays as it was.
func planLedger(c *parsed, state *observedState, now time.Time) (*ledgerPlan, error) {
	p := &ledgerPlan{unreachableSince: unreachableSince(c, state, now), lastOutage: lastOutage(c, state, now)}
	p.notSchedulable, p.message = notSchedulable(c, state)
	if !state.resolved {
		p.Ledger = state.ledger.Ledger
		_, err := p.write()
		return p, err
	}
	in := reservation.Input{Cluster: c.Name, Free: state.free, Ledger: state.ledger.Ledger, Requests: state.requests, InUse: state.inUse, TakesTurns: state.takesTurns, Quotas: quotas(c.Spec.Quotas, state), NotSchedulable: p.message, Now: now}
	if err := p.fill(&in, state); err != nil {
		return p, err
	}
	p.namespaces = needed(c, p, state)
	switch {
	case !p.former:
		p.next = now.Add(composite.Soon)
	case state.takesTurns:
		p.next = now.Add(reservation.LeavingGrace)
	}
	return p, nil
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
		return reasonNodes, "the nodes are not known: " + text.List(state.unknown)
	}
	if message = state.unsettled(); message != "" {
		return reasonNotRecorded, message
	}
	if !state.resolved {
		return reasonRequests, "the capacity requests are not known"
	}
	return "", ""
}

// needed returns the namespaces of services with grants. A request may name any namespace, so
// only one with the name of its tenant's namespace is created. If a service entered the fleet
// with another namespace, that namespace exists already. A service whose request is missing
// keeps its namespace.
func needed(c *parsed, p *ledgerPlan, state *observedState) []string {
	granted, all := map[reservation.ServiceID]bool{}, map[string]bool{}
	for i := range p.Services {
		s := &p.Services[i]
		granted[s.ServiceID] = true
		if !s.MissingSince.IsZero() && state.req.Observed(c.keys().Namespace(s.Namespace)).Exists() {
			all[s.Namespace] = true
		}
	}
	for i := range state.requests {
		if r := &state.requests[i]; granted[r.ServiceID()] && r.Clusters[c.Name].Namespace == r.Namespace {
			all[r.Namespace] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}
