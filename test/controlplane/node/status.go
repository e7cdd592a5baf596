package node

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// containerFacts are what there is to say about a container.
type containerFacts struct {
	name, image    string
	state, last    corev1.ContainerState
	restarts       int32
	started, ready bool
}

// podFacts are what there is to say about a pod.
type podFacts struct {
	ip, nodeIP string
	since      time.Time
	// initialized tells that all init containers have ended, or have started if they go on.
	initialized bool
	// deleted tells that the pod is to go, and over that all of its containers have ended for good.
	deleted, over bool
	// sidecars are those of the init containers that go on.
	sidecars    map[string]bool
	inits, main []containerFacts
}

func waiting(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

// statusOf is the status of a pod.
func statusOf(p *corev1.Pod, f podFacts, now time.Time) corev1.PodStatus {
	since := metav1.NewTime(f.since)
	s := corev1.PodStatus{
		Phase: phase(f), HostIP: f.nodeIP, HostIPs: []corev1.HostIP{{IP: f.nodeIP}},
		PodIP: f.ip, PodIPs: []corev1.PodIP{{IP: f.ip}}, StartTime: &since,
	}
	ready := !f.deleted && !f.over
	for _, c := range f.inits {
		cs := c.status()
		if !f.sidecars[c.name] {
			cs.Ready = c.state.Terminated != nil && c.state.Terminated.ExitCode == 0
		}
		ready = ready && cs.Ready
		s.InitContainerStatuses = append(s.InitContainerStatuses, cs)
	}
	for _, c := range f.main {
		ready = ready && c.ready
		s.ContainerStatuses = append(s.ContainerStatuses, c.status())
	}
	gates := !slices.ContainsFunc(p.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool {
		return !slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == g.ConditionType && c.Status == corev1.ConditionTrue
		})
	})
	for _, c := range []struct {
		of     corev1.PodConditionType
		is     bool
		reason string
	}{
		{corev1.PodInitialized, f.initialized, "ContainersNotInitialized"},
		{corev1.ContainersReady, ready, "ContainersNotReady"},
		{corev1.PodReady, ready && gates, "ContainersNotReady"},
	} {
		s.Conditions = append(s.Conditions, condition(p, c.of, c.is, c.reason, now))
	}
	return s
}

func condition(p *corev1.Pod, of corev1.PodConditionType, is bool, reason string, now time.Time) corev1.PodCondition {
	c := corev1.PodCondition{Type: of, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now)}
	if !is {
		c.Status, c.Reason = corev1.ConditionFalse, reason
	}
	for _, before := range p.Status.Conditions {
		if before.Type == of && before.Status == c.Status {
			c.LastTransitionTime = before.LastTransitionTime
		}
	}
	return c
}

func (c containerFacts) status() corev1.ContainerStatus {
	started := c.started
	return corev1.ContainerStatus{
		Name: c.name, Image: c.image, ImageID: c.image, State: c.state, LastTerminationState: c.last,
		Ready: c.ready, Started: &started, RestartCount: c.restarts,
	}
}

// phase of a pod. It is running from the first container that was started on.
func phase(f podFacts) corev1.PodPhase {
	failed, begun := false, false
	for _, c := range slices.Concat(f.inits, f.main) {
		if !f.sidecars[c.name] && c.state.Terminated != nil && c.state.Terminated.ExitCode != 0 {
			failed = true
		}
	}
	for _, c := range f.main {
		begun = begun || c.state.Running != nil || c.state.Terminated != nil || c.last.Terminated != nil
	}
	switch {
	case f.over && failed:
		return corev1.PodFailed
	case f.over:
		return corev1.PodSucceeded
	case f.initialized && begun:
		return corev1.PodRunning
	}
	return corev1.PodPending
}
