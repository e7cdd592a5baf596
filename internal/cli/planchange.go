package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

// change applies the change to a settled fleet, and settles it again. It returns what could
// not be done, for people.
func (p *Plan) change(ctx context.Context, s *simulation, changes []object) ([]string, error) {
	if len(changes)+len(p.Drain)+len(p.Abandon)+len(p.Lose)+len(p.Delete) == 0 {
		return nil, errNoChange
	}
	warnings := append(s.newNodes(changes), s.outsideFleet(changes)...)
	for _, o := range changes {
		if err := s.change(o); err != nil {
			return nil, err
		}
	}
	if err := p.flags(s); err != nil {
		return nil, err
	}
	clusters, err := p.deleteServices(s)
	if err != nil {
		return nil, err
	}
	limit := patience(append(s.all(), changes...))
	if err := s.settle(ctx, limit); err != nil {
		return nil, err
	}
	if why := s.refusedOf(changes); why != nil {
		return nil, why
	}
	// Crossplane refuses to delete what is in use, so a cluster goes once its services have.
	for _, id := range clusters {
		if why := s.inUse(id); why != "" {
			warnings = append(warnings, fmt.Sprintf("%s is not deleted, because services are left in it: %s", id.nice(), why))
			continue
		}
		if err := s.drop(id); err != nil {
			return nil, err
		}
	}
	if len(clusters) == 0 {
		return warnings, nil
	}
	return warnings, s.settle(ctx, limit)
}

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

// deleteServices deletes the services of --delete, and returns its clusters.
func (p *Plan) deleteServices(s *simulation) (clusters []identity, err error) {
	var services []identity
	for _, name := range p.Delete {
		id, err := s.named(name)
		if err != nil {
			return nil, err
		}
		if id.kind == v1alpha1.KindInferenceCluster {
			clusters = append(clusters, id)
		} else {
			services = append(services, id)
		}
	}
	for _, id := range services {
		if err := s.drop(id); err != nil {
			return nil, err
		}
	}
	return clusters, nil
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
		if id.nice() == name {
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
// stay, and so do Crossplane's own fields of the spec.
func (s *simulation) change(o object) error {
	o = *o.DeepCopy()
	before, exists := s.store.get(identityOf(o))
	if !exists {
		if isXRKind(o) {
			o.SetCreationTimestamp(metaTime(s.now))
			delete(o.Object, "status")
		}
		return s.add(o)
	}
	o.SetUID(before.GetUID())
	o.SetCreationTimestamp(before.GetCreationTimestamp())
	o.SetOwnerReferences(before.GetOwnerReferences())
	for k, v := range before.GetLabels() {
		if strings.HasPrefix(k, "crossplane.io/") {
			o.SetLabels(with(o.GetLabels(), k, v))
		}
	}
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

// refusedOf returns an error for the first XR of a change that the function refuses.
func (s *simulation) refusedOf(changes []object) error {
	refused := s.refusals()
	for _, o := range changes {
		if id := identityOf(o); refused[id] != "" {
			return fmt.Errorf("--change: %s %s is refused: %s", id.kind, id.nice(), strings.Join(problems(refused[id]), "\n  "))
		}
	}
	return nil
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
