package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/rollout"
)

// TestKeepSelectors shows when the Service of one role turns to a further one that listens on the same port now.
func TestKeepSelectors(t *testing.T) {
	exists, serving, broken := rollout.State{Exists: true}, rollout.State{Exists: true, Serving: true}, rollout.State{Exists: true, Broken: true}
	cases := map[string]struct {
		reason  string
		alone   string
		port    int32
		updated bool
		state   rollout.State
		first   rollout.State
		want    string
	}{
		"Held":      {"Its pods may listen on the former port.", "a", 8000, false, serving, serving, "a"},
		"Updating":  {"Some of them may still be the former ones.", "a", 8000, true, exists, serving, "a"},
		"Updated":   {"All of its pods listen on that port.", "a", 8000, true, serving, serving, ""},
		"Broken":    {"It serves nowhere, and gets requests as soon as it does.", "a", 8000, false, broken, serving, ""},
		"None":      {"It has no pods.", "a", 8000, false, rollout.State{}, serving, ""},
		"Stopped":   {"The role that it selects serves nowhere, so some requests are better than none.", "a", 8000, false, serving, rollout.State{}, ""},
		"NotAlone":  {"The Service has selected both roles.", "", 8000, false, serving, serving, ""},
		"OtherRole": {"The role that it selects is gone.", "c", 8000, false, serving, serving, ""},
		"OtherPort": {"The Service is for another port.", "a", 9000, false, serving, serving, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := &Role{Name: "a", Type: v1alpha1.ComponentTypeWorker, Port: tc.port}
			b := &Role{Name: "b", Type: v1alpha1.ComponentTypeWorker, Port: 8000}
			p := &Plan{Roles: []*Role{a, b}, Clusters: []ClusterPlan{{
				Endpoint: &Endpoint{Port: 8000, Selector: map[string]string{}},
				Groups:   []Group{{Replicas: []Replica{{Role: a, Key: key.New("", key.LeaderWorkerSet, "a"), Updated: true}, {Role: b, Key: key.New("", key.LeaderWorkerSet, "b"), Updated: tc.updated}}}},
			}}}
			states := map[string]rollout.State{"a": tc.first, "b": tc.state}
			p.keepSelectors(&RunningView{Replica: func(k key.Key) rollout.State { return states[k.Name] }, ServiceRole: func(key.Key) string { return tc.alone }})
			if diff := cmp.Diff(tc.want, p.Clusters[0].Endpoint.Selector[naming.LabelRoleName]); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestEndpointTLS proves that the Service of a service without a router is known to serve TLS as its engines do.
func TestEndpointTLS(t *testing.T) {
	role := func(name, port, more string) string {
		return "{name: " + name + ", componentType: worker, replicas: 1, template: {spec: {containers: [{name: vllm, image: vllm/vllm-openai:v0.19.0, args: [m, --port, '" + port + "'" + more + "]}]}}}"
	}
	const tls = ", --ssl-certfile, /tls/tls.crt, --ssl-keyfile, /tls/tls.key"
	cases := map[string]struct {
		reason, roles string
		want          Endpoint
	}{
		"Plain":     {"It has no certificate.", role("a", "8000", ""), Endpoint{Port: 8000}},
		"TLS":       {"It has one.", role("a", "8000", tls), Endpoint{Port: 8000, TLS: true}},
		"All":       {"All have one.", role("a", "8000", tls) + ", " + role("b", "8000", tls), Endpoint{Port: 8000, TLS: true}},
		"OtherPort": {"The Service selects the first role alone.", role("a", "8000", tls) + ", " + role("b", "8001", ""), Endpoint{Port: 8000, TLS: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, err := build(t, "{roles: ["+tc.roles+"]}", "{}")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&tc.want, p.Clusters[0].Endpoint, cmpopts.IgnoreFields(Endpoint{}, "Selector")); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
