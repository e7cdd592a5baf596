package v1alpha1

import (
	"fmt"
	"net/netip"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// Limits of the policies. The markers of the types repeat them for the schema.
const (
	maxTenants      = 1000
	maxPatterns     = 256
	maxHostnames    = 64
	maxNetworkPeers = 64
	maxHostname     = 253
)

// The placeholders of host names.
const (
	PlaceholderService   = "{service}"
	PlaceholderNamespace = "{namespace}"
)

func validatePolicies(in *Input, root *field.Path) field.ErrorList {
	errs := validatePolicy(root, &in.Policy)
	tenants, more := check.Capped(root.Child("tenants"), in.Tenants, maxTenants)
	errs = append(errs, more...)
	for i := range tenants {
		at, t := root.Child("tenants").Index(i), &tenants[i]
		errs = append(errs, validateTenantNamespaces(at.Child("namespaces"), t.Namespaces)...)
		errs = append(errs, validatePolicy(at, &t.Policy)...)
	}
	if n := in.NetworkPolicy; n != nil {
		errs = append(errs, validateNetworkPolicy(root.Child("networkPolicy"), n)...)
	}
	return errs
}

func validateTenantNamespaces(at *field.Path, patterns []string) field.ErrorList {
	var errs field.ErrorList
	if len(patterns) == 0 {
		errs = append(errs, field.Required(at, "must list namespaces, or patterns such as research-*"))
	}
	return append(errs, validatePatterns(at, patterns)...)
}

func validatePolicy(at *field.Path, p *Policy) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, validatePodSecurity(at.Child("podSecurity"), p.PodSecurity)...)
	configs, more := check.Capped(at.Child("allowedProviderConfigs"), p.AllowedProviderConfigs, maxPatterns)
	errs = append(errs, more...)
	for i, c := range configs {
		errs = append(errs, validateProviderConfig(at.Child("allowedProviderConfigs").Index(i), c)...)
	}
	if p.Routes != nil {
		errs = append(errs, validateRoutes(at.Child("routes"), p.Routes)...)
	}
	errs = append(errs, validatePatterns(at.Child("allowedQueues"), p.AllowedQueues)...)
	errs = append(errs, validatePatterns(at.Child("allowedPriorityClassNames"), p.AllowedPriorityClassNames)...)
	errs = append(errs, validatePatterns(at.Child("allowedTriggers"), p.AllowedTriggers)...)
	errs = append(errs, validateModelCaches(at.Child("modelCaches"), p.ModelCaches)...)
	if l := p.Limits; l != nil {
		errs = append(errs, validateLimit(at.Child("limits", "replicas"), l.Replicas)...)
		errs = append(errs, validateLimit(at.Child("limits", "nodes"), l.Nodes)...)
		errs = append(errs, validateLimit(at.Child("limits", "devices"), l.Devices)...)
	}
	return errs
}

func validateLimit(at *field.Path, n *int32) field.ErrorList {
	if n == nil || *n >= 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(at, *n, "must be 0 or more")}
}

func validatePodSecurity(at *field.Path, s *PodSecurity) field.ErrorList {
	if s == nil {
		return nil
	}
	errs := check.OneOf(at.Child("enforce"), s.Enforce, PodSecurityPrivileged, PodSecurityBaseline, PodSecurityRestricted)
	if s.EnforceVersion != "" && !podSecurityVersion(s.EnforceVersion) {
		errs = append(errs, field.Invalid(at.Child("enforceVersion"), text.Value(s.EnforceVersion), "must be latest, or a version of Kubernetes such as v1.34"))
	}
	capabilities, more := check.Capped(at.Child("allowedCapabilities"), s.AllowedCapabilities, maxHostnames)
	errs = append(errs, more...)
	for i, c := range capabilities {
		if name := string(c); name == "" || strings.HasPrefix(name, "CAP_") || name != strings.ToUpper(name) {
			errs = append(errs, field.Invalid(at.Child("allowedCapabilities").Index(i), corev1.Capability(text.Value(name)), "must be the name of a capability in upper case, without the prefix CAP_, such as IPC_LOCK"))
		}
	}
	annotations, more := check.Capped(at.Child("allowedAnnotations"), s.AllowedAnnotations, maxHostnames)
	errs = append(errs, more...)
	for i, a := range annotations {
		for _, why := range validation.IsQualifiedName(a) {
			errs = append(errs, field.Invalid(at.Child("allowedAnnotations").Index(i), text.Value(a), why))
		}
	}
	return errs
}

func podSecurityVersion(v string) bool {
	minor, ok := strings.CutPrefix(v, "v1.")
	if !ok || minor == "" || len(minor) > 4 || len(minor) > 1 && minor[0] == '0' {
		return v == DefaultPodSecurityVersion
	}
	return strings.Trim(minor, "0123456789") == ""
}

func validateProviderConfig(at *field.Path, c AllowedProviderConfig) field.ErrorList {
	errs := check.OneOf(at.Child("kind"), c.Kind, "ClusterProviderConfig", "ProviderConfig")
	errs = append(errs, check.Required(at.Child("name"), c.Name, "must be the name of a provider-kubernetes configuration", check.Name)...)
	return append(errs, validatePatterns(at.Child("namespaces"), c.Namespaces)...)
}

func validateRoutes(at *field.Path, r *Routes) field.ErrorList {
	errs := check.OneOf(at.Child("ownGateways"), r.OwnGateways, Allow, Deny)
	errs = append(errs, check.OneOf(at.Child("experimentalFields"), r.ExperimentalFields, Allow, Deny)...)
	refs, more := check.Capped(at.Child("allowedParentRefs"), r.AllowedParentRefs, maxPatterns)
	errs = append(errs, more...)
	for i, ref := range refs {
		p := at.Child("allowedParentRefs").Index(i)
		if ref.Namespace == "" {
			errs = append(errs, field.Required(p.Child("namespace"), "must be the namespace of a gateway, or a pattern"))
		}
		errs = append(errs, validatePattern(p.Child("namespace"), ref.Namespace)...)
		errs = append(errs, validatePattern(p.Child("name"), ref.Name)...)
		errs = append(errs, check.Optional(p.Child("sectionName"), ref.SectionName, check.Name)...)
	}
	if r.AllowedGatewayClassNames != nil && len(r.AllowedGatewayClassNames) == 0 {
		errs = append(errs, field.Required(at.Child("allowedGatewayClassNames"), "must list at least one class, or be left out to allow any; to allow no Gateway, set ownGateways to Deny"))
	}
	errs = append(errs, validatePatterns(at.Child("allowedGatewayClassNames"), r.AllowedGatewayClassNames)...)
	addresses, more := check.Capped(at.Child("allowedAddresses"), r.AllowedAddresses, maxPatterns)
	errs = append(errs, more...)
	for i, a := range addresses {
		errs = append(errs, validateAddress(at.Child("allowedAddresses").Index(i), a)...)
	}
	options, more := check.Capped(at.Child("allowedTLSOptions"), r.AllowedTLSOptions, maxPatterns)
	errs = append(errs, more...)
	for i, o := range options {
		if len(validation.IsQualifiedName(o)) > 0 {
			errs = append(errs, field.Invalid(at.Child("allowedTLSOptions").Index(i), text.Value(o), "must be the name of an option, such as gateway.istio.io/tls-terminate-mode"))
		}
	}
	errs = append(errs, validateDefaultHostname(at.Child("defaultHostname"), r.DefaultHostname)...)
	hostnames, more := check.Capped(at.Child("allowedHostnames"), r.AllowedHostnames, maxHostnames)
	errs = append(errs, more...)
	for i, h := range hostnames {
		errs = append(errs, validateHostnamePattern(at.Child("allowedHostnames").Index(i), h)...)
	}
	for i, f := range r.AllowedFilters {
		errs = append(errs, check.OneOf(at.Child("allowedFilters").Index(i), f, FilterRequestMirror, FilterExternalAuth, FilterExtensionRef)...)
	}
	return append(errs, validatePatterns(at.Child("allowedBackendNamespaces"), r.AllowedBackendNamespaces)...)
}

// validateAddress refuses an entry that no address can match. A name does not end in a number, so that a mistyped IP
// address is none.
func validateAddress(at *field.Path, a string) field.ErrorList {
	_, isRange := AddressRange(a)
	if isRange || !endsInNumber(a) && len(validateHostnamePattern(at, a)) == 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(at, text.Value(a), fmt.Sprintf("must be an IP address, a range such as 192.0.2.0/24, or a name such as *.%s.lb.example.com: lower case, with '*', %s and %s as whole labels only", PlaceholderNamespace, PlaceholderService, PlaceholderNamespace))}
}

func endsInNumber(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	return strings.Trim(last, "0123456789") == ""
}

// AddressRange returns the IP addresses that an entry of allowedAddresses stands for. It returns false for a name.
func AddressRange(entry string) (netip.Prefix, bool) {
	if ip, err := netip.ParseAddr(entry); err == nil {
		ip = ip.Unmap()
		return netip.PrefixFrom(ip, ip.BitLen()), ip.Zone() == ""
	}
	p, err := netip.ParsePrefix(entry)
	return p, err == nil && p == p.Masked()
}

// validateDefaultHostname requires both placeholders, each as a whole label of the name.
// With {service}-{namespace} in one label, the service a-b in the namespace c and the
// service a in the namespace b-c would have the same host name.
func validateDefaultHostname(at *field.Path, h string) field.ErrorList {
	if h == "" {
		return nil
	}
	labels := map[string]int{}
	for l := range strings.SplitSeq(h, ".") {
		labels[l]++
	}
	if labels[PlaceholderService] != 1 || labels[PlaceholderNamespace] != 1 {
		return field.ErrorList{field.Invalid(at, text.Value(h), fmt.Sprintf("must contain %s and %s once, each as a whole label, so that no two services have the same host name: such as %s.%s.llm.example.com", PlaceholderService, PlaceholderNamespace, PlaceholderService, PlaceholderNamespace))}
	}
	return validateHostnamePattern(at, h)
}

// validateHostnamePattern checks a host name with placeholders and, as its first label, a
// '*'. Placeholders have to be whole labels, for the reason that validateDefaultHostname
// gives.
func validateHostnamePattern(at *field.Path, h string) field.ErrorList {
	if h == "*" {
		return nil
	}
	name := strings.TrimPrefix(h, "*.")
	for _, p := range []string{PlaceholderService, PlaceholderNamespace} {
		name = strings.Join(replaceLabels(strings.Split(name, "."), p), ".")
	}
	if len(h) > maxHostname || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return field.ErrorList{field.Invalid(at, text.Value(h), fmt.Sprintf("must be a host name, such as *.%s.llm.example.com: lower case, with '*', %s and %s as whole labels only", PlaceholderNamespace, PlaceholderService, PlaceholderNamespace))}
	}
	return nil
}

func replaceLabels(labels []string, placeholder string) []string {
	for i := range labels {
		if labels[i] == placeholder {
			labels[i] = "x"
		}
	}
	return labels
}

func validatePatterns(at *field.Path, patterns []string) field.ErrorList {
	some, errs := check.Capped(at, patterns, maxPatterns)
	for i, p := range some {
		if p == "" {
			errs = append(errs, field.Required(at.Index(i), "must be a name, or a pattern with '*'"))
		}
		errs = append(errs, validatePattern(at.Index(i), p)...)
	}
	return errs
}

// validatePattern refuses a pattern that no name can match.
func validatePattern(at *field.Path, p string) field.ErrorList {
	if p == "" {
		return nil
	}
	name := strings.ReplaceAll(p, "*", "x")
	if _, err := path.Match(p, name); err != nil || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return field.ErrorList{field.Invalid(at, text.Value(p), "must be a name of lower case letters, digits, '-' and '.', in which '*' stands for any text")}
	}
	return nil
}
