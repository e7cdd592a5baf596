package service

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/fusioninfer/function-inferenceservice/test/fixture"
)

// TestAnyEdits edits services with four replicas of each role at random, in the middle of rollouts as well.
// No more than one replica of a role stops at a time, whatever changes.
func TestAnyEdits(t *testing.T) {
	const edits = 25
	done := 0
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 7))
		roles := [][]string{{"worker"}, {"prefiller", "decoder"}}[seed%2]
		spec := randomEdit(r, roles)
		w := newWorld(t, spec)
		for range 40 {
			w.step()
		}
		for range edits {
			next := randomEdit(r, roles)
			if w.edit(next); fixture.Fatals(w.fn.Run(t, w.req)) != "" {
				w.edit(spec)
				continue
			}
			done++
			spec, w.start, w.behind = next, 1+r.IntN(3), r.IntN(3)
			for range 1 + r.IntN(8) {
				w.step()
				for _, role := range roles {
					if n := strings.Count(strings.Join(w.serving(), " "), role+"/"); n < 3 {
						t.Fatalf("seed %d: %d replicas of %s serve after\n%s", seed, n, role, spec)
					}
				}
			}
		}
	}
	if done < 200 {
		t.Errorf("%d edits were accepted, want 200", done)
	}
}

// randomEdit is a service with some roles, of four replicas each.
func randomEdit(r *rand.Rand, roles []string) string {
	one := func(of ...string) string { return of[r.IntN(len(of))] }
	var all []string
	for _, role := range roles {
		all = append(all, fmt.Sprintf("- {name: %s, componentType: %[1]s, replicas: 4, template: {metadata: {labels: {team: %s}}, spec: {containers: [{name: engine, image: %s, command: [vllm, serve, /m]}]}}%s%s}\n",
			role, one("red", "blue"), one("v1", "v2", "v3"),
			one("", ", recoveryPolicy: None", ", recoveryPolicy: RoleRestartAfterStart", ", lifecycle: {drainSeconds: 3}"),
			one("", ", multinode: {nodeCount: 2}", ", multinode: {nodeCount: 3}")))
	}
	all = append(all, one("", "- {name: r, componentType: router}\n", "- {name: router, componentType: router, strategy: queue-size, replicas: 2}\n"))
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return "roles:\n" + strings.Join(all, "") + one("rollout: {paused: true}\n", "rollout: {maxSurge: 1}\n", "rollout: {partition: 2}\n", "") +
		one("schedulingStrategy: {gang: {mode: None}}\n", "schedulingStrategy: {gang: {mode: MinimumFirst}}\n", "")
}
