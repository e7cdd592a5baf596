package observe

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"
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
				route:  "True RouteNotReported: InferencePool qwen-pool: no gateway has reported on it; HTTPRoute qwen-httproute: Gateway team-a/shared has not reported on it",
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
				route:    "False NotAccepted: HTTPRoute qwen-httproute: Gateway team-a/shared refuses it: NotAllowedByListeners: said NotAllowedByListeners",
				notReady: []string{routeKey}, url: "http://qwen.example.com",
			},
		},
		"RefusedBefore": {
			reason: "A refusal holds until its gateway has looked at the newer generation.",
			router: withRoute,
			scene: func(s *scene) {
				s.want(scheduling.Target{}, routeKey, route(2))
				s.see(eppKey, picker()).see(poolKey, pool(accepted)).see(routeKey, route(2, is("Accepted", "False", "NotAllowedByListeners", 1)))
			},
			want: routerWant{
				router: "True AllReady",
				route:  "False NotAccepted: HTTPRoute qwen-httproute: Gateway team-a/shared refuses it, by its report on an earlier generation: NotAllowedByListeners: said NotAllowedByListeners",
				url:    "http://qwen.example.com", notReady: []string{routeKey},
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
				route:    "False RefsNotResolved: InferencePool qwen-pool: Gateway team-a/shared does not find what it references: InvalidExtensionRef: said InvalidExtensionRef",
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

// TestParents goes by what several gateways report on one route or pool.
func TestParents(t *testing.T) {
	says := func(ref string, conditions ...string) string {
		return fmt.Sprintf(`{"parentRef": %s, "conditions": [%s]}`, ref, strings.Join(conditions, ", "))
	}
	condition := func(kind, status string, generation int, reason string) string {
		return fmt.Sprintf(`{"type": %q, "status": %q, "observedGeneration": %d, "reason": %q, "message": "m"}`, kind, status, generation, reason)
	}
	const a, b, other = `{"name": "a"}`, `{"name": "b", "namespace": "hub", "sectionName": "https"}`, `{"name": "other"}`
	accepted, refused := condition("Accepted", "True", 7, "Accepted"), condition("Accepted", "False", 7, "NotAllowed")
	acceptedBefore, refusedBefore := condition("Accepted", "True", 6, "Accepted"), condition("Accepted", "False", 6, "NotAllowed")
	unresolved := condition("ResolvedRefs", "False", 7, "BackendNotFound")
	cases := map[string]struct {
		reason  string
		kind    string
		parents []string
		want    string
		// gate tells what planning goes by: whether all gateways that reported refuse it.
		gate bool
	}{
		"Both":          {reason: "Both have accepted it.", parents: []string{says(a, accepted), says(b, accepted)}},
		"None":          {reason: "Each one is named.", want: "RouteNotReported: Gateway team-a/a has not reported on it; Gateway hub/b (https) has not reported on it"},
		"Silent":        {reason: "The other one may be a typo.", parents: []string{says(a, accepted)}, want: "RouteNotReported: Gateway hub/b (https) has not reported on it"},
		"Unknown":       {reason: "That is no word yet.", parents: []string{says(a, accepted), says(b, condition("Accepted", "Unknown", 7, "Pending"))}, want: "RouteNotReported: Gateway hub/b (https) has not reported on it"},
		"Section":       {reason: "NGINX Gateway Fabric names the only listener where the route names none, and leaves out ports.", parents: []string{says(`{"name": "a", "sectionName": "http"}`, accepted), says(`{"name": "b", "namespace": "hub"}`, accepted)}},
		"Defaults":      {reason: "Controllers write what the route leaves out.", parents: []string{says(`{"group": "gateway.networking.k8s.io", "kind": "Gateway", "namespace": "team-a", "name": "a"}`, accepted), says(b, accepted)}},
		"Refused":       {reason: "The one that refuses it is named.", parents: []string{says(a, accepted), says(b, refused)}, want: "NotAccepted: Gateway hub/b (https) refuses it: NotAllowed: m"},
		"AllRefused":    {reason: "So are two.", parents: []string{says(b, refused), says(a, refused)}, want: "NotAccepted: Gateway hub/b (https) refuses it: NotAllowed: m; Gateway team-a/a refuses it: NotAllowed: m", gate: true},
		"Unresolved":    {reason: "Its gateway lacks a backend.", parents: []string{says(a, accepted), says(b, accepted, unresolved)}, want: "RefsNotResolved: Gateway hub/b (https) does not find what it references: BackendNotFound: m"},
		"Worst":         {reason: "A refusal is worse.", parents: []string{says(a, accepted, unresolved), says(b, refused)}, want: "NotAccepted: Gateway hub/b (https) refuses it: NotAllowed: m; Gateway team-a/a does not find what it references: BackendNotFound: m", gate: true},
		"Partly":        {reason: "A gateway drops a rule.", parents: []string{says(a, accepted, condition("PartiallyInvalid", "True", 7, "UnsupportedValue")), says(b, accepted)}, want: "PartiallyInvalid: Gateway team-a/a does not use all of it: UnsupportedValue: m"},
		"Whole":         {reason: "Some controllers say that nothing is wrong.", parents: []string{says(a, accepted, condition("PartiallyInvalid", "False", 7, "Valid")), says(b, accepted)}},
		"PartlyBefore":  {reason: "The rule may have been mended.", parents: []string{says(a, accepted, condition("PartiallyInvalid", "True", 6, "UnsupportedValue")), says(b, accepted)}},
		"RefusedBefore": {reason: "Its gateway may have no controller any more.", parents: []string{says(a, refusedBefore), says(b, accepted)}, want: "NotAccepted: Gateway team-a/a refuses it, by its report on an earlier generation: NotAllowed: m"},
		"LackedBefore":  {reason: "So may this one.", parents: []string{says(a, acceptedBefore, condition("ResolvedRefs", "False", 6, "BackendNotFound")), says(b, accepted)}, want: "RefsNotResolved: Gateway team-a/a does not find what it references, by its report on an earlier generation: BackendNotFound: m"},
		"RefusedOnce":   {reason: "Another controller has taken over the gateway.", parents: []string{says(a, refusedBefore), says(a, accepted), says(b, accepted)}},
		"RefusedOther":  {reason: "The route does not name that gateway any more.", parents: []string{says(a, accepted), says(b, accepted), says(other, refusedBefore)}},
		"AcceptedBefore": {
			reason: "Both have reported, and not on the newest generation.", parents: []string{says(a, acceptedBefore), says(b, acceptedBefore)},
			want: "RouteNotReported: Gateway team-a/a has not reported on its newest generation; Gateway hub/b (https) has not reported on its newest generation",
		},
		"NoGeneration": {reason: "Controllers that leave the generation out are believed.", parents: []string{says(a, condition("Accepted", "False", 0, "NotAllowed"))}, want: "NotAccepted: Gateway team-a/a refuses it: NotAllowed: m", gate: true},

		"Pool":               {reason: "A pool names no gateways, so none is missing.", kind: kindPool, parents: []string{says(a, accepted)}},
		"PoolNone":           {reason: "Nobody has reported.", kind: kindPool, want: "PoolNotReported: no gateway has reported on it"},
		"PoolBefore":         {reason: "Somebody has.", kind: kindPool, parents: []string{says(a, acceptedBefore)}, want: "PoolNotReported: no gateway has reported on its newest generation"},
		"PoolRefused":        {reason: "The one that refuses it is named.", kind: kindPool, parents: []string{says(a, refused), says(b, accepted)}, want: "NotAccepted: Gateway team-a/a refuses it: NotAllowed: m"},
		"PoolRefusedBefore":  {reason: "No route may lead from that gateway to the pool any more, so it may never report again.", kind: kindPool, parents: []string{says(a, refusedBefore)}, want: "PoolNotReported: no gateway has reported on its newest generation"},
		"PoolRefusedUnnamed": {reason: "Not every report says by whom it is.", kind: kindPool, parents: []string{says(`{}`, refused)}, want: "NotAccepted: a gateway refuses it: NotAllowed: m", gate: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := fmt.Sprintf(`{"parentRefs": [%s, %s]}`, a, b)
			if tc.kind == kindPool {
				spec = "{}"
			}
			o := &structpb.Struct{}
			if err := o.UnmarshalJSON(fmt.Appendf(nil, `{"metadata": {"namespace": "team-a", "generation": 7}, "spec": %s, "status": {"parents": [%s]}}`, spec, strings.Join(tc.parents, ","))); err != nil {
				t.Fatal(err)
			}
			s := stateOf(incomingtest.Object(t, o))
			s.kind, s.routed = tc.kind, true
			if s.kind == "" {
				s.kind = kindRoute
			}
			s.evaluate()
			got := ""
			if s.reason != "" {
				got = s.reason + ": " + s.message
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if s.ready != staysReady(s.reason) && s.reason != "" {
				t.Errorf("%s: ready is %v with the reason %s", tc.reason, s.ready, s.reason)
			}
			if gate := refusedByAll(incomingtest.Object(t, o)); gate != tc.gate {
				t.Errorf("%s: refused by all is %v, want %v", tc.reason, gate, tc.gate)
			}
		})
	}
}
