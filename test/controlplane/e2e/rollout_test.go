package e2e

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
)

// The image of each engine, and the one that a test changes it to.
const (
	engineImage = "vllm/vllm-openai:v0.12.0"
	nextImage   = "vllm/vllm-openai:v0.13.0"
)

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

	updatesTo(t, c, chat, nextImage, 3, everyPod, worker)
	haveImage(t, c, chat, 4, nextImage)
	updated(t, c, chat, "4/4")

	before := identities(t, c, "Pod", chat)
	pods := record(t, c, podKind, ns)
	podSpec(worker)["nodeSelector"] = map[string]any{corev1.LabelHostname: "nowhere"}
	apply(t, c, chat)
	const stopped = `False \w+: 1 of 4 replicas are updated.*`
	rolledOut(t, c, chat, stopped)
	// Only when there is a new pod has the former one gone.
	waits := func() {
		t.Helper()
		says(t, c, chat, map[string]string{"worker": "Deploying 3/4 3/4"}, "False", "Updating", "LeaderWorkerSet chat-worker-3: its pods are being updated, 1 cannot be scheduled")
	}
	waits()
	if n := fewestReady(t, pods, before, everyPod); n != 3 {
		t.Errorf("a template that does not start: %d of 4 replicas were ready at one time, want 3", n)
	}
	same(t, "a template that does not start", only(before, "chat-worker-0", "chat-worker-1", "chat-worker-2"), identities(t, c, "Pod", chat))

	const killed = "chat-worker-1-0"
	uid := engineUIDs(t, c, chat)[killed]
	if err := c.Delete(t.Context(), object(podKind, ns, killed)); err != nil {
		t.Fatal(err)
	}
	// It has a node then, so it is not the pod of which the service says that it cannot be scheduled.
	until(t, c, "the pod that was killed is back and ready", func(context.Context) (bool, error) {
		p := &corev1.Pod{}
		if !typed(t, c, podKind, ns, killed, p) {
			return false, errors.New("there is none")
		}
		return string(p.UID) != uid && isReady(p), fmt.Errorf("there is pod %s, of which ready is %t, and %s was killed", p.UID, isReady(p), uid)
	})
	waits()
	rolledOut(t, c, chat, stopped)

	before = identities(t, c, "Pod", chat)
	delete(podSpec(worker), "nodeSelector")
	apply(t, c, chat)
	settled(t, c, chat)
	same(t, "the former template", only(before, "chat-worker-0", "chat-worker-1", "chat-worker-2"), identities(t, c, "Pod", chat))

	before = identities(t, c, "Pod", chat)
	chat.Object["spec"].(map[string]any)["rollout"] = map[string]any{"paused": true}
	setImage(worker, "vllm/vllm-openai:v0.14.0")
	apply(t, c, chat)
	rolledOut(t, c, chat, `\w+ Paused: 0 of 4 replicas are updated, 4 are held back by spec.rollout.paused`)
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

	updatesTo(t, c, chat, nextImage, 1, group, prefill, decode)
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

	updatesTo(t, c, chat, nextImage, 1, everyPod, worker)
	vanished(t, c, object(lwsKind, ns, "chat-worker-1"), object(podKind, ns, "chat-worker-1-0"))
	haveImage(t, c, chat, 1, nextImage)
}

// smallEngine is an engine on one node that requests no GPU.
func smallEngine(name, componentType string, replicas int64) map[string]any {
	return withoutGPUs(engine(name, componentType, replicas, 1))
}

func setImage(role map[string]any, image string) {
	podSpec(role)["containers"].([]any)[0].(map[string]any)["image"] = image
}

func imageOf(role map[string]any) string {
	return podSpec(role)["containers"].([]any)[0].(map[string]any)["image"].(string)
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

// updatesTo gives roles of a service another image, and checks that so many units are ready at every
// moment until all have it. unitOf has the unit of a pod.
func updatesTo(t *testing.T, c *cluster.Cluster, s *unstructured.Unstructured, image string, least int, unitOf func(pod string) string, roles ...map[string]any) {
	t.Helper()
	before := engineUIDs(t, c, s)
	pods := record(t, c, podKind, s.GetNamespace())
	for _, r := range roles {
		if imageOf(r) == image {
			t.Fatalf("role %v has image %s already, so nothing is updated", r["name"], image)
		}
		setImage(r, image)
	}
	apply(t, c, s)
	// As docs/operations.md has it for scripts.
	edited, err := c.Get(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	until(t, c, "image "+image+" is rolled out", func(ctx context.Context) (bool, error) {
		now, err := c.Get(ctx, s)
		if err != nil {
			return false, err
		}
		done, _, _ := unstructured.NestedInt64(now.Object, "status", "rollout", "completedGeneration")
		return done >= edited.GetGeneration(), fmt.Errorf("generation %d is, and the edit made %d", done, edited.GetGeneration())
	})
	kubectl(t, c, "wait", "--for=condition=RolledOut", "--timeout=1m", "--namespace="+s.GetNamespace(), "inferenceservices.fusioninfer.io/"+s.GetName())
	settled(t, c, s)
	if n := fewestReady(t, pods, before, unitOf); n < least {
		t.Errorf("image %s: %d units were ready at one time, want %d at least", image, n, least)
	}
}

// rolledOut waits until a service says something of its rollout that matches as a whole: status, reason
// and message.
func rolledOut(t *testing.T, c *cluster.Cluster, o *unstructured.Unstructured, want string) {
	t.Helper()
	is := regexp.MustCompile("(?s)^(?:" + want + ")$")
	until(t, c, "RolledOut says "+want, lasting(func(ctx context.Context) (bool, error) {
		s, err := c.Get(ctx, o)
		if err != nil {
			return false, err
		}
		if err := observed(s); err != nil {
			return false, err
		}
		status, reason, message := condition(s, "RolledOut")
		got := fmt.Sprintf("%s %s: %s", status, reason, message)
		return is.MatchString(got), fmt.Errorf("RolledOut says %s", got)
	}))
}

// The units that a pod can count for: itself, the group that the second part of its name has, and the
// replica that the third part has.
func everyPod(pod string) string { return pod }
func group(pod string) string    { return strings.Split(pod, "-")[1] }
func replica(pod string) string  { return strings.Split(pod, "-")[2] }

// fewestReady is the lowest number of units that were ready at one time, of a service whose pods
// were all ready before. A unit is ready while all of its pods are. unitOf has the unit of a pod, or ""
// if it does not count. Endpoint pickers do not count.
func fewestReady(t *testing.T, r *recording, before map[string]string, unitOf func(pod string) string) int {
	t.Helper()
	ready := map[string]bool{}
	for pod := range before {
		ready[pod] = true
	}
	count := func() int {
		waits, all := map[string]bool{}, map[string]bool{}
		for pod, is := range ready {
			if unit := unitOf(pod); unit != "" {
				all[unit] = true
				waits[unit] = waits[unit] || !is
			}
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
		if !ofEngine(o) {
			continue
		}
		ready[o.GetName()] = e.Type != watch.Deleted && o.GetDeletionTimestamp() == nil && readyPod(o)
		fewest = min(fewest, count())
	}
	return fewest
}
