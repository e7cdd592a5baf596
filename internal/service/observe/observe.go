/*
Package observe reads the observed state, and compares it with the plan. It decides which
composed resources are ready, what the status of each role is, and where clients reach the
service. Its conditions say what is missing.

Each object is evaluated by its own API, whichever cluster it is in. The same request at the
same time gives the same Evaluation. The time of the call is only compared with those of
observed objects, and never written.
*/
package observe

import (
	"slices"
	"sync"

	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/remote"
	"github.com/fusioninfer/function-inferenceservice/internal/rollout"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
	"github.com/fusioninfer/function-inferenceservice/internal/service/require"
)

// An ObservedState is what a request shows of the objects of a plan. Methods decode an
// object when they need it, because observed objects are large and most fields are not read.
type ObservedState struct {
	plan *plan.Plan
	req  incoming.Request
	// replicas are the states of replicas, by the keys of their LeaderWorkerSets. A rollout reads them several times.
	replicas map[key.Key]rollout.State
	// pods returns what is read of all pods of the service.
	pods func() *podIndex
	// withWorkers returns the observed LeaderWorkerSets that have workers, by cluster and name.
	withWorkers func() map[setName]bool
	// runs tells whether any replica of the service exists.
	runs func() bool
	// lastCaches is what the last call has written of weights into the status.
	lastCaches func() map[cacheKey]v1alpha1.CacheStatus
	// mayBeComplete are the weights that may be complete, as far as their Jobs say.
	mayBeComplete func() map[weightsKey]bool
}

// Read returns the observed state of a request. It decodes nothing yet.
func Read(req incoming.Request, p *plan.Plan) *ObservedState {
	return &ObservedState{
		plan: p, req: req, replicas: map[key.Key]rollout.State{},
		pods:        sync.OnceValue(func() *podIndex { return readPods(req) }),
		withWorkers: sync.OnceValue(func() map[setName]bool { return setsWithWorkers(req) }),
		runs: sync.OnceValue(func() bool {
			return slices.ContainsFunc(req.ObservedKeys(), func(k key.Key) bool { _, is := k.ReplicaID(); return is })
		}),
		lastCaches:    sync.OnceValue(func() map[cacheKey]v1alpha1.CacheStatus { return readLastCaches(req) }),
		mayBeComplete: sync.OnceValue(func() map[weightsKey]bool { return weightsThatMayBeComplete(req) }),
	}
}

// RunningView returns what planning reads of the observed state. The caller adds the time of the call, and what rendering
// knows: Revision, Loader, Size and Room.
func (r *ObservedState) RunningView() *plan.RunningView {
	extra, others := r.Extra()
	return &plan.RunningView{
		Replica: r.Replica, Extra: extra, Others: others,
		Recovery: r.Recovery, LastFailure: r.LastFailure, Crashes: r.Crashes, Leader: r.Leader,
		PodGroup: r.PodGroup, Admitted: r.Admitted, Awaits: r.Awaits,
		Observed: r.Observed, Taken: r.Taken,
		PoolType: r.PoolType, ServiceRole: r.ServiceRole, SidecarAccounts: r.SidecarAccounts,
		Metrics: r.Metrics, PickerConfig: r.PickerConfig, PickerRuns: r.PickerRuns, MayStop: r.MayStop,
		HasAdapterClaim: r.HasAdapterClaim(), Weights: r.Weights, HasGangKind: func() bool { return require.HasGangKind(r.req) },
	}
}

// Observed tells whether the composed resource of that key exists.
func (r *ObservedState) Observed(k key.Key) bool { return r.req.Observed(k).Exists() }

// composed returns an object that the service composes under a key.
func (r *ObservedState) composed(k key.Key) incoming.Object {
	return composedBy(r.req, r.plan.Service.UID, k)
}

// composedBy returns an object that an owner composes under a key. Crossplane observes what the XR refers to (composition_functions.go of
// v2, ObserveComposedResources). Whoever replaces the whole XR, as kubectl replace does, takes these references away. What guards running
// pods goes by what the service controls all the same: a new template would restart all replicas at once, another port or selector
// would cut them off, and an InferenceRole has a number that others have set. Everything else is recreated.
func composedBy(req incoming.Request, owner string, k key.Key) incoming.Object {
	o := req.Observed(k)
	if o.Exists() {
		return o
	}
	existing, _ := req.Required(composite.Existing(k))
	for _, e := range existing {
		if composedAs(owner, k, e) {
			return e
		}
	}
	return o
}

// PoolType returns the type of role whose pods an InferencePool selects, and whether the pool exists. Without
// a type it selects the pods of all roles.
func (r *ObservedState) PoolType(k key.Key) (t v1alpha1.ComponentType, exists bool) {
	o := r.composed(k)
	return v1alpha1.ComponentType(poolType.Text(o)), o.Exists()
}

// poolType is the type of role that an InferencePool selects.
var poolType = remote.NewDesiredPath("spec", "selector", "matchLabels", naming.LabelComponentType)

// ServiceRole returns the only role whose pods a Service selects.
func (r *ObservedState) ServiceRole(k key.Key) string { return serviceRole.Text(r.composed(k)) }

// serviceRole is the role that a Service selects.
var serviceRole = remote.NewDesiredPath("spec", "selector", naming.LabelRoleName)

// A gang is the part of a PodGroup that says which pods it counts.
type gang struct {
	Spec struct {
		MinTaskMember  map[string]int32 `json:"minTaskMember"`
		SubGroupPolicy []struct {
			Name         string `json:"name"`
			SubGroupSize int32  `json:"subGroupSize"`
		} `json:"subGroupPolicy"`
	} `json:"spec"`
	Status struct {
		Phase volcano.PodGroupPhase `json:"phase"`
	} `json:"status"`
}

var gangView = incoming.NewView[gang]()

// PodGroup returns what is known of the PodGroup of that key. If it cannot be read, it
// counts as one that exists and counts no pods.
func (r *ObservedState) PodGroup(k key.Key) plan.PodGroupView {
	if !r.Observed(k) {
		return plan.PodGroupView{}
	}
	v := plan.PodGroupView{Observed: true}
	found, state := remote.Unwrap(r.req.Observed(k))
	if !state.Readable() {
		return v
	}
	pg := gangView.In(found)
	v.MinTaskMember = pg.Spec.MinTaskMember
	// With some pods running and others without room, the phase is Unknown.
	v.Started = slices.Contains([]volcano.PodGroupPhase{volcano.PodGroupRunning, volcano.PodGroupCompleted, volcano.PodGroupUnknown}, pg.Status.Phase)
	for _, s := range pg.Spec.SubGroupPolicy {
		if v.SubGroupSizes == nil {
			v.SubGroupSizes = map[string]int32{}
		}
		v.SubGroupSizes[s.Name] = s.SubGroupSize
	}
	return v
}
