package reservation

import (
	"slices"
	"time"

	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/sorting"
)

const (
	// Grace is how long the grants of a service are kept at least while its request is missing or
	// cannot be read. Caches of different age may show its request and its objects.
	Grace = 2 * time.Minute
	// LeavingGrace is how long the grant of a replica that was started is kept at least after its
	// request lacks it.
	LeavingGrace = 30 * time.Second
	// HoldAfter is how long a request waits before room is held for it.
	HoldAfter = 10 * time.Minute
	// maxWaiting is how many services the ledger remembers the time of.
	maxWaiting = 200
)

// An Input is what a cluster decides on.
type Input struct {
	// Cluster is the name by which requests name the cluster.
	Cluster string
	// Free is the capacity of the cluster without any grant.
	Free capacity.Free
	// Ledger as the last call wrote it.
	Ledger   Ledger
	Requests []CapacityRequest
	// InUse has the replicas of which a service has workloads in the cluster, for services whose
	// requests are missing or lack something. The ID is empty where it is not known which replica
	// it is. Of services that are not among them, nothing is known.
	InUse map[ServiceID]map[key.ReplicaID]bool
	// TakesTurns tells that InUse could not have all such services. The time of each with workloads
	// then starts anew, so that the others have their turn.
	TakesTurns bool
	// Quotas of the namespaces that have one.
	Quotas map[string]Quota
	// NotSchedulable is why the cluster grants nothing new, if so.
	NotSchedulable string
	// Full tells that the ledger takes no further grants, not even of what runs without any, and no new generations of
	// those that it has. One that is too large cannot be written, and every call would fail.
	Full bool
	// Heavy are the namespaces that have more than their share of a ledger that is nearly full. They get nothing new.
	Heavy map[string]bool
	// Frozen are the namespaces whose grants stay as they are until they are withdrawn: whatever changes them may take more of the
	// ledger. Nothing that they run without a grant is counted.
	Frozen map[string]bool
	Now    time.Time
}

// A Result is what Reserve decides.
type Result struct {
	Ledger

	// Pending has what is requested and not granted, in the order in which it is served.
	Pending []Pending
	// Free is the room that is left for others: neither granted nor held.
	Free capacity.Free
	// Overcommitted tells that the grants do not fit any more, because nodes are gone. Nothing new
	// is granted meanwhile.
	Overcommitted bool
	// ShortPools are the pools in which grants do not fit any more. Nothing new is granted there.
	ShortPools []string
	// GraceEnds is when the next service may lose its grants, because its request is missing or lacks
	// replicas that run.
	GraceEnds time.Time
}

// A Pending is what a service requests and was not granted.
type Pending struct {
	ServiceID

	// Replicas that are not granted as they are requested.
	Replicas []key.ReplicaID
	// Generation is the highest one of all replicas that are requested of the cluster.
	Generation int64
	Message    string
	// Running are those of the replicas that the service claims to run without any grant.
	Running []key.ReplicaID
	// Grows tells that some of the replicas have a grant for what they requested before.
	Grows bool
	// Got tells that something of the service was granted in this call.
	Got bool
}

// Reserve decides what a cluster grants. The package doc has the rules.
func Reserve(in Input) Result {
	in.Now = in.Now.UTC().Truncate(time.Second)
	b := open(&in)
	b.count()
	if !in.Full {
		b.serveRunning()
	}
	b.serve()
	return b.close()
}

// A book has the accounts of one call.
type book struct {
	*Input

	// accounts in the order of the ledger, and then of the services that are new.
	accounts []*account
	// shapes of all pods, each once, and the key of each.
	shapes map[string]*capacity.PodRequirements
	keys   map[*capacity.PodRequirements]string
	// pins of these, each once, and the shapes that others become with a pin.
	pins     map[string]*capacity.Pin
	withPins map[pinnedShape]*capacity.PodRequirements
	// ofOne are the pods of only one shape.
	ofOne map[capacity.PodSet]pods
	// counted are the pods of all grants, and those that room is held for. free is what they
	// leave.
	counted       tally
	free          capacity.Free
	overcommitted bool
	// shortPools are the pools in which pinned pods do not fit any more.
	shortPools []string
	// hasLabels tells that pods can be pinned to some pool.
	hasLabels bool
	// usages are what is granted to the namespaces with a quota. amounts are what pods request.
	usages  map[string]*usage
	amounts map[string]capacity.Resources
	// serving has what the order needs.
	serving serving
}

// An account is what one service has, and what it requests of the cluster.
type account struct {
	ServiceID

	// priority is that of the namespace.
	priority int32
	// request is nil while it is missing.
	request *CapacityRequest
	cluster ClusterRequest
	// missingSince is Service.MissingSince.
	missingSince time.Time
	// waitingSince is when the service began to wait. It is zero for one that does not.
	waitingSince time.Time
	// granted has the grants, in the order of names.
	granted map[key.ReplicaID]granted
	names   []key.ReplicaID
	// all are the pods of all grants, and amount is what these request if the namespace has a quota. Each grant changes them, since adding
	// up thousands of grants for each of thousands of units takes too long.
	all    tally
	amount capacity.Resources
	// got tells that something was granted in this call, and gotPods are its pods, without pins: pods that a queue of Kueue counts are none.
	got     bool
	gotPods tally
	// noRoom and noQuota tell of wants, by idOf, whether no room or no quota is held for them as long as nothing more is granted. Thousands of
	// units may want the same.
	noRoom, noQuota map[string]bool
	// next is what the first unit that waits needs first.
	next []want
	// running are the replicas that the service claims to run.
	running map[key.ReplicaID]bool
	// left are the replicas of which the request says that they have left the cluster.
	left map[key.ReplicaID]bool
	// shapes are those of the request, by their names.
	shapes map[string]*capacity.PodRequirements
	// waits are the replicas that are not granted as requested, and why is the first reason. grows tells that some of them have a grant.
	waits []key.ReplicaID
	grows bool
	why   string
	// borrows tells that only what exceeds the nominal quota waits.
	borrows bool
}

// A granted replica has pods, and the generation of the request that they were requested by. Its
// pods are pinned to one pool, or to none.
type granted struct {
	generation int64
	pods       pods
	pin        *capacity.Pin
	// requested are the pods of the generation, without a pin, if there are others from before among
	// pods.
	requested pods
	// started tells that the service has said that it runs the replica. leaving tells that its request
	// lacked the replica when the ledger was written.
	started, leaving bool
}

// open opens an account for each service of the ledger and of the requests. It drops what was
// withdrawn, or is missing for too long.
func open(in *Input) *book {
	b := &book{Input: in, shapes: map[string]*capacity.PodRequirements{}, keys: map[*capacity.PodRequirements]string{}, counted: tally{},
		pins: map[string]*capacity.Pin{}, withPins: map[pinnedShape]*capacity.PodRequirements{}, ofOne: map[capacity.PodSet]pods{}}
	b.free = in.Free.Clone()
	b.free.Budget = new(capacity.SearchSteps)
	b.hasLabels = slices.ContainsFunc(in.Free.Pools, func(p capacity.Pool) bool { return len(p.Labels) > 0 })
	known := make(map[ServiceID]*account, len(in.Requests)+len(in.Ledger.Services))
	account := func(id ServiceID) *account {
		a := known[id]
		if a == nil {
			a = &account{ServiceID: id, priority: in.Quotas[id.Namespace].Priority, granted: map[key.ReplicaID]granted{}, shapes: map[string]*capacity.PodRequirements{}, all: tally{}, gotPods: tally{}, noRoom: map[string]bool{}, noQuota: map[string]bool{}}
			known[id] = a
			b.accounts = append(b.accounts, a)
		}
		return a
	}
	for i := range in.Ledger.Services {
		s := &in.Ledger.Services[i]
		a := account(s.ServiceID)
		a.missingSince = b.past(s.MissingSince)
		b.read(a, s)
	}
	oldestFirst := make([]*CapacityRequest, len(in.Requests))
	for i := range in.Requests {
		oldestFirst[i] = &in.Requests[i]
	}
	slices.SortStableFunc(oldestFirst, CompareAge)
	for _, r := range oldestFirst {
		if a := account(r.ServiceID()); a.request == nil {
			a.open(r, in.Cluster)
		}
	}
	for _, w := range in.Ledger.Waiting {
		if a := known[w.ServiceID]; a != nil {
			a.waitingSince = b.past(w.Since)
		}
	}
	for _, a := range b.accounts {
		b.keep(a)
	}
	b.countUsages()
	b.share()
	return b
}

// past returns a time, or now if that is earlier. No clock that was once wrong makes a service
// keep its grants for ever.
func (b *book) past(t time.Time) time.Time {
	if t.After(b.Now) {
		return b.Now
	}
	return t
}

// serveRunning grants what runs without a grant, if it fits, before anything new, and even if
// the cluster grants nothing new. Such a service joined the fleet where it ran before, or the
// ledger was lost.
//
// Only the request says that it runs, and a tenant may write that. So what does not fit is
// pending and reported, and others use the room. Nothing is granted to a service that is not
// allowed. Nothing is borrowed, and nothing comes before what a higher priority wants.
func (b *book) serveRunning() {
	var all []want
	var first *account
	for _, a := range b.inOrder() {
		if a.request.NotAllowed != "" || b.Frozen[a.Namespace] || b.overcommitted {
			continue
		}
		if first != nil && a.priority < first.priority {
			break
		}
		unreserved := a.unreserved()
		for i := range unreserved {
			all = append(all, b.want(a, &unreserved[i]))
		}
		if first == nil && b.NotSchedulable == "" && len(b.Quotas) > 0 && a.ungranted() > len(unreserved) {
			first = a
		}
	}
	// Grants that were made one by one may only fit once all are put onto nodes anew.
	if len(all) > 0 && b.exceeds(all, b.serving.borrow) == nil {
		if _, why := b.try(all, true, nil); why == "" {
			return
		}
	}
	halve(0, len(all), func(from, to int) bool { return b.grantAll(all[from:to]) }, func(i int) { _ = b.grant(all[i : i+1]) })
}

// ungranted returns how many replicas of a service are to be served: those that are not granted as requested, without those that may still run.
func (a *account) ungranted() int {
	n := 0
	for _, group := range a.cluster.Groups {
		for i := range group.Replicas {
			if r := &group.Replicas[i]; !a.has(r) && !a.granted[r.Name].leaving {
				n++
			}
		}
	}
	return n
}

// unreserved returns the replicas that a service claims to run, and that have no grant.
func (a *account) unreserved() []ReplicaRequest {
	if len(a.running) == 0 {
		return nil
	}
	return slices.DeleteFunc(Replicas(a.cluster.Groups), func(r ReplicaRequest) bool {
		_, has := a.granted[r.Name]
		return has || !a.running[r.Name]
	})
}

// inTurn returns the services whose waiting time the ledger remembers. Each namespace has its first one among them, then its
// second one, and so on: many services of one that never fit would hide those of the others.
func inTurn(waiting []*account) map[*account]bool {
	all := map[*account]bool{}
	order := slices.DeleteFunc(slices.Clone(waiting), func(a *account) bool { return a.request.NotAllowed != "" })
	for _, i := range sorting.InTurn(len(order), func(i int) string { return order[i].Namespace })[:min(len(order), maxWaiting)] {
		all[order[i]] = true
	}
	return all
}

// close returns what was decided.
func (b *book) close() Result {
	result := Result{Free: b.free, Overcommitted: b.overcommitted, ShortPools: b.shortPools}
	result.Free.Budget = nil
	for _, a := range b.accounts {
		if len(a.names) == 0 {
			continue
		}
		if !b.Frozen[a.Namespace] {
			a.noteStarted() // Notes that differ would take more of the ledger.
		}
		result.Services = append(result.Services, a.service())
		if ends := b.graceEnds(a); ends.After(b.Now) {
			result.GraceEnds = sorting.Earlier(result.GraceEnds, ends)
		}
	}
	waiting := slices.DeleteFunc(b.inOrder(), func(a *account) bool { return len(a.waits) == 0 })
	slices.SortStableFunc(waiting, func(x, y *account) int { return sorting.First(!x.borrows, !y.borrows) })
	remembered := inTurn(waiting)
	for _, a := range waiting {
		result.Pending = append(result.Pending, a.pending())
		if remembered[a] {
			since := a.waitingSince
			if since.IsZero() || len(a.next) > 0 && b.gotAsMuch(a, a.next) {
				since = b.Now
			}
			result.Waiting = append(result.Waiting, Waiting{a.ServiceID, since})
		}
	}
	return result
}
