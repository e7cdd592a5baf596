package scheduling

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
)

// A life is that of a service, with what clusters make of its replicas. They have room for all of them.
type life struct {
	policy   v1alpha1.PlacementPolicy
	groups   []reservation.ReplicaGroup
	clusters []string
	// trouble changes what is read of a cluster. It may be nil.
	trouble func(at time.Duration, c *Candidate)
	// ready tells whether a replica of some age is ready in a cluster.
	ready func(at, age time.Duration, cluster string, r key.ReplicaID) bool
	size  func(key.ReplicaID) int
	room  int
	// alone are the roles that answer alone.
	alone map[string]bool

	at time.Duration
	// since is when each replica was made in each cluster.
	since     map[string]map[key.ReplicaID]time.Duration
	requested map[string]map[key.ReplicaID]bool
	serves    map[string]bool
	homes     map[key.GroupID]reservation.Home
	// moves are the changes of the home of the first group.
	moves []string
}

const (
	minute = time.Minute
	day    = 24 * time.Hour
)

// until goes on in steps until a time.
func (l *life) until(end, step time.Duration) {
	for l.at < end {
		l.next(step)
	}
}

// next goes on by a step.
func (l *life) next(step time.Duration) {
	l.at += step
	if l.since == nil {
		l.since, l.requested, l.serves = map[string]map[key.ReplicaID]time.Duration{}, map[string]map[key.ReplicaID]bool{}, map[string]bool{}
	}
	p := Problem{
		Policy: l.policy, Groups: l.groups, PodRequirements: requirements, Homes: l.homes, Seed: "uid", Now: simNow.Add(l.at),
		FailoverAfter: 5 * minute, StartTimeout: time.Hour, Size: l.size, Room: l.room, AnswerAlone: l.alone,
	}
	for _, name := range l.clusters {
		p.Candidates = append(p.Candidates, l.candidate(name))
	}
	s := Assign(p)
	first := l.groups[0].Name
	if before, now := l.homes[first], s.Homes[first]; before.Epoch > 0 && before.Cluster != now.Cluster {
		l.moves = append(l.moves, fmt.Sprintf("%v: from %s to %s", l.at, before.Cluster, now.Cluster))
	}
	l.homes = s.Homes
	for _, d := range s.Decisions {
		since, requested := map[key.ReplicaID]time.Duration{}, map[key.ReplicaID]bool{}
		for r := range d.Run {
			since[r] = l.at
			if before, existed := l.since[d.Name][r]; existed {
				since[r] = before
			}
		}
		for _, r := range reservation.Replicas(d.Groups) {
			requested[r.Name] = true
		}
		l.since[d.Name], l.requested[d.Name], l.serves[d.Name] = since, requested, d.Serves
	}
}

// candidate is what is read of a cluster. It has reserved what was requested.
func (l *life) candidate(name string) Candidate {
	c := Candidate{
		Name: name, Weight: 1, RouterReady: len(l.since[name]) > 0, ReceivesTraffic: l.serves[name], MayReceiveTraffic: l.serves[name], Evaluated: true,
		Free:    capacity.Free{Pools: []capacity.Pool{nodes("a", 50, 8)}},
		Present: map[key.ReplicaID]bool{}, Ready: map[key.ReplicaID]bool{}, Created: map[key.ReplicaID]time.Time{},
		Reserved: maps.Clone(l.requested[name]), Requested: map[key.GroupID]bool{},
	}
	for r, since := range l.since[name] {
		c.Present[r], c.Ready[r], c.Created[r] = true, l.ready(l.at, l.at-since, name, r), simNow.Add(since)
	}
	for i := range l.groups {
		c.Requested[l.groups[i].Name] = l.requested[name][l.groups[i].Replicas[0].Name]
	}
	if l.trouble != nil {
		l.trouble(l.at, &c)
	}
	return c
}

// stays fails if the service has moved.
func (l *life) stays(t *testing.T) {
	t.Helper()
	if len(l.moves) > 0 {
		t.Errorf("it moved %d times:\n%s", len(l.moves), strings.Join(l.moves, "\n"))
	}
}

// numbered are some groups of a prefill and a decode replica.
func numbered(n int) []reservation.ReplicaGroup {
	var all []reservation.ReplicaGroup
	for i := range n {
		all = append(all, group(strconv.Itoa(i), 1, 1))
	}
	return all
}

// of tells whether a replica is of a group.
func of(r key.ReplicaID, group string) bool { return strings.HasPrefix(string(r), group+"/") }

// TestAddedGroupNeverStarts adds a group to a service that serves. The group starts nowhere, and the others do not move
// for it.
func TestAddedGroupNeverStarts(t *testing.T) {
	for _, uncounted := range []bool{false, true} {
		t.Run(fmt.Sprintf("Uncounted=%t", uncounted), func(t *testing.T) {
			l := &life{
				policy: v1alpha1.PlacementFailover, groups: numbered(3), clusters: []string{"east", "west"},
				trouble: func(_ time.Duration, c *Candidate) { c.Uncounted = uncounted },
				ready:   func(_, age time.Duration, _ string, r key.ReplicaID) bool { return age >= 10*minute && !of(r, "3") },
			}
			l.until(day, 5*minute)
			l.groups = numbered(4)
			l.until(20*day, 5*minute)
			l.stays(t)
		})
	}
}

// TestAddedAgain adds such a group again and again, as an autoscaler does.
func TestAddedAgain(t *testing.T) {
	l := &life{
		policy: v1alpha1.PlacementFailover, groups: numbered(1), clusters: []string{"east", "west"},
		ready: func(_, age time.Duration, _ string, r key.ReplicaID) bool { return age >= 10*minute && !of(r, "1") },
	}
	l.until(day, 5*minute)
	for range 5 {
		l.groups = numbered(2)
		l.until(l.at+100*minute, 5*minute)
		l.groups = numbered(1)
		l.until(l.at+20*minute, 5*minute)
	}
	l.stays(t)
}

// TestSpreadToFailover changes the policy of a service whose groups start only where they are.
func TestSpreadToFailover(t *testing.T) {
	started := func(_, age time.Duration, _ string, _ key.ReplicaID) bool { return age >= 10*minute }
	l := &life{policy: v1alpha1.PlacementSpread, groups: numbered(3), clusters: []string{"east", "west"}, ready: started}
	l.until(day, 5*minute)
	homes := maps.Clone(l.homes)
	l.policy = v1alpha1.PlacementFailover
	l.ready = func(at, age time.Duration, c string, r key.ReplicaID) bool {
		group, _, _ := strings.Cut(string(r), "/")
		return started(at, age, c, r) && (group == "0" || homes[key.GroupID(group)].Cluster == c)
	}
	l.moves = nil
	l.until(10*day, 5*minute)
	l.stays(t)
}

// TestLostRecord loses the record of the homes while a group of a service that serves is not ready.
func TestLostRecord(t *testing.T) {
	l := &life{
		policy: v1alpha1.PlacementFailover, groups: numbered(3), clusters: []string{"east", "west"},
		ready: func(at, age time.Duration, _ string, r key.ReplicaID) bool {
			return age >= 10*minute && (at < day || at >= day+20*minute || !of(r, "1"))
		},
	}
	l.until(day-5*minute, 5*minute)
	l.homes = nil
	l.until(day+3*time.Hour, 5*minute)
	l.stays(t)
}

// TestPartlyReady never has all replicas of a group ready. The group serves, and stays while its pods restart.
func TestPartlyReady(t *testing.T) {
	g := group("0", 1, 1)
	for _, r := range []key.ReplicaID{"0/decode/1", "0/decode/2"} {
		g.Replicas = append(g.Replicas, reservation.ReplicaRequest{Name: r, Pods: map[string]int64{"large": 1}})
	}
	l := &life{
		policy: v1alpha1.PlacementFailover, groups: []reservation.ReplicaGroup{g}, clusters: []string{"east", "west"},
		ready: func(at, age time.Duration, c string, r key.ReplicaID) bool {
			restarts := c == "east" && at >= 90*minute && at < 95*minute
			return age >= 40*minute && r != "0/decode/2" && !restarts
		},
	}
	l.until(100*minute, 5*minute)
	l.stays(t)
	if len(l.since["east"]) != 4 {
		t.Errorf("east has %v, want all replicas", slices.Sorted(maps.Keys(l.since["east"])))
	}
}

// TestFailedCopy looks at the copy in the cluster in which a group could not answer in time. It goes at once, unless it may
// serve after all.
func TestFailedCopy(t *testing.T) {
	since, all := simNow.Add(-time.Hour), set("0/prefill/0", "0/decode/0")
	for name, tc := range map[string]struct {
		east  Candidate
		stays bool
	}{
		"NotReady":        {Candidate{}, false},
		"Drained":         {Candidate{StopPolicy: v1alpha1.StopDrain}, false},
		"Deselected":      {Candidate{Deselected: true}, false},
		"SomeReady":       {Candidate{Ready: set("0/prefill/0")}, true},
		"NotReadLately":   {Candidate{WasReady: all}, true}, // Its Objects say so first, and its InferenceCluster later.
		"OutOfReach":      {Candidate{Unreachable: &since}, true},
		"CannotBeRead":    {Candidate{Unknown: "unknown"}, true},
		"AnsweredAndDown": {Candidate{Ready: all}, true},
	} {
		t.Run(name, func(t *testing.T) {
			tc.east.Name, tc.east.Weight, tc.east.Present, tc.east.RouterReady, tc.east.MayReceiveTraffic = "east", 1, all, true, true
			p := Problem{
				Policy: v1alpha1.PlacementFailover, Groups: numbered(1), PodRequirements: requirements, FailoverAfter: 5 * minute, StartTimeout: time.Hour, Now: simNow, Seed: "uid",
				Homes:      map[key.GroupID]reservation.Home{"0": {Cluster: "west", Epoch: 2, FailedIn: "east"}},
				Candidates: []Candidate{tc.east, {Name: "west", Weight: 1, Present: all, Reserved: all, ReceivesTraffic: true}},
			}
			s := Assign(p)
			if name == "AnsweredAndDown" {
				p.Homes, p.Candidates[0].Ready = s.Homes, nil
				s = Assign(p)
			}
			if stays := len(s.Decisions[0].Run) > 0; stays != tc.stays {
				t.Errorf("the copy in east stays: %t, want %t", stays, tc.stays)
			}
		})
	}
}

// TestCopyOutsideFleetStays proves that a copy beside the XR, which is down for a moment, runs on until the fleet is ready. Nothing has
// failed, so it is no copy that could never answer.
func TestCopyOutsideFleetStays(t *testing.T) {
	all := set("0/prefill/0", "0/decode/0")
	s := Assign(Problem{
		Policy: v1alpha1.PlacementFailover, Groups: numbered(1), PodRequirements: requirements, FailoverAfter: 5 * minute, StartTimeout: time.Hour, Now: simNow, Seed: "uid",
		Homes: map[key.GroupID]reservation.Home{"0": {Cluster: "east", Epoch: 2}},
		Candidates: []Candidate{
			{Deselected: true, OutsideFleet: true, Exists: true, Present: all, RouterReady: true, MayReceiveTraffic: true},
			{Name: "east", Weight: 1, Reserved: all, ReceivesTraffic: true},
		},
	})
	if len(s.Decisions[0].Run) != len(all) {
		t.Errorf("beside the XR runs %v, want %v", s.Decisions[0].Run, all)
	}
}

// TestHomes proves what is recorded of the homes of groups. Each group has a prefill and a decode replica, and west has reserved all.
func TestHomes(t *testing.T) {
	all := set("0/prefill/0", "0/decode/0", "1/prefill/0", "1/decode/0")
	late := map[key.ReplicaID]time.Time{"0/prefill/0": simNow.Add(-day)}
	drain := func(p *Problem) { p.Candidates[0].StopPolicy = v1alpha1.StopDrain }
	unroutable := func(p *Problem) { p.Candidates[0].NoEntrypoint, p.Candidates[1].Present = true, all }
	answers := func(p *Problem) { p.Candidates[0].Ready = all }
	nowhere := func(p *Problem) {
		drain(p)
		p.Candidates[1].StopPolicy = v1alpha1.StopDrain
	}
	home := func(cluster string, epoch int64) reservation.Home {
		return reservation.Home{Cluster: cluster, Epoch: epoch}
	}
	failed := func(h reservation.Home, in string) reservation.Home {
		h.FailedIn = in
		return h
	}
	started := func(h reservation.Home) reservation.Home {
		h.Started = true
		return h
	}
	type homes = map[key.GroupID]reservation.Home
	sleeping := []reservation.ReplicaGroup{{Name: "0"}}
	cases := map[string]struct {
		reason  string
		groups  []reservation.ReplicaGroup
		before  homes
		changes []func(*Problem)
		want    homes
	}{
		"TimedOut":  {reason: "It could not answer in east.", groups: numbered(1), before: homes{"0": home("east", 1)}, want: homes{"0": failed(home("west", 2), "east")}},
		"Drained":   {reason: "East is left for another reason.", groups: numbered(1), before: homes{"0": home("east", 1)}, changes: []func(*Problem){drain}, want: homes{"0": home("west", 2)}},
		"Answered":  {reason: "It has answered in east before.", groups: numbered(1), before: homes{"0": started(home("east", 1))}, changes: []func(*Problem){unroutable}, want: homes{"0": home("west", 2)}},
		"Answers":   {reason: "It answers in east now, where no requests can be sent.", groups: numbered(1), before: homes{"0": home("east", 1)}, changes: []func(*Problem){unroutable, answers}, want: homes{"0": home("west", 2)}},
		"Elsewhere": {reason: "The second group was not in east, so it did not fail there.", groups: numbered(2), before: homes{"0": home("east", 1), "1": home("north", 4)}, want: homes{"0": failed(home("west", 2), "east"), "1": home("west", 5)}},
		"Returns":   {reason: "It answers where it could not in time.", groups: numbered(1), before: homes{"0": failed(home("west", 2), "east")}, changes: []func(*Problem){answers}, want: homes{"0": home("west", 2)}},
		"FailedGone": {
			reason: "The cluster in which it failed is no longer a member.", groups: numbered(1), before: homes{"0": failed(home("west", 2), "north")}, want: homes{"0": failed(home("west", 2), "north")},
		},
		"Joins": {
			reason: "A group that joins one which has started has no start time-out.", groups: numbered(2), before: homes{"0": started(home("west", 1))},
			want: homes{"0": started(home("west", 1)), "1": started(home("west", 1))},
		},
		"JoinsNothing": {
			reason: "One that joins a group which has not started has one.", groups: numbered(2), before: homes{"0": home("west", 1)},
			want: homes{"0": home("west", 1), "1": home("west", 1)},
		},
		"NoTimeout":  {reason: "Without a start time-out it may take any time.", groups: numbered(1), before: homes{"0": home("east", 1)}, changes: []func(*Problem){func(p *Problem) { p.StartTimeout = 0 }}, want: homes{"0": home("east", 1)}},
		"OutOfReach": {reason: "It may answer where that cannot be seen.", groups: numbered(1), before: homes{"0": home("east", 1)}, changes: []func(*Problem){func(p *Problem) { p.Candidates[0].Unreachable = &simNow }}, want: homes{"0": home("east", 1)}},
		"NotAlone":   {reason: "Where each replica answers alone, none answers before one is ready.", groups: numbered(1), before: homes{"0": home("east", 1)}, changes: []func(*Problem){func(p *Problem) { p.AnswerAlone = map[string]bool{"prefill": true, "decode": true} }}, want: homes{"0": failed(home("west", 2), "east")}},
		"JoinsLate": {
			reason: "A group that comes from another home has its time-out from now on.", groups: numbered(2), before: homes{"0": started(home("east", 1)), "1": home("north", 4)},
			changes: []func(*Problem){func(p *Problem) {
				p.Candidates[0].Created = map[key.ReplicaID]time.Time{"1/prefill/0": simNow.Add(-day)}
			}}, want: homes{"0": started(home("east", 1)), "1": started(home("east", 5))},
		},
		"MovesReady": {
			reason: "The first group answers in west already. The second one has not started there.", groups: numbered(2), before: homes{"0": home("east", 1), "1": home("east", 1)},
			changes: []func(*Problem){drain, func(p *Problem) {
				p.Candidates[1].Present, p.Candidates[1].Ready = set("0/prefill/0", "0/decode/0"), set("0/prefill/0", "0/decode/0")
			}}, want: homes{"0": started(home("west", 2)), "1": home("west", 2)},
		},
		"LostDrained": {reason: "Without a record, it has its home where it exists, although that is drained.", groups: numbered(1), changes: []func(*Problem){drain, func(p *Problem) { p.Candidates[1].Reserved = nil }}, want: homes{"0": home("east", 1)}},
		"Sleeps":      {reason: "A group without replicas keeps its record where it has nowhere to go.", groups: sleeping, before: homes{"0": home("east", 3)}, changes: []func(*Problem){nowhere}, want: homes{"0": home("east", 3)}},
		"SleepsNew":   {reason: "It has no record so far.", groups: sleeping, changes: []func(*Problem){nowhere}, want: homes{}},
		"RunsNowhere": {reason: "One with replicas starts anew, because nothing of it exists.", groups: numbered(1), before: homes{"0": home("east", 3)}, changes: []func(*Problem){nowhere, func(p *Problem) { p.Candidates[0].Present = nil }}, want: homes{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := Problem{
				Policy: v1alpha1.PlacementFailover, Groups: tc.groups, PodRequirements: requirements, Homes: tc.before, FailoverAfter: 5 * minute, StartTimeout: time.Hour, Now: simNow,
				Candidates: []Candidate{{Name: "east", Present: all, Created: late, RouterReady: true}, {Name: "west", Reserved: all, RouterReady: true}},
			}
			for _, change := range tc.changes {
				change(&p)
			}
			if diff := cmp.Diff(tc.want, Assign(p).Homes); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestReturns moves a service back to a copy that could not answer there. It goes on to a third cluster.
func TestReturns(t *testing.T) {
	l := &life{
		policy: v1alpha1.PlacementFailover, groups: numbered(1), clusters: []string{"east", "west", "north"},
		trouble: func(at time.Duration, c *Candidate) {
			if c.Name == "west" && at > 80*minute {
				c.StopPolicy = v1alpha1.StopDrain
			}
		},
		ready: func(_, age time.Duration, c string, r key.ReplicaID) bool {
			return age >= 10*minute && (c == "north" || c == "east" && r == "0/prefill/0")
		},
	}
	l.until(day, 5*minute)
	if n := len(l.since["north"]); n != 2 {
		t.Errorf("%d replicas run in north, want both: %v", n, l.homes)
	}
}

// TestStartsInOne has a service that can start in one of several clusters only. It gets there, whichever that is.
func TestStartsInOne(t *testing.T) {
	clusters := []string{"c0", "c1", "c2", "c3", "c4"}
	for _, policy := range []v1alpha1.PlacementPolicy{v1alpha1.PlacementFailover, v1alpha1.PlacementSpread} {
		for _, good := range clusters {
			t.Run(fmt.Sprintf("%s/%s", policy, good), func(t *testing.T) {
				l := &life{
					policy: policy, groups: numbered(1), clusters: clusters,
					ready: func(_, age time.Duration, c string, _ key.ReplicaID) bool { return age >= 10*minute && c == good },
				}
				l.until(5*day, 5*minute)
				if n := len(l.since[good]); n != 2 {
					t.Errorf("%d replicas run in %s, want both:\n%s", n, good, strings.Join(l.moves, "\n"))
				}
			})
		}
	}
}

// TestAnswersAlone has two roles of which only one ever starts. A service of workers serves with one of them and stays. One of
// prefill and decode cannot, and moves.
func TestAnswersAlone(t *testing.T) {
	for _, alone := range []bool{false, true} {
		t.Run(strconv.FormatBool(alone), func(t *testing.T) {
			l := &life{
				policy: v1alpha1.PlacementFailover, groups: numbered(1), clusters: []string{"east", "west"},
				alone: map[string]bool{"prefill": alone, "decode": alone},
				ready: func(_, age time.Duration, _ string, r key.ReplicaID) bool {
					return age >= 10*minute && r == "0/prefill/0"
				},
			}
			l.until(day, 5*minute)
			if moved := len(l.moves) > 0; moved == alone {
				t.Errorf("it moved: %t, want %t", moved, !alone)
			}
		})
	}
}

// TestFirstRecordFails makes a group whose home could not be recorded. It has its time-out all the same.
func TestFirstRecordFails(t *testing.T) {
	all := set("0/prefill/0", "0/decode/0")
	s := Assign(Problem{
		Policy: v1alpha1.PlacementFailover, Groups: numbered(1), PodRequirements: requirements, StartTimeout: time.Hour, Now: simNow, Seed: "uid",
		Candidates: []Candidate{{Name: "east", Weight: 1, Present: all, Reserved: all, RouterReady: true, ReceivesTraffic: true}},
	})
	if h := s.Homes["0"]; h.Cluster != "east" || h.Started {
		t.Errorf("the home is %+v, want east, where it has not started", h)
	}
}

// TestAnswersAtTimeout has a group answer for the first time in the call in which its time is over.
func TestAnswersAtTimeout(t *testing.T) {
	all, created := set("0/prefill/0", "0/decode/0", "1/prefill/0", "1/decode/0"), map[key.ReplicaID]time.Time{}
	for r := range all {
		created[r] = simNow.Add(-2 * time.Hour)
	}
	homes := homeIn("east", "0", "1")
	homes["0"] = reservation.Home{Cluster: "east", Epoch: 1, Started: true}
	s := Assign(Problem{
		Policy: v1alpha1.PlacementFailover, Groups: numbered(2), PodRequirements: requirements, Homes: homes, StartTimeout: time.Hour, Now: simNow, Seed: "uid",
		Candidates: []Candidate{
			{Name: "east", Weight: 1, Present: all, Ready: set("1/prefill/0", "1/decode/0", "0/prefill/0"), Reserved: all, Created: created, RouterReady: true, ReceivesTraffic: true},
			{Name: "west", Weight: 1, Reserved: all, ReceivesTraffic: true, Free: capacity.Free{Pools: []capacity.Pool{nodes("a", 50, 8)}}},
		},
	})
	if h := s.Homes["1"]; h.Cluster != "east" || !h.Started {
		t.Errorf("the home is %+v, want east, where it has started", h)
	}
}

// TestDrainGoesOn drains a cluster. The move in parts stops at a group that does not start in the next one, and goes on
// to the third one.
func TestDrainGoesOn(t *testing.T) {
	l := &life{
		policy: v1alpha1.PlacementFailover, groups: []reservation.ReplicaGroup{oneReplica("0/w/0"), oneReplica("1/w/0"), oneReplica("2/w/0")},
		clusters: []string{"east", "west", "north"}, size: tenEach, room: 40,
		trouble: func(at time.Duration, c *Candidate) {
			if c.Name == "east" && at > day {
				c.StopPolicy = v1alpha1.StopDrain
			}
		},
		ready: func(_, age time.Duration, c string, r key.ReplicaID) bool {
			return age >= 10*minute && (c != "west" || !of(r, "1"))
		},
	}
	l.until(3*day, 5*minute)
	if n := len(l.since["north"]); n != 3 || len(l.since["east"]) > 0 {
		t.Errorf("%d groups run in north and %d in east, want all in north", n, len(l.since["east"]))
	}
}
