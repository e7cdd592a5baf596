package service

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/test/fixture"
	"github.com/fusioninfer/function-inferenceservice/test/function"
)

// crashing is the leader pod of the second replica of the role w, made from a revision.
func crashing(revision, more, status string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata:
  name: chat-w-1-0
  labels: {fusioninfer.io/service: chat, fusioninfer.io/role-name: w, fusioninfer.io/replica-index: "1", fusioninfer.io/spec-hash: %q, leaderworkerset.sigs.k8s.io/name: chat-w-1}
%s
status:
  phase: Running
  containerStatuses: [{name: engine, %s}]
`, revision, more, status)
}

// TestCrashLoop shows that a replica in a crash loop stays failed while its pods are deleted and made anew. It
// stops being so once it serves, or gets another template.
func TestCrashLoop(t *testing.T) {
	t.Run("Error", func(t *testing.T) { crashLoop(t, "Error", 3) })
	// A wrong command may end without an error, and so does an engine that a probe ends.
	t.Run("Completed", func(t *testing.T) { crashLoop(t, "Completed", 0) })
}

// crashLoop lets a container end again and again with a reason and an exit code.
func crashLoop(t *testing.T, reason string, code int) {
	t.Helper()
	const at = "leaderworkerset/w/1"
	why := fmt.Sprintf("pod chat-w-1-0: container engine: %s (exit code %d)", reason, code)
	exited := fmt.Sprintf(`state: {running: {}}, lastState: {terminated: {exitCode: %d, reason: %s, message: s3cret, finishedAt: "2026-01-01T00:00:29Z"}}`, code, reason)
	const (
		deleted = `  deletionTimestamp: "2026-01-01T00:01:40Z"
  deletionGracePeriodSeconds: 70`
		starts  = `state: {running: {}}`
		another = `state: {terminated: {exitCode: 137, reason: OOMKilled, finishedAt: "2026-01-01T00:02:00Z"}}`
	)
	fn := function.Start(t)
	service := func(image string) string {
		return fixture.Service("roles: [{name: w, componentType: worker, replicas: 2, template: {spec: {containers: [{name: engine, image: " + image + ", command: [vllm, serve, /m]}]}}}]")
	}
	req := fixture.Request(t, service("i"), "")
	rsp, _ := fixture.Reconcile(t, fn, req, nil)
	fixture.Observe(req, rsp)
	fixture.MakeReady(t, req)
	label := func(k string) string {
		return kube.Lookup(req.GetObserved().GetResources()[k].GetResource(), "metadata", "labels", "fusioninfer.io/spec-hash").GetStringValue()
	}
	first := label(at)
	note := func(rsp *fnv1.RunFunctionResponse) string {
		return kube.Lookup(rsp.GetDesired().GetResources()[at].GetResource(), "metadata", "annotations", "fusioninfer.io/last-failure").GetStringValue()
	}
	// reported observes what the last answer wants, with some status of the second replica and some pods.
	reported := func(status string, pods ...string) {
		t.Helper()
		fixture.Observe(req, rsp)
		fixture.MakeReady(t, req)
		r := req.GetObserved().GetResources()[at]
		r.Resource = kube.With(r.GetResource(), structpb.NewStructValue(fixture.YAML(t, status)), "status")
		rsp, _ = fixture.Reconcile(t, fn, req, map[string][]string{"pods": pods})
		if strings.Contains(rsp.String(), "s3cret") {
			t.Error("the answer repeats what only the pod may have")
		}
	}
	// step reports that the second replica is stuck.
	step := func(pods ...string) {
		t.Helper()
		reported(stuckStatus, pods...)
	}
	fails := func(what, want string) {
		t.Helper()
		if diff := cmp.Diff("Failed: "+want, workloadsReady(rsp)); diff != "" {
			t.Errorf("%s: WorkloadsReady: -want, +got:\n%s", what, diff)
		}
		if got := conditionOf(rsp, "RolledOut"); !strings.HasPrefix(got, "UpdateFailed: ") || !strings.HasSuffix(got, want) {
			t.Errorf("%s: RolledOut is %q, want that it fails for %q", what, got, want)
		}
	}
	for range 2 {
		step(crashing(first, deleted, exited))
		fails("its pods are being deleted", why)
		step()
		fails("it has no pods", why)
		step(crashing(first, "", starts))
		fails("its new pods start", why)
		// A busy LeaderWorkerSet controller deletes and creates pods long before it writes a status.
		reported("{}", crashing(first, "", starts))
		fails("its new pods start, and its controller has not reported on it", why)
		if diff := cmp.Diff(first+" "+why, note(rsp)); diff != "" {
			t.Errorf("the note: -want, +got:\n%s", diff)
		}
		if pods := kube.Lookup(rsp.GetDesired().GetResources()[at].GetResource(), "spec", "leaderWorkerTemplate").String(); strings.Contains(pods, "last-failure") {
			t.Error("the pods have the note, too, and would be made anew for it")
		}
	}
	step(crashing(first, "", another))
	const memory = "pod chat-w-1-0: container engine: OOMKilled (exit code 137)"
	fails("it ends for another reason", memory)
	step(crashing("former", deleted, exited))
	if diff := cmp.Diff(first+" "+memory, note(rsp)); diff != "" {
		t.Errorf("pods of a former template changed the note: -want, +got:\n%s", diff)
	}

	req.Observed.Composite.Resource = kube.With(req.GetObserved().GetComposite().GetResource(), kube.Lookup(fixture.YAML(t, service("j")), "spec"), "spec")
	step(crashing(first, "", starts)) // It is told of the template.
	former := label(at)
	step(crashing(first, "", starts))
	if got := note(rsp); got != "" || former != first {
		t.Errorf("it gets another template, and has the note %q", got)
	}
	second := kube.Lookup(rsp.GetDesired().GetResources()[at].GetResource(), "metadata", "labels", "fusioninfer.io/spec-hash").GetStringValue()
	step(crashing(second, deleted, exited))
	fails("the new template fails", why)

	fixture.Observe(req, rsp)
	fixture.MakeReady(t, req)
	rsp, _ = fixture.Reconcile(t, fn, req, map[string][]string{"pods": {}})
	if got := note(rsp); got != "" || strings.HasPrefix(workloadsReady(rsp), "Failed") {
		t.Errorf("it serves, has the note %q, and says %q", got, workloadsReady(rsp))
	}
}
