package require

import (
	"strings"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/plan"
)

// A neighbours asks for LeaderWorkerSets of others whose StatefulSets would meet those of
// the plan's. It asks for them, and not for the StatefulSets: they are there first, so
// that of two services that come at about the same time one sees the other, and
// Crossplane reads their kind already.
type neighbours struct {
	plan *plan.Plan
	into *fnv1.Requirements
	// replicas by their keys, and where each is.
	replicas map[string]at
}

type at struct {
	deployment *plan.Deployment
	replica    *plan.Replica
}

// above asks whose workers an object is called like. It is asked on every call, and not
// only before the object exists: two services that are created in the same moment see
// nothing of each other then. Hardly any replica can have such a neighbour: its role's
// name has to end with a number.
func (n *neighbours) above(o kube.Object) {
	if _, local := plan.SplitKey(o.Key); !strings.HasPrefix(local, "leaderworkerset/") || !strings.HasSuffix(local, "/0") {
		return
	}
	if a := n.at(o.Key); a.replica != nil {
		n.ask(Above(o.Key), o, a, a.replica.NameAbove())
	}
}

// below asks who is called like an object's workers.
func (n *neighbours) below(o kube.Object) {
	if _, local := plan.SplitKey(o.Key); !strings.HasPrefix(local, "leaderworkerset/") {
		return
	}
	if a := n.at(o.Key); a.replica != nil {
		n.ask(Below(o.Key), o, a, a.replica.WorkersName())
	}
}

func (n *neighbours) ask(requirement string, o kube.Object, a at, name string) {
	if name == "" {
		return
	}
	s := named(o, o.APIVersion(), o.Kind())
	if a.deployment.Target.Remote() {
		name = plan.ObjectName(n.plan.Service, a.deployment.Target, "leaderworkerset.x-k8s.io", "LeaderWorkerSet", name)
	}
	s.Match = &fnv1.ResourceSelector_MatchName{MatchName: name}
	n.into.Resources[requirement] = s
}

func (n *neighbours) at(key string) at {
	if n.replicas != nil {
		return n.replicas[key]
	}
	n.replicas = map[string]at{}
	for i := range n.plan.Deployments {
		d := &n.plan.Deployments[i]
		for j := range d.Groups {
			for k := range d.Groups[j].Replicas {
				r := &d.Groups[j].Replicas[k]
				n.replicas[r.Key] = at{deployment: d, replica: r}
			}
		}
	}
	return n.replicas[key]
}
