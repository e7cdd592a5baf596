package plan

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// NamesConfigs tells whether a placement names provider configurations itself. They must
// not be the configurations of clusters of the fleet.
func NamesConfigs(p *v1alpha1.Placement) bool {
	return p != nil && slices.ContainsFunc(p.Clusters, namesConfig)
}

func namesConfig(c v1alpha1.PlacementCluster) bool {
	return c.InferenceClusterRef == nil && c.ProviderConfigRef != nil
}

// checkConfigs refuses provider configurations and namespaces that the tenant may not use.
// provider-kubernetes uses the credentials of a configuration for anyone who names it, in
// every namespace that the credentials reach. So the platform team allows configurations, and
// namespaces other than the tenant's. Clusters of an earlier placement are not checked,
// because their objects have to be deleted.
//
// A configuration of the fleet is always refused: the cluster's ledger would not count what
// runs there. Until Crossplane has listed the clusters of the fleet, DeferUnchecked defers new
// objects, and nothing is refused: after a Fatal, Crossplane would not fetch the list.
func (p *tenantPolicy) checkConfigs(s naming.Identity, placement *v1alpha1.Placement, snapshot *scheduling.Snapshot) field.ErrorList {
	if !NamesConfigs(placement) {
		return nil
	}
	var errs field.ErrorList
	allowed := p.AllowedProviderConfigs
	for i, c := range placement.Clusters[:min(len(placement.Clusters), v1alpha1.MaxClusters)] {
		if !namesConfig(c) {
			continue
		}
		at := field.NewPath("spec", "placement", "clusters").Index(i)
		var entries []inputv1alpha1.AllowedProviderConfig
		for _, a := range allowed {
			if sameConfig(s, *c.ProviderConfigRef, v1alpha1.ProviderConfigRef{Kind: a.Kind, Name: a.Name}) {
				entries = append(entries, a)
			}
		}
		switch {
		case c.ProviderConfigRef.Name == "":
			// Validation of the API refuses it.
		case len(entries) == 0:
			errs = append(errs, field.Invalid(at.Child("providerConfigRef"), text.Value(c.ProviderConfigRef.Name), fmt.Sprintf(
				"must be listed in allowedProviderConfigs of the Composition's input for namespace %s; or name a cluster of the fleet with inferenceClusterRef", s.Namespace)))
		case usedByFleet(snapshot, c.ProviderConfigRef.Name):
			errs = append(errs, field.Invalid(at.Child("providerConfigRef"), text.Value(c.ProviderConfigRef.Name),
				"must not be the configuration of a cluster of the fleet, whose capacity is reserved: name the cluster with inferenceClusterRef instead"))
		}
		if c.Namespace == "" || c.Namespace == s.Namespace || len(entries) == 0 {
			continue
		}
		if !slices.ContainsFunc(entries, func(a inputv1alpha1.AllowedProviderConfig) bool {
			return inputv1alpha1.MatchesAny(a.Namespaces, c.Namespace)
		}) {
			errs = append(errs, field.Invalid(at.Child("namespace"), text.Value(c.Namespace), fmt.Sprintf(
				"must be the service's own namespace %s, or match namespaces of this entry of allowedProviderConfigs in the Composition's input", s.Namespace)))
		}
	}
	return errs
}

// sameConfig tells whether two references name the same configuration. Objects of claims
// have no kind in theirs, because cluster-scoped Objects can name only one kind.
func sameConfig(s naming.Identity, a, b v1alpha1.ProviderConfigRef) bool {
	kind := func(r v1alpha1.ProviderConfigRef) string { return cmp.Or(r.Kind, v1alpha1.KindClusterProviderConfig) }
	return a.Name == b.Name && (s.Claimed || kind(a) == kind(b))
}

// usedByFleet tells whether a cluster of the fleet uses a configuration of this name. The kind
// does not matter: for claims, a cluster also has a ProviderConfig with the name of its
// ClusterProviderConfig, and both reach it.
func usedByFleet(snapshot *scheduling.Snapshot, name string) bool {
	return slices.Contains(snapshot.Configs, name)
}

// DeferUnchecked defers new objects in clusters that the placement names by a provider
// configuration, until Crossplane has listed the configurations of the fleet.
func (p *Plan) DeferUnchecked(objects []kube.Object, observed func(key.Key) bool) []Deferred {
	if len(p.Unchecked) == 0 {
		return nil
	}
	var deferred []Deferred
	for _, o := range objects {
		if p.Unchecked[o.Key.Cluster] && !observed(o.Key) {
			deferred = append(deferred, Deferred{Key: o.Key, Reason: DeferredForProviderConfigs, Message: "waiting for Crossplane to list the clusters of the fleet and their provider configurations"})
		}
	}
	return deferred
}

// unchecked returns the clusters that a placement names by a provider configuration, as long
// as Crossplane has not listed the configurations of the fleet.
func unchecked(placement *v1alpha1.Placement, snapshot *scheduling.Snapshot) map[string]bool {
	if !NamesConfigs(placement) || snapshot.ConfigsResolved {
		return nil
	}
	all := map[string]bool{}
	for _, c := range placement.Clusters {
		if namesConfig(c) {
			all[c.Name] = true
		}
	}
	return all
}
