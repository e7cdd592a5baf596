package plan

import (
	"fmt"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/util/validation/field"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/epp"
)

/*
A role with a target and minReplicas 0 stops when nobody uses it, and starts again for the first request. That
request waits in the queue of the endpoint picker's flow control, which Prometheus reads, and KEDA starts a
replica. Flow control keeps requests only while the pool has no pods at all. So all roles behind the pool stop
and start together, and prefill and decode, which need each other, do not stop.
*/

// wakes tells whether a request starts a role that runs no replicas.
func wakes(r *v1alpha1.Role) bool {
	return r.Scaling != nil && r.Scaling.Target != nil && r.Scaling.Min() == 0
}

// wakeTime is how long a request waits for a role that it starts: as long as the engine may take to load
// its model. 0 means that no role starts for a request.
func wakeTime(spec *v1alpha1.InferenceServiceSpec) time.Duration {
	most := int32(0)
	for i := range spec.Roles {
		if r := &spec.Roles[i]; wakes(r) {
			startup, _, _ := r.LifecycleOf()
			most = max(most, startup)
		}
	}
	return time.Duration(most) * time.Second
}

// checkWake refuses a target with minReplicas 0 where requests would not wait for the role, or not start it.
func (p *Plan) checkWake(r *Role, in *inputv1alpha1.Input) field.ErrorList {
	var errs field.ErrorList
	refuse := func(why string) {
		errs = append(errs, field.Invalid(r.path.Child("scaling", "minReplicas"), 0, "must be 1 or more with target "+why))
	}
	if in.Scaling.Provider == inputv1alpha1.ScalingProviderHPA {
		refuse("where a HorizontalPodAutoscaler scales the role, which never starts the first replica" + setBy("scaling.provider"))
	}
	if p.Router == nil {
		refuse("and without a router: no request could wait until the role has started")
		return errs
	}
	if r.Type != v1alpha1.ComponentTypeWorker {
		refuse("for prefill and decode: a request waits until there is any pod, and these need each other")
	}
	for _, other := range p.Router.behindPool(p.Roles) {
		if s := other.scaling; other != r && other.Type == v1alpha1.ComponentTypeWorker && (s == nil || s.Target == nil || s.Min() > 0) {
			refuse(fmt.Sprintf("beside the role %s, which answers all requests while this one is stopped, so that nothing starts it: give both roles a target and minReplicas 0, or none", other.Name))
			break
		}
	}
	if can, since := epp.Queues(p.Router.Image, p.Router.Dialect); !can {
		refuse(fmt.Sprintf("with the endpoint picker %s: requests are known to wait in %s and later", p.Router.Image, since))
	}
	if p.Router.QueueTTL == 0 && !p.Router.Queues {
		refuse("and an endpointPickerConfig without flowControl in its featureGates: no request would wait until the role has started")
	}
	return errs
}

// Thresholds that no metric reaches. KEDA has one list of triggers for two questions: whether anything is to
// run, which any trigger answers that is above its activationThreshold, and how many replicas
// (pkg/scaling/executor/scale_scaledobjects.go and pkg/scaling/scale_handler.go of v2.21.0).
const never = "1000000000"

// addWake adds the trigger that says whether anything is to run: requests wait in the endpoint picker or in
// the engines, or are being answered. The target then only says how many replicas.
//
// Before the first request there is no such metric of the endpoint picker, and without pods there is none of
// the engines. Both count as 0. If Prometheus has lost the engines, the target has no result. KEDA then stops
// nothing.
func (p *Plan) addWake(a *Autoscaler, r *Role, in *inputv1alpha1.Input) {
	a.Triggers[0].Metadata["activationThreshold"] = never
	orZero := func(q string) string { return "(" + q + " or vector(0))" }
	engine := queries[r.engine]
	a.Triggers = append(a.Triggers, v1alpha1.ScalingTrigger{
		Type: "prometheus", Name: "requests", MetricType: autoscalingv2.AverageValueMetricType,
		Metadata: map[string]string{
			"serverAddress": in.Scaling.Prometheus.ServerAddress,
			"query": orZero(sumOf(epp.QueueSize(p.Router.Dialect))(p.seriesOf(p.Router.Name))) + " + " +
				orZero(engine["waitingRequests"](p.seriesOf(r.Name))) + " + " + orZero(engine["runningRequests"](p.seriesOf(r.Name))),
			"threshold": never, "activationThreshold": "0", "ignoreNullValues": "false",
		},
	})
}
