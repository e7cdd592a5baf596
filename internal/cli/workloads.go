package cli

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"time"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// running returns an object as its controller reports it once everything has started. Objects
// of kinds that are not here need no report.
func running(o object, now time.Time) object {
	generation := o.GetGeneration()
	condition := func(kind, status string) any {
		return map[string]any{"type": kind, "status": status, "reason": "Simulated", "observedGeneration": generation, "lastTransitionTime": stamp(now)}
	}
	accepted := []any{condition("Accepted", "True"), condition("ResolvedRefs", "True")}
	var status map[string]any
	switch o.GetKind() {
	case "LeaderWorkerSet":
		n := replicasOf(o)
		updated := n
		if held, _, _ := unstructured.NestedNumberAsFloat64(o.Object, "spec", "rolloutStrategy", "rollingUpdateConfiguration", "partition"); held > 0 {
			updated = 0 // It keeps the pods that it had.
		}
		status = map[string]any{
			"observedGeneration": generation, "replicas": n, "readyReplicas": n, "updatedReplicas": updated,
			"conditions": []any{condition("Available", "True"), condition("Progressing", "False"), condition("UpdateInProgress", "False")},
		}
	case "Deployment":
		n := replicasOf(o)
		status = map[string]any{
			"observedGeneration": generation, "replicas": n, "readyReplicas": n, "updatedReplicas": n, "availableReplicas": n,
			"conditions": []any{condition("Available", "True"), condition("Progressing", "True")},
		}
	case "Job":
		status = map[string]any{"succeeded": int64(1), "conditions": []any{condition("Complete", "True")}}
	case "PodGroup":
		status = map[string]any{"phase": "Running"}
	case "Gateway":
		status = map[string]any{"conditions": []any{condition("Accepted", "True"), condition("Programmed", "True")}}
	case "InferencePool":
		status = map[string]any{"parents": []any{map[string]any{"conditions": accepted}}}
	case "HTTPRoute":
		refs, _, _ := unstructured.NestedSlice(o.Object, "spec", "parentRefs")
		var parents []any
		for _, ref := range refs {
			parents = append(parents, map[string]any{"parentRef": ref, "conditions": accepted})
		}
		status = map[string]any{"parents": parents}
	default:
		return o
	}
	before, _, _ := unstructured.NestedMap(o.Object, "status")
	o.Object["status"] = keepTimes(before, status)
	return o
}

func replicasOf(o object) int64 {
	if n, said := number(o.Object, "spec", "replicas"); said {
		return n
	}
	return 1
}

// stamp writes a time as Kubernetes does.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// keepTimes returns a status whose conditions keep the time at which they last changed.
func keepTimes(before, status map[string]any) map[string]any {
	status = maps.Clone(status)
	list, _ := status["conditions"].([]any)
	all := make([]any, 0, len(list))
	for _, c := range list {
		m, _ := c.(map[string]any)
		all = append(all, keepTime(before, m))
	}
	if len(all) > 0 {
		status["conditions"] = all
	}
	return status
}

func keepTime(before, condition map[string]any) map[string]any {
	list, _ := before["conditions"].([]any)
	for _, c := range list {
		was, _ := c.(map[string]any)
		if was["type"] == condition["type"] && was["status"] == condition["status"] && was["reason"] == condition["reason"] && was["message"] == condition["message"] {
			condition = maps.Clone(condition)
			condition["lastTransitionTime"] = was["lastTransitionTime"]
			return condition
		}
	}
	return condition
}

// live returns an object as an API server has it once it is applied over the one of before,
// which is empty if it is new. in tells objects of one name in different clusters apart.
func live(before, o object, in string, now time.Time) object {
	o = *o.DeepCopy()
	if before.Object == nil {
		o.SetUID(types.UID(uuid.NewSHA1(uuid.Nil, []byte(in+"\x00"+string(defaultUID(o)))).String()))
		o.SetCreationTimestamp(metaTime(now))
		o.SetGeneration(1)
		return o
	}
	o.SetUID(before.GetUID())
	o.SetCreationTimestamp(before.GetCreationTimestamp())
	o.SetDeletionTimestamp(before.GetDeletionTimestamp())
	o.SetGeneration(max(before.GetGeneration(), 1))
	keepReplicas(before, o)
	if !sameSpec(before, o) {
		o.SetGeneration(o.GetGeneration() + 1)
	}
	if status, ok := before.Object["status"]; ok {
		o.Object["status"] = status
	}
	return o
}

// generatedName returns the name that an object of a key gets whose name the API server
// generates. Here it is the same each time.
func generatedName(o object, xr object, key string) string {
	sum := sha256.Sum256([]byte(string(xr.GetUID()) + "\x00" + key))
	return fmt.Sprintf("%s%x", o.GetGenerateName(), sum[:6])
}
