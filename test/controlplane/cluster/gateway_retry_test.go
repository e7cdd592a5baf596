package cluster

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRetries tells where requests go of which some backends cannot be connected.
func TestRetries(t *testing.T) {
	t.Parallel()
	service := func(name, address string) string {
		return fmt.Sprintf("{kind: Service, metadata: {name: %[1]s, namespace: default}, spec: {ports: [{port: 80}]}}\n---\n"+
			"{kind: EndpointSlice, metadata: {name: %[1]s, namespace: default, labels: {kubernetes.io/service-name: %[1]s}}, addressType: IPv4, ports: [{port: 80}], endpoints: [{addresses: [%[2]s]}]}", name, address)
	}
	policy := func(spec string) string {
		return "{kind: BackendTrafficPolicy, metadata: {name: p}, spec: " + spec + "}"
	}
	const (
		retry   = "retry: {numRetries: 5, retryOn: {triggers: [connect-failure]}}"
		target  = "targetRefs: [{kind: Gateway, name: gw}]"
		both    = "[{backendRefs: [{name: lost, port: 80}, {name: there, port: 80}]}]"
		lost    = "[{backendRefs: [{name: lost, port: 80}]}]"
		filters = "[{backendRefs: [{name: lost, port: 80, filters: [{type: RequestHeaderModifier, requestHeaderModifier: {remove: [a]}}]}, {name: there, port: 80}]}]"
	)
	for name, tc := range map[string]struct {
		rules, policy string
		// wantFailed is whether some requests fail, and wantAnswered whether some are answered.
		wantFailed, wantAnswered bool
	}{
		"None":            {both, "", true, true},
		"ConnectFailure":  {both, policy("{" + target + ", " + retry + "}"), false, true},
		"ByDefault":       {both, policy("{" + target + ", retry: {}}"), false, true},
		"OtherTrigger":    {both, policy("{" + target + ", retry: {retryOn: {triggers: [reset]}}}"), true, true},
		"OtherGateway":    {both, policy("{targetRefs: [{kind: Gateway, name: other}], " + retry + "}"), true, true},
		"OtherKind":       {both, policy("{targetRefs: [{kind: HTTPRoute, name: gw}], " + retry + "}"), true, true},
		"NoRetry":         {both, policy("{" + target + "}"), true, true},
		"NoOtherBackend":  {lost, policy("{" + target + ", " + retry + "}"), true, false},
		"BackendsFilters": {filters, policy("{" + target + ", " + retry + "}"), true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// Nobody listens at the first one.
			var objects []string
			for _, o := range []string{service("lost", "10.0.0.7"), service("there", "10.0.0.8")} {
				objects = append(objects, strings.Split(o, "\n---\n")...)
			}
			p := plane(t, objects...)
			p.at["10.0.0.7:80"] = "127.0.0.1:1"
			p.backend("10.0.0.8:80", func(http.ResponseWriter, *http.Request) {})
			others := []string{}
			if tc.policy != "" {
				others = append(others, tc.policy)
			}
			p.rules(tc.rules, others...)
			failed, answered := false, false
			for range 40 {
				got := p.get("/")
				failed, answered = failed || strings.HasPrefix(got, "503 "), answered || got == "200 "
			}
			if diff := cmp.Diff([]bool{tc.wantFailed, tc.wantAnswered}, []bool{failed, answered}); diff != "" {
				t.Errorf("some requests fail, some are answered: -want, +got:\n%s", diff)
			}
		})
	}
}
