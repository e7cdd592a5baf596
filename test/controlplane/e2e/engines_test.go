package e2e

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
)

// TestEngines proves that the pods of services run processes on a control plane with engines. They
// answer requests at the addresses of their pods, and what pods and services say is true.
func TestEngines(t *testing.T) {
	c := cluster.TestUp(t, cluster.Options{Packages: *packages, Nodes: 8, GPUs: 8, Engines: true, CoreArgs: cluster.RecommendedCoreArgs})
	if err := c.Install(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	// It has the machine for itself.
	t.Run("CrashAmongMany", func(t *testing.T) { testCrashAmongMany(t, c) })
	for name, test := range map[string]func(*testing.T, *cluster.Cluster){
		"Answers":       testAnswers,
		"Launchers":     testLaunchers,
		"WaitsForNodes": testWaitsForNodes,
		"Crash":         testCrash,
		"Router":        testRouter,
		"GroupRestart":  testGroupRestart,
		"PodRestart":    testPodRestart,
		"AfterStart":    testRestartAfterStart,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, c)
		})
	}
}

// testAnswers covers start-up, answers, streams, and a pod that is deleted while it answers.
func testAnswers(t *testing.T, c *cluster.Cluster) {
	ns := namespace(t, c)
	worker := briefly(engine("worker", "worker", 2, 1), 20)
	setEnv(worker, "STANDIN_STARTUP_SECONDS", "5")
	chat := inference(ns, "chat", worker)
	apply(t, c, chat)
	settled(t, c, chat)

	all := enginePods(t, c, chat)
	if len(all) != 2 {
		t.Fatalf("%d pods, want 2", len(all))
	}
	for _, p := range all {
		started := p.Status.ContainerStatuses[0].State.Running.StartedAt
		for _, ready := range p.Status.Conditions {
			// Both are written in whole seconds.
			if took := ready.LastTransitionTime.Sub(started.Time); ready.Type == corev1.PodReady && took < 4*time.Second {
				t.Errorf("pod %s is ready %s after its start, and its model takes 5 seconds to load", p.Name, took)
			}
		}
		if by, text := answerOf(t, p, 8000, nil); by != p.Name || !strings.HasPrefix(text, p.Name+" serves Qwen/Qwen3-8B:") {
			t.Errorf("pod %s: answered by %q: %s", p.Name, by, text)
		}
	}

	pods := record(t, c, podKind, ns)
	rest := streamOf(t, all[0], 8000, 200)
	if err := deleteGently(t, c, all[0]); err != nil {
		t.Fatal(err)
	}
	until(t, c, "the pod is not ready any more", func(context.Context) (bool, error) {
		p := &corev1.Pod{}
		there := typed(t, c, podKind, ns, all[0].Name, p)
		return !there || p.UID != all[0].UID || p.DeletionTimestamp != nil && !isReady(p), nil
	})
	chunks, err := rest()
	if err != nil || chunks != 200 {
		t.Errorf("the deleted pod: %d chunks of its answer came (%v), want 200", chunks, err)
	}
	var end *corev1.ContainerStateTerminated
	until(t, c, "the engine of the deleted pod has ended", func(context.Context) (bool, error) {
		for _, o := range pods.objects(t) {
			p := &corev1.Pod{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, p); err != nil {
				return false, err
			}
			if p.UID == all[0].UID && len(p.Status.ContainerStatuses) > 0 {
				end = cmp.Or(p.Status.ContainerStatuses[0].State.Terminated, end)
			}
		}
		return end != nil, nil
	})
	if end.ExitCode != 0 {
		t.Errorf("the engine of the deleted pod ended with code %d, want 0, as after SIGTERM", end.ExitCode)
	}
	settled(t, c, chat)
}

// testLaunchers covers leaders and workers of each launcher.
func testLaunchers(t *testing.T, c *cluster.Cluster) {
	ns := namespace(t, c)
	services := map[string]*unstructured.Unstructured{}
	for _, launcher := range []string{"Ray", "VLLM", "VLLMDataParallel", "SGLang"} {
		worker := briefly(engine("worker", "worker", 1, 2), 0)
		worker["multinode"].(map[string]any)["launcher"] = launcher
		container := podSpec(worker)["containers"].([]any)[0].(map[string]any)
		switch launcher {
		case "VLLMDataParallel":
			container["args"] = []any{"--model=Qwen/Qwen3-8B", "--data-parallel-size-local=1"}
		case "SGLang":
			container["image"] = "lmsysorg/sglang:v0.5.5"
			container["command"] = []any{"python3", "-m", "sglang.launch_server"}
			container["args"] = []any{"--model-path=Qwen/Qwen3-8B", "--port=8000", "--tp-size=2"}
		}
		// A service named sglang would have a warning, because Kubernetes would tell its pods SGLANG_PORT.
		services[launcher] = inference(ns, "with-"+strings.ToLower(launcher), worker)
		apply(t, c, services[launcher])
	}
	for launcher, s := range services {
		settled(t, c, s)
		if n := len(enginePods(t, c, s)); n != 2 {
			t.Errorf("launcher %s: %d pods, want 2", launcher, n)
		}
		leader := leaderOf(t, c, s)
		if by, _ := answerOf(t, leader, 8000, nil); by != leader.Name {
			t.Errorf("launcher %s: answered by %q, want %s", launcher, by, leader.Name)
		}
	}
}

// testWaitsForNodes covers a leader whose worker cannot start.
func testWaitsForNodes(t *testing.T, c *cluster.Cluster) {
	ns := namespace(t, c)
	worker := briefly(engine("worker", "worker", 1, 2), 0)
	worker["leaderTemplate"] = runtime.DeepCopyJSON(worker["template"].(map[string]any))
	setImage(worker, "example.com/missing:v1")
	chat := inference(ns, "chat", worker)
	apply(t, c, chat)
	says(t, c, chat, map[string]string{"worker": "Failed 0/1 0/2"}, "False", "Failed", "ErrImagePull")
	var leader *corev1.Pod
	until(t, c, "the leader runs", func(context.Context) (bool, error) {
		leader = leaderOf(t, c, chat)
		return leader.Status.Phase == corev1.PodRunning, nil
	})
	if conn, err := net.Dial("tcp", net.JoinHostPort(leader.Status.PodIP, "8000")); err == nil {
		conn.Close()
		t.Error("the leader listens before its worker is there")
	}
	if isReady(leader) {
		t.Error("the leader is ready before its worker is there")
	}
	setImage(worker, "vllm/vllm-openai:v0.11.0")
	apply(t, c, chat)
	settled(t, c, chat)
	leader = leaderOf(t, c, chat)
	if by, _ := answerOf(t, leader, 8000, nil); by != leader.Name {
		t.Errorf("answered by %q, want %s", by, leader.Name)
	}
}

// testCrash covers an engine that ends by itself. LeaderWorkerSet makes its pods anew at the first
// restart, so that only other pods wait for longer and longer.
func testCrash(t *testing.T, c *cluster.Cluster) {
	ns := namespace(t, c)
	worker := briefly(engine("worker", "worker", 1, 1), 0)
	setEnv(worker, "STANDIN_EXIT_CODE", "3")
	broken := inference(ns, "broken", worker)
	apply(t, c, broken)
	until(t, c, "the service says that its engine crashes", func(ctx context.Context) (bool, error) {
		s, err := c.Get(ctx, broken)
		if err != nil {
			return false, err
		}
		status, reason, message := condition(s, "WorkloadsReady")
		return status == "False" && reason == "Failed" && strings.Contains(message, "exit code 3"), fmt.Errorf("WorkloadsReady is %s (%s: %s)", status, reason, message)
	})
	leaders := map[types.UID]bool{}
	// Calls after a crash may read the LeaderWorkerSet from before it got the note of why, and so take the note away
	// again. Once a call has read the note, it stays.
	var missed []string
	told := true
	until(t, c, "its pods are made anew three times, and the reason is told all the time", func(ctx context.Context) (bool, error) {
		s, err := c.Get(ctx, broken)
		if err != nil {
			return false, err
		}
		_, ready, why := condition(s, "WorkloadsReady")
		_, rolledOut, whyNot := condition(s, "RolledOut")
		tells := ready == "Failed" && strings.Contains(why, "exit code 3") && rolledOut == "UpdateFailed" && strings.Contains(whyNot, "exit code 3")
		if told && !tells {
			missed = append(missed, fmt.Sprintf("WorkloadsReady is %s (%s), RolledOut is %s (%s)", ready, why, rolledOut, whyNot))
		}
		if told = tells; !told {
			clear(leaders)
			return false, fmt.Errorf("it is missing: %s", missed[len(missed)-1])
		}
		leaders[leaderOf(t, c, broken).UID] = true
		return len(leaders) > 3, fmt.Errorf("there were %d", len(leaders))
	})
	if len(missed) > 3 {
		t.Errorf("the reason was missing before that: %s", strings.Join(missed, "; "))
	}

	alone := object(podKind, ns, "alone")
	alone.SetLabels(map[string]string{"fusioninfer.io/service": "alone"})
	alone.Object["spec"] = map[string]any{"containers": []any{map[string]any{
		"name": "engine", "image": "vllm/vllm-openai:v0.11.0", "command": []any{"sh", "-c", "exit 4"},
	}}}
	if _, err := c.Create(t.Context(), alone); err != nil {
		t.Fatal(err)
	}
	until(t, c, "the pod is in CrashLoopBackOff", func(context.Context) (bool, error) {
		p := &corev1.Pod{}
		if !typed(t, c, podKind, ns, "alone", p) || len(p.Status.ContainerStatuses) == 0 {
			return false, nil
		}
		s := p.Status.ContainerStatuses[0]
		return s.State.Waiting != nil && s.State.Waiting.Reason == "CrashLoopBackOff" && s.RestartCount >= 2 &&
			s.LastTerminationState.Terminated != nil && s.LastTerminationState.Terminated.ExitCode == 4, fmt.Errorf("it is %+v", s)
	})
}

// testCrashAmongMany covers one engine that crashes among 200 replicas. Not every pod is read there.
func testCrashAmongMany(t *testing.T, c *cluster.Cluster) {
	ns := namespace(t, c)
	worker := briefly(engine("worker", "worker", 200, 1), 0)
	container := podSpec(worker)["containers"].([]any)[0].(map[string]any)
	delete(container, "args")
	container["command"] = []any{"sh", "-c", `case "$HOSTNAME" in many-worker-150-0) exit 3;; esac
exec vllm serve Qwen/Qwen3-8B`}
	many := inference(ns, "many", worker)
	apply(t, c, many)
	says(t, c, many, map[string]string{"worker": "Failed 199/200 199/200"}, "False", "Failed", "pod many-worker-150-0: container engine: Error (exit code 3)")
}

// testRouter covers prefill and decode with the real endpoint picker and the real routing sidecar. The
// picker sends requests to the decoder, and one that names a prefiller is prefilled there.
func testRouter(t *testing.T, c *cluster.Cluster) {
	ns := namespace(t, c)
	router := picker("router.example.com")
	router["strategy"] = "pd-disaggregation"
	chat := inference(ns, "chat", briefly(engine("prefill", "prefiller", 1, 1), 0), briefly(engine("decode", "decoder", 1, 1), 0), router)
	apply(t, c, chat)
	settled(t, c, chat)
	var prefill, decode *corev1.Pod
	for _, p := range enginePods(t, c, chat) {
		if p.Labels["fusioninfer.io/role-name"] == "prefill" {
			prefill = p
		} else {
			decode = p
		}
	}
	e := &endpointPicker{Picker: &cluster.Picker{GRPC: net.JoinHostPort(pickerOf(t, c, chat).Status.PodIP, "9002")}, T: t}
	until(t, c, "the picker picks the decoder", func(ctx context.Context) (bool, error) {
		got, err := e.ask(ctx, "Qwen/Qwen3-8B", "Hello")
		return got == net.JoinHostPort(decode.Status.PodIP, "8000"), fmt.Errorf("it picks %q: %w", got, err)
	})
	header := http.Header{"x-prefiller-host-port": {net.JoinHostPort(prefill.Status.PodIP, "8000")}}
	if by, text := answerOf(t, decode, 8000, header); by != decode.Name {
		t.Errorf("answered by %q, want %s: %s", by, decode.Name, text)
	}
	prefilled := func(requests int) {
		t.Helper()
		metrics, err := get(t.Context(), "http://"+net.JoinHostPort(prefill.Status.PodIP, "8000")+"/metrics")
		if want := fmt.Sprintf(`vllm:request_success_total{engine="0",finished_reason="length",model_name="Qwen/Qwen3-8B"} %d`, requests); err != nil || !strings.Contains(metrics, want+"\n") {
			t.Errorf("the prefiller has not prefilled %d requests (%v):\n%s", requests, err, metrics)
		}
	}
	prefilled(1)
	// All of it: the gateway asks the picker, which names both pods, and the sidecar prefills.
	if by, text := answerThroughGateway(t, c, ns, "router.example.com"); by != decode.Name {
		t.Errorf("through the gateway: answered by %q, want %s: %s", by, decode.Name, text)
	}
	prefilled(2)
}

// ofSeveralNodes are the seconds of a drain in replicas of several pods. LeaderWorkerSet deletes the others only once it has noticed that one is
// being deleted, and an engine ends with the first of its pods. On a busy machine that takes seconds.
const ofSeveralNodes = 15

// briefly gives a role a short drain, and no GPUs.
func briefly(role map[string]any, drain int64) map[string]any {
	role["lifecycle"] = map[string]any{"drainSeconds": drain, "shutdownSeconds": int64(5)}
	return withoutGPUs(role)
}

func setEnv(role map[string]any, name, value string) {
	container := podSpec(role)["containers"].([]any)[0].(map[string]any)
	container["env"] = []any{map[string]any{"name": name, "value": value}}
}

// enginePods are the pods of a service's engines, in the order of their names.
func enginePods(t *testing.T, c api, s *unstructured.Unstructured) []*corev1.Pod {
	t.Helper()
	var all []*corev1.Pod
	for _, o := range list(t, c, podKind, s.GetNamespace()) {
		if o.GetLabels()["fusioninfer.io/service"] != s.GetName() || !ofEngine(&o) {
			continue
		}
		p := &corev1.Pod{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, p); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

// ofEngine tells a pod of an engine from that of an endpoint picker.
func ofEngine(pod *unstructured.Unstructured) bool {
	return pod.GetLabels()["fusioninfer.io/role-name"] != ""
}

// engineUIDs are the UIDs of the pods of a service's engines, by their names.
func engineUIDs(t *testing.T, c *cluster.Cluster, s *unstructured.Unstructured) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, p := range enginePods(t, c, s) {
		all[p.Name] = string(p.UID)
	}
	return all
}

// pickerOf is the pod of a service's endpoint picker.
func pickerOf(t *testing.T, c api, s *unstructured.Unstructured) *corev1.Pod {
	t.Helper()
	p := &corev1.Pod{}
	for _, o := range list(t, c, podKind, s.GetNamespace()) {
		if l := o.GetLabels(); l["fusioninfer.io/service"] != s.GetName() || l["fusioninfer.io/component-type"] != "router" {
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, p); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// leaderOf is the leader of a service that has one.
func leaderOf(t *testing.T, c *cluster.Cluster, s *unstructured.Unstructured) *corev1.Pod {
	t.Helper()
	for _, p := range enginePods(t, c, s) {
		if p.Labels["leaderworkerset.sigs.k8s.io/worker-index"] == "0" {
			return p
		}
	}
	return &corev1.Pod{}
}

func isReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// answerOf asks a pod for a completion of a chat, and returns who served it and the text.
func answerOf(t *testing.T, p *corev1.Pod, port int, header http.Header) (by, text string) {
	t.Helper()
	return answerBy(t, p, port, "Qwen/Qwen3-8B", header)
}

// answerBy asks for a model by its name.
func answerBy(t *testing.T, p *corev1.Pod, port int, model string, header http.Header) (by, text string) {
	t.Helper()
	rsp := post(t, p, port, fmt.Sprintf(`{"model":%q,"max_tokens":4,"messages":[{"role":"user","content":"Hello"}]}`, model), header)
	defer rsp.Body.Close()
	b, err := io.ReadAll(rsp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var said struct {
		Choices []struct{ Message struct{ Content string } }
	}
	if err := json.Unmarshal(b, &said); err != nil || len(said.Choices) != 1 {
		t.Fatalf("pod %s answers %s: %s", p.Name, rsp.Status, b)
	}
	return rsp.Header.Get("x-served-by"), said.Choices[0].Message.Content
}

// streamOf asks a pod for a stream of so many tokens, and waits for the first. The function that it
// returns waits for the end, and returns how many came.
func streamOf(t *testing.T, p *corev1.Pod, port, tokens int) func() (int, error) {
	t.Helper()
	rsp := post(t, p, port, fmt.Sprintf(`{"model":"Qwen/Qwen3-8B","stream":true,"max_tokens":%d,"messages":[]}`, tokens), nil)
	t.Cleanup(func() { rsp.Body.Close() })
	lines := bufio.NewScanner(rsp.Body)
	if !lines.Scan() {
		t.Fatalf("pod %s sends no stream: %v", p.Name, lines.Err())
	}
	return func() (int, error) {
		n, last := 1, ""
		for lines.Scan() {
			if last = lines.Text(); strings.HasPrefix(last, "data: {") {
				n++
			} else if last == "data: [DONE]" {
				return n, nil
			}
		}
		return n, fmt.Errorf("the stream ends after %q: %w", last, lines.Err())
	}
}

func post(t *testing.T, p *corev1.Pod, port int, body string, header http.Header) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, fmt.Sprintf("http://%s:%d/v1/chat/completions", p.Status.PodIP, port), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for k, v := range header {
		r.Header[http.CanonicalHeaderKey(k)] = v
	}
	rsp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	return rsp
}

// deleteGently deletes a pod as kubectl does.
func deleteGently(t *testing.T, c *cluster.Cluster, p *corev1.Pod) error {
	t.Helper()
	_, err := c.Kubectl(t.Context(), "delete", "pod", "--wait=false", "--namespace="+p.Namespace, p.Name)
	return err
}
