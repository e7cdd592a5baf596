package plan

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/input/v1beta1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

// NamesConfigs tells whether a placement names provider configurations itself. They have to
// be compared with those of the fleet.
func NamesConfigs(p *v1alpha1.Placement) bool {
	return p != nil && slices.ContainsFunc(p.Clusters, namesConfig)
}

func namesConfig(c v1alpha1.Cluster) bool {
	return c.InferenceCluster == "" && c.ProviderConfigRef != nil
}

// checkConfigs refuses provider configurations that are not the tenant's to use.
// provider-kubernetes acts with the credentials of a configuration whoever names it, and
// in every namespace that they reach. So a configuration is the platform team's to give,
// and so is a namespace other than the tenant's. What is left of an earlier placement is
// not looked at: it has to be cleaned up.
//
// A configuration of the fleet is refused whatever the input says: what runs there by it
// would not be in the cluster's ledger. While Crossplane has not said which clusters
// there are, nothing new is made (see HoldUnchecked), and nothing is refused: a Fatal
// would end the call in which Crossplane is about to say so.
func (p *tenantPolicy) checkConfigs(s Service, placement *v1alpha1.Placement, w *World) field.ErrorList {
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
		var entries []v1beta1.AllowedProviderConfig
		for _, a := range allowed {
			if s.sameConfig(*c.ProviderConfigRef, v1alpha1.ProviderConfigRef{Kind: a.Kind, Name: a.Name}) {
				entries = append(entries, a)
			}
		}
		switch {
		case len(entries) == 0:
			errs = append(errs, field.Invalid(at.Child("providerConfigRef"), check.Shown(c.ProviderConfigRef.Name), fmt.Sprintf(
				"must be a configuration that services of namespace %s may use: the platform team lists these in allowedProviderConfigs of the Composition's input, or place the service in a cluster of the fleet by inferenceCluster", s.Namespace)))
		case usedByFleet(w, c.ProviderConfigRef.Name):
			errs = append(errs, field.Invalid(at.Child("providerConfigRef"), check.Shown(c.ProviderConfigRef.Name),
				"must not be the configuration of a cluster of the fleet, which counts what runs there: name that cluster by inferenceCluster instead"))
		}
		if c.Namespace == "" || c.Namespace == s.Namespace || len(entries) == 0 {
			continue
		}
		if !slices.ContainsFunc(entries, func(a v1beta1.AllowedProviderConfig) bool { return v1beta1.MatchesAny(a.Namespaces, c.Namespace) }) {
			errs = append(errs, field.Invalid(at.Child("namespace"), check.Shown(c.Namespace), fmt.Sprintf(
				"must be the service's own namespace, %s, or one that the platform team lists in namespaces of this entry of allowedProviderConfigs in the Composition's input", s.Namespace)))
		}
	}
	return errs
}

// sameConfig tells whether two references are to one configuration. Objects of claims say
// no kind: there is only one that they can name.
func (s Service) sameConfig(a, b v1alpha1.ProviderConfigRef) bool {
	kind := func(r v1alpha1.ProviderConfigRef) string { return cmp.Or(r.Kind, v1alpha1.KindClusterProviderConfig) }
	return a.Name == b.Name && (s.Claimed || kind(a) == kind(b))
}

// usedByFleet tells whether a cluster of the fleet is reached by a configuration of some
// name. The kind does not matter: a cluster that serves claims has a ProviderConfig of the
// name of its ClusterProviderConfig, and both reach it.
func usedByFleet(w *World, name string) bool {
	for _, c := range w.Clusters {
		if c.Spec.ProviderConfigRef.Name == name {
			return true
		}
	}
	return false
}

// HeldForConfigs waits until it is known which configurations the fleet uses.
const HeldForConfigs = "ClustersNotKnown"

// HoldUnchecked returns what is not there yet of clusters that the placement names by a
// provider configuration, while it is not known which configurations the fleet uses.
func (p *Plan) HoldUnchecked(objects []kube.Object, observed func(key string) bool) []Held {
	if len(p.Unchecked) == 0 {
		return nil
	}
	var held []Held
	for _, o := range objects {
		if p.Unchecked[ClusterOf(o.Key)] && !observed(o.Key) {
			held = append(held, Held{Key: o.Key, Reason: HeldForConfigs, Message: "it is not known yet which provider configurations the clusters of the fleet use"})
		}
	}
	return held
}

// unchecked are the clusters that a placement names by a configuration, while there is
// nothing to compare it with.
func unchecked(placement *v1alpha1.Placement, w *World) map[string]bool {
	if !NamesConfigs(placement) || w.Answered {
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
