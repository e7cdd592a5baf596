package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/service/require"
)

// loadFleet adds the objects of a fleet to a simulation, and settles it. Who runs where is taken from the composed
// resources where the files have some, and else from the status of the services. InferenceRoles
// say how many replicas of a role do. It returns what could not be taken over, for people, even if it fails.
func loadFleet(ctx context.Context, s *simulation, all []object) ([]string, error) {
	all, going, warnings := withoutDeleted(all)
	lost := map[config]bool{}
	warnings = append(warnings, countNodes(all)...)
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
				return warnings, err
			}
		}
	}
	s.adopt(all)
	// First each service starts in the clusters in which it is.
	if err := s.settle(ctx, 0); err != nil {
		return warnings, err
	}
	if err := s.release(later); err != nil {
		return warnings, err
	}
	if err := s.lose(lost); err != nil {
		return warnings, err
	}
	if err := s.settle(ctx, patience(all)); err != nil {
		return warnings, err
	}
	without, err := s.cachesAreThere()
	if err != nil {
		return warnings, err
	}
	return slices.Concat(warnings, without, s.differences(all, going)), nil
}

// withoutDeleted leaves out the services that are being deleted, and what they have composed: Crossplane calls no function for
// them, and they go. It also returns their UIDs, and what it says of them to people. A cluster that is being deleted stays, because
// services may still run there, and so does a cache, which services may use.
func withoutDeleted(all []object) (kept []object, going map[types.UID]bool, warnings []string) {
	going = map[types.UID]bool{}
	for _, o := range all {
		if !isXRKind(o) || o.GetDeletionTimestamp() == nil {
			continue
		}
		id := identityOf(o)
		switch {
		case ofCluster(o):
			warnings = append(warnings, fmt.Sprintf("%s is being deleted, and counts as if it stayed. With plan --delete %s it goes", id.nice(), id.name))
			continue
		case ofCache(o):
			warnings = append(warnings, fmt.Sprintf("%s %s is being deleted, so services that name it are placed nowhere anew", id.kind, id.nice()))
			continue
		}
		warnings = append(warnings, fmt.Sprintf("%s is being deleted, so it counts as gone, and its capacity as free", id.nice()))
		going[o.GetUID()] = true
	}
	gone := func(o object) bool {
		if c := metav1.GetControllerOf(&o); c != nil && c.UID != "" && going[c.UID] {
			return true
		}
		return isService(o) && isXRKind(o) && o.GetDeletionTimestamp() != nil
	}
	return slices.DeleteFunc(slices.Clone(all), gone), going, warnings
}

// cachesAreThere finds the services of the fleet that name a ModelCache which is not in the files: a service is placed only where its
// ModelCache is. If the files have none at all, nobody has asked for the kind, and that is an error. Otherwise a service may name one
// that does not exist.
func (s *simulation) cachesAreThere() (warnings []string, err error) {
	some := slices.ContainsFunc(s.all(), ofCache)
	for _, xr := range s.all() {
		sel, names := s.xrs[identityOf(xr)].requirements.GetResources()[require.ModelCache]
		if !names || !inFleet(xr) || len(s.store.selected(sel)) > 0 {
			continue
		}
		name, _, _ := unstructured.NestedString(xr.Object, "spec", "model", "cacheRef", "name")
		_, namespace := serviceOf(xr)
		what := fmt.Sprintf("spec.model.cacheRef of %s %s names ModelCache %s/%s, which is not in the files", xr.GetKind(), identityOf(xr).nice(), namespace, name)
		if some {
			warnings = append(warnings, what+", so it runs nowhere here")
			continue
		}
		kinds := "modelcaches.fusioninfer.io"
		if claimed(xr) {
			kinds = "x" + kinds
		}
		return nil, fmt.Errorf("cannot plan: %s, as no other is. Add %s to the kinds that kubectl gets, or leave the service out", what, kinds)
	}
	return warnings, nil
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
	case ofCache(o):
		return o, true // Services are placed only where it is.
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
func (s *simulation) differences(all []object, going map[types.UID]bool) []string {
	var warnings []string
	refused := s.refusals()
	for _, a := range sharedRefusals(refused, slices.SortedFunc(maps.Keys(refused), identity.compare)) {
		with := "with this Input"
		if s.inputs[a.kind] == nil || s.made[a.kind] {
			with = "without an Input (pass yours with --input)"
		}
		so := a.number(" is refused "+with+", so it neither moves nor takes capacity here", " are refused "+with+", so they neither move nor take capacity here")
		if a.kind == v1alpha1.KindInferenceCluster {
			so = a.number(" is refused, so nothing runs or is placed there here, whatever its status says", " are refused, so nothing runs or is placed in them here, whatever their status says")
		}
		warnings = append(warnings, a.subject()+so+": "+strings.Join(problems(a.why), "; "))
	}
	for _, o := range all {
		if !isXRKind(o) || ofCluster(o) {
			continue
		}
		after, _ := s.store.get(identityOf(o))
		warnings = append(warnings, elsewhere(identityOf(o), o, after)...)
	}
	return append(warnings, missing(all, going)...)
}

// elsewhere says which clusters of its status a service does not run in here, and with Spread which replicas are in others: only
// their numbers are taken over.
func elsewhere(id identity, before, after object) []string {
	var warnings []string
	now := runsIn(after)
	policy, _, _ := unstructured.NestedString(before.Object, "spec", "placement", "policy")
	for _, c := range runsIn(before) {
		i := slices.IndexFunc(now, func(in v1alpha1.ClusterStatus) bool { return in.Name == c.Name })
		switch {
		case c.State != v1alpha1.StatePlaced:
		case i < 0:
			warnings = append(warnings, fmt.Sprintf("%s runs in %s by its status, and would not stay there even without the change", id.nice(), c.Name))
		case policy == string(v1alpha1.PlacementSpread) && len(c.Assigned) > 0 && replicaText(c.Assigned) != replicaText(now[i].Assigned):
			warnings = append(warnings, fmt.Sprintf("%s has %s in %s by its status, and %s in this plan, so the plan does not show which of its replicas move", id.nice(), replicaText(c.Assigned), c.Name, cmp.Or(replicaText(now[i].Assigned), "nothing")))
		}
	}
	return warnings
}

// missing names the reservations of the clusters among some objects for services that are neither among these nor going: a
// simulation gives their capacity to others. A file from a repository has no UID, so its service is known by its name.
func missing(all []object, going map[types.UID]bool) []string {
	uids, names := maps.Clone(going), map[string]bool{}
	for _, o := range all {
		switch uid := o.GetUID(); {
		case !isXRKind(o):
		case uid == "" || uid == defaultUID(o):
			names[o.GetNamespace()+"/"+o.GetName()] = true
			uids[defaultUID(o)] = true
		default:
			uids[uid] = true
		}
	}
	var warnings []string
	for _, o := range all {
		if !isXRKind(o) || !ofCluster(o) {
			continue
		}
		list, _, _ := unstructured.NestedSlice(o.Object, "status", "reservations")
		for _, r := range list {
			m, _ := r.(map[string]any)
			uid, _ := m["uid"].(string)
			if uid != "" && !uids[types.UID(uid)] && !names[fmt.Sprintf("%v/%v", m["namespace"], m["name"])] {
				warnings = append(warnings, fmt.Sprintf("%s has a reservation for %v/%v, which is not in the files: its capacity counts as free", identityOf(o).nice(), m["namespace"], m["name"]))
			}
		}
	}
	return warnings
}
