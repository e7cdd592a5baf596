package observe

import (
	"cmp"
	"net"
	"slices"
	"strconv"
	"strings"

	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

// routeObjects are the route and the Gateway of one cluster.
type routeObjects struct{ route, gateway *objectState }

func (e *routeObjects) note(s *objectState) {
	switch s.kind {
	case kindRoute:
		e.route = s
	case kindGateway:
		e.gateway = s
	}
}

// A routeSpec is the part of an HTTPRoute from which the URL follows.
type routeSpec struct {
	Spec struct {
		Hostnames  []string    `json:"hostnames"`
		ParentRefs []parentRef `json:"parentRefs"`
	} `json:"spec"`
}

// A parentRef names a gateway, as Gateway API's ParentReference does.
type parentRef struct {
	Group       string `json:"group"`
	Kind        string `json:"kind"`
	Namespace   string `json:"namespace"`
	Name        string `json:"name"`
	SectionName string `json:"sectionName"`
	Port        int32  `json:"port"`
}

// A gatewaySpec is the part of a Gateway from which the URL follows.
type gatewaySpec struct {
	Spec struct {
		Listeners []listener `json:"listeners"`
	} `json:"spec"`
}

type listener struct {
	Name     string               `json:"name"`
	Hostname string               `json:"hostname"`
	Port     int32                `json:"port"`
	Protocol gateway.ProtocolType `json:"protocol"`
}

// url is where clients that reach a cluster find the service there, or empty.
func (e *evaluator) url(c *plan.ClusterPlan) string {
	at := e.entrypoints[c.Target.Cluster]
	route := at.url()
	if c.Endpoint != nil {
		// When a router comes, clients are told of its route once that has a URL and leads to an endpoint picker. After that, a failure does
		// not send them back.
		service := urlOf(schemeOf(c.Endpoint.TLS), c.Base+"."+c.Target.Namespace+".svc", c.Endpoint.Port)
		if !c.Endpoint.Former || !c.Target.Remote() && saidURL.Text(e.state.req.Composite().Object) == service && (route == "" || !e.routed(c, at)) {
			return service
		}
	}
	return route
}

// url is where clients find the route, or empty.
func (e routeObjects) url() string {
	if e.route == nil {
		return ""
	}
	r := routeSpec{}
	_ = kube.Decode(e.route.desired.Resource, nil, &r) // The plan has checked it.
	l := e.listener(r.Spec.ParentRefs)
	host := firstHost(append(r.Spec.Hostnames, l.Hostname))
	if host == "" && l.Name != "" {
		host = e.address()
	}
	tls := l.Protocol == gateway.HTTPSProtocolType || l.Protocol == gateway.TLSProtocolType || l.Port == 443
	return urlOf(schemeOf(tls), host, l.Port)
}

// routed tells whether requests that come by the route of a cluster reach an endpoint picker, as far as it is known.
func (e *evaluator) routed(c *plan.ClusterPlan, at routeObjects) bool {
	picker := e.byKey[c.DeploymentKey()]
	return at.route != nil && at.route.ready && picker != nil && picker.ready
}

// saidURL is the URL that the status has.
var saidURL = incoming.NewPath("status", "url")

// A copyURL is the URL of the copy in one cluster. It is empty where no client finds that copy yet.
type copyURL struct {
	url              string
	leaving, answers bool
}

// urlOfCopies returns the URL of the copy that clients are to use, or empty. The copies are in the order of the clusters.
//
// It is the first one, unless a service leaves a copy. Then it is one that answers, and first one that stays: the old copy serves until
// the new one does. Where no copy leaves, what is ready does not count. A short failure of one copy would otherwise send clients to
// another cluster and back.
func urlOfCopies(all []copyURL) string {
	all = slices.DeleteFunc(all, func(c copyURL) bool { return c.url == "" })
	if len(all) == 0 {
		return ""
	}
	best := all[0]
	if slices.ContainsFunc(all, func(c copyURL) bool { return c.leaving }) {
		// The smallest rank is the best: 0 is one that answers and stays, 1 one that answers.
		rank := func(c copyURL) int {
			switch {
			case !c.answers:
				return 2
			case c.leaving:
				return 1
			}
			return 0
		}
		best = slices.MinFunc(all, func(a, b copyURL) int { return cmp.Compare(rank(a), rank(b)) })
	}
	return best.url
}

// listener returns the listener of the service's Gateway to which the route is attached, and
// prefers one with TLS. Of any other Gateway, only the port may be known.
func (e routeObjects) listener(refs []parentRef) listener {
	for _, ref := range refs {
		if e.gateway == nil || ref.Name != e.gateway.desired.Name() {
			continue
		}
		g := gatewaySpec{}
		_ = kube.Decode(e.gateway.desired.Resource, nil, &g) // The plan has checked it.
		return pick(g.Spec.Listeners, ref)
	}
	if len(refs) > 0 {
		return listener{Port: refs[0].Port}
	}
	return listener{}
}

func pick(listeners []listener, ref parentRef) listener {
	best := listener{}
	for _, l := range listeners {
		if (ref.SectionName != "" && ref.SectionName != l.Name) || (ref.Port != 0 && ref.Port != l.Port) {
			continue
		}
		if best.Name == "" || (best.Protocol == gateway.HTTPProtocolType && l.Protocol == gateway.HTTPSProtocolType) {
			best = l
		}
	}
	return best
}

// address of the service's Gateway, or empty.
func (e routeObjects) address() string {
	if e.gateway == nil || e.gateway.view == nil {
		return ""
	}
	for _, a := range e.gateway.view.Status.Addresses {
		if a.Value != "" {
			return a.Value
		}
	}
	return ""
}

// firstHost returns the first name that is no wildcard, or empty.
func firstHost(names []string) string {
	for _, n := range names {
		if n != "" && !strings.HasPrefix(n, "*") {
			return n
		}
	}
	return ""
}

func schemeOf(tls bool) string {
	if tls {
		return "https"
	}
	return "http"
}

func urlOf(scheme, host string, port int32) string {
	switch {
	case host == "":
		return ""
	case port == 0, scheme == "http" && port == 80, scheme == "https" && port == 443:
		if strings.Contains(host, ":") {
			host = "[" + host + "]"
		}
		return scheme + "://" + host
	}
	return scheme + "://" + net.JoinHostPort(host, strconv.FormatInt(int64(port), 10))
}
