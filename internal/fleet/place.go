package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Policy says how units are put into clusters.
type Policy string

// The policies, as the API has them.
const (
	Replicate Policy = "Replicate"
	Spread    Policy = "Spread"
	Failover  Policy = "Failover"
)

// A Candidate is a cluster that a service may go to, or is in.
type Candidate struct {
	// Name of the cluster in the service.
	Name string
	// Weight of the cluster under the policy Spread.
	Weight int64
	// Uncounted clusters are not of the fleet: they have room for everything, and are
	// not asked.
	Uncounted bool
	// Unknown clusters cannot be read. Nothing new goes there, and nothing leaves.
	Unknown string
	// Deselected clusters are those where something is that the placement no longer
	// names.
	Deselected bool
	// NotAllowed clusters are deselected because they do not allow the tenant any more.
	NotAllowed bool
	// Drain and Dead are the cluster's taints, with their reasons.
	Drain, Dead *string
	// Unreachable since then, if it is.
	Unreachable *time.Time
	// Room that is left, without what is granted to this service.
	Room Room
	// Granted, Present and Ready replicas of the service there, by their names. Granted
	// are those whose grant answers what is asked for now, see AskedCluster.Granted;
	// present those of which an object exists.
	Granted, Present, Ready map[string]bool
	// Asked units, by their names, as the service asked the last time.
	Asked map[string]bool
	// Closed is why the cluster grants nothing new, if so.
	Closed string
	// Waiting is what the cluster says of replicas that it did not grant.
	Waiting string
	// Orphaned tells that what is there can be forgotten without being deleted.
	Orphaned bool
	// Answers tells that requests which reach the cluster are answered: its endpoint picker
	// runs. It is true where there is none.
	Answers bool
	// NoEntrance tells that the route over clusters cannot lead there, because no gateway
	// is known.
	NoEntrance bool
	// Routed tells that requests reach the cluster. It is true where there is no route
	// over clusters.
	Routed bool
	// Twin is another cluster of the placement that is reached in the same way. Nothing
	// new goes here: it would meet what is there.
	Twin string
	// Led tells that the route over clusters leads there, or may still do so.
	Led bool
}

// A Request is what has to be placed.
type Request struct {
	Policy        Policy
	Units         []Unit
	Shapes        map[string]Shape
	Candidates    []Candidate
	FailoverAfter time.Duration
	// Now is compared with when a cluster went out of reach.
	Now time.Time
}

// A State of a service in one cluster.
type State string

// The states, as the API has them.
const (
	Placed    State = "Placed"
	Waiting   State = "Waiting"
	Leaving   State = "Leaving"
	NotPlaced State = "NotPlaced"
)

// Reasons why a service is not placed in a cluster.
const (
	ReasonUnknown     = "CannotBeRead"
	ReasonDeselected  = "NotSelected"
	ReasonDrained     = "Drained"
	ReasonDead        = "Dead"
	ReasonUnreachable = "Unreachable"
	ReasonWeight      = "WeightIsZero"
	ReasonTwin        = "SameCluster"
	ReasonNoRoom      = "NoRoom"
	ReasonNotNeeded   = "NotNeeded"
	ReasonAsked       = "Asked"
	ReasonNotGranted  = "NotGranted"
)

// A Decision is what becomes of a service in one cluster.
type Decision struct {
	Name    string
	State   State
	Reason  string
	Message string
	// Units to ask the cluster for: what is wanted there, and what is there still.
	Units []Unit
	// Run are the replicas to run there, by their names.
	Run map[string]bool
	// Wait are the replicas that are wanted there and were not granted so far.
	Wait []string
	// Serving tells that requests should go there.
	Serving bool
	// Together tells that all units have to fit at once.
	Together bool
	// Timed tells that the cluster is out of reach, and is left if it stays so.
	Timed bool
	// Abandoned clusters are dead: what runs there is forgotten, and not deleted.
	Abandoned bool
}

// Place decides where a service runs, for each candidate in turn. What is placed stays
// where it is, unless its cluster drains, dies, is deselected or stays out of reach; and
// then it leaves only after it runs elsewhere.
func Place(r Request) []Decision {
	p := &placer{Request: r, wanted: make([][]Unit, len(r.Candidates)), out: make([]fate, len(r.Candidates))}
	for i := range r.Candidates {
		p.out[i] = p.fate(&r.Candidates[i])
	}
	switch r.Policy {
	case Failover:
		p.failover()
	case Spread:
		p.spread()
	default:
		for i := range p.Candidates {
			if p.out[i].usable() {
				p.wanted[i] = r.Units
			}
		}
	}
	all := make([]Decision, 0, len(r.Candidates))
	for i := range r.Candidates {
		all = append(all, p.decide(i))
	}
	return all
}

type placer struct {
	Request

	// out has, for each candidate, whether and why it cannot be used.
	out []fate
	// wanted units of each candidate.
	wanted [][]Unit
	// asking tells that the candidates are asked, and only one of them is for good.
	asking bool
}

// A fate is why a cluster takes nothing new.
type fate struct {
	reason, message string
	// leave tells that what is there has to leave.
	leave bool
}

func (f fate) usable() bool { return f.reason == "" }

func (p *placer) fate(c *Candidate) fate {
	switch {
	case c.Dead != nil:
		return fate{ReasonDead, because("the cluster is declared dead", *c.Dead), true}
	case c.Unknown != "":
		return fate{ReasonUnknown, c.Unknown, false}
	case c.Twin != "":
		return fate{ReasonTwin, "it is reached in the same way as " + c.Twin + ", and would be the same cluster", false}
	case c.Deselected && c.NotAllowed:
		return fate{ReasonDeselected, "the cluster does not allow this namespace any more", true}
	case c.Deselected:
		return fate{ReasonDeselected, "the placement does not name or select it any more", true}
	case c.Drain != nil:
		return fate{ReasonDrained, because("the cluster is drained", *c.Drain), true}
	case c.Unreachable != nil:
		since := c.Unreachable.UTC().Format(time.RFC3339)
		// Copies of the whole service stay as they are: others have the same.
		if p.Policy != Replicate && p.Now.Sub(*c.Unreachable) >= p.FailoverAfter {
			return fate{ReasonUnreachable, fmt.Sprintf("out of reach since %s, longer than %s", since, p.FailoverAfter), true}
		}
		return fate{ReasonUnreachable, "out of reach since " + since, false}
	case p.Policy == Spread && c.Weight == 0:
		return fate{ReasonWeight, "its weight is 0", true}
	}
	return fate{}
}

func because(what, reason string) string {
	if reason == "" {
		return what
	}
	return what + ": " + reason
}

// has tells whether a cluster has a replica, or has granted it.
func (c *Candidate) has(r *Replica) bool {
	return c.Uncounted || c.Granted[r.Name] || c.Present[r.Name]
}

// present tells whether anything of a unit is there.
func (c *Candidate) present(u *Unit) bool {
	return slices.ContainsFunc(u.Replicas, func(r Replica) bool { return c.Present[r.Name] })
}

// granted tells whether a unit can start there: what it needs was granted.
func (c *Candidate) granted(u *Unit) bool {
	some := false
	for i := range u.Replicas {
		r := &u.Replicas[i]
		if r.Required && !c.has(r) {
			return false
		}
		some = some || c.has(r)
	}
	return some || len(u.Replicas) == 0
}

// ready tells whether all of a unit is ready there.
func (c *Candidate) ready(u *Unit) bool {
	for _, r := range u.Replicas {
		if !c.Ready[r.Name] {
			return false
		}
	}
	return true
}

// fits tells whether what is missing of some units has room, or at least what they need
// to start, and takes it from there.
func (p *placer) fits(room *Room, c *Candidate, units []Unit) (bool, string) {
	ok, why := p.fitsWhole(room, c, units)
	if ok || c.Closed != "" {
		return ok, why
	}
	missing := c.missing(units)
	required := slices.DeleteFunc(slices.Clone(missing), func(r Replica) bool { return !r.Required })
	if len(required) == len(missing) || len(required) == 0 && p.Policy == Failover {
		return false, why
	}
	if len(required) == 0 {
		required = missing[:1]
	}
	a := Ask{Shapes: p.Shapes}
	ok, _ = room.Take(a.needs(required))
	return ok, why
}

// fitsWhole tells the same of all that is missing.
func (p *placer) fitsWhole(room *Room, c *Candidate, units []Unit) (bool, string) {
	missing := c.missing(units)
	switch {
	case len(missing) == 0:
		return true, ""
	case c.Closed != "":
		return false, c.Closed
	}
	a := Ask{Shapes: p.Shapes}
	return room.Take(a.needs(missing))
}

// missing are the replicas of some units that a cluster neither has nor has granted.
func (c *Candidate) missing(units []Unit) []Replica {
	var missing []Replica
	for i := range units {
		for j := range units[i].Replicas {
			if r := &units[i].Replicas[j]; !c.has(r) {
				missing = append(missing, *r)
			}
		}
	}
	return missing
}

// failover wants the whole service in one cluster. While none has room for it, all are
// asked, and the first that grants it wins.
func (p *placer) failover() {
	fitting := func(fits func(*Room, *Candidate, []Unit) (bool, string)) func(*Candidate) bool {
		return func(c *Candidate) bool {
			room := c.Room.Clone()
			ok, _ := fits(&room, c, p.Units)
			return ok
		}
	}
	asked := func(c *Candidate) bool { return len(c.Asked) > 0 && fitting(p.fits)(c) }
	home := p.fullest(p.Units, p.usable())
	// It may come back where it cannot be told: nothing else is started meanwhile.
	if home < 0 && p.frozen(p.Units) {
		return
	}
	if home < 0 {
		home = p.firstOf(entered(
			func(c *Candidate) bool {
				return len(p.Units) > 0 && !slices.ContainsFunc(p.Units, func(u Unit) bool { return !c.granted(&u) })
			},
			asked, fitting(p.fitsWhole), fitting(p.fits),
		)...)
	}
	p.asking = home < 0
	for i := range p.Candidates {
		if i == home || (home < 0 && p.out[i].usable()) {
			p.wanted[i] = p.Units
		}
	}
}

// A standing tells how good a home a candidate is that has something of the service.
type standing struct {
	// twice is how many replicas are missing that others have, and would be started a second
	// time. cramped tells that there is no room for them.
	cramped bool
	// walled tells that no requests can be led there, so that no other copy can be left for it.
	walled       bool
	twice, ready int
}

// before tells whether a candidate is the better home: one where nothing is missing that others
// have, or that has room for it; of such, one to which requests can be led, then the one where
// the least is missing, then the one with the most replicas ready.
func (s standing) before(o standing) bool {
	switch {
	case s.cramped != o.cramped:
		return o.cramped
	case s.walled != o.walled:
		return o.walled
	}
	return cmp.Or(cmp.Compare(s.twice, o.twice), cmp.Compare(o.ready, s.ready)) < 0
}

// fullest is the best home for what is there of some units, of candidates that are usable: the first
// of several that are alike. It is -1 where nothing of them is anywhere.
func (p *placer) fullest(units []Unit, candidates []int) int {
	home, best := -1, standing{}
	for _, i := range candidates {
		if !slices.ContainsFunc(units, func(u Unit) bool { return p.Candidates[i].present(&u) }) {
			continue
		}
		if s := p.standing(i, units); home < 0 || s.before(best) {
			home, best = i, s
		}
	}
	return home
}

func (p *placer) standing(i int, units []Unit) standing {
	c := &p.Candidates[i]
	s := standing{walled: c.NoEntrance}
	for _, r := range all(units) {
		switch {
		case !c.Present[r.Name] && p.first(func(o *Candidate) bool { return o.Present[r.Name] }) >= 0:
			s.twice++
		case c.Present[r.Name] && c.Ready[r.Name]:
			s.ready++
		}
	}
	if s.twice > 0 {
		room := c.Room.Clone()
		fits, _ := p.fitsWhole(&room, c, units)
		s.cramped = !fits
	}
	return s
}

// usable candidates, in their order.
func (p *placer) usable() []int {
	var all []int
	for i := range p.Candidates {
		if p.out[i].usable() {
			all = append(all, i)
		}
	}
	return all
}

// firstOf is the first usable candidate with the first property that one of them has, or -1.
func (p *placer) firstOf(are ...func(*Candidate) bool) int {
	for _, is := range are {
		if i := p.first(is); i >= 0 {
			return i
		}
	}
	return -1
}

// entered has properties of candidates to which requests can be led, and then the same of any. Where
// none can be led to, a service would hold room in vain, and could not leave another cluster for it.
func entered(are ...func(*Candidate) bool) []func(*Candidate) bool {
	both := make([]func(*Candidate) bool, 0, 2*len(are))
	for _, is := range are {
		both = append(both, func(c *Candidate) bool { return !c.NoEntrance && is(c) })
	}
	return append(both, are...)
}

// frozen tells whether something of some units is where it can neither stay nor leave:
// in a cluster that cannot be read, or has been out of reach for a short time.
func (p *placer) frozen(units []Unit) bool {
	for i := range p.Candidates {
		if p.out[i].usable() || p.out[i].leave {
			continue
		}
		if slices.ContainsFunc(units, func(u Unit) bool { return p.Candidates[i].present(&u) }) {
			return true
		}
	}
	return false
}

// first usable candidate with some property, or -1.
func (p *placer) first(is func(*Candidate) bool) int {
	for i := range p.Candidates {
		if p.out[i].usable() && is(&p.Candidates[i]) {
			return i
		}
	}
	return -1
}

// spread splits units over clusters. A unit stays where it is, else where it was
// granted, else where it was asked for, else it goes where there is room and the fewest
// units for the weight.
func (p *placer) spread() {
	rooms := make([]Room, len(p.Candidates))
	for i := range p.Candidates {
		rooms[i] = p.Candidates[i].Room.Clone()
	}
	var homeless []Unit
	for _, u := range p.Units {
		if p.frozen([]Unit{u}) {
			continue
		}
		home := p.home(&u)
		if home < 0 {
			homeless = append(homeless, u)
			continue
		}
		_, _ = p.fits(&rooms[home], &p.Candidates[home], []Unit{u}) // Its missing replicas take room, if there is some.
		p.wanted[home] = append(p.wanted[home], u)
	}
	var later []Unit
	for _, u := range homeless {
		home := p.first(func(c *Candidate) bool { return c.Asked[u.Name] })
		if home < 0 {
			later = append(later, u)
			continue
		}
		if ok, _ := p.fits(&rooms[home], &p.Candidates[home], []Unit{u}); !ok {
			later = append(later, u)
			continue
		}
		p.wanted[home] = append(p.wanted[home], u)
	}
	for _, u := range later {
		home := p.roomiest(rooms, &u)
		if home >= 0 {
			p.wanted[home] = append(p.wanted[home], u)
		}
	}
	for i := range p.wanted {
		p.wanted[i] = p.inOrder(p.wanted[i])
	}
}

// roomiest is where a unit without a home is asked for: where all of it fits, else where
// it can start, else where it would go if there were room, to be served in turn. Clusters
// to which requests can be led come first.
func (p *placer) roomiest(rooms []Room, u *Unit) int {
	fitting := func(fits func(*Room, *Candidate, []Unit) (bool, string)) func(int) bool {
		return func(i int) bool {
			ok, _ := fits(&rooms[i], &p.Candidates[i], []Unit{*u})
			return ok
		}
	}
	whole, part, wherever := fitting(p.fitsWhole), fitting(p.fits), func(int) bool { return true }
	led := func(is func(int) bool) func(int) bool {
		return func(i int) bool { return !p.Candidates[i].NoEntrance && is(i) }
	}
	for _, takes := range []func(int) bool{led(whole), led(part), whole, part, led(wherever), wherever} {
		if home := p.lightest(takes); home >= 0 {
			return home
		}
	}
	return -1
}

// home is where a unit is already, or was granted, or -1. Of several such clusters that are alike
// it is the one that has the fewest units for its weight.
func (p *placer) home(u *Unit) int {
	if i := p.fullest([]Unit{*u}, p.byLoad()); i >= 0 {
		return i
	}
	return p.lightest(func(i int) bool { return len(u.Replicas) > 0 && p.Candidates[i].granted(u) })
}

// byLoad are the usable candidates, those first that have the fewest units for their weight.
func (p *placer) byLoad() []int {
	order := p.usable()
	slices.SortStableFunc(order, func(a, b int) int {
		// (units + 1) / weight, without fractions.
		x := int64(len(p.wanted[a])+1) * p.Candidates[b].Weight
		y := int64(len(p.wanted[b])+1) * p.Candidates[a].Weight
		return cmp.Compare(x, y)
	})
	return order
}

// lightest is the usable candidate that has the fewest units for its weight and takes
// one more, or -1.
func (p *placer) lightest(takes func(int) bool) int {
	for _, i := range p.byLoad() {
		if takes(i) {
			return i
		}
	}
	return -1
}

// inOrder sorts units as the service has them.
func (p *placer) inOrder(units []Unit) []Unit {
	var sorted []Unit
	for _, u := range p.Units {
		if contains(units, &u) {
			sorted = append(sorted, u)
		}
	}
	return sorted
}

func (p *placer) decide(i int) Decision {
	c := &p.Candidates[i]
	d := Decision{Name: c.Name, State: NotPlaced, Run: map[string]bool{}, Together: p.Policy == Failover, Abandoned: c.Dead != nil}
	for _, u := range p.Units {
		switch {
		case contains(p.wanted[i], &u):
			p.want(&d, c, u)
		case c.present(&u) && p.stays(i, &u):
			d.keep(c, u)
		}
	}
	d.State, d.Reason, d.Message = p.explain(i, &d)
	d.Timed = d.Reason == ReasonUnreachable && len(d.Run) > 0 && !p.out[i].leave && p.Policy != Replicate
	// What is wanted and waits is no reason to send requests to what is on its way out.
	stays := slices.ContainsFunc(p.wanted[i], func(u Unit) bool { return c.present(&u) })
	d.Serving = len(d.Run) > 0 && c.Dead == nil && (stays || p.copied(i) || !p.elsewhere(i))
	return d
}

// want adds a unit that is wanted: what was granted or is there runs, the rest waits.
func (p *placer) want(d *Decision, c *Candidate, u Unit) {
	d.Units = append(d.Units, u)
	for i := range u.Replicas {
		if r := &u.Replicas[i]; c.has(r) && !p.asking {
			d.Run[r.Name] = true
		} else {
			d.Wait = append(d.Wait, r.Name)
		}
	}
}

// keep adds what is there of a unit that is wanted elsewhere.
func (d *Decision) keep(c *Candidate, u Unit) {
	there := Unit{Name: u.Name}
	for _, r := range u.Replicas {
		if c.Present[r.Name] {
			there.Replicas = append(there.Replicas, r)
			d.Run[r.Name] = true
		}
	}
	d.Units = append(d.Units, there)
}

func contains(units []Unit, u *Unit) bool {
	return slices.ContainsFunc(units, func(o Unit) bool { return o.Name == u.Name })
}

// stays tells whether a unit that is not wanted where it is has to stay for now.
func (p *placer) stays(i int, u *Unit) bool {
	if !p.out[i].leave && !p.out[i].usable() {
		return true
	}
	if p.Candidates[i].Dead != nil {
		return !p.Candidates[i].Orphaned
	}
	if !p.replaced(i, u) {
		return true
	}
	// Requests that still come find something ready.
	c := &p.Candidates[i]
	return c.Led && !slices.ContainsFunc(p.Units, func(o Unit) bool { return c.ready(&o) && len(o.Replicas) > 0 && !p.replaced(i, &o) })
}

// covers tells whether what a unit needs, and all that another cluster has of it, is ready
// here. More of the unit may be wanted: that there is no room for that here would be no reason
// to keep two copies for ever.
func (c *Candidate) covers(other *Candidate, u *Unit) bool {
	return !slices.ContainsFunc(u.Replicas, func(r Replica) bool { return (r.Required || other.Present[r.Name]) && !c.Ready[r.Name] })
}

// led tells whether requests are led to a cluster, or will be once its router answers.
func (c *Candidate) led() bool { return c.Led || !c.NoEntrance }

// replaced tells whether what a cluster has of a unit is ready in another, and requests
// reach it there, if they reach it here.
func (p *placer) replaced(i int, u *Unit) bool {
	for j := range p.Candidates {
		c := &p.Candidates[j]
		reached := c.Routed || c.NoEntrance && c.Answers && !p.Candidates[i].led()
		if j != i && contains(p.wanted[j], u) && c.covers(&p.Candidates[i], u) && reached {
			return true
		}
	}
	return false
}

// unreached names a cluster that has what another is to be left for, and to which no
// requests can be led.
func (p *placer) unreached(i int) string {
	for j := range p.Candidates {
		if c := &p.Candidates[j]; j != i && len(p.wanted[j]) > 0 && p.Candidates[i].led() && c.Answers && c.NoEntrance {
			return c.Name
		}
	}
	return ""
}

// copied tells that a cluster which cannot be read has one of the copies that are everywhere,
// and was not turned away before. It may be as well as ever.
func (p *placer) copied(i int) bool {
	c := &p.Candidates[i]
	return p.Policy == Replicate && p.out[i].reason == ReasonUnknown && !c.Deselected && c.Drain == nil
}

// elsewhere tells whether all that is in a cluster is ready to serve in others, where it is wanted:
// of two that are both on their way out, neither may count on the other.
func (p *placer) elsewhere(i int) bool {
	for _, u := range p.Units {
		if !p.Candidates[i].present(&u) {
			continue
		}
		serves := false
		for j := range p.Candidates {
			c := &p.Candidates[j]
			serves = serves || j != i && contains(p.wanted[j], &u) && c.covers(&p.Candidates[i], &u) && c.Answers && !c.NoEntrance
		}
		if !serves {
			return false
		}
	}
	return true
}

// explain says in one reason what became of a candidate.
func (p *placer) explain(i int, d *Decision) (State, string, string) {
	c, f := &p.Candidates[i], p.out[i]
	switch {
	case len(d.Run) > 0 && f.leave:
		if j := p.unreached(i); j != "" {
			return Leaving, f.reason, f.message + ", and cannot be left: " + j + " has no gateway to which requests can be sent"
		}
		return Leaving, f.reason, f.message + ", and is left once it runs elsewhere"
	case !f.usable() && len(d.Run) > 0:
		return Placed, f.reason, f.message
	case !f.usable():
		return NotPlaced, f.reason, f.message
	case len(p.wanted[i]) == 0 && len(d.Run) > 0:
		return Leaving, ReasonNotNeeded, p.where(i) + ", and leaves here once that is ready"
	case len(d.Wait) > 0 && c.Waiting != "":
		return waitState(d), ReasonNotGranted, c.Waiting
	case len(d.Wait) > 0:
		room := c.Room.Clone()
		if ok, short := p.fits(&room, c, p.wanted[i]); !ok {
			return waitState(d), ReasonNoRoom, short
		}
		return waitState(d), ReasonAsked, "asked, and not answered yet"
	case len(p.wanted[i]) > 0:
		return Placed, "", ""
	}
	room := c.Room.Clone()
	if ok, short := p.fits(&room, c, p.Units); !ok && p.Policy == Failover {
		return NotPlaced, ReasonNoRoom, short
	}
	return NotPlaced, ReasonNotNeeded, p.where(i)
}

// waitState is Placed where something runs already.
func waitState(d *Decision) State {
	if len(d.Run) > 0 {
		return Placed
	}
	return Waiting
}

// where tells in which clusters the service is or is to be, without one of them.
func (p *placer) where(without int) string {
	var runs, asked []string
	for i := range p.Candidates {
		c := &p.Candidates[i]
		switch {
		case i == without || len(p.wanted[i]) == 0 && (len(c.Present) == 0 || p.out[i].leave):
		case len(c.Present) > 0 || slices.ContainsFunc(p.wanted[i], c.starts):
			runs = append(runs, c.Name)
		default:
			asked = append(asked, c.Name)
		}
	}
	switch {
	case len(asked) == 0 && len(runs) == 0:
		return "it runs in no cluster"
	case len(asked) == 0:
		return "it runs in " + strings.Join(runs, ", ")
	case len(runs) == 0:
		return "it is asked for in " + strings.Join(asked, ", ")
	}
	return "it runs in " + strings.Join(runs, ", ") + ", and is asked for in " + strings.Join(asked, ", ")
}

// starts tells whether a cluster has or has granted anything of a unit.
func (c *Candidate) starts(u Unit) bool {
	return slices.ContainsFunc(u.Replicas, func(r Replica) bool { return c.has(&r) })
}
