package observe

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/plan"
	"github.com/fusioninfer/function-inferenceservice/internal/require"
)

// A pod is the part of a pod that is looked at.
type pod struct {
	Metadata podMetadata `json:"metadata"`
	Status   struct {
		Phase                 corev1.PodPhase   `json:"phase"`
		Reason                string            `json:"reason"`
		Conditions            []condition       `json:"conditions"`
		InitContainerStatuses []containerStatus `json:"initContainerStatuses"`
		ContainerStatuses     []containerStatus `json:"containerStatuses"`
	} `json:"status"`
}

type podMetadata struct {
	metadata

	Name   string            `json:"name"`
	Labels map[string]string `json:"labels"`
}

type containerStatus struct {
	Name  string `json:"name"`
	State struct {
		Waiting *struct {
			Reason string `json:"reason"`
		} `json:"waiting"`
		Terminated *struct {
			Reason   string `json:"reason"`
			ExitCode int32  `json:"exitCode"`
		} `json:"terminated"`
	} `json:"state"`
}

// podFacts sums up the pods of one replica, or of the router.
type podFacts struct {
	found, ready, unscheduled int32
	failures                  []string
	newest                    time.Time
}

// A replicaID is how pods name the replica that they belong to.
type replicaID struct{ group, role, index string }

// A podIndex has the pods of the service, by where they belong.
type podIndex struct {
	replicas map[replicaID]*podFacts
	router   podFacts
}

// pods reads the service's pods. It returns nil where they were not asked for, or
// not answered yet, which is not the same as that there are none.
func (r *Reality) pods() *podIndex {
	answer, answered := r.required[require.Pods]
	if !answered {
		return nil
	}
	pods := make([]*pod, 0, len(answer.GetItems()))
	for _, i := range answer.GetItems() {
		p := &pod{}
		_ = kube.Decode(i.GetResource(), nil, p) // Fields of the wrong type are as good as absent.
		pods = append(pods, p)
	}
	slices.SortStableFunc(pods, func(a, b *pod) int { return cmp.Compare(a.Metadata.Name, b.Metadata.Name) })
	index := &podIndex{replicas: map[replicaID]*podFacts{}}
	for _, p := range pods {
		index.facts(p).add(p)
	}
	return index
}

func (i *podIndex) facts(p *pod) *podFacts {
	l := p.Metadata.Labels
	if l[plan.LabelReplicaIndex] == "" || l[plan.LabelComponentType] == string(v1alpha1.ComponentTypeRouter) {
		return &i.router
	}
	id := replicaID{group: l[plan.LabelGroupIndex], role: l[plan.LabelRoleName], index: l[plan.LabelReplicaIndex]}
	if i.replicas[id] == nil {
		i.replicas[id] = &podFacts{}
	}
	return i.replicas[id]
}

// of returns the facts about a replica's pods, or nil where none was found. Then
// its LeaderWorkerSet's word counts: it may have seen pods that were not shown.
func (i *podIndex) of(s plan.Service, r *plan.Replica) *podFacts {
	if i == nil {
		return nil
	}
	id := replicaID{role: r.Role.Name, index: strconv.FormatInt(int64(r.Index), 10)}
	if s.Grouped {
		id.group = strconv.FormatInt(int64(r.Group), 10)
	}
	return i.replicas[id]
}

// add counts one pod. A pod that is going away counts for nothing.
func (f *podFacts) add(p *pod) {
	if p.Metadata.DeletionTimestamp != "" {
		return
	}
	f.found++
	f.newest = newest(f.newest, p.Metadata.CreationTimestamp)
	for _, c := range p.Status.Conditions {
		f.newest = newest(f.newest, c.LastTransitionTime)
	}
	if find(p.Status.Conditions, string(corev1.PodReady)).Status == True {
		f.ready++
	}
	if find(p.Status.Conditions, string(corev1.PodScheduled)).Status == False {
		f.unscheduled++
	}
	if failure := p.failure(); failure != "" {
		f.failures = append(f.failures, fmt.Sprintf("pod %s: %s", p.Metadata.Name, failure))
	}
}

// failure says what of a pod will not come up by waiting. Only reasons are
// repeated, never messages: they may quote an image's credentials, an argument or
// an environment variable.
func (p *pod) failure() string {
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if reason := c.failure(); reason != "" {
			return fmt.Sprintf("container %s: %s", c.Name, reason)
		}
	}
	if p.Status.Phase == corev1.PodFailed {
		return word(p.Status.Reason, "Failed")
	}
	return ""
}

// failing are the reasons why a container waits that waiting does not cure.
var failing = []string{
	"CrashLoopBackOff",
	"ImagePullBackOff", "ErrImagePull", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError",
	"SignatureValidationFailed", "RegistryUnavailable",
	"CreateContainerConfigError", "CreateContainerError", "RunContainerError",
	"PreCreateHookError", "PreStartHookError", "PostStartHookError",
}

// failure is the reason why a container does not run. One that has just ended
// with an error counts as well: LeaderWorkerSet replaces the whole group at the first
// restart, so that most crashes never get as far as CrashLoopBackOff.
func (c *containerStatus) failure() string {
	if w := c.State.Waiting; w != nil && slices.Contains(failing, w.Reason) {
		return w.Reason
	}
	if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
		return fmt.Sprintf("%s (exit code %d)", word(t.Reason, "Error"), t.ExitCode)
	}
	return ""
}

// word passes a reason on that is one word, as reasons are.
func word(reason, otherwise string) string {
	if reason == "" || len(reason) > 64 {
		return otherwise
	}
	for _, c := range reason {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return otherwise
		}
	}
	return reason
}
