package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
)

// runningPods are what a replica runs: the role, a hash of the template of its pods, and the images of that by the names of
// the containers. There are no images of a replica that is held.
type runningPods struct {
	role, hash string
	images     map[string]string
}

// pods returns what the replicas of a service run, by the keys of their LeaderWorkerSets.
func (s *simulation) pods(id identity) map[string]runningPods {
	all := map[string]runningPods{}
	for k, o := range s.store.observed(id) {
		if _, _, inner := unwrap(o); inner.GetKind() == "LeaderWorkerSet" {
			labels := inner.GetLabels()
			is := runningPods{role: labels[naming.LabelRoleName], hash: labels[naming.LabelSpecHash]}
			// A replica that is held has a new template, and runs the former one.
			if held := inner.GetAnnotations()[naming.AnnotationRunningSpecHash]; held != "" {
				is.hash = held
			} else {
				is.images = imagesOf(inner)
			}
			all[k] = is
		}
	}
	return all
}

// imagesOf returns the images of a LeaderWorkerSet, by the names of the containers. A container of the workers that has
// another image than that of the leader has a name of its own.
func imagesOf(o object) map[string]string {
	all := map[string]string{}
	for _, template := range []string{"leaderTemplate", "workerTemplate"} {
		for _, list := range []string{"initContainers", "containers"} {
			for _, c := range containersOf(o, template, list) {
				name, _, _ := unstructured.NestedString(c, "name")
				image, _, _ := unstructured.NestedString(c, "image")
				if of := all[name]; of != "" && of != image {
					name += " of the workers"
				}
				all[name] = image
			}
		}
	}
	return all
}

// newImages says which containers of a replica get another image.
func newImages(was, is runningPods) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(is.images)) {
		if before, after := was.images[name], is.images[name]; before != "" && after != "" && before != after {
			all = append(all, fmt.Sprintf("%s runs %s instead of %s", name, after, before))
		}
	}
	return strings.Join(all, ", ")
}

// changedPods says how many replicas of each role a change restarts where they are, and with which images.
func changedPods(o object, before, after map[string]runningPods) []string {
	var all []string
	spec := serviceSpec(o)
	for _, role := range rolesOf(spec) {
		kept, restarted, images := 0, 0, map[string]bool{}
		for k, is := range after {
			was, existed := before[k]
			if !existed || is.role != role {
				continue
			}
			kept++
			if was.hash != is.hash {
				restarted++
				images[newImages(was, is)] = true
			}
		}
		delete(images, "")
		all = append(all, restarts(role, restarted, kept, spec)...)
		all = append(all, slices.Sorted(maps.Keys(images))...)
	}
	return all
}

// restarts says how many of the replicas that a role keeps are restarted.
func restarts(role string, restarted, kept int, spec *v1alpha1.InferenceServiceSpec) []string {
	switch {
	case restarted == 0:
		return nil
	case kept == 1:
		return []string{"restarts the replica of role " + role}
	case restarted == kept:
		return []string{fmt.Sprintf("restarts all %d replicas of role %s, %s", kept, role, pace(spec))}
	}
	return []string{fmt.Sprintf("restarts %d of %d replicas of role %s, %s", restarted, kept, role, pace(spec))}
}

// pace says how many units of a service change at once.
func pace(spec *v1alpha1.InferenceServiceSpec) string {
	r := spec.RolloutOf()
	if n := *r.MaxUnavailable + *r.MaxSurge; n > 1 {
		return fmt.Sprintf("up to %d units at a time", n)
	}
	return "one unit at a time"
}

// changedRoles says which roles come or go, and which have another number of replicas. The function counts the replicas
// in the status, unless it refuses the service.
func changedRoles(was, is object) []string {
	had, has := rolesOf(serviceSpec(was)), rolesOf(serviceSpec(is))
	var all []string
	for _, role := range has {
		before, existed := componentNumber(was, role, "desiredReplicas")
		after, exists := componentNumber(is, role, "desiredReplicas")
		switch kept := slices.Contains(had, role); {
		case was.Object == nil || !exists: // A new service has no other roles.
		case !kept:
			all = append(all, fmt.Sprintf("adds role %s with %s", role, replicas(after)))
		case existed && before != after:
			all = append(all, fmt.Sprintf("scales role %s from %d to %d replicas", role, before, after))
		}
	}
	for _, role := range had {
		_, existed := componentNumber(was, role, "desiredReplicas")
		if _, stays := componentNumber(is, role, "desiredReplicas"); existed && !stays && !slices.Contains(has, role) {
			all = append(all, "removes role "+role)
		}
	}
	return all
}

func replicas(n int64) string {
	if n == 1 {
		return "1 replica"
	}
	return fmt.Sprintf("%d replicas", n)
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
