package observe

import (
	"slices"
	"strconv"

	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// ReasonAutoscalerInactive is about an autoscaler that does not scale its role. The condition Scaled is then False, and nothing
// else depends on it: the role runs as many replicas as before.
const ReasonAutoscalerInactive = "AutoscalerInactive"

// inactive returns why an autoscaler does not scale its role, or an empty text.
func (s *objectState) inactive() string {
	if s.view == nil {
		return ""
	}
	switch s.kind {
	case "HorizontalPodAutoscaler.autoscaling":
		return s.inactiveHPA()
	case "ScaledObject.keda.sh":
		return s.inactiveScaledObject()
	}
	return ""
}

// inactiveHPA leaves out the message of the controller. It can differ at each sync: it names the pod that lacks a metric, and
// connections by their ports (pkg/controller/podautoscaler/replica_calculator.go of Kubernetes v1.37).
func (s *objectState) inactiveHPA() string {
	for _, name := range []autoscalingv2.HorizontalPodAutoscalerConditionType{autoscalingv2.AbleToScale, autoscalingv2.ScalingActive} {
		// ScalingDisabled is a target without replicas, which is on purpose.
		if c := find(s.view.Status.Conditions, string(name)); c.Status == composite.False && c.Reason != "ScalingDisabled" {
			return text.OneLine(c.Reason) + ": kubectl describe has its message"
		}
	}
	return ""
}

// The annotations by which users pause KEDA (apis/keda/v1alpha1/scaledobject_types.go of v2.21.0).
var (
	paused         = incoming.NewPath("metadata", "annotations", "autoscaling.keda.sh/paused")
	pausedScaleOut = incoming.NewPath("metadata", "annotations", "autoscaling.keda.sh/paused-scale-out")
	pausedReplicas = incoming.NewPath("metadata", "annotations", "autoscaling.keda.sh/paused-replicas")
)

// inactiveScaledObject does not go by the condition Paused alone. It is True as well while the service itself holds back that
// replicas are removed, because some start. KEDA still adds some then.
func (s *objectState) inactiveScaledObject() string {
	if c := find(s.view.Status.Conditions, "Paused"); c.Status == composite.True && s.pausedByUser() {
		return cause(c)
	}
	if c := find(s.view.Status.Conditions, "Ready"); c.Status == composite.False {
		return cause(c)
	}
	return ""
}

func (s *objectState) pausedByUser() bool {
	return pausedReplicas.Text(s.actual) != "" || slices.ContainsFunc([]incoming.Path{paused, pausedScaleOut}, func(p incoming.Path) bool {
		value := p.Text(s.actual)
		on, err := strconv.ParseBool(value)
		return value != "" && (on || err != nil) // KEDA takes what is no boolean for true.
	})
}
