package fleet

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// asking is an ask of clusters with one unit of replicas each, by their serials.
func asking(serial int64, clusters map[string]map[string]int64) *Ask {
	a := &Ask{UID: "u", Serial: serial, Clusters: map[string]AskedCluster{}}
	for name, replicas := range clusters {
		u := Unit{Name: "0"}
		for _, r := range []string{"w/0", "w/1", "w/2"} {
			if s, ok := replicas[r]; ok {
				u.Replicas = append(u.Replicas, Replica{Name: r, Serial: s})
			}
		}
		a.Clusters[name] = AskedCluster{Units: []Unit{u}}
	}
	return a
}

func TestRenew(t *testing.T) {
	type clusters = map[string]map[string]int64
	one := clusters{"east": {"w/0": 0}}
	two := clusters{"east": {"w/0": 0, "w/1": 0}}
	cases := map[string]struct {
		reason   string
		ask      clusters
		seen     *Ask
		answered int64
		want     *Ask
	}{
		"First":       {reason: "The first ask has the first serial.", ask: two, want: asking(1, clusters{"east": {"w/0": 1, "w/1": 1}})},
		"Same":        {reason: "With nothing added the serials stay.", ask: two, seen: asking(4, clusters{"east": {"w/0": 4, "w/1": 2}}), answered: 4, want: asking(4, clusters{"east": {"w/0": 4, "w/1": 2}})},
		"Added":       {reason: "What is added has a new one, and the others keep theirs.", ask: two, seen: asking(4, clusters{"east": {"w/0": 2}}), want: asking(5, clusters{"east": {"w/0": 2, "w/1": 5}})},
		"Withdrawn":   {reason: "What is withdrawn leaves the serial of the ask, so that it is not given twice.", ask: one, seen: asking(4, clusters{"east": {"w/0": 2, "w/1": 4}}), want: asking(4, clusters{"east": {"w/0": 2}})},
		"Nothing":     {reason: "So does an ask for nothing.", seen: asking(4, two), want: asking(4, nil)},
		"Elsewhere":   {reason: "What another cluster is asked for says nothing about this one.", ask: one, seen: asking(4, clusters{"west": {"w/0": 2}}), want: asking(5, clusters{"east": {"w/0": 5}})},
		"Earlier":     {reason: "An ask of an earlier version has no serials.", ask: two, seen: asking(0, one), want: asking(1, clusters{"east": {"w/0": 0, "w/1": 1}})},
		"AskDeleted":  {reason: "An ask that is made anew starts above what was answered.", ask: one, answered: 7, want: asking(8, clusters{"east": {"w/0": 8}})},
		"AskReplaced": {reason: "One that was made anew too low does so as soon as that is seen.", ask: two, seen: asking(1, clusters{"east": {"w/0": 1}}), answered: 7, want: asking(8, clusters{"east": {"w/0": 1, "w/1": 8}})},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := asking(0, tc.ask)
			got.Renew(tc.seen, tc.answered)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
			again := asking(0, tc.ask)
			again.Renew(got, tc.answered)
			if diff := cmp.Diff(got.Clusters, again.Clusters); diff != "" {
				t.Errorf("%s It changes by itself: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestGranted(t *testing.T) {
	cases := map[string]struct {
		reason   string
		asked    map[string]int64
		serial   int64
		replicas []string
		want     map[string]bool
	}{
		"Answered": {reason: "An answer to the ask as it is.", asked: map[string]int64{"w/0": 1, "w/1": 2}, serial: 2, replicas: []string{"w/0", "w/1"}, want: set("w/0", "w/1")},
		"Before":   {reason: "An answer from before a replica was withdrawn and added again.", asked: map[string]int64{"w/0": 1, "w/1": 2}, serial: 1, replicas: []string{"w/0", "w/1"}, want: set("w/0")},
		"Unasked":  {reason: "What is not asked for may have been given away.", asked: map[string]int64{"w/0": 1}, serial: 1, replicas: []string{"w/0", "w/1"}, want: set("w/0")},
		"Shrunk":   {reason: "The last that was added is withdrawn; the others keep what they were granted.", asked: map[string]int64{"w/0": 1}, serial: 1, replicas: []string{"w/0"}, want: set("w/0")},
		"Earlier":  {reason: "Neither of an earlier version has a serial.", asked: map[string]int64{"w/0": 0}, replicas: []string{"w/0"}, want: set("w/0")},
		"Waits":    {reason: "What was answered and not granted waits.", asked: map[string]int64{"w/0": 1, "w/1": 1}, serial: 1, replicas: []string{"w/1"}, want: set("w/1")},
		"Nobody":   {reason: "Nothing is asked for.", serial: 1, replicas: []string{"w/1"}, want: set()},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			at := asking(0, map[string]map[string]int64{"east": tc.asked}).Clusters["east"]
			if diff := cmp.Diff(tc.want, at.Granted(tc.serial, tc.replicas)); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
