package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
	"github.com/fusioninfer/function-inferenceservice/test/controlplane/traffic"
)

// TestScaling proves that roles with a target stop and start again without a request that fails. It needs a control
// plane whose Input says where Prometheus is. Neither Prometheus nor KEDA runs there: the tests read the metrics and
// scale in their place.
func TestScaling(t *testing.T) {
	h := &controlPlane{cluster.TestUp(t, cluster.Options{Packages: *packages, Nodes: 4, GPUs: 8, Engines: true, CoreArgs: cluster.RecommendedCoreArgs})}
	h.installForScaling(t)
	t.Run("Ratio", func(t *testing.T) { testRatioFollows(t, h.Cluster) })
	t.Run("FromZero", func(t *testing.T) { testFromZero(t, h.Cluster) })
}

// installForScaling installs the function, and the API of services whose roles have targets.
func (h *controlPlane) installForScaling(t *testing.T) {
	t.Helper()
	if err := h.PushPackages(first); err != nil {
		t.Fatal(err)
	}
	kubectl(t, h.Cluster, "apply", "-f", "package/install/rbac.yaml", "-f", "package/install/function.yaml",
		"-f", "package/xr/definition.yaml", "-f", "package/xr/cluster-definition.yaml", "-f", "package/xr/role-definition.yaml", "-f", "package/xr/role-composition.yaml",
		"-f", compositionWith(t, "xr", "monitoring: {podMonitors: {}}\n"+unusedPrometheus))
	healthy(t, h.Cluster, "Function", function, first)
	kubectl(t, h.Cluster, "wait", "--for=condition=Established", "--timeout=3m", "xrd", "--all")
}

// testFromZero stops the only role of a service. Requests then wait in the real endpoint picker, where KEDA's trigger
// sees them, and are answered once a replica runs. One that is stopped answers what it has begun.
func testFromZero(t *testing.T, c *cluster.Cluster) {
	const host = "zero.example.com"
	chat := sleepy(namespace(t, c), host)
	apply(t, c, chat)
	settled(t, c, chat)
	s := &sleeper{T: t, c: c, pods: c, service: chat, to: behindGateway(t, c, chat.GetNamespace(), host)}
	s.readTrigger()
	s.uses(0)

	s.scale(0)
	s.sleeps()
	s.picksNone()
	if status := s.listModels(); status != http.StatusInternalServerError {
		t.Errorf("without pods, a request without a body gets %d, want 500", status)
	}
	first := s.ask(1, false)
	s.wait(first)
	more := s.ask(5, false)
	s.wait(append(more, first...))
	s.sleeps()
	s.scale(1)
	s.answers(append(more, first...))
	s.uses(0)
	says(t, c, chat, map[string]string{"worker": "Running 1/1 1/1"})

	begun := s.ask(3, true)
	s.uses(3)
	before := s.pod()
	s.scale(0)
	s.drains(before, begun)
	next := s.ask(1, false)
	s.wait(next)
	// KEDA does not wait until the former pod has ended.
	s.scale(1)
	s.answers(append(begun, next...))
	if after := s.pod(); after.UID == before.UID {
		t.Errorf("pod %s answers, which was stopped", after.Name)
	}
	says(t, c, chat, map[string]string{"worker": "Running 1/1 1/1"})
}

// testFromZeroInFleet proves that the fleet route leads to the cluster in which a service sleeps. So the first request waits
// in the real endpoint picker there, and is answered once a replica runs there.
func testFromZeroInFleet(t *testing.T, h *controlPlane) {
	const host = "sleepy.example.com"
	h.joins(t, "sleepy", member{name: "sleepy-east", remote: "cluster-1", nodes: 1, gateway: observedGateway})
	router := entrance(host, "prefix-cache")
	router["endpointPicker"] = map[string]any{"failureMode": "FailClose"}
	chat := placedService(namespace(t, h.Cluster), "chat", "Failover", "sleepy", sleepyWorker(), router)
	apply(t, h.Cluster, chat)
	// The other cluster comes later: it might know its gateway's address earlier than this one, and get the service.
	h.lands(t, chat, map[string]string{"sleepy-east": "Placed [0] weight 1"}, map[string]int{"cluster-1": 1})
	h.joins(t, "sleepy", member{name: "sleepy-west", remote: "cluster-2", nodes: 1, gateway: observedGateway})
	isIn := func(east string, pods map[string]int) {
		t.Helper()
		h.lands(t, chat, map[string]string{"sleepy-east": east, "sleepy-west": "NotPlaced NotNeeded: it runs in sleepy-east"}, pods)
		h.routes(t, chat, map[string]int64{"sleepy-east": 1})
	}
	awake := func() {
		t.Helper()
		isIn("Placed [0] weight 1", map[string]int{"cluster-1": 1})
	}
	awake()
	s := &sleeper{T: t, c: h.Cluster, pods: h.Remote("cluster-1"), service: chat, to: behindGateway(t, h.Cluster, "gateway-system", host)}
	s.readTrigger()
	s.uses(0)

	picker := pickerOf(t, s.pods, chat)
	s.scale(0)
	s.sleeps()
	isIn("Placed weight 1", map[string]int{})
	first := s.ask(3, false)
	s.wait(first)
	s.scale(1)
	s.answers(first)
	awake()
	s.uses(0)
	if now := pickerOf(t, s.pods, chat); now.UID != picker.UID {
		t.Errorf("the endpoint picker is pod %s, and was %s", now.Name, picker.Name)
	}
	h.remove(t, chat)
}

// sleepy is a service with a role that may stop.
func sleepy(ns, host string) *unstructured.Unstructured {
	return inference(ns, "chat", sleepyWorker(), picker(host))
}

// sleepyWorker is a role that may stop. Its streams last a minute, and it finishes them before it ends.
func sleepyWorker() map[string]any {
	worker := withoutGPUs(engine("worker", "worker", 1, 1))
	delete(worker, "replicas")
	worker["scaling"] = map[string]any{"minReplicas": int64(0), "maxReplicas": int64(3), "target": map[string]any{"waitingRequests": int64(4)}}
	worker["lifecycle"] = map[string]any{"startupSeconds": int64(900), "drainSeconds": int64(5), "shutdownSeconds": int64(300)}
	setImage(worker, "vllm/vllm-openai:v0.19.0")
	setEnv(worker, "STANDIN_TOKEN_MILLISECONDS", "600")
	return worker
}

// A sleeper is a service whose role worker may stop.
type sleeper struct {
	*testing.T

	c *cluster.Cluster
	// pods are where its pods run.
	pods    api
	service *unstructured.Unstructured
	to      traffic.Target
	// used are the metrics of requests that KEDA's trigger sums.
	used []string
}

var scaledObjectKind = schema.GroupVersionKind{Group: "keda.sh", Version: "v1alpha1", Kind: "ScaledObject"}

// readTrigger finds the metrics by which KEDA starts and stops the role.
func (s *sleeper) readTrigger() {
	s.Helper()
	var o struct {
		Spec struct {
			Triggers []struct {
				Name     string            `json:"name"`
				Metadata map[string]string `json:"metadata"`
			} `json:"triggers"`
		} `json:"spec"`
	}
	until(s.T, s.c, "the ScaledObject is there", func(context.Context) (bool, error) {
		return typed(s.T, s.c, scaledObjectKind, s.service.GetNamespace(), s.service.GetName()+"-worker", &o), nil
	})
	for _, trigger := range o.Spec.Triggers {
		if trigger.Name != "requests" {
			continue
		}
		for _, m := range regexp.MustCompile(`\(sum\((?:([a-z_:]+)\{|\{__name__=~"([a-z_:|]+)")`).FindAllStringSubmatch(trigger.Metadata["query"], -1) {
			s.used = append(s.used, "(?:"+m[1]+m[2]+")")
		}
	}
	if len(s.used) != 3 {
		s.Fatalf("the trigger reads %q, want a metric of the endpoint picker and two of the engine: %v", s.used, o)
	}
}

// inUse is what the query of KEDA's trigger gives of the requests that wait in the endpoint picker, and of those that
// wait and run in the engines. Rates and ages are up to Prometheus.
func (s *sleeper) inUse(ctx context.Context) (int, error) {
	picker := pickerOf(s.T, s.pods, s.service)
	from := []string{net.JoinHostPort(picker.Status.PodIP, "9090")}
	for _, p := range enginePods(s.T, s.pods, s.service) {
		if isReady(p) && p.DeletionTimestamp == nil {
			from = append(from, net.JoinHostPort(p.Status.PodIP, "8000"))
		}
	}
	sum := 0
	for _, at := range from {
		metrics, err := get(ctx, "http://"+at+"/metrics")
		if err != nil {
			return 0, err
		}
		for _, name := range s.used {
			for _, m := range regexp.MustCompile(`(?m)^`+name+`\{.*\} (\d+)$`).FindAllStringSubmatch(metrics, -1) {
				n, err := strconv.Atoi(m[1])
				if err != nil {
					return 0, err
				}
				sum += n
			}
		}
	}
	return sum, nil
}

// uses waits until so many requests wait or run, as KEDA's trigger sees them.
func (s *sleeper) uses(want int) {
	s.Helper()
	until(s.T, s.c, fmt.Sprintf("%d requests wait or run", want), func(ctx context.Context) (bool, error) {
		n, err := s.inUse(ctx)
		return n == want && err == nil, errors.Join(err, fmt.Errorf("there are %d", n))
	})
}

// scale sets the number of replicas, as KEDA does.
func (s *sleeper) scale(replicas int) {
	s.Helper()
	scaleRole(s.T, s.c, s.service, "worker", replicas)
}

// scaleRole sets the number of replicas of a role, as an autoscaler does.
func scaleRole(t *testing.T, c *cluster.Cluster, s *unstructured.Unstructured, role string, replicas int) {
	t.Helper()
	kubectl(t, c, "scale", "--namespace="+s.GetNamespace(), "--replicas="+strconv.Itoa(replicas), "inferenceroles.fusioninfer.io/"+s.GetName()+"-"+role)
}

// sleeps waits until no pod runs, and the service says so.
func (s *sleeper) sleeps() {
	s.Helper()
	says(s.T, s.c, s.service, map[string]string{"worker": "Running 0/0 0/0"}, "True", "Sleeping", "which waits up to 15m0s in the endpoint picker for: worker")
	until(s.T, s.c, "no pod runs", func(context.Context) (bool, error) {
		n := len(enginePods(s.T, s.pods, s.service))
		return n == 0, fmt.Errorf("there are %d", n)
	})
}

// pod is the only one of the role.
func (s *sleeper) pod() *corev1.Pod {
	s.Helper()
	all := enginePods(s.T, s.pods, s.service)
	if len(all) != 1 {
		s.Fatalf("there are %d pods, want 1", len(all))
	}
	return all[0]
}

// drains waits until a pod is being deleted and the endpoint picker knows of none. The requests that it answers must
// go on.
func (s *sleeper) drains(pod *corev1.Pod, begun []*asked) {
	s.Helper()
	until(s.T, s.c, "pod "+pod.Name+" is being deleted", func(context.Context) (bool, error) {
		return s.pod().DeletionTimestamp != nil, nil
	})
	for _, a := range begun {
		if a.ended() {
			s.Errorf("a stream has ended before its pod was deleted: by %s, %v", a.by.Pod, a.err)
		}
	}
	s.picksNone()
}

// picksNone waits until the endpoint picker knows of no pod. It hears a moment later that one has gone.
func (s *sleeper) picksNone() {
	s.Helper()
	at := net.JoinHostPort(pickerOf(s.T, s.pods, s.service).Status.PodIP, "9090")
	until(s.T, s.c, "the endpoint picker has no pod", func(ctx context.Context) (bool, error) {
		metrics, err := get(ctx, "http://"+at+"/metrics")
		known := len(endpoint.FindAllString(metrics, -1))
		return err == nil && known == 0, errors.Join(err, fmt.Errorf("it knows of %d", known))
	})
}

// An asked is a request on its way.
type asked struct {
	done chan struct{}
	// by and err are known when it is done.
	by  traffic.Answer
	err error
}

func (a *asked) ended() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// ask sends requests at once.
func (s *sleeper) ask(requests int, stream bool) []*asked {
	all := make([]*asked, 0, requests)
	for range requests {
		a := &asked{done: make(chan struct{})}
		all = append(all, a)
		go func() {
			defer close(a.done)
			a.by, a.err = s.to.Ask(s.Context(), stream)
		}()
	}
	return all
}

// wait checks that all of some requests wait in the endpoint picker, and that KEDA's trigger sees all of them.
func (s *sleeper) wait(all []*asked) {
	s.Helper()
	until(s.T, s.c, fmt.Sprintf("%d requests wait", len(all)), lasting(func(ctx context.Context) (bool, error) {
		for _, a := range all {
			if a.ended() {
				s.Fatalf("a request does not wait: by %q, %v", a.by.Pod, a.err)
			}
		}
		n, err := s.inUse(ctx)
		return n == len(all) && err == nil, errors.Join(err, fmt.Errorf("there are %d", n))
	}))
}

// answers waits until requests are answered. None may fail.
func (s *sleeper) answers(all []*asked) {
	s.Helper()
	until(s.T, s.c, "all requests have ended", func(context.Context) (bool, error) {
		n := 0
		for _, a := range all {
			if a.ended() {
				n++
			}
		}
		return n == len(all), fmt.Errorf("%d of %d have", n, len(all))
	})
	for _, a := range all {
		if want := s.service.GetName() + "-worker-0-0"; a.err != nil || a.by.Pod != want {
			s.Errorf("a request is answered by %q (%v), want %s", a.by.Pod, a.err, want)
		}
	}
}

// listModels is the status of a request that needs no certain pod.
func (s *sleeper) listModels() int {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), http.MethodGet, "http://"+s.to.Gateway+"/v1/models", nil)
	if err != nil {
		s.Fatal(err)
	}
	r.Host = s.to.Host
	rsp, err := client.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer rsp.Body.Close()
	if _, err := io.Copy(io.Discard, rsp.Body); err != nil {
		s.Fatal(err)
	}
	return rsp.StatusCode
}
