package reservation

import "maps"

// waitedLong tells whether a service has waited for long enough that something is held for it.
func (b *book) waitedLong(a *account) bool {
	return !a.waitingSince.IsZero() && b.Now.Sub(a.waitingSince) >= HoldAfter
}

// mayHold tells whether room may be held for a service.
func (b *book) mayHold(a *account) bool { return b.serving.holder == nil && b.waitedLong(a) }

// hold holds room for a service that has waited for long, if what its unit needs first would fit the cluster
// beside its own grants. Before anything younger is served, it takes what is free of that, and
// closes the nodes on which the other pods can go first. It holds room for one service at a time. Whether it would fit counts as looked at
// by its namespace. Once that has no share left, the first unit of the call is looked at all the same: its own try may have used up the share.
func (b *book) hold(u *unit) {
	a := u.account
	share := b.serving.shares[a.Namespace]
	if !b.mayHold(a) || share.looks <= 0 && share.held {
		return
	}
	wants := u.first()
	id := idOf(wants)
	if a.noRoom[id] {
		return
	}
	share.held = true
	own, hold := maps.Clone(a.all), tally{}
	for _, w := range wants {
		hold.add(w.pods, 1)
		own.add(w.pods, 1)
		own.add(w.before, -1)
	}
	// Each shape may leave two more classes of nodes for those after it.
	share.looks -= len(own) * (b.Free.ClassCount() + len(own))
	empty := b.Free.Clone()
	empty.Budget = &share.steps
	if a.noRoom[id] = b.gotAsMuch(a, wants) || !fits(&empty, own); a.noRoom[id] {
		return
	}
	for _, left := range b.free.ForceAllocate(hold.podSets()) {
		b.free.Close(left, &b.Free)
	}
	b.serving.holder = a
	b.holdQuota(a, wants, b.serving.borrow)
	a.why += ". Room is held for it"
}

// gotAsMuch tells whether a service was granted as much in this call as some wants request. It then waits anew. Less than that is no
// progress: a role that is scaled up and down would take the turn of a large replica of the same service again and again.
func (b *book) gotAsMuch(a *account, wants []want) bool {
	all := tally{}
	for _, w := range wants {
		all.add(w.requested, 1)
	}
	return a.got && b.pods(a.gotPods).covers(b.pods(all))
}
