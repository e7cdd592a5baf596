package scheduling

import (
	"maps"
	"math/rand/v2"
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

// randomProblem returns a random problem, possible or not.
func randomProblem(random *rand.Rand) Problem {
	problem := Problem{Policy: []v1alpha1.PlacementPolicy{v1alpha1.PlacementReplicate, v1alpha1.PlacementSpread, v1alpha1.PlacementFailover}[random.IntN(3)], PodRequirements: requirements, FailoverAfter: time.Minute, Now: time.Now()}
	if random.IntN(2) == 0 {
		problem.AnswerAlone = map[string]bool{"a": true}
	}
	for i := range 1 + random.IntN(3) {
		g := reservation.ReplicaGroup{Name: key.GroupID(strconv.Itoa(i))}
		required := random.IntN(3)
		for j := range 1 + random.IntN(3) {
			g.Replicas = append(g.Replicas, reservation.ReplicaRequest{Name: key.ReplicaID(string(g.Name) + "/" + []string{"a", "b"}[random.IntN(2)] + "/" + strconv.Itoa(j)), Pods: map[string]int64{"large": 1}, Required: j < required})
		}
		problem.Groups = append(problem.Groups, g)
	}
	if random.IntN(2) == 0 {
		problem.Homes = map[key.GroupID]reservation.Home{}
		for _, g := range problem.Groups {
			problem.Homes[g.Name] = reservation.Home{Cluster: "c" + strconv.Itoa(random.IntN(4)), Epoch: 1, Started: random.IntN(2) == 0}
		}
	}
	hasRoute := random.IntN(3) > 0
	for i := range 2 + random.IntN(3) {
		problem.Candidates = append(problem.Candidates, randomCandidate(random, "c"+strconv.Itoa(i), hasRoute, &problem))
	}
	return problem
}

func randomCandidate(random *rand.Rand, name string, hasRoute bool, problem *Problem) Candidate {
	c := Candidate{
		Name: name, Weight: int64(1 + random.IntN(2)), RouterReady: random.IntN(3) > 0, Free: capacity.Free{Pools: []capacity.Pool{nodes("a", int64(random.IntN(4)), 8)}},
		Present: map[key.ReplicaID]bool{}, Ready: map[key.ReplicaID]bool{}, Reserved: map[key.ReplicaID]bool{}, Requested: map[key.GroupID]bool{},
	}
	hasSome := random.IntN(4) > 0
	for _, x := range reservation.Replicas(problem.Groups) {
		if hasSome && random.IntN(3) > 0 {
			c.Present[x.Name], c.Reserved[x.Name] = true, true
			c.Ready[x.Name] = random.IntN(3) > 0
		}
	}
	c.ReceivesTraffic = c.RouterReady
	if hasRoute {
		c.NoEntrypoint = random.IntN(4) == 0
		c.MayReceiveTraffic = !c.NoEntrypoint && random.IntN(2) == 0
		c.ReceivesTraffic = c.RouterReady && c.MayReceiveTraffic && random.IntN(3) > 0
	}
	message, since := "a test", problem.Now.Add(-time.Hour)
	switch random.IntN(9) {
	case 0:
		c.StopPolicy, c.StopMessage = v1alpha1.StopDrain, message
	case 1:
		c.Deselected = true
	case 2:
		c.Unknown = message
	case 3:
		c.Unreachable, c.Ready, c.ReceivesTraffic = &since, nil, false
	case 4:
		since = problem.Now.Add(-time.Second)
		c.Unreachable, c.Ready, c.ReceivesTraffic = &since, nil, false
	case 5:
		c.Weight = int64(random.IntN(3))
	case 6:
		c.OutsideFleet = random.IntN(3) == 0
	}
	return c
}

// TestAssignServesRandomProblems proves two invariants for any problem. If anything is ready,
// some of it serves. Nothing is stopped that is not ready elsewhere, where it stays.
func TestAssignServesRandomProblems(t *testing.T) {
	withReady, stopped := 0, 0
	for seed := range uint64(20000) {
		problem := randomProblem(rand.New(rand.NewPCG(seed, 77)))
		decisions := Assign(problem).Decisions
		ready, serving := 0, 0
		for i := range decisions {
			c, d := &problem.Candidates[i], &decisions[i]
			for _, x := range reservation.Replicas(problem.Groups) {
				if c.Ready[x.Name] && c.RouterReady && !c.NoEntrypoint {
					ready++
					if d.Serves && d.Run[x.Name] {
						serving++
					}
				}
			}
			for _, g := range problem.Groups {
				if !slices.ContainsFunc(g.Replicas, func(x reservation.ReplicaRequest) bool { return c.Present[x.Name] && !d.Run[x.Name] }) {
					continue
				}
				stopped++
				if !readyElsewhere(&problem, decisions, i, &g) {
					t.Fatalf("problem %d (%s): what %s has of group %s is stopped, and not ready elsewhere:\n%+v\n%+v", seed, problem.Policy, c.Name, g.Name, problem.Candidates, decisions)
				}
			}
		}
		if ready > 0 {
			withReady++
			if serving == 0 {
				t.Fatalf("problem %d (%s): %d replicas are ready, and none serves:\n%+v\n%+v", seed, problem.Policy, ready, problem.Candidates, decisions)
			}
		}
	}
	t.Logf("in %d problems something was ready, and %d times a group was stopped", withReady, stopped)
	if withReady == 0 || stopped == 0 {
		t.Error("some case never occurred: the test proves nothing")
	}
}

// TestSettledIgnoresFree proves for any problem that what is free changes nothing, not even a message, where all replicas
// run, none is to leave, and nothing is wrong with their clusters. So the status of a service that runs does not change with other services.
func TestSettledIgnoresFree(t *testing.T) {
	settled := 0
	for seed := range uint64(5000) {
		problem := randomProblem(rand.New(rand.NewPCG(seed, 78)))
		want := Assign(problem)
		if slices.ContainsFunc(want.Decisions, func(d Decision) bool {
			return d.State == v1alpha1.StateLeaving || len(d.Pending) > 0 || d.Reason != "" && d.Reason != ReasonNotNeeded
		}) {
			continue
		}
		settled++
		for _, count := range []int64{0, 100} {
			for i := range problem.Candidates {
				problem.Candidates[i].Free = capacity.Free{Pools: []capacity.Pool{nodes("a", count, 8)}}
			}
			if diff := cmp.Diff(want, Assign(problem)); diff != "" {
				t.Fatalf("problem %d (%s): it runs, and with %d free nodes is decided otherwise: -want, +got:\n%s", seed, problem.Policy, count, diff)
			}
		}
	}
	t.Logf("%d of 5000 problems are settled", settled)
	if settled == 0 {
		t.Error("no problem is settled: the test proves nothing")
	}
}

// readyElsewhere tells whether another cluster has ready what one has of a group, and either answers for the group or has
// ready what the group requires.
func readyElsewhere(problem *Problem, decisions []Decision, i int, g *reservation.ReplicaGroup) bool {
	for j := range decisions {
		o, d := &problem.Candidates[j], &decisions[j]
		all, required, alone, together := true, true, false, map[byte]bool{}
		for _, x := range g.Replicas {
			role, ready := x.Name[len(g.Name)+1], o.Ready[x.Name] && d.Run[x.Name]
			all = all && (ready || !problem.Candidates[i].Present[x.Name])
			required = required && (ready || !x.Required)
			if problem.AnswerAlone[string(role)] {
				alone = alone || ready
			} else {
				together[role] = together[role] || ready
			}
		}
		if j != i && o.RouterReady && all && (required || alone || len(together) > 0 && !slices.Contains(slices.Collect(maps.Values(together)), false)) {
			return true
		}
	}
	return false
}

// TestGrowthGoesOn proves that a service gets more replicas although another one of it has grown
// by more than fits. What was granted before is kept, and is not taken for what is requested now.
func TestGrowthGoesOn(t *testing.T) {
	group := func(name, shape string) reservation.ReplicaGroup {
		return reservation.ReplicaGroup{Name: key.GroupID(name), Replicas: []reservation.ReplicaRequest{{Name: key.ReplicaID(name), Pods: map[string]int64{shape: 1}}}}
	}
	now := map[string]capacity.PodRequirements{"big": *capacitytest.Requirements(16, 1), "small": *capacitytest.Requirements(1, 1)}
	was := map[string]capacity.PodRequirements{"big": *capacitytest.Requirements(4, 1), "small": *capacitytest.Requirements(1, 1)}
	groups := []reservation.ReplicaGroup{group("big/0", "big"), group("small/0", "small"), group("small/1", "small"), group("small/2", "small"), group("small/3", "small")}
	free := capacity.Free{Pools: []capacity.Pool{capacity.NewPool("p", nil, []capacity.NodeClass{capacitytest.Nodes(2, 8, 64)})}}
	request := &reservation.CapacityRequest{UID: "a", Namespace: "team", Name: "s-a", PodRequirements: was, Clusters: map[string]reservation.ClusterRequest{"east": {Groups: groups[:2]}}}
	request.AssignGenerations(nil, 0)
	results := map[string]*reservation.Result{"east": {}, "west": {}}
	reserve := func(name string) {
		*results[name] = reservation.Reserve(reservation.Input{Cluster: name, Free: free, Ledger: results[name].Ledger, Requests: []reservation.CapacityRequest{*request}, Now: simNow})
	}
	reserve("east")
	var decisions []Decision
	for range 10 {
		problem := Problem{Policy: v1alpha1.PlacementSpread, Groups: groups, PodRequirements: now}
		for _, name := range []string{"east", "west"} {
			reserve(name)
			cr := request.Clusters[name]
			c := Candidate{Name: name, Weight: 1, ReceivesTraffic: true, RouterReady: true, Free: results[name].Free, Requested: map[key.GroupID]bool{}, Reserved: cr.Reserved(generations(results[name], request.ServiceID()))}
			if name == "east" {
				c.Present, c.Ready = set("big/0", "small/0"), set("small/0")
			}
			for _, g := range cr.Groups {
				c.Requested[g.Name] = true
			}
			problem.Candidates = append(problem.Candidates, c)
		}
		decisions = Assign(problem).Decisions
		last := request
		request = &reservation.CapacityRequest{UID: "a", Namespace: "team", Name: "s-a", PodRequirements: now, Clusters: map[string]reservation.ClusterRequest{}}
		for _, d := range decisions {
			if len(d.Groups) > 0 {
				request.Clusters[d.Name] = reservation.ClusterRequest{Groups: d.Groups}
			}
		}
		request.AssignGenerations(last, 0)
	}
	pods := int64(0)
	for _, d := range decisions {
		pods += int64(len(d.Run))
		if len(d.Pending) > 0 {
			t.Errorf("%q are pending in %s in the end", d.Pending, d.Name)
		}
	}
	if pods != int64(len(groups)) {
		t.Errorf("%d of %d replicas run in the end", pods, len(groups))
	}
	if reserved := results["east"].Services[0]; reserved.Shapes[0].Requests[capacitytest.GPU] != 1000 || reserved.Shapes[1].Requests[capacitytest.GPU] != 4000 {
		t.Errorf("what was granted for 4 GPUs is counted as %v", reserved.Shapes)
	}
}
