package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
)

const nextImage = "vllm/vllm-openai:v0.12.0"

// TestRollout proves that a change of the image replaces one replica after the other, and that a
// template whose pods never start reaches one replica only. A pod that is killed meanwhile comes
// back with the former template. Put back, the former template restarts nothing else.
func TestRollout(t *testing.T) {
	t.Parallel()
	c := shared(t)
	ns := namespace(t, c)
	worker := smallEngine("worker", "worker", 4)
	chat := inference(ns, "chat", worker)
	apply(t, c, chat)
	settled(t, c, chat)

	before := identities(t, c, "Pod", chat)
	pods := record(t, c, podKind, ns)
	setImage(worker, nextImage)
	apply(t, c, chat)
	settled(t, c, chat)
	if n := fewestReady(t, pods, before, everyPod); n < 3 {
		t.Errorf("another image: %d of 4 replicas were ready at one time, want 3 at least", n)
	}
	haveImage(t, c, chat, 4, nextImage)
	updated(t, c, chat, "4/4")

	before = identities(t, c, "Pod", chat)
	pods = record(t, c, podKind, ns)
	podSpec(worker)["nodeSelector"] = map[string]any{corev1.LabelHostname: "nowhere"}
	apply(t, c, chat)
	stopped := func() {
		t.Helper()
		until(t, c, "the rollout stops at one replica", lasting(func(ctx context.Context) (bool, error) {
			s, err := c.Get(ctx, chat)
			if err != nil {
				return false, err
			}
			if err := observed(s); err != nil {
				return false, err
			}
			status, _, message := condition(s, "RolledOut")
			return status == "False" && strings.HasPrefix(message, "1 of 4 replicas are updated"), fmt.Errorf("RolledOut is %s: %s", status, message)
		}))
	}
	stopped()
	if n := fewestReady(t, pods, before, everyPod); n != 3 {
		t.Errorf("a template that does not start: %d of 4 replicas were ready at one time, want 3", n)
	}
	same(t, "a template that does not start", only(before, "chat-worker-0", "chat-worker-1", "chat-worker-2"), identities(t, c, "Pod", chat))

	if err := c.Delete(t.Context(), object(podKind, ns, "chat-worker-1-0")); err != nil {
		t.Fatal(err)
	}
	until(t, c, "the pod that was killed is back", func(context.Context) (bool, error) {
		now := identities(t, c, "Pod", chat)["chat-worker-1-0"]
		return now != "" && now != before["chat-worker-1-0"], fmt.Errorf("it is %q", now)
	})
	says(t, c, chat, map[string]string{"worker": "Deploying 3/4 3/4"}, "False", "Updating", "LeaderWorkerSet chat-worker-3: its pods are being updated, 1 cannot be scheduled")
	stopped()

	before = identities(t, c, "Pod", chat)
	delete(podSpec(worker), "nodeSelector")
	apply(t, c, chat)
	settled(t, c, chat)
	same(t, "the former template", only(before, "chat-worker-0", "chat-worker-1", "chat-worker-2"), identities(t, c, "Pod", chat))

	before = identities(t, c, "Pod", chat)
	chat.Object["spec"].(map[string]any)["rollout"] = map[string]any{"paused": true}
	setImage(worker, "vllm/vllm-openai:v0.13.0")
	apply(t, c, chat)
	until(t, c, "the rollout is paused", lasting(func(ctx context.Context) (bool, error) {
		s, err := c.Get(ctx, chat)
		if err != nil {
			return false, err
		}
		if err := observed(s); err != nil {
			return false, err
		}
		_, reason, message := condition(s, "RolledOut")
		return reason == "Paused" && message == "0 of 4 replicas are updated", fmt.Errorf("RolledOut is %s: %s", reason, message)
	}))
	setImage(worker, nextImage)
	apply(t, c, chat)
	settled(t, c, chat)
	same(t, "a paused change that is put back", before, identities(t, c, "Pod", chat))
}

// TestRolloutOfPairs proves that prefill and decode of a group are replaced together, one group
// after the other.
func TestRolloutOfPairs(t *testing.T) {
	t.Parallel()
	c := shared(t)
	ns := namespace(t, c)
	prefill, decode := smallEngine("prefill", "prefiller", 1), smallEngine("decode", "decoder", 1)
	chat := inference(ns, "chat", prefill, decode)
	chat.Object["spec"].(map[string]any)["replicas"] = int64(2)
	apply(t, c, chat)
	settled(t, c, chat)

	before := identities(t, c, "Pod", chat)
	pods := record(t, c, podKind, ns)
	setImage(prefill, nextImage)
	setImage(decode, nextImage)
	apply(t, c, chat)
	settled(t, c, chat)
	// A group is the second part of a pod's name.
	group := func(pod string) string { return strings.Split(pod, "-")[1] }
	if n := fewestReady(t, pods, before, group); n < 1 {
		t.Error("another image: for some time no group was ready as a whole")
	}
	haveImage(t, c, chat, 4, nextImage)
}

// TestSurge proves that a single replica is replaced after a further one is ready, which is removed
// in the end.
func TestSurge(t *testing.T) {
	t.Parallel()
	c := shared(t)
	ns := namespace(t, c)
	worker := smallEngine("worker", "worker", 1)
	chat := inference(ns, "chat", worker)
	chat.Object["spec"].(map[string]any)["rollout"] = map[string]any{"maxSurge": int64(1)}
	apply(t, c, chat)
	settled(t, c, chat)

	before := identities(t, c, "Pod", chat)
	pods := record(t, c, podKind, ns)
	setImage(worker, nextImage)
	apply(t, c, chat)
	settled(t, c, chat)
	if n := fewestReady(t, pods, before, everyPod); n < 1 {
		t.Error("another image: for some time no replica was ready")
	}
	vanished(t, c, object(lwsKind, ns, "chat-worker-1"), object(podKind, ns, "chat-worker-1-0"))
	haveImage(t, c, chat, 1, nextImage)
}

// smallEngine is an engine on one node that requests no GPU.
func smallEngine(name, componentType string, replicas int64) map[string]any {
	e := engine(name, componentType, replicas, 1)
	delete(podSpec(e)["containers"].([]any)[0].(map[string]any), "resources")
	return e
}

func setImage(role map[string]any, image string) {
	podSpec(role)["containers"].([]any)[0].(map[string]any)["image"] = image
}

// haveImage checks how many pods a service has, and their image.
func haveImage(t *testing.T, c *cluster.Cluster, o *unstructured.Unstructured, n int, image string) {
	t.Helper()
	images := map[string]string{}
	for _, p := range list(t, c, podKind, o.GetNamespace()) {
		containers, _, _ := unstructured.NestedSlice(p.Object, "spec", "containers")
		for _, each := range containers {
			if engine := each.(map[string]any); engine["name"] == "engine" {
				images[p.GetName()] = fmt.Sprint(engine["image"])
			}
		}
	}
	want := map[string]string{}
	for name := range images {
		want[name] = image
	}
	if diff := cmp.Diff(want, images); diff != "" || len(images) != n {
		t.Errorf("%d pods, want %d with the image %s: -want, +got:\n%s", len(images), n, image, diff)
	}
}

// updated checks what a service says of its updated replicas.
func updated(t *testing.T, c *cluster.Cluster, o *unstructured.Unstructured, want string) {
	t.Helper()
	s, err := c.Get(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if got, _, _ := unstructured.NestedString(s.Object, "status", "rollout", "summary"); got != want {
		t.Errorf("%s replicas are updated, want %s", got, want)
	}
}

// everyPod counts each pod by itself.
func everyPod(pod string) string { return pod }

// fewestReady is the lowest number of units that were ready at one time, of a service whose pods
// were all ready before. A unit is ready while all of its pods are. unitOf has the unit of a pod.
func fewestReady(t *testing.T, r *recording, before map[string]string, unitOf func(pod string) string) int {
	t.Helper()
	ready := map[string]bool{}
	for pod := range before {
		ready[pod] = true
	}
	count := func() int {
		waits, all := map[string]bool{}, map[string]bool{}
		for pod, is := range ready {
			all[unitOf(pod)] = true
			waits[unitOf(pod)] = waits[unitOf(pod)] || !is
		}
		n := 0
		for unit := range all {
			if !waits[unit] {
				n++
			}
		}
		return n
	}
	fewest := count()
	for _, e := range r.all() {
		o, is := e.Object.(*unstructured.Unstructured)
		if !is {
			t.Fatalf("the watch ended: %v", e.Object)
		}
		p := &corev1.Pod{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, p); err != nil {
			t.Fatal(err)
		}
		ready[p.Name] = e.Type != watch.Deleted && p.DeletionTimestamp == nil && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
		fewest = min(fewest, count())
	}
	return fewest
}
