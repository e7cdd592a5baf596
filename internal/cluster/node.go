package cluster

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/remote"
)

// A node is the part of a Node that is read.
type node struct {
	Metadata struct {
		Name              string            `json:"name"`
		Labels            map[string]string `json:"labels"`
		DeletionTimestamp string            `json:"deletionTimestamp"`
	} `json:"metadata"`
	Spec struct {
		Unschedulable bool             `json:"unschedulable"`
		Taints        []v1alpha1.Taint `json:"taints"`
	} `json:"spec"`
	Status struct {
		Allocatable corev1.ResourceList `json:"allocatable"`
		Conditions  []struct {
			Type   corev1.NodeConditionType `json:"type"`
			Status corev1.ConditionStatus   `json:"status"`
		} `json:"conditions"`
	} `json:"status"`
}

var nodeView = incoming.NewView[node]()

// class returns the class of the node alone.
func (n *node) class() capacity.NodeClass {
	return capacity.NodeClass{Count: 1, Free: capacity.NodeResources(n.Status.Allocatable), Taints: capacity.TaintsOf(v1alpha1.NodeTaints(n.Spec.Taints))}
}

// takesPods tells whether a scheduler assigns pods to the node.
func (n *node) takesPods() bool {
	if n.Spec.Unschedulable || n.Metadata.DeletionTimestamp != "" {
		return false
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// readPools reads the capacity of the pools. A node that several pools select counts in the
// first of them. A pool whose nodes are not known has those that were read last, if any, and its labels: what is reserved there
// starts on its nodes all the same, and is not requested elsewhere.
func (r *observedState) readPools(req incoming.Request, c *parsed) {
	taken := map[string]bool{}
	r.unread = map[string]bool{}
	for i := range c.Spec.Pools {
		p := &c.Spec.Pools[i]
		if p.NodeCount != nil {
			each := []capacity.NodeClass{{Count: int64(*p.NodeCount), Free: capacity.ResourcesOf(p.Allocatable), Taints: capacity.TaintsOf(v1alpha1.NodeTaints(p.Taints))}}
			r.free.Pools = append(r.free.Pools, capacity.NewPool(p.Name, p.NodeSelector, each))
			continue
		}
		found, why := r.readNodes(req, c, p, taken)
		if why != "" {
			r.unknown = append(r.unknown, fmt.Sprintf("pool %s: %s", p.Name, why))
			r.unread[p.Name] = true
		}
		r.free.Pools = append(r.free.Pools, capacity.NewPool(p.Name, p.NodeSelector, found))
	}
}

// readNodes returns the nodes of a pool that take pods, and why they are not known, if so. After an edit of its
// nodeSelector, the collection may still have nodes without these labels. A node that joins is not reported
// for a moment. It does not count then, and the others do. A node that cannot be read any more counts as it was read last, because
// the collection lists it.
func (r *observedState) readNodes(req incoming.Request, c *parsed, pool *v1alpha1.Pool, taken map[string]bool) ([]capacity.NodeClass, string) {
	collection := req.Observed(c.keys().Nodes(pool.Name))
	if s := remote.Synced(collection); s.Reason == remote.NotCreated {
		return nil, s.Message
	}
	members, resolved := req.Required(nodesOf(pool.Name))
	if !resolved {
		if s := remote.Synced(collection); !s.Readable() {
			return nil, cannotRead("them", collection)
		}
		return nil, "they have not been read yet"
	}
	var found []capacity.NodeClass
	selector := labels.SelectorFromSet(pool.NodeSelector)
	for _, m := range members {
		obj, _ := remote.Unwrap(m)
		if obj.Empty() {
			taken[nameOfManifest.Text(m)] = true // A later pool may have read the node already.
			continue
		}
		n := node{}
		if len(nodeView.Read(obj, &n)) > 0 || taken[n.Metadata.Name] || !selector.Matches(labels.Set(n.Metadata.Labels)) || !n.takesPods() {
			continue
		}
		taken[n.Metadata.Name] = true
		found = append(found, n.class())
	}
	return found, r.nodesUnknown(collection, members)
}

// nodesUnknown says why the nodes of a pool are not known, whose collection has some members. It is empty if they are. A collection that
// cannot list nodes any more keeps its members, also those of nodes that are gone. In a cluster out of reach the nodes are those that
// were read last, which the condition says for all pools.
func (r *observedState) nodesUnknown(collection incoming.Object, members []incoming.Object) string {
	outOfReach := !r.reach.Readable()
	if !outOfReach && !remote.Synced(collection).Readable() {
		return cannotRead("them", collection)
	}
	known := func(m incoming.Object) bool {
		obj, state := remote.Unwrap(m)
		return state.Readable() || outOfReach && !obj.Empty()
	}
	if len(members) == 0 || slices.ContainsFunc(members, known) {
		return ""
	}
	failed := slices.IndexFunc(members, func(m incoming.Object) bool {
		_, state := remote.Unwrap(m)
		return state.Reason == remote.CannotBeRead
	})
	if failed < 0 {
		return "none of them has been read yet"
	}
	return cannotRead("them", members[failed])
}
