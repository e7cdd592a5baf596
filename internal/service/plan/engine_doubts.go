package plan

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	lws "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// warnOfHost warns of an engine that does not listen at localhost, where the routing sidecar connects to it (pkg/sidecar/proxy/options.go of
// llm-d-router v0.10.0). The engine is ready all the same, because the kubelet asks it at the pod's address.
func (p *rolePlanner) warnOfHost() {
	if p.role.Sidecar == nil {
		return
	}
	t := &p.role.Leader
	l := t.expanded.Listener()
	address, err := netip.ParseAddr(strings.Trim(l.Host, "[]"))
	if l.Host == "" || l.Local() || l.Host == "0" || err == nil && (address.IsUnspecified() || address.IsLoopback()) {
		return
	}
	if strings.Contains(l.Host, "$") && !isPodIP(t.engine().Env, strings.Trim(l.Host, "${}()")) {
		return // It is not known.
	}
	p.warn(t.enginePath(p.leaderPath()).Child("args"), "the routing sidecar connects to the engine at localhost, where it does not listen with --host %s: set --host 0.0.0.0", text.Value(l.Host))
}

// isPodIP tells whether a variable has the address of the pod.
func isPodIP(env []corev1.EnvVar, name string) bool {
	return slices.ContainsFunc(env, func(e corev1.EnvVar) bool {
		return e.Name == name && e.ValueFrom != nil && e.ValueFrom.FieldRef != nil && strings.HasPrefix(e.ValueFrom.FieldRef.FieldPath, "status.podIP")
	})
}

// warnOfTopology warns of annotations of LeaderWorkerSet without the effect that they promise. It reads them from the LeaderWorkerSet, and for
// the leader alone from its pod (pkg/webhooks/pod_webhook.go and pkg/controllers/pod_controller.go of v0.9.0). Set on the LeaderWorkerSet, it
// would make workers only after the leader is scheduled, for which a gang waits.
func (p *rolePlanner) warnOfTopology(t *PodTemplate, path *field.Path) {
	at := path.Child("metadata", "annotations")
	if k := lws.SubGroupExclusiveKeyAnnotationKey; t.Annotations[k] != "" {
		p.warn(at.Key(k), "has no effect: replicas have no subgroups")
	}
	switch k := lws.ExclusiveKeyAnnotationKey; {
	case t.Annotations[k] == "", p.role.Nodes == 1:
	case t == &p.role.Worker && p.ownLeader():
		p.warn(at.Key(k), "has no effect on workers")
	default:
		p.warn(at.Key(k), "holds only for the leader of a replica on several nodes, and the workers may run elsewhere: set networkTopology of the gang, or an affinity, in its place")
	}
}

// warnOfDNS warns of pods that cannot find each other. LeaderWorkerSet names the leader by a name that only the cluster's DNS has
// (pkg/utils/pod/pod_utils.go of v0.9.0). Pods on the node's network ask the node's DNS, unless they are told otherwise (getPodDNSType in
// pkg/kubelet/network/dns/dns.go of Kubernetes).
func (p *rolePlanner) warnOfDNS(t *PodTemplate, path *field.Path) {
	asksNode := t.Spec.DNSPolicy == corev1.DNSDefault || t.Spec.HostNetwork && (t.Spec.DNSPolicy == "" || t.Spec.DNSPolicy == corev1.DNSClusterFirst)
	named := p.launcher() != v1alpha1.LauncherNone || t.says("LWS_LEADER_ADDRESS")
	if c := t.Spec.DNSConfig; p.role.Nodes == 1 || !asksNode || !named || c != nil && len(c.Nameservers) > 0 {
		return
	}
	policy := corev1.DNSClusterFirst
	if t.Spec.HostNetwork {
		policy = corev1.DNSClusterFirstWithHostNet
	}
	p.warn(path.Child("spec", "dnsPolicy"), "these pods ask the DNS of their node, which does not have the leader's name, so they do not find each other: set dnsPolicy: %s", policy)
}
