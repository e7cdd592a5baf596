package observe

import (
	"net"
	"strconv"
	"strings"

	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/plan"
)

// An entry is how requests come in at one place.
type entry struct{ route, gateway *subject }

func (e *entry) note(s *subject) {
	switch s.kind {
	case kindRoute:
		e.route = s
	case kindGateway:
		e.gateway = s
	}
}

// A routeSpec is the part of an HTTPRoute that says where it can be reached.
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

// A gatewaySpec is the part of a Gateway that says where it listens.
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

// url is where clients in reach of a place find the service, or nothing.
func (j *judgement) url(d *plan.Deployment) string {
	if d.Endpoint != nil {
		return urlOf("http", d.Base+"."+d.Target.Namespace+".svc", d.Endpoint.Port)
	}
	e := j.entries[d.Target.Cluster]
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
	scheme := "http"
	if l.Protocol == gateway.HTTPSProtocolType || l.Protocol == gateway.TLSProtocolType || l.Port == 443 {
		scheme = "https"
	}
	return urlOf(scheme, host, l.Port)
}

// listener is the one of our Gateway's that the route is attached to, TLS first.
// Of a gateway that is somebody else's, only the port may be known.
func (e entry) listener(refs []parentRef) listener {
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

// address that our Gateway was given.
func (e entry) address() string {
	if e.gateway == nil || e.gateway.seen == nil {
		return ""
	}
	for _, a := range e.gateway.seen.Status.Addresses {
		if a.Value != "" {
			return a.Value
		}
	}
	return ""
}

// firstHost passes over wildcards, which are no hosts.
func firstHost(names []string) string {
	for _, n := range names {
		if n != "" && !strings.HasPrefix(n, "*") {
			return n
		}
	}
	return ""
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
