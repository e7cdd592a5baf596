package plan

import (
	"fmt"
	"slices"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// limitOf names what limits the number of replicas, by the reason.
var limitOf = map[string]string{
	v1alpha1.ScaledMinimum: "minReplicas",
	v1alpha1.ScaledMaximum: "maxReplicas",
	v1alpha1.ScaledRatio:   "spec.scaling.ratio",
}

// ScaleLimits are why a role with scaling has another number of replicas than its InferenceRole asks for.
func (p *Plan) ScaleLimits(r *Role) []v1alpha1.ScaleLimit {
	limits, _ := p.scaleLimits(r)
	return limits
}

// InferenceRoleLimit is what the InferenceRole of a role says of its ScaleLimits, or nil. While all clusters have yet to answer for the
// replicas that wait, it says nothing of these: it would take that back in a moment, and each change costs a call of the
// InferenceRole and one of the service.
func (p *Plan) InferenceRoleLimit(r *Role) *v1alpha1.ScaleLimit {
	limits, answered := p.scaleLimits(r)
	if !answered {
		limits = slices.DeleteFunc(limits, func(l v1alpha1.ScaleLimit) bool { return l.Reason == v1alpha1.ScaledNoCapacity })
	}
	if len(limits) == 0 {
		return nil
	}
	messages := make([]string, 0, len(limits))
	for _, l := range limits {
		messages = append(messages, l.Message)
	}
	return &v1alpha1.ScaleLimit{Reason: limits[0].Reason, Message: text.List(messages)}
}

// scaleLimits also tells whether any cluster has answered for the replicas of the role that wait.
func (p *Plan) scaleLimits(r *Role) (limits []v1alpha1.ScaleLimit, answered bool) {
	s := p.Scales[r.Name]
	if s.Reason != "" {
		limits = append(limits, v1alpha1.ScaleLimit{
			Reason:  s.Reason,
			Message: fmt.Sprintf("role %s: its InferenceRole asks for %d, and %s makes it %d", r.Name, s.Requested, limitOf[s.Reason], s.Replicas) + p.stopsAutoscaler(r, s),
		})
	}
	wanted, pending := 0, 0
	for i := range p.Clusters {
		c := &p.Clusters[i]
		n := countOf(r, c.Pending)
		if pending += n; n > 0 && !c.AwaitsAnswer {
			answered = true
		}
		for j := range c.Groups {
			if !c.Leaving {
				wanted += countOf(r, c.Groups[j].Replicas)
			}
		}
	}
	if pending > 0 {
		limits = append(limits, v1alpha1.ScaleLimit{
			Reason:  v1alpha1.ScaledNoCapacity,
			Message: fmt.Sprintf("role %s: %d of %d replicas wait for capacity in the fleet", r.Name, pending, wanted+pending),
		})
	}
	return limits, answered
}

// countOf is the number of replicas of a role in a list, without those of a rollout.
func countOf(r *Role, replicas []Replica) int {
	n := 0
	for i := range replicas {
		if replicas[i].Role == r && !replicas[i].Extra {
			n++
		}
	}
	return n
}

// stopsAutoscaler says that a role has an autoscaler which does nothing until somebody scales the role: a HorizontalPodAutoscaler
// never scales a target of 0 (pkg/controller/podautoscaler/horizontal.go of Kubernetes v1.36).
func (p *Plan) stopsAutoscaler(r *Role, s *Scale) string {
	if r.Autoscaler == nil || r.Autoscaler.Kind != key.HorizontalPodAutoscaler || s.Requested != 0 {
		return ""
	}
	return fmt.Sprintf(". Its HorizontalPodAutoscaler does nothing until it asks for more: kubectl scale inferenceroles.fusioninfer.io %s --namespace=%s --replicas=%d", p.ScaleTargetName(r), p.Service.Namespace, s.Replicas)
}
