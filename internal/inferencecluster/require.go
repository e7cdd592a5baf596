package inferencecluster

import (
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/fleet"
	existing "github.com/fusioninfer/function-inferenceservice/internal/require"
)

// require asks for what services ask for, for the nodes that are observed, for the
// namespaces by whose labels the cluster goes, and for a ledger that is there without
// being observed. It depends on the observed resources
// only, which are the same in all calls of one reconcile.
func require(req *fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse, c *cluster) {
	observed := req.GetObserved().GetResources()
	all := map[string]*fnv1.ResourceSelector{
		asks: {
			ApiVersion: "v1",
			Kind:       "ConfigMap",
			Match:      &fnv1.ResourceSelector_MatchLabels{MatchLabels: &fnv1.MatchLabels{Labels: map[string]string{fleet.AskLabel(c.Name): fleet.AskLabelValue}}},
		},
	}
	if observed[keyLedger] == nil {
		all[existing.Existing(keyLedger)] = &fnv1.ResourceSelector{
			ApiVersion: "v1",
			Kind:       "ConfigMap",
			Namespace:  &c.input.Fleet.Namespace,
			Match:      &fnv1.ResourceSelector_MatchName{MatchName: ledgerName(c.Name)},
		}
	}
	if a := c.Spec.AllowedNamespaces; a.ReadsLabels() {
		// Crossplane selects by equal labels only. The expressions are looked at here.
		all[tenants] = &fnv1.ResourceSelector{
			ApiVersion: "v1",
			Kind:       "Namespace",
			Match:      &fnv1.ResourceSelector_MatchLabels{MatchLabels: &fnv1.MatchLabels{Labels: a.Selector.MatchLabels}},
		}
	}
	for i := range c.Spec.Pools {
		p := &c.Spec.Pools[i]
		if p.Nodes != nil {
			continue
		}
		// Asking for Objects before the provider has made some would fail where it is
		// not installed.
		if members := c.carrier.Members(observed[c.key(nodesOf(p.Name))].GetResource()); members != nil {
			all[nodesOf(p.Name)] = members
		}
	}
	rsp.Requirements = &fnv1.Requirements{Resources: all}
}
