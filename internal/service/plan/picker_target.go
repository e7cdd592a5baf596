package plan

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

// PickerMetricsPort is where endpoint pickers serve their metrics, and so do their Services.
const PickerMetricsPort = 9090

// A pickerMetric is a gauge of an endpoint picker. It is the mean of all pods behind the pool whose metrics were
// read lately. Without any it keeps its last value (pkg/epp/datalayer/logger/logger.go of v1.5.0).
type pickerMetric struct {
	name string
	// percent tells that 1 is 100 percent.
	percent bool
}

// pickerMetrics measure targets, by their fields.
var pickerMetrics = map[string]pickerMetric{
	"waitingRequests":           {name: "inference_pool_average_queue_size"},
	"runningRequests":           {name: "inference_pool_average_running_requests"},
	"kvCacheUtilizationPercent": {name: "inference_pool_average_kv_cache_utilization", percent: true},
}

// readyPods is the gauge with the number of those pods. It is written together with the means.
const readyPods = "inference_pool_ready_pods"

// pickerFormula is their sum. The HorizontalPodAutoscaler counts other pods as ready, at other times, and a mean times
// these jumps. Without pods the formula fails, and KEDA then has no metric (pkg/scaling/modifiers/formula.go of v2.21.0).
// It has to have a number for -1, with which KEDA's webhook tries it (apis/keda/v1alpha1/scaledobject_webhook.go).
const pickerFormula = "ready == 0 ? nil : target * ready"

// planPickerTarget plans triggers by which KEDA reads the metrics of the endpoint picker. These are means of all pods
// behind it, so the role has to be the only one there.
func (p *Plan) planPickerTarget(a *Autoscaler, r *Role, target v1alpha1.TargetField, at *field.Path) field.ErrorList {
	metric, measured := pickerMetrics[target.Name]
	if errs := p.checkPickerTarget(r, measured, at.Child(target.Name)); len(errs) > 0 {
		return errs
	}
	if r.noMetrics != "" {
		p.warn(at, "the endpoint picker cannot read the metrics of the engine, so nothing scales the role: %s", r.noMetrics)
	}
	value := float64(*target.Value)
	if metric.percent {
		value /= 100
	}
	service := ClusterPlan{Base: p.Service.Name}
	trigger := func(name, gauge string) v1alpha1.ScalingTrigger {
		return v1alpha1.ScalingTrigger{Type: "metrics-api", Name: name, Metadata: map[string]string{
			"url":           fmt.Sprintf("http://%s.%s.svc:%d/metrics", service.EPPName(), p.Service.Namespace, PickerMetricsPort),
			"format":        "prometheus",
			"valueLocation": gauge + "{name=" + strconv.Quote(service.PoolName()) + "}",
		}}
	}
	a.Triggers = []v1alpha1.ScalingTrigger{trigger("target", metric.name), trigger("ready", readyPods)}
	// See planTarget for the activation.
	a.Formula = &Formula{Text: pickerFormula, PerReplica: strconv.FormatFloat(value, 'f', -1, 64), Activation: never}
	return nil
}

// checkPickerTarget refuses a target that an endpoint picker does not measure for a role alone.
func (p *Plan) checkPickerTarget(r *Role, measured bool, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	refuse := func(why string) {
		errs = append(errs, field.Forbidden(at, "must be left out, because KEDA reads the metrics of endpoint pickers"+setBy("scaling.source")+", "+why))
	}
	if p.spec.Placement != nil {
		// Nothing else is said, because no other target and no router would help.
		why := "and does not reach those of other clusters: use metrics or triggers. With a placement, a target needs scaling.source Prometheus"
		if replicates(p.spec.Placement) {
			why += ", and the policy Spread or Failover"
		}
		refuse(why)
		return errs
	}
	if !measured {
		refuse("which have only " + strings.Join(slices.Sorted(maps.Keys(pickerMetrics)), ", "))
	}
	if p.Router == nil || p.Router.Replicas == 0 {
		refuse("and the service has none: add a router")
		return errs
	}
	if behind := p.Router.behindPool(p.Roles); len(behind) != 1 || behind[0] != r {
		refuse("which are means of all pods behind them: the role has to be the only one that gets requests")
	}
	if r.scaling.Min() == 0 {
		errs = append(errs, field.Invalid(r.path.Child("scaling", "minReplicas"), 0, "must be 1 or more, because KEDA reads the metrics of endpoint pickers"+setBy("scaling.source")+", which do not say whether any request waits"))
	}
	return errs
}
