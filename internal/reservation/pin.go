package reservation

import (
	"cmp"
	"maps"
	"slices"

	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
)

// withPin returns the requirements of a pod that has a pin.
func withPin(r *capacity.PodRequirements, pin *capacity.Pin) *capacity.PodRequirements {
	return &capacity.PodRequirements{Requests: r.Requests, NodeSelector: r.NodeSelector, Tolerations: r.Tolerations, Pin: pin}
}

// pin returns the one address of equal pins.
func (b *book) pin(p *capacity.Pin) *capacity.Pin {
	if p == nil {
		return nil
	}
	k := p.Key()
	if b.pins[k] == nil {
		b.pins[k] = p
	}
	return b.pins[k]
}

// pinned returns pods with a pin, which is one of the book.
func (b *book) pinned(p pods, pin *capacity.Pin) pods {
	counts := make(tally, len(p.sets))
	for _, set := range p.sets {
		if set.Requirements.Pin == pin {
			return p
		}
		counts[b.withPin(set.Requirements, pin)] += set.Count
	}
	return b.pods(counts)
}

// A pinnedShape is a shape that gets another pin.
type pinnedShape struct {
	shape *capacity.PodRequirements
	pin   *capacity.Pin
}

// withPin returns the shape of the book that is another one with a pin.
func (b *book) withPin(shape *capacity.PodRequirements, pin *capacity.Pin) *capacity.PodRequirements {
	k := pinnedShape{shape, pin}
	if b.withPins[k] == nil {
		b.withPins[k] = b.shape(withPin(shape, pin))
	}
	return b.withPins[k]
}

// pinOf returns the pin of pods that run in a pool. The labels are those that were granted, or
// those of the pool now. A pool that is not known limits nothing.
func (b *book) pinOf(pool string, granted *capacity.Pin) *capacity.Pin {
	switch pool {
	case "":
		return nil
	case granted.Name():
		return granted
	}
	for i := range b.Free.Pools {
		if p := &b.Free.Pools[i]; p.Name == pool {
			return b.pin(&capacity.Pin{Pool: pool, NodeSelector: p.Labels})
		}
	}
	return nil
}

// asItRuns returns a grant without its pin, if the replica runs with another one or none. Then its
// pods are counted in any pool. A pin that it never had would have them counted where they are
// not, and another one may not fit. A grant without pods takes the pin that its pods have.
func (b *book) asItRuns(a *account, r *ReplicaRequest, has granted) granted {
	switch {
	case !a.running[r.Name]:
	case has.pods.id == "":
		has.pin = b.pinOf(r.Pool, has.pin)
	case has.pin != nil && r.Pool != has.pin.Pool:
		has.pods, has.pin = b.pinned(has.pods, nil), nil
	}
	return has
}

// put puts pods onto nodes, those of the wants among them. Each want chooses a pool for all of its
// pods, if they fit into one. A single unit that fits only otherwise has its pods counted in any
// pool. It returns what is left, and the wants with their pools, or why the pods do not fit.
func (b *book) put(free *capacity.Free, wants []want, place tally, steps *int) (capacity.Free, []want, string) {
	left := *free // Allocate replaces what it changes.
	if slices.ContainsFunc(wants, func(w want) bool { return w.chooses }) {
		left = free.Clone()
		left.Budget = new(int)
		chosen, why := b.choose(&left, wants, place)
		if why == "" || steps == nil {
			return left, chosen, why
		}
		left = *free
	}
	left.Budget = cmp.Or(steps, new(int))
	_, why := left.Allocate(place.podSets())
	return left, wants, why
}

// choices returns how many pod sets choose puts onto nodes by themselves. Pools are sorted for each set of pods that differs, and it is
// tried in each of them.
func choices(wants []want) int {
	known, n := map[string]bool{}, 0
	for i := range wants {
		if p := &wants[i].pods; wants[i].chooses && !known[p.id] {
			known[p.id] = true
			n += 1 + len(p.sets)
		}
	}
	return n
}

// choose puts pods onto nodes, those of the wants that choose a pool at last. It returns the wants
// with their pools, or why the pods do not fit.
func (b *book) choose(free *capacity.Free, wants []want, place tally) ([]want, string) {
	others := maps.Clone(place)
	for i := range wants {
		if wants[i].chooses {
			others.add(wants[i].pods, -1)
		}
	}
	if ok, why := free.Allocate(others.podSets()); !ok {
		return nil, why
	}
	chosen := slices.Clone(wants)
	alike, order := map[string][]*want{}, []string{}
	for i := range chosen {
		if w := &chosen[i]; w.chooses {
			if alike[w.pods.id] == nil {
				order = append(order, w.pods.id)
			}
			alike[w.pods.id] = append(alike[w.pods.id], w)
		}
	}
	spread := tally{}
	for _, id := range order {
		left := alike[id]
		for _, in := range free.AllocateInPools(left[0].pods.sets, int64(len(left))) {
			pin := b.pin(in.Pin)
			for _, w := range left[:in.Replicas] {
				w.pin, w.pods = pin, b.pinned(w.pods, pin)
			}
			left = left[in.Replicas:]
		}
		for _, w := range left {
			spread.add(w.pods, 1)
		}
	}
	_, why := free.Allocate(spread.podSets())
	return chosen, why
}
