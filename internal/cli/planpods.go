package cli

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
)

// runningPods are what a replica runs: the role, and a hash of the template of its pods.
type runningPods struct{ role, hash string }

// pods returns what the replicas of a service run, by the keys of their LeaderWorkerSets.
func (s *simulation) pods(id identity) map[string]runningPods {
	all := map[string]runningPods{}
	for k, o := range s.store.observed(id) {
		if _, _, inner := unwrap(o); inner.GetKind() == "LeaderWorkerSet" {
			labels := inner.GetLabels()
			// A replica that is held has a new template, and runs the former one.
			held := inner.GetAnnotations()[naming.AnnotationRunningSpecHash]
			all[k] = runningPods{labels[naming.LabelRoleName], cmp.Or(held, labels[naming.LabelSpecHash])}
		}
	}
	return all
}

// changedPods says how many replicas of each role a change restarts where they are.
func changedPods(o object, before, after map[string]runningPods) []string {
	var all []string
	for _, role := range rolesOf(o) {
		kept, restarted := 0, 0
		for k, is := range after {
			was, existed := before[k]
			if !existed || is.role != role {
				continue
			}
			kept++
			if was.hash != is.hash {
				restarted++
			}
		}
		switch {
		case restarted == 0:
		case kept == 1:
			all = append(all, "restarts the replica of role "+role)
		case restarted == kept:
			all = append(all, fmt.Sprintf("restarts all %d replicas of role %s, %s", kept, role, pace(o)))
		default:
			all = append(all, fmt.Sprintf("restarts %d of %d replicas of role %s, %s", restarted, kept, role, pace(o)))
		}
	}
	return all
}

// pace says how many units of a service change at once.
func pace(o object) string {
	spec := v1alpha1.InferenceServiceSpec{}
	if rollout, set, _ := unstructured.NestedMap(o.Object, "spec", "rollout"); set {
		r := &v1alpha1.Rollout{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(rollout, r) == nil {
			spec.Rollout = r
		}
	}
	r := spec.RolloutOf()
	if n := *r.MaxUnavailable + *r.MaxSurge; n > 1 {
		return fmt.Sprintf("up to %d units at a time", n)
	}
	return "one unit at a time"
}

// scaledReplicas says which roles have another number of replicas.
func scaledReplicas(was, is object) []string {
	var all []string
	for _, role := range rolesOf(is) {
		before, existed := componentNumber(was, role, "desiredReplicas")
		after, exists := componentNumber(is, role, "desiredReplicas")
		if existed && exists && before != after {
			all = append(all, fmt.Sprintf("scales role %s from %d to %d replicas", role, before, after))
		}
	}
	return all
}

// rolesOf are the names of the roles of a service, in their order, without those of routers.
func rolesOf(o object) []string {
	var all []string
	roles, _ := specOf(o)["roles"].([]any)
	for _, r := range roles {
		role, _ := r.(map[string]any)
		if name, _ := role["name"].(string); !slices.Contains(all, name) && role["componentType"] != string(v1alpha1.ComponentTypeRouter) {
			all = append(all, name)
		}
	}
	return all
}
