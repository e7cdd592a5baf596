package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

// load makes a simulation of a fleet, and settles it. Who runs where is taken from the composed
// resources where the files have some, and else from the status of the services. InferenceRoles
// say how many replicas of a role do. It returns what could not be taken over, for people.
func load(ctx context.Context, s *simulation, all []object) ([]string, error) {
	warnings, lost := countNodes(all), map[config]bool{}
	all = append(slices.Clone(all), saidTargets(all)...)
	var later []object
	for _, o := range all {
		if ofCluster(o) && conditionOf(o, v1alpha1.ConditionReachable) == "False" {
			lost[configOfCluster(o)] = true
		}
		first, pinned := atFirst(all, o)
		if pinned || isXRKind(o) {
			later = append(later, o)
		}
		if pinned || !isXRKind(o) || composes(all, o) {
			if err := s.add(first); err != nil {
				return nil, err
			}
		}
	}
	s.adopt(all)
	// First each service starts in the clusters in which it is.
	if err := s.settle(ctx, 0); err != nil {
		return nil, err
	}
	if err := s.release(later); err != nil {
		return nil, err
	}
	if err := s.lose(lost); err != nil {
		return nil, err
	}
	if err := s.settle(ctx, patience(all)); err != nil {
		return nil, err
	}
	return append(warnings, s.differences(all)...), nil
}

// release gives composite resources and InferenceRoles the spec that the files have. They keep their status.
func (s *simulation) release(later []object) error {
	for _, o := range later {
		if settled, exists := s.store.get(identityOf(o)); exists {
			o = *o.DeepCopy()
			o.Object["status"] = settled.Object["status"]
		}
		if err := s.add(o); err != nil {
			return err
		}
	}
	return nil
}

// atFirst returns an object as it is at first, and whether it differs from what the files have.
func atFirst(all []object, o object) (object, bool) {
	switch {
	case o.GetKind() == v1alpha1.KindInferenceRole:
		return asked(o)
	case !isXRKind(o) || composes(all, o) && !ofCluster(o):
		return o, false
	case ofCluster(o):
		return opened(o), true
	}
	return pin(o)
}

// composes tells whether the files have a composed resource of an XR that says where the XR runs.
func composes(all []object, xr object) bool {
	return xr.GetUID() != "" && slices.ContainsFunc(all, func(o object) bool { return keyOf(o) != "" && !onlyScales(o) && controlledBy(o, xr) })
}

// adopt notes which of the objects are composed resources of which XR.
func (s *simulation) adopt(all []object) {
	for _, o := range all {
		for id := range s.xrs {
			if xr, _ := s.store.get(id); keyOf(o) != "" && controlledBy(o, xr) {
				s.store.own(id, keyOf(o), identityOf(o))
			}
		}
	}
}

// opened returns a cluster that takes what runs in it already, whatever it takes now.
func opened(o object) object {
	o = *o.DeepCopy()
	unstructured.RemoveNestedField(o.Object, "spec", "stopPolicy")
	unstructured.RemoveNestedField(o.Object, "spec", "allowedNamespaces")
	unstructured.RemoveNestedField(o.Object, "metadata", "annotations", annotationPaused)
	return o
}

// clustersOf returns what the status of a service says of each cluster.
func clustersOf(o object) []v1alpha1.ClusterStatus {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "clusters")
	all := make([]v1alpha1.ClusterStatus, 0, len(list))
	for _, i := range list {
		m, _ := i.(map[string]any)
		c := v1alpha1.ClusterStatus{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(m, &c) == nil {
			all = append(all, c)
		}
	}
	return all
}

// runsIn returns the clusters in which a service runs. One that is being left counts only
// where nothing of the service is in another.
func runsIn(o object) []v1alpha1.ClusterStatus {
	of := func(state v1alpha1.PlacementState) []v1alpha1.ClusterStatus {
		return slices.DeleteFunc(clustersOf(o), func(c v1alpha1.ClusterStatus) bool { return c.State != state || c.Name == "" })
	}
	if placed := of(v1alpha1.StatePlaced); len(placed) > 0 {
		return placed
	}
	leaving := of(v1alpha1.StateLeaving)
	runs := func(c v1alpha1.ClusterStatus) bool { return len(c.Assigned) > 0 }
	if !slices.ContainsFunc(leaving, runs) {
		return leaving
	}
	// Where requests wait for a service that has left, nothing of it runs.
	return slices.DeleteFunc(leaving, func(c v1alpha1.ClusterStatus) bool { return !runs(c) })
}

// pin returns a service whose placement names only the clusters in which it runs, and whether
// it runs in any. With Spread, the weights are the numbers of replicas.
func pin(o object) (object, bool) {
	placement, _, _ := unstructured.NestedMap(o.Object, "spec", "placement")
	in := runsIn(o)
	if placement == nil || len(in) == 0 {
		return o, false
	}
	listed, _ := placement["clusters"].([]any)
	var entries []any
	for _, c := range in {
		entry := map[string]any{"name": c.Name, "inferenceClusterRef": map[string]any{"name": c.Name}}
		if i := slices.IndexFunc(listed, func(l any) bool { m, _ := l.(map[string]any); return m["name"] == c.Name }); i >= 0 {
			entry, _ = runtime.DeepCopyJSONValue(listed[i]).(map[string]any)
		}
		if placement["policy"] == string(v1alpha1.PlacementSpread) {
			entry["weight"] = replicaCount(c.Assigned)
		}
		entries = append(entries, entry)
	}
	o = *o.DeepCopy()
	unstructured.RemoveNestedField(o.Object, "metadata", "annotations", annotationPaused)
	delete(placement, "clusterSelector")
	placement["clusters"] = entries
	_ = unstructured.SetNestedMap(o.Object, placement, "spec", "placement") // The spec is a map: it has a placement.
	return o, true
}

func replicaCount(list []v1alpha1.Replicas) int64 {
	n := int64(0)
	for _, r := range list {
		n += int64(max(len(r.Indexes), 1))
	}
	return max(n, 1)
}

// differences names services that are refused, and those that do not run where their status
// says. It also names reservations for services that the files lack.
func (s *simulation) differences(all []object) []string {
	var warnings []string
	refused := s.refusals()
	for _, id := range slices.SortedFunc(maps.Keys(refused), identity.compare) {
		warnings = append(warnings, fmt.Sprintf("%s %s is refused with this Input, so it neither moves nor takes capacity here: %s", id.kind, id.nice(), strings.Join(problems(refused[id]), "; ")))
	}
	uids := map[string]bool{}
	for id := range s.xrs {
		xr, _ := s.store.get(id)
		uids[string(xr.GetUID())] = true
	}
	for _, o := range all {
		if !isXRKind(o) {
			continue
		}
		id := identityOf(o)
		if ofCluster(o) {
			warnings = append(warnings, missing(o, uids)...)
			continue
		}
		after, _ := s.store.get(id)
		now := runsIn(after)
		for _, c := range runsIn(o) {
			stays := slices.ContainsFunc(now, func(in v1alpha1.ClusterStatus) bool { return in.Name == c.Name })
			if c.State == v1alpha1.StatePlaced && !stays {
				warnings = append(warnings, fmt.Sprintf("%s runs in %s by its status, and would not stay there even without the change", id.nice(), c.Name))
			}
		}
	}
	return warnings
}

// missing names the reservations of a cluster for services that the files lack.
func missing(cluster object, uids map[string]bool) []string {
	var warnings []string
	list, _, _ := unstructured.NestedSlice(cluster.Object, "status", "reservations")
	for _, r := range list {
		m, _ := r.(map[string]any)
		if uid, _ := m["uid"].(string); uid != "" && !uids[uid] {
			warnings = append(warnings, fmt.Sprintf("%s has a reservation for %v/%v, which is not in the files: its capacity counts as free", identityOf(cluster).nice(), m["namespace"], m["name"]))
		}
	}
	return warnings
}

// countNodes types in the nodes of pools whose nodes are observed, as the status has them:
// nothing can be observed here. It says which it does not know.
func countNodes(all []object) []string {
	var warnings []string
	for _, o := range all {
		if !ofCluster(o) {
			continue
		}
		var unknown []string
		pools, _, _ := unstructured.NestedSlice(o.Object, "spec", "pools")
		for _, p := range pools {
			pool, _ := p.(map[string]any)
			if _, counted := pool["nodeCount"]; counted || pool == nil {
				continue
			}
			name, _ := pool["name"].(string)
			if !countPool(o, name, pool) {
				unknown = append(unknown, name)
			}
		}
		if len(pools) > 0 {
			_ = unstructured.SetNestedSlice(o.Object, pools, "spec", "pools") // They were read from there.
		}
		if len(unknown) > 0 {
			warnings = append(warnings, fmt.Sprintf("%s: the nodes of pool %s are observed, and its status does not have them, so nothing is placed there. Write nodeCount and allocatable into the file", o.GetName(), strings.Join(unknown, ", ")))
		}
	}
	return warnings
}

// countPool sets nodeCount and allocatable of a pool by the status of its cluster.
func countPool(o object, name string, pool map[string]any) bool {
	status := v1alpha1.InferenceClusterStatus{}
	m, _, _ := unstructured.NestedMap(o.Object, "status")
	delete(m, "conditions")
	if runtime.DefaultUnstructuredConverter.FromUnstructured(m, &status) != nil {
		return false
	}
	i := slices.IndexFunc(status.Pools, func(p v1alpha1.PoolStatus) bool { return p.Name == name })
	// A pool whose nodes were not known has none in the status.
	if i < 0 || status.Pools[i].NodeCount == 0 && conditionOf(o, v1alpha1.ConditionNodesObserved) == "Unknown" {
		return false
	}
	n := int64(status.Pools[i].NodeCount)
	each := map[string]any{}
	for _, r := range slices.Sorted(maps.Keys(status.Pools[i].Capacity)) {
		q := status.Pools[i].Capacity[r]
		each[string(r)] = resource.NewMilliQuantity(q.MilliValue()/max(n, 1), q.Format).String()
	}
	pool["nodeCount"], pool["allocatable"] = n, each
	return true
}
