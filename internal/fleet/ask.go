package fleet

import (
	"cmp"
	"maps"
	"slices"
)

// An Ask is what a service wants of clusters. The service writes it, and each cluster
// that is named reads it.
type Ask struct {
	// UID of the service's composite resource.
	UID string `json:"uid"`
	// Namespace and Name of the service.
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Since is when the service was created. The oldest is served first.
	Since string `json:"since,omitempty"`
	// Serial is raised whenever something is asked for that was not asked for before. It
	// never falls. Asks of earlier versions have none, which is 0.
	Serial int64 `json:"serial,omitempty"`
	// Shapes of the pods, by a short name.
	Shapes map[string]Shape `json:"shapes,omitempty"`
	// Clusters that are asked, by the names of InferenceClusters.
	Clusters map[string]AskedCluster `json:"clusters,omitempty"`

	// Barred says why a cluster grants the service nothing new, in particular. It is the
	// word of the cluster that reads the ask.
	Barred string `json:"-"`
}

// An AskedCluster is what a service wants of one cluster.
type AskedCluster struct {
	// As is the cluster's name in the service.
	As string `json:"as,omitempty"`
	// Namespace that it needs there.
	Namespace string `json:"namespace"`
	// ConfigKind and Config name the provider configuration that reaches the cluster,
	// for when the cluster itself cannot be read.
	ConfigKind string `json:"configKind,omitempty"`
	Config     string `json:"config,omitempty"`
	// Units that it wants to run there.
	Units []Unit `json:"units,omitempty"`
	// Together tells that all units have to fit at once: a part of them would hold room
	// for nothing.
	Together bool `json:"together,omitempty"`
	// Held are the names of replicas that are there, granted or not. It is the word of
	// whoever writes the ask: what is not in the ledger is counted if there is room for it.
	Held []string `json:"held,omitempty"`
}

// A Unit is a set of replicas that is never split over clusters: a group with its
// prefill and decode replicas, or a single replica.
type Unit struct {
	// Name of the unit.
	Name string `json:"name"`
	// Replicas of the unit.
	Replicas []Replica `json:"replicas"`
}

// A Replica is one LeaderWorkerSet.
type Replica struct {
	// Name of the replica in its service: what its key ends with.
	Name string `json:"name"`
	// Pods by the name of their shape.
	Pods map[string]int64 `json:"pods"`
	// Required replicas have to fit together for the unit to start.
	Required bool `json:"required,omitempty"`
	// Serial of the ask that first asked for it, without a break since then.
	Serial int64 `json:"serial,omitempty"`
}

// A Service is whose an ask or a grant is. The UID alone does not tell: whoever writes an
// ask can write any UID, but only into a namespace of their own.
type Service struct{ Namespace, Name, UID string }

// Service that asks.
func (a *Ask) Service() Service { return Service{a.Namespace, a.Name, a.UID} }

// needs of some replicas.
func (a *Ask) needs(replicas []Replica) []Need {
	pods := map[string]int64{}
	for _, r := range replicas {
		for shape, n := range r.Pods {
			pods[shape] += n
		}
	}
	all := make([]Need, 0, len(pods))
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		s := a.Shapes[name]
		all = append(all, Need{Shape: &s, Pods: pods[name]})
	}
	return all
}

// sum of what is needed, and of how many pods.
func sum(needs []Need) (Resources, int64) {
	total, pods := Resources{}, int64(0)
	for _, n := range needs {
		total.add(n.Shape.Requests, n.Pods)
		pods += n.Pods
	}
	return total, pods
}

// before orders asks: the oldest first. One without a time was not created yet: it is planned
// offline, and comes last.
func before(a, b *Ask) int {
	if (a.Since == "") != (b.Since == "") {
		return cmp.Compare(b.Since, a.Since)
	}
	return cmp.Or(cmp.Compare(a.Since, b.Since), cmp.Compare(a.UID, b.UID), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// ConditionReachable is the condition of an InferenceCluster that tells whether
// provider-kubernetes reaches it.
const ConditionReachable = "Reachable"

// ConditionOpen is the condition of an InferenceCluster that tells whether it grants
// anything new.
const ConditionOpen = "Open"
