package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
)

// TestQuiet proves that nobody fights: ten reconciles of a ready service, each of
// which applies everything again, change no object that it is composed of and warn of
// nothing.
func TestQuiet(t *testing.T) {
	t.Parallel()
	c := shared(t)
	ns := namespace(t, c)
	router := picker("quiet.example.com")
	chat := inference(ns, "chat", router, engine("prefill", "prefiller", 1, 2), engine("decode", "decoder", 2, 2))
	delete(router, "strategy")
	apply(t, c, chat)
	settled(t, c, chat)

	until(t, c, "all has been said of the parts", func(context.Context) (bool, error) {
		for _, o := range parts(t, c, chat) {
			if err := unsaid(o, 6); err != nil {
				return false, fmt.Errorf("%s: %w", title(o), err)
			}
		}
		return true, nil
	})
	version := func(o *unstructured.Unstructured) string { return o.GetResourceVersion() }
	before := each(parts(t, c, chat), version)
	begun := time.Now()
	for i := range 10 {
		// Whether the default is written down makes another generation, of which
		// the status tells when all of it was applied, and means the same.
		if router["strategy"] = "pd-disaggregation"; i%2 == 1 {
			delete(router, "strategy")
		}
		apply(t, c, chat)
		settled(t, c, chat)
	}
	s := settled(t, c, chat)
	if s.GetGeneration() < 11 {
		t.Errorf("the service is of generation %d after ten changes: they did not make it reconcile", s.GetGeneration())
	}
	if diff := cmp.Diff(before, each(parts(t, c, chat), version)); diff != "" {
		t.Errorf("ten reconciles change resourceVersions: -before, +after:\n%s", diff)
	}
	if all := warned(t, c, ns, begun); len(all) > 0 {
		t.Errorf("ten reconciles warn:\n%s", strings.Join(all, "\n"))
	}
}

// unsaid tells what others have yet to write into a part of a ready service, whose gang has so many pods. They may do so after the
// service is ready.
func unsaid(o *unstructured.Unstructured, pods int64) error {
	number := func(field string) int64 {
		n, _, _ := unstructured.NestedInt64(o.Object, "status", field)
		return n
	}
	switch o.GetKind() {
	case podGroupKind.Kind:
		if n := number("running"); n != pods {
			return fmt.Errorf("%d of its pods run, want %d", n, pods)
		}
	case "PodDisruptionBudget":
		if seen := number("observedGeneration"); seen != o.GetGeneration() {
			return fmt.Errorf("its status is of generation %d, not %d", seen, o.GetGeneration())
		}
		// All budgets leave one pod to spare, so with one less not all pods were counted.
		if healthy, least := number("currentHealthy"), number("desiredHealthy"); healthy <= least {
			return fmt.Errorf("%d of its pods are healthy, want more than %d", healthy, least)
		}
	case routeKind.Kind:
		if !acceptedAsItIs(o) {
			return errors.New("its gateway has not accepted it")
		}
	}
	return nil
}

// warned are the warnings in a namespace of what happened after a moment. Events are
// written later than that, so when they are there tells nothing.
func warned(t *testing.T, c *cluster.Cluster, namespace string, after time.Time) []string {
	t.Helper()
	var all []string
	for _, o := range list(t, c, schema.GroupVersionKind{Version: "v1", Kind: "Event"}, namespace) {
		e := &corev1.Event{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, e); err != nil {
			t.Fatal(err)
		}
		last := e.LastTimestamp.Time
		if last.Before(e.EventTime.Time) {
			last = e.EventTime.Time
		}
		if e.Series != nil && last.Before(e.Series.LastObservedTime.Time) {
			last = e.Series.LastObservedTime.Time
		}
		if e.Type == corev1.EventTypeWarning && last.After(after) {
			all = append(all, fmt.Sprintf("%s %s: %s: %s", e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Reason, e.Message))
		}
	}
	return all
}

// TestHundredReplicas proves that with the settings which docs/operations.md
// recommends, the circuit breaker of Crossplane stays closed while a hundred replicas
// come up at once. Once open, it would stay so for minutes. Of two hundred replicas, the service
// names the pod that crashes.
func TestHundredReplicas(t *testing.T) {
	t.Parallel()
	c := shared(t)
	ns := namespace(t, c)
	worker := engine("worker", "worker", 100, 1)
	chat := inference(ns, "chat", worker)
	apply(t, c, chat)
	until(t, c, "a hundred replicas are ready", func(ctx context.Context) (bool, error) {
		s, err := c.Get(ctx, chat)
		if err != nil {
			return false, err
		}
		if status, reason, message := condition(s, "Responsive"); status == "False" {
			t.Fatalf("the circuit breaker opened: %s: %s", reason, message)
		}
		return conditions(s, "Ready", "WorkloadsReady", "Responsive") == nil, conditions(s, "Ready", "WorkloadsReady", "Responsive")
	})
	s := settled(t, c, chat)
	if diff := cmp.Diff(map[string]string{"worker": "Running 100/100 100/100"}, components(s)); diff != "" {
		t.Errorf("its components: -want, +got:\n%s", diff)
	}
	if err := conditions(s, "Responsive"); err != nil {
		t.Error(err)
	}

	worker["replicas"] = int64(200)
	apply(t, c, chat)
	settled(t, c, chat)
	pod := types.NamespacedName{Namespace: ns, Name: "chat-worker-150-0"}
	set(t, c, pod, cluster.Waiting("CrashLoopBackOff"), 0, false)
	says(t, c, chat, map[string]string{"worker": "Failed 199/200 199/200"}, "False", "Failed", "pod chat-worker-150-0: container engine: CrashLoopBackOff")
	set(t, c, pod, cluster.Running(), 0, true)
	says(t, c, chat, map[string]string{"worker": "Running 200/200 200/200"})
	settled(t, c, chat)
}

// TestStatusIsObserved proves that pods are counted, not replicas multiplied: of one
// replica on four nodes, one pod that is not ready leaves three.
func TestStatusIsObserved(t *testing.T) {
	t.Parallel()
	c := shared(t)
	ns := namespace(t, c)
	chat := inference(ns, "chat", engine("worker", "worker", 1, 4))
	apply(t, c, chat)
	settled(t, c, chat)
	says(t, c, chat, map[string]string{"worker": "Running 1/1 4/4"})
	pod := types.NamespacedName{Namespace: ns, Name: "chat-worker-0-0-2"}

	const of = "pod chat-worker-0-0-2: container engine: "
	for name, is := range map[string]struct {
		state                  corev1.ContainerState
		phase, reason, message string
	}{
		"NotReady":         {cluster.Running(), "Deploying", "NotReady", "LeaderWorkerSet chat-worker-0: 3 of 4 pods are ready"},
		"OutOfMemory":      {cluster.Ended("OOMKilled", 137), "Failed", "Failed", of + "OOMKilled (exit code 137)"},
		"CrashLoopBackOff": {cluster.Waiting("CrashLoopBackOff"), "Failed", "Failed", of + "CrashLoopBackOff"},
		"NoImage":          {cluster.Waiting("ImagePullBackOff"), "Failed", "Failed", of + "ImagePullBackOff"},
	} {
		t.Run(name, func(t *testing.T) {
			set(t, c, pod, is.state, 0, false)
			says(t, c, chat, map[string]string{"worker": is.phase + " 0/1 3/4"}, "False", is.reason, is.message)
			set(t, c, pod, cluster.Running(), 0, true)
			says(t, c, chat, map[string]string{"worker": "Running 1/1 4/4"})
			settled(t, c, chat)
		})
	}
}

func set(t *testing.T, c *cluster.Cluster, pod types.NamespacedName, is corev1.ContainerState, restarts int32, ready bool) {
	t.Helper()
	if err := c.SetPod(t.Context(), pod, is, restarts, ready); err != nil {
		t.Fatalf("cannot say of pod %s how it is: %v", pod, err)
	}
}

// TestPodKilled proves the same of a pod that is gone: of four replicas on one node
// each three are left, until there are nodes for the fourth again.
func TestPodKilled(t *testing.T) {
	t.Parallel()
	c := shared(t)
	ns := namespace(t, c)
	const node = "node-0"
	worker := engine("worker", "worker", 4, 1)
	// They want one node, and no GPU of it, for others are there as well.
	podSpec(worker)["nodeSelector"] = map[string]any{corev1.LabelHostname: node}
	delete(podSpec(worker)["containers"].([]any)[0].(map[string]any), "resources")
	chat := inference(ns, "chat", worker)
	apply(t, c, chat)
	settled(t, c, chat)
	before := identities(t, c, "Pod", chat)

	cordon := func(ctx context.Context, away bool) {
		if err := c.Cordon(ctx, node, away); err != nil {
			t.Fatalf("cannot cordon %s: %v", node, err)
		}
	}
	t.Cleanup(func() { cordon(context.WithoutCancel(t.Context()), false) })
	cordon(t.Context(), true)
	if err := c.Delete(t.Context(), object(podKind, ns, "chat-worker-2-0")); err != nil {
		t.Fatal(err)
	}
	says(t, c, chat, map[string]string{"worker": "Deploying 3/4 3/4"}, "False", "NotReady", "LeaderWorkerSet chat-worker-2: 0 of 1 pods are ready, 1 cannot be scheduled")
	cordon(t.Context(), false)
	says(t, c, chat, map[string]string{"worker": "Running 4/4 4/4"})
	settled(t, c, chat)
	after := identities(t, c, "Pod", chat)
	if before["chat-worker-2-0"] == after["chat-worker-2-0"] {
		t.Error("the pod that was killed is still there")
	}
	delete(before, "chat-worker-2-0")
	same(t, "a pod of another replica is killed", before, after)
}

// TestGroupRestarts proves that a container which is started again takes its own
// replica with it, all of it, and no other: the rest of the service goes on.
func TestGroupRestarts(t *testing.T) {
	t.Parallel()
	c := shared(t)
	ns := namespace(t, c)
	chat := inference(ns, "chat", engine("prefill", "prefiller", 1, 2), engine("decode", "decoder", 2, 2))
	apply(t, c, chat)
	settled(t, c, chat)
	before, workloads := identities(t, c, "Pod", chat), identities(t, c, "LeaderWorkerSet", chat)

	set(t, c, types.NamespacedName{Namespace: ns, Name: "chat-decode-1-0-1"}, cluster.Waiting("CrashLoopBackOff"), 1, false)
	until(t, c, "the replica is made anew", func(context.Context) (bool, error) {
		now := identities(t, c, "Pod", chat)
		for _, p := range []string{"chat-decode-1-0", "chat-decode-1-0-1"} {
			if now[p] == "" || now[p] == before[p] {
				return false, fmt.Errorf("pod %s was %q and is %q", p, before[p], now[p])
			}
		}
		return true, nil
	})
	says(t, c, chat, map[string]string{"prefill": "Running 1/1 2/2", "decode": "Running 2/2 4/4"})
	settled(t, c, chat)
	now := identities(t, c, "Pod", chat)
	same(t, "a replica restarts", only(before, "chat-prefill", "chat-decode-0"), now)
	same(t, "a replica restarts", workloads, identities(t, c, "LeaderWorkerSet", chat))
}

// TestScaleRole proves that scaling a role from 2 to 5 to 1 touches neither the
// LeaderWorkerSets that stay nor their pods, and that the PodGroup counts new
// replicas before they have a pod.
func TestScaleRole(t *testing.T) {
	t.Parallel()
	c := shared(t)
	ns := namespace(t, c)
	decode := engine("decode", "decoder", 2, 2)
	chat := inference(ns, "chat", engine("prefill", "prefiller", 1, 2), decode)
	apply(t, c, chat)
	settled(t, c, chat)
	workloads, running := identities(t, c, "LeaderWorkerSet", chat), identities(t, c, "Pod", chat)
	if len(workloads) != 3 || len(running) != 6 {
		t.Fatalf("there are %d LeaderWorkerSets and %d pods, want 3 and 6", len(workloads), len(running))
	}
	counts(t, c, ns, 6)

	groups, made, pods := record(t, c, podGroupKind, ns), record(t, c, lwsKind, ns), record(t, c, podKind, ns)
	decode["replicas"] = int64(5)
	apply(t, c, chat)
	settled(t, c, chat)
	says(t, c, chat, map[string]string{"prefill": "Running 1/1 2/2", "decode": "Running 5/5 10/10"})
	same(t, "2 to 5 replicas", workloads, identities(t, c, "LeaderWorkerSet", chat))
	same(t, "2 to 5 replicas", running, identities(t, c, "Pod", chat))
	counts(t, c, ns, 12)
	for _, task := range []string{"decode-2", "decode-3", "decode-4"} {
		counted := groups.first(t, func(_ watch.EventType, o *unstructured.Unstructured) bool {
			n, _, _ := unstructured.NestedInt64(o.Object, "spec", "minTaskMember", task)
			return n == 2
		})
		added := func(prefix string) func(watch.EventType, *unstructured.Unstructured) bool {
			return func(e watch.EventType, o *unstructured.Unstructured) bool {
				return e == watch.Added && strings.HasPrefix(o.GetName(), prefix)
			}
		}
		// A LeaderWorkerSet without a pod may win by luck, so it has to come later, too.
		workload, pod := made.first(t, added("chat-"+task)), pods.first(t, added("chat-"+task+"-"))
		if counted == 0 || workload <= counted || pod <= counted {
			t.Errorf("the PodGroup counts %s at revision %d, its LeaderWorkerSet comes at %d and its first pod at %d: want the PodGroup first",
				task, counted, workload, pod)
		}
	}

	decode["replicas"] = int64(1)
	apply(t, c, chat)
	settled(t, c, chat)
	for _, i := range []string{"1", "2", "3", "4"} {
		vanished(t, c, object(lwsKind, ns, "chat-decode-"+i), object(podKind, ns, "chat-decode-"+i+"-0"), object(podKind, ns, "chat-decode-"+i+"-0-1"))
	}
	says(t, c, chat, map[string]string{"prefill": "Running 1/1 2/2", "decode": "Running 1/1 2/2"})
	if diff := cmp.Diff(only(workloads, "chat-prefill-0", "chat-decode-0"), identities(t, c, "LeaderWorkerSet", chat)); diff != "" {
		t.Errorf("5 to 1 replicas changes LeaderWorkerSets: -before, +now:\n%s", diff)
	}
	if diff := cmp.Diff(only(running, "chat-prefill-0", "chat-decode-0"), identities(t, c, "Pod", chat)); diff != "" {
		t.Errorf("5 to 1 replicas changes pods: -before, +now:\n%s", diff)
	}
	counts(t, c, ns, 4)
	settled(t, c, chat)
}

// counts checks how many pods the PodGroup of the service chat requires.
func counts(t *testing.T, c *cluster.Cluster, namespace string, want int64) {
	t.Helper()
	g, err := c.Get(t.Context(), object(podGroupKind, namespace, "chat"))
	if err != nil {
		t.Fatal(err)
	}
	got, _, _ := unstructured.NestedInt64(g.Object, "spec", "minMember")
	tasks, _, _ := unstructured.NestedMap(g.Object, "spec", "minTaskMember")
	if got != want {
		t.Errorf("the PodGroup's minMember is %d with tasks %v, want %d", got, tasks, want)
	}
}

// TestScaleGroups proves that kubectl scale adds and removes whole groups with gangs of
// their own, and leaves the other groups alone.
func TestScaleGroups(t *testing.T) {
	t.Parallel()
	c := shared(t)
	ns := namespace(t, c)
	chat := inference(ns, "chat", engine("prefill", "prefiller", 1, 1), engine("decode", "decoder", 2, 1))
	chat.Object["spec"].(map[string]any)["replicas"] = int64(1)
	apply(t, c, chat)
	settled(t, c, chat)
	workloads, running := identities(t, c, "LeaderWorkerSet", chat), identities(t, c, "Pod", chat)
	if len(workloads) != 3 || len(running) != 3 {
		t.Fatalf("a group has %d LeaderWorkerSets and %d pods, want 3 and 3", len(workloads), len(running))
	}

	kubectl(t, c, "scale", "inferenceservices.fusioninfer.io", "chat", "--namespace="+ns, "--replicas=3")
	settled(t, c, chat)
	says(t, c, chat, map[string]string{"prefill": "Running 3/3 3/3", "decode": "Running 6/6 6/6"})
	same(t, "1 to 3 groups", workloads, identities(t, c, "LeaderWorkerSet", chat))
	same(t, "1 to 3 groups", running, identities(t, c, "Pod", chat))
	var names []string
	for _, g := range list(t, c, podGroupKind, ns) {
		names = append(names, g.GetName())
	}
	if diff := cmp.Diff([]string{"chat-0", "chat-1", "chat-2"}, names); diff != "" {
		t.Errorf("the PodGroups: -want, +got:\n%s", diff)
	}
	if got := scaled(t, c, ns); got != "3 of 3" {
		t.Errorf("the scale subresource says %s, want 3 of 3", got)
	}
	// What an autoscaler counts as replicas: one pod of each group.
	selector := kubectl(t, c, "get", "inferenceservices.fusioninfer.io", "chat", "--namespace="+ns, "--output=jsonpath={.status.selector}")
	pods := strings.Fields(kubectl(t, c, "get", "pods", "--namespace="+ns, "--output=name", "--selector="+selector))
	if diff := cmp.Diff([]string{"pod/chat-0-prefill-0-0", "pod/chat-1-prefill-0-0", "pod/chat-2-prefill-0-0"}, pods); diff != "" {
		t.Errorf("the pods that the selector %s of the scale subresource finds: -want, +got:\n%s", selector, diff)
	}

	kubectl(t, c, "scale", "inferenceservices.fusioninfer.io", "chat", "--namespace="+ns, "--replicas=1")
	settled(t, c, chat)
	for _, g := range []string{"1", "2"} {
		vanished(t, c, object(podGroupKind, ns, "chat-"+g))
		for _, r := range []string{"prefill-0", "decode-0", "decode-1"} {
			vanished(t, c, object(lwsKind, ns, "chat-"+g+"-"+r), object(podKind, ns, "chat-"+g+"-"+r+"-0"))
		}
	}
	if diff := cmp.Diff(workloads, identities(t, c, "LeaderWorkerSet", chat)); diff != "" {
		t.Errorf("3 to 1 groups changes LeaderWorkerSets: -before, +now:\n%s", diff)
	}
	if diff := cmp.Diff(running, identities(t, c, "Pod", chat)); diff != "" {
		t.Errorf("3 to 1 groups changes pods: -before, +now:\n%s", diff)
	}
	if got := scaled(t, c, ns); got != "1 of 1" {
		t.Errorf("the scale subresource says %s, want 1 of 1", got)
	}
}

// scaled is what the scale subresource says of the service chat.
func scaled(t *testing.T, c *cluster.Cluster, namespace string) string {
	t.Helper()
	return kubectl(t, c, "get", "inferenceservices.fusioninfer.io", "chat", "--namespace="+namespace, "--subresource=scale",
		"--output=jsonpath={.status.replicas} of {.spec.replicas}")
}

// TestRemoval proves that what is taken out of a service goes, and nothing else: a
// role, the router, the gang, and then the service itself, beside a neighbour in the
// same namespace.
func TestRemoval(t *testing.T) {
	t.Parallel()
	c := shared(t)
	ns := namespace(t, c)
	neighbour := inference(ns, "chat-b", picker("b.example.com"), engine("a", "worker", 1, 2))
	apply(t, c, neighbour)
	settled(t, c, neighbour)
	alone := inventory(t, c, ns)
	theirs := each(parts(t, c, neighbour), identity)
	theirPods := identities(t, c, "Pod", neighbour)

	router, a, b := picker("chat.example.com"), engine("a", "worker", 2, 2), engine("b", "worker", 1, 1)
	chat := inference(ns, "chat", router, a, b)
	apply(t, c, chat)
	settled(t, c, chat)
	before, pods := each(parts(t, c, chat), identity), mine(t, c, chat)

	// unchanged checks everything of the service but what may change.
	unchanged := func(when string, but ...string) {
		t.Helper()
		want := map[string]string{}
		for name, is := range before {
			if !slices.Contains(but, name) {
				want[name] = is
			}
		}
		if diff := cmp.Diff(want, each(parts(t, c, chat), identity)); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", when, diff)
		}
		same(t, when, only(pods, "chat-a-"), mine(t, c, chat))
	}

	setRoles(chat, router, a)
	apply(t, c, chat)
	s := settled(t, c, chat)
	vanished(t, c, object(lwsKind, ns, "chat-b-0"), object(podKind, ns, "chat-b-0-0"))
	if diff := cmp.Diff(map[string]string{"a": "Running 2/2 4/4"}, components(s)); diff != "" {
		t.Errorf("the role is removed, its components: -want, +got:\n%s", diff)
	}
	counts(t, c, ns, 4)
	group := "PodGroup chat"
	before[group] = identity(part(t, c, chat, group))
	unchanged("a role is removed", "LeaderWorkerSet chat-b-0")

	setRoles(chat, a)
	var routing []*unstructured.Unstructured
	var names []string
	for _, o := range parts(t, c, chat) {
		if !slices.Contains([]string{"LeaderWorkerSet", "PodGroup", "PodDisruptionBudget"}, o.GetKind()) {
			routing = append(routing, o)
			names = append(names, title(o))
		}
	}
	for _, kind := range []string{"Deployment", "InferencePool", "HTTPRoute", "Gateway", "ConfigMap", "Role", "RoleBinding", "ServiceAccount", "Service"} {
		if !slices.ContainsFunc(routing, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind }) {
			t.Errorf("the router has no %s, but %q", kind, names)
		}
	}
	apply(t, c, chat)
	settled(t, c, chat)
	vanished(t, c, routing...)
	for _, o := range parts(t, c, chat) {
		if before[title(o)] == "" {
			// Without a router the engines are behind a Service.
			if o.GetKind() != "Service" {
				t.Errorf("the router is removed, and there is a new %s", title(o))
			}
			before[title(o)] = identity(o)
		}
	}
	unchanged("the router is removed", append(names, "LeaderWorkerSet chat-b-0")...)

	chat.Object["spec"].(map[string]any)["schedulingStrategy"] = map[string]any{"gang": map[string]any{"mode": "None"}}
	apply(t, c, chat)
	s = settled(t, c, chat)
	vanished(t, c, object(podGroupKind, ns, "chat"))
	if _, reason, _ := condition(s, "GangScheduled"); reason != "NoGang" {
		t.Errorf("the gang is removed, and GangScheduled says %s, want NoGang", reason)
	}
	for name := range mine(t, c, chat) {
		p, err := c.Get(t.Context(), object(podKind, ns, name))
		if err != nil {
			t.Fatal(err)
		}
		if by, _, _ := unstructured.NestedString(p.Object, "spec", "schedulerName"); by != corev1.DefaultSchedulerName {
			t.Errorf("the gang is removed, and pod %s is scheduled by %s", name, by)
		}
	}

	kubectl(t, c, "delete", "inferenceservices.fusioninfer.io", "chat", "--namespace="+ns)
	until(t, c, "nothing of the service is left, and everything of its neighbour", func(context.Context) (bool, error) {
		now := inventory(t, c, ns)
		if left, lost := now.Difference(alone), alone.Difference(now); left.Len()+lost.Len() > 0 {
			return false, fmt.Errorf("left: %q, gone as well: %q", left.UnsortedList(), lost.UnsortedList())
		}
		return true, nil
	})
	if diff := cmp.Diff(theirs, each(parts(t, c, neighbour), identity)); diff != "" {
		t.Errorf("the neighbour: -before, +now:\n%s", diff)
	}
	if diff := cmp.Diff(theirPods, identities(t, c, "Pod", neighbour)); diff != "" {
		t.Errorf("the neighbour's pods: -before, +now:\n%s", diff)
	}
	settled(t, c, neighbour)
}

// part is one of the objects that a service is composed of, by its title.
func part(t *testing.T, c *cluster.Cluster, of *unstructured.Unstructured, name string) *unstructured.Unstructured {
	t.Helper()
	all := parts(t, c, of)
	i := slices.IndexFunc(all, func(o *unstructured.Unstructured) bool { return title(o) == name })
	if i < 0 {
		t.Fatalf("%s has no %s", of.GetName(), name)
	}
	return all[i]
}

// mine are the identities of a service's own pods.
func mine(t *testing.T, c *cluster.Cluster, of *unstructured.Unstructured) map[string]string {
	t.Helper()
	m := map[string]string{}
	for _, p := range list(t, c, podKind, of.GetNamespace()) {
		if p.GetLabels()["fusioninfer.io/service"] == of.GetName() {
			m[p.GetName()] = identity(&p)
		}
	}
	return m
}

// TestEdits proves what edits of a live service do: an image restarts its role; a
// spec that is refused changes nothing and says why; the next good one heals; and
// another endpointPickerConfig restarts the endpoint picker alone.
func TestEdits(t *testing.T) {
	t.Parallel()
	c := shared(t)
	ns := namespace(t, c)
	router, a, b := picker("chat.example.com"), engine("a", "worker", 2, 1), engine("b", "worker", 1, 1)
	chat := inference(ns, "chat", router, a, b)
	apply(t, c, chat)
	settled(t, c, chat)
	before, pods := each(parts(t, c, chat), identity), identities(t, c, "Pod", chat)

	// An image.
	podSpec(a)["containers"].([]any)[0].(map[string]any)["image"] = nextImage
	apply(t, c, chat)
	settled(t, c, chat)
	now, nowPods := each(parts(t, c, chat), identity), identities(t, c, "Pod", chat)
	for _, i := range []string{"0", "1"} {
		was, is := before["LeaderWorkerSet chat-a-"+i], now["LeaderWorkerSet chat-a-"+i]
		if uid, _, _ := strings.Cut(was, " "); was == is || !strings.HasPrefix(is, uid+" ") {
			t.Errorf("another image: LeaderWorkerSet chat-a-%s was %s and is %s, want another generation of the same", i, was, is)
		}
		p, err := c.Get(t.Context(), object(podKind, ns, "chat-a-"+i+"-0"))
		if err != nil {
			t.Fatal(err)
		}
		containers, _, _ := unstructured.NestedSlice(p.Object, "spec", "containers")
		if got := containers[0].(map[string]any)["image"]; got != nextImage {
			t.Errorf("pod %s has image %v, want %s, though the service is ready", p.GetName(), got, nextImage)
		}
		delete(before, "LeaderWorkerSet chat-a-"+i)
	}
	same(t, "another image of another role", before, now)
	same(t, "another image of another role", only(pods, "chat-b-", "chat-epp-"), nowPods)

	// A spec that the API server takes and the function refuses.
	before, pods = now, nowPods
	router["endpointPickerConfig"] = "plugins: [unclosed"
	a["replicas"] = int64(3)
	apply(t, c, chat)
	refused(t, c, chat, "spec.roles[0].endpointPickerConfig")
	if diff := cmp.Diff(before, each(parts(t, c, chat), identity)); diff != "" {
		t.Errorf("a refused spec changes: -before, +now:\n%s", diff)
	}
	if diff := cmp.Diff(pods, identities(t, c, "Pod", chat)); diff != "" {
		t.Errorf("a refused spec changes pods: -before, +now:\n%s", diff)
	}

	// The next one is good: it heals, and the endpoint picker reads it.
	router["endpointPickerConfig"] = `apiVersion: inference.networking.x-k8s.io/v1alpha1
kind: EndpointPickerConfig
plugins:
- type: queue-scorer
- type: max-score-picker
- type: single-profile-handler
schedulingProfiles:
- name: default
  plugins:
  - {pluginRef: queue-scorer, weight: 7}
  - {pluginRef: max-score-picker}
`
	delete(router, "strategy") // It would have no effect.
	a["replicas"] = int64(2)
	apply(t, c, chat)
	settled(t, c, chat)
	now, nowPods = each(parts(t, c, chat), identity), identities(t, c, "Pod", chat)
	config := part(t, c, chat, "ConfigMap chat-epp-config")
	if data := fmt.Sprint(config.Object["data"]); !strings.Contains(data, "weight: 7") {
		t.Errorf("the endpoint picker's ConfigMap has %s, want what the service says", data)
	}
	if now["Deployment chat-epp"] == before["Deployment chat-epp"] {
		t.Error("another endpointPickerConfig, and the endpoint picker's Deployment is as before")
	}
	restarted := false
	for name := range only(nowPods, "chat-epp-") {
		restarted = restarted || pods[name] == ""
	}
	if !restarted {
		t.Errorf("another endpointPickerConfig, and the endpoint picker's pods are %v as before", only(nowPods, "chat-epp-"))
	}
	delete(before, "Deployment chat-epp")
	delete(before, "ConfigMap chat-epp-config")
	same(t, "another endpointPickerConfig", before, now)
	same(t, "another endpointPickerConfig", only(pods, "chat-a-", "chat-b-"), nowPods)
}

// TestDrift proves that each object which is deleted by hand comes back, and that each
// which is edited by hand is what it was again.
func TestDrift(t *testing.T) {
	t.Parallel()
	c := shared(t)
	ns := namespace(t, c)
	chat := inference(ns, "chat", picker("chat.example.com"), engine("a", "worker", 1, 2))
	apply(t, c, chat)
	settled(t, c, chat)

	for kind, by := range map[string]struct {
		hand string
		at   []string
	}{
		"LeaderWorkerSet": {`{"spec":{"replicas":2}}`, []string{"spec", "replicas"}},
		"PodGroup":        {`{"spec":{"minMember":1}}`, []string{"spec", "minMember"}},
		"Deployment":      {`{"spec":{"replicas":3}}`, []string{"spec", "replicas"}},
		"ConfigMap":       {`{"data":{"config.yaml":"nothing"}}`, []string{"data"}},
		"Service":         {`{"spec":{"selector":{"fusioninfer.io/service":"another"}}}`, []string{"spec", "selector"}},
		"Role":            {`{"rules":[]}`, []string{"rules"}},
		"RoleBinding":     {`{"subjects":[]}`, []string{"subjects"}},
		"InferencePool":   {`{"spec":{"selector":{"matchLabels":{"fusioninfer.io/service":"another"}}}}`, []string{"spec", "selector"}},
		"HTTPRoute":       {`{"spec":{"hostnames":["another.example.com"]}}`, []string{"spec", "hostnames"}},
		"Gateway":         {`{"spec":{"gatewayClassName":"another"}}`, []string{"spec", "gatewayClassName"}},
	} {
		all := parts(t, c, chat)
		i := slices.IndexFunc(all, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind })
		if i < 0 {
			t.Errorf("the service has no %s to edit", kind)
			continue
		}
		want, _, _ := unstructured.NestedFieldCopy(all[i].Object, by.at...)
		r, err := c.Resource(all[i])
		if err != nil {
			t.Fatal(err)
		}
		edited, err := r.Patch(t.Context(), all[i].GetName(), types.MergePatchType, []byte(by.hand), metav1.PatchOptions{FieldManager: "somebody"})
		if err != nil {
			t.Errorf("cannot edit %s: %v", title(all[i]), err)
			continue
		}
		if got, _, _ := unstructured.NestedFieldCopy(edited.Object, by.at...); cmp.Equal(want, got) {
			t.Errorf("the edit %s does not change %s", by.hand, title(all[i]))
		}
		until(t, c, title(all[i])+" is what it was before it was edited", func(ctx context.Context) (bool, error) {
			o, err := c.Get(ctx, all[i])
			if err != nil {
				return false, err
			}
			got, _, _ := unstructured.NestedFieldCopy(o.Object, by.at...)
			if diff := cmp.Diff(want, got); diff != "" {
				return false, fmt.Errorf("%s: -want, +got:\n%s", strings.Join(by.at, "."), diff)
			}
			return true, nil
		})
	}
	settled(t, c, chat)

	for _, o := range parts(t, c, chat) {
		if err := c.Delete(t.Context(), o); err != nil {
			t.Errorf("cannot delete %s: %v", title(o), err)
			continue
		}
		until(t, c, title(o)+" comes back", func(ctx context.Context) (bool, error) {
			now, err := c.Get(ctx, o)
			if apierrors.IsNotFound(err) || err != nil {
				return false, err
			}
			if now.GetUID() == o.GetUID() {
				return false, errors.New("it is still there")
			}
			return true, nil
		})
	}
	settled(t, c, chat)
	says(t, c, chat, map[string]string{"a": "Running 1/1 2/2"})
}
