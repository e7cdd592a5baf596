package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/epp"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
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
			most = max(most, r.LifecycleOf().StartupSeconds)
		}
	}
	return time.Duration(most) * time.Second
}

// staysAwake tells whether a role runs while nobody uses it.
func (r *Role) staysAwake() bool {
	if r.scaling == nil {
		return r.Replicas > 0
	}
	return r.scaling.Target == nil || r.scaling.Min() > 0
}

// runsFromZero tells whether scaling may start a role that runs no replicas.
func (p *Plan) runsFromZero() bool {
	return slices.ContainsFunc(p.Roles, func(r *Role) bool { return r.scaling != nil && r.scaling.Min() == 0 })
}

// holdAwake keeps a replica of a role that may stop from now on, until requests can wait for it. KEDA stops a role that
// nobody uses as soon as its minimum is 0. The former endpoint picker would refuse what comes next, and show no queue
// that starts the role again. Once it may stop so, a later change of the endpoint picker starts nothing. A role that other
// triggers have stopped so far is held, too: no endpoint picker had to let requests wait for it.
func (p *Plan) holdAwake(running *RunningView) {
	for _, r := range p.Roles {
		if a := r.Autoscaler; a != nil && a.Min == 0 && r.scaling.Target != nil && !running.MayStop(key.Autoscaler(a.Kind, r.Name)) && p.wouldRefuse(running) {
			a.Floor = 1
		}
	}
}

// wouldRefuse tells whether the endpoint picker does not run with flow control in some cluster that stays, or in any. One that
// is left may be out of reach for ever.
func (p *Plan) wouldRefuse(running *RunningView) bool {
	observed, runs := false, false
	for i := range p.Clusters {
		c := &p.Clusters[i]
		k := c.DeploymentKey()
		if !running.Observed(k) {
			continue
		}
		observed = true
		if running.PickerRuns(k, p.Router.ConfigHash(c)) {
			runs = true
		} else if !c.Leaving {
			return true
		}
	}
	return observed && !runs
}

// Waits tells whether a request waits in the endpoint picker while there are no pods.
func (r *Router) Waits() bool { return r.QueueTTL > 0 || r.Queues }

// queuedBytes is how many bytes of memory there are for each byte of requests that wait: the endpoint picker keeps
// a request as it came and as decoded JSON, which together took 9.4 bytes for each where that is a list of tokens.
// The rest is for the prefix index, and for requests that do not wait.
const queuedBytes = 32

// queueBytes is how many bytes of requests may wait in an endpoint picker.
func queueBytes(r *corev1.ResourceRequirements) int64 {
	memory, limited := r.Limits[corev1.ResourceMemory]
	if !limited {
		memory = defaultPickerMemory
	}
	return max(1, memory.Value()/queuedBytes)
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
		return errs
	}
	if p.Router.Replicas == 0 {
		refuse("and no endpoint picker: no request could wait until the role has started")
	}
	if to := p.spec.Placement; to != nil && to.Policy == v1alpha1.PlacementSpread {
		refuse("with the policy Spread: a request waits in the endpoint picker of one cluster, and the first replica may start in another. Use the policy Failover")
	}
	if r.noMetrics != "" && r.surelyNone {
		refuse("and an engine whose metrics the endpoint picker cannot read, so that requests wait for ever: " + r.noMetrics)
	}
	for _, other := range p.Router.behindPool(p.Roles) {
		if other != r && other.Type != v1alpha1.ComponentTypePrefiller && other.staysAwake() {
			refuse(fmt.Sprintf("beside the role %s, which answers all requests while this one is stopped, so that nothing starts it: give both roles a target and minReplicas 0, or none", other.Name))
			break
		}
		if !other.measured() && other != r {
			refuse(fmt.Sprintf("beside the role %s, whose engine is neither vLLM nor SGLang: nothing would tell whether it answers requests", other.Name))
			break
		}
	}
	if can, since := epp.Queues(p.Router.Image, p.Router.Dialect); !can {
		refuse(fmt.Sprintf("with the endpoint picker %s: requests are known to wait in %s and later", p.Router.Image, since))
	}
	if !p.Router.Waits() {
		refuse("and an endpointPickerConfig without flowControl in its featureGates: no request would wait until the role has started")
	}
	return errs
}

// Thresholds that no metric reaches. KEDA has one list of triggers for two questions: whether anything is to
// run, which any trigger answers that is above its activationThreshold, and how many replicas
// (pkg/scaling/executor/scale_scaledobjects.go and pkg/scaling/scale_handler.go of v2.21.0).
const never = "1000000000"

// addWake adds the trigger that says whether anything is to run. The target then only says how many replicas.
// It counts the requests that wait in the endpoint picker, and for all roles behind it, which stop together:
//
//   - the requests that wait in their engines or are being answered;
//   - the tokens of the last minutes. Short requests come and go between two readings of the others;
//   - the engines that are up for a few minutes only. KEDA counts the cooldown from when a trigger was active
//     and no other one failed, and the target fails while an engine loads its model (scale_scaledobjects.go). So
//     it would stop an engine that has just started. A target of tokens fails for longer (rateOf).
//
// Without pods there are no metrics of engines, and before the first request there is none of the queue. Both
// count as 0. If Prometheus has lost the engines, the target has no result. If it does not read the endpoint
// picker, or cannot, this trigger has none. KEDA then stops nothing. Values count for as long as Prometheus has
// them, not only while they are fresh: they are gone no sooner than those of the target, and what has left keeps
// the role awake for some minutes at most.
func (p *Plan) addWake(a *Autoscaler, in *inputv1alpha1.Input, target string) {
	router, minutes := p.seriesOf(p.Router.Name), recently(in, 0)
	young := minutes
	if target == "tokensPerSecond" {
		young = recently(in, covered)
	}
	terms := []string{"(sum(" + epp.QueueSize(p.Router.Dialect) + router + ") or 0 * sum(up" + router + " == 1))"}
	for _, r := range p.Router.behindPool(p.Roles) {
		of := p.seriesOf(r.Name)
		running, generated := series(of, runningMetrics...), series(of, tokensMetrics...)
		for _, term := range []string{
			"sum(" + series(of, waitingMetrics...) + ")", "sum(" + running + ")",
			sumOfRates(generated, "["+minutes+"]"), youngerThan(young, running),
		} {
			terms = append(terms, "("+term+" or vector(0))")
		}
	}
	a.Triggers = append(a.Triggers, v1alpha1.ScalingTrigger{
		Type: "prometheus", Name: requestsTrigger, MetricType: autoscalingv2.AverageValueMetricType,
		Metadata: map[string]string{
			"serverAddress": in.Scaling.Prometheus.ServerAddress, "query": strings.Join(terms, " + "),
			"threshold": never, "activationThreshold": "0", "ignoreNullValues": "false",
		},
	})
}

// requestsTrigger is the name of the trigger that addWake adds.
const requestsTrigger = "requests"

// CountsRequests tells whether a trigger is one that addWake adds. Tenants name triggers as they like.
func CountsRequests(t v1alpha1.ScalingTrigger) bool {
	return t.Type == "prometheus" && t.Name == requestsTrigger && t.Metadata["threshold"] == never
}

// recently is the time in which Prometheus has read a metric twice, and KEDA has at least once. By default KEDA does so
// every 30 seconds, and Prometheus every minute. More is added to it.
func recently(in *inputv1alpha1.Input, more time.Duration) string {
	seconds := max(60, ptr.Deref(in.Scaling.PollingSeconds, 0), int32(scrapeInterval(in).Seconds()))
	return fmt.Sprintf("%ds", 2*seconds+int32(more.Seconds()))
}

// youngerThan counts the series that were not there some time ago.
func youngerThan(ago, series string) string {
	return fmt.Sprintf("count(%[1]s unless %[1]s offset %[2]s)", series, ago)
}
