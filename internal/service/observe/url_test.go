package observe

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
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

// TestURLOfCopies proves that clients are sent to a copy that answers while the service moves, and that the URL stays where it is while
// nothing does.
func TestURLOfCopies(t *testing.T) {
	config := v1alpha1.ProviderConfigRef{Kind: "ClusterProviderConfig", Name: "c"}
	west := scheduling.Target{Cluster: "west", Namespace: "models", ProviderConfig: config}
	east := scheduling.Target{Cluster: "east", Namespace: "models", ProviderConfig: config}
	const inWest, inEast = "cluster/west/", "cluster/east/"
	addresses := map[string]string{inWest: "10.0.0.1", inEast: "10.0.0.2"}

	cases := map[string]struct {
		reason  string
		leaving bool
		edit    func(s *scene)
		want    string
	}{
		"OldServes": {
			reason: "The engines of the new copy still load, so the old one answers.", leaving: true,
			edit: func(s *scene) {
				s.seeRemote(inWest+lws0, workload("qwen-engine-0", progressing), synced("True", "")).seeRemote(inWest+lws1, workload("qwen-engine-1", progressing), synced("True", ""))
			},
			want: "http://10.0.0.2",
		},
		"PickerLoads": {
			reason: "Replicas answer nothing without an endpoint picker.", leaving: true,
			edit: func(s *scene) {
				s.seeRemote(inWest+"deployment/epp", picker(stuckPicker), synced("True", ""))
			},
			want: "http://10.0.0.2",
		},
		"NewServes": {
			reason: "The new copy answers with one replica, and the old one is to go.", leaving: true,
			edit: func(s *scene) {
				s.seeRemote(inWest+lws1, workload("qwen-engine-1", progressing), synced("True", ""))
			},
			want: "http://10.0.0.1",
		},
		"NoneServes": {
			reason: "Nothing answers, so it is the copy that is to stay.", leaving: true,
			edit: func(s *scene) {
				for _, c := range []string{inWest, inEast} {
					s.seeRemote(c+"deployment/epp", picker(stuckPicker), synced("True", ""))
				}
			},
			want: "http://10.0.0.1",
		},
		"OldOutOfReach": {
			reason: "What was ready when it was read last may not answer now.", leaving: true,
			edit: func(s *scene) {
				s.seeRemote(inWest+"deployment/epp", picker(stuckPicker), synced("True", ""))
				s.seeRemote(inEast+"deployment/epp", picker(), synced("False", "no route to host"))
			},
			want: "http://10.0.0.1",
		},
		"NoneLeaves": {
			reason: "The URL of copies that all stay does not change with what is ready.",
			edit: func(s *scene) {
				s.seeRemote(inWest+"deployment/epp", picker(stuckPicker), synced("True", ""))
			},
			want: "http://10.0.0.1",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, west, east).routed(plan.Router{Name: "router", Replicas: 1, HasRoute: true, HasGateway: true})
			s.plan.Clusters[1].Leaving = tc.leaving
			listeners := []gateway.Listener{{Name: "http", Port: 80, Protocol: gateway.HTTPProtocolType}}
			r := route(1)
			r.Spec.Hostnames, r.Spec.ParentRefs = nil, []gateway.ParentReference{{Name: "qwen-gateway"}}
			for c, address := range addresses {
				target := west
				if c == inEast {
					target = east
				}
				s.want(target, c+"httproute", r)
				s.want(target, c+"gateway", ownGateway("", listeners))
				ok := synced("True", "")
				s.seeRemote(c+"gateway", ownGateway(address, listeners), ok).
					seeRemote(c+"deployment/epp", picker(), ok).
					seeRemote(c+lws0, workload("qwen-engine-0"), ok).
					seeRemote(c+lws1, workload("qwen-engine-1"), ok)
			}
			tc.edit(s)
			if diff := cmp.Diff(tc.want, s.evaluate().Status.URL); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
