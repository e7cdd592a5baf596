package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
)

// client does not wait forever for a response that never ends.
var client = &http.Client{Timeout: time.Minute}

// TestGateway proves that requests pass the gateway as the rendered route, pool and endpoint picker
// say: to the pod that the real endpoint picker picks, in pieces as they come, by weight, over the
// gateway of another cluster, and without the endpoint picker as the pool says.
func TestGateway(t *testing.T) {
	t.Parallel()
	n := settle(t, shared(t), "gateway")
	n.serve("llm", routed("FailClose"))
	n.apply(`{apiVersion: v1, kind: Service, metadata: {name: first}, spec: {selector: {statefulset.kubernetes.io/pod-name: llm-worker-0-0}, ports: [{name: http, port: 80, targetPort: 8000}]}}`)
	n.ready("llm")
	p := pick(t, n, "llm")
	g := &throughGateway{endpointPicker: p, n: n}
	g.use(p.Picker)
	p.leadersOnly()
	g.picked()
	g.streams()
	g.weighted()
	g.overAnother()
	g.withoutPicker()
}

// routed is a service with a route of two rules, of which one has weights.
func routed(mode string) string {
	return strings.Replace(spec("queue-size", []rolePart{{name: "worker", kind: "worker", replicas: 3, nodes: 2}}, ""), "strategy: queue-size, ", `
    strategy: queue-size, endpointPicker: {failureMode: `+mode+`},
    httproute: {hostnames: [llm.example.com], rules: [
      {matches: [{path: {value: /}}]},
      {matches: [{path: {value: /weighted}}], backendRefs: [{name: llm-pool, weight: 1}, {name: first, port: 80, weight: 1}]}]},
    `, 1)
}

// apply applies an object, as a tenant does.
func (n *tenant) apply(doc string) {
	n.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(doc), &o.Object); err != nil {
		n.Fatal(err)
	}
	o.SetNamespace(n.namespace)
	if _, err := n.c.Apply(n.Context(), o, "tenant"); err != nil {
		n.Fatal(err)
	}
}

// throughGateway sends requests to the gateway of a service.
type throughGateway struct {
	*endpointPicker
	n *tenant
	// mapped is the address of the endpoint picker's pod.
	mapped string
}

// use makes the gateway ask a process in place of the endpoint picker's pod, which is simulated.
func (g *throughGateway) use(p *cluster.Picker) {
	g.Helper()
	for _, pod := range g.n.list(kindPod) {
		if strings.HasPrefix(pod.GetName(), "llm-epp-") {
			ip, _, _ := unstructured.NestedString(pod.Object, "status", "podIP")
			g.mapped = net.JoinHostPort(ip, "9002")
		}
	}
	g.c.MapEndpoint(g.mapped, p.GRPC)
	g.Cleanup(func() { g.c.MapEndpoint(g.mapped, "") })
}

// address is where the gateway of the service listens.
func (g *throughGateway) address() string {
	g.Helper()
	for _, o := range g.n.list(gatewayKind) {
		if at := g.c.GatewayAddress(g.n.namespace, o.GetName()); at != "" {
			return at
		}
	}
	g.Fatal("the service has no Gateway that listens")
	return ""
}

// open sends a request. The body of the response is to be closed.
func (g *throughGateway) open(host, path, body string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(g.Context(), http.MethodPost, "http://"+g.address()+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Host = host
	r.Header.Set("Content-Type", "application/json")
	return client.Do(r)
}

const completion = `{"model":"tuned","prompt":"Hello"}`

// ask returns the status of a completion, and which model server made it.
func (g *throughGateway) ask(host, path string) string {
	g.Helper()
	return g.answer(g.open(host, path, completion))
}

// answer is the status of a response, and its body if that is a model server's.
func (g *throughGateway) answer(rsp *http.Response, err error) string {
	g.Helper()
	if err != nil {
		g.Fatal(err)
	}
	defer rsp.Body.Close()
	b, err := io.ReadAll(rsp.Body)
	if err != nil {
		g.Fatal(err)
	}
	if rsp.StatusCode != http.StatusOK {
		return strconv.Itoa(rsp.StatusCode)
	}
	return fmt.Sprint(rsp.StatusCode, " ", string(b))
}

// asked returns the different answers to many requests.
func (g *throughGateway) asked(host, path string, requests int) []string {
	g.Helper()
	got := map[string]bool{}
	for range requests {
		got[g.ask(host, path)] = true
	}
	return slices.Sorted(maps.Keys(got))
}

const (
	llm         = "llm.example.com"
	completions = "/v1/completions"
)

// answers are those of leaders, but for some.
func (g *throughGateway) answers(except ...string) []string {
	var all []string
	for name, s := range g.leaders {
		if !slices.Contains(except, name) {
			all = append(all, "200 "+s.address)
		}
	}
	slices.Sort(all)
	return all
}

// picked expects requests at the pod with the shortest queue, whichever that is.
func (g *throughGateway) picked() {
	g.Helper()
	for i, name := range slices.Sorted(maps.Keys(g.leaders)) {
		for other, s := range g.leaders {
			l := load{queue: 7 + 10*i, cache: 0.5}
			if other == name {
				l.queue = 1 + 10*i
			}
			s.set(l)
		}
		g.leadersOnly()
		if diff := cmp.Diff([]string{"200 " + g.leaders[name].address}, g.asked(llm, completions, 5)); diff != "" {
			g.Errorf("while %s has the shortest queue: -want, +got:\n%s", name, diff)
		}
	}
	// A request without a body goes to any.
	models, err := http.NewRequestWithContext(g.Context(), http.MethodGet, "http://"+g.address()+"/v1/models", nil)
	if err != nil {
		g.Fatal(err)
	}
	models.Host = llm
	if got := g.answer(client.Do(models)); !slices.Contains(g.answers(), got) {
		g.Errorf("a request without a body is answered with %q, want one of %q", got, g.answers())
	}
	if got := g.ask("elsewhere.example.com", completions); got != "404" {
		g.Errorf("a request for another host is answered with %q, want 404", got)
	}
}

// streams expects the parts of a response one by one.
func (g *throughGateway) streams() {
	g.Helper()
	rsp, err := g.open(llm, completions, `{"model":"tuned","prompt":"Hello","stream":true}`)
	if err != nil {
		g.Fatal(err)
	}
	defer rsp.Body.Close()
	lines := bufio.NewReader(rsp.Body)
	first, err := lines.ReadString('\n')
	address := strings.TrimSpace(strings.TrimPrefix(first, "data: "))
	all := g.all() // In no order.
	i := slices.IndexFunc(all, func(s *modelServer) bool { return s.address == address })
	if err != nil || i < 0 {
		g.Fatalf("the first part is %q: %v", first, err)
	}
	// It waits for this before it goes on.
	all[i].next <- true
	rest, err := io.ReadAll(lines)
	if err != nil || string(rest) != "data: [DONE]\n" {
		g.Errorf("the rest is %q: %v", rest, err)
	}
}

func (g *throughGateway) all() []*modelServer { return slices.Collect(maps.Values(g.leaders)) }

// weighted expects both backends of a rule: what the endpoint picker picks, and a Service that
// leads to another pod.
func (g *throughGateway) weighted() {
	g.Helper()
	for _, s := range g.leaders {
		s.set(load{queue: 50, cache: 0.5})
	}
	g.leaders["llm-worker-2-0"].set(load{queue: 40, cache: 0.5})
	g.leadersOnly()
	// One of them is missed once in 2^99 times.
	want := []string{"200 " + g.leaders["llm-worker-0-0"].address, "200 " + g.leaders["llm-worker-2-0"].address}
	slices.Sort(want)
	if diff := cmp.Diff(want, g.asked(llm, "/weighted", 100)); diff != "" {
		g.Errorf("the weighted rule: -want, +got:\n%s", diff)
	}
}

// overAnother sends requests as the fleet route does: to the address that the Gateway has in its
// status.
func (g *throughGateway) overAnother() {
	g.Helper()
	o := g.n.list(gatewayKind)[0]
	addresses, _, _ := unstructured.NestedSlice(o.Object, "status", "addresses")
	ip := addresses[0].(map[string]any)["value"]
	g.n.apply(`{apiVersion: v1, kind: Service, metadata: {name: entrypoint}, spec: {ports: [{name: http, port: 80}]}}`)
	g.n.apply(fmt.Sprintf(`{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: entrypoint, labels: {kubernetes.io/service-name: entrypoint}},
		addressType: IPv4, ports: [{name: http, port: 80, protocol: TCP}], endpoints: [{addresses: [%s], conditions: {ready: true}}]}`, ip))
	g.n.apply(fmt.Sprintf(`{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: over-another}, spec: {parentRefs: [{name: %s}], hostnames: [fleet.example.com],
		rules: [{filters: [{type: URLRewrite, urlRewrite: {hostname: %s}}], backendRefs: [{name: entrypoint, port: 80}]}]}}`, o.GetName(), llm))
	want := "200 " + g.leaders["llm-worker-2-0"].address
	g.n.until("requests pass two gateways", func(context.Context) error {
		if got := g.ask("fleet.example.com", completions); got != want {
			return fmt.Errorf("the answer is %q, want %q", got, want)
		}
		return nil
	})
}

// withoutPicker stops the endpoint picker, and starts another one.
func (g *throughGateway) withoutPicker() {
	g.Helper()
	g.Stop()
	if got := g.asked(llm, completions, 5); !slices.Equal(got, []string{"500"}) {
		g.Errorf("without an endpoint picker, closed: %q, want 500 only", got)
	}
	g.n.serve("llm", routed("FailOpen"))
	g.n.until("the gateway sends requests to all leaders, and nobody else", func(context.Context) error {
		if diff := cmp.Diff(g.answers(), g.asked(llm, completions, 60)); diff != "" {
			return fmt.Errorf("-want, +got:\n%s", diff)
		}
		return nil
	})
	const broken = "llm-worker-1-0"
	at := types.NamespacedName{Namespace: g.n.namespace, Name: broken}
	if err := g.c.SetPod(g.Context(), at, cluster.Running(), 0, false); err != nil {
		g.Fatal(err)
	}
	g.n.until("the gateway sends requests to leaders that are ready", func(context.Context) error {
		if diff := cmp.Diff(g.answers(broken), g.asked(llm, completions, 60)); diff != "" {
			return fmt.Errorf("-want, +got:\n%s", diff)
		}
		return nil
	})
	if err := g.c.SetPod(g.Context(), at, cluster.Running(), 0, true); err != nil {
		g.Fatal(err)
	}
	again, err := g.c.RunPicker(g.Context(), g.n.namespace, "llm-epp")
	if err != nil {
		g.Fatal(err)
	}
	g.Cleanup(again.Stop)
	g.Picker = again
	g.use(again)
	g.leadersOnly()
	g.picked()
}

// answerThroughGateway asks the only Gateway of a namespace for a completion of a chat, and returns
// who served it and what was answered.
func answerThroughGateway(t *testing.T, c *cluster.Cluster, namespace, host string) (by, text string) {
	t.Helper()
	at := ""
	for _, o := range list(t, c, gatewayKind, namespace) {
		at = c.GatewayAddress(namespace, o.GetName())
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+at+"/v1/chat/completions",
		strings.NewReader(`{"model":"Qwen/Qwen3-8B","max_tokens":4,"messages":[{"role":"user","content":"Hello"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host
	r.Header.Set("Content-Type", "application/json")
	rsp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer rsp.Body.Close()
	b, err := io.ReadAll(rsp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return rsp.Header.Get("x-served-by"), rsp.Status + " " + string(b)
}

// answer says who answers: as a whole, or in parts, of which the last one waits until the test has
// the first.
func (s *modelServer) answer(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if !strings.Contains(string(body), `"stream":true`) {
		_, _ = io.WriteString(w, s.address)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, "data: %s\n", s.address)
	_ = http.NewResponseController(w).Flush()
	select {
	case <-s.next:
		fmt.Fprint(w, "data: [DONE]\n")
	case <-r.Context().Done():
	}
}
