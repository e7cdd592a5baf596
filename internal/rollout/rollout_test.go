package rollout

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRelease(t *testing.T) {
	old := func(i int32) Unit { return Unit{Index: i, Outdated: true, Serving: true} }
	broken := func(i int32) Unit { return Unit{Index: i, Outdated: true, Broken: true} }
	unknown := func(i int32) Unit { return Unit{Index: i, Outdated: true} }
	started := func(i int32) Unit { return Unit{Index: i, Started: true, Broken: true} }
	done := func(i int32) Unit { return Unit{Index: i, Serving: true} }
	with := func(u Unit, change func(*Unit)) Unit { change(&u); return u }
	one := Policy{MaxUnavailable: 1}
	cases := map[string]struct {
		units  []Unit
		policy Policy
		want   []int
	}{
		"NothingToDo":              {[]Unit{done(0), done(1)}, one, nil},
		"HighestIndexFirst":        {[]Unit{old(0), old(1), old(2)}, one, []int{2}},
		"TwoAtOnce":                {[]Unit{old(0), old(1), old(2)}, Policy{MaxUnavailable: 2}, []int{1, 2}},
		"OneIsDownAlready":         {[]Unit{old(0), old(1), started(2)}, one, nil},
		"NextAfterOneServes":       {[]Unit{old(0), old(1), done(2)}, one, []int{1}},
		"BrokenFirst":              {[]Unit{broken(0), old(1), old(2)}, one, []int{0}},
		"AllBroken":                {[]Unit{broken(0), broken(1), broken(2)}, one, []int{0, 1, 2}},
		"UnknownIsNotBroken":       {[]Unit{unknown(0), old(1), old(2)}, one, nil},
		"CrashDoesNotSpreadTheNew": {[]Unit{old(0), broken(1), started(2)}, one, nil},
		"AnotherIsStarted":         {[]Unit{broken(0), broken(1), started(2)}, one, nil},
		"BrokenWithinTheAllowance": {[]Unit{broken(0), old(1), old(2), started(3)}, Policy{MaxUnavailable: 2}, []int{0}},
		"OneBrokenAfterTheOther":   {[]Unit{broken(0), broken(1), old(2)}, one, []int{1}},
		"BrokenThatAnswersIsLater": {[]Unit{broken(0), with(broken(1), func(u *Unit) { u.Answering = true }), old(2)}, one, []int{0}},
		"KindsOfTheirOwn": {[]Unit{
			with(old(0), func(u *Unit) { u.Kind = "a" }), with(old(1), func(u *Unit) { u.Kind = "a" }),
			{Kind: "b", Index: 1, Extra: true, Serving: true}, {Kind: "b", Serving: true},
		}, Policy{}, nil},
		"OneOfAllKinds":              {[]Unit{with(old(0), func(u *Unit) { u.Kind = "a" }), with(old(0), func(u *Unit) { u.Kind = "b" })}, one, []int{0}},
		"StartedIsCompleted":         {[]Unit{old(0), with(started(1), func(u *Unit) { u.Outdated = true })}, one, []int{1}},
		"StartedIsCompletedIfPaused": {[]Unit{old(0), with(started(1), func(u *Unit) { u.Outdated = true })}, Policy{MaxUnavailable: 1, Paused: true}, []int{1}},
		"StartedAnswers":             {[]Unit{old(0), with(started(1), func(u *Unit) { u.Outdated, u.Answering = true, true })}, one, nil},
		"StartedAnswersIfPaused":     {[]Unit{old(0), with(started(1), func(u *Unit) { u.Outdated, u.Answering = true, true })}, Policy{MaxUnavailable: 1, Paused: true}, nil},
		"StartedMayServe":            {[]Unit{old(0), with(started(1), func(u *Unit) { u.Outdated, u.Unknown = true, true })}, one, nil},
		"BrokenMayServe":             {[]Unit{old(0), with(broken(1), func(u *Unit) { u.Unknown = true })}, one, nil},
		"Paused":                     {[]Unit{old(0), broken(1)}, Policy{MaxUnavailable: 1, Paused: true}, nil},
		"Partition":                  {[]Unit{old(0), old(1), old(2)}, Policy{MaxUnavailable: 3, Partition: 2}, []int{2}},
		"PartitionHoldsBackBroken":   {[]Unit{broken(0), old(1)}, Policy{MaxUnavailable: 1, Partition: 1}, nil},
		"Blocked":                    {[]Unit{old(0), with(old(1), func(u *Unit) { u.Blocked = true })}, one, []int{0}},
		"NoneMayBeUnavailable":       {[]Unit{old(0), old(1)}, Policy{}, nil},
		"ExtraUnitReplacesOne":       {[]Unit{old(0), old(1), {Index: 2, Extra: true, Serving: true}}, Policy{}, []int{1}},
		"ExtraUnitDoesNotServeSoFar": {[]Unit{old(0), old(1), {Index: 2, Extra: true, Started: true}}, Policy{}, nil},
		"ExtraUnitOfAnotherCluster": {[]Unit{
			with(old(0), func(u *Unit) { u.Cluster = "a" }), {Cluster: "a", Index: 1, Extra: true, Serving: true},
			with(old(0), func(u *Unit) { u.Cluster = "b" }),
		}, Policy{}, []int{0}},
		"ExtraUnitOfAClusterThatIsDone": {[]Unit{
			with(done(0), func(u *Unit) { u.Cluster = "a" }), {Cluster: "a", Index: 1, Extra: true, Serving: true},
			with(old(0), func(u *Unit) { u.Cluster = "b" }),
		}, Policy{}, nil},
		"ExtraUnitWhileAnotherClusterHasNoRoom": {[]Unit{
			with(old(0), func(u *Unit) { u.Cluster = "a" }), with(old(1), func(u *Unit) { u.Cluster = "a" }), {Cluster: "a", Index: 2, Extra: true, Serving: true},
			with(old(0), func(u *Unit) { u.Cluster = "b" }), {Cluster: "b", Index: 1},
		}, Policy{}, []int{1}},
		"ExtraUnitOfAnotherKindWhileOneIsMissing": {[]Unit{
			with(old(0), func(u *Unit) { u.Cluster, u.Kind = "a", "x" }), {Cluster: "a", Kind: "y", Index: 1, Extra: true, Serving: true}, {Cluster: "a", Kind: "y", Serving: true},
			{Cluster: "b", Kind: "x"},
		}, Policy{}, nil},
		"ExtraUnitAddsToTheAllowance": {[]Unit{old(0), old(1), old(2), {Index: 3, Extra: true, Serving: true}}, one, []int{1, 2}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []int
			for i, released := range Release(tc.units, tc.policy) {
				if released {
					got = append(got, i)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// A sim is a service whose replicas are units. A released unit stops serving until it has started.
type sim struct {
	random *rand.Rand
	// works tells that the newest template serves.
	works   bool
	updated []bool
	serving []bool
}

func (s *sim) units() []Unit {
	units := make([]Unit, len(s.updated))
	for i := range units {
		units[i] = Unit{
			Index: int32(i), Outdated: !s.updated[i], Started: s.updated[i] && !s.serving[i], Serving: s.serving[i],
			Broken: !s.serving[i] && s.random.IntN(2) == 0,
		}
	}
	return units
}

// step lets time pass: started units come to serve if the template works.
func (s *sim) step() {
	for i := range s.updated {
		if s.updated[i] && s.works && s.random.IntN(3) == 0 {
			s.serving[i] = true
		}
		if !s.updated[i] && s.random.IntN(3) == 0 {
			s.serving[i] = true // A crash is over.
		}
	}
}

func (s *sim) count(list []bool) (n int32) {
	for _, b := range list {
		if b {
			n++
		}
	}
	return n
}

// TestRandomRollouts counts what serves, with replicas that crash by themselves.
func TestRandomRollouts(t *testing.T) {
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 1))
		n := 1 + random.IntN(8)
		p := Policy{MaxUnavailable: 1 + int32(random.IntN(n))}
		s := &sim{random: random, works: random.IntN(2) == 0, updated: make([]bool, n), serving: make([]bool, n)}
		for i := range s.serving {
			s.serving[i] = true
		}
		servedAndReleased := int32(0)
		for range 400 {
			if random.IntN(20) == 0 {
				s.serving[random.IntN(n)] = false
			}
			before := s.count(s.serving)
			stopped := int32(0)
			for i, released := range Release(s.units(), p) {
				if released && s.serving[i] {
					stopped++
				}
				if released {
					s.updated[i], s.serving[i] = true, false
				}
			}
			servedAndReleased += stopped
			if stopped > 0 && before-stopped < int32(n)-p.MaxUnavailable {
				t.Fatalf("seed %d: %d of %d served, and %d of them were released", seed, before, n, stopped)
			}
			s.step()
		}
		if s.works && s.count(s.updated) != int32(n) {
			t.Errorf("seed %d: %d of %d units are updated", seed, s.count(s.updated), n)
		}
		if !s.works && servedAndReleased > p.MaxUnavailable {
			t.Errorf("seed %d: %d units that served got a template that does not work", seed, servedAndReleased)
		}
	}
}
