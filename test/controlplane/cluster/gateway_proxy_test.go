package cluster

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/yaml"
)

// A testPlane is a data plane with one Gateway, gw, whose listener is at a free port.
type testPlane struct {
	*dataPlane
	*testing.T

	port int
	pods cache.Indexer

	mu sync.Mutex
	// at is where to connect for an address.
	at map[string]string
}

// plane starts a data plane that knows these pods, Services and EndpointSlices.
func plane(t *testing.T, objects ...string) *testPlane {
	t.Helper()
	indexer := func() cache.Indexer {
		return cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	}
	free, err := ports(1)
	if err != nil {
		t.Fatal(err)
	}
	p := &testPlane{T: t, port: free[0], pods: indexer(), at: map[string]string{
		// Nobody listens there.
		"10.0.0.5:9": "127.0.0.1:1", "10.0.0.7:8000": "127.0.0.1:1",
	}}
	services, slices := indexer(), indexer()
	for _, o := range objects {
		switch {
		case strings.Contains(o, "kind: Pod"):
			add[corev1.Pod](t, p.pods, o)
		case strings.Contains(o, "kind: Service"):
			add[corev1.Service](t, services, o)
		default:
			add[discoveryv1.EndpointSlice](t, slices, o)
		}
	}
	p.dataPlane = newDataPlane(&endpoints{
		pods: corelisters.NewPodLister(p.pods), services: corelisters.NewServiceLister(services), slices: discoverylisters.NewEndpointSliceLister(slices),
		resolve: p.resolve,
	}, func(int) string { return loopback }, log.New(t.Output(), "", 0))
	p.name = "here"
	// The same each time.
	source, mu := mathrand.New(mathrand.NewPCG(1, 2)), sync.Mutex{}
	p.random = func(n int64) int64 {
		mu.Lock()
		defer mu.Unlock()
		return source.Int64N(n)
	}
	t.Cleanup(p.close)
	return p
}

func add[T any](t *testing.T, to cache.Indexer, doc string) {
	t.Helper()
	o := new(T)
	if err := yaml.UnmarshalStrict([]byte(doc), o); err != nil {
		t.Fatalf("%v in %s", err, doc)
	}
	if err := to.Add(o); err != nil {
		t.Fatal(err)
	}
}

func (p *testPlane) resolve(address string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := p.at[address]; at != "" {
		return at
	}
	return address
}

// backend serves at an address.
func (p *testPlane) backend(address string, h http.HandlerFunc) {
	s := httptest.NewUnstartedServer(h)
	s.Config.Protocols = &http.Protocols{}
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	p.Cleanup(s.Close)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at[address] = s.Listener.Addr().String()
}

// named serves its name.
func (p *testPlane) named(addresses ...string) {
	for _, a := range addresses {
		p.backend(a, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, a) })
	}
}

// rules configures the rules of one route, and what else there is.
func (p *testPlane) rules(rules string, others ...string) {
	p.Helper()
	gateway := fmt.Sprintf("{kind: Gateway, metadata: {name: gw}, spec: {listeners: [{name: a, protocol: HTTP, port: %d}]}}", p.port)
	docs := append([]string{gateway, aRoute("r", "2026-01-01T00:00:00Z", "rules: "+rules)}, others...)
	for name, at := range p.configure(configOf(seen(p.T, docs...))) {
		for _, err := range at.failures {
			p.Fatalf("%s: %v", name, err)
		}
	}
}

func (p *testPlane) url(path string) string { return "http://" + address(p.port) + path }

// get returns the status and body of a response.
func (p *testPlane) get(path string) string {
	p.Helper()
	return p.do(p.request(http.MethodGet, path, nil))
}

func (p *testPlane) request(method, path string, body io.Reader) *http.Request {
	p.Helper()
	r, err := http.NewRequestWithContext(p.Context(), method, p.url(path), body)
	if err != nil {
		p.Fatal(err)
	}
	return r
}

var ownConnections = &http.Client{
	Transport:     &http.Transport{DisableKeepAlives: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

func (p *testPlane) do(r *http.Request) string {
	p.Helper()
	rsp, err := ownConnections.Do(r)
	if err != nil {
		p.Error(err)
		return ""
	}
	defer rsp.Body.Close()
	b, err := io.ReadAll(rsp.Body)
	if err != nil {
		p.Error(err)
	}
	return fmt.Sprint(rsp.StatusCode, " ", strings.TrimSpace(string(b)))
}

// counts returns how often requests got each answer.
func (p *testPlane) counts(path string, requests int) map[string]bool {
	p.Helper()
	got := map[string]bool{}
	for range requests {
		got[p.get(path)] = true
	}
	return got
}

// pod is a pod with labels app: its name up to a dash.
func pod(name, ip, ready, more string) string {
	app, _, _ := strings.Cut(name, "-")
	return fmt.Sprintf(`{kind: Pod, metadata: {name: %s, namespace: default, labels: {app: %s}%s}, spec: {containers: [{name: c, ports: [{name: http, containerPort: 8000}]}]},
		status: {podIP: %s, conditions: [{type: Ready, status: "%s"}]}}`, name, app, more, ip, ready)
}

func TestBackends(t *testing.T) {
	t.Parallel()
	p := plane(t,
		`{kind: Service, metadata: {name: pods, namespace: default}, spec: {selector: {app: a}, ports: [{port: 80, targetPort: http}]}}`,
		pod("a-1", "10.0.0.1", "True", ""), pod("a-2", "10.0.0.2", "True", ""), pod("a-3", "10.0.0.3", "False", ""),
		pod("a-4", "10.0.0.4", "True", `, deletionTimestamp: "2026-01-01T00:00:00Z"`), pod("b-1", "10.0.0.5", "True", ""),
		`{kind: Service, metadata: {name: down, namespace: default}, spec: {selector: {app: b}, ports: [{port: 80, targetPort: 9}]}}`,
		`{kind: Service, metadata: {name: empty, namespace: default}, spec: {selector: {app: none}, ports: [{port: 80}]}}`,
		`{kind: Service, metadata: {name: slices, namespace: default}, spec: {ports: [{name: http, port: 80}]}}`,
		`{kind: EndpointSlice, metadata: {name: s-1, namespace: default, labels: {kubernetes.io/service-name: slices}}, addressType: IPv4, ports: [{name: http, port: 81}],
			endpoints: [{addresses: [198.18.7.1], conditions: {ready: true}}, {addresses: [198.18.7.2], conditions: {ready: false}}, {addresses: [198.18.7.3]}]}`,
		`{kind: EndpointSlice, metadata: {name: s-2, namespace: default, labels: {kubernetes.io/service-name: slices}}, addressType: FQDN, ports: [{name: http, port: 82}, {name: other, port: 1}],
			endpoints: [{addresses: [lb.example.com]}]}`,
		`{kind: Service, metadata: {name: external, namespace: default}, spec: {type: ExternalName, externalName: lb.example.com, ports: [{port: 83}]}}`,
		`{kind: Service, metadata: {name: h2, namespace: default}, spec: {selector: {app: a}, ports: [{port: 80, targetPort: 8080, appProtocol: kubernetes.io/h2c}]}}`,
	)
	p.named("10.0.0.1:8000", "10.0.0.2:8000", "10.0.0.3:8000", "10.0.0.4:8000", "198.18.7.1:81", "198.18.7.2:81", "198.18.7.3:81", "lb.example.com:82", "lb.example.com:83", "entry.example.com:84")
	for _, a := range []string{"10.0.0.1:8080", "10.0.0.2:8080"} {
		p.backend(a, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) })
	}
	var rules []string
	for path, ref := range map[string]string{
		"/pods": "name: pods, port: 80", "/down": "name: down, port: 80", "/empty": "name: empty, port: 80", "/slices": "name: slices, port: 80",
		"/external": "name: external, port: 83", "/missing": "name: missing, port: 80", "/port": "name: pods, port: 81", "/namespace": "name: pods, port: 80, namespace: other",
		"/entry": "name: e.internal, port: 84, group: networking.istio.io, kind: Hostname", "/noentry": "name: f.internal, port: 84, group: networking.istio.io, kind: Hostname",
		"/kind": "name: a, kind: Bucket", "/zero": "name: pods, port: 80, weight: 0", "/h2": "name: h2, port: 80", "/pool": "name: p, kind: InferencePool",
		"/away": "name: away.internal, port: 84, group: networking.istio.io, kind: Hostname", "/filter": "name: pods, port: 80, filters: [{type: ExtensionRef}]",
	} {
		rules = append(rules, fmt.Sprintf("{matches: [{path: {value: %s}}], backendRefs: [{%s}]}", path, ref))
	}
	p.rules("["+strings.Join(append(rules, "{matches: [{path: {value: /none}}]}"), ", ")+"]",
		`{kind: ServiceEntry, metadata: {name: e}, spec: {hosts: [e.internal], endpoints: [{address: entry.example.com}]}}`,
		`{kind: ServiceEntry, metadata: {name: away}, spec: {hosts: [away.internal], endpoints: [{address: 192.0.2.1}]}}`)
	for path, want := range map[string][]string{
		"/pods": {"200 10.0.0.1:8000", "200 10.0.0.2:8000"}, "/slices": {"200 198.18.7.1:81", "200 198.18.7.3:81", "200 lb.example.com:82"},
		"/external": {"200 lb.example.com:83"}, "/entry": {"200 entry.example.com:84"}, "/h2": {"200 HTTP/2.0"}, "/": {"404 no route matches"},
	} {
		got := p.counts(path, 40)
		w := map[string]bool{}
		for _, a := range want {
			w[a] = true
		}
		if diff := cmp.Diff(w, got); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", path, diff)
		}
	}
	for path, want := range map[string]string{
		"/down": "503", "/empty": "503", "/missing": "500", "/port": "500", "/namespace": "500", "/noentry": "503", "/kind": "500", "/zero": "500",
		"/none": "500", "/pool": "500", "/away": "503", "/filter": "500",
	} {
		if got := p.get(path); !strings.HasPrefix(got, want+" ") {
			t.Errorf("%s answers %q, want %s", path, got, want)
		}
	}
	// A pod that begins to terminate gets no new request.
	add[corev1.Pod](t, p.pods, pod("a-1", "10.0.0.1", "True", `, deletionTimestamp: "2026-01-01T00:00:00Z"`))
	if diff := cmp.Diff(map[string]bool{"200 10.0.0.2:8000": true}, p.counts("/pods", 20)); diff != "" {
		t.Errorf("after a pod terminates: -want, +got:\n%s", diff)
	}
}

// oneService is a Service with one pod, at 10.0.0.1:8000.
func oneService(t *testing.T) *testPlane {
	t.Helper()
	return plane(t, `{kind: Service, metadata: {name: a, namespace: default}, spec: {selector: {app: a}, ports: [{port: 80, targetPort: 8000}]}}`, pod("a-1", "10.0.0.1", "True", ""))
}

func TestForwarding(t *testing.T) {
	t.Parallel()
	p := oneService(t)
	p.backend("10.0.0.1:8000", func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Answer", "backend")
		w.Header().Set("Via", "1.1 cluster-1")
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprintln(w, r.Method, r.Host, r.URL.RequestURI(), string(b))
		for _, k := range []string{"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Rule", "X-Backend", "X-Client"} {
			fmt.Fprintln(w, k, r.Header.Get(k))
		}
	})
	p.rules(`[{matches: [{path: {value: /v1}}],
		filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: X-Rule, value: r}]}},
			{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /v2}}},
			{type: ResponseHeaderModifier, responseHeaderModifier: {add: [{name: X-Answer, value: rule}]}}],
		backendRefs: [{name: a, port: 80, filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: X-Backend, value: b}]}}]}]},
		{matches: [{path: {value: /moved}}], filters: [{type: RequestRedirect, requestRedirect: {hostname: b.example.com, port: 80}}]}]`)
	r := p.request(http.MethodPost, "/v1/completions?a=b", strings.NewReader("body"))
	r.Host = "model.example.com"
	r.Header.Set("X-Client", "c")
	r.Header.Set("X-Forwarded-For", "192.0.2.1")
	rsp, err := ownConnections.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer rsp.Body.Close()
	b, err := io.ReadAll(rsp.Body)
	if err != nil {
		t.Fatal(err)
	}
	want := "POST model.example.com /v2/completions?a=b body\nX-Forwarded-For 192.0.2.1, 127.0.0.1\nX-Forwarded-Host model.example.com\nX-Forwarded-Proto http\n" +
		"X-Rule r\nX-Backend b\nX-Client c\n"
	if diff := cmp.Diff(want, string(b)); diff != "" {
		t.Errorf("request: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"backend", "rule"}, rsp.Header["X-Answer"]); diff != "" || rsp.StatusCode != http.StatusAccepted {
		t.Errorf("response with %d: -want, +got:\n%s", rsp.StatusCode, diff)
	}
	if diff := cmp.Diff([]string{"1.1 cluster-1", "1.1 here"}, rsp.Header["Via"]); diff != "" {
		t.Errorf("gateways of the response: -want, +got:\n%s", diff)
	}
	moved, err := ownConnections.Do(p.request(http.MethodGet, "/moved/x", nil))
	if err != nil {
		t.Fatal(err)
	}
	defer moved.Body.Close()
	if got := moved.Header.Get("Location"); moved.StatusCode != http.StatusFound || got != "http://b.example.com/moved/x" {
		t.Errorf("redirect: %d to %q", moved.StatusCode, got)
	}
}

// streams holds that each part of a response passes before the next one is there, changed or not, and
// that a client that goes ends what the backend does for it. Requests go to 10.0.0.1:8000.
func (p *testPlane) streams(change func(string) string) {
	p.Helper()
	next, gone := make(chan bool), make(chan bool)
	p.backend("10.0.0.1:8000", func(w http.ResponseWriter, r *http.Request) {
		for i := range 3 {
			fmt.Fprintf(w, "data: %d\n", i)
			_ = http.NewResponseController(w).Flush()
			<-next
		}
		<-r.Context().Done()
		close(gone)
	})
	ctx, cancel := context.WithCancel(p.Context())
	defer cancel()
	rsp, err := ownConnections.Do(p.request(http.MethodGet, "/", nil).WithContext(ctx))
	if err != nil {
		p.Fatal(err)
	}
	defer rsp.Body.Close()
	lines := bufio.NewReader(rsp.Body)
	for i := range 3 {
		if line, err := lines.ReadString('\n'); err != nil || line != change(fmt.Sprintf("data: %d\n", i)) {
			p.Fatalf("part %d is %q: %v", i, line, err)
		}
		next <- true
	}
	cancel()
	<-gone
}

func unchanged(s string) string { return s }

func TestStreaming(t *testing.T) {
	t.Parallel()
	p := oneService(t)
	p.rules(`[{backendRefs: [{name: a, port: 80}]}]`)
	p.streams(unchanged)
}

// TestGate holds that a gate that is shut ends requests from outside, and that none is answered until it
// is open again.
func TestGate(t *testing.T) {
	t.Parallel()
	p := oneService(t)
	p.gate = newGate()
	ended := make(chan bool)
	p.backend("10.0.0.1:8000", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/stream" {
			fmt.Fprintln(w, "data: 0")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			close(ended)
		}
	})
	p.rules(`[{backendRefs: [{name: a, port: 80}]}]`)
	stream, err := ownConnections.Do(p.request(http.MethodGet, "/stream", nil))
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	p.gate.shut()
	if b, err := io.ReadAll(stream.Body); err == nil || string(b) != "data: 0\n" {
		t.Errorf("the stream under way ends with %v after %q, want an error", err, b)
	}
	<-ended
	if rsp, err := ownConnections.Do(p.request(http.MethodGet, "/", nil)); err == nil {
		_ = rsp.Body.Close()
		t.Errorf("a request is answered with %s while the gate is shut", rsp.Status)
	}
	p.gate.open()
	if got := p.get("/"); got != "200 " {
		t.Errorf("once the gate is open again, a request is answered with %q", got)
	}
}

// TestTimeouts holds that a time-out of the rule ends a request, and a backend's answer until then
// is cut.
func TestTimeouts(t *testing.T) {
	t.Parallel()
	p := oneService(t)
	p.backend("10.0.0.1:8000", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	p.rules(`[{matches: [{path: {value: /request}}], timeouts: {request: 50ms}, backendRefs: [{name: a, port: 80}]},
		{matches: [{path: {value: /backend}}], timeouts: {request: 0s, backendRequest: 50ms}, backendRefs: [{name: a, port: 80}]}]`)
	for _, path := range []string{"/request", "/backend"} {
		if got := p.get(path); !strings.HasPrefix(got, "504 ") {
			t.Errorf("%s answers %q, want 504", path, got)
		}
	}
}

// TestReconfiguration holds that requests that are under way finish, whatever changes, and that new
// ones go by what is new.
func TestReconfiguration(t *testing.T) {
	t.Parallel()
	p := oneService(t)
	arrived, answer := make(chan bool), make(chan bool)
	p.backend("10.0.0.1:8000", func(w http.ResponseWriter, _ *http.Request) {
		arrived <- true
		<-answer
		_, _ = io.WriteString(w, "old")
	})
	p.rules(`[{backendRefs: [{name: a, port: 80}]}]`)
	got := make(chan string, 1)
	under := func() {
		r := p.request(http.MethodGet, "/", nil)
		go func() { got <- p.do(r) }()
		<-arrived
	}
	under()
	p.rules(`[{filters: [{type: RequestRedirect, requestRedirect: {statusCode: 301}}]}]`)
	if now := p.get("/"); now != "301 " {
		t.Errorf("a new request is answered with %q", now)
	}
	answer <- true
	if old := <-got; old != "200 old" {
		t.Errorf("the request under way is answered with %q", old)
	}
	p.rules(`[{backendRefs: [{name: a, port: 80}]}]`)
	under()
	p.configure(configOf(seen(t)))
	// The server stops to listen in the background.
	for {
		conn, err := net.Dial("tcp", address(p.port)) //nolint:noctx // It returns at once.
		if err != nil {
			break
		}
		_ = conn.Close()
	}
	answer <- true
	if old := <-got; old != "200 old" {
		t.Errorf("the request under way is answered with %q when its listener goes", old)
	}
}

// TestListeners tells what a Gateway listens for, and where.
func TestListeners(t *testing.T) {
	t.Parallel()
	free, err := ports(2)
	if err != nil {
		t.Fatal(err)
	}
	p := oneService(t)
	p.backend("10.0.0.1:8000", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("X-Forwarded-Proto"))
	})
	gateway := fmt.Sprintf(`{kind: Gateway, metadata: {name: gw}, spec: {listeners: [{name: web, protocol: HTTP, port: %d}, {name: also, protocol: HTTP, hostname: a.example.com, port: %d},
		{name: tls, protocol: HTTPS, port: %d}, {name: tcp, protocol: TCP, port: 9}]}}`, free[0], free[0], free[1])
	at := p.configure(configOf(seen(t, gateway, aRoute("r", "2026-01-01T00:00:00Z", `rules: [{backendRefs: [{name: a, port: 80}]}]`))))["default/gw"]
	wantAt := []listenerAt{{"web", address(free[0])}, {"also", address(free[0])}, {"tls", address(free[1])}}
	if diff := cmp.Diff(wantAt, at.at, cmp.AllowUnexported(listenerAt{})); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if !errors.Is(at.failure("tcp"), errProtocol) || at.failure("web") != nil {
		t.Errorf("failures: %v", at.failures)
	}
	http2 := &http.Transport{Protocols: &http.Protocols{}}
	http2.Protocols.SetUnencryptedHTTP2(true)
	secure := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	for url, transport := range map[string]*http.Transport{
		"http://" + address(free[0]): {}, "http://" + address(free[0]) + "/2": http2, "https://" + address(free[1]): secure,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		rsp, err := (&http.Client{Transport: transport}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(rsp.Body)
		_ = rsp.Body.Close()
		transport.CloseIdleConnections()
		if want, _, _ := strings.Cut(url, ":"); err != nil || string(b) != want || (transport == http2) != (rsp.ProtoMajor == 2) {
			t.Errorf("%s answers %q by %s: %v", url, b, rsp.Proto, err)
		}
	}
}

// TestNumbers holds that a Gateway keeps its address, and that one of another that has gone is
// given to a new one only when there is no other.
func TestNumbers(t *testing.T) {
	t.Parallel()
	p := plane(t)
	at := func(names ...string) map[string]int {
		var docs []string
		for _, n := range names {
			docs = append(docs, fmt.Sprintf("{kind: Gateway, metadata: {name: %s, creationTimestamp: \"2026-01-01T00:00:00Z\"}, spec: {}}", n))
		}
		got := map[string]int{}
		for name, l := range p.configure(configOf(seen(t, docs...))) {
			got[strings.TrimPrefix(name, "default/")] = l.number
		}
		return got
	}
	for _, step := range []map[string]int{{"b": 1, "c": 2}, {"a": 3, "b": 1, "c": 2}, {"a": 3, "c": 2}, {"a": 3, "b": 4, "c": 2}} {
		var names []string
		for n := range maps.Keys(step) {
			names = append(names, n)
		}
		if diff := cmp.Diff(step, at(names...)); diff != "" {
			t.Fatalf("-want, +got:\n%s", diff)
		}
	}
	p.last = maxGateways
	if diff := cmp.Diff(map[string]int{"a": 3, "b": 4, "c": 2, "d": 1}, at("a", "b", "c", "d")); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestResolveGateway holds that what a status says leads to where a Gateway listens.
func TestResolveGateway(t *testing.T) {
	t.Parallel()
	n := &network{prefix: "127.42.0."}
	for n, want := range map[string]string{
		net.JoinHostPort(n.gatewayIP(1), "8080"): n.listenIP(1) + ":8080",
		net.JoinHostPort(n.gatewayIP(7), "9000"): "127.42.255.7:9000",
		"10.1.2.3:80":                            "10.1.2.3:80",
		"lb.example.com:80":                      "lb.example.com:80",
		"198.18.42.1":                            "198.18.42.1",
	} {
		if got := resolveGateway(n); got != want {
			t.Errorf("%s leads to %s, want %s", n, got, want)
		}
	}
}
