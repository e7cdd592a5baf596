package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

// change applies the change to a settled fleet, and settles it again. It returns what could
// not be done, for people. known are the warnings of the fleet before.
func (p *Plan) change(ctx context.Context, s *simulation, changes []object, known []string) ([]string, error) {
	if len(changes)+len(p.Drain)+len(p.Abandon)+len(p.Lose)+len(p.Delete) == 0 {
		return nil, errNoChange
	}
	if err := s.withoutClaims(changes); err != nil {
		return nil, err
	}
	warnings := append(s.newNodes(changes), s.outsideFleet(changes)...)
	for _, o := range changes {
		if err := s.change(o); err != nil {
			return warnings, err
		}
	}
	if err := p.flags(s); err != nil {
		return warnings, err
	}
	clusters, unseen, err := p.deleteServices(s)
	if err != nil {
		return warnings, err
	}
	warnings = append(warnings, unseen...)
	limit := patience(append(s.all(), changes...))
	if err := s.settle(ctx, limit); err != nil {
		return warnings, err
	}
	if why := s.refusedOf(changes); why != nil {
		return warnings, why
	}
	without, err := s.cachesAreThere()
	if err != nil {
		return warnings, err
	}
	warnings = append(warnings, slices.DeleteFunc(without, func(w string) bool { return slices.Contains(known, w) })...)
	// Crossplane refuses to delete what is in use, so a cluster goes once its services have.
	for _, id := range clusters {
		if why := s.inUse(id); why != "" {
			warnings = append(warnings, fmt.Sprintf("%s is not deleted, because services are left in it: %s", id.nice(), why))
			continue
		}
		if err := s.drop(id); err != nil {
			return warnings, err
		}
	}
	if len(clusters) == 0 {
		return warnings, nil
	}
	return warnings, s.settle(ctx, limit)
}

// changeableKinds are the kinds that --change takes, and the API version of each. Services, clusters
// and caches are reconciled, and the others are read.
var changeableKinds = map[string]string{
	v1alpha1.KindInferenceCluster: v1alpha1.APIVersion,
	v1alpha1.KindInferenceService: v1alpha1.APIVersion,
	v1alpha1.KindClaimedService:   v1alpha1.APIVersion,
	v1alpha1.KindInferenceRole:    v1alpha1.APIVersion,
	v1alpha1.KindModelCache:       v1alpha1.APIVersion,
	v1alpha1.KindClaimedCache:     v1alpha1.APIVersion,
	"Namespace":                   "v1",
	"CustomResourceDefinition":    "apiextensions.k8s.io/v1",
}

// changeable refuses a change that a plan does not show, and that may change services: of another version of a kind that it knows, or
// of a Composition, its Input or a definition of Crossplane. It returns which others are not read, for people. A directory may have
// some beside its services.
func changeable(changes []object) (warnings []string, err error) {
	for _, o := range changes {
		version, known := changeableKinds[o.GetKind()]
		what := fmt.Sprintf("%s %s is", o.GetKind(), identityOf(o).nice())
		group := o.GroupVersionKind().Group
		switch {
		case known && version == o.GetAPIVersion():
		case known:
			return nil, fmt.Errorf("cannot use --change: %s of version %s, and must be of %s", what, o.GetAPIVersion(), version)
		case group == inputv1alpha1.Group || strings.HasSuffix(group, crossplaneGroups):
			return nil, fmt.Errorf("cannot use --change: %s of a kind that a plan does not change. It takes %s. Run one plan with --composition of before and one with that of after",
				what, strings.Join(slices.Sorted(maps.Keys(changeableKinds)), ", "))
		default:
			warnings = append(warnings, "--change: "+what+" not read, because a plan does not change its kind")
		}
	}
	return warnings, nil
}

// crossplaneGroups is how the groups of Crossplane's own kinds end, and those of providers.
const crossplaneGroups = ".crossplane.io"

// outsideFleet warns of services that have no placement before and after the change. A plan compares what runs in clusters
// of the fleet.
func (s *simulation) outsideFleet(changes []object) []string {
	var warnings []string
	for _, o := range changes {
		id := identityOf(o)
		if before, _ := s.store.get(id); isService(o) && !inFleet(o) && !inFleet(before) {
			warnings = append(warnings, fmt.Sprintf("InferenceService %s has no placement, so the plan does not show what its change does: render shows that", id.nice()))
		}
	}
	return warnings
}

// withoutClaims refuses the claim of a service or of a cache: what it composes belongs to the composite resource that the fleet has.
func (s *simulation) withoutClaims(changes []object) error {
	for _, o := range changes {
		for _, xr := range s.all() {
			if !claimed(xr) || xr.GetKind() != "X"+o.GetKind() {
				continue
			}
			if name, namespace := serviceOf(xr); name == o.GetName() && namespace == o.GetNamespace() {
				return fmt.Errorf("cannot use --change: %s %s is the claim of %s %s. Change that one instead", o.GetKind(), identityOf(o).nice(), xr.GetKind(), xr.GetName())
			}
		}
	}
	return nil
}

// deleteServices deletes the services of --delete. It returns its clusters, and which services the plan does not compare.
func (p *Plan) deleteServices(s *simulation) (clusters []identity, unseen []string, err error) {
	var services []identity
	for _, name := range p.Delete {
		id, err := s.named(name)
		if err != nil {
			return nil, nil, err
		}
		switch {
		case slices.Contains(clusters, id) || slices.Contains(services, id): // A name may be given twice.
		case id.kind == v1alpha1.KindInferenceCluster:
			clusters = append(clusters, id)
		default:
			services = append(services, id)
		}
	}
	for _, id := range services {
		if o, _ := s.store.get(id); !inFleet(o) {
			unseen = append(unseen, fmt.Sprintf("%s %s has no placement, so the plan does not show that it is deleted", id.kind, id.nice()))
		}
		if err := s.drop(id); err != nil {
			return nil, nil, err
		}
	}
	return clusters, unseen, nil
}

// flags applies the flags for frequent changes.
func (p *Plan) flags(s *simulation) error {
	for _, f := range []struct {
		flag, policy string
		clusters     []string
	}{{"--drain", string(v1alpha1.StopDrain), p.Drain}, {"--abandon", string(v1alpha1.StopAbandon), p.Abandon}} {
		for _, name := range f.clusters {
			o, err := s.cluster(f.flag, name)
			if err != nil {
				return err
			}
			if err := unstructured.SetNestedField(o.Object, f.policy, "spec", "stopPolicy"); err != nil {
				return fmt.Errorf("%s: cannot set stopPolicy of %s: %w", f.flag, name, err)
			}
			if err := s.add(*o); err != nil {
				return err
			}
		}
	}
	lost := maps.Clone(s.lost)
	for _, name := range p.Lose {
		o, err := s.cluster("--lose", name)
		if err != nil {
			return err
		}
		lost[configOfCluster(*o)] = true
	}
	return s.lose(lost)
}

// cluster returns a copy of an InferenceCluster that a flag names.
func (s *simulation) cluster(flag, name string) (*object, error) {
	o, exists := s.store.get(identity{v1alpha1.Group, v1alpha1.KindInferenceCluster, "", name})
	if !exists {
		known := s.xrNames(v1alpha1.KindInferenceCluster)
		return nil, fmt.Errorf("%s %s: the fleet has no InferenceCluster of that name.%s It has: %s", flag, name, didYouMean(name, known), strings.Join(known, ", "))
	}
	return o.DeepCopy(), nil
}

// named finds the XR that --delete names.
func (s *simulation) named(name string) (identity, error) {
	var found []identity
	for id := range s.xrs {
		if id.nice() == name && !ofCache(xrOf(id.kind)) {
			found = append(found, id)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		known := append(s.xrNames(v1alpha1.KindInferenceCluster), append(s.xrNames(v1alpha1.KindInferenceService), s.xrNames(v1alpha1.KindClaimedService)...)...)
		return identity{}, fmt.Errorf("--delete %s: the fleet has no InferenceCluster, and no NAMESPACE/NAME of an InferenceService, like that.%s It has: %s",
			name, didYouMean(name, known), strings.Join(known, ", "))
	}
	return identity{}, fmt.Errorf("--delete %s: a cluster and a service have that name: give one of them another name in the files", name)
}

func (s *simulation) xrNames(kind string) []string {
	var all []string
	for id := range s.xrs {
		if id.kind == kind {
			all = append(all, id.nice())
		}
	}
	slices.Sort(all)
	return all
}

// change applies an object of a change file over the one of the fleet. Status, UID and age
// stay, and so do Crossplane's own fields of the spec, and its labels and annotations. A new
// object gets a UID of its own, as from an API server: the file may be a copy of another one.
func (s *simulation) change(o object) error {
	o = *o.DeepCopy()
	before, exists := s.store.get(identityOf(o))
	if !exists {
		if isXRKind(o) {
			o.SetUID("")
			o.SetCreationTimestamp(metaTime(s.now))
			o.SetDeletionTimestamp(nil)
			delete(o.Object, "status")
		}
		return s.add(o)
	}
	o.SetUID(before.GetUID())
	o.SetCreationTimestamp(before.GetCreationTimestamp())
	o.SetOwnerReferences(before.GetOwnerReferences())
	for k, v := range before.GetLabels() {
		if strings.HasPrefix(k, crossplanePrefix) {
			o.SetLabels(with(o.GetLabels(), k, v))
		}
	}
	o.SetAnnotations(annotationsAfter(before, o))
	if isXRKind(o) {
		spec, _ := o.Object["spec"].(map[string]any)
		was, _ := before.Object["spec"].(map[string]any)
		for _, f := range crossplaneFields(o) {
			if v, set := was[f]; set && spec != nil {
				spec[f] = v
			}
		}
	}
	delete(o.Object, "status")
	if status, ok := before.Object["status"]; ok {
		o.Object["status"] = status
	}
	o.SetGeneration(before.GetGeneration())
	if !sameSpec(before, o) {
		o.SetGeneration(before.GetGeneration() + 1)
	}
	return s.add(o)
}

// annotationsAfter returns the annotations of a changed object, with those of Crossplane that it keeps, such as that it is paused.
// kubectl apply removes an annotation only if the file that it applied before had it.
func annotationsAfter(before, o object) map[string]string {
	all, applied := o.GetAnnotations(), object{}
	// Whoever has never used kubectl apply has no such file.
	_ = json.Unmarshal([]byte(before.GetAnnotations()[corev1.LastAppliedConfigAnnotation]), &applied.Object)
	for k, v := range before.GetAnnotations() {
		_, set := all[k]
		_, removed := applied.GetAnnotations()[k]
		if strings.HasPrefix(k, crossplanePrefix) && !set && !removed {
			all = with(all, k, v)
		}
	}
	return all
}

// newNodes counts the nodes of clusters in a change by the status that the fleet has of them.
func (s *simulation) newNodes(changes []object) []string {
	for _, o := range changes {
		if before, exists := s.store.get(identityOf(o)); exists && ofCluster(o) {
			o.Object["status"] = before.Object["status"]
		}
	}
	return countNodes(changes)
}

// all returns all XRs.
func (s *simulation) all() []object {
	var all []object
	for _, id := range slices.SortedFunc(maps.Keys(s.xrs), identity.compare) {
		o, _ := s.store.get(id)
		all = append(all, o)
	}
	return all
}

// refusedOf returns an error for the XRs of a change that the function refuses.
func (s *simulation) refusedOf(changes []object) error {
	ids := make([]identity, 0, len(changes))
	for _, o := range changes {
		ids = append(ids, identityOf(o))
	}
	var all []error
	for _, a := range sharedRefusals(s.refusals(), ids) {
		all = append(all, fmt.Errorf("--change: %w", a.err()))
	}
	return errors.Join(all...)
}

// inUse returns why Crossplane refuses to delete an object: a usage of it.
func (s *simulation) inUse(id identity) string {
	for _, o := range s.store.ofKind("protection.crossplane.io", "ClusterUsage") {
		kind, _, _ := unstructured.NestedString(o.Object, "spec", "of", "kind")
		name, _, _ := unstructured.NestedString(o.Object, "spec", "of", "resourceRef", "name")
		if kind == id.kind && name == id.name {
			reason, _, _ := unstructured.NestedString(o.Object, "spec", "reason")
			return reason
		}
	}
	return ""
}
