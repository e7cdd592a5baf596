package cluster

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming/incomingtest"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// planned is what the tests of a plan compare. next tells that the next call follows soon. refused are the namespaces that get nothing new.
type planned struct {
	ledger, reason string
	next           bool
	refused        int
}

func plan(tb testing.TB, c *parsed, state *observedState, now time.Time) (planned, *ledgerPlan) {
	tb.Helper()
	p, err := planLedger(c, state, now)
	if err != nil {
		tb.Fatal(err)
	}
	p.Waiting = nil
	text, err := json.Marshal(p.Ledger)
	if err != nil {
		tb.Fatal(err)
	}
	return planned{string(text), p.notSchedulable, !p.next.IsZero(), len(p.refused)}, p
}

// observedWith returns a cluster that has a ledger and can be read, and no requests.
func observedWith(t *testing.T, ledger string) (*parsed, *observedState) {
	t.Helper()
	req := incomingtest.Request(t, request(t, typedIn, map[string]string{keyLedger: ledgerOf(ledger), "object/reachable": reached}, map[string][]string{requests: nil}))
	c, errs := parse(req)
	if errs != nil {
		t.Fatal(errs)
	}
	state, err := observe(req, c, noon)
	if err != nil {
		t.Fatal(err)
	}
	return c, state
}

// asking returns a request of some replicas with one pod each, which all have a shape of their own.
func asking(id reservation.ServiceID, running bool, shapes []capacity.PodRequirements) reservation.CapacityRequest {
	r := reservation.CapacityRequest{UID: id.UID, Namespace: id.Namespace, Name: id.Name, PodRequirements: map[string]capacity.PodRequirements{}}
	at := reservation.ClusterRequest{Namespace: id.Namespace}
	for i, shape := range shapes {
		name := "w" + strings.Repeat("x", i)
		replica := key.ReplicaID(name + "/0")
		r.PodRequirements[name] = shape
		at.Groups = append(at.Groups, reservation.ReplicaGroup{Name: key.GroupID(name), Replicas: []reservation.ReplicaRequest{{Name: replica, Pods: map[string]int64{name: 1}}}})
		if running {
			at.Running = append(at.Running, replica)
		}
	}
	r.Clusters = map[string]reservation.ClusterRequest{"us-east": at}
	return r
}

// manyNames are services whose names cannot be compressed.
func manyNames(running bool) []reservation.CapacityRequest {
	random := rand.New(rand.NewPCG(1, 2))
	var all []reservation.CapacityRequest
	for range 1700 {
		all = append(all, asking(reservation.ServiceID{Namespace: letters(random, 253), Name: letters(random, 253), UID: letters(random, 253)}, running, make([]capacity.PodRequirements, 1)))
	}
	return all
}

// long are resources with long names.
func long(amount int64) capacity.Resources {
	all := capacity.Resources{}
	for i := range 60 {
		all["example.com/"+strings.Repeat("r", 280)+strconv.Itoa(i)] = amount
	}
	return all
}

// longNames are services whose pods request resources with long names. All have the same, so these can be
// compressed well.
func longNames() []reservation.CapacityRequest {
	var shapes []capacity.PodRequirements
	for i := range int64(50) {
		shapes = append(shapes, capacity.PodRequirements{Requests: long(1 + i)})
	}
	var all []reservation.CapacityRequest
	for i := range 40 {
		name := "s-" + strconv.Itoa(i)
		all = append(all, asking(reservation.ServiceID{Namespace: "other", Name: name, UID: name}, true, shapes))
	}
	return all
}

// TestFull proves that a cluster whose ledger would become too large adds nothing to it. What runs
// there counts as running, so it does not leave, and gives back what it no longer requests.
func TestFull(t *testing.T) {
	gpus := func(n int64) []capacity.PodRequirements {
		return []capacity.PodRequirements{{Requests: capacity.Resources{"nvidia.com/gpu": 1000 * n}}}
	}
	s1 := func(gpu int64) reservation.CapacityRequest {
		r := asking(reservation.ServiceID{Namespace: "team", Name: "s1", UID: "u1"}, true, gpus(gpu))
		r.Created = "2026-01-01T00:00:00Z"
		return r
	}
	cases := map[string]struct {
		reason string
		policy v1alpha1.StopPolicy
		gpus   int64
		others []reservation.CapacityRequest
		want   planned
	}{
		"Runs":       {reason: "What runs keeps its grant.", gpus: 8, others: manyNames(false), want: planned{ledger: runs, refused: 1700}},
		"RunsAll":    {reason: "What others claim to run is not granted either.", gpus: 8, others: manyNames(true), want: planned{ledger: runs, refused: 1700}},
		"RunsLess":   {reason: "What runs with less has a smaller grant.", gpus: 4, others: manyNames(false), want: planned{ledger: strings.Replace(runs, "8000", "4000", 1), refused: 1700}},
		"RunsOnHold": {reason: "So it is on hold, which stays the reason.", policy: v1alpha1.StopHold, gpus: 8, others: manyNames(true), want: planned{ledger: runs, reason: scheduling.ReasonOnHold, refused: 1700}},
		"Repeated":   {reason: "A call reads a limited number of bytes, however few these are when compressed.", gpus: 8, others: longNames(), want: planned{ledger: runs, refused: 1}},
		"NobodyElse": {reason: "The ledger is not full.", gpus: 8, want: planned{ledger: runs}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, state := observedWith(t, runs)
			c.Spec.StopPolicy = tc.policy
			state.free.Pools = append(state.free.Pools, capacity.NewPool("long", nil, []capacity.NodeClass{{Count: 1, Free: long(1e6)}}))
			state.requests = append([]reservation.CapacityRequest{s1(tc.gpus)}, tc.others...)
			first, p := plan(t, c, state, noon)
			state.ledger.compressed = p.ledger
			var err error
			if state.ledger.Ledger, err = reservation.DecodeLedger(p.ledger); err != nil {
				t.Fatal(err)
			}
			first.next = false
			second, _ := plan(t, c, state, noon.Add(time.Minute))
			for call, got := range map[string]planned{"first": first, "second": second} {
				if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(planned{})); diff != "" {
					t.Errorf("%s %s call: -want +got:\n%.2000s", tc.reason, call, diff)
				}
			}
		})
	}
}

// manyTolerations are services of a namespace with one pod each. Each takes some 19 KB of a ledger.
func manyTolerations(random *rand.Rand, namespace string, services int, requests capacity.Resources) []reservation.CapacityRequest {
	var all []reservation.CapacityRequest
	for i := range services {
		id := reservation.ServiceID{Namespace: namespace, Name: "s-" + strconv.Itoa(i), UID: namespace + strconv.Itoa(i)}
		shape := capacity.PodRequirements{Requests: requests}
		for range reservation.MaxTolerations {
			shape.Tolerations = append(shape.Tolerations, corev1.Toleration{Key: letters(random, 300), Value: letters(random, 63)})
		}
		all = append(all, asking(id, false, []capacity.PodRequirements{shape}))
	}
	return all
}

// TestHeavy proves that a tenant who fills the ledger stops nobody else, neither with what it requests nor with what it has.
func TestHeavy(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	cpus := capacity.Resources{"cpu": 1}
	cases := map[string]struct {
		reason string
		// before are how many of its services the heavy namespace requests in each earlier call, and heavy now.
		before  []int
		heavy   int
		refused []string
		// has tells how many services of the heavy namespace have reservations.
		has int
	}{
		"AtOnce":  {reason: "Nothing is reserved for it.", heavy: 56, refused: []string{"heavy"}},
		"Kept":    {reason: "What it has got before leaves some room.", before: []int{30, 36, 40, 44, 46, 48}, heavy: 48, refused: []string{"heavy"}, has: 36},
		"Allowed": {reason: "Three quarters of the ledger are for whoever is alone there.", before: []int{33}, heavy: 33, has: 33},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, state := observedWith(t, runs)
			state.free.Pools = append(state.free.Pools, capacity.NewPool("more", nil, []capacity.NodeClass{{Count: 9, Free: capacity.Resources{"nvidia.com/gpu": 8000, "cpu": 64000}}}))
			all := manyTolerations(random, "heavy", tc.heavy, cpus)
			for _, n := range tc.before {
				state.requests = all[:n]
				_, p := plan(t, c, state, noon)
				state.ledger.Ledger, state.ledger.compressed = p.Ledger, p.ledger
			}
			state.requests = slices.Concat(all, manyTolerations(random, "other", 3, cpus))
			young := asking(reservation.ServiceID{Namespace: "team", Name: "young", UID: "y"}, false, []capacity.PodRequirements{{Requests: capacity.Resources{"nvidia.com/gpu": 1000}}})
			young.Created = "2026-03-01T11:59:00Z"
			state.requests = append(state.requests, young)
			got, p := plan(t, c, state, noon)
			granted := map[string]int{}
			for _, s := range p.Services {
				granted[s.Namespace]++
			}
			// Team has one from before, whose request is missing.
			if diff := cmp.Diff(tc.refused, p.refused, cmpopts.EquateEmpty()); diff != "" || got.reason != "" {
				t.Errorf("%s It is %q. Refused: -want, +got:\n%s", tc.reason, got.reason, diff)
			}
			want := map[string]int{"team": 2, "other": 3}
			if tc.has > 0 {
				want["heavy"] = tc.has
			}
			if diff := cmp.Diff(want, granted); diff != "" {
				t.Errorf("%s Services with reservations: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestNearlyFullStays proves that a ledger which is nearly full is called so in each call, whether anything changes or not, and that services
// do not read it: each change of what they read has all of them reconciled.
func TestNearlyFullStays(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	c, state := observedWith(t, runs)
	state.free.Pools = append(state.free.Pools, capacity.NewPool("more", nil, []capacity.NodeClass{{Count: 9, Free: capacity.Resources{"nvidia.com/gpu": 8000, "cpu": 64000}}}))
	heavy := manyTolerations(random, "heavy", 36, capacity.Resources{"cpu": 1})
	others := manyTolerations(random, "team", 2, capacity.Resources{"cpu": 1})
	var got []string
	for _, requests := range [][]reservation.CapacityRequest{heavy[:30], heavy, slices.Concat(heavy, others[:1]), slices.Concat(heavy, others[:1]), slices.Concat(heavy, others)} {
		state.requests = requests
		_, p := plan(t, c, state, noon)
		state.ledger.Ledger, state.ledger.compressed = p.Ledger, p.ledger
		read := profiled(c, state, p).Status.Conditions[0]
		got = append(got, schedulable(p).Reason+" "+strings.Join(p.refused, ",")+", services read: "+read.Reason+read.Message)
	}
	want := []string{"Schedulable , services read: Schedulable", "Schedulable , services read: Schedulable", "LedgerFull heavy, services read: Schedulable", "LedgerFull heavy, services read: Schedulable", "LedgerFull heavy, services read: Schedulable"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestTwoHeavy proves that a namespace which gets the nodes that a heavy one may not have does not fill the ledger in its place.
func TestTwoHeavy(t *testing.T) {
	c, state := observedWith(t, "{}")
	random, gpu := rand.New(rand.NewPCG(3, 4)), capacity.Resources{"nvidia.com/gpu": 1000}
	state.free.Pools = []capacity.Pool{capacity.NewPool("p", nil, []capacity.NodeClass{{Count: 50, Free: gpu}})}
	first, second := manyTolerations(random, "first", 45, gpu), manyTolerations(random, "second", 30, gpu)
	for i := range first {
		first[i].Created = "2026-03-01T10:00:00Z"
	}
	state.requests = first[:24]
	_, p := plan(t, c, state, noon)
	state.ledger.Ledger, state.ledger.compressed = p.Ledger, p.ledger
	state.requests = slices.Concat(first, second) // Those of second are the youngest.
	got, p := plan(t, c, state, noon)
	if diff := cmp.Diff([]string{"first", "second"}, p.refused); diff != "" || got.reason != "" {
		t.Errorf("it is %q. Refused: -want, +got:\n%s", got.reason, diff)
	}
}

// mostPods is how many pods the grants of splitting services have for each replica.
const mostPods = 5000

// splitting adds services of a namespace to the ledger and the requests. Their replicas share few grants, of generation 1. Each then
// requests another generation, or other pods.
func splitting(state *observedState, namespace string, services, replicas int, of func(i int64) (generation, pods int64)) {
	const shapes = 128
	all := make([]capacity.PodRequirements, shapes)
	for i := range all {
		all[i].Requests = capacity.Resources{"memory": 1000 * int64(1+i)}
	}
	slices.SortFunc(all, func(a, b capacity.PodRequirements) int { return strings.Compare(a.Key(), b.Key()) })
	for n := range services {
		id := reservation.ServiceID{Namespace: namespace, Name: "s-" + strconv.Itoa(n), UID: namespace + strconv.Itoa(n)}
		grants := make([]reservation.Grant, shapes)
		group := reservation.ReplicaGroup{Name: "0"}
		r := reservation.CapacityRequest{UID: id.UID, Namespace: id.Namespace, Name: id.Name, PodRequirements: map[string]capacity.PodRequirements{}}
		for i := range shapes {
			r.PodRequirements[strconv.Itoa(i)] = all[i]
			grants[i] = reservation.Grant{Generation: 1, Pods: make([]int64, i+1)}
			grants[i].Pods[i] = mostPods
		}
		for i := range replicas {
			at, replica := min(i, shapes-1), key.ReplicaID("w/"+strconv.Itoa(i))
			grants[at].Replicas = append(grants[at].Replicas, replica)
			generation, pods := of(int64(i))
			group.Replicas = append(group.Replicas, reservation.ReplicaRequest{Name: replica, Generation: generation, Pods: map[string]int64{strconv.Itoa(at): pods}})
		}
		r.Clusters = map[string]reservation.ClusterRequest{"us-east": {Namespace: id.Namespace, Groups: []reservation.ReplicaGroup{group}}}
		state.ledger.Services = append(state.ledger.Services, reservation.Service{ServiceID: id, Shapes: all, Grants: grants})
		state.requests = append(state.requests, r)
	}
}

// TestGivesBackWhileFull proves that what one tenant gives back is free although others, none of which has more than its share, have their
// grants grow beyond what can be written.
func TestGivesBackWhileFull(t *testing.T) {
	fewer := func(i int64) (generation, pods int64) { return 1, 1 + i }
	c, state := observedWith(t, "{}")
	written := func() *ledgerPlan {
		var err error
		if state.ledger.compressed, _, err = reservation.Compress(&state.ledger.Ledger); err != nil {
			t.Fatal(err)
		}
		_, p := plan(t, c, state, noon)
		return p
	}
	state.ledger.Services, state.requests = nil, nil
	splitting(state, "large", 5, 4096, fewer)
	state.ledger.Ledger = written().Ledger
	// The namespace with more than its share grows, too, and stays as it is.
	splitting(state, "large", 8, 4096, fewer)
	state.ledger.Services, state.requests = slices.Delete(state.ledger.Services, 5, 10), slices.Delete(state.requests, 5, 10)
	splitting(state, "a", 7, 1024, fewer)
	splitting(state, "b", 7, 1024, fewer)
	id := reservation.ServiceID{Namespace: "gone", Name: "g", UID: "g"}
	state.ledger.Services = append(state.ledger.Services, reservation.Service{ServiceID: id, Shapes: make([]capacity.PodRequirements, 1), Grants: []reservation.Grant{{Generation: 1, Pods: []int64{1}, Replicas: []key.ReplicaID{"w/0"}}}})
	state.requests = append(state.requests, reservation.CapacityRequest{UID: id.UID, Namespace: id.Namespace, Name: id.Name, Clusters: map[string]reservation.ClusterRequest{"us-east": {Namespace: id.Namespace}}})
	p := written()
	if p.notSchedulable != reasonFull {
		t.Errorf("nothing new is reserved because of %q, want %s", p.notSchedulable, reasonFull)
	}
	if n, want := len(p.Services), len(state.ledger.Services)-1; n != want || p.Services[n-1].Namespace == "gone" {
		t.Errorf("%d services have reservations, the last one in namespace %s. Want %d, without the one that has given back its own", n, p.Services[n-1].Namespace, want)
	}
	if _, err := reservation.DecodeLedger(p.ledger); err != nil {
		t.Error(err)
	}
}

// TestSplitByKueue proves the same where Kueue counts pods, and the ledger has only generations.
func TestSplitByKueue(t *testing.T) {
	const replicas, services = 4096, 28
	random := rand.New(rand.NewPCG(1, 2))
	c, state := observedWith(t, "{}")
	state.ledger.Services, state.requests = nil, nil
	for n := range services {
		id := reservation.ServiceID{Namespace: "team", Name: "s-" + strconv.Itoa(n), UID: "u-" + strconv.Itoa(n)}
		group, grant := reservation.ReplicaGroup{Name: "0"}, reservation.Grant{Generation: 1}
		for i := range replicas {
			name := key.ReplicaID("w/" + strconv.Itoa(i))
			grant.Replicas = append(grant.Replicas, name)
			group.Replicas = append(group.Replicas, reservation.ReplicaRequest{Name: name, Generation: 2 + random.Int64N(1<<49)})
		}
		state.ledger.Services = append(state.ledger.Services, reservation.Service{ServiceID: id, Grants: []reservation.Grant{grant}})
		state.requests = append(state.requests, reservation.CapacityRequest{UID: id.UID, Namespace: id.Namespace, Name: id.Name,
			Clusters: map[string]reservation.ClusterRequest{"us-east": {Namespace: id.Namespace, Groups: []reservation.ReplicaGroup{group}}}})
	}
	var err error
	if state.ledger.compressed, _, err = reservation.Compress(&state.ledger.Ledger); err != nil {
		t.Fatal(err)
	}
	other := asking(reservation.ServiceID{Namespace: "other", Name: "o", UID: "o"}, false, make([]capacity.PodRequirements, 1))
	other.Clusters["us-east"].Groups[0].Replicas[0].Pods = nil
	state.requests = append(state.requests, other)
	_, p := plan(t, c, state, noon)
	if is := schedulable(p); is.Reason != reasonFull || is.Status != composite.True {
		t.Errorf("it is %s %q, want True with %s", is.Status, is.Reason, reasonFull)
	}
	if n := len(p.Services); n != services+1 || p.Services[services].Name != "o" {
		t.Fatalf("%d services have reservations, want %d, and the other tenant's as the last one", n, services+1)
	}
	if diff := cmp.Diff(state.ledger.Services, p.Services[:services], cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("-before, +after:\n%.1000s", diff)
	}
}

// TestSplit proves that the next call can always read the ledger, whatever is requested of replicas that have grants.
// There, replicas with equal grants share one, so a difference between them makes the ledger many times as large. Others get what they
// request all the same.
func TestSplit(t *testing.T) {
	cases := map[string]struct {
		reason string
		// of returns the generation and the pods of the replica with a number.
		of func(i int64) (generation, pods int64)
	}{
		"Generations": {reason: "Each replica has a generation of its own.", of: func(i int64) (int64, int64) { return 2 + i, mostPods }},
		"Pods":        {reason: "Each has fewer pods, and each another number.", of: func(i int64) (int64, int64) { return 1, 1 + i }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, state := observedWith(t, "{}")
			state.ledger.Services, state.requests = nil, nil
			splitting(state, "team", 28, 4096, tc.of)
			var err error
			if state.ledger.compressed, _, err = reservation.Compress(&state.ledger.Ledger); err != nil {
				t.Fatal(err)
			}
			state.requests = append(state.requests, asking(reservation.ServiceID{Namespace: "other", Name: "o", UID: "o"}, false, make([]capacity.PodRequirements, 1)))
			_, p := plan(t, c, state, noon)
			if is := schedulable(p); is.Reason != reasonFull || is.Status != composite.True {
				t.Errorf("%s It is %s %q, want True with %s", tc.reason, is.Status, is.Reason, reasonFull)
			}
			got, err := reservation.DecodeLedger(p.ledger)
			if err != nil {
				t.Fatalf("%s The ledger cannot be read: %v", tc.reason, err)
			}
			if n := len(state.ledger.Services); len(got.Services) != n+1 || got.Services[n].Name != "o" {
				t.Fatalf("%s %d services have reservations, want %d, and the other tenant's as the last one", tc.reason, len(got.Services), n+1)
			}
			if diff := cmp.Diff(state.ledger.Services, got.Services[:len(state.ledger.Services)], cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-before, +after:\n%.2000s", tc.reason, diff)
			}
		})
	}
}

// TestNotSchedulableIsShort proves that the message about nodes that are not known has a limit: each pending service has it in the
// status, too.
func TestNotSchedulableIsShort(t *testing.T) {
	state := &observedState{ledger: ledger{exists: true}}
	for i := range 64 {
		state.unknown = append(state.unknown, fmt.Sprintf("pool pool-%d: provider-kubernetes cannot read them: ObservedObjectCollection crossplane-system/x-%d says why", i, i))
	}
	reason, message := notSchedulable(&parsed{}, state)
	if diff := cmp.Diff(reasonNodes, reason); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if !strings.HasPrefix(message, "the nodes are not known: pool pool-0: ") || !strings.HasSuffix(message, " more") || len(message) > text.MaxMessage+128 {
		t.Errorf("want a message of at most %d bytes that counts the rest, got %d: %s", text.MaxMessage+128, len(message), message)
	}
}
