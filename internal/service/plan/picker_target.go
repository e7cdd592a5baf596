package plan

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

// PickerMetricsPort is where endpoint pickers serve their metrics, and so do their Services.
const PickerMetricsPort = 9090

// A pickerMetric is a gauge of an endpoint picker. It is the mean of all pods behind the pool whose metrics were
// read lately (pkg/epp/datalayer/logger/logger.go of v1.5.0).
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

// planPickerTarget plans a trigger by which KEDA reads the metrics of the endpoint picker. These are means of all pods
// behind it, in the namespace of the service. So the HorizontalPodAutoscaler multiplies them by the ready pods of the
// role, which has to be the only one there (pkg/controller/podautoscaler/replica_calculator.go of Kubernetes v1.36).
func (p *Plan) planPickerTarget(a *Autoscaler, r *Role, target v1alpha1.TargetField, spec *v1alpha1.InferenceServiceSpec, at *field.Path) field.ErrorList {
	metric, measured := pickerMetrics[target.Name]
	if errs := p.checkPickerTarget(r, measured, spec, at.Child(target.Name)); len(errs) > 0 {
		return errs
	}
	value := float64(*target.Value)
	if metric.percent {
		value /= 100
	}
	service := ClusterPlan{Base: p.Service.Name}
	a.Triggers = []v1alpha1.ScalingTrigger{{
		Type: "metrics-api", Name: "target", MetricType: autoscalingv2.ValueMetricType,
		Metadata: map[string]string{
			"url":           fmt.Sprintf("http://%s.%s.svc:%d/metrics", service.EPPName(), p.Service.Namespace, PickerMetricsPort),
			"format":        "prometheus",
			"valueLocation": metric.name + "{name=" + strconv.Quote(service.PoolName()) + "}",
			"targetValue":   strconv.FormatFloat(value, 'f', -1, 64),
			// See planTarget.
			"activationTargetValue": never,
		},
	}}
	return nil
}

// checkPickerTarget refuses a target that an endpoint picker does not measure for a role alone.
func (p *Plan) checkPickerTarget(r *Role, measured bool, spec *v1alpha1.InferenceServiceSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	refuse := func(why string) {
		errs = append(errs, field.Forbidden(at, "must be left out, because KEDA reads the metrics of endpoint pickers"+setBy("scaling.source")+", "+why))
	}
	if spec.Placement != nil {
		// Nothing else is said, because no other target and no router would help.
		why := "and does not reach those of other clusters: use metrics or triggers. With a placement, a target needs scaling.source Prometheus"
		if replicates(spec.Placement) {
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
