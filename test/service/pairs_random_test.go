package service

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/fusioninfer/function-inferenceservice/test/fixture"
	"github.com/fusioninfer/function-inferenceservice/test/function"
)

// scaledPairs has prefill and decode of one image, whose roles scale. The command is that of the engine.
const scaledPairs = "roles: [{name: p, componentType: prefiller, scaling: {maxReplicas: 8}, template: {spec: {containers: [{name: engine, image: %[1]s, command: [%[2]s]}]}}}," +
	"{name: d, componentType: decoder, scaling: {maxReplicas: 8}, template: {spec: {containers: [{name: engine, image: %[1]s, command: [%[2]s]}]}}}]\nrollout: {%[3]s}\n"

// Commands of the engines. Decode of SGLang answers nothing without prefill of its version, and vLLM's does.
const (
	sglang = "python3, -m, sglang.launch_server, --model-path, /m"
	vllm   = "vllm, serve, /m"
)

// answersWith tells whether an engine answers requests: decode serves, and prefill of its image if it needs that.
func (w *world) answersWith(engine string) bool {
	prefill, decode := map[string]bool{}, map[string]bool{}
	for _, name := range w.serving() {
		image := w.sets["leaderworkerset/"+name].image
		if strings.HasPrefix(name, "p/") {
			prefill[image] = true
		} else {
			decode[image] = true
		}
	}
	for image := range decode {
		if engine != sglang || prefill[image] {
			return true
		}
	}
	return false
}

// TestScaleInARollout scales prefill and decode during a rollout. Which replicas there are then has little to do with which
// of them have the newest version, and requests are answered all the time.
func TestScaleInARollout(t *testing.T) {
	type event struct {
		after int
		role  string
		to    int
	}
	for name, tc := range map[string]struct {
		rollout         string
		start           int
		prefill, decode int
		events          []event
	}{
		"PrefillDown":      {"maxUnavailable: 1", 1, 5, 3, []event{{3, "p", 2}}},
		"DecodeDown":       {"maxUnavailable: 1", 1, 5, 5, []event{{3, "d", 2}}},
		"PrefillUp":        {"maxUnavailable: 1", 2, 2, 4, []event{{3, "p", 6}}},
		"SurgeDecodeDown":  {"maxUnavailable: 0, maxSurge: 1", 1, 4, 2, []event{{2, "d", 1}}},
		"SurgeUpAndDown":   {"maxUnavailable: 0, maxSurge: 2", 1, 4, 2, []event{{1, "p", 1}, {3, "p", 4}, {2, "d", 1}}},
		"SurgeSlowly":      {"maxUnavailable: 0, maxSurge: 2", 2, 4, 2, []event{{1, "p", 1}, {3, "p", 4}, {3, "d", 1}}},
		"DownAndUpOfBoth":  {"maxUnavailable: 1", 2, 6, 6, []event{{2, "p", 2}, {0, "d", 3}, {2, "d", 6}, {1, "p", 4}}},
		"DecodeDownBefore": {"maxUnavailable: 1", 3, 3, 6, []event{{1, "d", 2}, {4, "p", 2}}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := func(image string) string { return fmt.Sprintf(scaledPairs, image, sglang, tc.rollout) }
			w := newWorld(t, spec("v1"))
			w.start = tc.start
			w.apply()
			want := map[string]int{"p": tc.prefill, "d": tc.decode}
			for role, n := range want {
				w.scale(role, n)
			}
			for range 10 {
				w.apply()
			}
			w.edit(spec("v2"))
			step := func(n int) {
				t.Helper()
				for range n {
					before := w.images()
					if w.apply(); !w.answersWith(sglang) {
						t.Fatalf("nothing answers after a call: the images were %s, and are %s: %v serve", before, w.images(), w.serving())
					}
				}
			}
			for _, e := range tc.events {
				step(e.after)
				w.scale(e.role, e.to)
				want[e.role] = e.to
			}
			step(40)
			w.checkAll(t, "v2", want)
		})
	}
}

// checkAll checks that each role has the replicas that are wanted, and that all of them run an image.
func (w *world) checkAll(t *testing.T, image string, want map[string]int) {
	t.Helper()
	got := map[string]int{}
	for key, s := range w.sets {
		got[strings.Split(key, "/")[1]]++
		if s.image != image {
			t.Errorf("%s runs %s, want %s", key, s.image, image)
		}
	}
	for role, n := range want {
		if got[role] != n {
			t.Errorf("role %s has %d replicas, want %d", role, got[role], n)
		}
	}
}

// TestRandomPairs changes, scales, pauses and breaks services of prefill and decode at random, with statuses that are behind.
// What answers goes on answering, and in the end all replicas run the newest version.
func TestRandomPairs(t *testing.T) {
	const seeds = 40
	fn := function.Start(t)
	for seed := range uint64(seeds) {
		r := rand.New(rand.NewPCG(seed, 1))
		engine := []string{vllm, sglang, sglang}[r.IntN(3)]
		// Where one unit may be unavailable, there are at least two.
		policy, least := "maxUnavailable: 1", 2
		if r.IntN(2) == 0 {
			policy, least = fmt.Sprintf("maxUnavailable: 0, maxSurge: %d", 1+r.IntN(2)), 1
		}
		t.Run(fmt.Sprintf("%d/%s/%s", seed, strings.Fields(engine)[0], policy), func(t *testing.T) {
			image, more, version, log := "v1", "", 1, []string{}
			spec := func() string { return fmt.Sprintf(scaledPairs, image, engine, policy+more) }
			w := &world{
				tb: t, fn: fn, req: fixture.Request(t, fixture.Service(spec()), ""), sets: map[string]*set{}, restarts: map[string]int{},
				crashed: map[string]bool{}, start: 1 + r.IntN(3),
			}
			w.apply()
			want := map[string]int{}
			scale := func(role string) {
				want[role] = least + r.IntN(4)
				w.scale(role, want[role])
				log = append(log, fmt.Sprintf("%s is scaled to %d", role, want[role]))
			}
			scale("p")
			scale("d")
			for range 12 {
				w.apply()
			}
			step := func() {
				t.Helper()
				before := w.answersWith(engine)
				w.apply()
				log = append(log, fmt.Sprintf("images %s, %v serve", w.images(), w.serving()))
				if before && !w.answersWith(engine) {
					t.Fatalf("nothing answers any more:\n%s", strings.Join(log, "\n"))
				}
			}
			change := func(to string) {
				version++
				if image = to; to == "" {
					image = fmt.Sprintf("v%d", version)
				}
				w.edit(spec())
				log = append(log, "the image is "+image+more)
			}
			for range 25 {
				switch r.IntN(8) {
				case 0:
					scale("p")
				case 1:
					scale("d")
				case 2:
					change([]string{broken, "", "", ""}[r.IntN(4)])
				case 3:
					more = []string{"", "", ", paused: true", ", partition: 1"}[r.IntN(4)]
					change(image)
				case 4:
					w.behind = r.IntN(3)
					log = append(log, fmt.Sprintf("statuses are behind for %d calls", w.behind))
				}
				step()
			}
			more = ""
			change("")
			for range 60 {
				step()
			}
			w.checkAll(t, image, want)
		})
	}
}
