/*
Package plan decides what an InferenceService needs: its replicas with their names
and keys, its gangs, its ports, and the configuration of its router. Each decision
is made once, here. Renderers read the Plan and never the InferenceService. So do
observers, except for what is read before there is a Plan: the snapshot, and how many
replicas the roles with scaling have (observe.Snapshot, Scaling and ScalingEnds).

Planning is pure: it has no client and no clock, and the same input gives the same
Plan.
*/
package plan

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// A Plan is everything that was decided about one InferenceService.
type Plan struct {
	// Service identifies the service.
	Service naming.Identity
	// Scales has the numbers of replicas of the roles with scaling, by the names of the roles.
	Scales map[string]*Scale
	// Weights are those of spec.model, if a Job loads them into a claim. Otherwise nil.
	Weights *Weights
	// Downloads tells that each engine downloads spec.model when it starts.
	Downloads bool
	// Adapters is the claim for LoRA adapters. Nil without spec.adapterCache.
	Adapters *Adapters
	// FormerAdapters tells that engines may load adapters although spec.adapterCache was removed.
	FormerAdapters bool
	// Shared is the ModelCache that spec.model names. Nil if it names none.
	Shared *SharedCache
	// LoadsOnDemand tells that a ModelCache is loaded only where services use it.
	LoadsOnDemand bool
	// Profile is what the status says of the serving profile. It is nil if the service names none.
	Profile *v1alpha1.ProfileStatus
	// Roles that serve, in the order of the spec, without the router.
	Roles []*Role
	// Router is nil if the service has none.
	Router *Router
	// Clusters has one plan for the control plane itself, or one for each cluster of the
	// placement.
	Clusters []ClusterPlan
	// PodLimit is the number of pods up to which single pods are observed.
	PodLimit int32
	// SkipsMissingKinds leaves out objects whose kind the control plane does not have.
	SkipsMissingKinds bool
	// NewGangs are the keys of PodGroups that do not exist, and that pods need which take the place of others.
	NewGangs []key.Key
	// Labels and Annotations of every object.
	Labels, Annotations map[string]string
	// Warnings about settings that are rendered as they are, but probably do not work.
	Warnings []Warning
	// Schedule has the decisions about the clusters of the fleet. It is nil if the service is
	// not placed in the fleet.
	Schedule *scheduling.Result
	// FleetNamespace is where the profiles of the fleet's clusters are.
	FleetNamespace string
	// FleetRoute distributes requests over all clusters. It is nil if the service has none.
	FleetRoute *FleetRoute
	// Secrets that must exist in each cluster of a placement, because pods need them.
	Secrets []string
	// Network says who may reach the engines' pods. If it is nil, no NetworkPolicy is rendered.
	Network *inputv1alpha1.NetworkPolicy
	// PodMonitors say how Prometheus finds pods. If it is nil, none are rendered.
	PodMonitors *inputv1alpha1.PodMonitors
	// Failed are the names of the replicas that have just failed, so that the rest of their groups is
	// recreated.
	Failed []string
	// Due is when a grace period of a failed replica ends, a replica counts as started, or a cluster is left that is out of reach.
	// Zero if nothing is due.
	Due time.Time
	// Rollout says how the pods that run get the newest template.
	Rollout Rollout
	// Deferred are the replicas that are pending, and the PodGroups of these.
	Deferred []Deferred
	// NamesConfigs tells that the placement names provider configurations, which must not be
	// those of the fleet. Unchecked has the clusters named so, until Crossplane has listed the
	// configurations of the fleet.
	NamesConfigs bool
	Unchecked    map[string]bool

	gang gangPolicy
	// spec and snapshot are what Place goes by. inFleet tells that clusters of the fleet take part.
	spec     *v1alpha1.InferenceServiceSpec
	snapshot *scheduling.Snapshot
	inFleet  bool
	// groups is spec.replicas, or 1 without it.
	groups int32
	// extra has the units that a rollout runs beyond those that are wanted, by the cluster of
	// the fleet and the kind.
	extra map[string]map[string][]extraUnit
}

// A Warning is about a setting that is rendered as it is.
type Warning struct {
	Path string
	// Message says what is wrong and how to fix it.
	Message string
}

// warningAt returns a warning about a field.
func warningAt(at *field.Path, format string, args ...any) Warning {
	return Warning{Path: at.String(), Message: fmt.Sprintf(format, args...)}
}

// warn adds a warning about a field.
func (p *Plan) warn(at *field.Path, format string, args ...any) {
	p.Warnings = append(p.Warnings, warningAt(at, format, args...))
}

// A ClusterPlan is what runs of the service in one cluster.
type ClusterPlan struct {
	// Target is the cluster and the namespace in it.
	Target scheduling.Target
	// Base is the service's name in this cluster, and the value of the label
	// fusioninfer.io/service. It may differ from Service.Name: see baseName.
	Base string
	// Groups of replicas. A service without spec.replicas has one.
	Groups []Group
	// Endpoint is the Service that selects the leaders of the workers. It is nil if the service has no
	// worker, or has a router from the start.
	Endpoint *Endpoint
	// PoolSelector of the pods of the InferencePool, without the labels that select the service and its
	// leaders.
	PoolSelector map[string]string
	// Pending are the replicas whose capacity is requested of the cluster and not reserved.
	// ExtraPending are those that a rollout would run beyond what is wanted.
	Pending, ExtraPending []Replica
	// LeftOut has the replicas that somebody else's names keep from being made, each group with the PodGroup that is left out with
	// them. They are rendered only to see when their names are free.
	LeftOut []Group
	// AwaitsAnswer tells that the cluster has not answered yet whether there is room for Pending.
	AwaitsAnswer bool
	// NotStarted tells that nothing is reserved in the cluster yet, so nothing is rendered.
	NotStarted bool
	// LocalQueue is the queue from which Kueue admits the replicas here. It is empty where Kueue
	// does not admit them.
	LocalQueue string
	// GangQueue is Volcano's queue here for gangs whose service names none. Empty where the Input's counts.
	GangQueue string
	// Unschedulable tells that Pending has the replicas that no cluster accepts. Nothing is
	// rendered for them.
	Unschedulable bool
	// Leaving tells that the replicas here are deleted once they run in another cluster. They do
	// not count as wanted.
	Leaving bool
	// Abandoned tells that the cluster is out of service: deleting its Objects must not wait for
	// the cluster.
	Abandoned bool
	// FormerAccounts are service accounts of pods here whose sidecar may read the pool as before. Pods of
	// former templates may have them.
	FormerAccounts []string
	// FormerMetrics are where engines of former templates that may run here serve their metrics, by the role's name.
	FormerMetrics map[string]FormerMetrics
	// PickerPaused tells that the endpoint picker here waits for its new configuration.
	PickerPaused bool
	// Caches are the claims with weights that the service has here.
	Caches []Cache
	// AdapterClaim is the claim for LoRA adapters here. It is nil if there is none to be.
	AdapterClaim *Cache
	// HasFormer tells that a replica is there that does not have the newest template. It may not mount the claim for adapters yet, or serve other
	// ranks of adapters.
	HasFormer bool
	// Loading is how the newest weights get here. It is nil without a cache.
	Loading *Loading
}

// An Endpoint is the Service of a service without a router.
type Endpoint struct {
	// Port of the Service and of the pods.
	Port int32
	// TLS tells that the pods serve TLS on it. Those of the first worker role count.
	TLS bool
	// Selector of the pods, without the labels that select the service and its leaders.
	Selector map[string]string
	// Former tells that the service has a router by now. The Service is there for clients that know it.
	Former bool
}

// A Group is one set of replicas of all roles. spec.replicas is the number of groups.
type Group struct {
	// Index of the group. It is 0 if the service is not grouped.
	Index int32
	// Replicas of all roles, in the order of the spec.
	Replicas []Replica
	// PodGroup of the group's gang. It is nil without a gang.
	PodGroup *PodGroup
}

// A Replica is one instance of a role: one LeaderWorkerSet.
type Replica struct {
	// ID of the replica in its service.
	ID key.ReplicaID
	// Key in the composed resources.
	Key key.Key
	// Name of the LeaderWorkerSet.
	Name string
	Role *Role
	// Group is the index of the replica's group.
	Group int32
	// Index of the replica in its role and group.
	Index int32
	// Task names the replica in its gang: {role}-{index}.
	Task string
	// PodGroup is the name of its gang's PodGroup. Empty without a gang.
	PodGroup string
	// Workload is the name of Kueue's Workload for the replica. It is empty where Kueue does not
	// admit it, and until its LeaderWorkerSet exists.
	Workload string
	// KeptPriorityClass is the priority class of Kueue that its LeaderWorkerSet keeps, in place of the role's. It may be
	// empty. It is nil where the role's counts.
	KeptPriorityClass *string
	// Nodes that the replica has now. It has as many pods.
	Nodes int32
	// Pin of its pods to a pool of the cluster, if they have one. FormerPin is that of the pods that run,
	// which the newest node selector may not admit.
	Pin, FormerPin *capacity.Pin
	// Note is written on its object.
	Note scheduling.Note
	// Recovery is noted on its LeaderWorkerSet. Recreated tells that its pods are recreated now, because
	// another replica of its group has failed.
	Recovery  Recovery
	Recreated bool
	// LastFailure is noted on its LeaderWorkerSet, until it serves.
	LastFailure Failure
	// Held replicas keep their pods as they are: the capacity for what they request now is not
	// reserved, or it is not their turn in a rollout.
	Held bool
	// RunningRevision is that of the template that the pods of a held replica are made from. Empty if it is not known.
	RunningRevision string
	// FormerRevision is that of the template from which the pods were made that are being replaced. Empty if they are known to be.
	FormerRevision string
	// RunningPodGroup is the PodGroup that the pods of a held replica name. Empty if they name none, or that is not known.
	RunningPodGroup string
	// Size is how many pods the LeaderWorkerSet of a held replica goes on having. 0 if that is not known.
	Size int32
	// Updated replicas run the newest template, or are being restarted with it.
	Updated bool
	// AwaitsWeights tells that the replica is held because the newest weights are not there.
	AwaitsWeights bool
	// BelowPartition tells that the rollout's partition keeps the replica as it is.
	BelowPartition bool
	// PodsRead is how many of its pods are read by their names, its leader first.
	PodsRead int32
	// Extra replicas are beyond the number that is wanted. They run during a rollout only.
	Extra bool
	// Kept extra replicas are more than the rollout asks for. They stay as they are while they serve in
	// the place of others, and no other replica is stopped because of them.
	Kept bool
	// Partial tells that other replicas of an extra unit do not run. The unit serves nobody yet.
	Partial bool
	// Absent tells that the replica has no pods and gets none for now: it is left out, or Kueue has not admitted it.
	Absent bool
	// Template is what its pods are made of, as the LeaderWorkerSet's spec has it, if it stays because
	// the capacity for what the replica requests now is not reserved. Otherwise nil.
	Template *kube.Document
	// Revision of Template.
	Revision string
	// Generation of the capacity request that was granted for its pods. It is 0 outside the fleet.
	Generation int64

	// broken tells that it is known not to be ready, and serving that it is. Neither holds while its status
	// is older than its spec.
	broken, serving bool
}

// Pods is the number of pods that are rendered in this cluster.
func (c *ClusterPlan) Pods() int32 {
	n := int32(0)
	for r := range c.Replicas() {
		n += r.Nodes
	}
	return n
}
