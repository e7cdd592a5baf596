package v1alpha1

import (
	"fmt"
	"net/netip"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
)

// DefaultCluster fills in what is not set, as the schema does.
func DefaultCluster(s *InferenceClusterSpec) {
	s.ProviderConfigRef.Default()
	if s.Gateway != nil && s.Gateway.Port == 0 {
		s.Gateway.Port = DefaultGatewayPort
	}
	if s.AllowedNamespaces != nil && s.AllowedNamespaces.From == "" {
		s.AllowedNamespaces.From = NamespacesAll
	}
}

// ValidateCluster says everything that is wrong with a cluster by itself, like Validate
// does with a service.
func ValidateCluster(c *InferenceCluster) field.ErrorList {
	spec := field.NewPath("spec")
	errs := validateClusterName(field.NewPath("metadata", "name"), c.Name)
	errs = append(errs, c.Spec.ProviderConfigRef.validate(spec.Child("providerConfigRef"))...)
	errs = append(errs, validatePools(spec.Child("pools"), c.Spec.Pools)...)
	errs = append(errs, validateTaints(spec.Child("taints"), c.Spec.Taints)...)
	errs = append(errs, validateGateway(spec.Child("gateway"), c.Spec.Gateway)...)
	return append(errs, validateAllowedNamespaces(spec.Child("allowedNamespaces"), c.Spec.AllowedNamespaces)...)
}

func validateClusterName(path *field.Path, name string) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "a cluster has a name, by which services ask for it")}
	}
	return check.Label(path, name)
}

func validatePools(path *field.Path, all []Pool) field.ErrorList {
	if len(all) == 0 {
		return field.ErrorList{field.Required(path, "a cluster has at least one pool of nodes")}
	}
	pools, errs := check.Capped(path, all, MaxPools)
	names := unique{}
	for i := range pools {
		at := path.Index(i)
		errs = append(errs, validatePool(at, &pools[i])...)
		errs = append(errs, names.check(at.Child("name"), pools[i].Name)...)
	}
	return errs
}

func validatePool(path *field.Path, p *Pool) field.ErrorList {
	var errs field.ErrorList
	if p.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), "each pool has a name of its own"))
	} else {
		errs = append(errs, check.Label(path.Child("name"), p.Name)...)
	}
	switch {
	case p.Nodes != nil && p.Allocatable == nil:
		errs = append(errs, field.Required(path.Child("allocatable"), "say what each of the nodes has; without nodes and allocatable they are observed"))
	case p.Nodes == nil && p.Allocatable != nil:
		errs = append(errs, field.Required(path.Child("nodes"), "say how many nodes have this; without nodes and allocatable they are observed"))
	case p.Nodes == nil && len(p.NodeSelector) == 0:
		errs = append(errs, field.Required(path.Child("nodeSelector"), "an observed pool needs the labels of its nodes; else give nodes and allocatable"))
	}
	if p.Nodes != nil {
		errs = append(errs, check.Between(path.Child("nodes"), *p.Nodes, 0, MaxPoolNodes)...)
	}
	errs = append(errs, check.Amounts(path.Child("allocatable"), p.Allocatable)...)
	if len(p.NodeSelector) > MaxSelectorLabels {
		return append(errs, field.TooMany(path.Child("nodeSelector"), len(p.NodeSelector), MaxSelectorLabels))
	}
	return append(errs, check.Labels(path.Child("nodeSelector"), p.NodeSelector)...)
}

func validateTaints(path *field.Path, all []Taint) field.ErrorList {
	taints, errs := check.Capped(path, all, MaxTaints)
	effects := unique{}
	for i, t := range taints {
		at := path.Index(i)
		if t.Effect == "" {
			errs = append(errs, field.Required(at.Child("effect"), fmt.Sprintf("must be %s or %s", TaintDrain, TaintDead)))
		}
		errs = append(errs, check.OneOf(at.Child("effect"), t.Effect, TaintDrain, TaintDead)...)
		errs = append(errs, effects.check(at.Child("effect"), string(t.Effect))...)
		errs = append(errs, check.Length(at.Child("reason"), t.Reason, MaxName)...)
	}
	return errs
}

// UnusableAddress says what the address of a gateway would have to be, or nothing if it is
// that. The rules are those for the endpoints of a Service, to which requests are sent
// (EndpointSlice, discovery.k8s.io/v1).
func UnusableAddress(text string) string {
	a, err := netip.ParseAddr(text)
	switch {
	case err != nil || a.Zone() != "" || a.Is4In6():
		return "must be an IP address"
	case a.IsUnspecified() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsLinkLocalMulticast():
		return "must be an IP address that other machines reach: none that is unspecified, loopback or link-local"
	}
	return ""
}

func validateGateway(path *field.Path, g *ClusterGateway) field.ErrorList {
	if g == nil {
		return nil
	}
	errs := check.Between(path.Child("port"), g.Port, 1, maxPort)
	switch {
	case g.Address != "" && g.Name+g.Namespace != "":
		errs = append(errs, field.Forbidden(path.Child("address"), "give either address, or name and namespace of a Gateway whose address is observed"))
	case g.Address != "":
		if why := UnusableAddress(g.Address); why != "" {
			errs = append(errs, field.Invalid(path.Child("address"), check.Shown(g.Address), why))
		}
	case g.Name == "" && g.Namespace == "":
		errs = append(errs, field.Required(path.Child("address"), "give an IP address, or name and namespace of a Gateway whose address is observed"))
	case g.Name == "":
		errs = append(errs, field.Required(path.Child("name"), "name and namespace of a Gateway come together"))
	case g.Namespace == "":
		errs = append(errs, field.Required(path.Child("namespace"), "name and namespace of a Gateway come together"))
	}
	if g.Name != "" {
		errs = append(errs, check.Name(path.Child("name"), g.Name)...)
	}
	if g.Namespace != "" {
		errs = append(errs, check.Label(path.Child("namespace"), g.Namespace)...)
	}
	return errs
}
