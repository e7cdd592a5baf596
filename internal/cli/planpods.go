package cli

import (
	"cmp"
	"fmt"

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
	spec := serviceSpec(o)
	for _, role := range rolesOf(spec) {
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
			all = append(all, fmt.Sprintf("restarts all %d replicas of role %s, %s", kept, role, pace(spec)))
		default:
			all = append(all, fmt.Sprintf("restarts %d of %d replicas of role %s, %s", restarted, kept, role, pace(spec)))
		}
	}
	return all
}

// pace says how many units of a service change at once.
func pace(spec *v1alpha1.InferenceServiceSpec) string {
	r := spec.RolloutOf()
	if n := *r.MaxUnavailable + *r.MaxSurge; n > 1 {
		return fmt.Sprintf("up to %d units at a time", n)
	}
	return "one unit at a time"
}

// scaledReplicas says which roles have another number of replicas.
func scaledReplicas(was, is object) []string {
	var all []string
	for _, role := range rolesOf(serviceSpec(is)) {
		before, existed := componentNumber(was, role, "desiredReplicas")
		after, exists := componentNumber(is, role, "desiredReplicas")
		if existed && exists && before != after {
			all = append(all, fmt.Sprintf("scales role %s from %d to %d replicas", role, before, after))
		}
	}
	return all
}

// rolesOf are the names of the roles of a service, in their order, without those of routers.
func rolesOf(spec *v1alpha1.InferenceServiceSpec) []string {
	var all []string
	for i := range spec.Roles {
		if r := &spec.Roles[i]; r.ComponentType != v1alpha1.ComponentTypeRouter {
			all = append(all, r.Name)
		}
	}
	return all
}
