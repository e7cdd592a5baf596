package key

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestClusterKeys proves that each key has the text by which Crossplane knows the object, and
// that only keys of namespaces are taken for such.
func TestClusterKeys(t *testing.T) {
	cases := map[string]struct {
		reason string
		key    Key
		text   string
		// namespace is the name that NamespaceOf returns. Empty for any other key.
		namespace string
	}{
		"Ledger":        {reason: "A cluster has one ledger.", key: Ledger, text: "ledger"},
		"Usage":         {reason: "A cluster has one usage.", key: Usage, text: "usage"},
		"Reachable":     {reason: "One Object shows whether the cluster can be read.", key: NamespacedObjects.Reachable(), text: "object/reachable"},
		"ControlPlane":  {reason: "The cluster is marked with one control plane.", key: NamespacedObjects.ControlPlane(), text: "object/control-plane"},
		"Gateway":       {reason: "The entrypoint has one Gateway.", key: NamespacedObjects.Gateway(), text: "object/gateway"},
		"Nodes":         {reason: "Each pool has a collection.", key: NamespacedObjects.Nodes("namespace"), text: "object/nodes/namespace"},
		"Namespace":     {reason: "Each namespace has an Object.", key: NamespacedObjects.Namespace("team"), text: "object/namespace/team", namespace: "team"},
		"ClusterScoped": {reason: "A cluster-scoped Object is of another kind.", key: ClusterScopedObjects.Namespace("team"), text: "clusterobject/namespace/team"},
		"OfService":     {reason: "An object in another cluster is a service's.", key: New("east", string(NamespacedObjects), namespace, "team"), text: "cluster/east/object/namespace/team"},
		"NoName":        {reason: "A key that is cut off names no namespace.", key: New("", string(NamespacedObjects), namespace), text: "object/namespace"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.text, tc.key.String()); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
			parsed := Parse(tc.text)
			if diff := cmp.Diff(tc.key, parsed); diff != "" {
				t.Errorf("%s Parse: -want +got:\n%s", tc.reason, diff)
			}
			got, is := NamespacedObjects.NamespaceOf(parsed)
			if want := tc.namespace != ""; is != want {
				t.Errorf("%s The key of a namespace: want %t, got %t", tc.reason, want, is)
			}
			if is && got != tc.namespace {
				t.Errorf("%s The namespace: want %q, got %q", tc.reason, tc.namespace, got)
			}
		})
	}
}
