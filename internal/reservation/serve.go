package reservation

import (
	"cmp"
	"slices"

	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
)

// A want is a replica that is not granted as it is requested.
type want struct {
	account *account
	replica *ReplicaRequest
	// requested are the pods that it requests. pods are these and those that may still run, and before
	// are those that it was granted, if any.
	requested, pods, before pods
	// pin of the pods. One that chooses gets it when it is granted. What runs stays where it is.
	pin     *capacity.Pin
	chooses bool
}

// A unit is what is served together: the wants of a replica group. It has started if it does
// not need all of them at once.
type unit struct {
	account *account
	// wants are a part of all wants of the serving, from the index at on. It is notShared if they are a list of their own.
	wants   []want
	at      int
	started bool
	// returning are wants of replicas that left and came back, and whose former workloads may still run.
	// These are not in the request, so what comes cannot take their place.
	returning []want
}

// A serving is what is known while requests are served in order.
type serving struct {
	// wants are those of all units, in the order in which they are first served. There may be hundreds of thousands, so units have parts of this
	// list, and so have tries of several units, as far as they can.
	wants []want
	// failed has the wants that did not fit, and why. Equal ones do not fit either. If the namespace had no move or no
	// search left, only those of the namespace do not.
	failed map[string]string
	// shares are what each namespace may still use. looks are those of tries for several units.
	shares map[string]*share
	looks  int
	// packings is how often all grants were put onto nodes anew, and how often several units were tried at once after the looks for that
	// were used up.
	packings int
	// moves is how often that was done for pods without a pin.
	moves int
	// holder is the service that room is held for, if any.
	holder *account
	// borrow tells that what is within the nominal quotas was served. The borrowers, which are beyond these,
	// are served then.
	borrow    bool
	borrowers []unit
}

// A refusal is why wants are not granted. It is empty if they are.
type refusal struct {
	why string
	// quota tells that the quota refuses them, however much is free.
	quota bool
}

// A share is how many node classes a namespace may still have looked at, and how many of these
// by searches. Moved tells that all pods were put onto nodes anew for it. Held and heldQuota tell that it was looked whether
// room or quota can be held for one of its units.
type share struct {
	looks, steps           int
	moved, held, heldQuota bool
}

// What one call may look at, in node classes. The namespaces share it, so that no tenant uses up
// the share of another. Grants are kept, so the next call continues where this one stopped.
const (
	// searchSteps is for all searches together. Filling nodes is not a search.
	searchSteps = 4 * capacity.SearchSteps
	// maxLooks is for all tries of several units at once, and again for those of single ones. Each
	// namespace has minLooks at least.
	maxLooks = 1 << 18
	minLooks = 1 << 12
	// sumsPerLook is how many node classes are added up for what one look costs.
	sumsPerLook = 16
	// minPackings is how often all grants may be put onto nodes anew, or several units at once, however many these are.
	minPackings = 8
)

const (
	// messageNextCall is why a request is pending that was not looked at.
	messageNextCall = "its namespace requests more than one call evaluates, and the next call continues"
	// messageHeavy is why a replica is pending whose namespace has more than its share of the ledger.
	messageHeavy = "the ledger is nearly full, and its namespace has more than its share of it"
	// messageLeaving is why a replica is pending that is requested again, while its former pods may run.
	messageLeaving = "it may still run pods from before, which this request lacks"
)

// share divides what one call may use among the namespaces that have something to be served, and makes room for all of that.
func (b *book) share() {
	b.serving = serving{failed: map[string]string{}, shares: map[string]*share{}, looks: maxLooks}
	wants := 0
	for _, a := range b.accounts {
		if n := a.ungranted(); n > 0 {
			b.serving.shares[a.Namespace] = nil
			wants += n
		}
	}
	b.serving.wants = make([]want, 0, wants)
	n := len(b.serving.shares)
	for namespace := range b.serving.shares {
		b.serving.shares[namespace] = &share{looks: max(maxLooks/n, minLooks), steps: searchSteps / n}
	}
}

// order compares two services by who is served first. This is the only place that decides it,
// besides that all that is within the nominal quotas comes before what borrows.
func order(a, b *account) int {
	return cmp.Or(cmp.Compare(b.priority, a.priority), CompareAge(a.request, b.request))
}

// inOrder returns the services with a request, in the order in which they are served.
func (b *book) inOrder() []*account {
	all := slices.DeleteFunc(slices.Clone(b.accounts), func(a *account) bool { return a.request == nil })
	slices.SortStableFunc(all, order)
	return all
}

func (b *book) want(a *account, r *ReplicaRequest) want {
	has, granted := a.granted[r.Name]
	w := want{account: a, replica: r, before: has.pods}
	w.requested = b.podsOf(a, r)
	w.pods = b.during(r, b.pinned(has.pods, nil), w.requested)
	if a.running[r.Name] {
		w.pin = b.pinOf(r.Pool, has.pin)
		w.pods = b.pinned(w.pods, w.pin)
		return w
	}
	w.chooses = b.hasLabels && (!granted || has.pin != nil)
	return w
}

// serve grants what is requested and not granted so far, in order. Growth of a replica is
// served like a new one: its grant is replaced once that fits together with all others.
func (b *book) serve() {
	var units []unit
	for _, a := range b.inOrder() {
		for _, u := range b.units(a) {
			if len(u.returning) > 0 {
				b.wait(a, u.returning, refusal{why: messageLeaving})
			}
			switch {
			case len(u.wants) == 0:
			case a.request.NotAllowed != "":
				b.wait(a, u.wants, refusal{why: a.request.NotAllowed})
			case b.Heavy[a.Namespace]:
				b.wait(a, u.wants, refusal{why: messageHeavy})
			case b.NotSchedulable != "":
				b.wait(a, u.wants, refusal{why: b.NotSchedulable})
			case b.overcommitted:
				b.wait(a, u.wants, refusal{why: "more is reserved than the cluster has"})
			default:
				units = append(units, u)
			}
		}
	}
	b.serveUnits(units)
	b.serving.borrow = true
	slices.SortStableFunc(b.serving.borrowers, func(x, y unit) int { return order(x.account, y.account) })
	b.serveUnits(b.serving.borrowers)
}

// serveUnits serves units in their order.
func (b *book) serveUnits(units []unit) {
	halve(0, len(units), func(from, to int) bool {
		var others, hopeless []*unit
		for i := from; i < to; i++ {
			if u := &units[i]; b.hopeless(u) {
				hopeless = append(hopeless, u)
			} else {
				others = append(others, u)
			}
		}
		all := b.wantsOf(others)
		// What gives room or quota back may make a unit fit that comes after it, and before others.
		if len(hopeless) > 0 && slices.ContainsFunc(all, func(w want) bool { return !w.pods.covers(w.before) }) || !b.grantAll(all) {
			return false
		}
		for _, u := range hopeless {
			b.serveUnit(u)
		}
		return true
	}, func(i int) { b.serveUnit(&units[i]) })
}

// notShared is the place of wants that are no part of the serving's.
const notShared = -1

// wantsOf returns what some units want.
func (b *book) wantsOf(units []*unit) []want {
	n, adjoin := 0, true
	for _, u := range units {
		adjoin = adjoin && u.at != notShared && u.at == units[0].at+n
		n += len(u.wants)
	}
	if adjoin && n > 0 {
		return b.serving.wants[units[0].at:][:n]
	}
	all := make([]want, 0, n)
	for _, u := range units {
		all = append(all, u.wants...)
	}
	return all
}

// hopeless tells whether a unit gets nothing, because its quota refuses it or an equal one did not
// fit, and nothing is to be held for it.
func (b *book) hopeless(u *unit) bool {
	if b.beyondQuota(u) {
		return true
	}
	_, failed := b.failedBefore(idOf(u.wants), u.account.Namespace)
	return failed && len(u.wants) == 1 && !b.mayHold(u.account) && !b.mayHoldQuota(u)
}

// units returns what a service wants, unit by unit.
func (b *book) units(a *account) []unit {
	groups := a.cluster.Groups
	if a.cluster.AllOrNothing && !slices.ContainsFunc(Replicas(groups), func(r ReplicaRequest) bool { _, has := a.granted[r.Name]; return has }) {
		groups = []ReplicaGroup{Merged(groups)}
	}
	var units []unit
	for _, group := range groups {
		u := unit{account: a, at: len(b.serving.wants)}
		for i := range group.Replicas {
			r := &group.Replicas[i]
			g, has := a.granted[r.Name]
			switch {
			case a.has(r):
			case g.leaving:
				u.returning = append(u.returning, b.want(a, r))
			default:
				b.serving.wants = append(b.serving.wants, b.want(a, r))
				u.started = u.started || has
			}
		}
		u.wants = slices.Clip(b.serving.wants[u.at:])
		u.started = u.started || len(u.wants) < len(group.Replicas) || !slices.ContainsFunc(group.Replicas, func(r ReplicaRequest) bool { return r.Required })
		if len(u.wants)+len(u.returning) > 0 {
			units = append(units, u)
		}
	}
	return units
}

// halve serves the items of a range in order. It tries to serve all at once, since most fit, and
// else each half. So it takes few tries, and gives what serving one after the other would give.
func halve(from, to int, all func(from, to int) bool, one func(int)) {
	switch {
	case from == to:
	case to-from == 1:
		one(from)
	case !all(from, to):
		middle := (from + to) / 2
		halve(from, middle, all, one)
		halve(middle, to, all, one)
	}
}

// serveUnit grants all that a unit wants, or what suffices to start it, and then what fits of
// the rest.
func (b *book) serveUnit(u *unit) {
	a := u.account
	refused := b.grant(u.wants)
	switch refused.why {
	case "":
		return
	case messageNextCall:
		b.wait(a, u.wants, refused)
		return
	}
	rest := u.wants
	if !u.started {
		start, others := split(u.wants)
		first := refused
		if len(others) > 0 {
			first = b.grant(start)
		}
		if first.why != "" {
			if refused.quota {
				refused = first
			}
			b.refuse(u, refused)
			return
		}
		rest = others
	}
	var waits, beyond []want
	var short, over refusal
	halve(0, len(rest), func(from, to int) bool { return b.grantAll(rest[from:to]) }, func(i int) {
		switch refused := b.grant(rest[i : i+1]); {
		case refused.quota:
			beyond, over = append(beyond, rest[i]), refused
		case refused.why != "":
			waits, short = append(waits, rest[i]), refused
		}
	})
	b.refuse(&unit{account: a, wants: waits, at: notShared, started: true}, short)
	b.refuse(&unit{account: a, wants: beyond, at: notShared, started: true}, over)
}

// refuse records that a unit got nothing. What is beyond the nominal quota is tried again after
// all that is within.
func (b *book) refuse(u *unit, refused refusal) {
	switch {
	case len(u.wants) == 0:
	case !refused.quota:
		b.waitUnit(u, refused)
		b.hold(u)
	case b.serving.borrow:
		b.waitUnit(u, refused)
	default:
		b.serving.borrowers = append(b.serving.borrowers, *u)
		if b.mayHoldQuota(u) {
			b.holdQuota(u.account, u.first(), true)
		}
	}
}

// first returns the wants that a unit needs first.
func (u *unit) first() []want {
	if u.started {
		return u.wants[:min(1, len(u.wants))]
	}
	start, _ := split(u.wants)
	return start
}

// split returns the wants that suffice to start their group, and the others.
func split(wants []want) (start, others []want) {
	return toStart(wants, func(w want) bool { return w.replica.Required })
}

// waitUnit records what of a unit is not granted, and why.
func (b *book) waitUnit(u *unit, refused refusal) {
	b.wait(u.account, u.wants, refused)
	if u.account.next == nil {
		u.account.next = u.first()
	}
}

// wait records what is not granted, and why.
func (b *book) wait(a *account, wants []want, refused refusal) {
	a.waits = slices.Grow(a.waits, len(wants))
	for i := range wants {
		a.waits = append(a.waits, wants[i].replica.Name)
		a.grows = a.grows || wants[i].before.id != ""
	}
	if a.why != "" {
		return
	}
	a.why, a.borrows = refused.why, b.serving.borrow
	switch u := b.usages[a.Namespace]; {
	case refused.quota && u.holder == a:
		a.why += ". Quota is held for it"
	case !refused.quota && b.serving.holder != nil:
		a.why += ", while room is held for an older service"
	}
}
