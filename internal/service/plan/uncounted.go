package plan

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	lws "sigs.k8s.io/lws/api/leaderworkerset/v1"
)

// notCounted begins the warnings about rules that no cluster of the fleet counts.
const notCounted = "a cluster of the fleet does not count this, so it may reserve capacity on which the pods are never scheduled, and which nobody else gets: "

// warnOfUncounted warns of rules that keep pods apart from others. A cluster counts what pods request, node by node, and packs them. Their
// scheduler goes by the rules as well, so pods stay pending that are reserved together on one node. They are not refused, because pods that
// take a whole node each are apart anyway.
func (p *Plan) warnOfUncounted() {
	for _, r := range p.Roles {
		for _, t := range r.templates() {
			p.warnOfRules(t.path.Child("spec"), &t.Spec)
			p.warnOfHostPorts(t.path.Child("spec", "initContainers"), t.Spec.InitContainers)
			p.warnOfHostPorts(t.path.Child("spec", "containers"), t.Spec.Containers)
			// LeaderWorkerSet does not read it of other workers, and warnOfTopology says so.
			leads := t.PodTemplate == &r.Leader || r.Leader.Document == r.Worker.Document
			if k := lws.ExclusiveKeyAnnotationKey; leads && t.Annotations[k] != "" {
				p.warn(t.path.Child("metadata", "annotations").Key(k), notCounted+"leave it out, and choose nodes by nodeSelector")
			}
		}
	}
}

// warnOfRules warns of the first rules of each kind that a scheduler never breaks.
func (p *Plan) warnOfRules(at *field.Path, spec *corev1.PodSpec) {
	if a := spec.Affinity; a != nil && a.PodAntiAffinity != nil && len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
		p.warn(at.Child("affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution"),
			notCounted+"use preferredDuringSchedulingIgnoredDuringExecution. Pods that take a whole node each need no such rule")
	}
	i := slices.IndexFunc(spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool { return c.WhenUnsatisfiable == corev1.DoNotSchedule })
	if i >= 0 {
		p.warn(at.Child("topologySpreadConstraints").Index(i).Child("whenUnsatisfiable"), notCounted+"set it to ScheduleAnyway. Pods that take a whole node each need no such rule")
	}
}

// warnOfHostPorts warns of the first port of a node that each container takes.
func (p *Plan) warnOfHostPorts(at *field.Path, containers []corev1.Container) {
	for i := range containers {
		j := slices.IndexFunc(containers[i].Ports, func(port corev1.ContainerPort) bool { return port.HostPort > 0 })
		if j >= 0 {
			p.warn(at.Index(i).Child("ports").Index(j).Child("hostPort"), notCounted+"leave it out, since requests reach pods at their own addresses")
		}
	}
}
