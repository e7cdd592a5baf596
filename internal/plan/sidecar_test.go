package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/input/v1beta1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

// TestSidecar proves that a client's header leads the sidecar to pods of the service only,
// and that whoever runs it may see which those are.
func TestSidecar(t *testing.T) {
	const image = v1beta1.DefaultSidecarImage
	cases := map[string]struct {
		reason   string
		spec     string
		in       v1beta1.Sidecar
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
			in:     v1beta1.Sidecar{SSRFProtection: v1beta1.Disabled},
			want:   Sidecar{Image: image, Connector: "nixlv2", ServiceAccount: "default"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := &v1beta1.Input{Sidecar: tc.in}
			v1beta1.Default(in)
			role := v1alpha1.Role{Name: "d", ComponentType: decoder, Template: document(t, "spec: {"+tc.spec+"}")}
			got, _, errs := planRole(1, role, in, true)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			if diff := cmp.Diff(&tc.want, got.Sidecar); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			p := &Plan{Roles: []*Role{{Name: "p"}, got, got}}
			if diff := cmp.Diff(tc.accounts, p.SidecarAccounts()); diff != "" {
				t.Errorf("%s\naccounts: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
