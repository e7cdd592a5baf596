package observe

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	lws "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/remote"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
	"github.com/fusioninfer/function-inferenceservice/internal/service/require"
)

// A pod is the part of a Pod that is read.
type pod struct {
	Metadata podMetadata `json:"metadata"`
	Spec     struct {
		RestartPolicy  corev1.RestartPolicy `json:"restartPolicy"`
		InitContainers []containerSpec      `json:"initContainers"`
		Containers     []containerSpec      `json:"containers"`
	} `json:"spec"`
	Status struct {
		Phase                 corev1.PodPhase   `json:"phase"`
		Reason                string            `json:"reason"`
		Conditions            []condition       `json:"conditions"`
		InitContainerStatuses []containerStatus `json:"initContainerStatuses"`
		ContainerStatuses     []containerStatus `json:"containerStatuses"`
	} `json:"status"`
}

var podView = incoming.NewView[pod]()

type podMetadata struct {
	metadata

	Name                       string            `json:"name"`
	UID                        string            `json:"uid"`
	Labels                     map[string]string `json:"labels"`
	DeletionGracePeriodSeconds int64             `json:"deletionGracePeriodSeconds"`
}

type containerSpec struct {
	Name          string               `json:"name"`
	RestartPolicy corev1.RestartPolicy `json:"restartPolicy"`
}

type containerStatus struct {
	Name  string `json:"name"`
	State struct {
		Waiting *struct {
			Reason string `json:"reason"`
		} `json:"waiting"`
		Terminated *terminated `json:"terminated"`
	} `json:"state"`
	// LastState is from before the container was started again.
	LastState struct {
		Terminated *terminated `json:"terminated"`
	} `json:"lastState"`
}

type terminated struct {
	Reason   string `json:"reason"`
	ExitCode int32  `json:"exitCode"`
	// Message is read of loaders only, which write a number, or why they have found no adapter.
	Message    string `json:"message"`
	FinishedAt string `json:"finishedAt"`
}

// podFacts sums up the pods of one replica, or of the router.
type podFacts struct {
	ready int32
	// unscheduled have no node, and idle have one and none of their containers was ever started there.
	unscheduled, idle int32
	// stay are not being deleted, and leave are.
	stay, leave int32
	failures    []string
	newest      time.Time
	// crashes are why containers ended that ran. LeaderWorkerSet deletes their pods for it.
	crashes []plan.Failure
	// leaders are the pods that have the labels of a leader, by their names.
	leaders map[string]plan.Leader
}

// A replicaID has the labels of a pod that name its replica.
type replicaID struct{ group, role, index string }

// A podIndex has the facts about the service's pods, by replica.
type podIndex struct {
	replicas map[replicaID]*podFacts
	router   podFacts
}

// readPods reads all pods of the service. It returns nil where they are not required or Crossplane
// has not resolved the requirement yet. An empty index means that there are no pods.
func readPods(req incoming.Request) *podIndex {
	found, resolved := req.Required(require.Pods)
	if !resolved {
		return nil
	}
	pods := make([]*pod, 0, len(found))
	for _, i := range found {
		p := podView.In(i)
		pods = append(pods, &p)
	}
	slices.SortStableFunc(pods, func(a, b *pod) int { return cmp.Compare(a.Metadata.Name, b.Metadata.Name) })
	index := &podIndex{replicas: map[replicaID]*podFacts{}}
	for _, p := range pods {
		if f := index.facts(p); f != nil {
			f.add(p)
		}
	}
	return index
}

// facts returns the facts to which a pod belongs. It is nil for a pod of the service's own Gateway, which may have the labels of that.
func (i *podIndex) facts(p *pod) *podFacts {
	l := p.Metadata.Labels
	switch {
	case l[naming.LabelComponentType] == string(v1alpha1.ComponentTypeRouter):
		return &i.router
	case l[naming.LabelReplicaIndex] == "":
		return nil
	}
	id := replicaID{group: l[naming.LabelGroupIndex], role: l[naming.LabelRoleName], index: l[naming.LabelReplicaIndex]}
	if i.replicas[id] == nil {
		i.replicas[id] = &podFacts{}
	}
	return i.replicas[id]
}

// of returns the facts about a replica's pods, or nil where none was found. Then the
// status of its LeaderWorkerSet counts: its controller may know pods that Crossplane has
// not returned.
func (i *podIndex) of(s naming.Identity, r *plan.Replica) *podFacts {
	if i == nil {
		return nil
	}
	return i.replicas[idOf(r.Role.Name, r.Group, r.Index, s.Grouped)]
}

func idOf(role string, group, index int32, grouped bool) replicaID {
	id := replicaID{role: role, index: key.Number(index)}
	if grouped {
		id.group = key.Number(group)
	}
	return id
}

// losesPod tells whether a pod of a replica is being deleted, so that fewer are left than it has nodes. Its LeaderWorkerSet counts
// the pod for as long as it is Ready (PodRunningAndReady in pkg/utils/pod/pod_utils.go of v0.9.0). Gateways and endpoint pickers send it
// no requests any more. A pod that is only missing may be younger than what was read, so it does not count.
func (r *ObservedState) losesPod(k key.Key, nodes int32) bool {
	pods := r.pods()
	if pods == nil || k.Cluster != "" {
		return false
	}
	replica, _ := k.ReplicaID()
	group, role, index, _ := replica.Parts()
	f := pods.replicas[idOf(role, group, index, replica.Grouped())]
	return f != nil && f.leave > 0 && f.stay < max(nodes, 1)
}

// allByName returns the facts about the pods that are read by their names, by the keys of their replicas.
func (r *ObservedState) allByName() map[key.Key]podFacts {
	all := map[key.Key]podFacts{}
	for c, replica := range r.plan.Replicas() {
		if replica.PodsRead > 0 {
			all[replica.Key] = r.podsByName(c, replica)
		}
	}
	return all
}

// podsByName returns the facts about the pods of a replica that are read by their names.
func (r *ObservedState) podsByName(c *plan.ClusterPlan, replica *plan.Replica) podFacts {
	f := podFacts{}
	for i := range replica.PodsRead {
		if p := r.podByName(c, replica, i); p != nil {
			f.add(p)
		}
	}
	return f
}

// podByName returns a pod of a replica that is read by its name, or nil. Only the labels tell that it
// is a pod of the replica: anybody may have made one of that name before.
func (r *ObservedState) podByName(c *plan.ClusterPlan, replica *plan.Replica, i int32) *pod {
	k := c.PodKey(replica, i)
	var found incoming.Object
	if c.Target.Remote() {
		var state remote.State
		if found, state = remote.Unwrap(r.req.Observed(k)); !state.Readable() {
			return nil
		}
	} else if answer, _ := r.req.Required(require.Pod(k)); len(answer) > 0 {
		found = answer[0]
	}
	p := podView.In(found)
	m := p.Metadata
	if m.Name != replica.PodName(i) || m.Labels[naming.LabelService] != c.Base || m.Labels[lws.SetNameLabelKey] != replica.Name {
		return nil
	}
	return &p
}

// add counts a pod. One that is being deleted can only have failed before.
func (f *podFacts) add(p *pod) {
	if crash := p.crash(); crash != "" {
		f.crashes = append(f.crashes, plan.Failure{Revision: p.Metadata.Labels[naming.LabelSpecHash], Text: fmt.Sprintf("pod %s: %s", p.Metadata.Name, crash)})
	}
	if p.Metadata.DeletionTimestamp != "" {
		f.leave++
		f.addFailure(p, p.failureBefore())
		return
	}
	f.stay++
	f.newest = newest(f.newest, p.Metadata.CreationTimestamp)
	for _, c := range p.Status.Conditions {
		f.newest = newest(f.newest, c.LastTransitionTime)
	}
	ready := find(p.Status.Conditions, string(corev1.PodReady)).Status == composite.True
	if ready {
		f.ready++
	}
	if p.Metadata.Labels[lws.WorkerIndexLabelKey] == "0" {
		if f.leaders == nil {
			f.leaders = map[string]plan.Leader{}
		}
		f.leaders[p.Metadata.Name] = p.leader(ready)
	}
	switch scheduled := find(p.Status.Conditions, string(corev1.PodScheduled)).Status; {
	case scheduled == composite.False:
		f.unscheduled++
	case !ready && scheduled == composite.True && p.idle():
		f.idle++
	}
	f.addFailure(p, p.failure())
}

// idle tells that no container of a pod was ever started, such as while a volume is mounted or an image is pulled.
func (p *pod) idle() bool {
	return !slices.ContainsFunc(p.containers(), func(c container) bool { return c.State.Waiting == nil || c.LastState.Terminated != nil })
}

// missing says why fewer than so many pods are ready, as far as the pods tell.
func (f *podFacts) missing(want int32) string {
	message := f.waiting()
	if n := want - f.stay - f.leave; n > 0 {
		message += fmt.Sprintf(", %d not seen (if that lasts, the events of the StatefulSets say why)", n)
	}
	return message
}

// waiting says how many pods wait to be started. The messages of schedulers and kubelets are not passed on: they change with the other
// pods and the nodes of the cluster, and may quote a Secret.
func (f *podFacts) waiting() string {
	message := ""
	if f.unscheduled > 0 {
		message += fmt.Sprintf(", %d cannot be scheduled", f.unscheduled)
	}
	if f.idle > 0 {
		message += fmt.Sprintf(", %d not started", f.idle)
	}
	if message != "" {
		message += " (the pods' events say why)"
	}
	return message
}

func (f *podFacts) addFailure(p *pod, failure string) {
	if failure != "" {
		f.failures = append(f.failures, fmt.Sprintf("pod %s: %s", p.Metadata.Name, failure))
	}
}

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
	// serve any more, and LeaderWorkerSet makes its replica anew as soon as it is started again.
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
