package service

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/test/fixture"
)

// pairs is a service with prefill and decode replicas of some images, without groups.
func pairs(prefill int, prefillImage string, decode int, decodeImage, rollout string) string {
	const role = "- {name: %s, componentType: %s, replicas: %d, template: {spec: {containers: [{name: engine, image: %s, command: [vllm, serve, /m]}]}}}\n"
	return "roles:\n" + fmt.Sprintf(role, "p", "prefiller", prefill, prefillImage) + fmt.Sprintf(role, "d", "decoder", decode, decodeImage) + rollout
}

// answers tells whether prefill and decode replicas serve.
func (w *world) answers() bool {
	serves := func(role string) bool {
		return slices.ContainsFunc(w.serving(), func(name string) bool { return strings.HasPrefix(name, role) || strings.Contains(name, "/"+role) })
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
			stepsBetween: 2, then: pairs(2, broken, 6, broken, ""), images: "v1,v1,v1,broken,broken,broken,v1,v1",
		},
		"PausedWhileOneCrashes": {
			reason: "The prefill replicas do not change, so one that crashes was not released.",
			before: pairs(2, "v1", 2, "v1", ""), edit: pairs(2, "v1", 2, "v2", "rollout: {paused: true}"),
			stepsBetween: 1, crashLater: []string{"p/0"}, then: pairs(2, "v1", 2, "v2", "rollout: {paused: true}"), images: "v1,v1,v1,v1",
		},
		"OnlyPrefillServes": {
			reason: "Nothing decodes in the unit below the partition, so the other one stays.",
			before: pairs(2, "v1", 2, "v1", ""), edit: pairs(2, "v1", 2, "v1", ""), stepsBetween: 1, crashLater: []string{"d/0"},
			then: pairs(2, "v2", 2, "v2", "rollout: {partition: 1}"), images: "v1,v1,v1,v1",
		},
		"OnlyPrefillServesFirst": {
			reason: "Without a partition it is the first one to change.",
			before: pairs(2, "v1", 2, "v1", ""), edit: pairs(2, "v1", 2, "v1", ""), stepsBetween: 1, crashLater: []string{"d/0"},
			then: pairs(2, "v2", 2, "v2", ""), images: "v2,v2,v2,v2",
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

// TestPairsChangeOneByOne shows edits after which there are more decode replicas than prefill replicas, or
// none of one role before. Decode answers without prefill, so one decode replica at most is stopped.
func TestPairsChangeOneByOne(t *testing.T) {
	prefill := func(name string, replicas int, image string) string {
		return roleOf(name, "prefiller", replicas, image)
	}
	decode := func(replicas int, image string) string { return roleOf("d", "decoder", replicas, image) }
	cases := map[string]struct {
		reason, before, after string
		// fewest is the lowest number of decode replicas that served, or of prefill replicas while there was
		// no decode.
		fewest int
	}{
		"OnePrefill":        {"One prefill replica is no reason to stop all of decode.", decode(4, "v1") + prefill("p", 1, "v1"), decode(4, "v2") + prefill("p", 1, "v2"), 3},
		"PrefillIsAdded":    {"The decode replicas answered alone before.", decode(4, "v1"), decode(4, "v1") + prefill("p", 1, "v1"), 3},
		"BrokenPrefill":     {"It does not start, and decode goes on alone.", decode(4, "v1"), decode(4, "v1") + prefill("p", 4, broken), 3},
		"FirstPrefill":      {"The role had no replicas, and the image changes too.", decode(4, "v1") + prefill("p", 0, "v1"), decode(4, "v2") + prefill("p", 1, "v2"), 3},
		"FewerPrefill":      {"Three of four prefill replicas go with the former image.", decode(4, "v1") + prefill("p", 4, "v1"), decode(4, "v2") + prefill("p", 1, "v2"), 3},
		"LargestIsRemoved":  {"A smaller prefill role is left.", decode(4, "v1") + prefill("p", 4, "v1") + prefill("q", 1, "v1"), decode(4, "v1") + prefill("q", 1, "v1"), 3},
		"DecodeIsAdded":     {"The prefill replicas answered alone before.", prefill("p", 4, "v1"), decode(1, "v1") + prefill("p", 4, "v1"), 1},
		"BrokenDecode":      {"The prefill replicas go on alone.", prefill("p", 4, "v1"), decode(1, broken) + prefill("p", 4, "v1"), 4},
		"PrefillIsTwice":    {"There are more prefill replicas than decode replicas.", decode(2, "v1") + prefill("p", 4, "v1"), decode(2, "v2") + prefill("p", 4, "v2"), 1},
		"PrefillIsStopped":  {"Decode is left alone.", decode(4, "v1") + prefill("p", 4, "v1"), decode(4, "v2") + prefill("p", 0, "v2"), 3},
		"PrefillIsRemoved":  {"Decode is left alone.", decode(4, "v1") + prefill("p", 4, "v1"), decode(4, "v2"), 3},
		"TwoForEachPrefill": {"Each decode replica changes alone.", decode(4, "v1") + prefill("p", 2, "v1"), decode(4, "v2") + prefill("p", 2, "v2"), 3},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := func(roles string) string { return "roles:\n- {name: r, componentType: router}\n" + roles }
			if !strings.Contains(tc.before, "decoder") {
				// Otherwise prefill would get no requests before decode serves, and the edit is refused (TestPickedApart).
				spec = func(roles string) string {
					return "roles:\n- {name: r, componentType: router, strategy: prefix-cache}\n" + roles
				}
			}
			w := newWorld(t, spec(tc.before))
			w.rollOut(spec(tc.before))
			w.start = 3
			w.edit(spec(tc.after))
			fewest := 1000
			for range 60 {
				w.step()
				n := map[string]int{}
				for _, name := range w.serving() {
					n[name[:1]]++
				}
				if n["d"] == 0 {
					n["d"] = n["p"]
				}
				fewest = min(fewest, n["d"])
			}
			if fewest != tc.fewest {
				t.Errorf("%s\nat one time %d replicas answered, want %d", tc.reason, fewest, tc.fewest)
			}
			if waiting := w.waiting(); waiting != "" && !strings.Contains(tc.after, broken) {
				t.Errorf("%s\nthese have a former template in the end: %s", tc.reason, waiting)
			}
		})
	}
}

// waiting are the sets that are held.
func (w *world) waiting() string {
	var all []string
	for key, r := range w.req.GetObserved().GetResources() {
		if kube.Lookup(r.GetResource(), "spec", "rolloutStrategy", "rollingUpdateConfiguration", "partition").GetNumberValue() > 0 {
			all = append(all, key)
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// TestPairsScaledDuringSurge scales the roles while the extra unit serves in the place of one that is
// replaced. The surge goes on to its end, and requests are answered all the time.
func TestPairsScaledDuringSurge(t *testing.T) {
	const surge = "rollout: {maxSurge: 1, maxUnavailable: 0}"
	cases := map[string]struct {
		reason          string
		prefill, decode int
		images          string
	}{
		"MoreOfBoth":   {"Each new pair starts with the new image.", 3, 3, "v2,v2,v2,v2,v2,v2"},
		"MoreDecode":   {"The units have other replicas from then on.", 2, 4, "v2,v2,v2,v2,v2,v2"},
		"LessOfBoth":   {"What is left is one unit, which is replaced with an extra one beside it.", 1, 1, "v2,v2"},
		"OnePrefill":   {"The decode replicas share a prefill replica from then on.", 1, 2, "v2,v2,v2"},
		"MuchMoreOnes": {"The numbers of the extra unit are wanted now.", 6, 6, "v2,v2,v2,v2,v2,v2,v2,v2,v2,v2,v2,v2"},
	}
	for name, tc := range cases {
		for after := range 6 {
			t.Run(fmt.Sprintf("%s/%d", name, after), func(t *testing.T) {
				w := newWorld(t, pairs(2, "v1", 2, "v1", surge))
				w.rollOut(pairs(2, "v1", 2, "v1", surge))
				w.edit(pairs(2, "v2", 2, "v2", surge))
				steps := func(n int) {
					for i := range n {
						if w.step(); !w.answers() {
							t.Fatalf("%s\nafter %d calls only these serve: %v", tc.reason, i+1, w.serving())
						}
					}
				}
				steps(after)
				w.edit(pairs(tc.prefill, "v2", tc.decode, "v2", surge))
				steps(40)
				if diff := cmp.Diff(tc.images, w.images()); diff != "" {
					t.Errorf("%s\nimages: -want +got:\n%s", tc.reason, diff)
				}
			})
		}
	}
}

// TestPairsScaledWithAnImage shows an edit of both, after which no status is up to date for some calls. A
// unit with a new replica then may still serve by its others.
func TestPairsScaledWithAnImage(t *testing.T) {
	w := newWorld(t, pairs(2, "v1", 2, "v1", ""))
	w.rollOut(pairs(2, "v1", 2, "v1", ""))
	w.start, w.behind = 3, 4
	w.edit(pairs(2, "v2", 6, "v2", ""))
	for i := range 40 {
		if w.step(); !w.answers() {
			t.Fatalf("after %d calls only these serve: %v", i+1, w.serving())
		}
	}
	if diff := cmp.Diff("v2,v2,v2,v2,v2,v2,v2,v2", w.images()); diff != "" {
		t.Errorf("images: -want +got:\n%s", diff)
	}
}

// TestInputRollsOut shows that a change of the Input which reaches the pods changes one unit after the
// other, and that one which does not reach them restarts nothing.
func TestInputRollsOut(t *testing.T) {
	all := map[string]int{"leaderworkerset/0/p/0": 1, "leaderworkerset/0/d/0": 1, "leaderworkerset/1/p/0": 1, "leaderworkerset/1/d/0": 1}
	for name, tc := range map[string]struct {
		input    string
		restarts map[string]int
	}{
		"SidecarImage":     {"sidecar: {image: ghcr.io/llm-d/llm-d-routing-sidecar:v9}", all},
		"SidecarResources": {"sidecar: {resources: {requests: {cpu: 2}}}", all},
		"Labels":           {"labels: {team: a}", map[string]int{}},
		"Annotations":      {"annotations: {team: a}", map[string]int{}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := fmt.Sprintf(twoPairs, "v1")
			w := newWorld(t, spec)
			w.rollOut(spec)
			w.req.Input = fixture.YAML(t, "apiVersion: fn.fusioninfer.io/v1alpha1\nkind: Input\n"+tc.input)
			for i := range 30 {
				if w.step(); len(w.serving()) < 2 || !w.answers() {
					t.Fatalf("after %d calls only these serve: %v", i+1, w.serving())
				}
			}
			if diff := cmp.Diff(tc.restarts, w.restarts); diff != "" {
				t.Errorf("restarts: -want +got:\n%s", diff)
			}
		})
	}
}
