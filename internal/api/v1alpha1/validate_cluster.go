package v1alpha1

import (
	"cmp"
	"net/netip"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// DefaultCluster sets the defaults of a cluster. The schema has none, for the reason that
// Default gives.
func DefaultCluster(s *InferenceClusterSpec) {
	s.ProviderConfigRef.APIGroup = cmp.Or(s.ProviderConfigRef.APIGroup, GroupNamespacedObjects)
	s.Sharing = cmp.Or(s.Sharing, SharingExclusive)
	s.StopPolicy = cmp.Or(s.StopPolicy, StopNone)
	s.Admission = cmp.Or(s.Admission, AdmissionLedger)
	if s.Kueue != nil {
		s.Kueue.LocalQueueName = cmp.Or(s.Kueue.LocalQueueName, DefaultLocalQueue)
	}
	if e := s.Entrypoint; e != nil {
		if e.Port == nil {
			e.Port = ptr.To[int32](DefaultEntrypointPort)
		}
		if e.Address != nil {
			e.Address.Type = cmp.Or(e.Address.Type, AddressTypeIP)
		}
	}
	if s.AllowedNamespaces != nil && s.AllowedNamespaces.From == "" {
		s.AllowedNamespaces.From = NamespacesAll
	}
}

// ValidateCluster returns all errors that show in a cluster alone, as Validate does for a
// service.
func ValidateCluster(c *InferenceCluster) field.ErrorList {
	spec := field.NewPath("spec")
	errs := validateClusterName(field.NewPath("metadata", "name"), c.Name)
	errs = append(errs, c.Spec.ProviderConfigRef.validate(spec.Child("providerConfigRef"))...)
	errs = append(errs, check.Length(spec.Child("clusterUID"), c.Spec.ClusterUID, MaxClusterUID)...)
	errs = append(errs, check.OneOf(spec.Child("sharing"), c.Spec.Sharing, SharingExclusive, SharingByPool)...)
	errs = append(errs, validateAdmission(spec, &c.Spec)...)
	errs = append(errs, check.OneOf(spec.Child("stopPolicy"), c.Spec.StopPolicy, StopNone, StopHold, StopDrain, StopAbandon)...)
	errs = append(errs, check.Length(spec.Child("stopMessage"), c.Spec.StopMessage, MaxStopMessage)...)
	errs = append(errs, validateEntrypoint(spec.Child("entrypoint"), c.Spec.Entrypoint)...)
	return append(errs, validateAllowedNamespaces(spec.Child("allowedNamespaces"), c.Spec.AllowedNamespaces)...)
}

func validateClusterName(path *field.Path, name string) field.ErrorList {
	return check.Required(path, name, "must be set: services request capacity by the name of the cluster", check.Label)
}

func validatePools(path *field.Path, all []Pool) field.ErrorList {
	if len(all) == 0 {
		return field.ErrorList{field.Required(path, "must have at least one pool of nodes")}
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
	errs = append(errs, check.Required(path.Child("name"), p.Name, "must be a name that no other pool has", check.Label)...)
	switch {
	case p.NodeCount != nil && p.Allocatable == nil:
		errs = append(errs, field.Required(path.Child("allocatable"), "must list the resources of each node if nodeCount is set; without both fields, the nodes are observed"))
	case p.NodeCount == nil && p.Allocatable != nil:
		errs = append(errs, field.Required(path.Child("nodeCount"), "must be the number of nodes if allocatable is set; without both fields, the nodes are observed"))
	case p.NodeCount == nil && len(p.NodeSelector) == 0:
		errs = append(errs, field.Required(path.Child("nodeSelector"), "must have the labels of the nodes to observe, unless nodeCount and allocatable are set"))
	}
	if p.NodeCount != nil {
		errs = append(errs, check.Between(path.Child("nodeCount"), *p.NodeCount, 0, MaxPoolNodes)...)
	}
	if n := len(p.Allocatable); n > MaxAllocatable {
		errs = append(errs, field.TooMany(path.Child("allocatable"), n, MaxAllocatable))
	} else {
		errs = append(errs, check.Amounts(path.Child("allocatable"), p.Allocatable)...)
	}
	errs = append(errs, validateTaints(path.Child("taints"), p)...)
	if n := len(p.NodeSelector); n > MaxSelectorLabels {
		return append(errs, field.TooMany(path.Child("nodeSelector"), n, MaxSelectorLabels))
	}
	return append(errs, check.Labels(path.Child("nodeSelector"), p.NodeSelector)...)
}

// validateTaints checks the taints of a pool by the rules for those of a node.
func validateTaints(path *field.Path, p *Pool) field.ErrorList {
	if p.Taints != nil && p.NodeCount == nil {
		return field.ErrorList{field.Forbidden(path, "must be left out without nodeCount: those of observed nodes are read")}
	}
	taints, errs := check.Capped(path, p.Taints, MaxTaints)
	for i, t := range taints {
		at := path.Index(i)
		switch {
		case t.Key == "":
			errs = append(errs, field.Required(at.Child("key"), "must be the key of a taint"))
		case len(validation.IsQualifiedName(t.Key)) > 0:
			errs = append(errs, field.Invalid(at.Child("key"), text.Value(t.Key), "must be the key of a taint, such as example.com/dedicated"))
		}
		if len(validation.IsValidLabelValue(t.Value)) > 0 {
			errs = append(errs, field.Invalid(at.Child("value"), text.Value(t.Value), "must be the value of a taint: at most 63 letters, digits, '-', '_' and '.'"))
		}
		if t.Effect == "" {
			errs = append(errs, field.Required(at.Child("effect"), "must be NoSchedule or NoExecute"))
		} else {
			errs = append(errs, check.OneOf(at.Child("effect"), t.Effect, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute)...)
		}
	}
	return errs
}

// UnusableAddress returns what is wrong with the address of an entrypoint, or an empty
// string. The rules are those of the addresses of an EndpointSlice (discovery.k8s.io/v1),
// through which requests are sent to it.
func UnusableAddress(text string) string {
	a, err := netip.ParseAddr(text)
	switch {
	case err != nil || a.Zone() != "" || a.Is4In6():
		return "must be an IP address"
	case a.IsUnspecified() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsLinkLocalMulticast():
		return "must be an IP address that other machines can reach: not unspecified, loopback or link-local"
	}
	return ""
}

// UnusableHostname returns what is wrong with the DNS name of an entrypoint, or an empty string.
// It refuses names that lead back into the control plane. What a name resolves to is not known
// here.
func UnusableHostname(name string) string {
	labels := strings.Split(name, ".")
	last := labels[len(labels)-1]
	switch {
	case len(validation.IsDNS1123Subdomain(name)) > 0 || endsInNumber(last):
		return "must be a DNS name in lower case, such as gw.example.com"
	case len(labels) < 2 || last == "localhost" || last == "local" || last == "svc" || strings.Contains(name, ".svc.cluster."):
		return "must be a DNS name that leads to the same address everywhere: no single label, and no name below localhost, local or svc"
	}
	return ""
}

// endsInNumber tells whether a name with this last label is read as an IPv4 address by many
// resolvers, as in 127.1 and 0x7f.0x1.
func endsInNumber(last string) bool {
	_, err := strconv.ParseUint(last, 0, 64)
	return err == nil || strings.Trim(last, "0123456789") == ""
}

func validateEntrypoint(path *field.Path, e *Entrypoint) field.ErrorList {
	if e == nil {
		return nil
	}
	var errs field.ErrorList
	if e.Port != nil {
		errs = append(errs, check.Port(path.Child("port"), *e.Port)...)
	}
	switch {
	case e.Address != nil && e.GatewayRef != nil:
		errs = append(errs, field.Forbidden(path.Child("address"), "must be left out if gatewayRef is set: the address of that Gateway is observed"))
	case e.Address == nil && e.GatewayRef == nil:
		errs = append(errs, field.Required(path.Child("address"), "must be set, unless gatewayRef names a Gateway whose address is observed"))
	}
	if a := e.Address; a != nil {
		errs = append(errs, validateAddress(path.Child("address"), a)...)
	}
	if ref := e.GatewayRef; ref != nil {
		errs = append(errs, validateGatewayRef(path.Child("gatewayRef"), ref)...)
	}
	return errs
}

func validateAddress(path *field.Path, a *EntrypointAddress) field.ErrorList {
	errs := check.OneOf(path.Child("type"), a.Type, AddressTypeHostname, AddressTypeIP)
	if a.Value == "" {
		return append(errs, field.Required(path.Child("value"), "must be an IP address, or a DNS name with the type Hostname"))
	}
	why, asName := UnusableAddress(a.Value), UnusableHostname(a.Value)
	switch {
	case a.Type == AddressTypeHostname:
		why = asName
	case why != "" && asName == "":
		why += ", or set type to Hostname"
	}
	if why != "" {
		errs = append(errs, field.Invalid(path.Child("value"), text.Value(a.Value), why))
	}
	return errs
}

func validateGatewayRef(path *field.Path, ref *GatewayReference) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, check.Required(path.Child("name"), ref.Name, "must be the name of a Gateway in the cluster", check.Name)...)
	return append(errs, check.Required(path.Child("namespace"), ref.Namespace, "must be the namespace of the Gateway", check.Label)...)
}
