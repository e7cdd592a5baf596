package service

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/test/fixture"
	"github.com/fusioninfer/function-inferenceservice/test/function"
)

// crashed is a pod of a replica of the role w whose container crashes.
func crashed(set, name string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata:
  name: %[2]s
  labels: {fusioninfer.io/service: chat, fusioninfer.io/role-name: w, leaderworkerset.sigs.k8s.io/name: %[1]s}
spec: {containers: [{name: engine, env: [{name: TOKEN, value: s3cret}]}]}
status:
  phase: Running
  containerStatuses: [{name: engine, state: {waiting: {reason: CrashLoopBackOff, message: s3cret}}}]
`, set, name)
}

const stuckStatus = `{observedGeneration: 1, replicas: 1, readyReplicas: 0, updatedReplicas: 1, conditions: [{type: Available, status: "False", lastTransitionTime: "2026-01-01T00:00:00Z"}]}`

// podRequirements are the requirements for pods, with the names of the pods.
func podRequirements(rsp *fnv1.RunFunctionResponse) map[string]string {
	all := map[string]string{}
	for name, s := range rsp.GetRequirements().GetResources() {
		if s.GetKind() == "Pod" {
			all[name] = s.GetNamespace() + "/" + s.GetMatchName()
		}
	}
	return all
}

// workloadsReady is the condition, with its message.
func workloadsReady(rsp *fnv1.RunFunctionResponse) string { return conditionOf(rsp, "WorkloadsReady") }

// conditionOf is the reason of a condition, with its message.
func conditionOf(rsp *fnv1.RunFunctionResponse, name string) string {
	for _, c := range rsp.GetConditions() {
		if c.GetType() == name {
			return c.GetReason() + ": " + c.GetMessage()
		}
	}
	return ""
}

// TestLargeServiceFails shows that a service of 200 replicas names the pod that crashes. It reads that
// pod and no other, and none once it is settled.
func TestLargeServiceFails(t *testing.T) {
	fn := function.Start(t)
	req := fixture.Request(t, fixture.Service("roles: [{name: w, componentType: worker, replicas: 200, template: {spec: {containers: [{name: engine, image: i, command: [vllm, serve, /m]}]}}}]"), "")
	rsp, _ := fixture.Reconcile(t, fn, req, nil)
	fixture.Observe(req, rsp)
	fixture.MakeReady(t, req)
	settled, _ := fixture.Reconcile(t, fn, req, nil)
	if got := podRequirements(settled); len(got) > 0 || workloadsReady(settled) != "AllReady: " {
		t.Errorf("a settled service requires the pods %v, and says %q", got, workloadsReady(settled))
	}
	stuck := req.GetObserved().GetResources()["leaderworkerset/w/150"]
	stuck.Resource = kube.With(stuck.GetResource(), structpb.NewStructValue(fixture.YAML(t, stuckStatus)), "status")
	rsp, _ = fixture.Reconcile(t, fn, req, map[string][]string{"pod/w/150/0": {crashed("chat-w-150", "chat-w-150-0")}})
	if diff := cmp.Diff(map[string]string{"pod/w/150/0": "team/chat-w-150-0"}, podRequirements(rsp)); diff != "" {
		t.Errorf("the requirements: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff("Failed: pod chat-w-150-0: container engine: CrashLoopBackOff", workloadsReady(rsp)); diff != "" {
		t.Errorf("WorkloadsReady: -want, +got:\n%s", diff)
	}
	if strings.Contains(rsp.String(), "s3cret") {
		t.Errorf("the answer repeats what only the pod may have")
	}
}

// TestRemoteServiceFails shows that a service names a pod that crashes in another cluster. Objects that
// nothing waits for observe the pods, from when their replica is not ready until it is again.
func TestRemoteServiceFails(t *testing.T) {
	fn := function.Start(t)
	req := fixture.Request(t, fixture.Service(onGPU), allowsGPU)
	pods := func(rsp *fnv1.RunFunctionResponse) []string {
		var all []string
		for _, k := range fixture.Keys(rsp.GetDesired().GetResources()) {
			if r := rsp.GetDesired().GetResources()[k]; strings.HasPrefix(k, "cluster/east/pod/") {
				all = append(all, k)
				if r.GetReady() != fnv1.Ready_READY_TRUE {
					t.Errorf("the service waits for %s", k)
				}
			}
		}
		return all
	}
	// step calls the function, and applies what it answers. All of that is ready but one replica.
	step := func(stuck bool) *fnv1.RunFunctionResponse {
		t.Helper()
		rsp, _ := fixture.Reconcile(t, fn, req, nil)
		if got := fixture.Fatals(rsp); got != "" {
			t.Fatal(got)
		}
		before := req.GetObserved().GetResources()
		req.Observed.Resources = map[string]*fnv1.Resource{} // Crossplane deletes what is left out.
		fixture.Observe(req, rsp)
		for k, r := range req.GetObserved().GetResources() {
			switch {
			case strings.HasPrefix(k, "cluster/east/pod/"):
				r.Resource = kube.With(r.GetResource(), kube.Lookup(before[k].GetResource(), "status"), "status")
			default:
				r.Resource = readyThere(t, r.GetResource())
				if k == "cluster/east/leaderworkerset/w/1" && stuck {
					r.Resource = kube.With(r.GetResource(), structpb.NewStructValue(fixture.YAML(t, stuckStatus)), "status", "atProvider", "manifest", "status")
				}
			}
		}
		return rsp
	}
	const leader, worker = "cluster/east/pod/w/1/0", "cluster/east/pod/w/1/1"
	step(true)
	rsp := step(true)
	if diff := cmp.Diff([]string{leader, worker}, pods(rsp)); diff != "" {
		t.Fatalf("a replica is not ready: -want, +got:\n%s", diff)
	}
	o := req.GetObserved().GetResources()[leader]
	name := kube.Lookup(o.GetResource(), "spec", "forProvider", "manifest", "metadata", "name").GetStringValue()
	status := structpb.NewStructValue(fixture.YAML(t, `{conditions: [{type: Synced, status: "True"}, {type: Ready, status: "False"}]}`))
	o.Resource = kube.With(kube.With(o.GetResource(), status, "status"), structpb.NewStructValue(fixture.YAML(t, crashed(strings.TrimSuffix(name, "-0"), name))), "status", "atProvider", "manifest")
	for range 2 {
		rsp = step(true)
		if diff := cmp.Diff("Failed: cluster east: pod "+name+": container engine: CrashLoopBackOff", workloadsReady(rsp)); diff != "" {
			t.Errorf("WorkloadsReady: -want, +got:\n%s", diff)
		}
		if !slices.Equal(pods(rsp), []string{leader, worker}) {
			t.Errorf("the Objects of pods do not stay: %v", pods(rsp))
		}
		if strings.Contains(rsp.String(), "s3cret") {
			t.Errorf("the answer repeats what only the pod may have")
		}
	}
	step(false)
	rsp = step(false)
	if got := pods(rsp); len(got) > 0 || workloadsReady(rsp) != "AllReady: " {
		t.Errorf("it is ready, keeps %v, and says %q", got, workloadsReady(rsp))
	}
}
