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
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
)

// testGroupRestart covers the recovery policy InferGroupRestart: when decode of a group fails, prefill of that group
// is made anew once, and no other group is. With a grace period it stays, because decode serves again in time.
func testGroupRestart(t *testing.T, c *cluster.Cluster) {
	ns := namespace(t, c)
	prefill, decode := briefly(engine("prefill", "prefiller", 1, 1), 0), briefly(engine("decode", "decoder", 1, 1), 0)
	prefill["recoveryPolicy"], decode["recoveryPolicy"] = "InferGroupRestart", "InferGroupRestart"
	router := picker("recovery.example.com")
	router["strategy"] = "pd-disaggregation"
	chat := inference(ns, "chat", prefill, decode, router)
	chat.Object["spec"].(map[string]any)["replicas"] = int64(2)
	apply(t, c, chat)
	settled(t, c, chat)
	fails := func(pod string, anew ...string) {
		t.Helper()
		notesLeaders(t, c, chat)
		before := engineUIDs(t, c, chat)
		if err := c.Delete(t.Context(), object(podKind, ns, pod)); err != nil {
			t.Fatal(err)
		}
		until(t, c, fmt.Sprintf("%v are made anew", anew), func(context.Context) (bool, error) {
			got := madeAnew(before, engineUIDs(t, c, chat))
			return slices.Equal(got, anew), fmt.Errorf("%v are", got)
		})
		settled(t, c, chat)
		// Nothing more happens once the leader that is there now is noted.
		notesLeaders(t, c, chat)
		settled(t, c, chat)
		if diff := cmp.Diff(anew, madeAnew(before, engineUIDs(t, c, chat))); diff != "" {
			t.Errorf("made anew: -want, +got:\n%s", diff)
		}
	}
	fails("chat-1-decode-0-0", "chat-1-decode-0-0", "chat-1-prefill-0-0")
	before := engineUIDs(t, c, chat)
	prefill["restartGracePeriodSeconds"], decode["restartGracePeriodSeconds"] = int64(120), int64(120)
	apply(t, c, chat)
	settled(t, c, chat)
	if diff := cmp.Diff(before, engineUIDs(t, c, chat)); diff != "" {
		t.Errorf("a grace period changes pods: -before, +after:\n%s", diff)
	}
	fails("chat-0-decode-0-0", "chat-0-decode-0-0")
}

// notesLeaders waits until each replica of a service notes the UID of its leader pod, which has served.
func notesLeaders(t *testing.T, c *cluster.Cluster, s *unstructured.Unstructured) {
	t.Helper()
	until(t, c, "all replicas note their leaders", func(context.Context) (bool, error) {
		uids := engineUIDs(t, c, s)
		for _, o := range list(t, c, lwsKind, s.GetNamespace()) {
			if got, want := o.GetAnnotations()["fusioninfer.io/leader-pod"], "/"+uids[o.GetName()+"-0"]; !strings.HasSuffix(got, want) {
				return false, fmt.Errorf("%s notes %q, want one that ends with %q", o.GetName(), got, want)
			}
		}
		return true, nil
	})
}

// madeAnew are the pods that are other ones than before.
func madeAnew(before, now map[string]string) []string {
	var all []string
	for name, uid := range now {
		if uid != before[name] {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// testPodRestart covers the recovery policy None: a worker pod that fails is made anew alone.
func testPodRestart(t *testing.T, c *cluster.Cluster) {
	ns := namespace(t, c)
	worker := briefly(engine("worker", "worker", 1, 2), 0)
	worker["recoveryPolicy"] = "None"
	chat := inference(ns, "chat", worker)
	apply(t, c, chat)
	settled(t, c, chat)

	const failed = "chat-worker-0-0-1"
	before := engineUIDs(t, c, chat)
	restarts(t, c, chat, failed)
	settled(t, c, chat)
	if diff := cmp.Diff([]string{failed}, madeAnew(before, engineUIDs(t, c, chat))); diff != "" {
		t.Errorf("made anew: -want, +got:\n%s", diff)
	}
	leader := leaderOf(t, c, chat)
	if by, _ := answerOf(t, leader, 8000, nil); by != leader.Name {
		t.Errorf("answered by %q, want %s", by, leader.Name)
	}
}

// testRestartAfterStart covers the recovery policy RoleRestartAfterStart: while the image of a worker is pulled, a
// leader that gives up on it restarts alone. The replica is made anew once after that.
func testRestartAfterStart(t *testing.T, c *cluster.Cluster) {
	ns := namespace(t, c)
	worker := briefly(engine("worker", "worker", 1, 2), 0)
	worker["recoveryPolicy"] = "RoleRestartAfterStart"
	// The leader gives up once at least while the image is pulled, which takes 20 seconds. Later it has to wait for a worker that starts
	// on a busy machine.
	setEnv(worker, "STANDIN_JOIN_SECONDS", "8")
	worker["leaderTemplate"] = runtime.DeepCopyJSON(worker["template"].(map[string]any))
	setImage(worker, "vllm/vllm-openai-large:v0.11.0")
	chat := inference(ns, "chat", worker)
	pods := record(t, c, podKind, ns)
	apply(t, c, chat)
	settled(t, c, chat)

	all := map[string]sets.Set[string]{}
	gaveUp, pending := int32(0), true
	for _, o := range pods.objects(t) {
		p := &corev1.Pod{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, p); err != nil {
			t.Fatal(err)
		}
		if all[p.Name] == nil {
			all[p.Name] = sets.New[string]()
		}
		all[p.Name].Insert(string(p.UID))
		switch {
		case !pending:
		case p.Name == "chat-worker-0-0-1" && p.Status.Phase == corev1.PodRunning:
			pending = false
		case all[p.Name].Len() > 1:
			t.Errorf("pod %s is made anew while the image of the worker is pulled", p.Name)
		case p.Name == "chat-worker-0-0" && len(p.Status.ContainerStatuses) > 0:
			gaveUp = max(gaveUp, p.Status.ContainerStatuses[0].RestartCount)
		}
	}
	if gaveUp == 0 {
		t.Error("the leader does not restart while the image of its worker is pulled")
	}
	for name, uids := range all {
		if uids.Len() > 2 {
			t.Errorf("pod %s is made anew %d times, want once", name, uids.Len()-1)
		}
	}
}
