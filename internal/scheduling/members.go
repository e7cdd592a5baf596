package scheduling

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
)

// A member is a cluster that is named, selected, or has something of the service.
type member struct {
	target Target
	// inferenceCluster is the name of the InferenceCluster. Empty outside of the fleet.
	inferenceCluster string
	weight           int64
	// deselected tells that the placement no longer names or selects it.
	deselected bool
}

// members returns the clusters that the placement names or selects, and then others where
// something of the service exists. It also returns warnings about conflicts of names.
func (v *view) members() ([]member, []string) {
	named := v.named()
	// taken has the names in the service, and which cluster each is. What runs keeps its name.
	taken, runs := map[string]string{}, make([]bool, len(named))
	for i := range named {
		if runs[i] = v.keepName(&named[i]); runs[i] {
			taken[named[i].target.Cluster] = named[i].inferenceCluster
		}
	}
	var all []member
	var warnings []string
	for i := range named {
		if !runs[i] {
			usable, warning := v.resolveNameConflict(&named[i], taken)
			if warning != "" {
				warnings = append(warnings, warning)
			}
			if !usable {
				continue
			}
		}
		taken[named[i].target.Cluster] = named[i].inferenceCluster
		all = append(all, named[i])
	}
	for _, name := range slices.Sorted(maps.Keys(v.snapshot.States)) {
		if _, ok := taken[name]; !ok {
			all = append(all, v.remembered(name))
		}
	}
	for i := range all {
		v.resolveProviderConfig(&all[i])
	}
	return all, warnings
}

// named are the clusters that the placement names or selects, under its names.
func (v *view) named() []member {
	var all []member
	for _, c := range v.placement.Clusters {
		if v.notAllowed[c.FleetName()] {
			continue // The service leaves it, as if it were not named.
		}
		all = append(all, member{inferenceCluster: c.FleetName(), weight: int64(ptr.Deref(c.Weight, 1)), target: targetOf(v.demand.Namespace, &c)})
	}
	for _, name := range slices.Sorted(maps.Keys(v.clusters)) {
		if !v.notAllowed[name] && selects(v.placement.ClusterSelector, v.clusters[name].Labels) {
			all = append(all, member{inferenceCluster: name, weight: 1, target: Target{Cluster: name, Namespace: v.demand.Namespace}})
		}
	}
	if len(v.placement.Clusters) == 0 && v.placement.ClusterSelector == nil {
		all = append(all, member{weight: 1, target: Target{Namespace: v.demand.Namespace}})
	}
	return all
}

// selects tells whether a selector selects some labels. No selector selects none.
func selects(s *metav1.LabelSelector, l map[string]string) bool {
	selector, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && selector.Matches(labels.Set(l))
}

// keepName gives a cluster of the fleet the name and the namespace under which the service
// already runs there, and tells whether it runs there. Under another name everything would be
// created again, on capacity that is reserved only once.
func (v *view) keepName(m *member) bool {
	at, runs := v.runsIn(m.inferenceCluster)
	if m.inferenceCluster == "" || !runs {
		return false
	}
	m.target.Cluster, m.target.Namespace = at.Name, at.Namespace
	return true
}

// resolveNameConflict renames a cluster of the fleet whose name in the placement another
// cluster of this service already uses. It tells whether the cluster can be used, and warns
// of the conflict. A cluster outside of the fleet has no other name, and cannot be used.
func (v *view) resolveNameConflict(m *member, taken map[string]string) (usable bool, warning string) {
	name := m.target.Cluster
	other, conflict := taken[name]
	if !conflict {
		other, conflict = v.occupant(m)
	}
	if !conflict {
		return true, ""
	}
	if m.inferenceCluster == "" {
		return false, fmt.Sprintf("%q is left out, because the service already uses this name for %s: use another name", name, other)
	}
	m.target.Cluster = m.inferenceCluster
	if _, conflict := taken[m.inferenceCluster]; conflict || v.snapshot.States[m.inferenceCluster] != nil {
		m.target.Cluster = naming.Shorten(name+"-"+m.inferenceCluster, name+"/"+m.inferenceCluster, naming.MaxLabel)
	}
	return true, fmt.Sprintf("%s is named %q, because the service already uses the name %q for %s", m.inferenceCluster, m.target.Cluster, name, other)
}

// occupant is another cluster where the service runs under the name of a member.
func (v *view) occupant(m *member) (string, bool) {
	at := v.snapshot.States[m.target.Cluster]
	if at == nil || m.inferenceCluster == "" {
		return "", false
	}
	if inferenceCluster, requested := v.requestedAs(m.target.Cluster); requested {
		return inferenceCluster, inferenceCluster != m.inferenceCluster
	}
	// The cluster was never of the fleet. It is the same cluster if it has the same provider
	// configuration.
	c := v.clusters[m.inferenceCluster]
	if c == nil || at.ProviderConfig.Name == "" {
		return "", false
	}
	return at.ProviderConfig.Name, v.asObjectsNameIt(c.Spec.ProviderConfigRef.Ref()) != v.asObjectsNameIt(at.ProviderConfig)
}

// asObjectsNameIt returns a provider configuration in the form in which Objects name it. Cluster-scoped
// Objects, which claims use, do not name its kind.
func (v *view) asObjectsNameIt(ref v1alpha1.ProviderConfigRef) v1alpha1.ProviderConfigRef {
	if v.demand.Claimed {
		ref.Kind = ""
	}
	return ref
}

// remembered is a cluster that the placement does not name, and where something exists. The
// last request tells which cluster of the fleet it is. A cluster that was never of the fleet, or
// that of the XR, is left like any other.
func (v *view) remembered(name string) member {
	at := v.snapshot.States[name]
	m := member{deselected: true, target: Target{Cluster: name, Namespace: cmp.Or(at.Namespace, v.demand.Namespace), ProviderConfig: at.ProviderConfig}}
	if inferenceCluster, requested := v.requestedAs(name); requested {
		m.inferenceCluster = inferenceCluster
		// Until the clusters of the fleet are known, a selector may still select it.
		m.deselected = v.snapshot.Resolved || v.placement.ClusterSelector == nil
		m.target.Namespace = cmp.Or(v.last.Clusters[inferenceCluster].Namespace, m.target.Namespace)
	}
	return m
}

// resolveProviderConfig sets the provider configuration of a cluster of the fleet. What exists
// there keeps the one that it was created with. Otherwise it is that of the InferenceCluster.
// While that cannot be read, it is that of the last request.
func (v *view) resolveProviderConfig(m *member) {
	if m.inferenceCluster == "" {
		return
	}
	requested := v.last.Clusters[m.inferenceCluster]
	at, c := v.snapshot.States[m.target.Cluster], v.clusters[m.inferenceCluster]
	switch {
	case at != nil && at.ProviderConfig.Name != "" && (requested.Name == m.target.Cluster || c == nil):
		m.target.ProviderConfig = at.ProviderConfig
		m.target.Namespace = cmp.Or(at.Namespace, m.target.Namespace)
	case c != nil:
		m.target.ProviderConfig = c.Spec.ProviderConfigRef.Ref()
	case requested.Name == m.target.Cluster:
		m.target.ProviderConfig = v1alpha1.ProviderConfigRef{Kind: requested.ProviderConfigKind, Name: requested.ProviderConfig}
	}
}

// markDuplicates marks clusters with the provider configuration and the namespace of another.
// The first one counts: one where something exists, or else the first in the order of the
// placement.
func (v *view) markDuplicates(members []member, candidates []Candidate) {
	first := map[Target]string{}
	for _, exists := range []bool{true, false} {
		for i := range candidates {
			at := members[i].target
			if at.ProviderConfig.Name == "" || exists != candidates[i].Exists {
				continue
			}
			at.Cluster, at.ProviderConfig = "", v.asObjectsNameIt(at.ProviderConfig)
			if other, taken := first[at]; taken && !exists {
				candidates[i].DuplicateOf = other
				continue
			}
			first[at] = candidates[i].Name
		}
	}
}
