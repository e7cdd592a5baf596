package observe

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// failure returns why a pod cannot start, or nothing. It returns reasons and no messages,
// because a message may quote credentials of an image, an argument or an environment
// variable.
func (p *pod) failure() string {
	for _, c := range p.containers() {
		if reason := c.failure(); reason != "" {
			return fmt.Sprintf("container %s: %s", c.Name, reason)
		}
	}
	if p.Status.Phase == corev1.PodFailed {
		return word(p.Status.Reason, "Failed")
	}
	return ""
}

// A container is one of a pod that has a status.
type container struct {
	containerStatus

	// stays tells that the container has to run as long as its pod. Its exit code does not matter: it does not
	// serve any more, and LeaderWorkerSet recreates its replica as soon as it is started again.
	stays bool
}

// containers returns the containers of a pod, init containers first.
func (p *pod) containers() []container {
	policies := map[string]corev1.RestartPolicy{}
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		policies[c.Name] = c.RestartPolicy
	}
	all := make([]container, 0, len(p.Status.InitContainerStatuses)+len(p.Status.ContainerStatuses))
	for _, s := range p.Status.InitContainerStatuses {
		all = append(all, container{containerStatus: s, stays: policies[s.Name] == corev1.RestartPolicyAlways})
	}
	for _, s := range p.Status.ContainerStatuses {
		policy := cmp.Or(policies[s.Name], p.Spec.RestartPolicy, corev1.RestartPolicyAlways)
		// The containers of a pod that has failed ended with it, such as when its node shut down.
		all = append(all, container{containerStatus: s, stays: policy == corev1.RestartPolicyAlways && p.Status.Phase != corev1.PodFailed})
	}
	return all
}

// untilDeleted is the most time from the end of a container to the deletion of its pod for it.
const untilDeleted = time.Minute

// failureBefore returns why a container failed for which a pod is being deleted, or nothing.
// LeaderWorkerSet deletes the pods of a replica as soon as a container has been started again. New
// pods do not tell why. So the former ones do until they have ended, which takes a while if they are
// drained. How a container ends after the deletion is no failure, and neither is what happened long
// before.
func (p *pod) failureBefore() string {
	end, err := time.Parse(time.RFC3339, p.Metadata.DeletionTimestamp)
	if err != nil {
		return ""
	}
	deleted := end.Add(-time.Duration(p.Metadata.DeletionGracePeriodSeconds) * time.Second)
	for _, c := range p.containers() {
		last := c.LastState.Terminated
		failure := c.end(last)
		if failure == "" {
			continue
		}
		finished, err := time.Parse(time.RFC3339, last.FinishedAt)
		if err == nil && !finished.After(deleted) && deleted.Sub(finished) <= untilDeleted {
			return fmt.Sprintf("container %s: %s", c.Name, failure)
		}
	}
	return ""
}

// crash returns why a container ended, or nothing if none has. What happened before a container was started
// again may be long ago, so it counts only while the container waits to be started once more.
func (p *pod) crash() string {
	if p.Metadata.DeletionTimestamp != "" {
		return p.failureBefore()
	}
	for _, c := range p.containers() {
		ended := c.State.Terminated
		if w := c.State.Waiting; w != nil && w.Reason == crashLoop {
			ended = c.LastState.Terminated
		}
		if failure := c.end(ended); failure != "" {
			return fmt.Sprintf("container %s: %s", c.Name, failure)
		}
	}
	return ""
}

// crashLoop is the reason of a container that waits to be started again after it has ended.
const crashLoop = "CrashLoopBackOff"

// failing are the reasons of waiting containers that have failed to start.
var failing = []string{
	crashLoop,
	"ImagePullBackOff", "ErrImagePull", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError",
	"SignatureValidationFailed", "RegistryUnavailable",
	"CreateContainerConfigError", "CreateContainerError", "RunContainerError",
	"PreCreateHookError", "PreStartHookError", "PostStartHookError",
}

// failure returns why a container does not run, or nothing. A container that has just
// ended counts, because most crashes never become CrashLoopBackOff:
// LeaderWorkerSet replaces the whole group at the first restart.
func (c *container) failure() string {
	w := c.State.Waiting
	if w == nil || !slices.Contains(failing, w.Reason) {
		return c.end(c.State.Terminated)
	}
	if ended := c.end(c.LastState.Terminated); ended != "" && w.Reason == crashLoop {
		return w.Reason + " after " + ended
	}
	return w.Reason
}

// end describes a termination, or returns "" if the container runs or was meant to exit with 0.
func (c *container) end(t *terminated) string {
	if t == nil || t.ExitCode == 0 && !c.stays {
		return ""
	}
	return t.text()
}

// failure returns why a container ended, or nothing if it ended without an error.
func (t *terminated) failure() string {
	if t.ExitCode == 0 {
		return ""
	}
	return t.text()
}

// text says how a container ended.
func (t *terminated) text() string {
	return fmt.Sprintf("%s (exit code %d)", word(t.Reason, "Error"), t.ExitCode)
}

// word returns the reason if it is one word of letters, as reasons are, and otherwise the
// second argument.
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
