package cluster

import (
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/profile"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
)

// require asks Crossplane for the capacity requests, the observed nodes, and the namespaces whose
// labels decide whether they are allowed. It also asks for a ledger that is not observed yet, the
// profiles of all InferenceClusters, and what identifies the control plane.
//
// The requirements depend on the XR and the observed resources only. Both stay the same in
// all calls of a reconcile, and Crossplane calls until the requirements no longer change.
func require(req incoming.Request, rsp *fnv1.RunFunctionResponse, c *parsed, state *observedState) {
	all := map[string]*fnv1.ResourceSelector{
		requests:          incoming.ByLabels("v1", "ConfigMap", "", map[string]string{reservation.RequestLabel(c.Name): reservation.RequestLabelValue}),
		othersRequirement: profile.Selector(c.input.Namespace),
		controlPlane:      requireControlPlane(),
	}
	if len(state.ledger.Services) == 0 {
		all[unprofiledRequirement] = composite.InferenceClusters()
	}
	if !req.Observed(key.Ledger).Exists() {
		all[composite.Existing(key.Ledger)] = incoming.ByName("v1", "ConfigMap", c.input.Namespace, ledgerName(c.Name))
	}
	if a := c.Spec.AllowedNamespaces; a.ReadsLabels() {
		// Crossplane selects by matchLabels only. markNotAllowed applies the expressions.
		all[tenants] = incoming.ByLabels("v1", "Namespace", "", a.Selector.MatchLabels)
	}
	for _, p := range c.observedPools() {
		// Crossplane fails to resolve Objects where provider-kubernetes is not installed, so
		// they are required only once the provider has reported a collection.
		if members := c.builder.Members(req.Observed(c.keys().Nodes(p.Name))); members != nil {
			all[nodesOf(p.Name)] = members
		}
	}
	rsp.Requirements = &fnv1.Requirements{Resources: all}
}
