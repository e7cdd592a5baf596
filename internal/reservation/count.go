package reservation

import (
	"maps"
	"slices"

	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
)

// count puts the pods of all grants onto nodes: all at once, so that the largest come first, and
// if that fails, pool by pool.
func (b *book) count() {
	for _, a := range b.accounts {
		for _, name := range a.names {
			a.all.add(a.granted[name].pods, 1)
		}
		for shape, n := range a.all {
			b.counted[shape] += n
		}
	}
	if ok, _ := b.free.Allocate(b.counted.podSets()); !ok {
		b.countInPools()
		b.free.ClosePools(b.shortPools)
	}
}

// countInPools puts pinned pods onto nodes first, which fit nowhere else. The others come then, without the
// pools that are short, as try puts them there (withoutShort). If that fails, they take what is left of these
// too, one service after the other.
func (b *book) countInPools() {
	others, pinned := b.free.Clone(), map[string][]capacity.PodSet{}
	for _, s := range b.counted.podSets() {
		if s.Requirements.Pin != nil {
			pool := b.free.PinnedTo(s.Requirements)
			pinned[pool] = append(pinned[pool], s)
		}
	}
	// Those whose pool was renamed come last. They may have a choice.
	for _, pool := range slices.Backward(slices.Sorted(maps.Keys(pinned))) {
		b.noteShort(b.free.ForceAllocate(pinned[pool]))
	}
	if len(b.shortPools) > 0 && !b.overcommitted {
		place := b.withoutShort(&others, b.counted, nil)
		if ok, _ := others.Allocate(place.podSets()); ok {
			b.free = others
			return
		}
	}
	for _, a := range b.accounts {
		free := slices.DeleteFunc(a.all.podSets(), func(s capacity.PodSet) bool { return s.Requirements.Pin != nil })
		b.noteShort(b.free.ForceAllocate(free))
	}
}

// noteShort notes the pools in which nodes are gone, if only pinned pods do not fit any more: no
// others make room for them. Otherwise it is not known which nodes are short, and nothing new is
// granted in the whole cluster.
func (b *book) noteShort(short []capacity.PodSet) {
	for _, left := range short {
		if pool := b.free.PinnedTo(left.Requirements); pool == "" {
			b.overcommitted = true
		} else if !slices.Contains(b.shortPools, pool) {
			b.shortPools = append(b.shortPools, pool)
		}
	}
	slices.Sort(b.shortPools)
}
