package v1alpha1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

func TestIdentity(t *testing.T) {
	labels := map[string]string{v1alpha1.LabelClaimName: "claim", v1alpha1.LabelClaimNamespace: "tenant"}
	cases := map[string]struct {
		reason string
		kind   string
		meta   metav1.ObjectMeta
		claim  v1alpha1.ClaimReference
		want   [2]string
	}{
		"XR": {
			reason: "A namespaced XR has its own name and namespace.",
			meta:   metav1.ObjectMeta{Name: "xr", Namespace: "ns"},
			want:   [2]string{"xr", "ns"},
		},
		"XRWithLabels": {
			reason: "Labels that a user puts on a namespaced XR neither rename it nor move it to another tenant.",
			meta:   metav1.ObjectMeta{Name: "xr", Namespace: "ns", Labels: labels},
			want:   [2]string{"xr", "ns"},
		},
		"Claim": {
			reason: "The XR behind a claim has labels with the name and the namespace of the claim.",
			kind:   v1alpha1.KindClaimedService,
			meta:   metav1.ObjectMeta{Name: "claim-x7k2p", Labels: labels},
			claim:  v1alpha1.ClaimReference{Name: "other", Namespace: "other"},
			want:   [2]string{"claim", "tenant"},
		},
		"ClaimRef": {
			reason: "Without the labels, spec.claimRef is used.",
			kind:   v1alpha1.KindClaimedService,
			meta:   metav1.ObjectMeta{Name: "claim-x7k2p"},
			claim:  v1alpha1.ClaimReference{Name: "claim", Namespace: "tenant"},
			want:   [2]string{"claim", "tenant"},
		},
		"Neither": {
			reason: "A cluster-scoped XR without a claim has no tenant.",
			kind:   v1alpha1.KindClaimedService,
			meta:   metav1.ObjectMeta{Name: "xr"},
			want:   [2]string{"xr", ""},
		},
		"File": {
			reason: "A namespaced XR without a namespace, as in a file, is in the namespace default.",
			kind:   v1alpha1.KindInferenceService,
			meta:   metav1.ObjectMeta{Name: "xr"},
			want:   [2]string{"xr", "default"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			n, ns := v1alpha1.Identity(tc.kind, &tc.meta, tc.claim)
			if diff := cmp.Diff(tc.want, [2]string{n, ns}); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
