package service

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/test/fixture"
)

// TestRolesAreReplaced shows that an edit of the roles takes away nothing that serves before something
// else does.
func TestRolesAreReplaced(t *testing.T) {
	worker := func(name, image string, replicas int) string {
		return fmt.Sprintf("- {name: %s, componentType: worker, replicas: %d, template: {spec: {containers: [{name: engine, image: %s, command: [vllm, serve, /m]}]}}}\n", name, replicas, image)
	}
	const (
		prefill = "- {name: p, componentType: prefiller, template: {spec: {containers: [{name: engine, image: v1, command: [vllm, serve, /m]}]}}}\n"
		decode  = "- {name: d, componentType: decoder, template: {spec: {containers: [{name: engine, image: v1, command: [vllm, serve, /m]}]}}}\n"
	)
	before := worker("w", "v1", 2)
	cases := map[string]struct {
		reason string
		// steps are the specs one after the other, each for some calls.
		steps   []string
		refused string
		serving []string
	}{
		"Renamed": {
			reason: "Both replicas would go at once.", steps: []string{worker("new", "v1", 2)},
			refused: "spec.roles: Forbidden: must keep roles that serve requests until the others do. Removed: w. Not ready: new. To remove a role at once, set its replicas to 0 first",
			serving: []string{"w/0", "w/1"},
		},
		"Split": {
			reason: "So would they where prefill and decode take their place.", steps: []string{prefill + decode},
			refused: "spec.roles: Forbidden: must keep roles that serve requests until the others do. Removed: w. Not ready: d, p. To remove a role at once, set its replicas to 0 first",
			serving: []string{"w/0", "w/1"},
		},
		"OneAfterTheOther": {
			reason: "The new role serves when the former one goes.", steps: []string{before + worker("new", "v1", 2), worker("new", "v1", 2)},
			serving: []string{"new/0", "new/1"},
		},
		"Broken": {
			reason: "The new role does not serve.", steps: []string{before + worker("new", broken, 2), worker("new", broken, 2)},
			refused: "spec.roles: Forbidden: must keep roles that serve requests until the others do. Removed: w. Not ready: new. To remove a role at once, set its replicas to 0 first",
			serving: []string{"w/0", "w/1"},
		},
		"NoneLeft": {
			reason: "The user has stopped it before.", steps: []string{worker("w", "v1", 0), worker("new", "v1", 1)},
			serving: []string{"new/0"},
		},
		"OtherType": {
			reason:  "The schema compares it with the refused edit, which lacks it.",
			steps:   []string{worker("x", "v1", 1), strings.ReplaceAll(prefill, "name: p", "name: w") + decode},
			refused: "spec.roles[0].componentType: Invalid value: \"prefiller\": cannot be changed: its replicas run as worker. Add a role with another name",
			serving: []string{"w/0", "w/1"},
		},
		"NotServing": {
			reason: "It does not serve.", steps: []string{worker("w", broken, 2) + "rollout: {maxUnavailable: 2}", worker("new", "v1", 1)},
			serving: []string{"new/0"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "roles:\n"+before)
			w.rollOut("roles:\n" + before)
			refused := ""
			for _, spec := range tc.steps {
				w.edit("roles:\n" + spec)
				if refused = fixture.Fatals(w.fn.Run(t, w.req)); refused == "" {
					w.rollOut("roles:\n" + spec)
				}
			}
			if !strings.Contains(refused, tc.refused) || refused != "" && tc.refused == "" {
				t.Errorf("%s\ngot %q, want %q", tc.reason, refused, tc.refused)
			}
			if diff := cmp.Diff(tc.serving, w.serving()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestLastAnswers removes a role without which nothing answers, although all roles that are left serve.
func TestLastAnswers(t *testing.T) {
	const message = "spec.roles: Forbidden: must keep roles that serve requests until the others do. Removed: %s. Not ready: %s. To remove a role at once, set its replicas to 0 first"
	const router, whole = "- {name: r, componentType: router}\n", "- {name: r, componentType: router, strategy: prefix-cache}\n"
	const queue = "- {name: r, componentType: router, strategy: queue-size}\n"
	prefill, decode := roleOf("p", "prefiller", 1, "v1"), roleOf("d", "decoder", 1, "v1")
	both := sglangRole("p", "prefiller", 1, "v1") + sglangRole("d", "decoder", 1, "v1")
	cases := map[string]struct{ before, after, removed, missing string }{
		"PrefillOfSGLang":               {both, sglangRole("d", "decoder", 1, "v1"), "p", "roles that answer without these, such as workers"},
		"DecodeOfSGLang":                {both, sglangRole("p", "prefiller", 1, "v1"), "d", "roles that answer without these, such as workers"},
		"PrefillOfSGLangBesideOther":    {both + sglangRole("q", "prefiller", 1, "v1"), both, "", ""},
		"PrefillOfSGLangBesideWorker":   {both + roleOf("w", "worker", 1, "v1"), sglangRole("d", "decoder", 1, "v1") + roleOf("w", "worker", 1, "v1"), "", ""},
		"PrefillOfVLLM":                 {prefill + decode, decode, "", ""},
		"DecodeOfVLLM":                  {prefill + decode, prefill, "", ""},
		"DecodeBehindRouter":            {router + prefill + decode, router + prefill, "d", "roles that answer without these, such as workers"},
		"DecodeBehindPrefixCache":       {whole + prefill + decode, whole + prefill, "", ""},
		"WorkerAndPrefillToZero":        {router + both + roleOf("w", "worker", 1, "v1"), router + sglangRole("p", "prefiller", 0, "v1") + sglangRole("d", "decoder", 1, "v1"), "w", "roles that answer without these, such as workers"},
		"WorkerBesideSGLangWhole":       {queue + both + roleOf("w", "worker", 1, "v1"), queue + both, "w", "roles that answer without these, such as workers, or strategy: pd-disaggregation in the router, with which decode answers"},
		"PrefillThatAnswersNothing":     {queue + both + sglangRole("q", "prefiller", 1, "v1"), queue + both, "", ""},
		"WorkerBesideSGLangPickedApart": {router + both + roleOf("w", "worker", 1, "v1"), router + both, "", ""},
		"WorkerBesideVLLMWhole":         {queue + prefill + decode + roleOf("w", "worker", 1, "v1"), queue + prefill + decode, "", ""},
		"OthersHaveNoReplicas":          {roleOf("w", "worker", 1, "v1") + roleOf("v", "worker", 0, "v1"), roleOf("v", "worker", 0, "v1"), "w", "any other role in the control plane's cluster"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "roles:\n"+tc.before)
			w.rollOut("roles:\n" + tc.before)
			w.edit("roles:\n" + tc.after)
			want := ""
			if tc.removed != "" {
				want = fmt.Sprintf(message, tc.removed, tc.missing)
			}
			if got := fixture.Fatals(w.fn.Run(t, w.req)); !strings.HasSuffix(got, want) || want == "" && got != "" {
				t.Errorf("refused for %q, want %q", got, want)
			}
		})
	}
}

// TestWorkersRemovedDuringRollout proves that workers stay until all of decode answers without prefill. The endpoint picker would send
// requests to what does not so far, too.
func TestWorkersRemovedDuringRollout(t *testing.T) {
	const router = "- {name: r, componentType: router}\n"
	prefill, decode, workers := sglangRole("p", "prefiller", 3, "v1"), sglangRole("d", "decoder", 3, "v1"), roleOf("w", "worker", 1, "v1")
	w := newWorld(t, "roles:\n"+router+prefill+decode+workers)
	w.rollOut("roles:\n" + router + prefill + decode + workers)
	w.start = 4
	w.edit("roles:\n" + router + decode + workers)
	changed := func() (n int) {
		for i := range 3 {
			n += w.restarts[fmt.Sprintf("leaderworkerset/d/%d", i)]
		}
		return n
	}
	for i := 0; changed() == 0 || len(w.serving()) < 4; i++ {
		if w.step(); i > 20 {
			t.Fatal("decode does not change")
		}
	}
	for i := 0; ; i++ {
		spec := "roles:\n" + router + decode
		w.edit(spec)
		refused := fixture.Fatals(w.fn.Run(t, w.req))
		if whole := changed() == 3; (refused == "") != whole {
			t.Fatalf("%d of 3 replicas changed, and the workers are refused to go for %q", changed(), refused)
		}
		if refused == "" {
			return
		}
		w.edit("roles:\n" + router + decode + workers)
		if w.step(); i > 40 {
			t.Fatal("decode does not change on")
		}
	}
}

// roleOf is a role with replicas of an image.
func roleOf(name, componentType string, replicas int, image string) string {
	return fmt.Sprintf("- {name: %s, componentType: %s, replicas: %d, template: {spec: {containers: [{name: engine, image: %s, command: [vllm, serve, /m]}]}}}\n", name, componentType, replicas, image)
}

// TestRolesAreAdded shows that a further role does not stop the others, whether it serves or not. It may
// start a rollout of them.
func TestRolesAreAdded(t *testing.T) {
	workers := roleOf("w", "worker", 4, "v1")
	pairs := roleOf("p", "prefiller", 4, "v1") + roleOf("d", "decoder", 4, "v1")
	cases := map[string]struct {
		reason        string
		before, added string
		// fewest is the lowest number of replicas of the former roles that may serve.
		fewest int
	}{
		"PairsBesideWorkers":       {"Workers change one after the other, and not with prefill and decode.", workers, roleOf("p", "prefiller", 1, "v1") + roleOf("d", "decoder", 1, "v1"), 3},
		"BrokenPairsBesideWorkers": {"What does not start uses up the budget.", workers, roleOf("p", "prefiller", 1, broken) + roleOf("d", "decoder", 1, broken), 4},
		"WorkerBesidePairs":        {"Prefill and decode do not change with workers.", pairs, roleOf("w", "worker", 1, "v1"), 8},
		"DecoderBesidePairs":       {"A small role leaves as many units as there were.", pairs, roleOf("e", "decoder", 1, "v1"), 6},
		"PrefillerBesidePairs":     {"So does a role of prefill, which does not start.", pairs, roleOf("e", "prefiller", 1, broken), 6},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "roles:\n"+tc.before)
			w.rollOut("roles:\n" + tc.before)
			former := w.serving()
			w.start = 3
			w.edit("roles:\n" + tc.before + tc.added)
			for i := range 40 {
				w.step()
				serving := slices.DeleteFunc(w.serving(), func(name string) bool { return !slices.Contains(former, name) })
				if len(serving) < tc.fewest {
					t.Fatalf("%s\nafter %d calls only these serve: %v", tc.reason, i+1, serving)
				}
			}
		})
	}
}

// TestDecodeBesidePrefill shows that prefill which answers requests by itself is not restarted at once when decode comes, while
// the controllers have not reported on the edit so far.
func TestDecodeBesidePrefill(t *testing.T) {
	const (
		router = "- {name: r, componentType: router, strategy: prefix-cache}\n"
		// The world has no gangs in other clusters.
		elsewhere = "placement: {clusters: [{name: east, providerConfigRef: {name: east}}]}\nschedulingStrategy: {gang: {mode: None}}\n"
	)
	prefill := router + roleOf("p", "prefiller", 4, "v1")
	cases := map[string]struct {
		reason        string
		before, after string
		// fewest is the lowest number of prefill replicas that may serve.
		fewest int
	}{
		"Added":       {"Prefill changes one after the other once decode serves.", prefill, prefill + roleOf("d", "decoder", 4, "v1"), 3},
		"Broken":      {"Decode never serves.", prefill, prefill + roleOf("d", "decoder", 4, broken), 4},
		"Paused":      {"Prefill keeps its pods.", prefill, prefill + roleOf("d", "decoder", 4, "v1") + "rollout: {paused: true}", 4},
		"Partition":   {"Prefill below the partition does.", prefill, prefill + roleOf("d", "decoder", 4, "v1") + "rollout: {partition: 4}", 4},
		"Surge":       {"An extra unit serves before another one stops.", prefill, prefill + roleOf("d", "decoder", 4, "v1") + "rollout: {maxSurge: 1}", 4},
		"FromNothing": {"Decode had no replicas.", prefill + roleOf("d", "decoder", 0, "v1"), router + roleOf("p", "prefiller", 4, "v2") + roleOf("d", "decoder", 4, "v1"), 3},
	}
	for name, tc := range cases {
		for where, placement := range map[string]string{"Here": "", "Elsewhere": elsewhere} {
			t.Run(name+"/"+where, func(t *testing.T) {
				w := newWorld(t, placement+"roles:\n"+tc.before)
				w.req.Input = fixture.YAML(t, `{apiVersion: fn.fusioninfer.io/v1alpha1, kind: Input, allowedProviderConfigs: [{name: east}]}`)
				step := func() {
					if placement == "" {
						w.step()
					} else {
						w.stepThere()
					}
				}
				prefill := func() int {
					return len(slices.DeleteFunc(w.serving(), func(name string) bool { return !strings.Contains(name, "p/") }))
				}
				for range 4 {
					step()
				}
				if n := prefill(); n != 4 {
					t.Fatalf("%d replicas serve before the edit", n)
				}
				w.edit(placement + "roles:\n" + tc.after)
				w.start, w.behind = 3, 2
				for i := range 40 {
					step()
					if n := prefill(); n < tc.fewest {
						t.Fatalf("%s\nafter %d calls only %d prefill replicas serve", tc.reason, i+1, n)
					}
					if i == 1 {
						w.behind = 0
					}
				}
			})
		}
	}
}
