package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSimulateReservations names the reservations of required clusters for services that are not in the files, as a plan does.
func TestSimulateReservations(t *testing.T) {
	const (
		rendered = "{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceService, metadata: {name: chat, namespace: team}, spec: {placement: {clusterSelector: {}}}}\n"
		other    = "---\n{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceService, metadata: {name: other, namespace: team, uid: gone}, spec: {placement: {clusterSelector: {}}}}\n"
		free     = "warning: west has a reservation for team/other, which is not in the files: its capacity counts as free\n"
		deleted  = "warning: --required: team/other is being deleted, so it counts as gone, and its capacity as free\n"
	)
	cases := map[string]struct {
		reason       string
		xr, required string
		want         string
	}{
		"Missing":  {reason: "Nobody simulates the service, so its room looks free.", xr: rendered, required: nodes, want: free},
		"Required": {reason: "A required service is simulated.", xr: rendered, required: nodes + other},
		"Rendered": {reason: "So is the one that is rendered.", xr: strings.Replace(rendered, "name: chat", "name: chat, uid: gone", 1), required: nodes},
		"ByName":   {reason: "A file from a repository has no UID.", xr: strings.Replace(rendered, "name: chat", "name: other", 1), required: nodes},
		"Unnamed": {
			reason: "A service without a UID has the one that render gives it.", xr: rendered,
			required: strings.Replace(nodes, "uid: gone", "uid: "+string(defaultUID(asObject(t, other))), 1) + strings.Replace(other, ", uid: gone", "", 1),
		},
		"Deleted": {
			reason: "Of one that is being deleted, a warning says that already.", xr: rendered,
			required: nodes + strings.Replace(other, "uid: gone", `uid: gone, deletionTimestamp: "2024-01-01T00:00:00Z"`, 1), want: deleted,
		},
		"Cluster": {reason: "The cluster may be what is rendered.", xr: nodes, required: rendered, want: free},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inDirectory(t, map[string]string{"xr.yaml": tc.xr, "fleet.yaml": tc.required})
			errs := &bytes.Buffer{}
			r := Render{XR: "xr.yaml", Required: []string{"fleet.yaml"}, Simulate: true}
			if err := r.Run(t.Context(), clocked{fn: stays}, Streams{In: strings.NewReader(""), Out: &bytes.Buffer{}, Err: errs}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, errs.String()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// asObject reads one document.
func asObject(t *testing.T, text string) object {
	t.Helper()
	all, err := documents([]byte(text))
	if err != nil || len(all) != 1 {
		t.Fatalf("%d documents: %v", len(all), err)
	}
	return all[0]
}
