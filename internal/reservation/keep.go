package reservation

import (
	"slices"
	"time"

	"github.com/fusioninfer/function-inferenceservice/internal/key"
)

// keep drops the grants of a service that were withdrawn, that are missing for too long, or with which
// nothing can start. Pods that have shrunk are granted as they are now, which always fits. While pods
// from before may run, the grant covers these too. The grant of a replica that left, and comes back
// smaller, stays as it is until nothing of the replica runs any more.
func (b *book) keep(a *account) {
	if a.request == nil {
		b.keepMissing(a)
		return
	}
	replicas := Replicas(a.cluster.Groups)
	requested := make(map[key.ReplicaID]bool, len(a.names))
	for _, r := range replicas {
		if has, ok := a.granted[r.Name]; ok {
			requested[r.Name] = a.has(&r) || has.pods.covers(b.pinned(b.podsOf(a, &r), has.pin))
		}
	}
	b.dropWithdrawn(a, requested)
	for _, r := range replicas {
		has, ok := a.granted[r.Name]
		if !ok {
			continue
		}
		pods := b.podsOf(a, &r)
		if b.stays(a, has, pods) {
			continue
		}
		if has.leaving && has.pods.id != "" && has.pods.id != b.pinned(pods, has.pin).id {
			continue
		}
		has = b.replaced(&r, b.asItRuns(a, &r, has))
		a.granted[r.Name] = has
		now := b.during(&r, has.pods, b.pinned(pods, has.pin))
		if b.Full && now.id == has.pods.id {
			continue // It frees nothing. In the ledger, replicas of one generation share their pods.
		}
		if has.pods.id == "" || has.generation <= r.Generation && has.pods.covers(now) {
			a.granted[r.Name] = b.newGrant(has, max(has.generation, r.Generation), pods, now, has.pin)
		}
	}
	b.giveBack(a)
	a.names = slices.DeleteFunc(a.names, func(name key.ReplicaID) bool {
		_, has := a.granted[name]
		return !has
	})
}

// dropWithdrawn drops the grants of replicas that are no longer requested. One that was started keeps
// its grant until it is known that there are no workloads of it any more. Until then one that is
// requested again has not started. Requested tells of each that is requested whether its grant covers it.
// If it does not, the grant goes with the workloads, and the replica is served like a new one.
func (b *book) dropWithdrawn(a *account, requested map[key.ReplicaID]bool) {
	since := a.missingSince
	a.missingSince = time.Time{}
	for name, has := range a.granted {
		_, again := requested[name]
		if leaves := b.leaves(a, has, again, a.running[name]); leaves != has.leaving {
			if leaves {
				since = time.Time{}
			}
			has.leaving = leaves
			a.granted[name] = has
		}
	}
	inUse, known := b.InUse[a.ServiceID]
	known = known && !since.IsZero() && b.Now.Sub(since) >= LeavingGrace
	for name, has := range a.granted {
		switch {
		case !has.leaving:
			if _, again := requested[name]; !again {
				delete(a.granted, name)
			}
		case known && !inUse[name] && !inUse[""] && requested[name]:
			has.started, has.leaving = false, false
			a.granted[name] = has
		case known && !inUse[name] && !inUse[""]:
			delete(a.granted, name)
		case since.IsZero() || known && b.TakesTurns:
			a.missingSince = b.Now
		case a.missingSince.IsZero():
			a.missingSince = since
		}
	}
}

// stays tells whether a grant is frozen. One without pods, of a ledger that was made again, gets those that are requested, if any
// are counted here.
func (b *book) stays(a *account, has granted, requested pods) bool {
	return b.Frozen[a.Namespace] && (has.pods.id != "" || requested.id == "")
}

// leaves tells whether a replica left that may have workloads. Where grants are frozen, it is not noted which were started.
func (b *book) leaves(a *account, has granted, requested, runs bool) bool {
	if !requested && b.Frozen[a.Namespace] {
		return true
	}
	return has.started && !(requested && runs)
}

// giveBack drops the grants with which nothing can start, and nothing runs: what they were for has
// changed since, and what it needs now did not fit for the grace time. So nobody else waits for room
// that is of no use. A group of which a required replica lacks its grant cannot start with any of
// them. It is then served like a new one, so it keeps them where nothing new is granted.
func (b *book) giveBack(a *account) {
	if b.NotSchedulable != "" || b.Heavy[a.Namespace] || a.waitingSince.IsZero() || b.Now.Sub(a.waitingSince) < Grace {
		return
	}
	groups := a.cluster.Groups
	if a.cluster.AllOrNothing {
		groups = []ReplicaGroup{Merged(groups)}
	}
	started := func(r ReplicaRequest) bool { return a.running[r.Name] || a.granted[r.Name].started }
	for _, group := range groups {
		waits := slices.ContainsFunc(group.Replicas, func(r ReplicaRequest) bool { return r.Required && !a.has(&r) }) && !slices.ContainsFunc(group.Replicas, started)
		for _, r := range group.Replicas {
			switch {
			case !waits && (r.Required || a.has(&r) || started(r)):
			case b.mayHaveLeft(a, r.Name):
				has := a.granted[r.Name]
				has.started, has.leaving = true, true
				a.granted[r.Name], a.missingSince = has, b.Now
			default:
				delete(a.granted, r.Name)
			}
		}
	}
}

// mayHaveLeft tells whether a request says that a granted replica left, and it is not known that it has no workloads.
// Whether it has some is read next, as for one that is no longer requested.
func (b *book) mayHaveLeft(a *account, name key.ReplicaID) bool {
	_, granted := a.granted[name]
	inUse, known := b.InUse[a.ServiceID]
	return granted && a.left[name] && (!known || inUse[name] || inUse[""])
}

// has tells whether a replica is granted as it is requested.
func (a *account) has(r *ReplicaRequest) bool {
	g, has := a.granted[r.Name]
	return has && g.generation >= r.Generation
}

// keepMissing drops the grants of a service whose request is missing for the grace time, and that
// is known to have no workloads. As long as it has some, the time starts anew after each grace time:
// somebody may have deleted an Object that the service makes again.
func (b *book) keepMissing(a *account) {
	if a.missingSince.IsZero() {
		a.missingSince = b.Now
	}
	if b.Now.Sub(a.missingSince) < Grace {
		return
	}
	switch inUse, known := b.InUse[a.ServiceID]; {
	case len(inUse) > 0:
		a.missingSince = b.Now
	case known:
		a.granted, a.names = nil, nil
	}
}

// noteStarted notes which of the granted replicas the service says that it runs.
func (a *account) noteStarted() {
	for name, g := range a.granted {
		if a.running[name] && !g.started {
			g.started = true
			a.granted[name] = g
		}
	}
}

// graceEnds returns when it has to be known next whether a service has workloads of what its request
// lacks. After that time, what is not known is waited for, and no time.
func (b *book) graceEnds(a *account) time.Time {
	if a.missingSince.IsZero() {
		return time.Time{}
	}
	grace := Grace
	if a.request != nil {
		grace = LeavingGrace
	}
	if ends := a.missingSince.Add(grace); ends.After(b.Now) || len(b.InUse[a.ServiceID]) == 0 {
		return ends
	}
	return b.Now.Add(grace)
}
