package plan

import (
	"maps"
	"slices"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

// hide leaves out the clusters that this tenant may not use, so that everything after it
// goes by what the tenant may know: a cluster that is hidden is in no decision, in no
// status and in no message. One that the placement names is described in the words for
// one that does not exist, so that nobody finds out which clusters there are by asking.
//
// A cluster where the service runs is not hidden, because the tenant knows it, and because
// what runs there is left in the order in which any cluster is left. Nor is anything
// decided about it while the labels of the tenant's namespace are not known.
func (f *fleetPlanner) hide() {
	f.all, f.barred, f.undecided = f.world.Clusters, map[string]bool{}, map[string]bool{}
	shown := make(map[string]*v1alpha1.InferenceCluster, len(f.all))
	for _, name := range slices.Sorted(maps.Keys(f.all)) {
		c := f.all[name]
		reads := c.Spec.AllowedNamespaces.ReadsLabels()
		f.p.ReadsNamespace = f.p.ReadsNamespace || reads
		unknown := reads && !f.world.NamespaceAnswered
		allowed := !unknown && c.Spec.AllowedNamespaces.Allows(f.p.Service.Namespace, f.world.NamespaceLabels)
		switch {
		case allowed:
			shown[name] = c
		case f.runsIn(name):
			shown[name], f.barred[name], f.undecided[name] = c, !unknown, unknown
		}
	}
	f.world.Clusters = shown
}

// runsIn tells whether something of the service is in a cluster of the fleet, as far as its
// last ask tells.
func (f *fleetPlanner) runsIn(name string) bool {
	if f.world.Ask == nil {
		return false
	}
	at, asked := f.world.Ask.Clusters[name]
	return asked && f.world.Places[at.As] != nil
}
