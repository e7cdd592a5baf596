package service

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
)

// TestGangEnds takes the gang from a service that runs. The PodGroup stays as long as pods are in it:
// step fails if one of them names a PodGroup that is gone.
func TestGangEnds(t *testing.T) {
	const nodes = "roles: [{name: w, componentType: worker, replicas: 3, multinode: {nodeCount: %d}, template: {spec: {containers: [{name: engine, image: v1, command: [vllm, serve, /m]}]}}}]\n"
	pair := fmt.Sprintf(twoPairs, "v1")
	mode := func(mode string) string { return "schedulingStrategy: {gang: {mode: " + mode + "}}\n" }
	cases := map[string]struct{ before, after string }{
		"AllOrNothing": {pair, pair + mode("None")},
		"MinimumFirst": {pair + mode("MinimumFirst"), pair + mode("None")},
		"BelowMinimum": {
			fmt.Sprintf(nodes, 2) + "schedulingStrategy: {gang: {minRoleReplicas: {w: 1}}}\n", fmt.Sprintf(nodes, 2) + mode("None"),
		},
		"OneNode": {fmt.Sprintf(nodes, 2), fmt.Sprintf(nodes, 1)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.before)
			w.rollOut(tc.before)
			w.rollOut(tc.after + "rollout: {paused: true}")
			w.rollOut(tc.after)
			for key := range w.req.GetObserved().GetResources() {
				if strings.HasPrefix(key, "podgroup") {
					t.Errorf("%s is still there, and no pod is in it", key)
				}
			}
		})
	}
}

// TestGangIsMadeAgain deletes the PodGroup of replicas that are held. It is made again for those whose pods name it: step fails
// otherwise. What never had a gang gets none.
func TestGangIsMadeAgain(t *testing.T) {
	pair := fmt.Sprintf(twoPairs, "v1")
	const none, minimumFirst, paused = "schedulingStrategy: {gang: {mode: None}}\n", "schedulingStrategy: {gang: {mode: MinimumFirst}}\n", "rollout: {paused: true}"
	newer := strings.ReplaceAll(pair, "v1", "v2")
	own := strings.ReplaceAll(pair, "template: {spec", `template: {metadata: {annotations: {"scheduling.k8s.io/group-name": theirs}}, spec`)
	cases := map[string]struct {
		before, after string
		gangs         int
	}{
		"AllOrNothing": {pair, newer, 2},
		"MinimumFirst": {pair + minimumFirst, newer + minimumFirst, 2},
		"Ended":        {pair, newer + none, 2},
		"Never":        {pair + none, newer + none, 0},
		"NotYet":       {pair + none, newer, 0},
		"Another":      {own + none, strings.ReplaceAll(own, "v1", "v2") + none, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.before)
			w.rollOut(tc.before)
			w.rollOut(tc.after + paused)
			maps.DeleteFunc(w.req.GetObserved().GetResources(), func(key string, _ *fnv1.Resource) bool { return strings.HasPrefix(key, "podgroup") })
			gangs := 0
			for key := range w.step().GetDesired().GetResources() {
				if strings.HasPrefix(key, "podgroup") {
					gangs++
				}
			}
			if gangs != tc.gangs {
				t.Errorf("got %d PodGroups, want %d", gangs, tc.gangs)
			}
			if _, last := w.rollOut(tc.after); rolledOut(last) != "AllUpdated: " {
				t.Errorf("it was not rolled out: %s", rolledOut(last))
			}
		})
	}
}
