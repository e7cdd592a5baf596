// Package respond writes what was decided and judged into the answer to
// Crossplane.
package respond

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/util/validation/field"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/response"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/observe"
)

// Crossplane calls again when something that it composed or was asked for changes, and
// when the answer's time to live is over. The second is what brings the function back
// while Crossplane does not watch: its circuit breaker opens where much changes at once.
const (
	// Soon is for what has just changed, failed, or waits for time to pass.
	Soon = 10 * time.Second
	// Seldom is for what is not ready, and has not changed for long. Each call has
	// Crossplane apply everything again, so that many services that wait would keep a
	// control plane from anything else.
	Seldom = 2 * time.Minute
	// Later is for what is quiet.
	Later = 5 * time.Minute
)

// Start makes the answer to a request. It carries over the desired state of
// the functions that ran before.
func Start(req *fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse {
	return response.To(req, Soon)
}

// Refuse answers with a Fatal: Crossplane then keeps every live object as it
// is. Conditions of an answer with a Fatal are kept, so they tell what Ready,
// which stays as it was, hides.
func Refuse(rsp *fnv1.RunFunctionResponse, errs field.ErrorList) {
	refuse(rsp, observe.ConditionTypes(), errs)
}

func refuse(rsp *fnv1.RunFunctionResponse, conditions []string, errs field.ErrorList) {
	slices.SortStableFunc(errs, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	setConditions(rsp, observe.Refused(conditions, errs))
	response.Fatal(rsp, fmt.Errorf("nothing was changed: %s", Join(errs)))
}

// Fail answers with a Fatal for a problem that is not the user's.
func Fail(rsp *fnv1.RunFunctionResponse, err error) {
	fail(rsp, observe.ConditionTypes(), err)
}

func fail(rsp *fnv1.RunFunctionResponse, conditions []string, err error) {
	rsp.Conditions = nil
	setConditions(rsp, observe.NotJudged(conditions, err))
	response.Fatal(rsp, fmt.Errorf("nothing was changed: %w", err))
}

// Join puts problems into one text, each once. What is beyond some KiB is counted: an
// answer that is larger than Crossplane takes would tell nobody anything.
func Join(errs field.ErrorList) string { return observe.JoinErrors(errs) }

// Accept answers with the desired objects, their readiness, the status and the
// conditions.
func Accept(req *fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse, objects []kube.Object, v observe.Verdict, now time.Time) error {
	return accept(req, rsp, Answer{
		Objects: objects, Ready: v.Ready, Status: v.Status, Conditions: v.Conditions, Held: v.Held, Settled: v.Settled, Timed: v.Timed, Now: now,
	})
}

// An Answer is what is said about a composite resource of any kind.
type Answer struct {
	// Objects that are desired, and whether each of them is ready, by its key.
	Objects []kube.Object
	Ready   map[string]bool
	// Status of the composite resource.
	Status     any
	Conditions []observe.Condition
	// Held tells that something wanted is left out, and Settled that there is nothing
	// to wait for. Timed tells that what is wanted next depends on the time.
	Held, Settled, Timed bool
	// Now is the time.
	Now time.Time
}

func accept(req *fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse, a Answer) error {
	// The request's own desired state is not changed.
	desired := &fnv1.State{Composite: req.GetDesired().GetComposite(), Resources: make(map[string]*fnv1.Resource, len(a.Objects))}
	maps.Copy(desired.Resources, req.GetDesired().GetResources())
	rsp.Desired = desired
	for _, o := range a.Objects {
		rsp.Desired.Resources[o.Key] = &fnv1.Resource{Resource: o.Resource, Ready: ready(a.Ready[o.Key])}
	}
	if err := setStatus(req, rsp, a.Status, a.Held); err != nil {
		return err
	}
	setConditions(rsp, a.Conditions)
	before := observedConditions(req)
	announce(before, rsp, a.Conditions)
	rsp.Meta.Ttl = durationpb.New(timeToLive(before, a))
	return nil
}

// timeToLive grows with the time for which nothing has changed.
func timeToLive(before map[string]observedCondition, a Answer) time.Duration {
	switch {
	case a.Settled:
		return Later
	case a.Timed:
		return Soon
	}
	for _, c := range a.Conditions {
		if before[c.Type].status != string(c.Status) {
			return Soon
		}
	}
	idle := Seldom
	for _, c := range before {
		since, _ := time.Parse(time.RFC3339, c.since) // Long ago, if it does not say.
		idle = min(idle, a.Now.Sub(since))
	}
	return max(idle, Soon)
}

// An observedCondition is one that the composite resource has.
type observedCondition struct{ status, since string }

func observedConditions(req *fnv1.RunFunctionRequest) map[string]observedCondition {
	all := map[string]observedCondition{}
	for _, c := range kube.Lookup(req.GetObserved().GetComposite().GetResource(), "status", "conditions").GetListValue().GetValues() {
		f := c.GetStructValue().GetFields()
		all[f["type"].GetStringValue()] = observedCondition{f["status"].GetStringValue(), f["lastTransitionTime"].GetStringValue()}
	}
	return all
}

func ready(ok bool) fnv1.Ready {
	if ok {
		return fnv1.Ready_READY_TRUE
	}
	return fnv1.Ready_READY_FALSE
}

// setStatus adds the status to the desired XR, beside what functions before
// this one put there. The XR's readiness follows from that of its resources,
// except while some are held back: those Crossplane does not see.
func setStatus(req *fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse, of any, held bool) error {
	status, err := kube.Encode(of)
	if err != nil {
		return fmt.Errorf("cannot write the status: %w", err)
	}
	xr := kube.Copy(rsp.GetDesired().GetComposite().GetResource())
	seen := req.GetObserved().GetComposite().GetResource()
	for _, f := range []string{"apiVersion", "kind"} {
		xr.Fields[f] = structpb.NewStringValue(kube.Lookup(seen, f).GetStringValue())
	}
	if theirs := xr.GetFields()["status"].GetStructValue(); theirs != nil {
		all := kube.Copy(theirs)
		maps.Copy(all.GetFields(), status.GetFields())
		status = all
	}
	xr.Fields["status"] = structpb.NewStructValue(status)
	composite := &fnv1.Resource{Resource: xr, Ready: req.GetDesired().GetComposite().GetReady()}
	if held {
		composite.Ready = fnv1.Ready_READY_FALSE
	}
	rsp.Desired.Composite = composite
	return nil
}

func setConditions(rsp *fnv1.RunFunctionResponse, conditions []observe.Condition) {
	for _, c := range conditions {
		rsp.Conditions = append(rsp.Conditions, &fnv1.Condition{
			Type:    c.Type,
			Status:  status(c.Status),
			Reason:  c.Reason,
			Message: message(c.Message),
			Target:  fnv1.Target_TARGET_COMPOSITE_AND_CLAIM.Enum(),
		})
	}
}

func message(m string) *string {
	if m == "" {
		return nil
	}
	return &m
}

func status(s observe.Status) fnv1.Status {
	switch s {
	case observe.True:
		return fnv1.Status_STATUS_CONDITION_TRUE
	case observe.False:
		return fnv1.Status_STATUS_CONDITION_FALSE
	case observe.Unknown:
	}
	return fnv1.Status_STATUS_CONDITION_UNKNOWN
}

// announce makes an event of each condition that has just changed: a warning where
// it has become false. A result on every call would drown the others.
func announce(before map[string]observedCondition, rsp *fnv1.RunFunctionResponse, conditions []observe.Condition) {
	for _, c := range conditions {
		was, known := before[c.Type]
		if !known || was.status == string(c.Status) {
			continue
		}
		text := fmt.Sprintf("%s is %s: %s", c.Type, c.Status, c.Reason)
		if c.Message != "" {
			text += ": " + c.Message
		}
		if c.Status == observe.False {
			response.Warning(rsp, errors.New(text))
			continue
		}
		response.Normal(rsp, text)
	}
}
