package reservation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// pods of one replica. The shapes are those of the book, so equal ones have one address. The id
// is the same for equal pods of one call, and empty for none.
type pods struct {
	sets []capacity.PodSet
	id   string
}

// A tally counts pods by their shapes.
type tally map[*capacity.PodRequirements]int64

func (t tally) add(p pods, times int64) {
	for _, s := range p.sets {
		t[s.Requirements] += s.Count * times
	}
}

// move counts pods as others, such as the same pods with a pin.
func (t tally) move(from, to pods) {
	t.add(to, 1)
	t.add(from, -1)
	for _, s := range from.sets {
		if t[s.Requirements] == 0 {
			delete(t, s.Requirements)
		}
	}
}

func (t tally) podSets() []capacity.PodSet {
	all := make([]capacity.PodSet, 0, len(t))
	for shape, n := range t {
		all = append(all, capacity.PodSet{Requirements: shape, Count: n})
	}
	return all
}

func (p pods) count() int64 {
	n := int64(0)
	for _, s := range p.sets {
		n += s.Count
	}
	return n
}

// covers tells whether other pods fit wherever these do: each of them takes the place of one
// that requests no less.
func (p pods) covers(o pods) bool {
	if p.id == o.id {
		return true
	}
	free := slices.Clone(p.sets)
	for _, want := range o.sets {
		for i := range free {
			if want.Count > 0 && free[i].Requirements.Covers(want.Requirements) {
				n := min(want.Count, free[i].Count)
				want.Count -= n
				free[i].Count -= n
			}
		}
		if want.Count > 0 {
			return false
		}
	}
	return true
}

// union returns pods that cover both of some pods, where one takes the place of the other: each
// pair of which one covers the other counts once. Pods that tolerate taints count as they come where those from
// before tolerated none and took the same room: a toleration is added when the nodes on which they run get a taint.
func (b *book) union(p, o pods) pods {
	switch {
	case b.withoutTolerations(o).id == p.id:
		return o
	case p.covers(o):
		return p
	}
	all := tally{}
	all.add(p, 1)
	free, more := slices.Clone(p.sets), slices.Clone(o.sets)
	replace := func(is func(have, want *capacity.PodRequirements) bool) {
		for i := range more {
			for j := range free {
				if n := min(more[i].Count, free[j].Count); n > 0 && is(free[j].Requirements, more[i].Requirements) {
					more[i].Count -= n
					free[j].Count -= n
					if !free[j].Requirements.Covers(more[i].Requirements) {
						all[free[j].Requirements] -= n
						all[more[i].Requirements] += n
					}
				}
			}
		}
	}
	replace(func(have, want *capacity.PodRequirements) bool { return have.Covers(want) })
	replace(func(have, want *capacity.PodRequirements) bool { return want.Covers(have) })
	all.add(pods{sets: more}, 1)
	return b.pods(all)
}

// withoutTolerations returns the same pods as if they tolerated no taints.
func (b *book) withoutTolerations(p pods) pods {
	counts := make(tally, len(p.sets))
	for _, set := range p.sets {
		r := *set.Requirements
		r.Tolerations = nil
		counts[b.shape(&r)] += set.Count
	}
	return b.pods(counts)
}

// shape returns the one address of equal shapes.
func (b *book) shape(r *capacity.PodRequirements) *capacity.PodRequirements {
	k := r.Key()
	if b.shapes[k] == nil {
		b.shapes[k], b.keys[r] = r, k
	}
	return b.shapes[k]
}

// podsOfOne returns a number of pods of one shape. Most replicas have no others, and many have the same.
func (b *book) podsOfOne(set capacity.PodSet) pods {
	p, known := b.ofOne[set]
	if !known {
		p = pods{sets: []capacity.PodSet{set}}
		p.id = idOfSets(p.sets)
		b.ofOne[set] = p
	}
	return p
}

// pods returns a number of pods of each shape. Shapes may be repeated.
func (b *book) pods(counts tally) pods {
	p := pods{}
	for shape, n := range counts {
		if n > 0 {
			p.sets = append(p.sets, capacity.PodSet{Requirements: shape, Count: n})
		}
	}
	if len(p.sets) == 1 {
		return b.podsOfOne(p.sets[0])
	}
	slices.SortFunc(p.sets, func(x, y capacity.PodSet) int { return strings.Compare(b.keys[x.Requirements], b.keys[y.Requirements]) })
	p.id = idOfSets(p.sets)
	return p
}

func idOfSets(sets []capacity.PodSet) string {
	var id strings.Builder
	for _, s := range sets {
		fmt.Fprintf(&id, "%d*%p,", s.Count, s.Requirements)
	}
	return id.String()
}

// maxReplaced limits the shapes that are kept for pods that are being replaced, as maxGranted does their
// number. A request that changes again and again, and never says that its pods were replaced, would
// fill the ledger.
const maxReplaced = 16

// during returns what is granted for the pods that a replica requests: these pods, and with them
// those of its grant as long as they may run. All are pinned, or none.
func (b *book) during(r *ReplicaRequest, before, now pods) pods {
	if !r.Replacing || len(before.sets) > maxReplaced || before.count()+now.count() > maxGranted {
		return now
	}
	return b.union(before, now)
}

// replaced returns a grant without the pods from before, if all pods of the replica are of the grant's
// generation. The request may have changed since, and that may not fit.
func (b *book) replaced(r *ReplicaRequest, has granted) granted {
	if r.Replacing && r.Runs > 0 && r.Runs == has.generation && has.requested.id != "" {
		has.pods, has.requested = b.pinned(has.requested, has.pin), pods{}
	}
	return has
}

// podsOf returns the pods that a replica requests.
func (b *book) podsOf(a *account, r *ReplicaRequest) pods {
	counts := make(tally, len(r.Pods))
	for name, n := range r.Pods {
		if a.shapes[name] == nil {
			requirements := a.request.PodRequirements[name]
			a.shapes[name] = b.shape(&requirements)
		}
		counts[a.shapes[name]] += n
	}
	return b.pods(counts)
}

// read reads the grants of a service in the ledger.
func (b *book) read(a *account, s *Service) {
	shapes := make([]*capacity.PodRequirements, len(s.Shapes))
	for i := range s.Shapes {
		shapes[i] = b.shape(&s.Shapes[i])
	}
	podsOf := func(counts []int64) pods {
		all := tally{}
		for i, n := range counts {
			all[shapes[i]] += n
		}
		return b.pods(all)
	}
	for _, g := range s.Grants {
		pin := b.pin(g.Pin)
		if len(g.Pods) == 0 {
			pin = b.pinOf(pin.Name(), nil) // A status has only the name of the pool.
		}
		each := granted{g.Generation, b.pinned(podsOf(g.Pods), pin), pin, podsOf(g.Requested), g.Started, g.Leaving}
		for _, name := range g.Replicas {
			a.set(name, each)
		}
	}
}

// open notes the request of a service.
func (a *account) open(req *CapacityRequest, cluster string) {
	a.request, a.cluster = req, req.Clusters[cluster]
	a.running = a.cluster.running()
	if len(req.Left[cluster]) == 0 {
		return
	}
	reserved := map[key.ReplicaID]bool{}
	for _, r := range Replicas(a.cluster.Groups) {
		reserved[r.Name] = a.has(&r)
	}
	a.left = make(map[key.ReplicaID]bool, len(req.Left[cluster]))
	for _, name := range req.Left[cluster] {
		a.left[name] = true
		// What is requested as it is granted keeps its grant anyway. It counts as started once it is not.
		if has, granted := a.granted[name]; granted && !reserved[name] {
			has.started = true
			a.granted[name] = has
		}
	}
}

// newGrant returns a grant in exchange for another. It has all pods, among them those that are
// requested, which have no pin.
func (b *book) newGrant(before granted, generation int64, requested, all pods, pin *capacity.Pin) granted {
	if b.pinned(requested, pin).id == all.id {
		requested = pods{}
	}
	return granted{generation, all, pin, requested, before.started, before.leaving}
}

func (a *account) set(name key.ReplicaID, g granted) {
	if _, has := a.granted[name]; !has {
		a.names = append(a.names, name)
	}
	a.granted[name] = g
}

// service returns the grants as the ledger has them.
func (a *account) service() Service {
	s := Service{ServiceID: a.ServiceID, MissingSince: a.missingSince}
	used := map[string]*capacity.PodRequirements{}
	keys := map[*capacity.PodRequirements]string{}
	for _, g := range a.granted {
		for _, set := range slices.Concat(g.pods.sets, g.requested.sets) {
			if _, known := keys[set.Requirements]; !known {
				shape := withPin(set.Requirements, nil)
				keys[set.Requirements] = shape.Key()
				used[shape.Key()] = shape
			}
		}
	}
	index := map[string]int{}
	for _, k := range slices.Sorted(maps.Keys(used)) {
		index[k] = len(s.Shapes)
		s.Shapes = append(s.Shapes, *used[k])
	}
	at := map[string]int{}
	for _, name := range a.names {
		g := a.granted[name]
		k := strconv.FormatInt(g.generation, 10) + " " + g.pods.id + " " + g.pin.Name() + " " + g.requested.id + " " + strconv.FormatBool(g.started) + strconv.FormatBool(g.leaving)
		i, known := at[k]
		if !known {
			i, at[k] = len(s.Grants), len(s.Grants)
			counts := func(p pods) []int64 {
				var counts []int64
				for _, set := range p.sets {
					shape := index[keys[set.Requirements]]
					counts = append(counts, make([]int64, max(0, shape+1-len(counts)))...)
					counts[shape] = set.Count
				}
				return counts
			}
			s.Grants = append(s.Grants, Grant{Generation: g.generation, Pods: counts(g.pods), Requested: counts(g.requested), Pin: g.pin, Started: g.started, Leaving: g.leaving})
		}
		s.Grants[i].Replicas = append(s.Grants[i].Replicas, name)
	}
	return s
}

// pending returns what the service waits for.
func (a *account) pending() Pending {
	p := Pending{ServiceID: a.ServiceID, Replicas: a.waits, Generation: a.cluster.Newest(), Message: a.why, Grows: a.grows, Got: a.got}
	for _, r := range a.unreserved() {
		p.Running = append(p.Running, r.Name)
	}
	if len(p.Running) > 0 {
		p.Message = fmt.Sprintf("%d replicas run without a reservation: %s", len(p.Running), p.Message)
	} else if p.Grows {
		p.Message = "what was reserved before is kept: " + p.Message
	}
	p.Message = text.OneLine(p.Message)
	return p
}

// CompareAge compares requests by age, the oldest first. A request without a time belongs to a
// service that is planned offline and does not exist yet. It comes last.
func CompareAge(a, b *CapacityRequest) int {
	if (a.Created == "") != (b.Created == "") {
		return cmp.Compare(b.Created, a.Created)
	}
	return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.UID, b.UID), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
