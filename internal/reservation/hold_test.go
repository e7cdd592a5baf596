package reservation

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/capacity/capacitytest"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
)

// grantedTo lists the services with grants.
func grantedTo(result Result) map[string]bool {
	all := map[string]bool{}
	for _, s := range result.Services {
		all[s.UID] = true
	}
	return all
}

// withSmall adds a group to a request that comes first, and is one pod with one GPU.
func withSmall(req CapacityRequest) CapacityRequest {
	req.PodRequirements["small"] = *capacitytest.Requirements(1, 1)
	cr := req.Clusters[here]
	cr.Groups = append([]ReplicaGroup{{Name: "small", Replicas: []ReplicaRequest{{Name: "small/0", Pods: map[string]int64{"small": 1}}}}}, cr.Groups...)
	req.Clusters[here] = cr
	return req
}

// TestWithdrawn proves that a replica that is no longer requested keeps its grant as long as its service
// may have workloads of it, if the service has ever said that it runs it.
func TestWithdrawn(t *testing.T) {
	free := pool(capacitytest.Nodes(1, 8, 64))
	a, b := request("a", 4, 2), request("b", 8, 1)
	one := request("a", 4, 1)
	seen := func(last Result, after time.Duration, inUse map[key.ReplicaID]bool, requests ...CapacityRequest) Result {
		in := Input{Cluster: here, Free: free, Ledger: last.Ledger, Requests: requests, Now: noon.Add(after)}
		if inUse != nil {
			in.InUse = map[ServiceID]map[key.ReplicaID]bool{a.ServiceID(): inUse}
		}
		return Reserve(in)
	}
	none, first, second, some := map[key.ReplicaID]bool{}, map[key.ReplicaID]bool{"0/0": true}, map[key.ReplicaID]bool{"0/1": true}, map[key.ReplicaID]bool{"": true}
	granted := seen(Result{}, 0, nil, a)
	runs := seen(granted, time.Second, nil, running(a, "0/0", "0/1"))
	hasLeft := request("a", 4, 1)
	hasLeft.Left = map[string][]key.ReplicaID{here: {"0/1"}}
	left := seen(granted, time.Minute, nil, hasLeft, b)
	withdrawn := seen(runs, time.Minute, nil, running(one, "0/0"), b)
	const ends = time.Minute + LeavingGrace
	later := seen(withdrawn, ends, second, running(one, "0/0"), b)
	cases := map[string]struct {
		reason   string
		result   Result
		replicas int
		ends     time.Duration
	}{
		"NeverRan":   {reason: "It was granted and never started.", result: seen(granted, time.Minute, second, one, b), replicas: 1},
		"Left":       {reason: "It ran, and the request that said so was replaced before the cluster read it.", result: left, replicas: 2, ends: ends},
		"LeftAndRan": {reason: "The Objects tell when it is gone.", result: seen(left, ends, second, one, b), replicas: 2, ends: ends + LeavingGrace},
		"LeftGone":   {reason: "Its Object is gone.", result: seen(left, ends, none, one, b), replicas: 1},
		"Withdrawn":  {reason: "Its pods may run.", result: withdrawn, replicas: 2, ends: ends},
		"Soon":       {reason: "A cache may not have its Object yet.", result: seen(withdrawn, ends-time.Second, none, one, b), replicas: 2, ends: ends},
		"Unknown":    {reason: "It is not known whether there is an Object.", result: seen(withdrawn, time.Hour, nil, one, b), replicas: 2},
		"InUse":      {reason: "It has an Object, and the time starts anew.", result: later, replicas: 2, ends: ends + LeavingGrace},
		"AnyInUse":   {reason: "It may be the one that has an Object.", result: seen(withdrawn, ends, some, one, b), replicas: 2, ends: ends + LeavingGrace},
		"OtherInUse": {reason: "What still runs has an Object.", result: seen(withdrawn, ends, first, running(one, "0/0"), b), replicas: 1},
		"Gone":       {reason: "Its Object is gone.", result: seen(later, ends+LeavingGrace, none, one, b), replicas: 1},
		"Claims":     {reason: "It may run, whatever the request claims that does not request it.", result: seen(runs, time.Minute, nil, running(one, "0/0", "0/1"), b), replicas: 2, ends: ends},
		"OneBack":    {reason: "The other one came back meanwhile, and runs.", result: seen(seen(seen(runs, time.Minute, nil, withoutGroups(a), b), time.Minute+time.Second, nil, running(one, "0/0"), b), ends, none, running(one, "0/0"), b), replicas: 1},
		"AgainOlder": {reason: "It is requested again before its grant went to an older service.", result: seen(withdrawn, time.Hour, none, a, created(b, "2026-03-01T09:00:00Z")), replicas: 2},
		"AgainGone":  {reason: "It keeps its grant although nothing of it runs any more, and an older service wants the room.", result: seen(withdrawn, time.Hour, none, running(a, "0/0"), created(request("b", 4, 1), "2026-03-01T09:00:00Z")), replicas: 2},
		"Again":      {reason: "It is requested again, and has its grant.", result: seen(withdrawn, time.Hour, none, a, b), replicas: 2},
		"All":        {reason: "All are withdrawn and gone.", result: seen(seen(runs, time.Minute, nil, withoutGroups(a), b), ends, none, withoutGroups(a), b), replicas: 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			replicas := 0
			for _, s := range tc.result.Services {
				if s.UID == "a" {
					replicas = len(generations(&s))
				}
			}
			if replicas != tc.replicas {
				t.Errorf("%s It has grants for %d replicas, want %d", tc.reason, replicas, tc.replicas)
			}
			var ends time.Duration
			if !tc.result.GraceEnds.IsZero() {
				ends = tc.result.GraceEnds.Sub(noon)
			}
			if ends != tc.ends {
				t.Errorf("%s The time ends after %s, want %s", tc.reason, ends, tc.ends)
			}
		})
	}
}

// TestTakesTurns proves that services with workloads wait anew where not all could be asked about, and the others do not.
func TestTakesTurns(t *testing.T) {
	a := request("a", 4, 1)
	ledger := Ledger{Services: []Service{started(withGPUs(reserved("a", "0/0"), 4))}}
	ledger.Services[0].MissingSince, ledger.Services[0].Grants[0].Leaving = noon.Add(-time.Hour), true
	for reason, tc := range map[string]struct {
		inUse map[ServiceID]map[key.ReplicaID]bool
		want  time.Time
	}{
		"it was not asked about": {nil, noon.Add(-time.Hour)},
		"it has workloads":       {map[ServiceID]map[key.ReplicaID]bool{a.ServiceID(): {"0/0": true}}, noon},
	} {
		result := Reserve(Input{Cluster: here, Free: pool(capacitytest.Nodes(1, 8, 64)), Ledger: ledger, Requests: []CapacityRequest{withoutGroups(a)}, InUse: tc.inUse, TakesTurns: true, Now: noon})
		if diff := cmp.Diff(tc.want, result.Services[0].MissingSince); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", reason, diff)
		}
	}
}

// TestAgainLarger proves that a replica that left, and comes back with more than there is, does not keep
// the room of its former pods for ever.
func TestAgainLarger(t *testing.T) {
	free := pool(capacitytest.Nodes(1, 8, 64))
	a, b := request("a", 4, 1), request("b", 8, 1)
	larger := withGenerations(request("a", 9, 1), 2)
	at := func(last Result, after time.Duration, inUse map[key.ReplicaID]bool, a CapacityRequest) Result {
		in := Input{Cluster: here, Free: free, Ledger: last.Ledger, Requests: []CapacityRequest{a, b}, Now: noon.Add(after)}
		if inUse != nil {
			in.InUse = map[ServiceID]map[key.ReplicaID]bool{a.ServiceID(): inUse}
		}
		return Reserve(in)
	}
	runs := at(at(Result{}, 0, nil, a), time.Second, nil, running(a, "0/0"))
	back := at(at(runs, time.Minute, nil, withoutGroups(a)), 2*time.Minute, nil, larger)
	stays := at(back, 2*time.Minute+Grace, map[key.ReplicaID]bool{"0/0": true}, larger)
	gone := at(at(stays, 3*time.Minute+Grace, map[key.ReplicaID]bool{}, larger), 3*time.Minute+2*Grace, map[key.ReplicaID]bool{}, larger)
	last := at(gone, 3*time.Minute+3*Grace, map[key.ReplicaID]bool{}, larger)
	if got := back.Pending[0].Message; got != keptBefore+messageLeaving {
		t.Errorf("it waits because %s", got)
	}
	got := []map[string]bool{grantedTo(back), grantedTo(stays), grantedTo(last)}
	if diff := cmp.Diff([]map[string]bool{{"a": true}, {"a": true}, {"b": true}}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestComesBackSmaller proves that a replica which left, and comes back with less, keeps the room of its
// former pods while these may run, and gives it back once it is known that they do not.
func TestComesBackSmaller(t *testing.T) {
	a, b := request("a", 8, 1), request("b", 4, 1)
	smaller := withGenerations(request("a", 4, 1), 2)
	at := func(last Result, after time.Duration, inUse map[key.ReplicaID]bool, a CapacityRequest) Result {
		in := Input{Cluster: here, Free: pool(capacitytest.Nodes(1, 8, 64)), Ledger: last.Ledger, Requests: []CapacityRequest{a, b}, Now: noon.Add(after)}
		if inUse != nil {
			in.InUse = map[ServiceID]map[key.ReplicaID]bool{a.ServiceID(): inUse}
		}
		return Reserve(in)
	}
	runs := at(at(Result{}, 0, nil, a), time.Second, nil, running(a, "0/0"))
	back := at(runs, time.Minute, nil, smaller)
	stays := at(back, time.Minute+LeavingGrace, map[key.ReplicaID]bool{"0/0": true}, smaller)
	gone := at(stays, 2*time.Minute+LeavingGrace, map[key.ReplicaID]bool{}, smaller)
	got := []map[string]bool{grantedTo(back), grantedTo(stays), grantedTo(gone)}
	if diff := cmp.Diff([]map[string]bool{{"a": true}, {"a": true}, {"a": true, "b": true}}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestGiveBackLeft proves that nobody gets the room of what may run as its request says, while that waits for the rest of
// its group. Once it is known that nothing runs, it is given back.
func TestGiveBackLeft(t *testing.T) {
	a := withGenerations(required(request("a", 5, 2), 2), 1, 2)
	a.Left = map[string][]key.ReplicaID{here: {"0/0", "0/1"}}
	for in, runs := range map[key.ReplicaID]bool{"": true, "0/0": true, "0/1": false} {
		last := Result{Ledger: Ledger{Services: []Service{withGeneration(withGPUs(reserved("a", "0/0"), 5), 1)}, Waiting: []Waiting{{ServiceID: a.ServiceID(), Since: noon.Add(-Grace)}}}}
		for i := range 4 {
			input := Input{Cluster: here, Free: pool(capacitytest.Nodes(1, 8, 64)), Ledger: last.Ledger, Requests: []CapacityRequest{a, request("b", 8, 1)}, Now: noon.Add(time.Duration(i) * time.Minute)}
			if i > 0 {
				input.InUse = map[ServiceID]map[key.ReplicaID]bool{a.ServiceID(): {in: runs}}
			}
			last = Reserve(input)
			if i <= 1 && (runs || i == 0) {
				if s := last.Services[0]; !s.MissingSince.Equal(noon) || len(generations(&s)) != 1 {
					t.Errorf("after %d minutes it has %d grants, and may have left since %s", i, len(generations(&s)), s.MissingSince)
				}
			}
		}
		want := map[string]bool{"b": true}
		if runs {
			want = map[string]bool{"a": true}
		}
		if diff := cmp.Diff(want, grantedTo(last)); diff != "" {
			t.Errorf("%q runs = %t\n-want, +got:\n%s", in, runs, diff)
		}
	}
}

// TestComesBackAlike proves that a replica which left, and comes back as it was, is granted at once.
func TestComesBackAlike(t *testing.T) {
	a := request("a", 8, 1)
	at := func(last Result, after time.Duration, a CapacityRequest) Result {
		return Reserve(Input{Cluster: here, Free: pool(capacitytest.Nodes(1, 8, 64)), Ledger: last.Ledger, Requests: []CapacityRequest{a}, Now: noon.Add(after)})
	}
	gone := at(at(at(Result{}, 0, a), time.Second, running(a, "0/0")), time.Minute, withoutGroups(a))
	back := at(gone, time.Minute+time.Second, withGenerations(request("a", 8, 1), 2))
	if diff := cmp.Diff(map[key.ReplicaID]int64{"0/0": 2}, generations(&back.Services[0])); diff != "" || len(back.Pending) > 0 {
		t.Errorf("pending %v\n-want, +got:\n%s", back.Pending, diff)
	}
}

// TestLeftIsQuiet proves that the ledger stays as it is in the end, however long a request says that a replica left which
// it requests again: as it was, or with more than there is beside another one that runs.
func TestLeftIsQuiet(t *testing.T) {
	left := map[string][]key.ReplicaID{here: {"0/1"}}
	alike := running(request("a", 4, 2), "0/0")
	alike.Left = left
	larger := running(withGenerations(request("a", 13, 2), 0, 1), "0/0")
	larger.Left, larger.PodRequirements["small"] = left, *capacitytest.Requirements(4, 1)
	larger.Clusters[here].Groups[0].Replicas[0].Pods = map[string]int64{"small": 1}
	for name, again := range map[string]CapacityRequest{"alike": alike, "larger": larger} {
		for _, notSchedulable := range []string{"", "the cluster is on hold"} {
			at := func(last Result, after time.Duration, a CapacityRequest) Result {
				inUse := map[ServiceID]map[key.ReplicaID]bool{a.ServiceID(): {"0/0": true}}
				return Reserve(Input{Cluster: here, Free: pool(capacitytest.Nodes(1, 16, 64)), Ledger: last.Ledger, Requests: []CapacityRequest{a}, InUse: inUse, NotSchedulable: notSchedulable, Now: noon.Add(after)})
			}
			last := Reserve(Input{Cluster: here, Free: pool(capacitytest.Nodes(1, 16, 64)), Requests: []CapacityRequest{running(request("a", 4, 2), "0/0")}, Now: noon})
			for i := range 5 {
				last = at(last, time.Duration(i+1)*time.Minute, again)
			}
			for i := range 5 {
				now := at(last, time.Duration(i+10)*time.Minute, again)
				if diff := cmp.Diff(last.Ledger, now.Ledger); diff != "" {
					t.Fatalf("%s, %q:\n-before, +after:\n%s", name, notSchedulable, diff)
				}
				last = now
			}
		}
	}
}

// TestComesBackElsewhere proves that a replica which left, and comes back larger, gets no other pool while
// its former pods may still run. Nobody else gets their room.
func TestComesBackElsewhere(t *testing.T) {
	a := request("a", 4, 1)
	at := func(last Result, after time.Duration, inUse map[ServiceID]map[key.ReplicaID]bool, requests ...CapacityRequest) Result {
		return Reserve(Input{Cluster: here, Free: twoPools(1, 1), Ledger: last.Ledger, Requests: requests, InUse: inUse, Now: noon.Add(after)})
	}
	// The pods of the second service fill the first pool.
	runs := at(at(at(Result{}, 0, nil, request("0", 8, 1)), 0, nil, request("0", 8, 1), a), time.Second, nil, request("0", 8, 1), runningIn(a, "b", "0/0"))
	larger := withGenerations(request("a", 8, 1), 2)
	larger.Clusters[here].Groups[0].Replicas[0].Replacing = true
	back := at(runs, time.Minute, nil, withoutGroups(request("0", 8, 1)), larger, request("c", 8, 1))
	last := at(back, time.Minute+LeavingGrace, map[ServiceID]map[key.ReplicaID]bool{a.ServiceID(): {"0/0": true}}, larger, request("c", 8, 1), request("d", 8, 1))
	got := []map[string]string{poolsOf(runs), poolsOf(back), poolsOf(last)}
	want := []map[string]string{{"0 0/0": "a", "a 0/0": "b"}, {"a 0/0": "b", "c 0/0": "a"}, {"a 0/0": "b", "c 0/0": "a"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// poolsOf returns the pool of each replica that is granted, by service and replica.
func poolsOf(r Result) map[string]string {
	pools := map[string]string{}
	for _, s := range r.Ledger.Services {
		for _, g := range s.Grants {
			for _, name := range g.Replicas {
				pools[s.UID+" "+string(name)] = g.Pin.Name()
			}
		}
	}
	return pools
}

// withoutGroups returns a request that requests nothing of the cluster any more.
func withoutGroups(req CapacityRequest) CapacityRequest {
	req.Clusters = nil
	return req
}

// TestGiveBack proves that a group that changed before it started frees what it was granted, if it cannot
// start with that, and that a group that runs or can start does not.
func TestGiveBack(t *testing.T) {
	free := pool(capacitytest.Nodes(1, 8, 64))
	// Each replica takes half of the cluster. The second one was added after the first was granted.
	grown := withGenerations(required(request("a", 5, 2), 2), 1, 2)
	ledger := Ledger{Services: []Service{withGeneration(withGPUs(reserved("a", "0/0"), 5), 1)}}
	stopped := ""
	after := func(waited time.Duration, a CapacityRequest) map[string]bool {
		ledger.Waiting = []Waiting{{ServiceID: a.ServiceID(), Since: noon.Add(-waited)}}
		return grantedTo(Reserve(Input{Cluster: here, Free: free, Ledger: ledger, Requests: []CapacityRequest{a, created(request("b", 8, 1), "2026-03-01T09:00:00Z")}, NotSchedulable: stopped, Now: noon}))
	}
	a, b := map[string]bool{"a": true}, map[string]bool{"b": true}
	// inUse has the replica left, and some workloads.
	inUse := func(replicas map[key.ReplicaID]bool) map[string]bool {
		left := withGenerations(required(request("a", 5, 2), 2), 1, 2)
		left.Left = map[string][]key.ReplicaID{here: {"0/0"}}
		in := Input{Cluster: here, Free: free, Ledger: ledger, Requests: []CapacityRequest{left, created(request("b", 8, 1), "2026-03-01T09:00:00Z")}, InUse: map[ServiceID]map[key.ReplicaID]bool{left.ServiceID(): replicas}, Now: noon}
		in.Ledger.Waiting = []Waiting{{ServiceID: left.ServiceID(), Since: noon.Add(-Grace)}}
		return grantedTo(Reserve(in))
	}
	// second has a group of two replicas, of which the first one runs, and the second one was granted other pods than it wants now.
	second := func() map[string]bool {
		grows := running(required(withGenerations(request("a", 4, 2), 1, 2), 2), "0/0")
		grows.PodRequirements["large"] = *capacitytest.Requirements(9, 1)
		grows.Clusters[here].Groups[0].Replicas[1].Pods = map[string]int64{"large": 1}
		return grantedTo(Reserve(Input{
			Cluster: here, Free: free, Requests: []CapacityRequest{grows, created(request("b", 4, 1), "2026-03-01T09:00:00Z")}, Now: noon,
			Ledger: Ledger{Services: []Service{withGeneration(withGPUs(reserved("a", "0/0", "0/1"), 4), 1)}, Waiting: []Waiting{{ServiceID: grows.ServiceID(), Since: noon.Add(-Grace)}}},
		}))
	}
	stopped = "the cluster is on hold"
	onHold := after(Grace, grown)
	stopped = ""
	cases := map[string]struct {
		reason string
		got    map[string]bool
		want   map[string]bool
	}{
		"Soon":      {reason: "It may start at this moment, because the change comes after it was granted.", got: after(Grace-time.Second, grown), want: a},
		"Later":     {reason: "It has not started, and does not without the rest.", got: after(Grace, grown), want: b},
		"Runs":      {reason: "It has started before it grew.", got: after(Grace, running(grown, "0/0")), want: a},
		"Starts":    {reason: "It starts with what it has.", got: after(Grace, withGenerations(required(request("a", 5, 2), 1), 1, 2)), want: a},
		"Changed":   {reason: "What it was granted was for other pods.", got: after(Grace, withGenerations(required(request("a", 9, 1), 1), 2)), want: b},
		"Alone":     {reason: "So it was for a replica that starts without others.", got: after(Grace, withGenerations(request("a", 9, 1), 2)), want: b},
		"Whole":     {reason: "All groups start together.", got: after(Grace, allOrNothing(withGenerations(request("a", 5, 1, 1), 1))), want: b},
		"Groups":    {reason: "Each group starts by itself.", got: after(Grace, withGenerations(request("a", 5, 1, 1), 1)), want: a},
		"OnHold":    {reason: "Nobody else gets the room.", got: onHold, want: a},
		"Refused":   {reason: "It runs, and would not be granted anew.", got: after(Grace, notAllowed(running(grown, "0/0"))), want: a},
		"LeftRuns":  {reason: "It may have left, and has workloads.", got: inUse(map[key.ReplicaID]bool{"0/0": true}), want: a},
		"LeftAny":   {reason: "It is not known of which replica the workloads are.", got: inUse(map[key.ReplicaID]bool{"": true}), want: a},
		"LeftOther": {reason: "Another replica has workloads.", got: inUse(map[key.ReplicaID]bool{"0/1": true}), want: b},
		"LeftGone":  {reason: "It has no workloads.", got: inUse(map[key.ReplicaID]bool{}), want: b},
		"Second":    {reason: "What was granted of a group that runs is kept, while a change of it does not fit.", got: second(), want: a},
		"Covers":    {reason: "A replica that starts without others has what it needs.", got: after(Grace, withGenerations(request("a", 5, 2), 1, 2)), want: a},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestMissing proves that a request that is missing keeps its grants for the grace time and as long
// as its service may have workloads, and that nobody else gets them meanwhile.
func TestMissing(t *testing.T) {
	free := pool(capacitytest.Nodes(1, 8, 64))
	a, b := request("a", 8, 1), request("b", 8, 1)
	withdrawn := CapacityRequest{UID: "a", Namespace: "team", Name: "s-a"}
	seen := func(inUse map[ServiceID]map[key.ReplicaID]bool, last Result, after time.Duration, requests ...CapacityRequest) Result {
		return Reserve(Input{Cluster: here, Free: free, Ledger: last.Ledger, Requests: requests, InUse: inUse, Now: noon.Add(after)})
	}
	none, some := map[ServiceID]map[key.ReplicaID]bool{a.ServiceID(): {}}, map[ServiceID]map[key.ReplicaID]bool{a.ServiceID(): {"0/0": true}}
	at := func(last Result, after time.Duration, requests ...CapacityRequest) Result {
		return seen(none, last, after, requests...)
	}
	first := at(Result{}, 0, a)
	missing := at(first, time.Minute, b)
	const ends = time.Minute + Grace
	runs := seen(some, missing, ends+time.Second, b)
	missingBoth := func(a, c time.Duration) Ledger {
		first, second := withGPUs(reserved("a", "0/0"), 4), withGPUs(reserved("c", "0/0"), 4)
		first.MissingSince, second.MissingSince = noon.Add(a), noon.Add(c)
		return Ledger{Services: []Service{first, second}}
	}
	cases := map[string]struct {
		reason string
		result Result
		want   map[string]bool
		// ends is when the grace time ends, after noon.
		ends time.Duration
	}{
		"Once":       {reason: "It is missing for one call.", result: missing, want: map[string]bool{"a": true}, ends: ends},
		"Still":      {reason: "It is missing for less than the grace time.", result: at(missing, ends-time.Second, b), want: map[string]bool{"a": true}, ends: ends},
		"Long":       {reason: "It is missing for the grace time, and has no workloads.", result: at(missing, ends, b), want: map[string]bool{"b": true}},
		"Runs":       {reason: "It has workloads, and the grace time starts anew.", result: runs, want: map[string]bool{"a": true}, ends: ends + time.Second + Grace},
		"RunsSoon":   {reason: "Within the grace time nothing is written.", result: seen(some, missing, ends-time.Second, b), want: map[string]bool{"a": true}, ends: ends},
		"RunsLong":   {reason: "It has workloads, whatever time passes.", result: seen(some, runs, 1000*time.Hour, b), want: map[string]bool{"a": true}, ends: 1000*time.Hour + Grace},
		"Stopped":    {reason: "Its workloads have just gone.", result: at(runs, ends+Grace, b), want: map[string]bool{"a": true}, ends: ends + time.Second + Grace},
		"Ended":      {reason: "Its workloads are gone for the grace time.", result: at(runs, ends+time.Second+Grace, b), want: map[string]bool{"b": true}},
		"Unknown":    {reason: "It is not known whether it has workloads, and no time tells when it will be.", result: seen(nil, missing, 1000*time.Hour, b), want: map[string]bool{"a": true}},
		"Back":       {reason: "It comes back, and the grace time starts anew.", result: at(at(missing, 2*time.Minute, a, b), ends, b), want: map[string]bool{"a": true}, ends: ends + Grace},
		"Withdrawn":  {reason: "It does not request the replica any more.", result: seen(some, first, time.Minute, withdrawn, b), want: map[string]bool{"b": true}},
		"FirstEnds":  {reason: "Of two that are missing, the first decides.", result: at(at(Result{Ledger: missingBoth(0, 30*time.Second)}, time.Minute, b), 61*time.Second, b), want: map[string]bool{"a": true, "c": true}, ends: Grace},
		"SecondEnds": {reason: "The order of the ledger does not matter.", result: at(at(Result{Ledger: missingBoth(30*time.Second, 0)}, time.Minute, b), 61*time.Second, b), want: map[string]bool{"a": true, "c": true}, ends: Grace},
		"Future":     {reason: "A ledger of a clock that was ahead keeps nothing for ever.", result: at(at(at(first, time.Hour, b), time.Minute, b), ends, b), want: map[string]bool{"b": true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, grantedTo(tc.result)); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
			want := time.Time{}
			if tc.ends > 0 {
				want = noon.Add(tc.ends)
			}
			if diff := cmp.Diff(want, tc.result.GraceEnds); diff != "" {
				t.Errorf("%s The grace time ends: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestGangIsNotOvertaken proves that the oldest service gets its room in the end, although small
// ones come and go all the time. Without rule 8 it never does.
func TestGangIsNotOvertaken(t *testing.T) {
	free := pool(capacitytest.Nodes(4, 8, 64))
	gang := created(required(request("gang", 8, 4), 4), "2026-03-01T09:00:00Z")
	small := func(i int) CapacityRequest {
		return created(request(fmt.Sprintf("small-%03d", i), 1, 1), "2026-03-01T10:00:00Z")
	}
	var last Result
	for step := range 200 {
		now := noon.Add(time.Duration(step) * time.Minute)
		// Each small service runs for twenty minutes, and two come in each.
		requests := []CapacityRequest{gang}
		if step == 0 {
			requests = nil // The first small services come before the gang.
		}
		for i := max(0, 2*(step-20)); i < 2*(step+1); i++ {
			requests = append(requests, small(i))
		}
		for i := max(0, 2*(step-20)-2); i < max(0, 2*(step-20)); i++ {
			requests = append(requests, CapacityRequest{UID: small(i).UID, Namespace: "team", Name: small(i).Name})
		}
		last = Reserve(Input{Cluster: here, Free: free, Ledger: last.Ledger, Requests: requests, Now: now})
		if grantedTo(last)["gang"] {
			if now.Sub(noon) < HoldAfter {
				t.Errorf("it gets its room after %s already: the test proves nothing", now.Sub(noon))
			}
			return
		}
	}
	t.Error("after 200 minutes the gang still waits")
}

// TestHold proves when room is held, and that it is held from younger services only.
func TestHold(t *testing.T) {
	used := withGPUs(reserved("used", "0/0"), 8)
	large := required(created(request("large", 8, 2), "2026-03-01T09:00:00Z"), 2)
	waiting := func(uid string, minutes int) []Waiting {
		return []Waiting{{ServiceID: ServiceID{Namespace: "team", Name: "s-" + uid, UID: uid}, Since: noon.Add(-time.Duration(minutes) * time.Minute)}}
	}
	cases := map[string]struct {
		reason   string
		requests []CapacityRequest
		waiting  []Waiting
		want     map[string]bool
		held     bool
	}{
		"Soon":    {reason: "It has not waited for long.", requests: []CapacityRequest{large, request("b", 8, 1)}, waiting: waiting("large", 9), want: map[string]bool{"used": true, "b": true}},
		"Long":    {reason: "It has.", requests: []CapacityRequest{large, request("b", 8, 1)}, waiting: waiting("large", 10), want: map[string]bool{"used": true}, held: true},
		"Older":   {reason: "Older services are served before it.", requests: []CapacityRequest{large, created(request("b", 8, 1), "2026-03-01T08:00:00Z")}, waiting: waiting("large", 10), want: map[string]bool{"used": true, "b": true}, held: true},
		"Never":   {reason: "It does not fit the empty cluster.", requests: []CapacityRequest{required(created(request("large", 8, 3), "2026-03-01T09:00:00Z"), 3), request("b", 8, 1)}, waiting: waiting("large", 60), want: map[string]bool{"used": true, "b": true}},
		"NotHere": {reason: "It is not allowed.", requests: []CapacityRequest{notAllowed(large), request("b", 8, 1)}, waiting: waiting("large", 60), want: map[string]bool{"used": true, "b": true}},
		"Gone":    {reason: "The one that waited does not exist any more.", requests: []CapacityRequest{large, request("b", 8, 1)}, waiting: waiting("gone", 60), want: map[string]bool{"used": true, "b": true}},
		"Equal":   {reason: "An equal request of an older service did not fit either, and has not waited.", requests: []CapacityRequest{nodes(created(request("z", 8, 1), "2026-03-01T08:00:00Z"), 2), nodes(created(request("large", 8, 1), "2026-03-01T09:00:00Z"), 2), request("b", 8, 1)}, waiting: waiting("large", 10), want: map[string]bool{"used": true}},
		"Age":     {reason: "The time that a tenant writes says nothing of how long it waits.", requests: []CapacityRequest{created(large, "1970-01-01T00:00:00Z"), request("b", 8, 1)}, want: map[string]bool{"used": true, "b": true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			result := Reserve(Input{Cluster: here, Free: pool(capacitytest.Nodes(2, 8, 64)), Ledger: Ledger{Services: []Service{used}, Waiting: tc.waiting}, Requests: append(tc.requests, request("used", 8, 1)), Now: noon})
			if diff := cmp.Diff(tc.want, grantedTo(result)); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
			held := len(result.Pending) > 0 && strings.HasSuffix(result.Pending[0].Message, "Room is held for it")
			if held != tc.held {
				t.Errorf("%s Room is held: %t, want %t: %v", tc.reason, held, tc.held, result.Pending)
			}
		})
	}
}

// TestHoldBeside proves what room is held for, and what gets none of it. The first service has waited for long.
func TestHoldBeside(t *testing.T) {
	const held, while = ". Room is held for it", ", while room is held for an older service"
	early := func(req CapacityRequest) CapacityRequest { return created(req, "2026-03-01T09:00:00Z") }
	cases := map[string]struct {
		reason   string
		nodes    int64
		ledger   []Service
		requests []CapacityRequest
		want     []string
		anew     bool
	}{
		"Own": {
			reason: "It would not fit beside its own grants.", nodes: 2, ledger: []Service{withGPUs(reserved("a", "0/0", "0/1"), 8)},
			requests: []CapacityRequest{early(request("a", 8, 3))}, want: []string{"0 of 16 nvidia.com/gpu free in pool p, 8 short"},
		},
		"Growth": {
			reason: "What grows takes its own place.", nodes: 1, ledger: []Service{withGPUs(reserved("a", "0/0"), 4), withGPUs(reserved("b", "0/0"), 4)},
			requests: []CapacityRequest{early(running(grown(request("a", 8, 1)), "0/0")), request("b", 4, 1)}, want: []string{keptBefore + "0 of 8 nvidia.com/gpu free in pool p, 4 short" + held},
		},
		"Grows": {
			reason: "A younger one grows only in what is left, although it would fit if all was put onto nodes anew.", nodes: 2, ledger: []Service{withGPUs(reserved("b", "0/0"), 4), withGPUs(reserved("c", "0/0"), 4)},
			requests: []CapacityRequest{early(required(request("a", 8, 2), 2)), request("b", 4, 1), grown(request("c", 8, 1))},
			want:     []string{"8 of 16 nvidia.com/gpu free in pool p, 8 short" + held, keptBefore + "0 of 16 nvidia.com/gpu free in pool p, 8 short" + while},
		},
		"Second": {
			reason: "Room is held for one at a time.", nodes: 2, ledger: []Service{withGPUs(reserved("c", "0/0"), 8)},
			requests: []CapacityRequest{early(required(request("a", 8, 2), 2)), required(request("b", 8, 2), 2), request("c", 8, 1)},
			want:     []string{"8 of 16 nvidia.com/gpu free in pool p, 8 short" + held, "8 of 16 nvidia.com/gpu free in pool p, 8 short" + while},
		},
		"One": {
			reason: "A group that has started needs room for one further replica first, although it requires both.", nodes: 2, ledger: []Service{withGPUs(reserved("a", "0/0"), 5), withGPUs(reserved("c", "0/0"), 8)},
			requests: []CapacityRequest{early(running(required(request("a", 5, 3), 3), "0/0")), request("b", 3, 1), request("c", 8, 1)},
			want:     []string{"3 of 16 nvidia.com/gpu free in pool p, 2 short" + held, "0 of 16 nvidia.com/gpu free in pool p, 3 short" + while},
		},
		"Got": {
			reason: "It gets something in this call, and waits anew for the rest.", nodes: 2, ledger: []Service{withGPUs(reserved("c", "0/0"), 8)},
			requests: []CapacityRequest{early(request("a", 4, 3)), request("c", 8, 1)}, want: []string{"0 of 16 nvidia.com/gpu free in pool p, 4 short"}, anew: true,
		},
		"GotLess": {
			reason: "A small group of it is granted. The large one waits on.", nodes: 3, ledger: []Service{withGPUs(reserved("c", "0/0"), 8)},
			requests: []CapacityRequest{early(withSmall(required(request("a", 8, 2), 2))), request("b", 8, 1), request("c", 8, 1)},
			want:     []string{"15 of 24 nvidia.com/gpu free in pool p, 1 short" + held, "0 of 24 nvidia.com/gpu free in pool p, 8 short" + while},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := Input{Cluster: here, Free: pool(capacitytest.Nodes(tc.nodes, 8, 64)), Ledger: Ledger{Services: tc.ledger}, Requests: tc.requests, Now: noon}
			for _, r := range tc.requests[:min(2, len(tc.requests))] {
				in.Ledger.Waiting = append(in.Ledger.Waiting, Waiting{ServiceID: r.ServiceID(), Since: noon.Add(-HoldAfter)})
			}
			result := Reserve(in)
			var got []string
			for _, p := range result.Pending {
				got = append(got, p.Message)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
			if got := result.Waiting[0].Since.Equal(noon); got != tc.anew {
				t.Errorf("%s It waits anew: %t", tc.reason, got)
			}
		})
	}
}

// TestWaitingIsBounded proves that the ledger remembers the first services that wait, and keeps
// since when.
func TestWaitingIsBounded(t *testing.T) {
	requests := []CapacityRequest{notAllowed(created(request("never", 9, 1), "2026-03-01T09:00:00Z"))}
	for i := range maxWaiting + 10 {
		requests = append(requests, created(request(fmt.Sprintf("u%03d", i), 9, 1), fmt.Sprintf("2026-03-01T10:%02d:%02dZ", i/60, i%60)))
	}
	first := reserve(pool(capacitytest.Nodes(1, 8, 64)), nil, requests)
	again := Reserve(Input{Cluster: here, Free: pool(capacitytest.Nodes(1, 8, 64)), Ledger: first.Ledger, Requests: requests, Now: noon.Add(time.Hour)})
	if len(first.Waiting) != maxWaiting || first.Waiting[0].UID != "u000" {
		t.Errorf("%d services wait, the first is %s", len(first.Waiting), first.Waiting[0].UID)
	}
	if diff := cmp.Diff(first.Waiting, again.Waiting); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestWaitingOfNamespaces proves that the services of one namespace do not keep the cluster from remembering that those of
// others wait. Room is held for these.
func TestWaitingOfNamespaces(t *testing.T) {
	var requests []CapacityRequest
	for i := range maxWaiting + 10 {
		requests = append(requests, created(request(fmt.Sprintf("u%03d", i), 9, 1), "2026-03-01T10:00:00Z"))
	}
	small, large := inNamespace(request("small", 1, 1), "other"), inNamespace(created(request("large", 8, 1), "2026-03-01T11:00:00Z"), "other")
	free := pool(capacitytest.Nodes(1, 8, 64))
	first := reserve(free, nil, append(requests, small, large))
	again := Reserve(Input{Cluster: here, Free: free, Ledger: first.Ledger, Requests: append(requests, small, large), Now: noon.Add(HoldAfter)})
	if len(first.Waiting) != maxWaiting || first.Waiting[maxWaiting-1].UID != "large" {
		t.Errorf("%d services wait, the last one is %s", len(first.Waiting), first.Waiting[len(first.Waiting)-1].UID)
	}
	if got := again.Pending[len(again.Pending)-1].Message; !strings.HasSuffix(got, ". Room is held for it") {
		t.Errorf("the large one waits because %s", got)
	}
}

// TestWithdrawnLater proves that each replica that is withdrawn keeps its grant for LeavingGrace, also
// while another one waits for longer.
func TestWithdrawnLater(t *testing.T) {
	free := pool(capacitytest.Nodes(1, 8, 64))
	a := request("a", 4, 2)
	in := func(last Result, after time.Duration, inUse map[key.ReplicaID]bool, r CapacityRequest) Result {
		return Reserve(Input{Cluster: here, Free: free, Ledger: last.Ledger, Requests: []CapacityRequest{r}, InUse: map[ServiceID]map[key.ReplicaID]bool{a.ServiceID(): inUse}, Now: noon.Add(after)})
	}
	runs := in(Result{}, 0, nil, running(a, "0/0", "0/1"))
	// The second replica leaves, and its Object waits for its cluster. Later the first one leaves, too.
	stuck := map[key.ReplicaID]bool{"0/1": true}
	one := in(runs, time.Minute, nil, running(request("a", 4, 1), "0/0"))
	one = in(one, 2*time.Minute, stuck, running(request("a", 4, 1), "0/0"))
	none := in(one, 3*time.Minute, stuck, withoutGroups(a))
	if got := len(generations(&none.Services[0])); got != 2 {
		t.Errorf("there are grants for %d replicas, want 2", got)
	}
}
