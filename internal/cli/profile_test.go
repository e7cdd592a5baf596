package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestProfilesWarn shows that profiles warns of what nobody reads, as render and plan do.
func TestProfilesWarn(t *testing.T) {
	const drained = "{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceCluster, metadata: {name: east}, spec: {stopPolice: Drain}}"
	inDirectory(t, map[string]string{"fleet.yaml": drained + "\n---\n" + strings.NewReplacer("v1alpha1", "v1", "east", "west").Replace(drained)})
	out, errs := &bytes.Buffer{}, &bytes.Buffer{}
	p := Profiles{Fleet: []string{"fleet.yaml"}, Namespace: "crossplane-system"}
	if err := p.Run(Streams{In: strings.NewReader(""), Out: out, Err: errs}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "west") {
		t.Errorf("a cluster of an unknown version has a profile:\n%s", out)
	}
	want := "warning: fleet: InferenceCluster east: unknown field spec.stopPolice (did you mean spec.stopPolicy?): kubectl apply refuses it, other clients drop it\n" +
		"warning: fleet: InferenceCluster west: unknown version fusioninfer.io/v1, so it counts as missing: write it as fusioninfer.io/v1alpha1\n"
	if diff := cmp.Diff(want, errs.String()); diff != "" {
		t.Errorf("warnings: -want, +got:\n%s", diff)
	}
}
