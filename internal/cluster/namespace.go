package cluster

import (
	"maps"

	psa "k8s.io/pod-security-admission/api"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/remote"
)

// clusterLabel names the InferenceCluster that created an object.
var clusterLabel = incoming.NewPath("metadata", "labels", LabelCluster)

// namespace returns the namespace of a tenant's services, and whether it is updated.
//
// It is created with the Pod Security labels of the tenant's policy, and with the labels and
// annotations that the input has for all namespaces. LabelCluster marks a namespace that
// this cluster created: such a namespace is updated. A namespace without the label is left
// as it is, because its owner may have set stricter labels, or run other pods in it. An
// owner who wants it updated sets the label.
func (r *rendering) namespace(state *observedState, name string) (*manifest, remote.ManagementPolicy) {
	n := named("v1", "Namespace", "", name)
	meta := r.input.ServiceNamespaces
	n.Metadata.Annotations = meta.Annotations
	n.Metadata.Labels = map[string]string{}
	maps.Copy(n.Metadata.Labels, meta.Labels)
	maps.Copy(n.Metadata.Labels, podSecurityLabels(r.input.PodSecurityOf(name)))
	maps.Copy(n.Metadata.Labels, r.labels())
	found, _ := state.unwrap(r.keys().Namespace(name))
	if clusterLabel.Text(found) == r.Name {
		return n, remote.CreateAndUpdate
	}
	return n, remote.CreateOnly
}

// podSecurityLabels has the cluster enforce the policy that the function validates services
// against. The labels cannot allow single capabilities. Where the policy allows some, the
// label enforce would refuse pods that the policy allows. Then only the function enforces
// the standard, and the cluster warns and audits.
func podSecurityLabels(s *inputv1alpha1.PodSecurity) map[string]string {
	level, version := string(s.Enforce), s.EnforceVersion
	if len(s.AllowedCapabilities) == 0 {
		return map[string]string{psa.EnforceLevelLabel: level, psa.EnforceVersionLabel: version}
	}
	return map[string]string{
		psa.EnforceLevelLabel: string(inputv1alpha1.PodSecurityPrivileged), psa.EnforceVersionLabel: version,
		psa.WarnLevelLabel: level, psa.WarnVersionLabel: version,
		psa.AuditLevelLabel: level, psa.AuditVersionLabel: version,
	}
}
