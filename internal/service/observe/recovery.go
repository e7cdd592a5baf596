package observe

import (
	"strconv"
	"time"

	lws "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/remote"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

var (
	groupFailures = incoming.NewPath("metadata", "annotations", naming.AnnotationGroupFailures)
	restartedFor  = incoming.NewPath("metadata", "annotations", naming.AnnotationRestartedFor)
	leaderPod     = incoming.NewPath("metadata", "annotations", naming.AnnotationLeader)
	lastFailure   = remote.NewDesiredPath("metadata", "annotations", naming.AnnotationLastFailure)
)

// Recovery returns what a replica beside the XR has noted of failures in its group, by the key of its
// LeaderWorkerSet.
func (r *ObservedState) Recovery(k key.Key) plan.Recovery {
	o := r.composed(k)
	number := func(p incoming.Path) int64 {
		n, err := strconv.ParseInt(p.Text(o), 10, 64)
		if err != nil || n < 0 {
			return 0
		}
		return n
	}
	return plan.Recovery{
		Failures: number(groupFailures),
		Restart:  number(restartedFor),
		Leader:   plan.ParseLeaderID(leaderPod.Text(o)),
	}
}

// LastFailure returns what a replica has noted of its last crash, by the key of its LeaderWorkerSet.
func (r *ObservedState) LastFailure(k key.Key) plan.Failure {
	return plan.ParseFailure(lastFailure.Text(r.composed(k)))
}

// Crashes returns why pods of a replica have crashed, where they are read.
func (r *ObservedState) Crashes(c *plan.ClusterPlan, replica *plan.Replica) []plan.Failure {
	if !r.plan.ReadsPods(c) {
		return r.podsByName(c, replica).crashes
	}
	if f := r.pods().of(r.plan.Service, replica); f != nil {
		return f.crashes
	}
	return nil
}

// Leader returns the leader pod of a replica, where pods are read.
func (r *ObservedState) Leader(replica *plan.Replica) (plan.Leader, bool) {
	f := r.pods().of(r.plan.Service, replica)
	if f == nil || !r.plan.WatchesLeaders() {
		return plan.Leader{}, false
	}
	// A copy of it has the same labels.
	leader, seen := f.leaders[replica.PodName(0)]
	return leader, seen && leader.UID != ""
}

// leader returns a pod as the leader of its replica.
func (p *pod) leader(ready bool) plan.Leader {
	created, _ := time.Parse(time.RFC3339, p.Metadata.CreationTimestamp) // The zero time where it is none.
	id := plan.LeaderID{Revision: p.Metadata.Labels[lws.RevisionKey], UID: p.Metadata.UID}
	return plan.Leader{LeaderID: id, Created: created, Ready: ready}
}

// failed says which replicas have just failed, for an event.
func (e *evaluator) failed() []string {
	if len(e.plan.Failed) == 0 {
		return nil
	}
	return []string{"failed, so the rest of the group is made anew: " + text.Names(e.plan.Failed, maxNamed)}
}
