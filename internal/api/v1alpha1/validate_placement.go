package v1alpha1

import (
	"cmp"
	"fmt"
	"regexp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
)

// A place is where a service runs. Two entries of a placement that are one place
// would fight over the same objects.
type place struct{ fleet, kind, config, namespace string }

// duration is the pattern of failoverAfter.
var duration = regexp.MustCompile(`^([0-9]{1,6}(s|m|h))+$`)

func validatePlacement(path *field.Path, p *Placement, tenant string, claimed bool) field.ErrorList {
	if p == nil {
		return nil
	}
	errs := check.OneOf(path.Child("policy"), p.Policy, PlacementReplicate, PlacementSpread, PlacementFailover)
	if len(p.FailoverAfter) > 16 || !duration.MatchString(p.FailoverAfter) {
		errs = append(errs, field.Invalid(path.Child("failoverAfter"), check.Shown(p.FailoverAfter), "must be a duration such as 90s, 5m or 1h30m"))
	}
	clusters := path.Child("clusters")
	switch {
	case p.ClusterSelector != nil && len(p.Clusters) > 0:
		errs = append(errs, field.Forbidden(path.Child("clusterSelector"), "give either clusters or clusterSelector"))
	case p.ClusterSelector != nil:
		if _, err := metav1.LabelSelectorAsSelector(p.ClusterSelector); err != nil {
			errs = append(errs, field.Invalid(path.Child("clusterSelector"), check.Shown(p.ClusterSelector.String()), err.Error()))
		}
		return errs
	case len(p.Clusters) == 0:
		return append(errs, field.Required(clusters, "a placement names at least one cluster, or has a clusterSelector; without a placement the service runs beside this object"))
	}
	return append(errs, validateClusters(clusters, p, tenant, claimed)...)
}

func validateClusters(path *field.Path, p *Placement, tenant string, claimed bool) field.ErrorList {
	clusters, errs := check.Capped(path, p.Clusters, MaxClusters)
	names, places := unique{}, map[place]int{}
	for i, c := range clusters {
		at := path.Index(i)
		errs = append(errs, validateCluster(at, c)...)
		errs = append(errs, names.check(at.Child("name"), c.Name)...)
		if p.Policy != PlacementReplicate && c.InferenceCluster == "" {
			errs = append(errs, field.Required(at.Child("inferenceCluster"), fmt.Sprintf("policy %s has to know what room a cluster has: name a cluster of the fleet", check.Shown(string(p.Policy)))))
		}
		here := place{fleet: c.InferenceCluster}
		if c.ProviderConfigRef != nil && c.InferenceCluster == "" {
			here = place{kind: c.ProviderConfigRef.Kind, config: c.ProviderConfigRef.Name, namespace: cmp.Or(c.Namespace, tenant)}
		}
		if claimed {
			// A claim's Objects know one kind only.
			here.kind = ""
		}
		if j, ok := places[here]; ok && here.config+here.fleet != "" {
			what := "providerConfigRef and namespace"
			if here.fleet != "" {
				what = "inferenceCluster"
			}
			errs = append(errs, field.Invalid(at, check.Shown(c.Name), fmt.Sprintf("must be another place: %s has the same %s", path.Index(j), what)))
			continue
		}
		places[here] = i
	}
	return errs
}

func validateCluster(path *field.Path, c Cluster) field.ErrorList {
	var errs field.ErrorList
	if c.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), "each cluster has a name of its own"))
	} else {
		errs = append(errs, check.Label(path.Child("name"), c.Name)...)
	}
	switch {
	case c.InferenceCluster != "" && c.ProviderConfigRef != nil:
		errs = append(errs, field.Forbidden(path.Child("providerConfigRef"), "give either inferenceCluster or providerConfigRef: a cluster of the fleet knows its own"))
	case c.InferenceCluster != "":
		errs = append(errs, check.Label(path.Child("inferenceCluster"), c.InferenceCluster)...)
	case c.ProviderConfigRef == nil:
		errs = append(errs, field.Required(path.Child("providerConfigRef"), "must name a provider-kubernetes configuration, unless inferenceCluster names a cluster of the fleet"))
	default:
		errs = append(errs, c.ProviderConfigRef.validate(path.Child("providerConfigRef"))...)
	}
	if w := c.Weight; w != nil && (*w < 0 || *w > MaxWeight) {
		errs = append(errs, field.Invalid(path.Child("weight"), *w, fmt.Sprintf("must be from 0 to %d", MaxWeight)))
	}
	if c.Namespace != "" && c.InferenceCluster != "" {
		errs = append(errs, field.Forbidden(path.Child("namespace"), "in a cluster of the fleet a service is in the namespace of its tenant's name"))
	}
	if c.Namespace != "" {
		errs = append(errs, check.Label(path.Child("namespace"), c.Namespace)...)
	}
	return errs
}

func (r *ProviderConfigRef) validate(path *field.Path) field.ErrorList {
	errs := check.OneOf(path.Child("kind"), r.Kind, KindClusterProviderConfig, KindProviderConfig)
	if r.Name == "" {
		return append(errs, field.Required(path.Child("name"), "must be the name of a provider-kubernetes configuration"))
	}
	return append(errs, check.Name(path.Child("name"), r.Name)...)
}
