package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/fusioninfer/function-inferenceservice/input/v1beta1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/fleet"
)

// A Fleet is what was decided about the clusters of a service.
type Fleet struct {
	// Ask of the service. Nil where it asks for nothing.
	Ask *fleet.Ask
	// Decisions for each cluster, in the order of the placement.
	Decisions []fleet.Decision
}

// InFleet tells whether a placement is about clusters of the fleet.
func InFleet(p *v1alpha1.Placement) bool {
	return p != nil && (p.ClusterSelector != nil || slices.ContainsFunc(p.Clusters, func(c v1alpha1.Cluster) bool { return c.InferenceCluster != "" }))
}

// leavesFleet tells whether a service that is not placed in the fleet any more is
// still asking it for room, because it runs there.
func leavesFleet(w *World) bool {
	if w.Ask == nil {
		return false
	}
	for _, at := range w.Ask.Clusters {
		if w.Places[at.As] != nil {
			return true
		}
	}
	return false
}

// A fleetPlanner places one service.
type fleetPlanner struct {
	p    *Plan
	spec *v1alpha1.InferenceServiceSpec
	// placement of the spec; one of the whole service beside the XR where it has none.
	placement *v1alpha1.Placement
	gang      gangPolicy
	world     World
	units     []fleet.Unit
	shapes    map[string]fleet.Shape
	// serving are the replicas that answer requests.
	serving map[string]bool
	// members of the placement, in its order, and what is left of earlier ones.
	members []member
	// all clusters of the fleet: world has those that the tenant may know of. Of these,
	// barred are those that it may not use any more, and undecided those of which that
	// is not known.
	all               map[string]*v1alpha1.InferenceCluster
	barred, undecided map[string]bool
}

// A member is a cluster that the service may be in.
type member struct {
	target Target
	// fleet is the name of the InferenceCluster, or empty.
	fleet  string
	weight int64
	// gone tells that the placement does not name it any more.
	gone bool
}

// place decides where the service runs, and lists what runs there.
func (f *fleetPlanner) place(in *v1beta1.Input) {
	f.hide()
	f.p.Hub = f.hub(in)
	f.members = f.findMembers()
	f.units, f.shapes = f.demand()
	r := fleet.Request{
		Policy:        fleet.Policy(f.placement.Policy),
		Units:         f.units,
		Shapes:        f.shapes,
		FailoverAfter: failoverAfter(f.placement),
		Now:           f.world.Now,
	}
	for _, m := range f.members {
		r.Candidates = append(r.Candidates, f.candidate(m))
	}
	f.findTwins(r.Candidates)
	f.p.Fleet = &Fleet{Decisions: fleet.Place(r)}
	f.p.Fleet.Ask = f.ask()
	f.countUnplaced()
	f.deployAll(r.Candidates)
	f.deployNowhere()
	if f.p.Hub != nil {
		f.p.Hub.Backends = f.mostImportant(f.backends())
	}
}

// deployAll lists what runs in each cluster. Of the clusters that are asked instead of each
// other the first stands for all: no more than one of them will have the service.
func (f *fleetPlanner) deployAll(candidates []fleet.Candidate) {
	asked := false
	for i := range f.p.Fleet.Decisions {
		d := &f.p.Fleet.Decisions[i]
		if len(d.Run)+len(d.Wait)+len(d.Units) == 0 && !f.keepsRouter(&candidates[i], d) {
			continue
		}
		if f.placement.Policy == v1alpha1.PlacementFailover && len(d.Run) == 0 && len(d.Wait) > 0 && f.world.Places[d.Name] == nil {
			if asked {
				continue
			}
			asked = true
		}
		f.deploy(f.members[i], *d)
	}
}

// deployNowhere lists the replicas that are neither in any cluster nor asked for in one, beside
// the XR, where nothing is made of them: they are wanted, and somebody should know.
func (f *fleetPlanner) deployNowhere() {
	unplaced := f.unplaced()
	if len(unplaced) == 0 {
		return
	}
	all := f.p.lay(f.p.Local(), f.spec.Replicas)
	groups := all.Groups
	all.Groups, all.Endpoint, all.Idle, all.Nowhere = nil, nil, true, true
	for _, g := range groups {
		for _, r := range g.Replicas {
			if unplaced[replicaName(r.Key)] {
				all.Waiting = append(all.Waiting, r)
				f.p.Held = append(f.p.Held, Held{Key: r.Key, Reason: HeldForCluster, Message: "replicas have no cluster: the condition Placed says why"})
			}
		}
	}
	f.p.Deployments = append(f.p.Deployments, all)
}

// countUnplaced adds the replicas that no cluster takes, because none of them can be used, to
// those that wait where the rest of their unit is, or else where the service is: they are wanted.
func (f *fleetPlanner) countUnplaced() {
	unplaced := f.unplaced()
	if len(unplaced) == 0 {
		return
	}
	for _, u := range f.units {
		home := slices.IndexFunc(f.p.Fleet.Decisions, func(d fleet.Decision) bool {
			return slices.ContainsFunc(u.Replicas, func(r fleet.Replica) bool { return d.Run[r.Name] })
		})
		if home < 0 {
			home = slices.IndexFunc(f.p.Fleet.Decisions, func(d fleet.Decision) bool { return d.State == fleet.Placed })
		}
		if home < 0 {
			continue
		}
		d := &f.p.Fleet.Decisions[home]
		for _, r := range u.Replicas {
			if unplaced[r.Name] {
				d.Wait = append(d.Wait, r.Name)
			}
		}
	}
}

// unplaced are the replicas that are wanted, and neither in some cluster nor asked for there.
func (f *fleetPlanner) unplaced() map[string]bool {
	placed := map[string]bool{}
	for _, d := range f.p.Fleet.Decisions {
		for _, name := range d.Wait {
			placed[name] = true
		}
		for name := range d.Run {
			placed[name] = true
		}
	}
	unplaced := map[string]bool{}
	for _, u := range f.units {
		for _, r := range u.Replicas {
			if !placed[r.Name] {
				unplaced[r.Name] = true
			}
		}
	}
	return unplaced
}

// findTwins finds clusters that are reached in the same way as another: those where the
// service is come first, then those that are placed first.
func (f *fleetPlanner) findTwins(all []fleet.Candidate) {
	first := map[Target]string{}
	for _, there := range []bool{true, false} {
		for i := range all {
			at := f.members[i].target
			if at.ProviderConfig.Name == "" || there != (f.world.Places[at.Cluster] != nil) {
				continue
			}
			at.Cluster, at.ProviderConfig = "", f.configured(at.ProviderConfig)
			if twin, taken := first[at]; taken && !there {
				all[i].Twin = twin
				continue
			}
			first[at] = all[i].Name
		}
	}
}

// keepsRouter tells whether a service of no replicas keeps in a cluster what it has
// there besides: until that cluster is left, or can be forgotten.
func (f *fleetPlanner) keepsRouter(c *fleet.Candidate, d *fleet.Decision) bool {
	switch {
	case f.world.Places[c.Name] == nil:
		return false
	case d.Abandoned:
		return !c.Orphaned
	}
	return len(f.units) == 0 && !c.Deselected && c.Drain == nil
}

func failoverAfter(p *v1alpha1.Placement) time.Duration {
	d, err := time.ParseDuration(p.FailoverAfter) // It was validated.
	if err != nil {
		d, _ = time.ParseDuration(v1alpha1.DefaultFailoverAfter)
	}
	return d
}

// findMembers lists the clusters that the placement names or selects, and then those
// where something is that it names no longer.
func (f *fleetPlanner) findMembers() []member {
	named := f.named()
	// taken has the names in the service, and which cluster each is. What runs keeps its name.
	taken, runs := map[string]string{}, make([]bool, len(named))
	for i := range named {
		if runs[i] = f.asBefore(&named[i]); runs[i] {
			taken[named[i].target.Cluster] = named[i].fleet
		}
	}
	var all []member
	for i := range named {
		if !runs[i] && !f.call(&named[i], taken) {
			continue
		}
		taken[named[i].target.Cluster] = named[i].fleet
		all = append(all, named[i])
	}
	for _, name := range slices.Sorted(maps.Keys(f.world.Places)) {
		if _, ok := taken[name]; !ok {
			all = append(all, f.remembered(name))
		}
	}
	for i := range all {
		f.reach(&all[i])
	}
	return all
}

// named are the clusters that the placement names or selects, as it calls them.
func (f *fleetPlanner) named() []member {
	var all []member
	for _, c := range f.placement.Clusters {
		if f.barred[c.InferenceCluster] {
			continue // It is left, like one that is not named.
		}
		m := member{fleet: c.InferenceCluster, weight: 1, target: Target{Cluster: c.Name, Namespace: cmp.Or(c.Namespace, f.p.Service.Namespace)}}
		if c.Weight != nil {
			m.weight = int64(*c.Weight)
		}
		if c.ProviderConfigRef != nil {
			m.target.ProviderConfig = *c.ProviderConfigRef
		}
		all = append(all, m)
	}
	for _, name := range slices.Sorted(maps.Keys(f.world.Clusters)) {
		if !f.barred[name] && selects(f.placement.ClusterSelector, f.world.Clusters[name].Labels) {
			all = append(all, member{fleet: name, weight: 1, target: Target{Cluster: name, Namespace: f.p.Service.Namespace}})
		}
	}
	if len(f.placement.Clusters) == 0 && f.placement.ClusterSelector == nil {
		all = append(all, member{weight: 1, target: f.p.Local()})
	}
	return all
}

// call gives a cluster of the fleet another name if the one in the placement is that of another
// cluster where the service runs: under that it could neither come nor the other be left. It tells
// whether the cluster takes part. One that is not of the fleet has no name that is its own.
func (f *fleetPlanner) call(m *member, taken map[string]string) bool {
	name := m.target.Cluster
	other, is := taken[name]
	if !is {
		other, is = f.occupant(m)
	}
	if !is {
		return true
	}
	warn := func(format string, args ...any) {
		f.p.Warnings = append(f.p.Warnings, Warning{Path: "spec.placement.clusters", Message: fmt.Sprintf(format, args...)})
	}
	if m.fleet == "" {
		warn("%q is left out, because the service calls %s so where it runs: give it another name", name, other)
		return false
	}
	m.target.Cluster = m.fleet
	if _, is := taken[m.fleet]; is || f.world.Places[m.fleet] != nil {
		m.target.Cluster = Shorten(name+"-"+m.fleet, name+"/"+m.fleet, maxLabel)
	}
	warn("%s is called %q, because the service calls %s %q where it runs", m.fleet, m.target.Cluster, other, name)
	return true
}

// occupant is the cluster that has the name of a cluster of the fleet in the service, if that
// is another one.
func (f *fleetPlanner) occupant(m *member) (string, bool) {
	at := f.world.Places[m.target.Cluster]
	if at == nil || m.fleet == "" {
		return "", false
	}
	if f.world.Ask != nil {
		for _, of := range slices.Sorted(maps.Keys(f.world.Ask.Clusters)) {
			if f.world.Ask.Clusters[of].As == m.target.Cluster {
				return of, of != m.fleet
			}
		}
	}
	// It never was of the fleet: it is the same if it is reached in the same way.
	c := f.world.Clusters[m.fleet]
	if c == nil || at.Config.Name == "" {
		return "", false
	}
	ref := c.Spec.ProviderConfigRef
	ref.Default()
	return at.Config.Name, f.configured(ref) != f.configured(at.Config)
}

// configured is how a cluster is reached, as far as Objects say it: those of claims do not say of
// which kind their configuration is.
func (f *fleetPlanner) configured(ref v1alpha1.ProviderConfigRef) v1alpha1.ProviderConfigRef {
	if f.p.Service.Claimed {
		ref.Kind = ""
	}
	return ref
}

// remembered is a cluster that the placement does not name, and where something is.
// The last ask tells which cluster of the fleet it is; one that was never of the fleet,
// or the place beside the XR, is left like any other.
func (f *fleetPlanner) remembered(name string) member {
	at := f.world.Places[name]
	m := member{gone: true, target: Target{Cluster: name, Namespace: cmp.Or(at.Namespace, f.p.Service.Namespace), ProviderConfig: at.Config}}
	if f.world.Ask == nil {
		return m
	}
	for _, of := range slices.Sorted(maps.Keys(f.world.Ask.Clusters)) {
		if f.world.Ask.Clusters[of].As == name {
			m.fleet = of
			// A selector may still select it, for as long as nobody has said which clusters there are.
			m.gone = f.world.Answered || f.placement.ClusterSelector == nil
			m.target.Namespace = f.world.Ask.Clusters[of].Namespace
		}
	}
	return m
}

func selects(s *metav1.LabelSelector, l map[string]string) bool {
	if s == nil {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && selector.Matches(labels.Set(l))
}

// asBefore gives a cluster of the fleet the name and the namespace under which the
// service runs there already, and tells whether it does. Another name would make everything
// there anew, on room that was granted once.
func (f *fleetPlanner) asBefore(m *member) bool {
	if f.world.Ask == nil || m.fleet == "" {
		return false
	}
	at, asked := f.world.Ask.Clusters[m.fleet]
	if !asked || f.world.Places[at.As] == nil {
		return false
	}
	m.target.Cluster, m.target.Namespace = at.As, at.Namespace
	return true
}

// reach finds the provider configuration of a cluster of the fleet. What runs there
// keeps the one that it was made with; else it is the cluster's own, or, while that
// cannot be read, the one of the last ask.
func (f *fleetPlanner) reach(m *member) {
	if m.fleet == "" {
		return
	}
	asked := fleet.AskedCluster{}
	if f.world.Ask != nil {
		asked = f.world.Ask.Clusters[m.fleet]
	}
	at, c := f.world.Places[m.target.Cluster], f.world.Clusters[m.fleet]
	switch {
	case at != nil && at.Config.Name != "" && (asked.As == m.target.Cluster || c == nil):
		m.target.ProviderConfig = at.Config
		m.target.Namespace = cmp.Or(at.Namespace, m.target.Namespace)
	case c != nil:
		m.target.ProviderConfig = c.Spec.ProviderConfigRef
		m.target.ProviderConfig.Default()
	case asked.As == m.target.Cluster:
		m.target.ProviderConfig = v1alpha1.ProviderConfigRef{Kind: asked.ConfigKind, Name: asked.Config}
	}
}

// candidate is a cluster as the placement sees it.
func (f *fleetPlanner) candidate(m member) fleet.Candidate {
	c := fleet.Candidate{Name: m.target.Cluster, Weight: m.weight, Deselected: m.gone, Answers: f.p.Router == nil, Routed: true}
	if at := f.world.Places[m.target.Cluster]; at != nil {
		c.Present, c.Ready, c.Orphaned = at.Present, at.Ready, at.Orphaned
		c.Answers = c.Answers || at.RouterReady
	}
	// A service that leaves the fleet leaves its route as well.
	if f.p.Hub != nil && InFleet(f.spec.Placement) {
		backend := hubName(f.p.Service, m.target.Cluster)
		c.NoEntrance = f.gateway(m) == nil
		c.Routed, c.Led = f.world.Routed[backend], f.world.Led[backend]
	}
	c.Routed = c.Routed && c.Answers && !c.NoEntrance
	if m.fleet == "" {
		c.Uncounted = true
		return c
	}
	if f.world.Ask != nil {
		c.Asked = map[string]bool{}
		for _, u := range f.world.Ask.Clusters[m.fleet].Units {
			c.Asked[u.Name] = true
		}
	}
	ic := f.world.Clusters[m.fleet]
	switch {
	case !f.world.Answered:
		c.Unknown = "the clusters of the fleet are not known yet"
		return c
	case ic == nil:
		c.Unknown = "there is no InferenceCluster of that name"
		return c
	case f.undecided[m.fleet]:
		c.Unknown = "it is not known yet whether it allows namespace " + f.p.Service.Namespace
	case len(ic.Status.Pools) == 0:
		c.Unknown = "it has not said yet what room it has"
	}
	c.NotAllowed = f.barred[m.fleet]
	readCluster(&c, ic)
	f.readGranted(&c, ic, m.fleet)
	return c
}

// readGranted reads what a cluster says to the service.
func (f *fleetPlanner) readGranted(c *fleet.Candidate, ic *v1alpha1.InferenceCluster, name string) {
	for i := range ic.Status.Waiting {
		if w := &ic.Status.Waiting[i]; (fleet.Service{Namespace: w.Namespace, Name: w.Name, UID: w.UID}) == f.service() {
			c.Waiting = w.Message
		}
	}
	// What is not asked for was not granted: the cluster may have given it away already.
	a := f.allocation(ic)
	if a == nil || f.world.Ask == nil {
		return
	}
	asked := f.world.Ask.Clusters[name]
	c.Granted = asked.Granted(a.Serial, a.Replicas)
	if a.Unfit && c.Closed == "" {
		c.Closed = fleet.ChangedPods
	}
}

// allocation is what a cluster granted to the service, or nil.
func (f *fleetPlanner) allocation(ic *v1alpha1.InferenceCluster) *v1alpha1.Allocation {
	for i := range ic.Status.Allocations {
		if a := &ic.Status.Allocations[i]; (fleet.Service{Namespace: a.Namespace, Name: a.Name, UID: a.UID}) == f.service() {
			return a
		}
	}
	return nil
}

func (f *fleetPlanner) service() fleet.Service {
	return fleet.Service{Namespace: f.p.Service.Namespace, Name: f.p.Service.Name, UID: f.p.Service.UID}
}

// readCluster reads an InferenceCluster into a candidate.
func readCluster(c *fleet.Candidate, ic *v1alpha1.InferenceCluster) {
	for _, t := range ic.Spec.Taints {
		switch t.Effect {
		case v1alpha1.TaintDrain:
			c.Drain = &t.Reason
		case v1alpha1.TaintDead:
			c.Dead = &t.Reason
		}
	}
	if since := ic.Status.UnreachableSince; !since.IsZero() {
		c.Unreachable = &since.Time
	}
	readOpen(c, ic)
	for _, p := range ic.Status.Pools {
		pool := fleet.Pool{Name: p.Name, Labels: p.NodeSelector, Nodes: int64(p.Nodes), Total: fleet.Amounts(p.Allocatable)}
		for _, n := range p.Free {
			pool.Left = append(pool.Left, fleet.Nodes{Count: int64(n.Nodes), Left: fleet.Amounts(n.Resources)})
		}
		c.Room.Pools = append(c.Room.Pools, pool)
	}
}

// readOpen reads whether a cluster grants anything new. Where that is Unknown, its spec is
// refused or its reconcile fails: nobody answers there, and the room of its status is of the
// past.
func readOpen(c *fleet.Candidate, ic *v1alpha1.InferenceCluster) {
	for _, cond := range ic.Status.Conditions {
		if cond.Type == fleet.ConditionOpen && cond.Status != metav1.ConditionTrue {
			c.Closed = cmp.Or(cond.Message, "it does not say that it grants anything new")
		}
	}
}

// demand lists the units of the service and the shapes of their pods. A group is never
// split; the replicas of a service without prefill and decode are, where they are spread.
func (f *fleetPlanner) demand() ([]fleet.Unit, map[string]fleet.Shape) {
	shapes := map[string]fleet.Shape{}
	pods := make([]map[string]int64, len(f.p.Roles))
	for i, r := range f.p.Roles {
		pods[i] = map[string]int64{}
		// The names follow from the role, so that one role's edit renames no other shape.
		add := func(name string, t *PodTemplate, requests corev1.ResourceList, n int64) {
			if n > 0 {
				shapes[r.Name+"/"+name] = fleet.Shape{Requests: fleet.Amounts(requests), NodeSelector: t.Spec.NodeSelector}
				pods[i][r.Name+"/"+name] += n
			}
		}
		add("leader", &r.Leader, r.leaderRequests, 1)
		add("worker", &r.Worker, r.workerRequests, int64(r.Nodes)-1)
	}
	f.serving = map[string]bool{}
	split := f.placement.Policy == v1alpha1.PlacementSpread && !f.p.Service.Grouped &&
		!hasType(f.spec, v1alpha1.ComponentTypePrefiller) && !hasType(f.spec, v1alpha1.ComponentTypeDecoder)
	groups := int32(1)
	if f.spec.Replicas != nil {
		groups = *f.spec.Replicas
	}
	var units []fleet.Unit
	for g := range groups {
		whole := fleet.Unit{Name: index(g)}
		for i, r := range f.p.Roles {
			minimum := f.required(r)
			for j := range r.Replicas {
				replica := fleet.Replica{Name: scoped(f.p.Service, g, "/", r.Name, index(j)), Pods: pods[i], Required: j < minimum}
				f.serving[replica.Name] = r.Type != v1alpha1.ComponentTypePrefiller
				if split {
					replica.Required = false
					units = append(units, fleet.Unit{Name: replica.Name, Replicas: []fleet.Replica{replica}})
					continue
				}
				whole.Replicas = append(whole.Replicas, replica)
			}
		}
		if !split {
			units = append(units, whole)
		}
	}
	return units, shapes
}

// required is how many replicas of a role have to fit together: those of the gang. Without
// one it is none, but for one each of prefill and decode, which are of no use alone.
func (f *fleetPlanner) required(r *Role) int32 {
	switch {
	case f.gang.mode != v1alpha1.GangNone:
		return f.gang.minimum(r)
	case hasType(f.spec, v1alpha1.ComponentTypePrefiller) && hasType(f.spec, v1alpha1.ComponentTypeDecoder):
		return min(1, r.Replicas)
	}
	return 0
}

// ask is what the service wants of the clusters of the fleet.
func (f *fleetPlanner) ask() *fleet.Ask {
	a := &fleet.Ask{
		UID: f.p.Service.UID, Namespace: f.p.Service.Namespace, Name: f.p.Service.Name, Since: f.world.Created,
		Shapes: f.shapes, Clusters: map[string]fleet.AskedCluster{},
	}
	for i, d := range f.p.Fleet.Decisions {
		m := f.members[i]
		if m.fleet == "" || len(d.Units) == 0 {
			continue
		}
		at := fleet.AskedCluster{
			As: m.target.Cluster, Namespace: m.target.Namespace, Units: d.Units, Together: d.Together,
			ConfigKind: m.target.ProviderConfig.Kind, Config: m.target.ProviderConfig.Name,
		}
		if p := f.world.Places[m.target.Cluster]; p != nil {
			for _, u := range d.Units {
				for _, r := range u.Replicas {
					if p.Present[r.Name] {
						at.Held = append(at.Held, r.Name)
					}
				}
			}
		}
		a.Clusters[m.fleet] = at
	}
	a.Renew(f.world.Ask, f.answered())
	return a
}

// answered is the highest serial that clusters have answered.
func (f *fleetPlanner) answered() int64 {
	var highest int64
	for _, ic := range f.all {
		if a := f.allocation(ic); a != nil {
			highest = max(highest, a.Serial)
		}
	}
	return highest
}

// deploy lists what runs in one cluster: of each group those replicas that were granted
// or are there, and those that wait.
func (f *fleetPlanner) deploy(m member, d fleet.Decision) {
	waiting := map[string]bool{}
	for _, name := range d.Wait {
		waiting[name] = true
	}
	all := f.p.lay(m.target, f.spec.Replicas)
	all.Idle, all.Leaving, all.Abandoned = !hasRun(&d) && f.world.Places[m.target.Cluster] == nil, d.State == fleet.Leaving, d.Abandoned
	var some []Group
	for _, g := range all.Groups {
		var run []Replica
		for _, r := range g.Replicas {
			name := replicaName(r.Key)
			switch {
			case d.Run[name]:
				run = append(run, r)
			case waiting[name]:
				all.Waiting = append(all.Waiting, r)
			}
		}
		if g.Replicas = run; len(run) == 0 {
			continue
		}
		all.gather(f.p, &g, f.gang)
		some = append(some, g)
	}
	all.Groups = some
	for _, r := range all.Waiting {
		f.p.Held = append(f.p.Held, Held{Key: r.Key, Reason: HeldForRoom, Message: "replicas wait for room: " + d.Message})
	}
	f.p.Deployments = append(f.p.Deployments, all)
}

// replicaName is how the fleet calls a replica: what its key ends with.
func replicaName(key string) string {
	_, local := SplitKey(key)
	_, name, _ := strings.Cut(local, "/")
	return name
}
