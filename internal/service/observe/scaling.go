package observe

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// A scaleTarget is the part of an InferenceRole that is read.
type scaleTarget struct {
	Spec struct {
		Replicas *int32 `json:"replicas"`
	} `json:"spec"`
}

// A scaledStatus is what the service has said of its roles.
type scaledStatus struct {
	Status struct {
		Components map[string]struct {
			DesiredReplicas *int32 `json:"desiredReplicas"`
			Scaling         *struct {
				RequestedReplicas *int32 `json:"requestedReplicas"`
			} `json:"scaling"`
		} `json:"components"`
		Clusters []struct{} `json:"clusters"`
	} `json:"status"`
}

// A scaledObject is the part of a ScaledObject that is read.
type scaledObject struct {
	Spec struct {
		MinReplicaCount *int32                    `json:"minReplicaCount"`
		Triggers        []v1alpha1.ScalingTrigger `json:"triggers"`
	} `json:"spec"`
}

var (
	scaleTargetView  = incoming.NewView[scaleTarget]()
	scaledStatusView = incoming.NewCompositeView[scaledStatus]()
	scaledObjectView = incoming.NewView[scaledObject]()
	startReplicas    = incoming.NewPath("metadata", "annotations", naming.AnnotationStartReplicas)
)

// Scaling decides how many replicas the roles with scaling have, by the names of the roles.
func Scaling(req incoming.Request, spec *v1alpha1.InferenceServiceSpec) map[string]*plan.Scale {
	views := map[string]plan.ScaleView{}
	last := sync.OnceValue(func() scaledStatus { return lastScaling(req) })
	running := sync.OnceValue(func() map[string]int32 { return runningReplicas(req) })
	owner := uid.Text(req.Composite().Object)
	for i := range spec.Roles {
		if r := &spec.Roles[i]; r.Scaling != nil {
			v := scaleView(composedBy(req, owner, key.ScaleTarget(r.Name)))
			v.Running = running()[r.Name]
			v.Desired = last().lastReplicas(r.Name, spec.Placement != nil)
			v.Autoscaled = slices.ContainsFunc(key.AutoscalerKinds(), func(kind string) bool { return composedBy(req, owner, key.Autoscaler(kind, r.Name)).Exists() })
			views[r.Name] = v
		}
	}
	return plan.ScaleRoles(spec, views)
}

// MayStop tells whether a ScaledObject lets its role go to 0 for lack of requests.
func (r *ObservedState) MayStop(k key.Key) bool {
	so := scaledObjectView.In(r.req.Observed(k))
	least := so.Spec.MinReplicaCount
	return least != nil && *least == 0 && slices.ContainsFunc(so.Spec.Triggers, plan.CountsRequests)
}

// lastScaling reads what the last call has written of the roles into the status.
func lastScaling(req incoming.Request) scaledStatus {
	return scaledStatusView.In(req.Composite())
}

// lastReplicas is the number of replicas that a role had last, or nil. What exists misses those that wait for capacity, or are just
// being recreated. Only the number of the InferenceRole is for one cluster: what a role wanted is the sum over all of a placement, until
// the status is written without it.
func (s scaledStatus) lastReplicas(role string, placed bool) *int32 {
	c := s.Status.Components[role]
	n := c.DesiredReplicas
	if c.Scaling != nil {
		n = c.Scaling.RequestedReplicas
	} else if placed || len(s.Status.Clusters) > 1 {
		return nil
	}
	if n == nil || !inRange(*n) {
		return nil
	}
	return n
}

func scaleView(o incoming.Object) plan.ScaleView {
	target := scaleTarget{}
	v := plan.ScaleView{Version: resourceVersion.Text(o)}
	if unread := scaleTargetView.Read(o, &target); !o.Exists() || len(unread) > 0 {
		return v
	}
	// The schema has the range, too. What is outside of it is no number that anybody can have meant.
	if n := target.Spec.Replicas; n != nil && inRange(*n) {
		v.Replicas, v.Untouched = n, startReplicas.Text(o) == strconv.Itoa(int(*n))
	}
	return v
}

func inRange(n int32) bool { return n >= 0 && n <= v1alpha1.MaxReplicas }

// runningReplicas are the numbers of replicas that exist, by the names of their roles. They go by the highest index,
// so that a replica that is being recreated counts. All roles are counted at once, because a spec may have very many
// before it is refused.
func runningReplicas(req incoming.Request) map[string]int32 {
	all := map[string]int32{}
	for k, id := range observedReplicas(req) {
		group, role, index, ok := id.Parts()
		if !ok || group != 0 || index >= v1alpha1.MaxReplicas {
			continue
		}
		if o := req.Observed(k); o.DeletionTimestamp() == "" && extra.Text(o) == "" {
			all[role] = max(all[role], index+1)
		}
	}
	return all
}

// ScalingEnds refuses to take scaling from a role without a number of replicas in the spec: it would go to one
// replica at once. unnumbered are the indexes of the roles without a number in the spec.
func ScalingEnds(req incoming.Request, spec *v1alpha1.InferenceServiceSpec, unnumbered []int) field.ErrorList {
	var errs field.ErrorList
	last := sync.OnceValue(func() scaledStatus { return lastScaling(req) })
	running := sync.OnceValue(func() map[string]int32 { return runningReplicas(req) })
	for _, i := range unnumbered {
		r := &spec.Roles[i]
		if r.Scaling != nil || !hadScaling(req, last, r.Name) {
			continue
		}
		if n := running()[r.Name]; n != 1 {
			errs = append(errs, field.Required(field.NewPath("spec", "roles").Index(i).Child("replicas"),
				fmt.Sprintf("must be set when scaling is removed: the role runs %d replicas, and would go to 1", n)))
		}
	}
	return errs
}

// hadScaling tells whether a role had scaling before the edit. Whoever deletes the InferenceRole has not said how many replicas there
// are to be.
func hadScaling(req incoming.Request, last func() scaledStatus, role string) bool {
	return req.Observed(key.ScaleTarget(role)).Exists() || last().Status.Components[role].Scaling != nil
}

// Reasons of the condition Scaled, besides those why a role has another number of replicas.
const (
	ReasonNotScaled   = "NoScaling"
	ReasonAsRequested = v1alpha1.ScaledAsRequested
)

// scaled says whether each role with scaling runs as many replicas as its scale target asks for, and whether its autoscaler works.
func (e *evaluator) scaled(g *conditionGroup) composite.Condition {
	roles := e.plan.ScaledRoles()
	if len(roles) == 0 {
		return composite.Condition{Type: Scaled, Status: composite.True, Reason: ReasonNotScaled}
	}
	if c := g.condition(Scaled, ReasonAsRequested); c.Status != composite.True {
		return c
	}
	reason, all := "", []string(nil)
	for _, r := range roles {
		for _, l := range e.plan.ScaleLimits(r) {
			reason, all = cmp.Or(reason, l.Reason), append(all, l.Message)
		}
	}
	for _, s := range g.objects {
		if why := s.inactive(); why != "" {
			reason, all = cmp.Or(reason, ReasonAutoscalerInactive), append(all, s.String()+": "+why)
		}
	}
	if len(all) > 0 {
		return composite.Condition{Type: Scaled, Status: composite.False, Reason: reason, Message: text.Join(all, text.MaxMessage)}
	}
	return composite.Condition{Type: Scaled, Status: composite.True, Reason: ReasonAsRequested}
}

// components has the state of each role, with what its scale target asks for.
func (e *evaluator) components() map[string]v1alpha1.ComponentStatus {
	all := e.total.components()
	for name, s := range e.plan.Scales {
		c := all[name]
		c.Scaling = &v1alpha1.ScalingStatus{RequestedReplicas: s.Requested, Reason: s.Reason}
		all[name] = c
	}
	return all
}
