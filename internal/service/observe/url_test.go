package observe

import (
	"testing"

	"k8s.io/utils/ptr"
	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

func TestURL(t *testing.T) {
	http := gateway.Listener{Name: "http", Port: 80, Protocol: gateway.HTTPProtocolType}
	https := gateway.Listener{Name: "https", Port: 8443, Protocol: gateway.HTTPSProtocolType}
	named := gateway.Listener{Name: "named", Port: 8080, Protocol: gateway.HTTPProtocolType, Hostname: ptr.To(gateway.Hostname("models.example.com"))}
	ours := gateway.ParentReference{Name: "qwen-gateway"}

	cases := map[string]struct {
		reason    string
		hosts     []gateway.Hostname
		parents   []gateway.ParentReference
		listeners []gateway.Listener
		address   string
		want      string
	}{
		"ForeignGateway":     {reason: "Of somebody else's gateway only the route's host is known.", hosts: []gateway.Hostname{"a.example.com"}, parents: []gateway.ParentReference{{Name: "shared"}}, want: "http://a.example.com"},
		"ForeignTLS":         {reason: "Port 443 is TLS.", hosts: []gateway.Hostname{"a.example.com"}, parents: []gateway.ParentReference{{Name: "shared", Port: ptr.To[gateway.PortNumber](443)}}, want: "https://a.example.com"},
		"ForeignPort":        {reason: "Another port is part of the URL.", hosts: []gateway.Hostname{"a.example.com"}, parents: []gateway.ParentReference{{Name: "shared", Port: ptr.To[gateway.PortNumber](8080)}}, want: "http://a.example.com:8080"},
		"ForeignWithoutHost": {reason: "Without a host there is nothing to say.", parents: []gateway.ParentReference{{Name: "shared"}}},
		"OursPlain":          {reason: "Our own gateway's address, on its port.", parents: []gateway.ParentReference{ours}, listeners: []gateway.Listener{http}, address: "10.0.0.7", want: "http://10.0.0.7"},
		"OursTLSFirst":       {reason: "TLS wins over plain.", hosts: []gateway.Hostname{"a.example.com"}, parents: []gateway.ParentReference{ours}, listeners: []gateway.Listener{http, https}, want: "https://a.example.com:8443"},
		"OursSection":        {reason: "A route may choose its listener.", hosts: []gateway.Hostname{"a.example.com"}, parents: []gateway.ParentReference{{Name: "qwen-gateway", SectionName: ptr.To(gateway.SectionName("http"))}}, listeners: []gateway.Listener{https, http}, want: "http://a.example.com"},
		"OursListenerHost":   {reason: "The listener's host serves where the route has a wildcard only.", hosts: []gateway.Hostname{"*.example.com"}, parents: []gateway.ParentReference{ours}, listeners: []gateway.Listener{named}, want: "http://models.example.com:8080"},
		"OursNoAddress":      {reason: "A gateway without an address cannot be reached yet.", parents: []gateway.ParentReference{ours}, listeners: []gateway.Listener{http}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newScene(t).routed(plan.Router{HasRoute: true, HasGateway: tc.listeners != nil})
			r := route(1)
			r.Spec.Hostnames, r.Spec.ParentRefs = tc.hosts, tc.parents
			s.want(scheduling.Target{}, "httproute", r)
			if tc.listeners != nil {
				s.want(scheduling.Target{}, "gateway", ownGateway("", tc.listeners))
				s.see("gateway", ownGateway(tc.address, tc.listeners))
			}
			if got := s.evaluate().Status.URL; got != tc.want {
				t.Errorf("%s\nwant %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

// TestURLOfService proves that clients of a Service talk to its engines as these listen.
func TestURLOfService(t *testing.T) {
	cases := map[string]struct {
		reason string
		of     plan.Endpoint
		want   string
	}{
		"Plain":   {"Engines serve HTTP by default.", plan.Endpoint{Port: 8000}, "http://qwen." + namespace + ".svc:8000"},
		"TLS":     {"An engine with a certificate answers no plain HTTP.", plan.Endpoint{Port: 8000, TLS: true}, "https://qwen." + namespace + ".svc:8000"},
		"TLSPort": {"The port of HTTPS is left out.", plan.Endpoint{Port: 443, TLS: true}, "https://qwen." + namespace + ".svc"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.plan.Clusters[0].Endpoint = &tc.of
			if got := s.evaluate().Status.URL; got != tc.want {
				t.Errorf("%s\nwant %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}
