package service

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/test/fixture"
)

// listLeaders answers the requirement for pods, if pods are read. A pod has a new UID whenever it is
// made anew, and the revision of the template that it runs.
func (w *world) listLeaders() {
	w.tb.Helper()
	if !w.pods {
		return
	}
	var docs []string
	for _, key := range fixture.Keys(w.sets) {
		s, id := w.sets[key], strings.Split(strings.TrimPrefix(key, "leaderworkerset/"), "/")
		if len(id) == 2 {
			id = append([]string{""}, id...)
		}
		ready, deleted := "False", ""
		if s.serving() && !w.crashed[key] {
			ready = "True"
		}
		if w.evicted[key] {
			deleted = `deletionTimestamp: "2026-05-04T08:01:00Z"`
		}
		docs = append(docs, fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata:
  name: chat-%[1]s-0
  uid: %[1]s-%[2]d
  creationTimestamp: "2026-05-04T08:00:00Z"
  %[8]s
  labels:
    fusioninfer.io/group-index: %[3]q
    fusioninfer.io/role-name: %[4]s
    fusioninfer.io/replica-index: %[5]q
    leaderworkerset.sigs.k8s.io/worker-index: "0"
    leaderworkerset.sigs.k8s.io/template-revision-hash: %[6]s
status: {phase: Running, conditions: [{type: Ready, status: %[7]q}]}
`, strings.Join(id, "-"), w.restarts[key], id[0], id[1], id[2], naming.Hash(s.template), ready, deleted))
	}
	w.req.RequiredResources = map[string]*fnv1.Resources{"pods": fixture.Resources(w.tb, docs...)}
}

// steps calls the function several times.
func (w *world) steps(n int) {
	w.tb.Helper()
	for range n {
		w.step()
	}
}

// groups is a service of some groups with prefill and decode of an image. A prefill replica that
// fails makes its group anew.
func groups(n int, image, more string) string {
	return fmt.Sprintf(`replicas: %d
roles:
- {name: p, componentType: prefiller, recoveryPolicy: InferGroupRestart, template: {spec: {containers: [{name: engine, image: %[2]s, command: [vllm, serve, /m]}]}}}
- {name: d, componentType: decoder, template: {spec: {containers: [{name: engine, image: %[2]s, command: [vllm, serve, /m]}]}}}
%[3]s`, n, image, more)
}

const (
	firstPrefill, firstDecode   = "leaderworkerset/0/p/0", "leaderworkerset/0/d/0"
	secondPrefill, secondDecode = "leaderworkerset/1/p/0", "leaderworkerset/1/d/0"
)

// TestGroupRestart shows when a replica that fails takes the rest of its group with it.
func TestGroupRestart(t *testing.T) {
	cases := map[string]struct {
		reason string
		// run starts with two groups that serve.
		run func(w *world)
		// restarts of LeaderWorkerSets, with those that crash.
		restarts map[string]int
	}{
		"Prefill": {
			reason:   "Its decode is made anew once, and the other group stays.",
			run:      func(w *world) { w.crash(firstPrefill); w.steps(20) },
			restarts: map[string]int{firstPrefill: 1, firstDecode: 1},
		},
		"Decode": {
			reason:   "Its role has another policy.",
			run:      func(w *world) { w.crash(firstDecode); w.steps(20) },
			restarts: map[string]int{firstDecode: 1},
		},
		"Both": {
			reason: "Both failed, and have new pods already.",
			run: func(w *world) {
				w.edit(strings.ReplaceAll(groups(2, "v1", ""), "decoder,", "decoder, recoveryPolicy: InferGroupRestart,"))
				w.steps(2)
				w.crash(firstPrefill)
				w.crash(firstDecode)
				w.steps(20)
			},
			restarts: map[string]int{firstPrefill: 1, firstDecode: 1},
		},
		"CrashLoop": {
			reason: "A replica that never serves again takes nothing with it.",
			run: func(w *world) {
				w.crashed[firstPrefill] = true
				for range 8 {
					w.crash(firstPrefill)
					w.steps(3)
				}
			},
			restarts: map[string]int{firstPrefill: 8, firstDecode: 1},
		},
		"Again": {
			reason:   "It has served since, so the next failure is another one.",
			run:      func(w *world) { w.crash(firstPrefill); w.steps(10); w.crash(firstPrefill); w.steps(10) },
			restarts: map[string]int{firstPrefill: 2, firstDecode: 2},
		},
		"Update": {
			reason:   "Pods of an update are no failure.",
			run:      func(w *world) { w.edit(groups(2, "v2", "")); w.steps(20) },
			restarts: map[string]int{firstPrefill: 1, firstDecode: 1, secondPrefill: 1, secondDecode: 1},
		},
		"Held": {
			reason: "While a rollout holds a group, its pods stay.",
			run: func(w *world) {
				w.edit(groups(2, "v2", "rollout: {paused: true}"))
				w.steps(5)
				w.crash(firstPrefill)
				w.steps(20)
			},
			restarts: map[string]int{firstPrefill: 1},
		},
		"PutBackAfterAFailure": {
			reason: "A group fails with the new image, which is then put back. The other group never had it.",
			run: func(w *world) {
				w.edit(groups(2, "v2", "rollout: {partition: 1}"))
				w.steps(10)
				w.crash(secondPrefill)
				w.steps(10)
				w.edit(groups(2, "v1", ""))
				w.steps(20)
			},
			restarts: map[string]int{secondPrefill: 3, secondDecode: 3},
		},
		"TurnedOff": {
			reason: "Without the policy the pods stay as they are.",
			run: func(w *world) {
				w.crash(firstPrefill)
				w.steps(10)
				w.edit(strings.ReplaceAll(groups(2, "v1", ""), ", recoveryPolicy: InferGroupRestart", ""))
				w.steps(5)
				w.crash(secondPrefill)
				w.steps(10)
			},
			restarts: map[string]int{firstPrefill: 1, firstDecode: 1, secondPrefill: 1},
		},
		"Unread": {
			reason:   "Where pods are not read, a replica fails alone.",
			run:      func(w *world) { w.pods, w.req.RequiredResources = false, nil; w.crash(firstPrefill); w.steps(20) },
			restarts: map[string]int{firstPrefill: 1},
		},
		"UnreadForAWhile": {
			reason: "The service has more pods than are read. A node is drained meanwhile, and nothing has failed once they are read again.",
			run: func(w *world) {
				w.edit(groups(40, "v1", ""))
				w.pods, w.req.RequiredResources = false, nil
				w.steps(10)
				w.crash(firstPrefill)
				w.steps(10)
				w.edit(groups(2, "v1", ""))
				w.step()
				w.pods = true
				w.steps(20)
			},
			restarts: map[string]int{firstPrefill: 1},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, groups(2, "v1", ""))
			w.pods = true
			w.steps(10)
			tc.run(w)
			if diff := cmp.Diff(tc.restarts, w.restarts); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestGroupRestartDuringRollout proves that no unit is released for an update in the call that makes
// a group anew.
func TestGroupRestartDuringRollout(t *testing.T) {
	w := newWorld(t, groups(3, "v1", ""))
	w.pods = true
	w.steps(10)
	w.edit(groups(3, "v2", ""))
	for w.restarts[secondPrefill] == 0 {
		w.step()
	}
	// The second group serves. Prefill of the third one has failed, and is back before anybody looks.
	w.step()
	w.crash("leaderworkerset/2/p/0")
	w.sets["leaderworkerset/2/p/0"].wait = 0
	w.listLeaders()
	fewest := len(w.sets)
	for range 20 {
		w.step()
		fewest = min(fewest, len(w.serving()))
	}
	if diff := cmp.Diff("v2,v2,v2,v2,v2,v2", w.images()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if w.restarts["leaderworkerset/2/d/0"] != 2 || fewest < 4 {
		t.Errorf("%d replicas served at least, restarts: %v", fewest, w.restarts)
	}
}

// TestEvictedMeanwhile proves that no replica is stopped for which only one serves whose pod is being deleted.
func TestEvictedMeanwhile(t *testing.T) {
	const workers = "roles: [{name: w, componentType: worker, replicas: %d, template: {spec: {containers: [{name: engine, image: %s, command: [vllm, serve, /m]}]}}}]\n%s"
	cases := map[string]struct {
		reason string
		edit   string
		// meanwhile and then are the images that run while the pod ends, and after it has been made anew.
		meanwhile, then string
	}{
		"Rollout":   {reason: "The pod uses up maxUnavailable.", edit: fmt.Sprintf(workers, 2, "v2", ""), meanwhile: "v1,v1", then: "v2,v2"},
		"ScaleDown": {reason: "The replica beyond those that are wanted is the only one that serves.", edit: fmt.Sprintf(workers, 1, "v1", ""), meanwhile: "v1,v1", then: "v1"},
		"Surge":     {reason: "The extra replica serves in its place, and no other is stopped for it.", edit: fmt.Sprintf(workers, 2, "v2", "rollout: {maxSurge: 1}"), meanwhile: "v1,v1,v2", then: "v2,v2"},
		"Allowed":   {reason: "More may be unavailable.", edit: fmt.Sprintf(workers, 2, "v2", "rollout: {maxUnavailable: 2}"), meanwhile: "v1,v2", then: "v2,v2"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, fmt.Sprintf(workers, 2, "v1", ""))
			w.pods = true
			w.steps(5)
			w.evicted = map[string]bool{"leaderworkerset/w/0": true}
			w.listLeaders()
			w.edit(tc.edit)
			w.steps(5)
			if diff := cmp.Diff(tc.meanwhile, w.images()); diff != "" {
				t.Errorf("%s While the pod ends\n-want, +got:\n%s", tc.reason, diff)
			}
			w.evicted = nil
			w.listLeaders()
			w.steps(20)
			if diff := cmp.Diff(tc.then, w.images()); diff != "" {
				t.Errorf("%s Then\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
