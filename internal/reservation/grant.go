package reservation

import (
	"maps"
	"strings"

	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
)

// grantAll grants wants of several services at once, if all of them fit. It is a shortcut, so it
// does not search.
func (b *book) grantAll(wants []want) bool {
	if b.exceeds(wants, b.serving.borrow) != nil || b.serving.looks <= 0 && b.serving.packings >= minPackings {
		return false
	}
	cost, why := b.try(wants, false, nil)
	b.serving.looks -= cost
	return why == ""
}

// grant grants wants of one service, or returns why it does not.
func (b *book) grant(wants []want) refusal {
	if e := b.exceeds(wants, b.serving.borrow); e != nil {
		return refusal{why: e.String(), quota: true}
	}
	id, namespace := idOf(wants), wants[0].account.Namespace
	if why, failed := b.failedBefore(id, namespace); failed {
		return refusal{why: why}
	}
	share := b.serving.shares[namespace]
	moved := share.moved
	if share.looks <= 0 {
		// Each call comes to the same misfits first. What is left of the looks for several units is for what comes after them.
		if b.grantAll(wants) {
			return refusal{}
		}
		return refusal{why: messageNextCall}
	}
	cost, why := b.try(wants, false, &share.steps)
	share.looks -= cost
	if why == "" || why == messageNextCall {
		return refusal{why: why}
	}
	if b.mayMove(share) && b.fitsAlone(wants, share) {
		b.serving.moves++
		share.moved = true
		if _, still := b.try(wants, true, &share.steps); still == "" {
			return refusal{}
		}
	}
	if moved || share.steps <= 0 {
		id = idIn(namespace, id) // Equal ones of another namespace may fit once pods are moved for that, or by a search.
	}
	b.serving.failed[id] = why
	return refusal{why: why}
}

// failedBefore returns why equal wants did not fit before, if so.
func (b *book) failedBefore(id, namespace string) (string, bool) {
	why, failed := b.serving.failed[id]
	if !failed {
		why, failed = b.serving.failed[idIn(namespace, id)]
	}
	return why, failed
}

// maxMoves is how often a call looks for other nodes for pods that are pinned to no pool. It does so once for
// each namespace at most, so that no tenant alone uses up what others need.
const maxMoves = 4

// mayMove tells whether what does not fit may fit once all pods are put onto nodes anew. Pods without
// a pin are counted on nodes of some pool, and may as well be on those of another.
func (b *book) mayMove(of *share) bool {
	if !b.hasLabels || of.moved || b.serving.moves >= maxMoves || b.serving.holder != nil {
		return false
	}
	for shape := range b.counted {
		if shape.Pin == nil {
			return true
		}
	}
	return false
}

// fitsAlone tells whether wants would fit if nothing else was granted. Others are not worth a move.
func (b *book) fitsAlone(wants []want, of *share) bool {
	alone := tally{}
	for _, w := range wants {
		alone.add(w.pods, 1)
	}
	of.looks -= len(alone) * b.Free.ClassCount()
	empty := b.Free.Clone()
	empty.Budget = &of.steps
	return fits(&empty, alone)
}

// fits tells whether some pods fit. It takes room for them if they do.
func fits(free *capacity.Free, all tally) bool {
	ok, _ := free.Allocate(all.podSets())
	return ok
}

// idOf returns a text that is the same for equal wants of one call.
func idOf(wants []want) string {
	var id strings.Builder
	for _, w := range wants {
		id.WriteString(w.before.id + ">" + w.pods.id + "\n")
	}
	return id.String()
}

// idIn returns such a text for equal wants of one namespace.
func idIn(namespace, id string) string { return namespace + "\n" + id }

// try grants wants if all of them fit. Where grants are replaced, or the others are to move, the pods
// of all grants are put onto nodes anew. While room is held, what they give back counts from the next
// call on. It searches for some steps at most, or not at all if the wants are of several units. It
// returns the node classes that it looked at, and why the wants do not fit.
func (b *book) try(wants []want, move bool, steps *int) (cost int, why string) {
	more, gone := tally{}, tally{}
	takes := true
	for _, w := range wants {
		more.add(w.pods, 1)
		gone.add(w.before, 1)
		takes = takes && w.pods.covers(w.before)
	}
	anew := (move || len(gone) > 0) && b.serving.holder == nil
	makesRoom := gone
	if !anew {
		makesRoom = nil
	}
	late := steps == nil && !move && b.serving.looks <= 0
	if late {
		b.serving.packings++ // It counts although the sums may not suffice.
	}
	cost = 1 + len(more)
	if !move {
		cost += b.free.ClassCount() / sumsPerLook
		why = b.free.Short(sorted(more), sorted(makesRoom))
	}
	choosing := choices(wants) * b.free.ClassCount()
	switch {
	case why != "":
		return cost, why
	case anew && !late && b.serving.looks <= 0 && b.serving.packings >= minPackings, steps == nil && choosing > max(b.serving.looks, 0):
		return cost, messageNextCall
	}
	// It copies the counts, so what is short by the sums alone is refused before.
	next, free, place := b.countedWith(more, gone), &b.free, more
	if anew && !late {
		b.serving.packings++
	}
	if anew {
		b.serving.looks -= len(next) * b.Free.ClassCount()
		clone := b.Free.Clone()
		place, free = b.withoutShort(&clone, next, more), &clone
	}
	left, chosen, why := b.put(free, wants, place, steps)
	cost += len(place)*left.ClassCount() + choosing
	if why != "" {
		return cost, why
	}
	for i := range wants {
		if wants[i].chooses {
			next.move(wants[i].pods, chosen[i].pods)
		}
	}
	b.free, b.counted = left, next
	if !takes {
		clear(b.serving.failed)
	}
	b.enter(chosen)
	return cost, ""
}

// withoutShort closes the pools that are short, and returns the pods without those that can go nowhere
// else: they do not fit, and everything would be refused with them. Those that are wanted stay, and are
// refused.
func (b *book) withoutShort(free *capacity.Free, all, wanted tally) tally {
	if len(b.shortPools) == 0 {
		return all
	}
	free.ClosePools(b.shortPools)
	place, confined := maps.Clone(all), free.Confined(b.shortPools)
	for shape := range place {
		if confined(shape) {
			place[shape] = wanted[shape]
		}
	}
	return place
}

// countedWith returns what is counted once some pods have come, and others have gone.
func (b *book) countedWith(more, gone tally) tally {
	next := maps.Clone(b.counted)
	for shape, n := range more {
		next[shape] += n
	}
	for shape, n := range gone {
		if next[shape] -= n; next[shape] == 0 {
			delete(next, shape)
		}
	}
	return next
}

// enter notes what was granted.
func (b *book) enter(wants []want) {
	b.spend(wants)
	for _, w := range wants {
		w.account.set(w.replica.Name, b.newGrant(w.account.granted[w.replica.Name], w.replica.Generation, w.requested, w.pods, w.pin))
		w.account.all.move(w.before, w.pods)
		w.account.got = true
		clear(w.account.noRoom)
		clear(w.account.noQuota)
		w.account.gotPods.add(w.requested, 1)
	}
}

// sorted returns the pods of a tally, with a message about them that is always the same.
func sorted(t tally) []capacity.PodSet { return capacity.Merged(t.podSets()) }
