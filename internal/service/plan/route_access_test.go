package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling/schedulingtest"
)

// listensHTTP is a Gateway of the service's own.
const listensHTTP = `{"gatewayClassName":"istio","listeners":[{"name":"http","port":80,"protocol":"HTTP"}]}`

// routed plans the router of the service svc in the namespace team.
func routed(t *testing.T, route, gateway string, in *inputv1alpha1.Input, placement *v1alpha1.Placement, w scheduling.Snapshot) (*Router, []string, string) {
	t.Helper()
	role := v1alpha1.Role{Name: "router", ComponentType: v1alpha1.ComponentTypeRouter, HTTPRoute: document(t, route), Gateway: document(t, gateway)}
	spec := &v1alpha1.InferenceServiceSpec{Roles: []v1alpha1.Role{role}, Placement: placement}
	inputv1alpha1.Default(in)
	serving := []*Role{{Name: "w", Type: worker, Port: defaultPort, path: rolePath(1)}}
	r, _, errs := planRouter(0, role, spec, in, serving, newRouteAccess(naming.Identity{Name: "svc", Namespace: "team"}, spec, in, newTenantPolicy(naming.Identity{Name: "svc", Namespace: "team"}, in), &w), false)
	var messages strings.Builder
	for _, e := range errs {
		messages.WriteString(e.Error() + "\n")
	}
	got := paths(errs)
	for i := range got {
		got[i] = strings.TrimPrefix(got[i], "spec.roles[0].")
	}
	slices.Sort(got)
	return r, got, messages.String()
}

func inNamespaces(of ...string) *v1alpha1.Placement {
	p := &v1alpha1.Placement{}
	for _, n := range of {
		p.Clusters = append(p.Clusters, v1alpha1.PlacementCluster{Name: "in-" + n, Namespace: n, ProviderConfigRef: &v1alpha1.ProviderConfigRef{Kind: "ClusterProviderConfig", Name: "c"}})
	}
	return p
}

// TestSharedGateways proves that a route is attached to a gateway that others use too only
// where the platform team allows it.
func TestSharedGateways(t *testing.T) {
	port := int32(8080)
	allowed := func(refs ...inputv1alpha1.AllowedParentRef) inputv1alpha1.Input {
		return inputv1alpha1.Input{Policy: inputv1alpha1.Policy{Routes: &inputv1alpha1.Routes{AllowedParentRefs: refs, AllowedHostnames: []string{"*"}}}}
	}
	experimental := func(in inputv1alpha1.Input) inputv1alpha1.Input {
		in.Routes.ExperimentalFields = inputv1alpha1.Allow
		return in
	}
	platform := func(ref inputv1alpha1.ParentRef) inputv1alpha1.Input {
		in := allowed()
		in.Gateway.ParentRefs = []inputv1alpha1.ParentRef{ref}
		return in
	}
	const shared, refused = `{"parentRefs":[{"name":"gw","namespace":"infra"}]}`, "httproute.parentRefs[0]"
	cases := map[string]struct {
		reason         string
		route, gateway string
		in             inputv1alpha1.Input
		placement      *v1alpha1.Placement
		errs           []string
	}{
		"Own":              {reason: "The tenant's own namespace is open.", route: `{"parentRefs":[{"name":"gw"}]}`},
		"OwnNamed":         {reason: "Also where it is named.", route: `{"parentRefs":[{"name":"gw","namespace":"team"}]}`},
		"OwnService":       {reason: "A mesh has routes of Services.", route: `{"parentRefs":[{"group":"","kind":"Service","name":"a"}]}`},
		"OwnGateway":       {reason: "The service's own Gateway is its own.", route: `{"parentRefs":[{"name":"svc-gateway"}]}`, gateway: listensHTTP},
		"Shared":           {reason: "Nobody has allowed it.", route: shared, in: allowed(), errs: []string{refused}},
		"SecondShared":     {reason: "Each is looked at.", route: `{"parentRefs":[{"name":"gw"},{"name":"gw","namespace":"infra"}]}`, in: allowed(), errs: []string{"httproute.parentRefs[1]"}},
		"Allowed":          {reason: "By its namespace.", route: shared, in: allowed(inputv1alpha1.AllowedParentRef{Namespace: "infra"})},
		"AllowedPatterns":  {reason: "By patterns.", route: shared, in: allowed(inputv1alpha1.AllowedParentRef{Namespace: "inf*", Name: "g*"})},
		"OtherNamespace":   {reason: "Another namespace is another gateway.", route: shared, in: allowed(inputv1alpha1.AllowedParentRef{Namespace: "gateways"}), errs: []string{refused}},
		"OtherName":        {reason: "So is another name.", route: shared, in: allowed(inputv1alpha1.AllowedParentRef{Namespace: "infra", Name: "internal"}), errs: []string{refused}},
		"Section":          {reason: "A listener that has to be named is not.", route: shared, in: allowed(inputv1alpha1.AllowedParentRef{Namespace: "infra", SectionName: "tenants"}), errs: []string{refused}},
		"SectionNamed":     {reason: "Here it is.", route: `{"parentRefs":[{"name":"gw","namespace":"infra","sectionName":"tenants"}]}`, in: allowed(inputv1alpha1.AllowedParentRef{Namespace: "infra", SectionName: "tenants"})},
		"AllowedKind":      {reason: "Gateways are allowed, and no other parents.", route: `{"parentRefs":[{"group":"","kind":"Service","name":"a","namespace":"b"}]}`, in: allowed(inputv1alpha1.AllowedParentRef{Namespace: "*"}), errs: []string{refused}},
		"CoreGroup":        {reason: "An empty group is the core group, which has no gateways.", route: `{"parentRefs":[{"group":"","name":"gw","namespace":"infra"}]}`, in: platform(inputv1alpha1.ParentRef{Name: "gw", Namespace: "infra"}), errs: []string{refused}},
		"CoreGroupAllowed": {reason: "So what allows gateways does not allow it.", route: `{"parentRefs":[{"group":"","kind":"Gateway","name":"gw","namespace":"infra"}]}`, in: allowed(inputv1alpha1.AllowedParentRef{Namespace: "infra"}), errs: []string{refused}},
		"ListenerSet":      {reason: "Listeners of a gateway are the gateway's.", route: `{"parentRefs":[{"kind":"ListenerSet","name":"a","namespace":"infra"}]}`, in: allowed(inputv1alpha1.AllowedParentRef{Namespace: "infra"})},
		"OtherKind":        {reason: "Other parents are allowed like gateways.", route: `{"parentRefs":[{"group":"","kind":"Service","name":"a","namespace":"b"}]}`, in: allowed(), errs: []string{refused}},
		"Platform":         {reason: "The platform's gateways may be named.", route: shared, in: platform(inputv1alpha1.ParentRef{Name: "gw", Namespace: "infra"})},
		"PlatformByItself": {reason: "And are there without a name.", in: platform(inputv1alpha1.ParentRef{Name: "gw", Namespace: "infra"})},
		"PlatformSection":  {reason: "Its listener, and no other.", route: shared, in: platform(inputv1alpha1.ParentRef{Name: "gw", Namespace: "infra", SectionName: "tenants"}), errs: []string{refused}},
		"PlatformPort":     {reason: "Its port, and no other.", route: shared, in: platform(inputv1alpha1.ParentRef{Name: "gw", Namespace: "infra", Port: &port}), errs: []string{refused}},
		"PlatformPortToo":  {reason: "Here it is.", route: `{"parentRefs":[{"name":"gw","namespace":"infra","port":8080}]}`, in: platform(inputv1alpha1.ParentRef{Name: "gw", Namespace: "infra", Port: &port})},
		"PlatformKind":     {reason: "Its kind, and no other.", route: shared, in: platform(inputv1alpha1.ParentRef{Kind: "ListenerSet", Name: "gw", Namespace: "infra"}), errs: []string{refused}},
		"PlatformOwn":      {reason: "A gateway in each namespace is not one in all of them.", route: shared, in: platform(inputv1alpha1.ParentRef{Name: "gw"}), errs: []string{refused}},
		"Default":          {reason: "The cluster's default gateways are anybody's.", route: `{"useDefaultGateways":"All"}`, in: allowed(inputv1alpha1.AllowedParentRef{Namespace: "infra"}), errs: []string{"httproute.useDefaultGateways"}},
		"DefaultAllowed":   {reason: "Who may use all gateways may use those.", route: `{"useDefaultGateways":"All"}`, in: experimental(allowed(inputv1alpha1.AllowedParentRef{Namespace: "*", Name: "*"}))},
		"DefaultUnknown":   {reason: "Most clusters do not know the field.", route: `{"useDefaultGateways":"All"}`, in: allowed(inputv1alpha1.AllowedParentRef{Namespace: "*", Name: "*"}), errs: []string{"httproute.useDefaultGateways"}},
		"DefaultNone":      {reason: "None is none.", route: `{"useDefaultGateways":"None","parentRefs":[{"name":"gw"}]}`, in: experimental(allowed())},
		"RemoteOwn":        {reason: "In another cluster too the tenant's namespace is its own.", route: `{"parentRefs":[{"name":"gw"}]}`, placement: inNamespaces("team")},
		"RemoteShared":     {reason: "Any other namespace there may be others' too.", route: `{"parentRefs":[{"name":"gw"}]}`, in: allowed(), placement: inNamespaces("team", "models"), errs: []string{refused}},
		"RemoteGateway":    {reason: "The service's own Gateway is its own everywhere.", gateway: listensHTTP, placement: inNamespaces("models")},
		"RemoteName":       {reason: "There it has another name, so that this is another's.", route: `{"parentRefs":[{"name":"svc-gateway"}]}`, gateway: listensHTTP, in: allowed(), placement: inNamespaces("models"), errs: []string{refused}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, errs, messages := routed(t, tc.route, tc.gateway, &tc.in, tc.placement, scheduling.Snapshot{})
			if diff := cmp.Diff(tc.errs, errs, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nerrors at: -want, +got:\n%s\n%s", tc.reason, diff, messages)
			}
		})
	}
}

// TestHostnames proves that no route takes requests that are another service's.
func TestHostnames(t *testing.T) {
	policy := func(fallback string, allowed ...string) inputv1alpha1.Input {
		return inputv1alpha1.Input{Policy: inputv1alpha1.Policy{Routes: &inputv1alpha1.Routes{
			AllowedParentRefs: []inputv1alpha1.AllowedParentRef{{Namespace: "infra"}}, DefaultHostname: fallback, AllowedHostnames: allowed,
		}}}
	}
	platform := func(in inputv1alpha1.Input) inputv1alpha1.Input {
		in.Gateway.ParentRefs = []inputv1alpha1.ParentRef{{Name: "gw", Namespace: "infra"}}
		return in
	}
	hub := func(in inputv1alpha1.Input, namespace string) inputv1alpha1.Input {
		in.Fleet.ParentRefs = []inputv1alpha1.ParentRef{{Name: "hub", Namespace: namespace}}
		return in
	}
	fleet := &v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}}
	const (
		fallback = "{service}.{namespace}.llm.example.com"
		given    = "svc.team.llm.example.com"
		shared   = `{"parentRefs":[{"name":"gw","namespace":"infra"}]}`
		named    = `{"parentRefs":[{"name":"gw","namespace":"infra"}],"hostnames":["a.team.example.com","b.example.com"]}`
		own      = `{"parentRefs":[{"name":"gw"}]}`
		ownNamed = `{"parentRefs":[{"name":"gw"}],"hostnames":["b.example.com"]}`
	)
	cases := map[string]struct {
		reason         string
		route, gateway string
		in             inputv1alpha1.Input
		placement      *v1alpha1.Placement
		want           []string
		errs           []string
	}{
		"Nobody":           {reason: "Nobody has said whose names are whose.", route: named, in: policy(""), errs: []string{"httproute"}},
		"NobodyNoNames":    {reason: "A route without names takes everything.", route: shared, in: policy(""), errs: []string{"httproute"}},
		"PlatformNobody":   {reason: "Also at the platform's own gateway.", in: platform(policy("")), errs: []string{"httproute"}},
		"Default":          {reason: "A route without names gets one.", route: shared, in: policy(fallback), want: []string{given}},
		"PlatformDefault":  {reason: "Also without a route.", in: platform(policy(fallback)), want: []string{given}},
		"NamedDefault":     {reason: "It may be named.", route: `{"parentRefs":[{"name":"gw","namespace":"infra"}],"hostnames":["svc.team.llm.example.com"]}`, in: policy(fallback), want: []string{given}},
		"OthersDefault":    {reason: "Another service's may not.", route: `{"parentRefs":[{"name":"gw","namespace":"infra"}],"hostnames":["svc.other.llm.example.com"]}`, in: policy(fallback), errs: []string{"httproute.hostnames[0]"}},
		"Allowed":          {reason: "Each name is looked at.", route: named, in: policy("", "*.{namespace}.example.com"), errs: []string{"httproute.hostnames[1]"}},
		"AllowedNoNames":   {reason: "No names is every name.", route: shared, in: policy("", "*.{namespace}.example.com"), errs: []string{"httproute.hostnames"}},
		"Any":              {reason: "The platform team may allow that.", route: shared, in: policy("", "*")},
		"AnyWithDefault":   {reason: "A default is better.", route: shared, in: policy(fallback, "*"), want: []string{given}},
		"OwnFree":          {reason: "Names at own gateways are free.", route: ownNamed, in: policy(""), want: []string{"b.example.com"}},
		"OwnRestricted":    {reason: "Unless they are somebody's: external-dns publishes them.", route: ownNamed, in: policy("", "*.{namespace}.example.com"), errs: []string{"httproute.hostnames[0]"}},
		"OwnNoNames":       {reason: "An own gateway may take everything, and needs no default.", route: own, in: policy(fallback)},
		"OwnGateway":       {reason: "So may the service's own.", gateway: listensHTTP, in: policy(fallback)},
		"Listener":         {reason: "Listeners publish names too.", gateway: strings.Replace(listensHTTP, `"port"`, `"hostname":"b.example.com","port"`, 1), in: policy(fallback), errs: []string{"gateway.listeners[0].hostname"}},
		"ListenerFree":     {reason: "Which are free where nobody has said otherwise.", gateway: strings.Replace(listensHTTP, `"port"`, `"hostname":"b.example.com","port"`, 1), in: policy("")},
		"Annotation":       {reason: "Annotations of the gateway's Service publish names too.", gateway: strings.Replace(listensHTTP, `{`, `{"infrastructure":{"annotations":{"external-dns.alpha.kubernetes.io/hostname":"b.example.com","other":"x"}},`, 1), in: policy(fallback), errs: []string{"gateway.infrastructure.annotations[external-dns.alpha.kubernetes.io/hostname]"}},
		"Hub":              {reason: "The route over all clusters is at a shared gateway.", gateway: listensHTTP, in: hub(policy(""), "infra"), placement: fleet, errs: []string{"httproute"}},
		"HubDefault":       {reason: "Its name is the route's in the clusters too.", gateway: listensHTTP, in: hub(policy(fallback), "infra"), placement: fleet, want: []string{given}},
		"HubOwn":           {reason: "A gateway in each tenant's namespace is no shared one.", gateway: listensHTTP, in: hub(policy(""), ""), placement: fleet},
		"HubWithoutFleet":  {reason: "Services beside the XR have no such route.", gateway: listensHTTP, in: hub(policy(""), "infra")},
		"NotAName":         {reason: "A name that is too long is not shortened: it would be another's.", in: platform(policy(strings.Repeat("a23456789.", 24) + fallback)), errs: []string{"httproute.hostnames"}},
		"RemoteSharedPool": {reason: "A gateway in a namespace of several tenants is shared.", route: own, in: policy("", "*.{namespace}.example.com"), placement: inNamespaces("infra"), errs: []string{"httproute.hostnames"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, errs, messages := routed(t, tc.route, tc.gateway, &tc.in, tc.placement, scheduling.Snapshot{})
			if diff := cmp.Diff(tc.errs, errs, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nerrors at: -want, +got:\n%s\n%s", tc.reason, diff, messages)
			}
			if diff := cmp.Diff(tc.want, r.Hostnames, cmpopts.EquateEmpty()); diff != "" && len(tc.errs) == 0 {
				t.Errorf("%s\nhost names: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// listensHTTPS is a Gateway with TLS, and options of it.
func listensHTTPS(options string) string {
	return strings.Replace(listensHTTP, `"protocol":"HTTP"`, `"protocol":"HTTPS","tls":{"certificateRefs":[{"name":"own"}],"options":`+options+`}`, 1)
}

// TestOwnGateways proves what a Gateway of one's own may be.
func TestOwnGateways(t *testing.T) {
	with := func(infrastructure string) string {
		return strings.Replace(listensHTTP, `{`, `{"infrastructure":`+infrastructure+`,`, 1)
	}
	cases := map[string]struct {
		reason  string
		gateway string
		routes  inputv1alpha1.Routes
		errs    []string
	}{
		"Default":      {reason: "One is allowed.", gateway: listensHTTP},
		"Denied":       {reason: "The platform team may have one for all.", gateway: listensHTTP, routes: inputv1alpha1.Routes{OwnGateways: inputv1alpha1.Deny}, errs: []string{"gateway"}},
		"Class":        {reason: "Or some classes.", gateway: listensHTTP, routes: inputv1alpha1.Routes{AllowedGatewayClassNames: []string{"internal-*"}}, errs: []string{"gateway.gatewayClassName"}},
		"AllowedClass": {reason: "Of which this is one.", gateway: listensHTTP, routes: inputv1alpha1.Routes{AllowedGatewayClassNames: []string{"internal-*", "is*"}}},
		"DefaultScope": {reason: "A default gateway gets the routes of other tenants.", gateway: strings.Replace(listensHTTP, `{`, `{"defaultScope":"All",`, 1), errs: []string{"gateway.defaultScope"}},
		"Labels": {
			reason:  "The gateway's pods would be taken for engines and endpoint pickers.",
			gateway: with(`{"labels":{"fusioninfer.io/service":"b","leaderworkerset.sigs.k8s.io/name":"b","kueue.x-k8s.io/queue-name":"b","app":"b-epp"}}`),
			errs: []string{"gateway.infrastructure.labels[app]", "gateway.infrastructure.labels[fusioninfer.io/service]",
				"gateway.infrastructure.labels[kueue.x-k8s.io/queue-name]", "gateway.infrastructure.labels[leaderworkerset.sigs.k8s.io/name]"},
		},
		"Annotations": {
			reason:  "Kueue reads annotations, too.",
			gateway: with(`{"annotations":{"kueue.x-k8s.io/pod-group-total-count":"2"}}`), errs: []string{"gateway.infrastructure.annotations[kueue.x-k8s.io/pod-group-total-count]"},
		},
		"Injector": {
			reason:  "Istio's injector would mount volumes of the node into the gateway's pods.",
			gateway: with(`{"annotations":{"sidecar.istio.io/userVolume":"{}"}}`), errs: []string{"gateway.infrastructure.annotations[sidecar.istio.io/userVolume]"},
		},
		"TLSOptions": {
			reason:  "GKE would use a certificate of the platform.",
			gateway: listensHTTPS(`{"networking.gke.io/pre-shared-certs":"platform","gateway.istio.io/tls-terminate-mode":"MUTUAL"}`),
			routes:  inputv1alpha1.Routes{AllowedTLSOptions: []string{"gateway.istio.io/tls-terminate-mode"}},
			errs:    []string{"gateway.listeners[0].tls.options[networking.gke.io/pre-shared-certs]"},
		},
		"OtherLabels": {reason: "All others are the tenant's.", gateway: with(`{"labels":{"app":"chat","team":"b"},"annotations":{"external-dns.alpha.kubernetes.io/hostname":"b.example.com"}}`)},
		"NoScope":     {reason: "This one is none.", gateway: strings.Replace(listensHTTP, `{`, `{"defaultScope":"None",`, 1), routes: inputv1alpha1.Routes{ExperimentalFields: inputv1alpha1.Allow}},
		"Unknown":     {reason: "Most clusters do not know the field.", gateway: strings.Replace(listensHTTP, `{`, `{"defaultScope":"None",`, 1), errs: []string{"gateway.defaultScope"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, errs, messages := routed(t, "", tc.gateway, &inputv1alpha1.Input{Policy: inputv1alpha1.Policy{Routes: &tc.routes}}, nil, scheduling.Snapshot{})
			if diff := cmp.Diff(tc.errs, errs, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nerrors at: -want, +got:\n%s\n%s", tc.reason, diff, messages)
			}
		})
	}
}

// TestGatewayAddresses proves that a Gateway of one's own asks for no address that may be another tenant's.
func TestGatewayAddresses(t *testing.T) {
	const why = ": a Gateway may get the requests of others that go to an address which it asks for (routes.allowedAddresses in the Composition's input)"
	refused := func(i int, value, what string) string {
		return fmt.Sprintf("spec.roles[0].gateway.addresses[%d].value: Invalid value: %q: %s%s", i, value, what, why)
	}
	const leftOut = "must be left out"
	cases := map[string]struct {
		reason    string
		addresses string
		allowed   []string
		want      []string
	}{
		"None":        {reason: "None is asked for.", addresses: `[]`},
		"Unspecified": {reason: "The implementation assigns one.", addresses: `[{"type":"IPAddress"},{}]`},
		"Default": {
			reason:    "None is allowed, whatever its type. All are reported at once.",
			addresses: `[{"value":"10.96.0.10"},{"type":"IPAddress","value":"2001:db8::1"},{"type":"Hostname","value":"ingress.istio-system.svc.cluster.local"},{"type":"NamedAddress","value":"shared"},{"type":"example.com/vip","value":"a"}]`,
			want: []string{
				refused(0, "10.96.0.10", leftOut), refused(1, "2001:db8::1", leftOut),
				refused(2, "ingress.istio-system.svc.cluster.local", leftOut), refused(3, "shared", leftOut), refused(4, "a", leftOut),
			},
		},
		"IP": {
			reason:    "An IP address, however it is written.",
			addresses: `[{"value":"192.0.2.1"},{"value":"192.0.2.2"},{"value":"2001:DB8:0::1"},{"value":"::ffff:192.0.2.1"}]`,
			allowed:   []string{"192.0.2.1", "2001:db8::1"},
			want:      []string{refused(1, "192.0.2.2", leftOut+" or match 192.0.2.1, 2001:db8::1")},
		},
		"Range": {
			reason:    "A range, of IP addresses alone.",
			addresses: `[{"value":"192.0.2.255"},{"value":"192.0.3.0"},{"value":"2001:db8:1::1"},{"value":"::ffff:192.0.3.0"},{"type":"NamedAddress","value":"192.0.2.0/24"}]`,
			allowed:   []string{"192.0.2.0/24", "2001:db8::/32"},
			want: []string{
				refused(1, "192.0.3.0", leftOut+" or match 192.0.2.0/24, 2001:db8::/32"),
				refused(3, "::ffff:192.0.3.0", leftOut+" or match 192.0.2.0/24, 2001:db8::/32"),
				refused(4, "192.0.2.0/24", leftOut+" or match 192.0.2.0/24, 2001:db8::/32"),
			},
		},
		"Names": {
			reason:    "Names, as those of hosts.",
			addresses: `[{"type":"Hostname","value":"a.lb.example.com"},{"type":"Hostname","value":"lb.example.com"},{"type":"Hostname","value":"gw.team.svc.cluster.local"},{"type":"NamedAddress","value":"ours"},{"type":"NamedAddress","value":"svc"}]`,
			allowed:   []string{"*.lb.example.com", "gw.{namespace}.svc.cluster.local", "ours", "{service}"},
			want:      []string{refused(1, "lb.example.com", leftOut+" or match *.lb.example.com, gw.team.svc.cluster.local, ours, svc")},
		},
		"OtherType": {
			reason:    "An IP address of another type is one, too.",
			addresses: `[{"type":"example.com/vip","value":"10.0.0.1"},{"type":"example.com/vip","value":"11.0.0.1"}]`,
			allowed:   []string{"10.0.0.0/8"},
			want:      []string{refused(1, "11.0.0.1", leftOut+" or match 10.0.0.0/8")},
		},
		"Any": {reason: "The platform team may allow all.", addresses: `[{"value":"10.96.0.10"},{"type":"NamedAddress","value":"A/b"}]`, allowed: []string{"*"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			gateway := strings.Replace(listensHTTP, `{`, `{"addresses":`+tc.addresses+`,`, 1)
			_, _, messages := routed(t, "", gateway, &inputv1alpha1.Input{Policy: inputv1alpha1.Policy{Routes: &inputv1alpha1.Routes{AllowedAddresses: tc.allowed}}}, nil, scheduling.Snapshot{})
			if diff := cmp.Diff(tc.want, slices.Collect(strings.SplitSeq(messages, "\n"))[:strings.Count(messages, "\n")], cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestRouteOfATenant proves that the policy is that of the service's namespace.
func TestRouteOfATenant(t *testing.T) {
	in := inputv1alpha1.Input{
		Policy: inputv1alpha1.Policy{Routes: &inputv1alpha1.Routes{AllowedParentRefs: []inputv1alpha1.AllowedParentRef{{Namespace: "infra"}}, AllowedHostnames: []string{"*"}}},
		Tenants: []inputv1alpha1.Tenant{{
			Namespaces: []string{"te*"},
			Policy:     inputv1alpha1.Policy{Routes: &inputv1alpha1.Routes{OwnGateways: inputv1alpha1.Deny, AllowedParentRefs: []inputv1alpha1.AllowedParentRef{}, AllowedHostnames: []string{}}},
		}},
	}
	_, errs, messages := routed(t, `{"parentRefs":[{"name":"gw","namespace":"infra"}]}`, listensHTTP, &in, nil, scheduling.Snapshot{})
	if diff := cmp.Diff([]string{"gateway", "httproute", "httproute.parentRefs[0]"}, errs); diff != "" {
		t.Errorf("-want, +got:\n%s\n%s", diff, messages)
	}
}

// TestRoutesOfPlacesThatAreLeft proves that a service which leaves a namespace that tenants
// share reaches no more there than it did before.
func TestRoutesOfPlacesThatAreLeft(t *testing.T) {
	w := scheduling.Snapshot{States: map[string]*scheduling.ClusterState{"edge": {Namespace: "models"}}}
	in := inputv1alpha1.Input{}
	_, errs, messages := routed(t, `{"parentRefs":[{"name":"gw","namespace":"team"}],"rules":[{"backendRefs":[{"name":"victim","port":80}]}]}`, "", &in, &v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}}, w)
	if diff := cmp.Diff([]string{"httproute.rules[0].backendRefs[0].name"}, errs); diff != "" {
		t.Errorf("-want, +got:\n%s\n%s", diff, messages)
	}
}

// The refusal of a shared gateway names it, and advises what helps.
func TestSharedGatewayAdvice(t *testing.T) {
	const assign = "the platform team sets routes.defaultHostname or routes.allowedHostnames in the Composition's input"
	const refused = "spec.roles[0].httproute: Forbidden: "
	const shared = `{"parentRefs":[{"name":"mine"},{"name":"gw","namespace":"infra"}]}`
	in := func(platform, fleet bool) inputv1alpha1.Input {
		in := inputv1alpha1.Input{Policy: inputv1alpha1.Policy{Routes: &inputv1alpha1.Routes{AllowedParentRefs: []inputv1alpha1.AllowedParentRef{{Namespace: "*", Name: "*"}}}}}
		if platform {
			in.Gateway.ParentRefs = []inputv1alpha1.ParentRef{{Name: "ours", Namespace: "infra"}}
		}
		if fleet {
			in.Fleet.ParentRefs = []inputv1alpha1.ParentRef{{Name: "hub", Namespace: "infra"}}
		}
		return in
	}
	inFleet := &v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}}
	own := func(of inputv1alpha1.Input, fleet bool) inputv1alpha1.Input {
		if fleet {
			of.Fleet.ParentRefs = []inputv1alpha1.ParentRef{{Name: "hub"}}
			return of
		}
		of.Routes.OwnGateways = inputv1alpha1.Deny
		return of
	}
	const named, ours = "must not use Gateway infra/gw, shared with other tenants, until host names are assigned: ", "must not use Gateway infra/ours, shared with other tenants, until host names are assigned: "
	cases := map[string]struct {
		reason         string
		route, gateway string
		in             inputv1alpha1.Input
		placement      *v1alpha1.Placement
		want           string
	}{
		"Named":       {reason: "The first shared gateway of the route is named.", route: shared, want: named + assign + ". Or give the router a Gateway of its own"},
		"NamedAndOwn": {reason: "The router has a Gateway of its own already.", route: shared, gateway: listensHTTP, want: named + assign + ". Or attach the route to the router's own Gateway alone"},
		"Platform":    {reason: "The platform team's gateways are shared.", in: in(true, false), want: ours + assign + ". Or give the router a Gateway of its own"},
		"Default":     {reason: "So are the default gateways.", route: `{"useDefaultGateways":"All"}`, want: "must not use the cluster's default gateways, shared with other tenants, until host names are assigned: " + assign + ". Or give the router a Gateway of its own"},
		"Denied":      {reason: "No Gateway of its own is advised that would be refused.", route: shared, in: own(in(false, false), false), want: named + assign},
		"InFleet":     {reason: "Without a fleet route, clients come to each cluster.", route: shared, placement: inFleet, want: named + assign + ". Or give the router a Gateway of its own, which a fleet route would not reach"},
		"InFleetOwn":  {reason: "The same applies to a Gateway that is there.", route: shared, gateway: listensHTTP, placement: inFleet, want: named + assign + ". Or attach the route to the router's own Gateway alone, which a fleet route would not reach"},
		"FleetRoute":  {reason: "With a fleet route, requests come by the entrypoints, also if its own gateways are not shared.", route: shared, in: own(in(false, false), true), placement: inFleet, want: named + assign},
		"NoFleet":     {reason: "Outside of the fleet there is no fleet route.", route: shared, in: own(in(false, false), true), want: named + assign + ". Or give the router a Gateway of its own"},
		"Fleet":       {reason: "No Gateway of the router's own helps against the fleet route.", gateway: listensHTTP, in: in(false, true), placement: inFleet, want: "the gateways of fleet.parentRefs are shared: " + assign},
		"FleetToo":    {reason: "The same applies beside another shared gateway.", in: in(true, true), placement: inFleet, want: ours + assign},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.in.Routes == nil {
				tc.in = in(false, false)
			}
			_, _, got := routed(t, tc.route, tc.gateway, &tc.in, tc.placement, scheduling.Snapshot{})
			if want := refused + tc.want + "\n"; got != want {
				t.Errorf("%s\ngot  %swant %s", tc.reason, got, want)
			}
		})
	}
}

// The refusal of a gateway says which one the requests of the service come by.
func TestRefusedGatewayAdvice(t *testing.T) {
	const shared, refused = `{"parentRefs":[{"name":"gw","namespace":"infra"}]}`, `spec.roles[0].httproute.parentRefs[0]: Invalid value: "infra/gw": `
	const listed = "listed in routes.allowedParentRefs or gateway.parentRefs of the Composition's input\n"
	const anyOne, entrypoint = "must be a gateway in namespace team, or be " + listed, "must be the Gateway of each cluster's entrypoint, and be in namespace team or " + listed
	hub := []inputv1alpha1.ParentRef{{Name: "hub", Namespace: "infra"}}
	inFleet := &v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}}
	cases := map[string]struct {
		reason    string
		fleet     []inputv1alpha1.ParentRef
		placement *v1alpha1.Placement
		snapshot  scheduling.Snapshot
		want      string
	}{
		"NoPlacement":  {reason: "Requests come by any gateway.", fleet: hub, want: anyOne},
		"NoFleetRoute": {reason: "The same applies in each cluster.", placement: inFleet, want: anyOne},
		"FleetRoute":   {reason: "It leads to the entrypoints.", fleet: hub, placement: inFleet, want: entrypoint},
		"LeavesFleet": {
			reason: "Where the service goes, there are none.", fleet: hub, want: anyOne,
			snapshot: scheduling.Snapshot{States: map[string]*scheduling.ClusterState{"east": {}}, Request: schedulingtest.Requested(nil, "east", 1, "w/0")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := inputv1alpha1.Input{Policy: inputv1alpha1.Policy{Routes: &inputv1alpha1.Routes{AllowedHostnames: []string{"*"}}}}
			in.Fleet.ParentRefs = tc.fleet
			_, _, got := routed(t, shared, "", &in, tc.placement, tc.snapshot)
			if want := refused + tc.want; got != want {
				t.Errorf("%s\ngot  %swant %s", tc.reason, got, want)
			}
		})
	}
}

// A Gateway of the service's own gets no requests of the fleet route, which ends at entrypoints.
func TestOwnGatewayBesideFleetRoute(t *testing.T) {
	warning := []Warning{{
		Path:    "spec.roles[0].gateway",
		Message: "the fleet route sends requests to the entrypoint of each cluster, and a Gateway of the service's own is not behind it: leave gateway out, and name the entrypoint's Gateway in httproute.parentRefs",
	}}
	cases := map[string]struct {
		reason    string
		gateway   string
		fleet     []inputv1alpha1.ParentRef
		placement *v1alpha1.Placement
		want      []Warning
	}{
		"FleetRoute":   {reason: "Both are there.", gateway: listensHTTP, fleet: []inputv1alpha1.ParentRef{{Name: "hub"}}, placement: &v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}}, want: warning},
		"NoGateway":    {reason: "The route names the entrypoint's Gateway.", fleet: []inputv1alpha1.ParentRef{{Name: "hub"}}, placement: &v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}}},
		"NoFleetRoute": {reason: "Clients come to each cluster.", gateway: listensHTTP, placement: &v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}}},
		"NoFleet":      {reason: "Outside of the fleet there is no fleet route.", gateway: listensHTTP, fleet: []inputv1alpha1.ParentRef{{Name: "hub"}}, placement: inNamespaces("team")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := defaultInput()
			in.Fleet.ParentRefs = tc.fleet
			role := v1alpha1.Role{Name: "router", ComponentType: v1alpha1.ComponentTypeRouter, HTTPRoute: document(t, `{"parentRefs":[{"name":"mine"}]}`), Gateway: document(t, tc.gateway)}
			spec := &v1alpha1.InferenceServiceSpec{Roles: []v1alpha1.Role{role}, Placement: tc.placement}
			service := naming.Identity{Name: "svc", Namespace: "team"}
			serving := []*Role{{Name: "w", Type: worker, Port: defaultPort, path: rolePath(1)}}
			_, got, errs := planRouter(0, role, spec, in, serving, newRouteAccess(service, spec, in, newTenantPolicy(service, in), &scheduling.Snapshot{}), false)
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" || len(errs) > 0 {
				t.Errorf("%s\nerrors %v, warnings -want, +got:\n%s", tc.reason, errs, diff)
			}
		})
	}
}
