package fleet

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// TestDecodeAskSizes makes sure that an ask is as large as that of a service may be, and
// not what its author wrote. Nobody but the function writes asks, but who may write a
// ConfigMap can.
func TestDecodeAskSizes(t *testing.T) {
	many := func(n int, format string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = strings.ReplaceAll(format, "#", strconv.Itoa(i))
		}
		return strings.Join(all, ",")
	}
	ask := func(name, since, shapes, at string) string {
		return fmt.Sprintf(`{"uid":"u","namespace":"n","name":%q,"since":%q,"shapes":{%s},"clusters":{"us-east":{"namespace":"n",%s}}}`, name, since, shapes, at)
	}
	const shape, none = `"s":{}`, `"units":[]`
	unit := `{"replicas":[{"name":"a/#","pods":{"s":1}}]}`
	cases := map[string]struct {
		reason string
		text   string
		want   string
	}{
		"Fits":     {reason: "The largest service.", text: ask("s", "", shape, `"units":[`+many(4096, unit)+`],"held":[`+many(8192, `"a/#"`)+`]`)},
		"Replicas": {reason: "One more replica.", text: ask("s", "", shape, `"units":[`+many(4097, unit)+`]`), want: "none is for more than 4096"},
		"Units":    {reason: "Units of nothing.", text: ask("s", "", shape, `"units":[`+many(5000, `{}`)+`]`), want: "none is for more than 4096"},
		"Held":     {reason: "What is said to be there.", text: ask("s", "", shape, `"held":[`+many(8193, `"a/#"`)+`]`), want: "none has more than 8192"},
		"Shapes":   {reason: "Kinds of pods.", text: ask("s", "", many(129, `"s#":{}`), none), want: "at most 128 are counted"},
		"Labels":   {reason: "Labels of nodes.", text: ask("s", "", `"s":{"nodeSelector":{`+many(257, `"k#":"v"`)+`}}`, none), want: "none does by more than 256"},
		"Name":     {reason: "A name is repeated everywhere.", text: ask(strings.Repeat("x", 254), "", shape, none), want: "254 characters is none"},
		"Since":    {reason: "As is a time.", text: ask("s", strings.Repeat("x", 65), shape, none), want: "none has more than 64"},
		"Text":     {reason: "No ConfigMap is that large.", text: strings.Repeat(" ", 1<<20) + "{}", want: "none has more than 1048576"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := DecodeAsk(tc.text)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%s got %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

// searched is an ask each unit of which is searched a place for in vain: there is as much
// room in all, but on none of the nodes.
func searched(namespace string, units int) Ask {
	a := Ask{
		UID: "u-" + namespace, Namespace: namespace, Name: "s",
		Shapes:   map[string]Shape{"s": {Requests: Resources{"nvidia.com/gpu": 60_000}}, "t": {Requests: Resources{"nvidia.com/gpu": 1}}},
		Clusters: map[string]AskedCluster{},
	}
	at := AskedCluster{Namespace: namespace}
	for i := range units {
		at.Units = append(at.Units, Unit{Replicas: []Replica{{Name: fmt.Sprint("a/", i), Pods: map[string]int64{"s": 13, "t": int64(i)}}}})
	}
	a.Clusters[here] = at
	return a
}

// TestBookHasAnEnd makes sure that a tenant cannot have a cluster search for ever, nor
// use up what is for others.
func TestBookHasAnEnd(t *testing.T) {
	room := Room{}
	for i := range int64(12) {
		room.Pools = append(room.Pools, NewPool(fmt.Sprint("p", i), nil, []Nodes{{Count: 1, Left: Resources{"nvidia.com/gpu": 80_000 + 1000*i}}}))
	}
	modest := Ask{
		UID: "u", Namespace: "modest", Name: "s", Since: "2026-03-01T12:00:00Z", Shapes: map[string]Shape{"s": {Requests: Resources{"nvidia.com/gpu": 1000}}},
		Clusters: map[string]AskedCluster{here: {Namespace: "modest", Units: []Unit{{Replicas: []Replica{{Name: "a/0", Pods: map[string]int64{"s": 1}}}}}}},
	}
	hostile := searched("hostile", 4000)
	hostile.Since = "2026-01-01T12:00:00Z"
	b := Book(here, room, nil, []Ask{hostile, modest}, "")
	if len(b.Grants) != 1 || b.Grants[0].Namespace != "modest" {
		t.Errorf("the other tenant is not granted what there is: %v", b.Grants)
	}
	if len(b.Waiting) != 1 || len(b.Waiting[0].Replicas) != 4000 {
		t.Errorf("not everything of the first waits: %d services", len(b.Waiting))
	}
	patience := sharedPatience([]Ask{hostile, modest})
	if got := *patience["hostile"]; got > bookSteps/2 {
		t.Errorf("one of two namespaces has %d of %d steps", got, bookSteps)
	}
}

// TestBookGoesOn makes sure that what is too much for one booking comes in the next ones.
func TestBookGoesOn(t *testing.T) {
	room := Room{Pools: []Pool{NewPool("p", nil, nil)}}
	for i := range int64(2000) {
		room.Pools[0].Left = append(room.Pools[0].Left, Nodes{Count: 1, Left: Resources{"nvidia.com/gpu": 8000 + i}})
		room.Pools[0].Total = Resources{"nvidia.com/gpu": 20_000_000}
	}
	a := Ask{UID: "u", Namespace: "n", Name: "s", Shapes: map[string]Shape{"s": {Requests: Resources{"nvidia.com/gpu": 1000}}}, Clusters: map[string]AskedCluster{}}
	at := AskedCluster{Namespace: "n"}
	for i := range 300 {
		at.Units = append(at.Units, Unit{Replicas: []Replica{{Name: fmt.Sprint("a/", i), Pods: map[string]int64{"s": 1}}}})
	}
	a.Clusters[here] = at
	var grants []Grant
	for turn := range 10 {
		b := Book(here, room, grants, []Ask{a}, "")
		grants = b.Grants
		if len(b.Waiting) == 0 {
			if turn == 0 {
				t.Error("everything was looked at in one call")
			}
			return
		}
	}
	t.Errorf("after ten bookings %d of 300 replicas are granted", len(grants[0].Replicas))
}

// TestManyChangedPods makes sure that pods of thousands of services, which an input may
// change at once, are counted with few attempts.
func TestManyChangedPods(t *testing.T) {
	room := Room{Pools: []Pool{NewPool("p", nil, []Nodes{{Count: 100, Left: Resources{"cpu": 64_000}}})}}
	var grants []Grant
	var asks []Ask
	for i := range 3000 {
		uid := fmt.Sprintf("u%04d", i)
		grants = append(grants, Grant{UID: uid, Namespace: "n", Name: uid, Replicas: []string{"a/0"}, Shapes: map[string]Shape{"s": {Requests: Resources{"cpu": 1000}}}})
		asks = append(asks, Ask{UID: uid, Namespace: "n", Name: uid, Since: strconv.Itoa(i + 1000), Shapes: map[string]Shape{"s": {Requests: Resources{"cpu": 4000}}}, Clusters: map[string]AskedCluster{
			here: {Namespace: "n", Units: []Unit{{Replicas: []Replica{{Name: "a/0", Pods: map[string]int64{"s": 1}}}}}},
		}})
	}
	b := Book(here, room, grants, asks, "")
	if b.Overbooked || len(b.Grants) != 3000 {
		t.Fatalf("%d services keep their grants, overbooked: %t", len(b.Grants), b.Overbooked)
	}
	// 6,400 CPUs are there, 3,000 granted, and each change takes 3 more: 1,133 fit.
	changed := 0
	for _, g := range b.Grants {
		if g.Shapes["s"].Requests["cpu"] == 4000 {
			changed++
		}
	}
	if changed < 1000 || changed > 1133 || len(b.Unfit) != 3000-changed {
		t.Errorf("%d are counted as they are now, and %d do not fit", changed, len(b.Unfit))
	}
}
