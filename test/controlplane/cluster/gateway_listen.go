package cluster

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/util/cert"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// A dataPlane listens for the Gateways of a cluster, and passes requests on.
type dataPlane struct {
	endpoints *endpoints
	pickers   *pickers
	// h1 and h2c connect with backends of either protocol.
	h1, h2c http.RoundTripper
	// name of the cluster, by which responses name it in Via.
	name string
	// gate is passed by all connections with listeners, if there is one.
	gate *gate
	// listenIP is where the n-th Gateway listens, from 1.
	listenIP func(n int) string
	// random returns a number from 0 to below n.
	random func(n int64) int64
	log    *log.Logger
	config atomic.Pointer[gatewayConfig]

	// stopping ends servers that still finish requests.
	stopping context.Context //nolint:containedctx // It lives as long as the cluster.
	stop     context.CancelFunc

	mu sync.Mutex
	// numbers of the Gateways, by their names; last is the one that was given last.
	numbers map[string]int
	last    int
	// servers by where they listen.
	servers map[string]*http.Server
	places  map[string]*listening
}

func newDataPlane(e *endpoints, listenIP func(int) string, to *log.Logger) *dataPlane {
	p := &dataPlane{
		endpoints: e, pickers: newPickers(e.dial),
		listenIP: listenIP, random: rand.Int64N, log: to,
		numbers: map[string]int{}, servers: map[string]*http.Server{},
	}
	p.h1, p.h2c = p.transports()
	p.stopping, p.stop = context.WithCancel(context.Background())
	p.config.Store(&gatewayConfig{})
	return p
}

// listening is where a Gateway listens.
type listening struct {
	number int
	// at is in the order of the listeners.
	at []listenerAt
	// failures are the errors of listeners that do not listen, by their names.
	failures map[string]error
}

type listenerAt struct{ name, address string }

func (l *listening) failure(name string) error { return l.failures[name] }

func (l *listening) String() string {
	var all []string
	for _, a := range l.at {
		if !slices.Contains(all, a.address) {
			all = append(all, a.address)
		}
	}
	return strings.Join(all, ", ")
}

var errProtocol = errors.New("only HTTP and HTTPS are served")

// configure makes the data plane go by something else, and returns where each Gateway listens. A
// listener that goes finishes its requests.
func (p *dataPlane) configure(c *gatewayConfig) map[string]*listening {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.config.Store(c)
	places, used := map[string]*listening{}, map[string]bool{}
	for name := range p.numbers {
		if c.gateways[name] == nil {
			delete(p.numbers, name)
		}
	}
	for _, name := range c.oldestFirst() {
		at := &listening{number: p.number(name), failures: map[string]error{}}
		places[name] = at
		for _, l := range c.gateways[name].listeners {
			address := net.JoinHostPort(p.listenIP(at.number), strconv.Itoa(listenPort(int(l.Port))))
			if err := p.listen(address, name, l); err != nil {
				at.failures[string(l.Name)] = err
				continue
			}
			used[address] = true
			at.at = append(at.at, listenerAt{string(l.Name), address})
		}
	}
	for address, s := range p.servers {
		if !used[address] {
			delete(p.servers, address)
			go func() { _ = errors.Join(s.Shutdown(p.stopping), s.Close()) }()
		}
	}
	p.places = places
	return places
}

func (c *gatewayConfig) oldestFirst() []string {
	var names []string
	for name := range c.gateways {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(c.gateways[a].created.Compare(c.gateways[b].created), cmp.Compare(a, b))
	})
	return names
}

// number of a Gateway. One that is free is given again as late as possible, because
// others may still send to its address.
func (p *dataPlane) number(name string) int {
	if n := p.numbers[name]; n != 0 {
		return n
	}
	taken := map[int]bool{}
	for _, n := range p.numbers {
		taken[n] = true
	}
	for range maxGateways {
		p.last = p.last%maxGateways + 1
		if !taken[p.last] {
			break
		}
	}
	p.numbers[name] = p.last
	return p.last
}

// listen makes sure that there is a server for a listener. Listeners of one port share one.
func (p *dataPlane) listen(address, gateway string, l *listener) error {
	if l.Protocol != gatewayv1.HTTPProtocolType && l.Protocol != gatewayv1.HTTPSProtocolType {
		return fmt.Errorf("%w, not %s", errProtocol, l.Protocol)
	}
	if p.servers[address] != nil {
		return nil
	}
	at, err := net.Listen("tcp", address) //nolint:noctx // It returns at once.
	if err != nil {
		return err
	}
	at = p.gate.guard(at)
	scheme := "http"
	s := &http.Server{ReadHeaderTimeout: patience, ErrorLog: p.log, Protocols: &http.Protocols{}}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	if l.Protocol == gatewayv1.HTTPSProtocolType {
		own, err := certificate()
		if err != nil {
			_ = at.Close()
			return err
		}
		scheme = "https"
		s.Protocols.SetHTTP2(true)
		s.TLSConfig = &tls.Config{Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
		at = tls.NewListener(at, s.TLSConfig)
	}
	port := l.Port
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.serve(w, r, gateway, scheme, port) })
	p.servers[address] = s
	go func() {
		if err := s.Serve(at); !errors.Is(err, http.ErrServerClosed) {
			p.log.Printf("%s: %v", address, err)
		}
	}()
	return nil
}

// certificate of all HTTPS listeners.
var certificate = sync.OnceValues(func() (tls.Certificate, error) {
	crt, key, err := cert.GenerateSelfSignedCertKey("stand-in-gateway", nil, nil)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(crt, key)
})

// listening is where a Gateway listens, in the order of its listeners.
func (p *dataPlane) listening(name string) []listenerAt {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.places[name] == nil {
		return nil
	}
	return p.places[name].at
}

// close ends everything, and requests that are under way.
func (p *dataPlane) close() {
	p.stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.servers {
		_ = s.Close()
	}
	p.servers = map[string]*http.Server{}
	p.pickers.close()
}
