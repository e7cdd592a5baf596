package reservation

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
)

// A Quota is how much the services of a namespace may have granted, and how early they are served.
type Quota struct {
	// Priority of the services. The highest is served first.
	Priority int32
	// Nominal has the amounts that are the namespace's own. Other resources are not limited.
	Nominal capacity.Resources
	// Borrowing has how much more than that is granted if it is free. A resource without an amount
	// is not limited.
	Borrowing capacity.Resources
}

// limit returns how much may be granted of a resource, with or without borrowing.
func (q *Quota) limit(name string, borrow bool) (int64, bool) {
	nominal, limited := q.Nominal[name]
	if !limited || !borrow {
		return nominal, limited
	}
	more, limited := q.Borrowing[name]
	return capacity.Saturated(nominal, more, 1), limited
}

// A usage is what is granted to a namespace that has a quota.
type usage struct {
	granted capacity.Resources
	// holder is the service of the namespace that quota is held for, if any, and held how much.
	holder *account
	held   capacity.Resources
	// heldFirst tells that this is within the nominal quota, so its service comes before all that borrow.
	heldFirst bool
}

// countUsages counts what is granted to the namespaces that have a quota.
func (b *book) countUsages() {
	b.usages, b.amounts = map[string]*usage{}, map[string]capacity.Resources{}
	for namespace := range b.Quotas {
		b.usages[namespace] = &usage{granted: capacity.Resources{}, held: capacity.Resources{}}
	}
	for _, a := range b.accounts {
		if u := b.usages[a.Namespace]; u != nil {
			a.amount = capacity.Resources{}
			for _, name := range a.names {
				a.amount.Add(b.amount(a.granted[name].pods), 1)
			}
			u.granted.Add(a.amount, 1)
		}
	}
}

// amount returns what pods request, and their number.
func (b *book) amount(p pods) capacity.Resources {
	r, known := b.amounts[p.id]
	if !known {
		r = capacity.Resources{}
		for _, set := range p.sets {
			r.AddPods(set)
		}
		b.amounts[p.id] = r
	}
	return r
}

// addMore adds how much more wants request than what they have. What others of them give back does not
// count, since they may be granted one after the other.
func (b *book) addMore(to capacity.Resources, wants ...want) {
	for _, w := range wants {
		before := b.amount(w.before)
		for name, n := range b.amount(w.pods) {
			if n > before[name] {
				to[name] = capacity.Saturated(to[name], n-before[name], 1)
			}
		}
	}
}

// spend counts wants that were granted.
func (b *book) spend(wants []want) {
	for _, w := range wants {
		u := b.usages[w.account.Namespace]
		if u == nil {
			continue
		}
		now := b.amount(w.pods)
		for _, of := range []capacity.Resources{u.granted, w.account.amount} {
			b.addMore(of, w)
			for name, n := range b.amount(w.before) {
				if n > now[name] {
					of[name] = max(of[name]-(n-now[name]), 0)
				}
			}
		}
	}
}

// An excess is by how much wants exceed the quota of their namespace.
type excess struct {
	namespace, name         string
	nominal, limit          int64
	granted, held, requests int64
}

func (e *excess) String() string {
	amount := func(n int64) string {
		q := capacity.Quantity(e.name, n)
		return q.String()
	}
	text := fmt.Sprintf("namespace %s has %s of the %s %s that its quota allows", e.namespace, amount(e.granted), amount(e.limit), e.name)
	if e.limit > e.nominal {
		text += fmt.Sprintf(" (%s, and %s borrowed)", amount(e.nominal), amount(e.limit-e.nominal))
	}
	text += fmt.Sprintf(", and %s more are requested", amount(e.requests))
	if e.held > 0 {
		text += fmt.Sprintf(", while %s are held for a service that comes first", amount(e.held))
	}
	return text
}

// exceeds returns by how much wants exceed the quota of a namespace, or nil. Each of several wants
// alone exceeds none then either.
func (b *book) exceeds(wants []want, borrow bool) *excess {
	if len(b.Quotas) == 0 {
		return nil
	}
	after, more := map[string]bool{}, map[string]capacity.Resources{}
	for _, w := range wants {
		namespace := w.account.Namespace
		u := b.usages[namespace]
		if u == nil {
			continue
		}
		if more[namespace] == nil {
			more[namespace] = capacity.Resources{}
		}
		b.addMore(more[namespace], w)
		after[namespace] = after[namespace] || b.holdsBefore(u, w.account)
	}
	for _, namespace := range slices.Sorted(maps.Keys(more)) {
		u, q, requests := b.usages[namespace], b.Quotas[namespace], more[namespace]
		for _, name := range slices.Sorted(maps.Keys(q.Nominal)) {
			e := excess{namespace: namespace, name: name, nominal: q.Nominal[name], granted: u.granted[name], requests: requests[name]}
			if after[namespace] {
				e.held = u.held[name]
			}
			sum := capacity.Saturated(capacity.Saturated(e.granted, e.held, 1), e.requests, 1)
			limit, limited := q.limit(name, borrow)
			if e.limit = limit; limited && e.requests > 0 && sum > limit {
				return &e
			}
		}
	}
	return nil
}

// holdsBefore tells whether quota is held for a service that is served before another one. Whoever is served
// before the holder would otherwise wait for a service that comes after it, however long that waits.
func (b *book) holdsBefore(u *usage, a *account) bool {
	if u.holder == nil || u.holder == a {
		return false
	}
	return u.heldFirst && b.serving.borrow || order(u.holder, a) < 0
}

// beyondQuota tells whether nothing of a unit is within the quota, and none is to be held for it.
func (b *book) beyondQuota(u *unit) bool {
	if b.usages[u.account.Namespace] == nil || b.mayHoldQuota(u) {
		return false
	}
	return !slices.ContainsFunc(u.wants, func(w want) bool { return b.exceeds([]want{w}, b.serving.borrow) == nil })
}

// mayHoldQuota tells whether a service has waited for long enough that quota is held for what a unit of it
// needs first. It is held for what the quota would allow beside the service's own grants.
func (b *book) mayHoldQuota(unit *unit) bool {
	a := unit.account
	u := b.usages[a.Namespace]
	if u == nil || u.holder != nil || !b.waitedLong(a) {
		return false
	}
	wants := unit.first()
	if b.exceeds(wants, true) == nil {
		return false
	}
	id := idOf(wants)
	none, known := a.noQuota[id]
	if share := b.serving.shares[a.Namespace]; !known {
		if share.looks <= 0 && share.heldQuota {
			return false
		}
		share.heldQuota = true
		share.looks -= 1 + len(a.gotPods)
		none = b.gotAsMuch(a, wants) || b.beyondLimit(a, wants)
		a.noQuota[id] = none
	}
	return !none
}

// beyondLimit tells whether wants exceed what their namespace may have with borrowing, beside the service's own grants.
func (b *book) beyondLimit(a *account, wants []want) bool {
	q, more := b.Quotas[a.Namespace], capacity.Resources{}
	b.addMore(more, wants...)
	for name := range q.Nominal {
		if limit, limited := q.limit(name, true); limited && capacity.Saturated(a.amount[name], more[name], 1) > limit {
			return true
		}
	}
	return false
}

// holdQuota holds quota for a service of a namespace: nobody of the namespace who is served after it gets it.
// beyond tells that this is beyond the nominal quota.
func (b *book) holdQuota(a *account, wants []want, beyond bool) {
	if u := b.usages[a.Namespace]; u != nil && u.holder == nil {
		u.holder, u.heldFirst = a, !beyond
		b.addMore(u.held, wants...)
	}
}
