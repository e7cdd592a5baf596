package e2e

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
)

// TestPicker proves that the real endpoint picker, the release whose image is
// rendered for plain strategies, works with what is rendered for it: it starts with
// its Deployment's arguments, environment, configuration and ServiceAccount, is
// healthy as its probes ask, knows the leaders of the pool and nobody else, and sends
// requests where its strategy says, over the TLS that gateways use.
func TestPicker(t *testing.T) {
	t.Parallel()
	n := settle(t, shared(t), "picker")
	strategies := []string{"queue-size", "kv-cache-utilization", "lora-affinity", "prefix-cache"}
	for _, s := range strategies {
		n.serve(s, spec(s, []rolePart{{name: "worker", kind: "worker", replicas: 3, nodes: 2}}, ""))
	}
	for _, s := range strategies {
		n.ready(s)
	}
	choose := map[string]func(*testing.T, *endpointPicker){
		"queue-size":           testQueueSize,
		"kv-cache-utilization": testKVCache,
		"lora-affinity":        testLoRA,
		"prefix-cache":         testPrefixCache,
	}
	for _, s := range strategies {
		t.Run(s, func(t *testing.T) {
			p := pick(t, n, s)
			p.healthy(p.Readiness)
			p.healthy(p.Liveness)
			p.leadersOnly()
			choose[s](t, p)
		})
	}
}

// An endpointPicker is one that runs, and the model servers that it picks from.
type endpointPicker struct {
	*cluster.Picker
	*testing.T

	c *cluster.Cluster
	// leaders and workers by the names of their pods.
	leaders, workers map[string]*modelServer
}

// pick starts the endpoint picker of a service, and a model server at the address of
// each of its pods.
func pick(t *testing.T, n *tenant, service string) *endpointPicker {
	t.Helper()
	p := &endpointPicker{T: t, c: n.c, leaders: map[string]*modelServer{}, workers: map[string]*modelServer{}}
	for _, pod := range n.list(kindPod) {
		l := pod.GetLabels()
		if l["fusioninfer.io/service"] != service || l["fusioninfer.io/role-name"] == "" {
			continue
		}
		ip, _, _ := unstructured.NestedString(pod.Object, "status", "podIP")
		s := serveModel(t, ip)
		if l["leaderworkerset.sigs.k8s.io/worker-index"] == "0" {
			p.leaders[pod.GetName()] = s
		} else {
			p.workers[pod.GetName()] = s
		}
	}
	if len(p.leaders) != 3 || len(p.workers) != 3 {
		t.Fatalf("service %s has %d leaders and %d workers, want 3 and 3", service, len(p.leaders), len(p.workers))
	}
	// Whoever takes a worker for an endpoint picks it.
	for _, s := range p.leaders {
		s.set(load{queue: 5, cache: 0.7})
	}
	for _, s := range p.workers {
		s.set(load{running: []string{"tuned"}})
	}
	started, err := n.c.RunPicker(t.Context(), n.namespace, service+"-epp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(started.Stop)
	p.Picker = started
	return p
}

// healthy waits until a service of the endpoint picker is healthy, as a kubelet asks.
func (p *endpointPicker) healthy(service string) {
	p.Helper()
	if service == "" {
		p.Fatal("a probe names no service")
	}
	conn, err := grpc.NewClient(p.Health, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		p.Fatal(err)
	}
	defer conn.Close()
	until(p.T, p.c, "service "+service+" is healthy", func(ctx context.Context) (bool, error) {
		r, err := healthv1.NewHealthClient(conn).Check(ctx, &healthv1.HealthCheckRequest{Service: service})
		if err == nil && r.GetStatus() != healthv1.HealthCheckResponse_SERVING {
			err = errors.New(r.GetStatus().String())
		}
		if err != nil {
			return false, p.Failed(err.Error())
		}
		return true, nil
	})
}

var endpoint = regexp.MustCompile(`(?m)^inference_pool_per_pod_queue_size\{.*model_server_pod="([^"]*)".*\} (\d+)`)

// leadersOnly waits until the endpoint picker knows the queues of all leaders, and of
// nobody else.
func (p *endpointPicker) leadersOnly() {
	p.Helper()
	want := map[string]string{}
	for name, s := range p.leaders {
		// The name of an endpoint is that of the pod with the rank of its port.
		want[name+"-rank-0"] = strconv.Itoa(s.get().queue)
	}
	p.sees(want)
}

func (p *endpointPicker) sees(want map[string]string) {
	p.Helper()
	until(p.T, p.c, fmt.Sprintf("the endpoint picker sees the queues %v", want), func(ctx context.Context) (bool, error) {
		metrics, err := get(ctx, "http://"+p.Metrics+"/metrics")
		if err != nil {
			return false, err
		}
		got := map[string]string{}
		for _, m := range endpoint.FindAllStringSubmatch(metrics, -1) {
			got[m[1]] = m[2]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return false, fmt.Errorf("-want, +got:\n%s", diff)
		}
		return true, nil
	})
}

// testQueueSize expects the pod with the shortest queue.
func testQueueSize(_ *testing.T, p *endpointPicker) {
	p.best(load{queue: 1, cache: 0.9}, load{queue: 7, cache: 0.1})
}

// testKVCache expects the pod with the emptiest cache.
func testKVCache(_ *testing.T, p *endpointPicker) {
	p.best(load{queue: 9, cache: 0.1}, load{queue: 1, cache: 0.8})
}

// testLoRA expects the pod that has the adapter loaded.
func testLoRA(_ *testing.T, p *endpointPicker) {
	p.best(load{queue: 9, cache: 0.9, running: []string{"tuned"}}, load{queue: 1, cache: 0.1, running: []string{"other"}})
}

// best expects each leader in turn to be picked when it is the best and the others are
// not.
func (p *endpointPicker) best(best, others load) {
	p.Helper()
	for i, name := range slices.Sorted(maps.Keys(p.leaders)) {
		for other, s := range p.leaders {
			l := others
			if other == name {
				l = best
			}
			// Queues that are longer each time show that the endpoint picker has seen
			// what is set here, all of which it reads at once.
			l.queue += 10 * i
			s.set(l)
		}
		p.leadersOnly()
		want := p.leaders[name].address
		for range 5 {
			if got, err := p.ask(p.Context(), "tuned", "Hello"); err != nil || got != want {
				p.Errorf("a request goes to %q (%v), want %q, which is %+v while others are %+v", got, err, want, best, others)
			}
		}
	}
}

// testPrefixCache expects requests of the same beginning at the same pod, whatever the
// pods' load, and those of several beginnings not all at one.
func testPrefixCache(t *testing.T, p *endpointPicker) {
	seen := map[string]bool{}
	for i := range 8 {
		prompt := fmt.Sprintf("%d ", i) + strings.Repeat(fmt.Sprintf("beginning number %d, ", i), 200)
		want, err := p.ask(t.Context(), "tuned", prompt)
		if err != nil {
			t.Fatal(err)
		}
		seen[want] = true
		for j := range 5 {
			got, err := p.ask(t.Context(), "tuned", prompt+fmt.Sprintf("and end number %d", j))
			if err != nil || got != want {
				t.Errorf("request %d of beginning %d goes to %q (%v), the first went to %q", j, i, got, err, want)
			}
		}
	}
	if len(seen) < 2 {
		t.Errorf("8 beginnings all go to %v", slices.Collect(maps.Keys(seen)))
	}
}

// ask asks where to send a request, as a gateway does: by Envoy's protocol for external
// processing, with TLS and no look at the certificate, which the endpoint picker made
// itself.
func (p *endpointPicker) ask(ctx context.Context, model, prompt string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	conn, err := grpc.NewClient(p.GRPC, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{InsecureSkipVerify: true})))
	if err != nil {
		return "", err
	}
	defer conn.Close()
	s, err := extprocv3.NewExternalProcessorClient(conn).Process(ctx)
	if err != nil {
		return "", err
	}
	body := fmt.Sprintf(`{"model":%q,"prompt":%q}`, model, prompt)
	var headers []*corev3.HeaderValue
	for k, v := range map[string]string{":method": "POST", ":path": "/v1/completions", "content-type": "application/json", "x-request-id": "test"} {
		headers = append(headers, &corev3.HeaderValue{Key: k, RawValue: []byte(v)})
	}
	for _, r := range []*extprocv3.ProcessingRequest{
		{Request: &extprocv3.ProcessingRequest_RequestHeaders{RequestHeaders: &extprocv3.HttpHeaders{Headers: &corev3.HeaderMap{Headers: headers}}}},
		{Request: &extprocv3.ProcessingRequest_RequestBody{RequestBody: &extprocv3.HttpBody{Body: []byte(body), EndOfStream: true}}},
	} {
		if err := s.Send(r); err != nil && !errors.Is(err, io.EOF) {
			return "", err
		}
	}
	rsp, err := s.Recv()
	if err != nil {
		return "", err
	}
	for _, h := range rsp.GetRequestHeaders().GetResponse().GetHeaderMutation().GetSetHeaders() {
		if h.GetHeader().GetKey() == "x-gateway-destination-endpoint" {
			return string(h.GetHeader().GetRawValue()), nil
		}
	}
	return "", fmt.Errorf("the answer names no endpoint: %v", rsp)
}

// A load is what a model server says about itself.
type load struct {
	queue   int
	cache   float64
	running []string
}

// A modelServer answers for its load as vLLM does.
type modelServer struct {
	address string
	// next lets it send the next part of an answer, see answer.
	next chan bool

	mu   sync.Mutex
	load load
}

func (s *modelServer) set(l load) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.load = l
}

func (s *modelServer) get() load {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.load
}

// ServeHTTP writes the metrics that the endpoint picker reads of vLLM, by vLLM's names. For any
// other path it says who it is, see answer.
func (s *modelServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/metrics" {
		s.answer(w, r)
		return
	}
	l := s.get()
	fmt.Fprintf(w, `# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{model_name="m"} %d
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{model_name="m"} %d
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{model_name="m"} %g
# TYPE vllm:lora_requests_info gauge
vllm:lora_requests_info{max_lora="1",running_lora_adapters=%q,waiting_lora_adapters=""} %d
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{block_size="16",num_gpu_blocks="1000"} 1
`, l.queue, l.queue, l.cache, strings.Join(l.running, ","), time.Now().Unix())
}

// serveModel starts a model server at the address of a pod, until the test ends.
func serveModel(t *testing.T, ip string) *modelServer {
	t.Helper()
	s := &modelServer{address: net.JoinHostPort(ip, "8000"), next: make(chan bool)}
	l, err := net.Listen("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return s
}
