package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"strconv"

	"k8s.io/utils/ptr"
	inference "sigs.k8s.io/gateway-api-inference-extension/api/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// hostnameKind is the kind of a backend that is the host of a ServiceEntry.
const hostnameKind = "Hostname"

// A problem is an error with the status of the response that clients get for it.
type problem struct {
	status int
	error
}

func (p *problem) Unwrap() error { return p.error }

// serve answers a request to a port of a Gateway.
func (p *dataPlane) serve(w http.ResponseWriter, r *http.Request, gateway, scheme string, port gatewayv1.PortNumber) {
	c := p.config.Load()
	var l *listener
	if g := c.gateways[gateway]; g != nil {
		ofPort := slices.DeleteFunc(slices.Clone(g.listeners), func(l *listener) bool { return l.Port != port })
		l = findListener(ofPort, hostOf(r))
	}
	var found *candidate
	if l != nil {
		found = l.find(hostOf(r), r)
	}
	if found == nil {
		http.Error(w, "no route matches", http.StatusNotFound)
		return
	}
	if to, status, ok := redirect(r, found.rule.Filters, &found.match, scheme, int(port)); ok {
		filterResponse(w.Header(), found.rule.Filters)
		w.Header().Set("Location", to)
		w.WriteHeader(status)
		return
	}
	ctx, cancel := found.rule.deadline(r.Context())
	defer cancel()
	f := &forwarding{plane: p, config: c, rule: found.rule, match: &found.match, request: r.Clone(ctx), retries: c.gateways[gateway].retries}
	if err := f.forward(w); err != nil { //nolint:contextcheck // The request has the context.
		f.fail(w, nil, err)
	}
}

// deadline ends a request after the time-outs of the rule. Both mean the same here: a request is
// tried once.
func (r *rule) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	switch {
	case r.request == 0 && r.backendRequest == 0:
		return context.WithCancel(ctx)
	case r.request == 0 || r.backendRequest != 0 && r.backendRequest < r.request:
		return context.WithTimeout(ctx, r.backendRequest)
	}
	return context.WithTimeout(ctx, r.request)
}

// A forwarding is one request on its way.
type forwarding struct {
	plane  *dataPlane
	config *gatewayConfig
	rule   *rule
	match  *routeMatch
	// retries are how often another endpoint is tried in place of one that cannot be connected.
	retries int
	// request is a copy, which filters and the endpoint picker change.
	request *http.Request
	// filters of the rule and of the backend.
	filters []gatewayv1.HTTPRouteFilter
	// dialing has the addresses to try.
	dialing dialing
	// session with the endpoint picker, if there is one.
	session *session
}

// forward chooses a backend and sends the request there.
func (f *forwarding) forward(w http.ResponseWriter) error {
	ref := f.plane.choose(f.rule.BackendRefs)
	if ref == nil {
		return &problem{http.StatusInternalServerError, errors.New("the rule has no backend")}
	}
	f.filters = append(slices.Clone(f.rule.Filters), ref.Filters...)
	if err := supported(f.filters); err != nil {
		return &problem{http.StatusInternalServerError, err}
	}
	filterRequest(f.request, f.filters, f.match)
	var err error
	var to backend
	namespace := string(ptr.Deref(ref.Namespace, gatewayv1.Namespace(f.rule.namespace)))
	switch kind := string(ptr.Deref(ref.Kind, "Service")); kind {
	case pools.name:
		to, err = f.pick(f.config.pools[namespace+"/"+string(ref.Name)])
		if f.session != nil {
			defer f.session.end()
		}
	case services.name:
		to, err = f.plane.endpoints.service(namespace, string(ref.Name), ptr.Deref(ref.Port, 0))
		f.any(to.addresses)
		f.addRetries()
	case hostnameKind:
		for _, a := range f.config.hosts[string(ref.Name)] {
			f.dialing.addresses = append(f.dialing.addresses, net.JoinHostPort(a, strconv.Itoa(int(ptr.Deref(ref.Port, 0)))))
		}
		f.any(f.dialing.addresses)
	default:
		err = fmt.Errorf("%w: kind %s is not known here", errNoBackend, kind)
	}
	switch {
	case errors.Is(err, errNoBackend):
		return &problem{http.StatusInternalServerError, err}
	case err != nil:
		return err
	case len(f.dialing.addresses) == 0:
		return &problem{http.StatusServiceUnavailable, fmt.Errorf("no endpoint of %s is ready", ref.Name)}
	}
	f.send(w, to.h2c)
	return nil
}

// any takes one of several addresses.
func (f *forwarding) any(all []string) {
	if len(all) > 0 {
		f.dialing.addresses = []string{all[f.plane.random(int64(len(all)))]}
	}
}

// choose picks a backend by weight, or none.
func (p *dataPlane) choose(all []gatewayv1.HTTPBackendRef) *gatewayv1.HTTPBackendRef {
	total := int64(0)
	for i := range all {
		total += int64(ptr.Deref(all[i].Weight, 1))
	}
	if total == 0 {
		return nil
	}
	at := p.random(total)
	for i := range all {
		if at -= int64(ptr.Deref(all[i].Weight, 1)); at < 0 {
			return &all[i]
		}
	}
	return nil
}

// pick asks the endpoint picker of a pool. Where that fails, the pool says what happens.
func (f *forwarding) pick(pool *inference.InferencePool) (backend, error) {
	if pool == nil || pool.Spec.EndpointPickerRef == nil {
		return backend{}, fmt.Errorf("%w: no InferencePool with an endpoint picker", errNoBackend)
	}
	b := backend{h2c: pool.Spec.AppProtocol == h2c}
	body, err := readBody(f.request)
	if err != nil {
		return b, &problem{http.StatusBadRequest, err}
	}
	open := pool.Spec.EndpointPickerRef.FailureMode == inference.EndpointPickerFailOpen
	pickers, err := f.plane.endpoints.picker(pool)
	if err == nil && len(pickers) == 0 {
		err = errors.New("no endpoint picker is ready")
	}
	if err == nil {
		at := pickers[f.plane.random(int64(len(pickers)))]
		f.session, f.dialing.addresses, err = f.plane.pickers.ask(f.request, at, body, open)
	}
	if immediate := (*immediate)(nil); err == nil || errors.As(err, &immediate) {
		return b, err
	}
	f.plane.log.Printf("endpoint picker of %s/%s: %v", pool.Namespace, pool.Name, err)
	if !open {
		return b, &problem{http.StatusInternalServerError, fmt.Errorf("the endpoint picker failed: %w", err)}
	}
	setBody(f.request, body)
	ready, err := f.plane.endpoints.pool(pool)
	f.any(ready)
	return b, err
}

// send sends the request, and the response back, which the endpoint picker may change.
func (f *forwarding) send(w http.ResponseWriter, h2c bool) {
	transport := f.plane.h1
	if h2c {
		transport = f.plane.h2c
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = "http", f.dialing.addresses[0]
			r.Out.Host = r.In.Host
			r.Out.Header["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
			r.SetXForwarded()
		},
		Transport: transport,
		// What comes in pieces is passed on in pieces.
		FlushInterval: -1,
		ErrorLog:      f.plane.log,
		ErrorHandler:  f.fail,
		ModifyResponse: func(r *http.Response) error {
			if f.session != nil {
				if err := f.session.respond(r, f.dialing.connected); err != nil {
					return err
				}
			}
			filterResponse(r.Header, f.filters)
			r.Header.Add("Via", fmt.Sprintf("%d.%d %s", r.ProtoMajor, r.ProtoMinor, f.plane.name))
			return nil
		},
	}
	proxy.ServeHTTP(w, f.request.WithContext(context.WithValue(f.request.Context(), dialingKey{}, &f.dialing)))
}

// fail answers in place of a backend.
func (f *forwarding) fail(w http.ResponseWriter, _ *http.Request, err error) {
	if immediate := (*immediate)(nil); errors.As(err, &immediate) {
		immediate.write(w)
		return
	}
	status := http.StatusBadGateway
	p := &problem{}
	switch {
	case errors.As(err, &p):
		status = p.status
	case errors.Is(f.request.Context().Err(), context.DeadlineExceeded):
		status = http.StatusGatewayTimeout
	}
	if !errors.Is(err, context.Canceled) { // The client has gone.
		f.plane.log.Printf("%s %s%s: %d: %v", f.request.Method, f.request.Host, f.request.URL.Path, status, err)
	}
	http.Error(w, err.Error(), status)
}

// dialing has the addresses of a request, which are tried in order, and the one that was
// connected.
type dialing struct {
	addresses []string
	connected string
}

type dialingKey struct{}

// transports for HTTP/1.1 and for HTTP/2 without TLS. Each request has a connection of its own:
// one that is reused may be closed by its other end while a request is being written.
func (p *dataPlane) transports() (h1, h2c http.RoundTripper) {
	transport := func() *http.Transport {
		return &http.Transport{DialContext: p.dial, DisableKeepAlives: true, DisableCompression: true, Protocols: &http.Protocols{}}
	}
	first, second := transport(), transport()
	first.Protocols.SetHTTP1(true)
	second.Protocols.SetUnencryptedHTTP2(true)
	return first, second
}

func (p *dataPlane) dial(ctx context.Context, _, to string) (net.Conn, error) {
	of, ok := ctx.Value(dialingKey{}).(*dialing)
	if !ok {
		return nil, fmt.Errorf("nobody says where %s is", to)
	}
	var failed error
	for _, a := range of.addresses {
		conn, err := p.endpoints.dial(ctx, a)
		if err == nil {
			of.connected = a
			return conn, nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, &problem{http.StatusServiceUnavailable, failed}
}
