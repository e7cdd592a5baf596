package service

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPairsThatNeedEachOther shows changes of SGLang's prefill and decode replicas. Decode answers nothing without prefill
// of its version, so each unit has both.
func TestPairsThatNeedEachOther(t *testing.T) {
	spec := func(prefill, decode int, image, rollout string) string {
		const role = "- {name: %s, componentType: %s, replicas: %d, template: {spec: {containers: [{name: sglang, image: %s, command: [python3, -m, sglang.launch_server, --model-path, /m, --port, '8000', --disaggregation-mode, %s]}]}}}\n"
		return "roles:\n- {name: r, componentType: router}\n" + fmt.Sprintf(role, "p", "prefiller", prefill, image, "prefill") + fmt.Sprintf(role, "d", "decoder", decode, image, "decode") + rollout
	}
	type want struct {
		// Alone is the most decode replicas of a version that serve without prefill, and Answers tells whether some version has
		// both at all times.
		Alone   int
		Answers bool
		Gap     bool
	}
	for name, tc := range map[string]struct {
		prefill, decode int
		rollout         string
		want            want
	}{
		"TwoUnits":      {2, 4, "", want{Answers: true}},
		"TwoEach":       {2, 2, "", want{Answers: true}},
		"OneUnit":       {1, 2, "", want{Gap: true}},
		"OneWithASurge": {1, 2, "rollout: {maxSurge: 1}", want{Answers: true}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, spec(tc.prefill, tc.decode, "v1", tc.rollout))
			w.start = 2
			w.rollOut(spec(tc.prefill, tc.decode, "v1", tc.rollout))
			w.edit(spec(tc.prefill, tc.decode, "v2", tc.rollout))
			got := want{Answers: true}
			for range 30 {
				rsp := w.step()
				got.Gap = got.Gap || strings.Contains(conditionOf(rsp, "RolledOut"), "stops prefill and decode")
				decode, prefill, answers := map[string]int{}, map[string]int{}, false
				for key, s := range w.sets {
					switch {
					case !s.serving():
					case strings.Contains(key, "/d/"):
						decode[s.image]++
					default:
						prefill[s.image]++
					}
				}
				for image, n := range decode {
					answers = answers || prefill[image] > 0
					if prefill[image] == 0 && len(prefill) > 0 {
						got.Alone = max(got.Alone, n)
					}
				}
				got.Answers = got.Answers && answers
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}

// TestFixAfterPrefillFails has a version whose prefill does not start. The version after it reaches all replicas, and so does
// the one before it.
func TestFixAfterPrefillFails(t *testing.T) {
	const pd = "roles: [{name: p, componentType: prefiller, template: {spec: {containers: [{name: engine, image: %s, command: [%s]}]}}}," +
		"{name: d, componentType: decoder, template: {spec: {containers: [{name: engine, image: %s, command: [%s]}]}}}]\n"
	for engine, command := range map[string]string{"vLLM": "vllm, serve, /m", "SGLang": "python3, -m, sglang.launch_server, --model-path, /m"} {
		for _, policy := range []string{"", "rollout: {maxSurge: 1}\n", "rollout: {maxUnavailable: 0, maxSurge: 1}\n"} {
			for _, fix := range []string{"v1", "v3"} {
				t.Run(engine+"/"+policy+fix, func(t *testing.T) {
					spec := func(prefill, decode string) string {
						return fmt.Sprintf(pd, prefill, command, decode, command) + policy
					}
					w := newWorld(t, spec("v1", "v1"))
					w.step()
					w.step()
					w.rollOut(spec(broken, "v2"))
					w.rollOut(spec(fix, fix))
					want := fix + "," + fix
					if got := w.images(); got != want {
						t.Errorf("the images are %s, want %s: %v serve", got, want, w.serving())
					}
				})
			}
		}
	}
}

// sglangRole is a role whose replicas need others to answer.
func sglangRole(name, componentType string, replicas int, image string) string {
	return strings.ReplaceAll(roleOf(name, componentType, replicas, image), vllm, sglang)
}

// TestPartitionKeepsPairs puts two templates after another on units above the partition. The pair below it keeps the first one,
// and the former template comes back where it has gone.
func TestPartitionKeepsPairs(t *testing.T) {
	spec := func(image string, partition int) string {
		return "roles:\n" + sglangRole("p", "prefiller", 3, image) + sglangRole("d", "decoder", 3, image) + fmt.Sprintf("rollout: {partition: %d}\n", partition)
	}
	for _, tc := range []struct{ canary, next, want string }{
		{"v2", "v1", "v1,v1,v1,v1,v1,v1"},
		{"v2", "v3", "v1,v3,v3,v1,v3,v3"},
		{"v3", "v4", "v1,v4,v4,v1,v4,v4"},
	} {
		t.Run(tc.canary+tc.next, func(t *testing.T) {
			w := newWorld(t, spec("v1", 0))
			w.rollOut(spec("v1", 0))
			w.rollOut(spec(tc.canary, 1))
			w.rollOut(spec(tc.next, 1))
			if got := w.images(); got != tc.want {
				t.Errorf("the images are %s, want %s", got, tc.want)
			}
		})
	}
}

// TestOneExtraUnitOfTwoRoles rolls out two prefill and two decode roles. An extra unit has a replica of each, and stands for one.
func TestOneExtraUnitOfTwoRoles(t *testing.T) {
	spec := func(image string) string {
		return "roles:\n" + sglangRole("p", "prefiller", 2, image) + sglangRole("p2", "prefiller", 2, image) + sglangRole("d", "decoder", 2, image) + sglangRole("d2", "decoder", 2, image) +
			"rollout: {maxSurge: 1, maxUnavailable: 0}\n"
	}
	w := newWorld(t, spec("v1"))
	w.rollOut(spec("v1"))
	w.start = 3
	if fewest, _ := w.rollOut(spec("v2")); fewest < 8 {
		t.Errorf("only %d of 8 replicas served", fewest)
	}
}

// TestScaleUpSpreadsNothing adds prefill of a version that does not start. Decode of the former version stays: prefill of its
// version is in other units. A rollout that is paused completes what has started, and decode of the former version stays then too.
func TestScaleUpSpreadsNothing(t *testing.T) {
	spec := func(prefill int, image string) string {
		return "roles:\n" + sglangRole("p", "prefiller", prefill, image) + sglangRole("d", "decoder", 8, image)
	}
	for name, policy := range map[string]string{"GoesOn": "", "Paused": "rollout: {paused: true}\n"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, spec(8, "v1"))
			w.rollOut(spec(8, "v1"))
			w.rollOut(spec(8, broken))
			before := len(w.serving())
			w.rollOut(spec(16, broken) + policy)
			if got := len(w.serving()); got < before {
				t.Errorf("%d replicas of the former version serve, %d before", got, before)
			}
			w.rollOut(spec(16, "v2"))
			w.checkAll(t, "v2", map[string]int{"p": 16, "d": 8})
		})
	}
}

// TestPairsThatNeededNothing turns decode replicas that answer alone into SGLang's, which need prefill of their version.
// The former ones go on answering until their turn.
func TestPairsThatNeededNothing(t *testing.T) {
	pairs := "roles:\n" + sglangRole("p", "prefiller", 2, "v2") + sglangRole("d", "decoder", 4, "v2")
	for name, former := range map[string]string{
		"DecodeAlone":   sglangRole("d", "decoder", 4, "v1"),
		"CrashedOfVLLM": roleOf("p", "prefiller", 2, broken) + roleOf("d", "decoder", 4, "v1"),
		"RunningOfVLLM": roleOf("p", "prefiller", 2, "v1") + roleOf("d", "decoder", 4, "v1"),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "roles:\n"+former)
			w.rollOut("roles:\n" + former)
			w.start = 3
			w.edit(pairs)
			fewest := 4
			for range 40 {
				w.step()
				n, prefill := 0, 0
				for key, s := range w.sets {
					switch {
					case !s.serving():
					case strings.Contains(key, "/p/") && s.image == "v2":
						prefill++
					case strings.Contains(key, "/d/") && s.image == "v1":
						n++
					}
				}
				for key, s := range w.sets {
					if s.serving() && prefill > 0 && strings.Contains(key, "/d/") && s.image == "v2" {
						n++
					}
				}
				fewest = min(fewest, n)
			}
			if got, want := fmt.Sprintf("%d %s", fewest, w.images()), "2 v2,v2,v2,v2,v2,v2"; got != want {
				t.Errorf("the fewest replicas that answer, and the images are %s, want %s", got, want)
			}
		})
	}
}

// TestEditWhileOneIsReplaced edits prefill and decode of SGLang twice. The controller of one LeaderWorkerSet sees the first edit only
// together with the second one, and that of the other sees it at once. So these two never have pods of one version, and the unit
// does not serve. Versions are ordered by their hashes, so there are several images.
func TestEditWhileOneIsReplaced(t *testing.T) {
	spec := func(image string) string {
		const role = "- {name: %s, componentType: %s, replicas: 2, template: {spec: {containers: [{name: engine, image: %s, command: [%s]}]}}}\n"
		return "roles:\n" + fmt.Sprintf(role, "p", "prefiller", image, sglang) + fmt.Sprintf(role, "d", "decoder", image, sglang)
	}
	cases := map[string]struct{ reason, unseen string }{
		"Decode":  {"Prefill has the first edit, and decode the version before.", "leaderworkerset/d/1"},
		"Prefill": {"Decode has the first edit, and prefill the version before.", "leaderworkerset/p/1"},
	}
	for name, tc := range cases {
		for i := range 6 {
			t.Run(fmt.Sprintf("%s/%d", name, i), func(t *testing.T) {
				before := fmt.Sprintf("before%d", i)
				w := newWorld(t, spec(before))
				w.rollOut(spec(before))
				step := func(n int) {
					t.Helper()
					for range n {
						if w.step(); !w.answersWith(sglang) {
							t.Fatalf("%s Nothing answers: the images are %s, and %v serve", tc.reason, w.images(), w.serving())
						}
					}
				}
				w.unseen = map[string]bool{tc.unseen: true}
				w.edit(spec("first"))
				step(2)
				w.edit(spec("second"))
				step(1)
				w.unseen = nil
				step(20)
				w.checkAll(t, "second", map[string]int{"p": 2, "d": 2})
			})
		}
	}
}
