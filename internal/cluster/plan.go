package cluster

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// A ledgerPlan has the grants of a cluster and the pending requests.
type ledgerPlan struct {
	reservation.Result

	// ledger is the encoded ledger, and plain the length of its JSON.
	ledger []byte
	plain  int
	// unchanged tells whether everything stays as it was, because the capacity requests are
	// not known. Then only the ledger is set.
	unchanged bool
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
	// maxConfigMap is the most bytes with which the ledger is written at all.
	maxConfigMap = 1 << 20
	// maxStatus is the most bytes of the reservations in the status, which are for people to
	// read. The ledger has all of them.
	maxStatus = 900 << 10
	// maxPending is the most pending requests in the status. They take some 300 KiB.
	maxPending = 1000
	// maxRefused is the most bytes of the names, UIDs and messages of pending requests in one part of the answers,
	// which takes some 700 services. Crossplane takes 4 MiB of all that a cluster is composed of.
	maxRefused = 48 << 10
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

// planLedger decides what is granted.
func planLedger(c *parsed, state *observedState, now time.Time) (*ledgerPlan, error) {
	p := &ledgerPlan{unreachableSince: unreachableSince(c, state, now), lastOutage: lastOutage(c, state, now)}
	p.notSchedulable, p.message = notSchedulable(c, state)
	if !state.resolved {
		p.unchanged, p.Ledger = true, state.ledger.Ledger
		return p, p.write()
	}
	in := reservation.Input{Cluster: c.Name, Free: state.free, Ledger: state.ledger.Ledger, Requests: state.requests, InUse: state.inUse, TakesTurns: state.takesTurns, Quotas: quotas(c.Spec.Quotas, state), NotSchedulable: p.message, Now: now}
	p.Result = reservation.Reserve(in)
	if err := p.write(); err != nil {
		return p, err
	}
	if p.full() != "" {
		// What one tenant requests stops nobody else.
		in.Requests = p.refuseHeavy(in.Requests)
		p.Result = reservation.Reserve(in)
		if err := p.write(); err != nil {
			return p, err
		}
	}
	if full := p.full(); full != "" {
		if p.notSchedulable == "" {
			p.notSchedulable, p.message = reasonFull, full
		}
		in.Full, in.NotSchedulable, p.refused = true, p.message, nil
		p.Result = reservation.Reserve(in)
		if err := p.write(); err != nil {
			return p, err
		}
		if !p.writable() {
			p.Ledger, p.ledger = state.ledger.Ledger, state.ledger.compressed
		}
	}
	p.namespaces = needed(c, p, state)
	switch {
	case !bytes.Equal(p.ledger, state.ledger.compressed):
		p.next = now.Add(composite.Soon)
	case state.takesTurns:
		p.next = now.Add(reservation.LeavingGrace)
	}
	return p, nil
}

func (p *ledgerPlan) write() (err error) {
	p.ledger, p.plain, err = reservation.Compress(&p.Ledger)
	return err
}

// encoded is the number of bytes of the ledger as the API server has it.
func (p *ledgerPlan) encoded() int { return base64.StdEncoding.EncodedLen(len(p.ledger)) }

// full says why the ledger is too large, if so.
func (p *ledgerPlan) full() string {
	switch n := p.encoded(); {
	case n > maxLedger:
		return fmt.Sprintf("the ledger would have %d bytes, and the limit is %d", n, maxLedger)
	case p.plain > reservation.MaxPlain:
		return fmt.Sprintf("the ledger would have %d bytes before it is compressed, and the limit is %d", p.plain, reservation.MaxPlain)
	}
	return ""
}

// refuseHeavy refuses the requests of the namespaces that would have more than their share of a ledger that is too large.
func (p *ledgerPlan) refuseHeavy(requests []reservation.CapacityRequest) []reservation.CapacityRequest {
	services := map[string][]reservation.Service{}
	for _, s := range p.Services {
		services[s.Namespace] = append(services[s.Namespace], s)
	}
	sizes := make(map[string]int, len(services))
	limit, plain := base64.StdEncoding.DecodedLen(maxLedger), p.encoded() <= maxLedger
	if plain {
		limit = reservation.MaxPlain
	}
	for namespace, of := range services {
		compressed, n, err := reservation.Compress(of)
		if err != nil {
			return requests // It was compressed before, as a part of the ledger.
		}
		if sizes[namespace] = len(compressed); plain {
			sizes[namespace] = n
		}
	}
	share := shareOf(limit, slices.Sorted(maps.Values(sizes)))
	for _, namespace := range slices.Sorted(maps.Keys(sizes)) {
		if sizes[namespace] > share {
			p.refused = append(p.refused, namespace)
		}
	}
	requests = slices.Clone(requests)
	for i := range requests {
		if r := &requests[i]; r.NotAllowed == "" && sizes[r.Namespace] > share {
			r.NotAllowed = messageHeavy
		}
	}
	return requests
}

const messageHeavy = "the ledger is full, and its namespace has more than its share of it"

// shareOf returns how much each of those may have that want more than that, so that all together stay within a limit. Sizes are sorted.
func shareOf(limit int, sizes []int) int {
	for i, n := range sizes {
		share := limit / (len(sizes) - i)
		if n > share {
			return share
		}
		limit -= n
	}
	return math.MaxInt
}

// writable tells whether the next call can read the ledger. Requests can make it larger although it takes no grants: if each
// replica of a service requests less than before, but not the same, each has a grant of its own. The former ledger stays then.
func (p *ledgerPlan) writable() bool {
	return p.encoded() <= maxConfigMap && p.plain <= reservation.MaxDecompressed
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
