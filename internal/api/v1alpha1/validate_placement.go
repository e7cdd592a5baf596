package v1alpha1

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// A clusterNamespace is a cluster and, outside of the fleet, a namespace in it. Two entries of
// a placement with the same one would write the same objects.
type clusterNamespace struct{ fleet, kind, config, namespace string }

func validatePlacement(path *field.Path, p *Placement, tenant string, claimed bool) field.ErrorList {
	if p == nil {
		return nil
	}
	errs := check.OneOf(path.Child("policy"), p.Policy, PlacementReplicate, PlacementSpread, PlacementFailover)
	if n := p.FailoverAfterSeconds; n != nil {
		errs = append(errs, check.Between(path.Child("failoverAfterSeconds"), *n, 0, MaxFailoverAfterSeconds)...)
	}
	if n := p.StartTimeoutSeconds; n != nil {
		errs = append(errs, check.Between(path.Child("startTimeoutSeconds"), *n, 0, MaxStartTimeoutSeconds)...)
	}
	clusters := path.Child("clusters")
	switch {
	case p.ClusterSelector != nil && len(p.Clusters) > 0:
		errs = append(errs, field.Forbidden(path.Child("clusterSelector"), "must be left out if clusters is set"))
	case p.ClusterSelector != nil:
		return append(errs, check.Selector(path.Child("clusterSelector"), p.ClusterSelector)...)
	case len(p.Clusters) == 0:
		return append(errs, field.Required(clusters, "must list at least one cluster, unless clusterSelector is set; without placement, the service runs in the cluster of this object"))
	}
	return append(errs, validateClusters(clusters, p, tenant, claimed)...)
}

func validateClusters(path *field.Path, p *Placement, tenant string, claimed bool) field.ErrorList {
	clusters, errs := check.Capped(path, p.Clusters, MaxClusters)
	names, known := unique{}, map[clusterNamespace]int{}
	for i, c := range clusters {
		at := path.Index(i)
		errs = append(errs, validatePlacementCluster(at, c)...)
		errs = append(errs, names.check(at.Child("name"), c.Name)...)
		if p.Policy != PlacementReplicate && c.InferenceClusterRef == nil {
			errs = append(errs, field.Required(at.Child("inferenceClusterRef"), fmt.Sprintf("must name a cluster of the fleet: policy %s needs to know its capacity", text.Value(string(p.Policy)))))
		}
		in := clusterNamespace{fleet: c.FleetName()}
		if c.ProviderConfigRef != nil && c.InferenceClusterRef == nil {
			in = clusterNamespace{kind: c.ProviderConfigRef.Kind, config: c.ProviderConfigRef.Name, namespace: cmp.Or(c.Namespace, tenant)}
		}
		if claimed {
			// The Objects of a claim refer to one kind only.
			in.kind = ""
		}
		if j, ok := known[in]; ok && in.config+in.fleet != "" {
			other, same := "cluster or namespace", "providerConfigRef and namespace"
			if in.fleet != "" {
				other, same = "cluster", "inferenceClusterRef"
			}
			errs = append(errs, field.Invalid(at, text.Value(c.Name), fmt.Sprintf("must be another %s: %s has the same %s", other, path.Index(j), same)))
			continue
		}
		known[in] = i
	}
	return errs
}

func validatePlacementCluster(path *field.Path, c PlacementCluster) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, check.Required(path.Child("name"), c.Name, "must be a name that no other cluster of the placement has", check.Label)...)
	switch {
	case c.InferenceClusterRef != nil && c.ProviderConfigRef != nil:
		errs = append(errs, field.Forbidden(path.Child("providerConfigRef"), "must be left out if inferenceClusterRef is set: a cluster of the fleet has its own"))
	case c.InferenceClusterRef != nil && c.FleetName() == "":
		errs = append(errs, field.Required(path.Child("inferenceClusterRef", "name"), "must be the name of an InferenceCluster"))
	case c.InferenceClusterRef != nil:
		errs = append(errs, check.Label(path.Child("inferenceClusterRef", "name"), c.FleetName())...)
	case c.ProviderConfigRef == nil:
		errs = append(errs, field.Required(path.Child("providerConfigRef"), "must name a provider-kubernetes configuration, unless inferenceClusterRef names a cluster of the fleet"))
	default:
		errs = append(errs, c.ProviderConfigRef.validate(path.Child("providerConfigRef"))...)
	}
	if w := c.Weight; w != nil && (*w < 0 || *w > MaxWeight) {
		errs = append(errs, field.Invalid(path.Child("weight"), *w, fmt.Sprintf("must be from 0 to %d", MaxWeight)))
	}
	if c.Namespace != "" && c.InferenceClusterRef != nil {
		errs = append(errs, field.Forbidden(path.Child("namespace"), "must be left out in a cluster of the fleet, where the service runs in a namespace with its tenant's name"))
	}
	errs = append(errs, check.Optional(path.Child("namespace"), c.Namespace, check.Label)...)
	return errs
}

func (r *ProviderConfigRef) validate(path *field.Path) field.ErrorList {
	return append(check.OneOf(path.Child("kind"), r.Kind, KindClusterProviderConfig, KindProviderConfig), configName(path.Child("name"), r.Name)...)
}

func (r *ClusterScopedConfigRef) validate(path *field.Path) field.ErrorList {
	return append(check.OneOf(path.Child("apiGroup"), r.APIGroup, GroupNamespacedObjects, GroupClusterScopedObjects), configName(path.Child("name"), r.Name)...)
}

func configName(path *field.Path, name string) field.ErrorList {
	return check.Required(path, name, "must be the name of a provider-kubernetes configuration", check.Name)
}
