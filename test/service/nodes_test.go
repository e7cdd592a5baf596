package service

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

// TestNodesChange shows a change of how many nodes a replica has. It reaches one replica after the other,
// like any change of pods, whenever it begins.
func TestNodesChange(t *testing.T) {
	const role = "roles: [{name: w, componentType: worker, replicas: 4, multinode: {nodeCount: %d}, template: {spec: {containers: [{name: engine, image: v1, command: [vllm, serve, /m]}]}}}]\nrollout: {paused: %t}\n"
	const minimumFirst = "schedulingStrategy: {gang: {mode: MinimumFirst}}"
	cases := map[string]struct {
		before, after int
		strategy      string
	}{
		"FromOne":             {1, 2, ""},
		"ToOne":               {2, 1, ""},
		"More":                {2, 3, ""},
		"Fewer":               {3, 2, ""},
		"FromOneMinimumFirst": {1, 2, minimumFirst},
		"ToOneMinimumFirst":   {2, 1, minimumFirst},
		"MoreMinimumFirst":    {2, 3, minimumFirst},
		"FewerMinimumFirst":   {3, 2, minimumFirst},
	}
	type outcome struct {
		Fewest int
		Rolled string
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, fmt.Sprintf(role, tc.before, false)+tc.strategy)
			w.rollOut(fmt.Sprintf(role, tc.before, false) + tc.strategy)
			w.rollOut(fmt.Sprintf(role, tc.after, true) + tc.strategy)
			fewest, last := w.rollOut(fmt.Sprintf(role, tc.after, false) + tc.strategy)
			want := outcome{Fewest: 3, Rolled: "AllUpdated: "}
			if diff := cmp.Diff(want, outcome{Fewest: fewest, Rolled: rolledOut(last)}); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestBudgetWhileNodesChange proves that the PodDisruptionBudget counts the pods that held replicas have, although the subgroups of
// the gang have fewer by then. Otherwise one drain could evict several replicas.
func TestBudgetWhileNodesChange(t *testing.T) {
	const role = "roles: [{name: w, componentType: worker, replicas: 3, multinode: {nodeCount: %d}, template: {spec: {containers: [{name: engine, image: v1, command: [vllm, serve, /m]}]}}}]\nrollout: {partition: %d}\n"
	for _, strategy := range []string{"", "schedulingStrategy: {gang: {mode: MinimumFirst}}"} {
		w := newWorld(t, fmt.Sprintf(role, 4, 0)+strategy)
		w.rollOut(fmt.Sprintf(role, 4, 0) + strategy)
		w.rollOut(fmt.Sprintf(role, 2, 2) + strategy)
		got := map[string]float64{}
		for key, r := range w.req.GetObserved().GetResources() {
			if strings.HasPrefix(key, "poddisruptionbudget") {
				got[key] = kube.Lookup(r.GetResource(), "spec", "minAvailable").GetNumberValue()
			}
		}
		if diff := cmp.Diff(map[string]float64{"poddisruptionbudget/role/w": 4 + 4 + 2 - 1}, got); diff != "" {
			t.Errorf("%q: -want +got:\n%s", strategy, diff)
		}
	}
}

// TestGangWhileNodesChange proves that a PodGroup asks for no room as long as it counts pods of a former template. If these are made
// anew, they would wait for the room of the newest one. Once all replicas have that, the PodGroup asks for its room.
func TestGangWhileNodesChange(t *testing.T) {
	const role = "roles: [{name: w, componentType: worker, multinode: {nodeCount: %d}, template: {spec: {containers: [{name: engine, image: v1, command: [vllm, serve, /m], resources: {limits: {nvidia.com/gpu: 8}}}]}}}]\nrollout: {paused: %t}\n"
	cases := map[string]struct {
		reason string
		nodes  int
		paused bool
		want   string
	}{
		"Before": {reason: "It has the template from the start.", nodes: 2, want: "16"},
		"Held":   {reason: "The rollout does not go on.", nodes: 4, paused: true},
		"Goes":   {reason: "The replica is made anew.", nodes: 4, want: "32"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, fmt.Sprintf(role, 2, false))
			w.rollOut(fmt.Sprintf(role, 2, false))
			w.rollOut(fmt.Sprintf(role, tc.nodes, tc.paused))
			got := kube.Lookup(w.req.GetObserved().GetResources()["podgroup"].GetResource(), "spec", "minResources", "nvidia.com/gpu").GetStringValue()
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestGangModeWhileNodesChange proves that a replica which ran before there was a gang is not counted in it, whichever mode it changes to
// while the rollout is under way. Volcano schedules no pod of a gang that counts a pod without it, and the rollout would wait for ever.
func TestGangModeWhileNodesChange(t *testing.T) {
	const service = "roles: [{name: w, componentType: worker, replicas: 3, multinode: {nodeCount: %d}, template: {spec: {containers: [{name: engine, image: v1, command: [vllm, serve, /m]}]}}}]\nschedulingStrategy: {gang: {mode: %s}}\n"
	for _, first := range []string{"MinimumFirst", "AllOrNothing"} {
		for _, second := range []string{"MinimumFirst", "AllOrNothing"} {
			t.Run(first+"To"+second, func(t *testing.T) {
				w := newWorld(t, fmt.Sprintf(service, 1, first))
				w.rollOut(fmt.Sprintf(service, 1, first))
				w.edit(fmt.Sprintf(service, 2, first))
				for range 20 {
					if w.step(); w.restarts["leaderworkerset/w/2"] == 1 && len(w.serving()) == 3 {
						break
					}
				}
				w.rollOut(fmt.Sprintf(service, 2, second))
				want := map[string]int{"leaderworkerset/w/0": 1, "leaderworkerset/w/1": 1, "leaderworkerset/w/2": 1}
				if diff := cmp.Diff(want, w.restarts); diff != "" {
					t.Errorf("restarts: -want +got:\n%s", diff)
				}
			})
		}
	}
}
