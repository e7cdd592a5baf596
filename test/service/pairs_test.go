package service

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// pairs is a service with prefill and decode replicas of some images, without groups.
func pairs(prefill int, prefillImage string, decode int, decodeImage, rollout string) string {
	const role = "- {name: %s, componentType: %s, replicas: %d, template: {spec: {containers: [{name: engine, image: %s, command: [vllm, serve, /m]}]}}}\n"
	return "roles:\n" + fmt.Sprintf(role, "p", "prefiller", prefill, prefillImage) + fmt.Sprintf(role, "d", "decoder", decode, decodeImage) + rollout
}

// answers tells whether prefill and decode replicas serve.
func (w *world) answers() bool {
	serves := func(role string) bool {
		return slices.ContainsFunc(w.serving(), func(name string) bool { return strings.HasPrefix(name, role) })
	}
	return serves("p/") && serves("d/")
}

// TestPairsKeepAnswering shows rollouts of prefill and decode replicas while some replicas of a unit
// serve and others do not. Such a unit still answers requests.
func TestPairsKeepAnswering(t *testing.T) {
	cases := map[string]struct {
		reason string
		// The spec is before, then edit, and then the last one, if there is one.
		before, edit, then string
		// stepsBetween are the calls between the edit and then.
		stepsBetween int
		// crash are the sets whose pods crash before the edit, and crashLater before then.
		crash, crashLater []string
		images            string
	}{
		"SurgeComesFirst": {
			reason: "One decode replica has crashed, and the others serve until the further unit does.",
			before: pairs(1, "v1", 3, "v1", "rollout: {maxSurge: 1}"), crash: []string{"d/2"},
			edit: pairs(1, "v2", 3, "v2", "rollout: {maxSurge: 1}"), images: "v2,v2,v2,v2",
		},
		"EachUnitHasACrash": {
			reason: "No unit is whole, and they change one after the other all the same.",
			before: pairs(2, "v1", 4, "v1", ""), crash: []string{"d/0", "d/3"},
			edit: pairs(2, "v2", 4, "v2", ""), images: "v2,v2,v2,v2,v2,v2",
		},
		"ScaledWhileOneIsChanged": {
			reason: "More decode replicas are divided among the units otherwise.",
			before: pairs(2, "v1", 4, "v1", ""), edit: pairs(2, broken, 4, broken, ""),
			stepsBetween: 1, then: pairs(2, broken, 6, broken, ""), images: "v1,v1,broken,broken,broken,broken,v1,broken",
		},
		"PausedWhileOneCrashes": {
			reason: "The prefill replicas do not change, so one that crashes was not released.",
			before: pairs(2, "v1", 2, "v1", ""), edit: pairs(2, "v1", 2, "v2", "rollout: {paused: true}"),
			stepsBetween: 1, crashLater: []string{"p/0"}, then: pairs(2, "v1", 2, "v2", "rollout: {paused: true}"), images: "v1,v1,v1,v1",
		},
		"CrashSpreadsNothing": {
			reason: "What does not start stays in one unit when another one has a crash.",
			before: pairs(3, "v1", 3, "v1", ""), edit: pairs(3, "v1", 3, broken, ""),
			stepsBetween: 3, crashLater: []string{"p/0"}, then: pairs(3, "v1", 3, broken, ""), images: "v1,v1,broken,v1,v1,v1",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.before)
			steps := func(n int, spec string) {
				w.edit(spec)
				for i := range n {
					w.step()
					if !w.answers() {
						t.Fatalf("%s\nafter %d calls only these serve: %v", tc.reason, i+1, w.serving())
					}
				}
			}
			crash := func(names []string) {
				for _, n := range names {
					w.crashed["leaderworkerset/"+n] = true
				}
				if len(names) > 0 {
					w.step()
				}
			}
			w.rollOut(tc.before)
			crash(tc.crash)
			if tc.then != "" {
				steps(tc.stepsBetween, tc.edit)
				crash(tc.crashLater)
				tc.edit = tc.then
			}
			steps(12, tc.edit)
			if diff := cmp.Diff(tc.images, w.images()); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
