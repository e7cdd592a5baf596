package inferencecluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/fleet"
)

// A decision is who has what of a cluster.
type decision struct {
	fleet.Booking

	// ledger is the text of the grants.
	ledger string
	// kept tells that everything stays as it was, because nothing is known about who
	// asks. Only the ledger is decided on then.
	kept bool
	// closed says why nothing new is granted, in a word and in a sentence. Both are
	// empty where something is.
	closed, why string
	// namespaces that services need in the cluster.
	namespaces []string
}

const (
	// maxLedger bounds what was granted, in bytes of the ledger, which is a ConfigMap of at most
	// 1 MiB, and of the cluster's status, which has more of each grant. An API server stores about
	// 1.5 MiB of an object.
	maxLedger = 900 << 10
	// maxWaiting bounds those in the status that wait, to some 300 KiB.
	maxWaiting = 1000
)

// Reasons why a cluster grants nothing new.
const (
	reasonDead        = "Dead"
	reasonDrain       = "Draining"
	reasonNoLedger    = "NoLedgerYet"
	reasonUnreachable = "Unreachable"
	reasonNodes       = "NodesNotKnown"
	reasonFull        = "LedgerFull"
)

// decide keeps what is granted, and grants what is asked for.
func decide(c *cluster, seen *reality) (*decision, error) {
	d := &decision{}
	d.closed, d.why = closed(c, seen)
	if !seen.answered {
		d.kept, d.Grants = true, seen.ledger.grants
		return d, d.write()
	}
	d.Booking = fleet.Book(c.Name, seen.room, seen.ledger.grants, seen.asks, d.why)
	if err := d.write(); err != nil {
		return d, err
	}
	if n := d.size(); n > maxLedger && d.closed == "" {
		d.closed, d.why = reasonFull, fmt.Sprintf("the list of what was granted would have %d bytes, at most %d", n, maxLedger)
		d.Booking = fleet.Book(c.Name, seen.room, seen.ledger.grants, withoutHeld(c.Name, seen.asks), d.why)
		if err := d.write(); err != nil {
			return d, err
		}
	}
	d.namespaces = needed(c.Name, d.Grants, seen.asks)
	return d, nil
}

// withoutHeld leaves out what services say is there: a ledger that is full has no place for
// that either, and one that cannot be written would stop the cluster.
func withoutHeld(cluster string, asks []fleet.Ask) []fleet.Ask {
	some := slices.Clone(asks)
	for i := range some {
		if at, asked := some[i].Clusters[cluster]; asked {
			at.Held = nil
			some[i].Clusters = map[string]fleet.AskedCluster{cluster: at}
		}
	}
	return some
}

// size of what was granted, in the ledger and beyond it in the status.
func (d *decision) size() int {
	const more = 150 // Names of fields, and numbers.
	n := len(d.ledger) + more*len(d.Grants)
	for _, u := range d.Used {
		for name := range u.Resources {
			n += len(name) + len(`"":"1000000Mi",`)
		}
	}
	return n
}

func (d *decision) write() (err error) {
	d.ledger, err = fleet.EncodeGrants(d.Grants)
	return err
}

// closed says why a cluster grants nothing new.
func closed(c *cluster, seen *reality) (reason, message string) {
	if why, dead := c.taint(v1alpha1.TaintDead); dead {
		return reasonDead, "the cluster is declared dead" + because(why)
	}
	if why, drained := c.taint(v1alpha1.TaintDrain); drained {
		return reasonDrain, "the cluster is drained" + because(why)
	}
	switch {
	case !seen.ledger.there:
		return reasonNoLedger, "the cluster has no ledger yet"
	case !seen.reach.Readable():
		return reasonUnreachable, "the cluster cannot be read"
	case len(seen.unknown) > 0:
		return reasonNodes, "the nodes are not known: " + strings.Join(seen.unknown, "; ")
	}
	return "", ""
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

// needed are the namespaces of services that have been granted something. Only the one of
// the tenant's name is made: an ask is text, and says any other. A service that had
// another one when it came into the fleet has it already.
func needed(cluster string, grants []fleet.Grant, asks []fleet.Ask) []string {
	granted := map[fleet.Service]bool{}
	for _, g := range grants {
		granted[g.Service()] = true
	}
	all := map[string]bool{}
	for i := range asks {
		if a := &asks[i]; granted[a.Service()] && a.Clusters[cluster].Namespace == a.Namespace {
			all[a.Namespace] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}
