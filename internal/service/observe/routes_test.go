package observe

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/incoming/incomingtest"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

const (
	eppKey   = "deployment/epp"
	poolKey  = "inferencepool"
	routeKey = "httproute"
	gwKey    = "gateway"
)

// A routerWant is what becomes of the router and of the way to it.
type routerWant struct {
	router, route string
	notReady      []string
	url           string
	stable        bool
}

// A routerCase puts a router in front of a service that is ready.
type routerCase struct {
	reason string
	router plan.Router
	scene  func(s *scene)
	want   routerWant
}

func evaluateRouters(t *testing.T, cases map[string]routerCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := running(newScene(t)).routed(tc.router)
			tc.scene(s)
			v := s.evaluate()
			var notReady []string
			for _, o := range v.objects {
				if !o.ready {
					notReady = append(notReady, o.key.String())
				}
			}
			got := routerWant{router: conditionLine(v, RouterReady), route: conditionLine(v, RouteReady), notReady: notReady, url: v.Status.URL, stable: v.Stable}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(routerWant{})); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestEvaluateRoutes goes by what gateways report about the route and the pool.
func TestEvaluateRoutes(t *testing.T) {
	withRoute := plan.Router{Name: "router", HasRoute: true}
	accepted := is("Accepted", "True", "Accepted", 1)
	resolved := is("ResolvedRefs", "True", "ResolvedRefs", 1)
	evaluateRouters(t, map[string]routerCase{
		"NoRoute": {
			reason: "A pool without a route waits for nobody.",
			router: plan.Router{Name: "router"},
			scene:  func(s *scene) { s.see(eppKey, picker()).see(poolKey, pool()) },
			want: routerWant{
				router: "True AllReady",
				route:  "False NoRoute: no gateway leads to the pool: the router's httproute names no parent, it has no gateway of its own, and the platform sets no default parent",
				stable: true,
			},
		},
		"NotReported": {
			reason: "Without a gateway's word the service is ready, and the condition says what is missing.",
			router: withRoute,
			scene: func(s *scene) {
				s.want(scheduling.Target{}, routeKey, route(1))
				s.see(eppKey, picker()).see(poolKey, pool()).see(routeKey, route(1))
			},
			want: routerWant{
				router: "True AllReady",
				route:  "True RouteNotReported: no gateway has reported on it: InferencePool qwen-pool, HTTPRoute qwen-httproute",
				url:    "http://qwen.example.com",
				stable: true,
			},
		},
		"Accepted": {
			reason: "What a gateway takes is ready.",
			router: withRoute,
			scene: func(s *scene) {
				s.want(scheduling.Target{}, routeKey, route(1))
				s.see(eppKey, picker()).see(poolKey, pool(accepted, resolved)).see(routeKey, route(1, accepted, resolved))
			},
			want: routerWant{router: "True AllReady", route: "True Accepted", url: "http://qwen.example.com", stable: true},
		},
		"Refused": {
			reason: "What a gateway refuses is not ready, and its reason is shown.",
			router: withRoute,
			scene: func(s *scene) {
				s.want(scheduling.Target{}, routeKey, route(1))
				s.see(eppKey, picker()).see(poolKey, pool(accepted)).see(routeKey, route(1, is("Accepted", "False", "NotAllowedByListeners", 1)))
			},
			want: routerWant{
				router:   "True AllReady",
				route:    "False NotAccepted: HTTPRoute qwen-httproute: NotAllowedByListeners: said NotAllowedByListeners",
				notReady: []string{routeKey}, url: "http://qwen.example.com",
			},
		},
		"RefusedBefore": {
			reason: "What a gateway said of an older generation counts for nothing.",
			router: withRoute,
			scene: func(s *scene) {
				s.want(scheduling.Target{}, routeKey, route(2))
				s.see(eppKey, picker()).see(poolKey, pool(accepted)).see(routeKey, route(2, is("Accepted", "False", "NotAllowedByListeners", 1)))
			},
			want: routerWant{
				router: "True AllReady",
				route:  "True RouteNotReported: HTTPRoute qwen-httproute: no gateway has reported on it",
				url:    "http://qwen.example.com", stable: true,
			},
		},
		"AcceptedWithoutGeneration": {
			reason: "Controllers that leave the generation out are believed.",
			router: withRoute,
			scene: func(s *scene) {
				s.want(scheduling.Target{}, routeKey, route(2))
				s.see(eppKey, picker()).see(poolKey, pool(accepted)).see(routeKey, route(2, is("Accepted", "True", "Accepted", 0)))
			},
			want: routerWant{router: "True AllReady", route: "True Accepted", url: "http://qwen.example.com", stable: true},
		},
		"NotResolved": {
			reason: "A pool whose endpoint picker is not found does not work.",
			router: withRoute,
			scene: func(s *scene) {
				s.want(scheduling.Target{}, routeKey, route(1))
				s.see(eppKey, picker()).see(poolKey, pool(accepted, is("ResolvedRefs", "False", "InvalidExtensionRef", 1))).see(routeKey, route(1, accepted, resolved))
			},
			want: routerWant{
				router:   "True AllReady",
				route:    "False RefsNotResolved: InferencePool qwen-pool: InvalidExtensionRef: said InvalidExtensionRef",
				notReady: []string{poolKey}, url: "http://qwen.example.com",
			},
		},
		"KindMissing": {
			reason: "A route whose kind the cluster lacks is deferred, and named.",
			router: withRoute,
			scene: func(s *scene) {
				s.see(eppKey, picker()).see(poolKey, pool(accepted)).
					deferObject(plan.Deferred{Key: key.Parse(routeKey), Reason: plan.DeferredForKind, Message: "the cluster does not have the kind HTTPRoute of gateway.networking.k8s.io/v1"})
			},
			want: routerWant{
				router: "True AllReady",
				route:  "False KindMissing: the cluster does not have the kind HTTPRoute of gateway.networking.k8s.io/v1",
			},
		},
	})
}

// TestEvaluateGateways is about a Gateway of the service's own.
func TestEvaluateGateways(t *testing.T) {
	withGateway := plan.Router{Name: "router", HasRoute: true, HasGateway: true}
	tls := []gateway.Listener{
		{Name: "http", Port: 80, Protocol: gateway.HTTPProtocolType},
		{Name: "https", Port: 443, Protocol: gateway.HTTPSProtocolType},
	}
	accepted := is("Accepted", "True", "Accepted", 1)
	evaluateRouters(t, map[string]routerCase{
		"GatewayWithAddress": {
			reason: "Our own gateway's TLS listener makes the URL, with its address where the route has no host.",
			router: withGateway,
			scene: func(s *scene) {
				r := route(1)
				r.Spec.Hostnames = nil
				r.Spec.ParentRefs = []gateway.ParentReference{{Name: "qwen-gateway"}}
				s.want(scheduling.Target{}, routeKey, r)
				s.want(scheduling.Target{}, gwKey, ownGateway("", tls))
				s.see(eppKey, picker()).see(poolKey, pool(accepted)).see(routeKey, route(1, accepted)).
					see(gwKey, ownGateway("2001:db8::1", tls, accepted, is("Programmed", "True", "Programmed", 1)))
			},
			want: routerWant{router: "True AllReady", route: "True Accepted", url: "https://[2001:db8::1]", stable: true},
		},
		"GatewayPending": {
			reason: "The API server writes a Gateway's first conditions; they are nobody's word.",
			router: withGateway,
			scene: func(s *scene) {
				s.want(scheduling.Target{}, routeKey, route(1))
				s.want(scheduling.Target{}, gwKey, ownGateway("", tls))
				s.see(eppKey, picker()).see(poolKey, pool(accepted)).see(routeKey, route(1, accepted)).
					see(gwKey, ownGateway("", tls, is("Accepted", "Unknown", "Pending", 0), is("Programmed", "Unknown", "Pending", 0)))
			},
			want: routerWant{
				router: "True AllReady",
				route:  "True GatewayNotReported: Gateway qwen-gateway: no gateway controller has reported on it",
				url:    "http://qwen.example.com", stable: true,
			},
		},
		"GatewayNotProgrammed": {
			reason: "A gateway that takes no traffic is not ready.",
			router: withGateway,
			scene: func(s *scene) {
				s.want(scheduling.Target{}, routeKey, route(1))
				s.want(scheduling.Target{}, gwKey, ownGateway("", tls))
				s.see(eppKey, picker()).see(poolKey, pool(accepted)).see(routeKey, route(1, accepted)).
					see(gwKey, ownGateway("", tls, accepted, is("Programmed", "False", "AddressNotAssigned", 1)))
			},
			want: routerWant{
				router:   "True AllReady",
				route:    "False NotProgrammed: Gateway qwen-gateway: AddressNotAssigned: said AddressNotAssigned",
				notReady: []string{gwKey}, url: "http://qwen.example.com",
			},
		},
		"ListenerNotProgrammed": {
			reason: "The conditions of a Gateway hide that one of its listeners has no certificate.",
			router: withGateway,
			scene: func(s *scene) {
				g := ownGateway("", tls, accepted, is("Programmed", "True", "Programmed", 1))
				g.Status.Listeners = []gateway.ListenerStatus{{Name: "https", Conditions: []metav1.Condition{is("ResolvedRefs", "False", "InvalidCertificateRef", 1)}}}
				s.want(scheduling.Target{}, routeKey, route(1))
				s.want(scheduling.Target{}, gwKey, ownGateway("", tls))
				s.see(eppKey, picker()).see(poolKey, pool(accepted)).see(routeKey, route(1, accepted)).see(gwKey, g)
			},
			want: routerWant{
				router:   "True AllReady",
				route:    "False NotProgrammed: Gateway qwen-gateway: listener https: InvalidCertificateRef: said InvalidCertificateRef",
				notReady: []string{gwKey}, url: "http://qwen.example.com",
			},
		},
	})
}

// TestListeners goes by what a controller reports on the listeners of a service's own Gateway.
func TestListeners(t *testing.T) {
	programmed := is("Programmed", "True", "Programmed", 2)
	accepted := is("Accepted", "True", "Accepted", 2)
	says := func(name string, conditions ...metav1.Condition) gateway.ListenerStatus {
		return gateway.ListenerStatus{Name: gateway.SectionName(name), Conditions: conditions}
	}
	http := says("http", accepted, programmed, is("ResolvedRefs", "True", "ResolvedRefs", 2), is("Conflicted", "False", "NoConflicts", 2))
	badTLS := says("https", accepted, is("Programmed", "False", "Invalid", 2), is("ResolvedRefs", "False", "InvalidCertificateRef", 2))
	all := []metav1.Condition{accepted, programmed}
	var many []gateway.ListenerStatus
	for i := range 64 {
		many = append(many, says(fmt.Sprintf("l%02d", 63-i), is("Conflicted", "True", "HostnameConflict", 2)))
	}
	cases := map[string]struct {
		reason     string
		conditions []metav1.Condition
		listeners  []gateway.ListenerStatus
		want       string
	}{
		"AllProgrammed": {"A gateway that works is ready.", all, []gateway.ListenerStatus{http}, ""},
		"NoneReported":  {"Not every controller reports on listeners.", all, nil, ""},
		"NoConditions":  {"It has said nothing of this one.", all, []gateway.ListenerStatus{says("http")}, ""},
		"OnlyAccepted":  {"An absent condition is nobody's word.", all, []gateway.ListenerStatus{says("http", accepted)}, ""},
		"Unknown":       {"So is one that is not known yet.", all, []gateway.ListenerStatus{says("http", is("Programmed", "Unknown", "Pending", 2))}, ""},
		"Certificate":   {"The reference says more than the listener's Programmed.", all, []gateway.ListenerStatus{http, badTLS}, "NotProgrammed: listener https: InvalidCertificateRef: said InvalidCertificateRef"},
		"NotAccepted":   {"It gets no traffic.", all, []gateway.ListenerStatus{says("udp", is("Accepted", "False", "UnsupportedProtocol", 2))}, "NotProgrammed: listener udp: UnsupportedProtocol: said UnsupportedProtocol"},
		"NotProgrammed": {"So does this one.", all, []gateway.ListenerStatus{says("http", accepted, is("Programmed", "False", "Invalid", 2))}, "NotProgrammed: listener http: Invalid: said Invalid"},
		"Conflicted":    {"Another listener has its port.", all, []gateway.ListenerStatus{says("http", accepted, programmed, is("Conflicted", "True", "ProtocolConflict", 2))}, "NotProgrammed: listener http: ProtocolConflict: said ProtocolConflict"},
		"PartlyResolved": {
			"Envoy Gateway programs a listener with the certificates that it finds.", all,
			[]gateway.ListenerStatus{says("https", accepted, programmed, is("ResolvedRefs", "False", "PartiallyInvalidCertificateRef", 2))}, "",
		},
		"OnlyUnresolved":  {"Traefik says no more of such a listener.", all, []gateway.ListenerStatus{says("http", is("ResolvedRefs", "False", "InvalidRouteKinds", 2))}, "NotProgrammed: listener http: InvalidRouteKinds: said InvalidRouteKinds"},
		"OlderGeneration": {"The listener may have been mended since.", all, []gateway.ListenerStatus{says("http", is("Programmed", "False", "Invalid", 1))}, ""},
		"NoGeneration":    {"Controllers that leave the generation out are believed.", all, []gateway.ListenerStatus{says("http", is("Programmed", "False", "Invalid", 0))}, "NotProgrammed: listener http: Invalid: said Invalid"},
		"GatewayRefused": {
			"Traefik's Gateway says only that some listener is wrong.", []metav1.Condition{is("Accepted", "False", "ListenersNotValid", 2)}, []gateway.ListenerStatus{badTLS},
			"NotAccepted: ListenersNotValid: said ListenersNotValid; listener https: InvalidCertificateRef: said InvalidCertificateRef",
		},
		"GatewayNotReported": {"A word on a listener is one on its Gateway.", nil, []gateway.ListenerStatus{badTLS}, "NotProgrammed: listener https: InvalidCertificateRef: said InvalidCertificateRef"},
		"Many": {
			"The message is bounded, and their order in the status does not matter.", all, many,
			"NotProgrammed: " + strings.Join(slices.Collect(func(yield func(string) bool) {
				for i := range 18 {
					if !yield(fmt.Sprintf("listener l%02d: HostnameConflict: said HostnameConflict", i)) {
						return
					}
				}
			}), "; ") + "; and 46 more",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g := ownGateway("", nil, tc.conditions...)
			g.Generation, g.Status.Listeners = 2, tc.listeners
			s := stateOf(incomingtest.Object(t, encode(t, g)))
			s.kind = kindGateway
			s.evaluate()
			got := ""
			if !s.ready {
				got = s.reason + ": " + s.message
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
