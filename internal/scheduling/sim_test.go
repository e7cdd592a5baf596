package scheduling

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity/capacitytest"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
)

// fleets is the number of fleets that TestFleets runs, each with some hundred decisions.
var fleets = flag.Int("fleets", 50, "how many random fleets to run")

// firstFleet is the number of the first fleet, so that several processes can share many fleets.
var firstFleet = flag.Int("first", 0, "the number of the first random fleet")

// simNow is the time of everything in a sim.
var simNow = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// A trouble is what can be wrong with a cluster.
type trouble int

const (
	healthy trouble = iota
	drained
	onHold
	deselected
	// unreachable is out of reach for longer than FailoverAfter, and brieflyUnreachable for a
	// shorter time.
	unreachable
	brieflyUnreachable
	// unreadable cannot be read by services. removed is gone, with its ledger.
	unreadable
	removed
	// abandoned never recovers.
	abandoned
	troubles
)

// leaves tells whether services leave a cluster with that trouble. stays tells whether they
// neither come nor leave.
func (t trouble) leaves(p v1alpha1.PlacementPolicy) bool {
	return t == drained || t == deselected || t == abandoned || t == unreachable && p != v1alpha1.PlacementReplicate
}

func (t trouble) stays(p v1alpha1.PlacementPolicy) bool { return t != healthy && !t.leaves(p) }

// A sim is a fleet with its services. A service reads what clusters decided some time ago.
type sim struct {
	t *testing.T
	// rand decides what happens, and order who acts first.
	rand, order *rand.Rand
	seed        uint64
	clusters    []*simCluster
	services    []*simService
	// delay is how many rounds old may be what a service reads.
	delay int
	// recovered tells that a cluster has recovered. What moved meanwhile may be in two
	// clusters, until it leaves one of them.
	recovered bool
	// counts what happened.
	counts simCounts
}

type simCounts struct{ started, outdated, moved, forgotten, calls int }

type simCluster struct {
	name   string
	free   capacity.Free
	result reservation.Result
	// noGateway tells that the cluster's entrypoint is not known.
	noGateway bool
	// history has all results so far, as the cluster's status had them.
	history []reservation.Result
	trouble trouble
}

type simService struct {
	uid    string
	policy v1alpha1.PlacementPolicy
	// groups are the current ones of allGroups.
	groups, allGroups []reservation.ReplicaGroup
	request           reservation.CapacityRequest
	present, ready    map[string]map[key.ReplicaID]bool
	// policyChanged tells that the policy was another one before. The service may then have to
	// move.
	policyChanged bool
	// hasFleetRoute tells that there is a fleet route. receivesTraffic are the clusters to
	// which it sent requests after the last round.
	hasFleetRoute   bool
	receivesTraffic map[string]bool
	// rand decides what the service reads, the same in every order.
	rand *rand.Rand
}

func newSim(t *testing.T, seed, order uint64) *sim {
	t.Helper()
	s := &sim{t: t, seed: seed, rand: rand.New(rand.NewPCG(seed, 1)), order: rand.New(rand.NewPCG(seed, 2+order))}
	for i := range 1 + s.rand.IntN(5) {
		c := &simCluster{name: fmt.Sprintf("c%d", i), free: capacity.Free{Pools: []capacity.Pool{nodes("a", int64(s.rand.IntN(12)), 8)}}}
		c.noGateway = s.rand.IntN(6) == 0
		if s.rand.IntN(3) == 0 {
			c.free.Pools = append(c.free.Pools, nodes("b", int64(s.rand.IntN(6)), 4))
		}
		s.add(c)
	}
	for i := range 1 + s.rand.IntN(12) {
		v := &simService{
			uid: fmt.Sprintf("u%02d", i), policy: []v1alpha1.PlacementPolicy{v1alpha1.PlacementReplicate, v1alpha1.PlacementSpread, v1alpha1.PlacementFailover}[s.rand.IntN(3)], hasFleetRoute: s.rand.IntN(2) == 0,
			present: map[string]map[key.ReplicaID]bool{}, ready: map[string]map[key.ReplicaID]bool{}, receivesTraffic: map[string]bool{}, rand: rand.New(rand.NewPCG(seed, 100+uint64(i))),
		}
		if v.policy != v1alpha1.PlacementSpread && s.rand.IntN(3) == 0 {
			v.allGroups = []reservation.ReplicaGroup{workers(1 + s.rand.IntN(5))}
			v.groups = v.allGroups
			s.services = append(s.services, v)
			continue
		}
		single := v.policy == v1alpha1.PlacementSpread && s.rand.IntN(2) == 0
		for g := range 1 + s.rand.IntN(3) {
			name := strconv.Itoa(g)
			if single {
				v.allGroups = append(v.allGroups, reservation.ReplicaGroup{Name: key.GroupID(name), Replicas: []reservation.ReplicaRequest{{Name: key.ReplicaID(name), Pods: map[string]int64{"small": 1 + s.rand.Int64N(4)}}}})
				continue
			}
			g := group(name, 1+s.rand.Int64N(2), 1+s.rand.Int64N(3))
			if s.rand.IntN(2) == 0 {
				g.Replicas = append(g.Replicas, reservation.ReplicaRequest{Name: key.ReplicaID(name + "/decode/1"), Pods: map[string]int64{"small": 1}})
			}
			v.allGroups = append(v.allGroups, g)
		}
		v.groups = v.allGroups
		s.services = append(s.services, v)
	}
	return s
}

// workers returns the group of a service with one role and without a gang: no replica requires
// another.
func workers(n int) reservation.ReplicaGroup {
	g := reservation.ReplicaGroup{Name: "0"}
	for i := range n {
		g.Replicas = append(g.Replicas, reservation.ReplicaRequest{Name: key.ReplicaID("worker/" + strconv.Itoa(i)), Pods: map[string]int64{"large": 1}})
	}
	return g
}

func (s *sim) add(c *simCluster) {
	c.reserve(nil)
	s.clusters = append(s.clusters, c)
}

func (c *simCluster) reserve(requests []reservation.CapacityRequest) {
	notSchedulable := map[trouble]string{drained: "drained", onHold: "on hold", unreachable: "out of reach", brieflyUnreachable: "out of reach", abandoned: "abandoned"}[c.trouble]
	if len(c.history) == 0 {
		notSchedulable = "no ledger yet"
	}
	c.result = reservation.Reserve(reservation.Input{Cluster: c.name, Free: c.free, Ledger: c.result.Ledger, Requests: requests, NotSchedulable: notSchedulable, Now: simNow})
	c.history = append(c.history, c.result)
}

// reserved tells whether a cluster has reserved a replica of a service.
func (c *simCluster) reserved(uid string, replica key.ReplicaID) bool {
	_, has := generations(&c.result, reservation.ServiceID{UID: uid})[replica]
	return has
}

// generations returns the generation of each grant that a cluster has made to a service.
func generations(result *reservation.Result, id reservation.ServiceID) map[key.ReplicaID]int64 {
	all := map[key.ReplicaID]int64{}
	for i := range result.Services {
		if s := &result.Services[i]; s.ServiceID == id {
			for _, g := range s.Grants {
				for _, r := range g.Replicas {
					all[r] = g.Generation
				}
			}
		}
	}
	return all
}

// setTrouble changes the trouble of a cluster.
func (s *sim) setTrouble(c *simCluster, t trouble) {
	if c.trouble == abandoned {
		return
	}
	if c.trouble != healthy {
		s.recovered = true
	}
	if c.trouble = t; t == removed {
		// The ledger is gone. What runs there stays.
		c.history, c.result = nil, reservation.Result{}
	}
}

// round lets every service and cluster act once, in some order.
func (s *sim) round() {
	for _, i := range s.order.Perm(len(s.services)) {
		s.act(s.services[i])
	}
	for _, v := range s.services {
		v.becomeReady(s.rand)
	}
	requests := make([]reservation.CapacityRequest, 0, len(s.services))
	for _, i := range s.order.Perm(len(s.services)) {
		requests = append(requests, s.services[i].request)
	}
	for _, c := range s.clusters {
		if c.trouble != removed {
			c.reserve(requests)
		}
	}
	s.checkCapacity()
}

// becomeReady makes some of the replicas that exist ready.
func (v *simService) becomeReady(random *rand.Rand) {
	for _, c := range slices.Sorted(maps.Keys(v.present)) {
		ready := map[key.ReplicaID]bool{}
		for _, r := range slices.Sorted(maps.Keys(v.present[c])) {
			if v.ready[c][r] || random.IntN(2) == 0 {
				ready[r] = true
			}
		}
		v.ready[c] = ready
	}
}

// scale changes how many groups a service has, and how many replicas one of them has.
func (v *simService) scale(random *rand.Rand) {
	v.groups = slices.Clone(v.allGroups[:random.IntN(len(v.allGroups)+1)])
	for i, g := range v.groups {
		if len(g.Replicas) > 2 && random.IntN(2) == 0 {
			v.groups[i].Replicas = g.Replicas[:2]
		}
	}
	if len(v.groups) > 0 && random.IntN(32) == 0 {
		v.policy, v.policyChanged = []v1alpha1.PlacementPolicy{v1alpha1.PlacementReplicate, v1alpha1.PlacementSpread, v1alpha1.PlacementFailover}[random.IntN(3)], true
	}
}

// candidate returns a cluster as a service reads it.
func (s *sim) candidate(v *simService, c *simCluster) Candidate {
	m := Candidate{Name: c.name, Weight: 1, ReceivesTraffic: true, RouterReady: true, Present: v.present[c.name], Ready: v.ready[c.name], Requested: map[key.GroupID]bool{}}
	if v.hasFleetRoute {
		m.MayReceiveTraffic, m.ReceivesTraffic = v.receivesTraffic[c.name], v.receivesTraffic[c.name]
	}
	requested := v.request.Clusters[c.name]
	for _, g := range requested.Groups {
		m.Requested[g.Name] = true
	}
	why := "a test"
	if len(c.history) == 0 {
		m.Unknown, m.Ready = why, nil
		return m
	}
	switch c.trouble {
	case unreadable, removed:
		m.Unknown, m.Ready = why, nil
		return m
	case unreachable, brieflyUnreachable:
		since := simNow.Add(-time.Second)
		if c.trouble == unreachable {
			since = simNow.Add(-time.Hour)
		}
		m.Unreachable, m.Ready = &since, nil
	case drained:
		m.StopPolicy = v1alpha1.StopDrain
	case onHold:
		m.StopPolicy, m.NotSchedulable = v1alpha1.StopHold, "on hold"
	case deselected:
		m.Deselected = true
	case abandoned:
		m.StopPolicy, m.Ready, m.Orphaned = v1alpha1.StopAbandon, nil, v.rand.IntN(2) == 0
	case healthy, troubles:
	}
	// The cluster has answered what was requested before this round.
	m.Evaluated, m.AskedFor = v.rand.IntN(3) == 0, time.Duration(v.rand.IntN(3))*RequestTimeout
	result := c.history[max(0, len(c.history)-1-v.rand.IntN(s.delay+1))]
	m.Free = result.Free
	// Requests or nodes may be unknown for a moment.
	if s.delay > 0 && v.rand.IntN(6) == 0 {
		m.NotSchedulable = why
	}
	if v.hasFleetRoute && c.noGateway {
		m.NoEntrypoint, m.ReceivesTraffic, m.MayReceiveTraffic = true, false, false
	}
	granted := generations(&result, reservation.ServiceID{UID: v.uid})
	m.Reserved = requested.Reserved(granted)
	s.counts.outdated += len(granted) - len(m.Reserved)
	return m
}

func (s *sim) act(v *simService) {
	problem := Problem{Policy: v.policy, Groups: v.groups, PodRequirements: requirements, FailoverAfter: time.Minute, Now: simNow, Homes: v.request.Homes, Seed: v.uid}
	for _, c := range s.clusters {
		problem.Candidates = append(problem.Candidates, s.candidate(v, c))
	}
	solution := Assign(problem)
	decisions := solution.Decisions
	s.counts.calls++
	if s.order.IntN(8) == 0 && v.policy == v1alpha1.PlacementReplicate {
		s.checkOrder(v, problem, decisions)
	}
	homes, before, readable := v.request.Homes, v.present, map[string]map[key.ReplicaID]bool{}
	for _, c := range problem.Candidates {
		readable[c.Name] = c.Ready
	}
	request := reservation.CapacityRequest{UID: v.uid, Created: v.uid, PodRequirements: requirements, Clusters: map[string]reservation.ClusterRequest{}, Homes: solution.Homes}
	v.present = map[string]map[key.ReplicaID]bool{}
	for _, d := range decisions {
		v.present[d.Name], v.receivesTraffic[d.Name] = d.Run, d.Serves
		if len(d.Groups) > 0 {
			// What existed when the service read the cluster.
			request.Clusters[d.Name] = reservation.ClusterRequest{Groups: d.Groups, AllOrNothing: problem.Policy == v1alpha1.PlacementFailover, Running: slices.Sorted(maps.Keys(before[d.Name]))}
		}
	}
	if v.request.Clusters == nil {
		request.AssignGenerations(nil, 0)
	} else {
		request.AssignGenerations(&v.request, 0)
	}
	v.request = request
	for _, c := range s.clusters {
		s.checkStarted(v, c, homes, before)
		s.checkStopped(v, c, homes, before, readable)
	}
	if !s.recovered && !v.policyChanged {
		s.checkSplit(v)
	}
}

// checkStarted proves that nothing is started without a reservation, or in another cluster than
// the one that has its group. That is also its recorded home: the other one had to be left when the home was recorded.
func (s *sim) checkStarted(v *simService, c *simCluster, homes map[key.GroupID]reservation.Home, before map[string]map[key.ReplicaID]bool) {
	s.t.Helper()
	for _, g := range v.groups {
		for _, r := range g.Replicas {
			if !v.present[c.name][r.Name] || before[c.name][r.Name] {
				continue
			}
			s.counts.started++
			if !c.reserved(v.uid, r.Name) {
				s.t.Fatalf("fleet %d: %s of %s (%s) is started in %s, where it is not reserved", s.seed, r.Name, v.uid, v.policy, c.name)
			}
			if v.policy == v1alpha1.PlacementReplicate || v.policyChanged || hasSome(&g, before[c.name]) || homes[g.Name].Epoch > 0 && homes[g.Name].Cluster == c.name {
				continue
			}
			for _, o := range s.clusters {
				// A group need not stay in an unroutable cluster if there is another.
				if o != c && !o.trouble.leaves(v.policy) && hasSome(&g, before[o.name]) && !(v.hasFleetRoute && o.noGateway) {
					s.t.Fatalf("fleet %d: group %s of %s (%s) is started in %s, and is in %s, which it need not leave", s.seed, g.Name, v.uid, v.policy, c.name, o.name)
				}
			}
		}
	}
}

// checkStopped proves that a wanted replica is stopped only once two things are ready
// elsewhere: what existed of its group here, and the required replicas. Abandoned clusters are
// an exception. It also proves that nothing is stopped where it can stay.
func (s *sim) checkStopped(v *simService, c *simCluster, homes map[key.GroupID]reservation.Home, before, readable map[string]map[key.ReplicaID]bool) {
	s.t.Helper()
	for _, g := range v.groups {
		for _, r := range g.Replicas {
			if !before[c.name][r.Name] || v.present[c.name][r.Name] {
				continue
			}
			if c.trouble == abandoned {
				s.counts.forgotten++
				continue
			}
			s.counts.moved++
			if c.trouble.stays(v.policy) && (homes[g.Name].Cluster == c.name || c.trouble != onHold) || c.trouble == healthy && v.policy == v1alpha1.PlacementReplicate {
				s.t.Fatalf("fleet %d: %s of %s (%s) leaves %s, and need not", s.seed, r.Name, v.uid, v.policy, c.name)
			}
			to := slices.IndexFunc(s.clusters, func(o *simCluster) bool {
				stays := !o.trouble.leaves(v.policy) || o.trouble != abandoned && homes[g.Name].Cluster == o.name
				return o != c && stays && hasSome(&g, readable[o.name]) && !slices.ContainsFunc(g.Replicas, func(r reservation.ReplicaRequest) bool {
					return (r.Required || before[c.name][r.Name]) && !(readable[o.name][r.Name] && v.present[o.name][r.Name])
				})
			})
			if to < 0 {
				s.t.Fatalf("fleet %d: %s of %s (%s) is stopped in %s before its group is ready elsewhere", s.seed, r.Name, v.uid, v.policy, c.name)
			}
			if c.trouble == healthy && !hasSome(&g, before[s.clusters[to].name]) {
				s.t.Fatalf("fleet %d: group %s of %s (%s) moves from %s to %s, and need not", s.seed, g.Name, v.uid, v.policy, c.name, s.clusters[to].name)
			}
		}
	}
}

// hasAll tells whether a routable one of some clusters has everything that the others have of a
// group.
func (v *simService) hasAll(g *reservation.ReplicaGroup, in []string, noGateway map[string]bool) bool {
	if v.policy == v1alpha1.PlacementFailover {
		g = &reservation.ReplicaGroup{Replicas: reservation.Replicas(v.groups)} // They stay together.
	}
	return slices.ContainsFunc(in, func(c string) bool {
		return !noGateway[c] && !slices.ContainsFunc(g.Replicas, func(r reservation.ReplicaRequest) bool {
			return !v.present[c][r.Name] && slices.ContainsFunc(in, func(o string) bool { return v.present[o][r.Name] })
		})
	})
}

// checkSplit proves that no group is in two clusters that it need not leave. After a recovery
// during a move, or another policy, it may be: if the rest fits into neither, or only an
// unroutable cluster has all.
func (s *sim) checkSplit(v *simService) {
	s.t.Helper()
	if v.policy == v1alpha1.PlacementReplicate {
		return
	}
	for _, g := range v.groups {
		var in []string
		noGateway := map[string]bool{}
		for _, c := range s.clusters {
			present := &g
			if v.policy == v1alpha1.PlacementFailover {
				present = &reservation.ReplicaGroup{Replicas: reservation.Replicas(v.groups)} // They stay together.
			}
			if hasSome(present, v.present[c.name]) && !c.trouble.leaves(v.policy) {
				in = append(in, c.name)
				noGateway[c.name] = v.hasFleetRoute && c.noGateway
			}
		}
		if len(in) > 1 && (!s.recovered && !v.policyChanged || v.hasAll(&g, in, noGateway)) {
			s.t.Fatalf("fleet %d: group %s of %s (%s) is in %v", s.seed, g.Name, v.uid, v.policy, in)
		}
	}
}

func hasSome(g *reservation.ReplicaGroup, names map[key.ReplicaID]bool) bool {
	return slices.ContainsFunc(g.Replicas, func(r reservation.ReplicaRequest) bool { return names[r.Name] })
}

// checkOrder proves that the order of the candidates does not change what runs.
func (s *sim) checkOrder(v *simService, problem Problem, decisions []Decision) {
	s.t.Helper()
	running := func(all []Decision) map[string]map[key.ReplicaID]bool {
		m := map[string]map[key.ReplicaID]bool{}
		for _, d := range all {
			m[d.Name] = d.Run
		}
		return m
	}
	other := problem
	other.Candidates = slices.Clone(problem.Candidates)
	s.order.Shuffle(len(other.Candidates), func(i, j int) {
		other.Candidates[i], other.Candidates[j] = other.Candidates[j], other.Candidates[i]
	})
	if diff := cmp.Diff(running(decisions), running(Assign(other).Decisions)); diff != "" {
		s.t.Fatalf("fleet %d: %s (%s) runs elsewhere with its candidates in another order: -want, +got:\n%s", s.seed, v.uid, v.policy, diff)
	}
}

// checkCapacity proves that no node has more pods than fit, and that everything that runs is
// reserved.
func (s *sim) checkCapacity() {
	s.t.Helper()
	for _, c := range s.clusters {
		if c.trouble == removed {
			continue
		}
		if c.result.Overcommitted {
			s.t.Fatalf("fleet %d: %s is overcommitted: %+v", s.seed, c.name, c.result)
		}
		a, running := reservation.CapacityRequest{PodRequirements: requirements}, []reservation.ReplicaRequest{}
		for _, v := range s.services {
			for _, r := range reservation.Replicas(v.groups) {
				if !v.present[c.name][r.Name] {
					continue
				}
				running = append(running, r)
				if !c.reserved(v.uid, r.Name) {
					s.t.Fatalf("fleet %d: %s of %s (%s) runs in %s, and is not reserved there", s.seed, r.Name, v.uid, v.policy, c.name)
				}
			}
		}
		used, _ := capacity.Sum(reservation.PodSets(a.PodRequirements, running))
		for i := range c.free.Pools {
			used[capacitytest.GPU] -= c.free.Pools[i].Total[capacitytest.GPU]
		}
		if used[capacitytest.GPU] > 0 {
			s.t.Fatalf("fleet %d: %s runs %d more than it has", s.seed, c.name, used[capacitytest.GPU])
		}
		for i := range c.result.Free.Pools {
			for _, n := range c.result.Free.Pools[i].Free {
				for name, left := range n.Free {
					if left < 0 || n.Count < 0 {
						s.t.Fatalf("fleet %d: %s: %d nodes with %d %s left", s.seed, c.name, n.Count, left, name)
					}
				}
			}
		}
	}
}

// state returns what runs, and what is requested.
func (s *sim) state() map[string]map[string][]string {
	all := map[string]map[string][]string{}
	for _, v := range s.services {
		all[v.uid] = map[string][]string{}
		for c, run := range v.present {
			if len(run) > 0 {
				for _, r := range slices.Sorted(maps.Keys(run)) {
					all[v.uid][c] = append(all[v.uid][c], string(r))
				}
			}
		}
		for c, at := range v.request.Clusters {
			for _, r := range reservation.Replicas(at.Groups) {
				all[v.uid]["requested of "+c] = append(all[v.uid]["requested of "+c], fmt.Sprintf("%s at %d", r.Name, r.Generation))
			}
		}
	}
	return all
}

// ready tells whether everything that exists is ready.
func (s *sim) ready() bool {
	for _, v := range s.services {
		for c, run := range v.present {
			for r := range run {
				if !v.ready[c][r] {
					return false
				}
			}
		}
	}
	return true
}

// stabilize runs rounds until nothing changes any more, and proves that this happens. It also
// proves that the order of services and clusters does not matter then.
func (s *sim) stabilize() {
	s.t.Helper()
	s.delay = 0
	const stableRounds = 6
	before, unchanged := s.state(), 0
	for rounds := 0; unchanged < stableRounds; rounds++ {
		if rounds > 60 {
			s.t.Fatalf("fleet %d does not become stable: -before, +after the last round:\n%s", s.seed, cmp.Diff(before, s.state()))
		}
		before = s.state()
		if s.round(); reflect.DeepEqual(before, s.state()) && s.ready() {
			unchanged++
		} else {
			unchanged = 0
		}
	}
	for _, v := range s.services {
		s.checkSplit(v)
		problem := Problem{Policy: v.policy, Groups: v.groups, PodRequirements: requirements, FailoverAfter: time.Minute, Now: simNow, Homes: v.request.Homes, Seed: v.uid}
		for _, c := range s.clusters {
			if c.trouble != abandoned {
				problem.Candidates = append(problem.Candidates, s.candidate(v, c))
			}
		}
		s.checkOrder(v, problem, Assign(problem).Decisions)
	}
}

// change lets services scale, and changes the trouble of clusters.
func (s *sim) change(scaling, trouble bool) {
	for _, v := range s.services {
		if scaling && s.rand.IntN(4) == 0 {
			v.scale(s.rand)
		}
	}
	if trouble && s.rand.IntN(4) == 0 {
		s.setTrouble(s.clusters[s.rand.IntN(len(s.clusters))], anyTrouble(s.rand))
	}
}

func anyTrouble(random *rand.Rand) trouble {
	t := trouble(random.IntN(int(troubles)))
	if t == abandoned && random.IntN(3) > 0 {
		return healthy
	}
	return t
}

// run is the life of a fleet. It calls observe after each round.
func (s *sim) run(observe func()) {
	rounds := func(n int, scaling, trouble bool) {
		for range n {
			s.change(scaling, trouble)
			s.round()
			observe()
		}
	}
	s.delay = 4
	rounds(10, true, false)
	s.stabilize()
	// Nothing moves because a cluster is added, nor because its old state is read.
	s.add(&simCluster{name: "new", free: capacity.Free{Pools: []capacity.Pool{nodes("a", 4, 8)}}})
	s.delay = 4
	rounds(5, false, false)
	// One trouble moves nothing between other clusters.
	s.setTrouble(s.clusters[s.rand.IntN(len(s.clusters))], 1+trouble(s.rand.IntN(int(troubles)-1)))
	rounds(8, false, false)
	rounds(4, true, false)
	// Everything happens at once.
	rounds(20, true, true)
	for _, c := range s.clusters {
		s.setTrouble(c, healthy)
	}
	s.stabilize()
	observe()
}

// TestFleets runs many small fleets. Services scale, and read what was decided some time ago.
// Clusters are added, and get into every kind of trouble. It proves that no capacity is used
// twice, nothing is started without a reservation, and no group is split over clusters. Nothing
// is lost, nothing moves without a reason, and every fleet becomes stable.
func TestFleets(t *testing.T) {
	sum := simCounts{}
	for i := range *fleets {
		s := newSim(t, uint64(*firstFleet+i), 0)
		s.run(func() {})
		sum.started, sum.outdated, sum.moved = sum.started+s.counts.started, sum.outdated+s.counts.outdated, sum.moved+s.counts.moved
		sum.forgotten, sum.calls = sum.forgotten+s.counts.forgotten, sum.calls+s.counts.calls
	}
	t.Logf("%+v", sum)
	// Few fleets, for example one that is run again, need not have every case.
	if *fleets < 50 {
		return
	}
	if sum.started == 0 || sum.outdated == 0 || sum.moved == 0 || sum.forgotten == 0 {
		t.Errorf("some case never occurred: the test proves nothing: %+v", sum)
	}
}

// TestFleetsOrder proves that the order in which services act does not matter.
func TestFleetsOrder(t *testing.T) {
	for seed := range max(1, *fleets/30) {
		var states [2][]map[string]map[string][]string
		for order := range states {
			s := newSim(t, uint64(seed), uint64(order))
			s.run(func() { states[order] = append(states[order], s.state()) })
		}
		for i := range states[0] {
			if !reflect.DeepEqual(states[0][i], states[1][i]) {
				t.Fatalf("fleet %d, round %d: -one order, +another:\n%s", seed, i, cmp.Diff(states[0][i], states[1][i]))
			}
		}
	}
}
