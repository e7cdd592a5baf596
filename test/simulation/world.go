package simulation

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/structpb"
)

var (
	serviceKind   = kindOf{"fusioninfer.io/v1alpha1", "InferenceService"}
	clusterKind   = kindOf{"fusioninfer.io/v1alpha1", "InferenceCluster"}
	configMapKind = kindOf{"v1", "ConfigMap"}
)

// epoch is when a simulation starts.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Options are those of a simulation.
type Options struct {
	// Seed decides everything that happens.
	Seed uint64
	// Steps is the number of steps with random events.
	Steps int
	// Without are random events that do not happen, and invariants that are not checked.
	Without map[string]bool
	// Trace keeps what happens, for the message of a violation.
	Trace bool
	// Sleepers has half of the services stop while nobody uses them.
	Sleepers bool
	// Quotas gives each namespace a quota and a priority in each cluster.
	Quotas bool
	// Here has services run in the control plane's own cluster.
	Here bool
	// Kueue has Kueue admit what runs in some clusters.
	Kueue bool
}

// A World is a control plane with its clusters, services, and the function.
type World struct {
	Options

	// Cost is what the simulation has cost so far.
	Cost Cost

	function   Function
	rand       *rand.Rand
	now        time.Time
	server     *server
	crossplane *crossplane
	provider   *provider
	remotes    map[string]*remote
	// fleet are the remotes in the order of their names.
	fleet []*remote
	// here is the control plane's own cluster, or nil if no service runs there.
	here     *remote
	services []*user
	made     int
	// objects are the Objects of each object of a remote cluster, children those that a controller owns.
	objects  map[remoteTask]map[name]bool
	children map[string]map[task]bool
	// orphans are objects whose controller is gone.
	orphans []task
	alive   map[string]bool
	// routes are HTTPRoutes that the control plane's gateway has not read yet, and accepted those by which it sends requests.
	routes   []name
	accepted map[name]document
	// forgets tells that nobody restarts, so that old changes need not be kept.
	forgets bool
	// rolls tells that requests have to be answered all the time: see checkAnswers.
	rolls bool
	// calm tells that there are no random events any more.
	calm bool
	told map[string]map[name][]pod
	// answered is what clusters say that they have reserved, by the ConfigMaps with their answers.
	answered  map[name]map[grantOf]bool
	events    []string
	violation *ViolationError
	served    map[string]bool
	// wasReached are the clusters that requests reached before an apply.
	wasReached map[string]bool
	// selects tells that all services select a pool. If only some did, first-fit could miss room that there is.
	selects bool
	inputs  map[kindOf]document
	fatals  map[xrKey]string
	// answers are the last ones of the function. An answer with the same bytes is decoded once.
	answers map[xrKey]answer
}

type remoteTask struct {
	cluster string
	task    task
}

// A ViolationError is an invariant that did not hold.
type ViolationError struct {
	Invariant, Message string
	Seed               uint64
	// Trace are the last events about what the violation is about.
	Trace []string
}

// Error has the seed, what did not hold, and what happened before.
func (v *ViolationError) Error() string {
	return fmt.Sprintf("seed %d: %s: %s\n%s", v.Seed, v.Invariant, v.Message, strings.Join(v.Trace, "\n"))
}

// New returns a world without clusters and services.
func New(o Options, fn Function) *World {
	w := &World{
		Options: o, function: fn, rand: rand.New(rand.NewPCG(o.Seed, 1)), now: epoch, //nolint:gosec // A simulation has to be repeatable.
		remotes: map[string]*remote{}, objects: map[remoteTask]map[name]bool{}, children: map[string]map[task]bool{}, alive: map[string]bool{},
		told: map[string]map[name][]pod{}, answered: map[name]map[grantOf]bool{}, fatals: map[xrKey]string{}, answers: map[xrKey]answer{}, accepted: map[name]document{},
	}
	w.Cost.reset()
	w.server = newServer(func() time.Time { return w.now }, w.changed)
	w.crossplane, w.provider = newCrossplane(w), newProvider(w)
	w.inputs = map[kindOf]document{
		serviceKind: newDocument(fields{
			"apiVersion": "fn.fusioninfer.io/v1alpha1", "kind": "Input", "missingKinds": "Skip",
			"fleet":   fields{"parentRefs": list[any](fields{"name": "fleet-gateway", "namespace": "gateway-system"})},
			"gateway": fields{"parentRefs": list[any](fields{"name": "inference-gateway", "namespace": "gateway-system"})},
			"routes":  fields{"allowedParentRefs": list[any](fields{"namespace": "gateway-system"}), "allowedHostnames": list("*.example.com")},
		}),
		clusterKind: newDocument(fields{"apiVersion": "fn.fusioninfer.io/v1alpha1", "kind": "ClusterInput"}),
	}
	if w.Sleepers {
		w.inputs[serviceKind] = with(w.inputs[serviceKind], structpb.NewStringValue("http://prometheus:9090"), "scaling", "prometheus", "serverAddress")
	}
	definitions := [][2]string{{"objects.kubernetes.m.crossplane.io", "v1alpha1"}, {"httproutes.gateway.networking.k8s.io", "v1"}}
	if w.Sleepers {
		definitions = append(definitions, [2]string{"inferenceroles.fusioninfer.io", "v1alpha1"})
	}
	for _, d := range definitions {
		w.define(d[0], d[1])
	}
	return w
}

// define makes the definition of a kind.
func (w *World) define(n, version string) {
	w.server.create(newDocument(fields{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": fields{"name": n},
		"spec":   fields{"versions": list[any](fields{"name": version, "served": true})},
		"status": fields{"conditions": list[any](fields{"type": "Established", "status": "True"})},
	}))
}

func (w *World) input(k kindOf) document { return w.inputs[k] }

// trace notes an event about something.
func (w *World) trace(about fmt.Stringer, format string, args ...any) {
	if w.Trace {
		w.events = append(w.events, fmt.Sprintf("%7.0fs %-40s %s", w.now.Sub(epoch).Seconds(), about, fmt.Sprintf(format, args...)))
	}
}

// A subject is what an event is about.
type subject string

func (s subject) String() string { return string(s) }

// violate notes that an invariant does not hold. About are texts of the events that belong to it.
func (w *World) violate(invariant string, about []string, format string, args ...any) {
	w.Cost.Violations[invariant]++
	if w.violation != nil || w.Without[invariant] {
		return
	}
	v := &ViolationError{Invariant: invariant, Message: fmt.Sprintf(format, args...), Seed: w.Seed}
	for _, e := range slices.Backward(w.events) {
		if len(v.Trace) < 120 && slices.ContainsFunc(about, func(s string) bool { return strings.Contains(e, s) }) {
			v.Trace = append(v.Trace, e)
		}
	}
	slices.Reverse(v.Trace)
	w.violation = v
}

// fatal notes a Fatal result.
func (w *World) fatal(xr xrKey, message string) {
	w.fatals[xr] = message
	if strings.Contains(message, "internal error") {
		w.violate("internal error", []string{xr.String()}, "%s: %s", xr, message)
	}
}

// inject fails some writes.
func (w *World) inject(xr xrKey) error {
	if !w.calm && !w.Without["apply-failure"] && w.rand.IntN(300) == 0 {
		w.trace(xr, "a write fails")
		return errors.New("500: the server is overloaded")
	}
	return nil
}

// changed keeps the indexes up to date, and tells the oracle.
func (w *World) changed(c change) {
	o := c.either()
	w.Cost.Writes++
	w.changedOwner(c)
	w.changedHere(c)
	switch o.kind {
	case objectKind:
		w.changedObject(c)
	case routeKind:
		if c.current == nil {
			delete(w.accepted, c.old.name)
		}
		if c.current != nil && c.current.generation != observedRoute(c.current) && !slices.Contains(w.routes, o.name) {
			w.routes = append(w.routes, o.name)
		}
	case configMapKind:
		if c.current != nil {
			w.noteAnswers(c.current)
		}
		switch {
		case c.old == nil:
			w.trace(o, "created")
		case c.current == nil:
			w.trace(o, "gone")
		default:
			w.trace(o, "written: version %d", c.current.version)
		}
	}
}

// changedOwner keeps who owns what, and who has lost its owner.
func (w *World) changedOwner(c change) {
	o := c.either()
	t := task{o.kind, o.name}
	if c.old == nil {
		w.alive[o.uid] = true
		if o.owner != "" {
			if w.children[o.owner] == nil {
				w.children[o.owner] = map[task]bool{}
			}
			w.children[o.owner][t] = true
			if !w.alive[o.owner] {
				w.orphans = append(w.orphans, t)
			}
		}
	}
	if c.current == nil {
		delete(w.alive, o.uid)
		delete(w.children[o.owner], t)
		w.orphans = append(w.orphans, sortedTasks(w.children[o.uid])...)
		delete(w.children, o.uid)
	}
}

func (w *World) changedObject(c change) {
	o := c.either()
	k, n := identify(object(o.body, "spec", "forProvider", "manifest"))
	rt := remoteTask{text(o.body, "spec", "providerConfigRef", "name"), task{k, n}}
	if w.objects[rt] == nil {
		w.objects[rt] = map[name]bool{}
	}
	if c.current == nil {
		delete(w.objects[rt], o.name)
	} else {
		w.objects[rt][o.name] = true
	}
	w.checkObject(c, rt)
}

func sortedTasks(of map[task]bool) []task {
	all := make([]task, 0, len(of))
	for t := range of {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b task) int {
		if c := strings.Compare(a.kind.kind, b.kind.kind); c != 0 {
			return c
		}
		return compareNames(a.name, b.name)
	})
	return all
}

// reported tells the provider that an object of a remote cluster has changed.
func (w *World) reported(r *remote, t task) {
	for n := range w.objects[remoteTask{r.name, t}] {
		w.provider.note(objectKind, n)
	}
}

// observedRoute is the generation of a route that all of its gateways have accepted.
func observedRoute(o *stored) int64 {
	for _, p := range items(o.body, "status", "parents") {
		for _, c := range items(p, "conditions") {
			return int64(number(c, "observedGeneration"))
		}
	}
	return 0
}

// acceptRoute lets the control plane's gateway read a route.
func (w *World) acceptRoute() bool {
	if len(w.routes) == 0 {
		return false
	}
	n := w.routes[0]
	w.routes = w.routes[1:]
	o := w.server.get(routeKind, n)
	if o == nil {
		return true
	}
	if xr := w.ownerOf(o); xr != nil {
		before, answers := w.reached(xr), w.withoutRecovering(w.answersBefore())
		w.accepted[n] = o.body
		w.trace(o, "is accepted, and leads to %v", w.routedTo(n))
		w.checkReached(xr, before, "its new route is accepted")
		w.checkAnswers(answers, "its new route is accepted")
	}
	w.server.setStatus(routeKind, n, newDocument(parentsStatus(o.body, int(o.generation))))
	return true
}

// collectOrphan lets Kubernetes delete an object whose controller is gone.
func (w *World) collectOrphan() bool {
	if len(w.orphans) == 0 {
		return false
	}
	i := w.rand.IntN(len(w.orphans))
	t := w.orphans[i]
	w.orphans = slices.Delete(w.orphans, i, i+1)
	if o := w.server.get(t.kind, t.name); o != nil && o.owner != "" && !w.alive[o.owner] {
		w.server.delete(t.kind, t.name)
	}
	return true
}

// An action lets one part of the control plane act. It returns false if there is nothing to do.
type action struct {
	weight int
	act    func() bool
}

func (w *World) actions() []action {
	return []action{
		{30, func() bool { return w.observe(w.crossplane.cache, w.server.kinds, w.crossplane.observe) }},
		{25, w.crossplane.next},
		{12, func() bool {
			return w.observe(w.provider.cache, []kindOf{objectKind, collectionKind}, w.provider.observe)
		}},
		{25, w.provider.next},
		{14, func() bool { return len(w.fleet) > 0 && w.fleet[w.rand.IntN(len(w.fleet))].next() }},
		{3, w.acceptRoute},
		{3, w.collectOrphan},
	}
}

// observe shows a cache some of what it has not seen of a random kind.
func (w *World) observe(c *cache, kinds []kindOf, show func(kindOf, int)) bool {
	var behind []kindOf
	for _, k := range kinds {
		if c.behind(k) > 0 {
			behind = append(behind, k)
		}
	}
	if len(behind) == 0 {
		return false
	}
	k := behind[w.rand.IntN(len(behind))]
	n := c.behind(k)
	if w.rand.IntN(2) == 0 {
		n = 1 + w.rand.IntN(n)
	}
	show(k, n)
	if w.forgets {
		w.server.forget(k, w.readers(k)...)
	}
	return true
}

// readers are the caches that show a kind.
func (w *World) readers(k kindOf) []*cache {
	if k == objectKind || k == collectionKind {
		return []*cache{w.crossplane.cache, w.provider.cache}
	}
	return []*cache{w.crossplane.cache}
}

// step lets some time pass.
func (w *World) step() {
	w.now = w.now.Add(time.Duration(1+w.rand.IntN(10_000)) * time.Millisecond)
	w.crossplane.tick()
	if w.rand.IntN(4) == 0 {
		w.chaos()
	}
	actions, sum := w.actions(), 0
	for _, a := range actions {
		sum += a.weight
	}
	for range 8 + w.rand.IntN(32) {
		at := w.rand.IntN(sum)
		for _, a := range actions {
			if at -= a.weight; at < 0 {
				a.act()
				break
			}
		}
	}
}

// settle lets everything act until nothing is left to do.
func (w *World) settle() {
	for range 1_000_000 {
		acted := false
		for _, a := range w.actions() {
			for i := 0; i < 1+a.weight/5 && a.act(); i++ {
				acted = true
			}
		}
		for _, r := range w.fleet {
			acted = r.next() || acted
		}
		if !acted || w.violation != nil {
			return
		}
	}
	w.violate("quiet", []string{""}, "the fleet never gets quiet")
}
