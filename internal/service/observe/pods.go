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
