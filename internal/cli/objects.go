package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

func metaTime(t time.Time) metav1.Time { return metav1.Time{Time: t.UTC().Truncate(time.Second)} }

// sameSpec tells whether two objects have the same content, besides metadata and status.
func sameSpec(a, b object) bool {
	text := func(o object) []byte {
		m := maps.Clone(o.Object)
		delete(m, "metadata")
		delete(m, "status")
		t, err := json.Marshal(m)
		if err != nil {
			return []byte(err.Error()) // What was read from YAML, or from protobuf, can be written.
		}
		return t
	}
	return bytes.Equal(text(a), text(b))
}

// A config is a configuration of provider-kubernetes that reaches a cluster of the fleet.
type config struct{ group, name string }

// configOfCluster returns the configuration of an InferenceCluster.
func configOfCluster(o object) config {
	group, _, _ := unstructured.NestedString(o.Object, "spec", "providerConfigRef", "apiGroup")
	name, _, _ := unstructured.NestedString(o.Object, "spec", "providerConfigRef", "name")
	return config{cmp.Or(group, v1alpha1.GroupNamespacedObjects), name}
}

// configOfObject returns the configuration of an Object of provider-kubernetes, and whether it
// is one that a cluster of the fleet can have.
func configOfObject(o object) (config, bool) {
	gv, _ := schema.ParseGroupVersion(o.GetAPIVersion()) // The store has parsed it before.
	if gv.Group != v1alpha1.GroupNamespacedObjects && gv.Group != v1alpha1.GroupClusterScopedObjects {
		return config{}, false
	}
	kind, _, _ := unstructured.NestedString(o.Object, "spec", "providerConfigRef", "kind")
	name, _, _ := unstructured.NestedString(o.Object, "spec", "providerConfigRef", "name")
	return config{gv.Group, name}, gv.Group == v1alpha1.GroupClusterScopedObjects || kind != v1alpha1.KindProviderConfig
}

// isObject reports whether an object is an Object of provider-kubernetes.
func isObject(o object) bool {
	group := o.GroupVersionKind().Group
	return o.GetKind() == "Object" && (group == v1alpha1.GroupNamespacedObjects || group == v1alpha1.GroupClusterScopedObjects)
}

// outOfReach is what provider-kubernetes says of an Object in a cluster that does not answer.
const outOfReach = "cannot connect to the cluster"

// synced returns an Object as provider-kubernetes leaves it. In a cluster that answers it has
// applied the manifest. In a lost one it cannot tell what is there now.
func synced(o object, lost bool, address string, now time.Time) object {
	before, _, _ := unstructured.NestedMap(o.Object, "status")
	status := maps.Clone(before)
	if status == nil {
		status = map[string]any{}
	}
	condition := func(kind, status, reason, message string) any {
		c := map[string]any{"type": kind, "status": status, "reason": reason, "lastTransitionTime": stamp(now)}
		if message != "" {
			c["message"] = message
		}
		return c
	}
	if lost {
		status["conditions"] = []any{condition("Synced", "False", "ReconcileError", outOfReach)}
		o.Object["status"] = keepTimes(before, status)
		return o
	}
	manifest, _, _ := unstructured.NestedMap(o.Object, "spec", "forProvider", "manifest")
	was, _, _ := unstructured.NestedMap(before, "atProvider", "manifest")
	ref, _ := configOfObject(o)
	there := running(live(object{Object: was}, object{Object: manifest}, ref.group+"/"+ref.name, now), now)
	if there.GetKind() == "Gateway" && address != "" {
		_ = unstructured.SetNestedSlice(there.Object, []any{map[string]any{"type": "IPAddress", "value": address}}, "status", "addresses")
	}
	status["atProvider"] = map[string]any{"manifest": there.Object}
	status["conditions"] = []any{condition("Ready", "True", "Available", ""), condition("Synced", "True", "ReconcileSuccess", "")}
	o.Object["status"] = keepTimes(before, status)
	return o
}

// addressOf returns the address of the Gateways in a cluster: the one in the status of its
// InferenceCluster, or one of the range for tests.
func addressOf(xr object, ref config) string {
	if known, _, _ := unstructured.NestedString(xr.Object, "status", "entrypoint", "address", "value"); known != "" {
		return known
	}
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(ref.group + "/" + ref.name)) // It never fails.
	b := sum.Sum(nil)
	return fmt.Sprintf("198.18.%d.%d", b[2], b[3])
}

// deletes tells whether an Object deletes what it manages in its cluster. It then waits for a
// cluster that does not answer.
func deletes(o object) bool {
	policies, set, _ := unstructured.NestedStringSlice(o.Object, "spec", "managementPolicies")
	if policy, _, _ := unstructured.NestedString(o.Object, "spec", "deletionPolicy"); policy == "Orphan" {
		return false
	}
	return !set || slices.Contains(policies, "*") || slices.Contains(policies, "Delete")
}
