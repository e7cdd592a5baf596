package v1alpha1

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
)

// A place is where a service runs. Two entries of a placement that are one place
// would fight over the same objects.
type place struct{ kind, config, namespace string }

func validatePlacement(path *field.Path, p *Placement, tenant string, claimed bool) field.ErrorList {
	if p == nil {
		return nil
	}
	path = path.Child("clusters")
	if len(p.Clusters) == 0 {
		return field.ErrorList{field.Required(path, "a placement names at least one cluster; without a placement the service runs beside this object")}
	}
	clusters, errs := capped(path, p.Clusters, MaxClusters)
	names, places := unique{}, map[place]int{}
	for i, c := range clusters {
		at := path.Index(i)
		errs = append(errs, validateCluster(at, c)...)
		errs = append(errs, names.check(at.Child("name"), c.Name)...)
		here := place{kind: c.ProviderConfigRef.Kind, config: c.ProviderConfigRef.Name, namespace: cmp.Or(c.Namespace, tenant)}
		if claimed {
			// A claim's Objects know one kind only.
			here.kind = ""
		}
		if j, ok := places[here]; ok && here.config != "" {
			errs = append(errs, field.Invalid(at, check.Shown(c.Name), fmt.Sprintf("must be another place: %s has the same providerConfigRef and namespace", path.Index(j))))
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
	ref := path.Child("providerConfigRef")
	errs = append(errs, check.OneOf(ref.Child("kind"), c.ProviderConfigRef.Kind, KindClusterProviderConfig, KindProviderConfig)...)
	if c.ProviderConfigRef.Name == "" {
		errs = append(errs, field.Required(ref.Child("name"), "must be the name of a provider-kubernetes configuration"))
	} else {
		errs = append(errs, check.Name(ref.Child("name"), c.ProviderConfigRef.Name)...)
	}
	if c.Namespace != "" {
		errs = append(errs, check.Label(path.Child("namespace"), c.Namespace)...)
	}
	return errs
}
