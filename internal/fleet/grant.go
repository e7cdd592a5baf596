package fleet

import (
	"cmp"
	"fmt"
	"slices"
)

// A Grant is what a cluster has given to a service. A cluster keeps its grants in one
// ledger, in the order in which it gave them.
type Grant struct {
	UID       string   `json:"uid"`
	Namespace string   `json:"namespace"`
	Name      string   `json:"name"`
	Replicas  []string `json:"replicas"`
	// Shapes of their pods as they were counted, by the names of the ask. A ledger that was
	// made anew from the status has none.
	Shapes map[string]Shape `json:"shapes,omitempty"`
	// Serial up to which asks are answered. See Ask.Renew.
	Serial int64 `json:"serial,omitempty"`
}

// Service that has it.
func (g *Grant) Service() Service { return Service{g.Namespace, g.Name, g.UID} }

// A Wait is what a service asked for and was not given.
type Wait struct {
	UID, Namespace, Name string
	Replicas             []string
	Message              string
	// Running are those of the replicas that are there nevertheless, as the service says.
	Running []string
}

// A Booking is the result of granting.
type Booking struct {
	// Grants, in the order in which they were given.
	Grants []Grant
	// Waiting, in the order in which they are served.
	Waiting []Wait
	// Room that is left.
	Room Room
	// Used by each grant: resources and pods.
	Used []Usage
	// Overbooked tells that what was granted does not fit any more: nodes have gone, or
	// replicas have more pods. Nothing is granted meanwhile.
	Overbooked bool
	// Unfit are the services whose pods have changed since they were granted, and do not fit
	// as they are now. What they were granted stays as it was, so that it is theirs when they
	// change back and nobody else is the worse for it, and they are granted nothing more.
	Unfit []Service
}

// ChangedPods is why a service that is unfit is granted nothing more.
const ChangedPods = "its pods have changed since they were granted room here, and do not fit as they are now"

// A Usage is what a grant takes.
type Usage struct {
	Resources Resources
	Pods      int64
}

// Book keeps the grants of a cluster up to date. What was granted stays granted for as
// long as it is asked for; what is there anyway is counted, if it fits; what is new is
// granted to the oldest service first, if it fits. A closed cluster grants nothing new, and says why;
// so does one to a service that is barred.
func Book(cluster string, room Room, grants []Grant, asks []Ask, closed string) Booking {
	asks = slices.Clone(asks)
	slices.SortStableFunc(asks, func(a, b Ask) int { return before(&a, &b) })
	b := &booker{cluster: cluster, Booking: Booking{Room: room.Clone()}}
	b.Room.Patience = new(bookSteps)
	room.Patience = b.Room.Patience
	b.keep(grants, asks)
	b.place()
	b.change(&room)
	b.hold(&room, asks)
	patience := sharedPatience(asks)
	for i := range asks {
		b.Room.Patience = patience[asks[i].Namespace]
		b.grant(&asks[i], cmp.Or(asks[i].Barred, closed))
	}
	b.Room.Patience = nil
	for i := range b.Grants {
		total, pods := sum(b.needs(i))
		at := b.asks[i].Clusters[cluster]
		b.Grants[i].Serial = at.serial()
		b.Used = append(b.Used, Usage{Resources: total, Pods: pods})
	}
	return b.Booking
}

// bookSteps bounds one booking to some hundred milliseconds. Without it, a service could ask
// for thousands of units, each of which is searched a place for. What is granted stays, so
// that the next booking goes on where this one ended.
const bookSteps = 50 * searchSteps

// sharedPatience leaves each namespace its share of them, so that no tenant uses up the
// others'.
func sharedPatience(asks []Ask) map[string]*int {
	all := map[string]*int{}
	for i := range asks {
		all[asks[i].Namespace] = nil
	}
	for namespace := range all {
		all[namespace] = new(max(bookSteps/len(all), searchSteps))
	}
	return all
}

type booker struct {
	Booking

	cluster string
	// asks of the grants.
	asks []*Ask
}

// keep carries over what is granted and still asked for.
func (b *booker) keep(grants []Grant, asks []Ask) {
	byService := make(map[Service]*Ask, len(asks))
	for i := range asks {
		byService[asks[i].Service()] = &asks[i]
	}
	seen := map[Service]bool{}
	for _, g := range grants {
		a := byService[g.Service()]
		if a == nil || seen[g.Service()] {
			continue
		}
		seen[g.Service()] = true
		var names []string
		for _, r := range all(a.Clusters[b.cluster].Units) {
			if slices.Contains(g.Replicas, r.Name) {
				names = append(names, r.Name)
			}
		}
		if len(names) > 0 {
			g.Replicas = names
			b.Grants = append(b.Grants, g)
			b.asks = append(b.asks, a)
			b.count(len(b.Grants) - 1)
		}
	}
}

// count drops the shapes that a grant has not any more, and takes over those that are new to it
// or request less than before, which always fit.
func (b *booker) count(i int) {
	was, now := b.Grants[i].Shapes, b.asks[i].Shapes
	shapes := map[string]Shape{}
	for _, r := range b.granted(i) {
		for name := range r.Pods {
			shape, known := was[name]
			if smaller := now[name]; !known || shape.covers(&smaller) {
				shape = smaller
			}
			shapes[name] = shape
		}
	}
	b.Grants[i].Shapes = shapes
}

// hold counts what is there and was never granted: of a service that comes into the fleet
// from outside and stays where it ran, or after the ledger and the status were lost. It
// comes before anything new, and while the cluster is closed too, because it takes room
// already.
//
// But only the ask says that it is there, and a tenant may write that. So it gets no room
// that there is not: then it waits, as it runs, and is reported, and others are served with
// what is left. If it does run, it does so in room that the cluster has not counted, which
// somebody should look at; if it does not, nobody else is the worse for it. So it is with a
// service that is barred: its word gets it no room.
func (b *booker) hold(whole *Room, asks []Ask) {
	var holding []*Ask
	var needs []Need
	for i := range asks {
		if r := b.ungranted(&asks[i]); len(r) > 0 && asks[i].Barred == "" && !slices.Contains(b.Unfit, asks[i].Service()) {
			holding, needs = append(holding, &asks[i]), append(needs, asks[i].needs(r)...)
		}
	}
	if len(holding) == 0 || b.Overbooked {
		return
	}
	// What was granted bit by bit may only fit if all is looked at once.
	room := whole.Clone()
	if ok, _ := room.Take(append(needs, b.allNeeds()...)); ok {
		b.Room = room
		for _, a := range holding {
			b.give(a, b.ungranted(a))
		}
		return
	}
	for _, a := range holding {
		for _, r := range b.ungranted(a) {
			if ok, _ := b.Room.Take(a.needs([]Replica{r})); ok {
				b.give(a, []Replica{r})
			}
		}
	}
}

// ungranted are the replicas that a service says are there, and was not granted.
func (b *booker) ungranted(a *Ask) []Replica {
	at := a.Clusters[b.cluster]
	if len(at.Held) == 0 {
		return nil
	}
	var granted []string
	if i := b.find(a); i >= 0 {
		granted = b.Grants[i].Replicas
	}
	return slices.DeleteFunc(all(at.Units), func(r Replica) bool {
		return !slices.Contains(at.Held, r.Name) || slices.Contains(granted, r.Name)
	})
}

// place puts what is granted onto nodes.
func (b *booker) place() {
	// All at once, whatever the order in which they came: what is large finds its place
	// first. Only where that does not work out one is looked at after the other.
	if ok, _ := b.Room.Take(b.allNeeds()); ok {
		return
	}
	for i := range b.Grants {
		if !b.Room.TakeAnyway(b.needs(i)) {
			b.Overbooked = true
		}
	}
}

// change counts pods as they are now, where there is room for that, the oldest service first.
func (b *booker) change(whole *Room) {
	order := make([]int, 0, len(b.Grants))
	for i := range b.Grants {
		if b.changed(i) {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(i, j int) int { return before(b.asks[i], b.asks[j]) })
	// As many as fit, the oldest first; then one does not, and the same for those after it.
	for tries := maxTries; len(order) > 0; {
		n := b.fitting(whole, order, &tries)
		if n == len(order) {
			return
		}
		b.Unfit = append(b.Unfit, b.Grants[order[n]].Service())
		order = order[n+1:]
		if tries <= 0 {
			for _, i := range order {
				b.Unfit = append(b.Unfit, b.Grants[i].Service())
			}
			return
		}
	}
}

// maxTries bounds how often all grants are put onto the nodes anew. Where pods of very many
// services have changed, and not all of them fit, more of them count as unfit than would
// have to.
const maxTries = 24

// fitting counts the first n of some grants as they are now, as many as fit with
// everything else, and returns how many these are.
func (b *booker) fitting(whole *Room, order []int, tries *int) int {
	fits, most := 0, len(order)
	for try := most; fits < most; try = (fits + most + 1) / 2 {
		if *tries--; *tries < 0 || b.Overbooked {
			break
		}
		was := b.recount(order[fits:try])
		room := whole.Clone()
		if ok, _ := room.Take(b.allNeeds()); ok {
			b.Room, fits = room, try
			continue
		}
		for i, shapes := range was {
			b.Grants[order[fits+i]].Shapes = shapes
		}
		most = try - 1
	}
	return fits
}

// recount counts grants as they are now, and returns how they were counted.
func (b *booker) recount(grants []int) []map[string]Shape {
	all := make([]map[string]Shape, 0, len(grants))
	for _, i := range grants {
		was, now := b.Grants[i].Shapes, map[string]Shape{}
		for name := range was {
			now[name] = b.asks[i].Shapes[name]
		}
		b.Grants[i].Shapes = now
		all = append(all, was)
	}
	return all
}

// changed tells whether pods have changed since they were granted.
func (b *booker) changed(i int) bool {
	for name, was := range b.Grants[i].Shapes {
		if now := b.asks[i].Shapes[name]; was.id() != now.id() {
			return true
		}
	}
	return false
}

// needs of a grant, as it is counted.
func (b *booker) needs(i int) []Need {
	counted := Ask{Shapes: b.Grants[i].Shapes}
	return counted.needs(b.granted(i))
}

// allNeeds are those of all grants.
func (b *booker) allNeeds() []Need {
	var needs []Need
	for i := range b.Grants {
		needs = append(needs, b.needs(i)...)
	}
	return needs
}

// granted are the replicas of a grant.
func (b *booker) granted(i int) []Replica {
	return slices.DeleteFunc(all(b.asks[i].Clusters[b.cluster].Units), func(r Replica) bool { return !slices.Contains(b.Grants[i].Replicas, r.Name) })
}

func all(units []Unit) []Replica {
	var replicas []Replica
	for _, u := range units {
		replicas = append(replicas, u.Replicas...)
	}
	return replicas
}

// grant gives a service what it asks for and has not.
func (b *booker) grant(a *Ask, closed string) {
	at, asked := a.Clusters[b.cluster]
	if !asked {
		return
	}
	wait := Wait{UID: a.UID, Namespace: a.Namespace, Name: a.Name}
	units := at.Units
	if at.Together && b.find(a) < 0 {
		units = []Unit{together(units)}
	}
	for _, u := range units {
		waiting, why := b.grantUnit(a, u, closed)
		for _, r := range waiting {
			wait.Replicas = append(wait.Replicas, r.Name)
		}
		if wait.Message == "" {
			wait.Message = why
		}
	}
	for _, r := range b.ungranted(a) {
		wait.Running = append(wait.Running, r.Name)
	}
	if len(wait.Running) > 0 {
		wait.Message = fmt.Sprintf("%d replicas are there that were not granted: %s", len(wait.Running), wait.Message)
	}
	if len(wait.Replicas) > 0 {
		b.Waiting = append(b.Waiting, wait)
	}
}

// together makes one unit of all. Where nothing of it has to start together, everything
// has: a part of it would hold room for nothing.
func together(units []Unit) Unit {
	whole := Unit{Replicas: slices.Clone(all(units))}
	if !slices.ContainsFunc(whole.Replicas, func(r Replica) bool { return r.Required }) {
		for i := range whole.Replicas {
			whole.Replicas[i].Required = true
		}
	}
	return whole
}

// grantUnit gives a unit all of its replicas, or those that it needs to start, and more
// of them to a unit that has started. It returns those that wait, and why.
func (b *booker) grantUnit(a *Ask, u Unit, closed string) ([]Replica, string) {
	have := b.of(a)
	var missing []Replica
	for _, r := range u.Replicas {
		if !slices.Contains(have.Replicas, r.Name) {
			missing = append(missing, r)
		}
	}
	switch {
	case len(missing) == 0:
		return nil, ""
	case closed != "":
		b.forget(a)
		return missing, closed
	case slices.Contains(b.Unfit, a.Service()):
		return missing, ChangedPods
	case b.Overbooked:
		b.forget(a)
		return missing, "more runs in the cluster than it has room for"
	case *b.Room.Patience <= 0:
		b.forget(a)
		return missing, "so much is asked for in its namespace that this is looked at next time"
	}
	// What need not start together starts one by one.
	started := len(missing) < len(u.Replicas) || !slices.ContainsFunc(u.Replicas, func(r Replica) bool { return r.Required })
	ok, why := b.Room.Take(a.needs(missing))
	if ok {
		b.give(a, missing)
		return nil, ""
	}
	required := slices.DeleteFunc(slices.Clone(missing), func(r Replica) bool { return !r.Required })
	rest := slices.DeleteFunc(slices.Clone(missing), func(r Replica) bool { return r.Required })
	if len(required) > 0 && len(rest) > 0 {
		if ok, _ := b.Room.Take(a.needs(required)); ok {
			b.give(a, required)
			started, missing = true, rest
		}
	}
	if !started {
		b.forget(a)
		return missing, why
	}
	// The rest one by one, each replica whole.
	var waiting []Replica
	for _, r := range missing {
		if ok, short := b.Room.Take(a.needs([]Replica{r})); ok {
			b.give(a, []Replica{r})
		} else {
			waiting, why = append(waiting, r), short
		}
	}
	b.forget(a)
	return waiting, why
}

// find returns which grant is a service's, or -1.
func (b *booker) find(a *Ask) int {
	return slices.IndexFunc(b.Grants, func(g Grant) bool { return g.Service() == a.Service() })
}

// of returns the grant of a service, which is made where there is none.
func (b *booker) of(a *Ask) *Grant {
	if i := b.find(a); i >= 0 {
		return &b.Grants[i]
	}
	b.Grants = append(b.Grants, Grant{UID: a.UID, Namespace: a.Namespace, Name: a.Name, Shapes: map[string]Shape{}})
	b.asks = append(b.asks, a)
	return &b.Grants[len(b.Grants)-1]
}

func (b *booker) give(a *Ask, replicas []Replica) {
	g := b.of(a)
	for _, r := range replicas {
		g.Replicas = append(g.Replicas, r.Name)
		for name := range r.Pods {
			g.Shapes[name] = a.Shapes[name]
		}
	}
}

// forget takes away a grant of nothing.
func (b *booker) forget(a *Ask) {
	if i := b.find(a); i >= 0 && len(b.Grants[i].Replicas) == 0 {
		b.Grants = slices.Delete(b.Grants, i, i+1)
		b.asks = slices.Delete(b.asks, i, i+1)
	}
}
