package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/rollout"
)

// TestSidecar proves that a client's header leads the sidecar to pods of the service only,
// and that whoever runs it may see which those are.
func TestSidecar(t *testing.T) {
	const image = inputv1alpha1.DefaultSidecarImage
	cases := map[string]struct {
		reason   string
		spec     string
		in       inputv1alpha1.SidecarSettings
		want     Sidecar
		accounts []string
	}{
		"Default": {
			reason: "Protected, with the account that pods have by default.",
			spec:   `containers: [{name: vllm, image: x}]`,
			want:   Sidecar{Image: image, Connector: "nixlv2", PoolOnly: true, ServiceAccount: "default"}, accounts: []string{"default"},
		},
		"Account": {
			reason: "With the pods' own account.",
			spec:   `serviceAccountName: models, containers: [{name: vllm, image: x}]`,
			want:   Sidecar{Image: image, Connector: "nixlv2", PoolOnly: true, ServiceAccount: "models"}, accounts: []string{"models"},
		},
		"OldAccount": {
			reason: "Also where it has the name that the field had once.",
			spec:   `serviceAccount: models, containers: [{name: vllm, image: x}]`,
			want:   Sidecar{Image: image, Connector: "nixlv2", PoolOnly: true, ServiceAccount: "models"}, accounts: []string{"models"},
		},
		"Root": {
			reason: "Where containers are root, the sidecar is not.",
			spec:   `securityContext: {runAsUser: 0}, containers: [{name: vllm, image: x}]`,
			want:   Sidecar{Image: image, Connector: "nixlv2", PoolOnly: true, ServiceAccount: "default", AsRoot: true}, accounts: []string{"default"},
		},
		"Disabled": {
			reason: "The platform team may have an image that cannot do it; nobody needs rights then.",
			spec:   `containers: [{name: vllm, image: x}]`,
			in:     inputv1alpha1.SidecarSettings{SSRFProtection: inputv1alpha1.Disabled},
			want:   Sidecar{Image: image, Connector: "nixlv2", ServiceAccount: "default"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := &inputv1alpha1.Input{Sidecar: tc.in}
			inputv1alpha1.Default(in)
			role := v1alpha1.Role{Name: "d", ComponentType: decoder, Template: document(t, "spec: {"+tc.spec+"}")}
			got, _, errs := planRole(1, role, loads{}, in, true)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			if diff := cmp.Diff(&tc.want, got.Sidecar); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			p := &Plan{Roles: []*Role{{Name: "p"}, got, got}}
			if diff := cmp.Diff(tc.accounts, p.SidecarAccounts(&ClusterPlan{})); diff != "" {
				t.Errorf("%s\naccounts: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestFormerAccounts proves that sidecars of pods that may have a former template go on reading the pool,
// and that only those of the newest one do otherwise.
func TestFormerAccounts(t *testing.T) {
	serves := rollout.State{Exists: true, Revision: "new", Serving: true}
	cases := map[string]struct {
		reason string
		state  rollout.State
		held   bool
		before []string
		want   []string
	}{
		"Serves":    {reason: "Its pods are of the newest template.", state: serves, before: []string{"one", "new"}, want: []string{"new"}},
		"Held":      {reason: "Its pods are of a former template.", state: rollout.State{Exists: true, Revision: "old", Serving: true}, held: true, before: []string{"one"}, want: []string{"one", "new"}},
		"BeingMade": {reason: "Its pods are being replaced.", state: rollout.State{Exists: true, Revision: "new"}, before: []string{"one", "new"}, want: []string{"one", "new"}},
		"PutBack":   {reason: "The order stays: the oldest come first.", state: rollout.State{Exists: true, Revision: "new"}, before: []string{"new", "one", "two"}, want: []string{"new", "one", "two"}},
		"Absent":    {reason: "It starts with the newest template.", before: []string{"one"}, want: []string{"new"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			role := &Role{Name: "d", Type: decoder, Sidecar: &Sidecar{PoolOnly: true, ServiceAccount: "new"}}
			r := Replica{Role: role, Held: tc.held, Updated: tc.state.Exists && !tc.held}
			p := &Plan{Roles: []*Role{role}, Clusters: []ClusterPlan{{Groups: []Group{{Replicas: []Replica{r}}}}}}
			p.keepAccounts(&Running{
				Replica:         func(key.Key) rollout.State { return tc.state },
				SidecarAccounts: func(key.Key) []string { return tc.before },
			})
			if diff := cmp.Diff(tc.want, p.SidecarAccounts(&p.Clusters[0])); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestConnector proves that a service may name the connector that its engines speak.
func TestConnector(t *testing.T) {
	const path = "spec.roles[0].endpointPicker.kvConnector"
	cases := map[string]struct {
		reason    string
		connector string
		serving   []*Role
		want      []string
		warnings  []Warning
	}{
		"None":      {reason: "The platform team's stays.", serving: []*Role{{Sidecar: &Sidecar{Connector: "nixlv2"}}}, want: []string{"nixlv2"}},
		"Named":     {reason: "The service's wins, in each pod with a sidecar.", connector: "mooncake", serving: []*Role{{}, {Sidecar: &Sidecar{Connector: "nixlv2"}}, {Sidecar: &Sidecar{}}}, want: []string{"mooncake", "mooncake"}},
		"NoSidecar": {reason: "Nobody would notice that it has no effect.", connector: "mooncake", serving: []*Role{{}}, warnings: []Warning{{Path: path, Message: "has no effect: no pod of the service has a routing sidecar added"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			warnings := planConnector(rolePath(0), tc.connector, tc.serving)
			var got []string
			for _, r := range tc.serving {
				if r.Sidecar != nil {
					got = append(got, r.Sidecar.Connector)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nconnectors: -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.warnings, warnings); diff != "" {
				t.Errorf("%s\nwarnings: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
