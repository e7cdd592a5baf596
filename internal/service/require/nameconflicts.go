package require

import (
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/remote"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

// nameConflicts requires LeaderWorkerSets of other services whose StatefulSets would have the
// names of the plan's. It requires these instead of the StatefulSets for two reasons. They
// exist earlier, so of two services that are created at about the same time one sees the other.
// And Crossplane watches their kind already.
type nameConflicts struct {
	plan *plan.Plan
	into *fnv1.Requirements
	// replicas by their keys, with their cluster plans.
	replicas map[key.Key]location
}

type location struct {
	cluster *plan.ClusterPlan
	replica *plan.Replica
}

// Paths of how many pods a LeaderWorkerSet has, beside the XR and in an Object.
var (
	size         = incoming.NewPath("spec", "leaderWorkerTemplate", "size")
	manifestSize = incoming.NewPath("spec", "forProvider", "manifest", "spec", "leaderWorkerTemplate", "size")
)

// ofExisting requires the LeaderWorkerSets for an object that exists as it is. Workers that it gets now have no name so far.
func (n *nameConflicts) ofExisting(o kube.Object, is incoming.Object) {
	n.workersOwner(o)
	if max(size.In(is).GetNumberValue(), manifestSize.In(is).GetNumberValue()) < 2 {
		n.workersName(o)
	}
}

// workersOwner requires the LeaderWorkerSet whose workers would have the name of an object. It
// is required on every call, and not only before the object exists, because two services that
// are created at the same moment do not see each other then. Only a role whose name ends with a
// number can have such a conflict.
func (n *nameConflicts) workersOwner(o kube.Object) {
	replica, is := o.Key.ReplicaID()
	if _, _, i, ok := replica.Parts(); !is || !ok || i != 0 {
		return
	}
	if loc := n.locate(o.Key); loc.replica != nil {
		n.require(WorkersOwner(o.Key), o, loc, loc.replica.WorkersOwner())
	}
}

// workersName requires the LeaderWorkerSet that would have the name of an object's workers.
func (n *nameConflicts) workersName(o kube.Object) {
	if o.Key.Kind != key.LeaderWorkerSet {
		return
	}
	if loc := n.locate(o.Key); loc.replica != nil {
		n.require(WorkersName(o.Key), o, loc, loc.replica.WorkersName())
	}
}

func (n *nameConflicts) require(requirement string, o kube.Object, loc location, name string) {
	if name == "" {
		return
	}
	s := named(o, o.APIVersion(), o.Kind())
	if loc.cluster.Target.Remote() {
		name = remote.ObjectName(n.plan.Service, loc.cluster.Target, "leaderworkerset.x-k8s.io", "LeaderWorkerSet", name)
	}
	s.Match = &fnv1.ResourceSelector_MatchName{MatchName: name}
	n.into.Resources[requirement] = s
}

func (n *nameConflicts) locate(k key.Key) location {
	if n.replicas != nil {
		return n.replicas[k]
	}
	n.replicas = map[key.Key]location{}
	for c, r := range n.plan.NamedReplicas() {
		n.replicas[r.Key] = location{cluster: c, replica: r}
	}
	return n.replicas[k]
}
