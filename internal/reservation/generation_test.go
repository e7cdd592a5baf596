package reservation

import (
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
)

// requestOf returns a request of one group in each cluster, with the generations of its
// replicas.
func requestOf(generation int64, clusters map[string]map[string]int64) *CapacityRequest {
	req := &CapacityRequest{UID: "u", Generation: generation, Clusters: map[string]ClusterRequest{}}
	for name, replicas := range clusters {
		group := ReplicaGroup{Name: "0"}
		for _, r := range []string{"w/0", "w/1", "w/2"} {
			if s, ok := replicas[r]; ok {
				group.Replicas = append(group.Replicas, ReplicaRequest{Name: key.ReplicaID(r), Generation: s})
			}
		}
		req.Clusters[name] = ClusterRequest{Groups: []ReplicaGroup{group}}
	}
	return req
}

func TestAssignGenerations(t *testing.T) {
	type clusters = map[string]map[string]int64
	one := clusters{"east": {"w/0": 0}}
	two := clusters{"east": {"w/0": 0, "w/1": 0}}
	cases := map[string]struct {
		reason   string
		request  clusters
		last     *CapacityRequest
		answered int64
		want     *CapacityRequest
	}{
		"First":     {reason: "The first request has generation 1.", request: two, want: requestOf(1, clusters{"east": {"w/0": 1, "w/1": 1}})},
		"Same":      {reason: "If nothing is added, the generations stay.", request: two, last: requestOf(4, clusters{"east": {"w/0": 4, "w/1": 2}}), answered: 4, want: requestOf(4, clusters{"east": {"w/0": 4, "w/1": 2}})},
		"Added":     {reason: "A replica that is added gets a new generation, and the others keep theirs.", request: two, last: requestOf(4, clusters{"east": {"w/0": 2}}), want: requestOf(5, clusters{"east": {"w/0": 2, "w/1": 5}})},
		"Withdrawn": {reason: "A replica that is withdrawn does not lower the generation of the request, so that no generation is used twice.", request: one, last: requestOf(4, clusters{"east": {"w/0": 2, "w/1": 4}}), want: requestOf(4, clusters{"east": {"w/0": 2}})},
		"Nothing":   {reason: "A request for nothing keeps its generation, too.", last: requestOf(4, two), want: requestOf(4, nil)},
		"Elsewhere": {reason: "A replica that was requested of another cluster is new in this one.", request: one, last: requestOf(4, clusters{"west": {"w/0": 2}}), want: requestOf(5, clusters{"east": {"w/0": 5}})},
		"Deleted":   {reason: "A request that replaces a lost one starts above what was answered.", request: one, answered: 7, want: requestOf(8, clusters{"east": {"w/0": 8}})},
		"Replaced":  {reason: "One that started too low is raised as soon as the answer is known.", request: two, last: requestOf(1, clusters{"east": {"w/0": 1}}), answered: 7, want: requestOf(8, clusters{"east": {"w/0": 1, "w/1": 8}})},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := requestOf(0, tc.request)
			got.AssignGenerations(tc.last, tc.answered)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
			again := requestOf(0, tc.request)
			again.AssignGenerations(got, tc.answered)
			if diff := cmp.Diff(got.Clusters, again.Clusters); diff != "" {
				t.Errorf("%s Assigning again changes the generations: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestGenerationsTogether proves that all replicas that have to start together get a new generation if one of them
// changes before any runs. Each group has two replicas of 1 CPU, and one of the first group changes.
func TestGenerationsTogether(t *testing.T) {
	requestOf := func(required, whole bool, running []key.ReplicaID, cpus ...string) *CapacityRequest {
		req := &CapacityRequest{PodRequirements: map[string]capacity.PodRequirements{"1": {Requests: capacity.Resources{"cpu": 1}}, "2": {Requests: capacity.Resources{"cpu": 2}}}}
		cr := ClusterRequest{AllOrNothing: whole, Running: running}
		for g, of := range cpus {
			group := ReplicaGroup{Name: key.GroupID(strconv.Itoa(g))}
			for i, cpu := range of {
				group.Replicas = append(group.Replicas, ReplicaRequest{Name: key.ReplicaInGroup(int32(g), "w", int32(i)), Required: required, Pods: map[string]int64{string(cpu): 1}})
			}
			cr.Groups = append(cr.Groups, group)
		}
		req.Clusters = map[string]ClusterRequest{"east": cr}
		return req
	}
	runs := []key.ReplicaID{"0/w/1"}
	cases := map[string]struct {
		reason          string
		required, whole bool
		running         []key.ReplicaID
		now             []string
		want            []int64
	}{
		"Required":    {reason: "The cluster may have taken back what it had granted.", required: true, now: []string{"21", "11"}, want: []int64{2, 2, 1, 1}},
		"Fewer":       {reason: "So it may have if one goes.", required: true, now: []string{"1", "11"}, want: []int64{2, 1, 1}},
		"Whole":       {reason: "All groups start together.", whole: true, now: []string{"21", "11"}, want: []int64{2, 2, 2, 2}},
		"Runs":        {reason: "What runs keeps its grants.", required: true, running: runs, now: []string{"21", "11"}, want: []int64{2, 1, 1, 1}},
		"NotRequired": {reason: "Each starts by itself.", now: []string{"21", "11"}, want: []int64{2, 1, 1, 1}},
		"Same":        {reason: "Nothing changes.", required: true, now: []string{"11", "11"}, want: []int64{1, 1, 1, 1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			last := requestOf(tc.required, tc.whole, tc.running, "11", "11")
			last.AssignGenerations(nil, 0)
			now := requestOf(tc.required, tc.whole, nil, tc.now...)
			now.AssignGenerations(last, 0)
			at := now.Clusters["east"]
			var got []int64
			for _, r := range Replicas(at.Groups) {
				got = append(got, r.Generation)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || at.Newest() != slices.Max(tc.want) {
				t.Errorf("%s The newest is %d.\n-want, +got:\n%s", tc.reason, at.Newest(), diff)
			}
		})
	}
}

// TestGenerationsOfSharedGroups proves that clusters of which the same is requested have generations of their own.
func TestGenerationsOfSharedGroups(t *testing.T) {
	groups := []ReplicaGroup{{Replicas: []ReplicaRequest{{Name: "w/0"}}}}
	req := &CapacityRequest{Clusters: map[string]ClusterRequest{"east": {Groups: groups}, "west": {Groups: groups}}}
	req.AssignGenerations(requestOf(4, map[string]map[string]int64{"east": {"w/0": 2}}), 0)
	got := []int64{groups[0].Replicas[0].Generation}
	for _, name := range []string{"east", "west"} {
		at := req.Clusters[name]
		got = append(got, at.Newest())
	}
	if diff := cmp.Diff([]int64{0, 2, 5}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestGenerationsOfChanges proves that a replica gets a new generation if what it requests
// changes, and only then.
func TestGenerationsOfChanges(t *testing.T) {
	requestOf := func(pods map[string]int64, cpu int64, name string) *CapacityRequest {
		return &CapacityRequest{
			UID: "u", PodRequirements: map[string]capacity.PodRequirements{name: {Requests: capacity.Resources{"cpu": cpu}}, "other": {Requests: capacity.Resources{"cpu": 1}}},
			Clusters: map[string]ClusterRequest{"east": {Groups: []ReplicaGroup{{Replicas: []ReplicaRequest{{Name: "w/0", Pods: pods}, {Name: "w/1", Pods: map[string]int64{"other": 1}}}}}}},
		}
	}
	cases := map[string]struct {
		reason string
		now    *CapacityRequest
		want   [3]int64
	}{
		"Same":    {reason: "Nothing changes.", now: requestOf(map[string]int64{"w": 2}, 4, "w"), want: [3]int64{1, 1, 1}},
		"Pods":    {reason: "The number of pods changes.", now: requestOf(map[string]int64{"w": 3}, 4, "w"), want: [3]int64{2, 2, 1}},
		"Fewer":   {reason: "A smaller one is a change too.", now: requestOf(map[string]int64{"w": 1}, 4, "w"), want: [3]int64{2, 2, 1}},
		"Shape":   {reason: "The shape of its pods changes.", now: requestOf(map[string]int64{"w": 2}, 5, "w"), want: [3]int64{2, 2, 1}},
		"Another": {reason: "It uses another shape.", now: requestOf(map[string]int64{"other": 2}, 4, "w"), want: [3]int64{2, 2, 1}},
		"Renamed": {reason: "The name of a shape says nothing.", now: requestOf(map[string]int64{"x": 2}, 4, "x"), want: [3]int64{1, 1, 1}},
		"None":    {reason: "A number of zero is none.", now: requestOf(map[string]int64{"w": 2, "other": 0}, 4, "w"), want: [3]int64{1, 1, 1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			last := requestOf(map[string]int64{"w": 2}, 4, "w")
			last.AssignGenerations(nil, 0)
			tc.now.AssignGenerations(last, 0)
			replicas := tc.now.Clusters["east"].Groups[0].Replicas
			if diff := cmp.Diff(tc.want, [3]int64{tc.now.Generation, replicas[0].Generation, replicas[1].Generation}); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestReserved(t *testing.T) {
	type grants = map[key.ReplicaID]int64
	cases := map[string]struct {
		reason    string
		requested map[string]int64
		granted   grants
		want      map[key.ReplicaID]bool
	}{
		"Answered":  {reason: "The ledger answers the current request.", requested: map[string]int64{"w/0": 1, "w/1": 2}, granted: grants{"w/0": 1, "w/1": 2}, want: set("w/0", "w/1")},
		"Before":    {reason: "The grant is from before the replica was withdrawn and added again, or changed.", requested: map[string]int64{"w/0": 1, "w/1": 2}, granted: grants{"w/0": 1, "w/1": 1}, want: set("w/0")},
		"Withdrawn": {reason: "Capacity for a replica that is not requested may have been granted to another service.", requested: map[string]int64{"w/0": 1}, granted: grants{"w/0": 1, "w/1": 1}, want: set("w/0")},
		"Pending":   {reason: "A replica that was not granted is pending.", requested: map[string]int64{"w/0": 1, "w/1": 1}, granted: grants{"w/1": 1}, want: set("w/1")},
		"Lost":      {reason: "A request that was lost starts anew, and never below what was answered.", requested: map[string]int64{"w/0": 1}, granted: grants{"w/0": 7}, want: set("w/0")},
		"Former":    {reason: "A request without generations, which an earlier version wrote, is not granted by nothing.", requested: map[string]int64{"w/0": 0, "w/1": 0}, granted: grants{"w/1": 0}, want: set("w/1")},
		"Nothing":   {reason: "Nothing is requested.", granted: grants{"w/1": 1}, want: set()},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cr := requestOf(0, map[string]map[string]int64{"east": tc.requested}).Clusters["east"]
			if diff := cmp.Diff(tc.want, cr.Reserved(tc.granted)); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func set(names ...key.ReplicaID) map[key.ReplicaID]bool {
	m := map[key.ReplicaID]bool{}
	for _, n := range names {
		m[n] = true
	}
	return m
}
