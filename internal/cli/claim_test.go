package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// TestNameBehindClaim shows that the name fits a label, as that of Crossplane does.
func TestNameBehindClaim(t *testing.T) {
	claim := object{}
	claim.SetName(strings.Repeat("a", 63))
	xr := behindClaim(claim, "XInferenceService")
	if got := xr.GetName(); len(got) != 63 || !strings.HasPrefix(got, xr.GetGenerateName()) {
		t.Errorf("want a name of 63 characters that starts with %s, got %s", xr.GetGenerateName(), got)
	}
}

// TestBehindClaim shows what Crossplane makes of a claim.
func TestBehindClaim(t *testing.T) {
	const claim = `
apiVersion: fusioninfer.io/v1alpha1
kind: InferenceService
metadata:
  name: chat
  namespace: team
  generation: 3
  finalizers: [finalizer.apiextensions.crossplane.io]
  labels: {tier: gold, crossplane.io/composite: chat}
  annotations: {note: kept, kubectl.kubernetes.io/last-applied-configuration: x}
status: {url: old}
spec: {compositeDeletePolicy: Foreground, resourceRef: {name: chat-old}, compositionUpdatePolicy: Manual, replicas: 2}
`
	const want = `
apiVersion: fusioninfer.io/v1alpha1
kind: XInferenceService
metadata:
  annotations: {note: kept}
  generateName: chat-
  labels:
    crossplane.io/claim-name: chat
    crossplane.io/claim-namespace: team
    crossplane.io/composite: chat-009de
    tier: gold
  name: chat-009de
  resourceVersion: "999"
  uid: b05bfdb7-1af4-5afc-8ed8-b9e2a2c87496
spec:
  claimRef: {apiVersion: fusioninfer.io/v1alpha1, kind: InferenceService, name: chat, namespace: team}
  compositionUpdatePolicy: Manual
  replicas: 2
status:
  conditions:
  - {lastTransitionTime: "2024-01-01T00:00:00Z", reason: WatchCircuitClosed, status: "True", type: Responsive}
`
	in, out := object{}, object{}
	if err := yaml.Unmarshal([]byte(claim), &in.Object); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(want), &out.Object); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(out.Object, behindClaim(in, "XInferenceService").Object); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
