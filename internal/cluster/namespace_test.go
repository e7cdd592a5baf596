package cluster

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

// TestNamespace proves how the namespaces of services are created, and that those of others
// are left as they are.
func TestNamespace(t *testing.T) {
	const input = "{apiVersion: fn.fusioninfer.io/v1alpha1, kind: ClusterInput"
	found := func(labels string) string {
		return "{kind: Object, apiVersion: kubernetes.m.crossplane.io/v1alpha1, status: {conditions: [{type: Synced, status: 'True'}], atProvider: {manifest: {kind: Namespace, metadata: {name: team, labels: {" + labels + "}}}}}}"
	}
	ours := func(labels map[string]any) map[string]any {
		labels["fusioninfer.io/cluster"] = "us-east"
		return map[string]any{"name": "team", "labels": labels}
	}
	baseline := ours(map[string]any{"pod-security.kubernetes.io/enforce": "baseline", "pod-security.kubernetes.io/enforce-version": "latest"})
	once, kept := []any{"Observe", "Create"}, []any{"Observe", "Create", "Update"}
	type want struct{ Metadata, Policies any }
	cases := map[string]struct {
		reason   string
		input    string
		observed string
		want     want
	}{
		"New":      {"It is made with the standard of its tenant.", "}", "", want{baseline, once}},
		"Ours":     {"One that this cluster made follows what the platform team sets.", "}", found("fusioninfer.io/cluster: us-east"), want{baseline, kept}},
		"Others":   {"One that somebody else made may have stricter labels, or other pods in it: it is left as it is.", "}", found("pod-security.kubernetes.io/enforce: restricted"), want{baseline, once}},
		"Another":  {"So is one of another InferenceCluster.", "}", found("fusioninfer.io/cluster: us-west"), want{baseline, once}},
		"NotThere": {"Until it is known whose it is, nothing is changed.", "}", "{kind: Object, apiVersion: kubernetes.m.crossplane.io/v1alpha1}", want{baseline, once}},
		"Tenant": {
			"The standard is the one of the tenant.",
			", tenants: [{namespaces: [team], podSecurity: {enforce: restricted, enforceVersion: v1.34}}]}", "",
			want{ours(map[string]any{"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/enforce-version": "v1.34"}), once},
		},
		"Capabilities": {
			"Labels cannot allow a capability: the cluster would refuse pods that the function allows.",
			", podSecurity: {enforce: restricted, allowedCapabilities: [IPC_LOCK]}}", "",
			want{ours(map[string]any{
				"pod-security.kubernetes.io/enforce": "privileged", "pod-security.kubernetes.io/enforce-version": "latest",
				"pod-security.kubernetes.io/warn": "restricted", "pod-security.kubernetes.io/warn-version": "latest",
				"pod-security.kubernetes.io/audit": "restricted", "pod-security.kubernetes.io/audit-version": "latest",
			}), once},
		},
		"Meta": {
			"The platform team's own labels and annotations do not loosen the standard.",
			", serviceNamespaces: {labels: {a: b, pod-security.kubernetes.io/enforce: privileged}, annotations: {c: d}}}", "",
			want{map[string]any{"name": "team", "annotations": map[string]any{"c": "d"}, "labels": map[string]any{
				"a": "b", "fusioninfer.io/cluster": "us-east", "pod-security.kubernetes.io/enforce": "baseline", "pod-security.kubernetes.io/enforce-version": "latest",
			}}, once},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			observed := map[string]string{keyLedger: ledgerOf(reserved), "object/reachable": reached}
			if tc.observed != "" {
				observed["object/namespace/team"] = tc.observed
			}
			req := request(t, typedIn, observed, map[string][]string{requests: {capacityRequest("u1", "team", 8, "u1")}})
			req.Input = doc(t, input+tc.input).GetResource()
			o := kube.AsMap(run(t, req).GetDesired().GetResources()["object/namespace/team"].GetResource())
			spec, _ := o["spec"].(map[string]any)
			carried, _ := spec["forProvider"].(map[string]any)
			manifest, _ := carried["manifest"].(map[string]any)
			if diff := cmp.Diff(tc.want, want{manifest["metadata"], spec["managementPolicies"]}); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestOnlyOwnNamespaces proves that a request creates no namespace but the one with the name
// of its tenant's namespace.
func TestOnlyOwnNamespaces(t *testing.T) {
	forged := strings.Replace(capacityRequest("u1", "team", 8, "u1"), `"names":["us-east"],"namespace":"team"`, `"names":["us-east"],"namespace":"kube-system"`, 1)
	rsp := run(t, request(t, typedIn, map[string]string{keyLedger: ledgerOf("{}"), "object/reachable": reached}, map[string][]string{requests: {forged}}))
	if o := outcomeOf(rsp); len(o.allocated) != 1 {
		t.Fatalf("nothing is reserved: %+v", o)
	}
	for key := range rsp.GetDesired().GetResources() {
		if strings.Contains(key, "namespace/") {
			t.Errorf("%s is made", key)
		}
	}
}
