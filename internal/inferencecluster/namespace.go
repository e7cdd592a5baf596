package inferencecluster

import (
	"maps"

	psa "k8s.io/pod-security-admission/api"

	"github.com/fusioninfer/function-inferenceservice/input/v1beta1"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/placement"
)

// namespace returns the namespace of a tenant's services, and what is to be done about it.
//
// It is made with the Pod Security labels of the tenant's policy and with what the input
// names for all namespaces. LabelCluster says that this cluster made it: then it is kept
// up to date. A namespace without that label is somebody else's, who may have stricter
// labels on it or other pods in it. Nothing of it is changed. Whoever wants it kept up to
// date gives it the label.
func (r *rendering) namespace(seen *reality, name string) (*remote, placement.Care) {
	n := named("v1", "Namespace", "", name)
	meta := r.input.Fleet.Namespaces
	n.Metadata.Annotations = meta.Annotations
	n.Metadata.Labels = map[string]string{}
	maps.Copy(n.Metadata.Labels, meta.Labels)
	maps.Copy(n.Metadata.Labels, podSecurityLabels(r.input.PolicyOf(name).PodSecurity))
	maps.Copy(n.Metadata.Labels, r.labels())
	found, _ := seen.unwrap(r.key(namespaces + name))
	if kube.Lookup(found, "metadata", "labels", LabelCluster).GetStringValue() == r.Name {
		return n, placement.Make
	}
	return n, placement.MakeOnce
}

// podSecurityLabels has the cluster enforce what services are held against before they are
// rendered. The labels know no single capabilities: where the policy allows some of them,
// enforce would refuse the pods that it allows. Then the standard is left to the function,
// and the cluster warns and audits.
func podSecurityLabels(s *v1beta1.PodSecurity) map[string]string {
	level, version := string(s.Enforce), s.EnforceVersion
	if len(s.AllowedCapabilities) == 0 {
		return map[string]string{psa.EnforceLevelLabel: level, psa.EnforceVersionLabel: version}
	}
	return map[string]string{
		psa.EnforceLevelLabel: string(v1beta1.PodSecurityPrivileged), psa.EnforceVersionLabel: version,
		psa.WarnLevelLabel: level, psa.WarnVersionLabel: version,
		psa.AuditLevelLabel: level, psa.AuditVersionLabel: version,
	}
}
