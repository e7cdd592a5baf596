package observe

import (
	"fmt"
	"slices"
	"time"

	lws "sigs.k8s.io/lws/api/leaderworkerset/v1"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/remote"
	"github.com/fusioninfer/function-inferenceservice/internal/rollout"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// RolledOut is True once all replicas run the newest template and are ready. It is False while
// some of them wait for their turn, or are not ready with it. It is Unknown while some cannot be read, and nothing is missing of the rest.
const RolledOut = "RolledOut"

// Reasons of the condition RolledOut.
const (
	ReasonAllUpdated = "AllUpdated"
	// ReasonPartition: the replicas below the partition keep their template.
	ReasonPartition = "PartitionReached"
	// ReasonProgressing: replicas get the newest template, one unit after the other.
	ReasonProgressing = "Progressing"
	// ReasonPaused: spec.rollout.paused keeps replicas as they are.
	ReasonPaused = "Paused"
	// ReasonUpdateFailed: pods with the newest template fail, so it goes no further.
	ReasonUpdateFailed = "UpdateFailed"
	// ReasonDeadlineExceeded: nothing has changed for the progress deadline.
	ReasonDeadlineExceeded = "ProgressDeadlineExceeded"
)

// Fields of a LeaderWorkerSet as it was desired last.
var (
	partition = remote.NewDesiredPath("spec", "rolloutStrategy", "rollingUpdateConfiguration", "partition")
	extra     = remote.NewDesiredPath("metadata", "annotations", naming.AnnotationExtra)
	runs      = remote.NewDesiredPath("metadata", "annotations", naming.AnnotationRunningSpecHash)
	former    = remote.NewDesiredPath("metadata", "annotations", naming.AnnotationFormerSpecHash)
	group     = remote.NewDesiredPath("spec", "leaderWorkerTemplate", "workerTemplate", "metadata", "annotations", schedulingv1beta1.KubeGroupNameAnnotationKey)
	runsIn    = remote.NewDesiredPath("metadata", "annotations", naming.AnnotationRunningPodGroup)
	size      = remote.NewDesiredPath("spec", "leaderWorkerTemplate", "size")
)

// Replica returns the state of a replica, by the key of its LeaderWorkerSet. What was desired
// last tells whether it was released. So a cluster that cannot be reached holds nothing again
// that was released before.
func (r *ObservedState) Replica(k key.Key) rollout.State {
	s, known := r.replicas[k]
	if !known {
		s = r.replica(k)
		r.replicas[k] = s
	}
	return s
}

func (r *ObservedState) replica(k key.Key) rollout.State {
	observed := r.composed(k)
	if !observed.Exists() {
		return rollout.State{}
	}
	s := rollout.State{Exists: true, Size: int32(size.In(observed).GetNumberValue())}
	s.Revision, s.Held = given(observed)
	s.RunningRevision, s.RunningPodGroup = s.Revision, group.Text(observed)
	if s.Held {
		s.RunningRevision, s.RunningPodGroup = runs.Text(observed), runsIn.Text(observed)
	} else {
		s.FormerRevision = former.Text(observed)
	}
	found, read := remote.Unwrap(observed)
	// A provider may report an object that is older than what it was told.
	if !read.Readable() || read.Outdated || specHash.Text(found) != s.Revision || behindPartition(found) != s.Held {
		return s
	}
	o := stateOf(found)
	_, _, unseen := generationObserved(o)
	_, _, updating := groupsUpdated(o)
	available := find(o.view.Status.Conditions, string(lws.LeaderWorkerSetAvailable)).Status == composite.True
	ready := available && o.view.Status.ReadyReplicas > 0 && o.view.Metadata.DeletionTimestamp == ""
	s.Since = newest(time.Time{}, o.timestamps()...)
	// Others have to serve until it has new pods. It is not broken meanwhile, since that would release it.
	s.Serving = ready && !unseen && !updating && !r.losesPod(k, s.Size)
	s.Broken = !ready && !unseen && o.observedGeneration() > 0
	// Both are in one write of the status (pkg/controllers/leaderworkerset_controller.go of v0.9.0).
	s.Runs = !unseen && o.observedGeneration() > 0 && o.view.Status.UpdatedReplicas > 0
	if s.Runs {
		s.RunningRevision, s.RunningPodGroup = s.Revision, group.Text(observed)
		s.FormerRevision = ""
	}
	return s
}

// given returns the revision of the template that a replica was given last, and whether a partition holds
// it back.
func given(observed incoming.Object) (revision string, held bool) {
	return specHash.Text(observed), behindPartition(observed)
}

// Extra returns the replicas that exist beyond those that were wanted, and the others, by the cluster.
func (r *ObservedState) Extra() (beyond, others map[string][]key.ReplicaID) {
	beyond, others = map[string][]key.ReplicaID{}, map[string][]key.ReplicaID{}
	for k, id := range observedReplicas(r.req) {
		if extra.Text(r.req.Observed(k)) != "" {
			beyond[k.Cluster] = append(beyond[k.Cluster], id)
		} else {
			others[k.Cluster] = append(others[k.Cluster], id)
		}
	}
	return beyond, others
}

// heldBack tells whether the rendered LeaderWorkerSet keeps its pods as they are.
func (s *objectState) heldBack() bool { return behindPartition(incoming.ObjectOf(s.desired.Resource)) }

// behindPartition tells whether a LeaderWorkerSet keeps the pods that it has, whatever its template.
func behindPartition(workload incoming.Object) bool {
	return partition.In(workload).GetNumberValue() > 0
}

// A progress counts the replicas that have the newest template.
type progress struct {
	desired, updated int32
	// starting are updated and not ready, and replaced are given the newest template by this response.
	starting, replaced int32
	// held keep a former template. waiting are those of them above the partition, and pending those
	// whose capacity is not reserved. extra replicas are beyond those that are desired.
	// loading are those that wait for weights, and unnamed those that are left out because somebody else has their names.
	held, waiting, pending, extra, loading, unnamed int32
	// stuck are replicas that were given it and are not ready. coming tells that some are given it
	// by this response, or are still to be made.
	stuck, failures []string
	coming          bool
	// unreserved are extra replicas that wait for their capacity, and absent those that are desired. silent are some that leave a
	// cluster and answer nothing.
	unreserved, absent, silent []string
	// unready are replicas that keep their pods and are not ready.
	unready []string
	// unread were given it and cannot be read.
	unread []string
	// refused were given it, and their clusters refuse it or another change of them.
	refused int32
	newest  time.Time
}

func (e *evaluator) progress() progress {
	n := progress{silent: e.plan.Rollout.Silent}
	for c, r := range e.plan.Replicas() {
		if c.Leaving {
			continue
		}
		s := e.byKey[r.Key]
		if s != nil {
			n.newest = newest(n.newest, s.timestamps()...)
		}
		if r.Held {
			n.addHeld(r, s)
		} else {
			n.addReleased(r, s, func() []string { return e.failuresOf(c, r) })
		}
	}
	for i := range e.plan.Clusters {
		for r := range e.plan.Clusters[i].LeftOutReplicas() {
			if !r.Extra {
				n.desired++
				n.unnamed++
			}
		}
		for _, r := range e.plan.Clusters[i].Pending {
			n.absent = append(n.absent, r.Name)
		}
		for _, r := range e.plan.Clusters[i].ExtraPending {
			n.unreserved = append(n.unreserved, r.Name)
		}
	}
	n.desired += int32(len(n.absent)) //nolint:gosec // The API allows a few thousand.
	return n
}

// addHeld adds a replica that keeps its pods as they are.
func (n *progress) addHeld(r *plan.Replica, s *objectState) {
	if r.Extra {
		n.extra++
		return
	}
	n.desired++
	n.held++
	switch {
	case r.BelowPartition:
	case r.AwaitsWeights:
		n.loading++
		n.waiting++
		n.coming = true // How long that takes is not known.
	case r.Template != nil:
		n.pending++
		n.waiting++
	default:
		n.waiting++
	}
	if s != nil && !s.ready && !s.serves {
		n.unready = append(n.unready, s.String())
	}
}

// addReleased adds a replica that was given the newest template, or is given it now.
func (n *progress) addReleased(r *plan.Replica, s *objectState, failures func() []string) {
	unread := s != nil && r.Updated && s.reason == remote.CannotBeRead
	switch {
	case s == nil || !r.Updated:
		n.coming = true
	case unread:
		n.unread = append(n.unread, s.String())
	case s.refused:
		n.refused++
	case !s.ready:
		n.stuck = append(n.stuck, s.String())
		n.failures = append(n.failures, failures()...)
	}
	if r.Extra {
		n.extra++
		return
	}
	n.desired++
	switch {
	case unread, s.formerPods():
	case r.Updated:
		n.updated++
		if s != nil && !s.ready && !s.serves {
			n.starting++
		}
	case s != nil && s.reason != ReasonNotCreated:
		n.replaced++
	}
}

// text tells of all replicas. What does not exist so far, it leaves out.
func (n *progress) text(paused bool) string {
	are := "are"
	if len(n.unread) > 0 {
		are = "are known to be"
	}
	s := fmt.Sprintf("%d of %d replicas %s updated", n.updated, n.desired, are)
	if n.starting > 0 {
		s += fmt.Sprintf(" (%d of them not ready)", n.starting)
	}
	turn, pausedOnes := n.waiting-n.pending-n.loading, int32(0)
	if paused {
		turn, pausedOnes = 0, turn
	}
	for _, part := range []struct {
		count     int32
		one, more string
	}{
		{int32(len(n.unread)), "cannot be read", "cannot be read"}, //nolint:gosec // The API allows a few thousand.
		{n.refused, "has a change that its cluster refuses", "have a change that their cluster refuses"},
		{n.replaced, "is being updated", "are being updated"},
		{n.held - n.waiting, "is held back by spec.rollout.partition", "are held back by spec.rollout.partition"},
		{pausedOnes, "is held back by spec.rollout.paused", "are held back by spec.rollout.paused"},
		{n.loading, "waits for the weights of spec.model", "wait for the weights of spec.model"},
		{n.pending, "waits for reserved capacity", "wait for reserved capacity"},
		{n.unnamed, "waits for a name that somebody else has", "wait for names that somebody else has"},
		{turn, "waits for its turn", "wait for their turn"},
		{n.extra, "extra one runs meanwhile", "extra ones run meanwhile"},
	} {
		switch {
		case part.count == 1:
			s += ", 1 " + part.one
		case part.count > 1:
			s += fmt.Sprintf(", %d %s", part.count, part.more)
		}
	}
	return s
}

// rolledOut tells how far the newest template has come. Why replicas are not ready, the condition
// WorkloadsReady says. What fails in their pods is said here as well, because the rollout stops there.
func (e *evaluator) rolledOut() composite.Condition {
	n := e.progress()
	c := composite.Condition{Type: RolledOut, Status: composite.True, Reason: ReasonAllUpdated}
	done := n.waiting == 0 && len(n.stuck) == 0 && n.refused == 0 && !n.coming && len(n.absent) == 0 && n.unnamed == 0 && !e.plan.Rollout.Surge
	if done && n.held == 0 && len(n.unread) == 0 {
		c.Message = e.gap()
		return c
	}
	c.Message = n.text(e.plan.Rollout.Paused)
	switch {
	case done && len(n.unread) > 0:
		c.Status, c.Reason = composite.Unknown, remote.CannotBeRead
		return c
	case done:
		c.Reason = ReasonPartition
		return c
	}
	c.Status, c.Reason = composite.False, ReasonProgressing
	c.Message += n.capacity(*e.plan.Rollout.MaxUnavailable)
	// Those that wait for capacity hold up the others. Without others there is nothing to be late with.
	n.coming = n.coming || (len(n.absent) > 0 || n.unnamed > 0) && n.waiting == 0
	deadline, notReady := e.plan.Rollout.ProgressDeadline(), slices.Concat(n.stuck, n.unread, n.unready)
	switch {
	case len(n.failures) > 0:
		c.Reason = ReasonUpdateFailed
		c.Message += ": " + text.Join(n.failures, text.MaxMessage)
	case n.refused > 0:
		c.Reason = ReasonApplyRefused
	case len(n.stuck) == 0 && !n.coming && e.plan.Rollout.Paused:
		c.Reason = ReasonPaused
	case !n.coming && !n.newest.IsZero() && e.plan.Rollout.Now.Sub(n.newest) > deadline:
		c.Reason = ReasonDeadlineExceeded
		c.Message += fmt.Sprintf(", and nothing has changed for more than %s", deadline)
		if len(notReady) > 0 {
			c.Message += ": not ready: " + text.Names(notReady, maxNames)
		}
	case n.held == 0 && !n.coming && !e.plan.Rollout.Surge:
		c.Reason = ReasonNotReady
	}
	if gap := e.gap(); gap != "" && (c.Reason == ReasonProgressing || c.Reason == ReasonPaused) {
		c.Message += ". " + gap
	}
	return c
}

// capacity says which replicas wait for capacity or a cluster, and hold up the rollout.
func (n *progress) capacity(maxUnavailable int32) (s string) {
	if len(n.unreserved) > 0 {
		s = ", and maxSurge waits for capacity: " + text.Names(n.unreserved, maxNames)
		if maxUnavailable == 0 {
			s += ". To replace replicas without it, set spec.rollout.maxUnavailable to 1"
		}
	}
	if len(n.absent) > 0 && n.waiting > 0 {
		s += ", and these use up spec.rollout.maxUnavailable while they wait for capacity: " + text.Names(n.absent, maxNames)
	}
	if len(n.silent) > 0 && n.waiting > 0 {
		s += ", and these use up spec.rollout.maxUnavailable, because they answer nothing in a cluster that they leave, and have no place in another one: " + text.Names(n.silent, maxNames)
	}
	return s
}

// gap tells that a change of pods stops all of a cluster's requests, and how to avoid it.
func (e *evaluator) gap() string {
	gaps := e.plan.Rollout.Gaps
	if len(gaps) == 0 {
		return ""
	}
	where := ""
	if len(e.plan.Clusters) > 1 {
		where = " in " + text.Names(gaps, maxNames)
	}
	return "A change of pods stops prefill and decode" + where + " until the new ones are ready, because they are one unit. To avoid this, set spec.rollout.maxSurge to 1 before it"
}
