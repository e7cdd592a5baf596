package service

import (
	"fmt"
	"strings"
	"testing"
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
