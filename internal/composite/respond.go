package composite

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/util/validation/field"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/response"

	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// Crossplane calls the function again when a composed or required object changes, and when the
// response's time to live is over. The time to live matters while Crossplane's circuit breaker
// suppresses watch events, which it does if many objects change at once.
const (
	// Soon is for what has just changed or failed.
	Soon = 10 * time.Second
	// WhileStuck is for what is not ready, and has not changed for long. On each call Crossplane
	// applies every object again, so many pending services would keep a control plane busy.
	WhileStuck = 2 * time.Minute
	// WhileStable is for what is ready and known, with nothing pending.
	WhileStable = 5 * time.Minute
)

// An Outcome is what a call comes to for a composite resource that is accepted: its desired objects,
// status and conditions. Accept writes it into the response.
type Outcome struct {
	// Objects that are desired, and whether each of them is ready, by their keys.
	Objects []kube.Object
	Ready   map[key.Key]bool
	// Status of the composite resource.
	Status     any
	Conditions []Condition
	// Events are about what has just changed. An event on each call would hide the others.
	Events []string
	// Decisions are about the same changes, for logs and metrics.
	Decisions []Decision
	// Deferred tells that a wanted object is left out. Stable tells that
	// everything is ready and known, and nothing is pending.
	Deferred, Stable bool
	// Due is when something is to be decided, whatever else happens. Zero if nothing is.
	Due time.Time
}

// Accept responds with the desired objects, their readiness, the status and the conditions.
func (c *Call) Accept(o Outcome) error {
	req, rsp := c.Request, c.Response
	if err := Refusal(ReasonInvalidInput, desiredEarlier(req, o.Objects)); err != nil {
		return err
	}
	// The desired state of the request must not change.
	desired := &fnv1.State{Composite: req.Desired().GetComposite(), Resources: make(map[string]*fnv1.Resource, len(o.Objects))}
	maps.Copy(desired.Resources, req.Desired().GetResources())
	rsp.Desired = desired
	for _, object := range o.Objects {
		rsp.Desired.Resources[object.Key.String()] = &fnv1.Resource{Resource: object.Resource, Ready: ready(o.Ready[object.Key])}
	}
	if err := setStatus(req, rsp, o.Status, o.Deferred); err != nil {
		return err
	}
	c.setConditions(o.Conditions)
	before := observedConditions(req.Composite())
	announce(before, rsp, o.Conditions)
	c.accepted(before)
	c.decisions = append(c.decisions, o.Decisions...)
	for _, e := range o.Events {
		response.Normal(rsp, e).TargetCompositeAndClaim()
	}
	rsp.Meta.Ttl = durationpb.New(timeToLive(before, o, c.Now))
	return nil
}

// desiredEarlier finds objects whose keys functions earlier in the pipeline have used. Crossplane composes one object for each key. So
// the other function's object would be lost without a word. If that object exists already, the one of this function would get its name.
func desiredEarlier(req incoming.Request, objects []kube.Object) field.ErrorList {
	var errs field.ErrorList
	earlier := req.Desired().GetResources()
	if len(earlier) == 0 {
		return nil
	}
	for _, o := range objects {
		k := o.Key.String()
		r, taken := earlier[k]
		if !taken {
			continue
		}
		theirs := kube.Object{Resource: r.GetResource()}
		errs = append(errs, field.Invalid(field.NewPath("desired", "resources").Key(k), text.Value(strings.TrimSpace(theirs.Kind()+" "+theirs.Name())), fmt.Sprintf(
			"is of an earlier step of the Composition's pipeline, and the %s %s of this function has the same resource name: rename the resource of that step", o.Kind(), o.Name())))
	}
	return errs
}

// timeToLive is how long the response counts. It grows with the time since the last change, and ends when
// something is due, but never lasts less than a second.
func timeToLive(before map[string]observedCondition, o Outcome, now time.Time) time.Duration {
	live := sinceChange(before, o, now)
	if !o.Due.IsZero() {
		live = min(live, max(o.Due.Sub(now), time.Second))
	}
	return live
}

// sinceChange is the time to live by when a condition last changed: from Soon to WhileStuck, or WhileStable.
func sinceChange(before map[string]observedCondition, o Outcome, now time.Time) time.Duration {
	if o.Stable {
		return WhileStable
	}
	for _, c := range o.Conditions {
		if before[c.Type].status != string(c.Status) {
			return Soon
		}
	}
	idle := WhileStuck
	for _, c := range before {
		since, _ := time.Parse(time.RFC3339, c.since) // The zero time if there is none.
		idle = min(idle, now.Sub(since))
	}
	return max(idle, Soon)
}

// An observedCondition is a condition that the composite resource has.
type observedCondition struct{ status, reason, since string }

// statusConditions is the path of a composite resource's conditions.
var statusConditions = incoming.NewPath("status", "conditions")

func observedConditions(xr incoming.Composite) map[string]observedCondition {
	all := map[string]observedCondition{}
	for _, c := range statusConditions.In(xr.Object).GetListValue().GetValues() {
		f := c.GetStructValue().GetFields()
		all[f["type"].GetStringValue()] = observedCondition{f["status"].GetStringValue(), f["reason"].GetStringValue(), f["lastTransitionTime"].GetStringValue()}
	}
	return all
}

// FalseSince returns since when a condition of a composite resource is False, or the zero time.
// Crossplane also changes that time with the condition's message.
func FalseSince(xr incoming.Composite, conditionType string) time.Time {
	c := observedConditions(xr)[conditionType]
	since, err := time.Parse(time.RFC3339, c.since)
	if c.status != string(False) || err != nil {
		return time.Time{}
	}
	return since
}

func ready(ok bool) fnv1.Ready {
	if ok {
		return fnv1.Ready_READY_TRUE
	}
	return fnv1.Ready_READY_FALSE
}

// setStatus sets the status of the desired XR, beside the fields and the connection details that earlier functions set.
// Crossplane derives the XR's readiness from its resources. It does not see deferred ones, so
// the XR is then set to not ready.
func setStatus(req incoming.Request, rsp *fnv1.RunFunctionResponse, value any, deferred bool) error {
	status, err := kube.Encode(value)
	if err != nil {
		return fmt.Errorf("cannot write the status: %w", err)
	}
	xr := kube.Copy(rsp.GetDesired().GetComposite().GetResource())
	xr.Fields["apiVersion"] = structpb.NewStringValue(req.Composite().APIVersion())
	xr.Fields["kind"] = structpb.NewStringValue(req.Composite().Kind())
	if theirs := xr.GetFields()["status"].GetStructValue(); theirs != nil {
		all := kube.Copy(theirs)
		maps.Copy(all.GetFields(), status.GetFields())
		status = all
	}
	xr.Fields["status"] = structpb.NewStructValue(status)
	earlier := req.Desired().GetComposite()
	composite := &fnv1.Resource{Resource: xr, ConnectionDetails: earlier.GetConnectionDetails(), Ready: earlier.GetReady()}
	if deferred {
		composite.Ready = fnv1.Ready_READY_FALSE
	}
	rsp.Desired.Composite = composite
	return nil
}

func (c *Call) setConditions(conditions []Condition) {
	for _, o := range conditions {
		c.Response.Conditions = append(c.Response.Conditions, &fnv1.Condition{
			Type:    o.Type,
			Status:  status(o.Status),
			Reason:  o.Reason,
			Message: message(o.Message),
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

func status(s Status) fnv1.Status {
	switch s {
	case True:
		return fnv1.Status_STATUS_CONDITION_TRUE
	case False:
		return fnv1.Status_STATUS_CONDITION_FALSE
	case Unknown:
	}
	return fnv1.Status_STATUS_CONDITION_UNKNOWN
}

// announce emits an event for each condition that has just changed: a warning if it became
// False. If every call emitted events, users would not find the ones that matter.
func announce(before map[string]observedCondition, rsp *fnv1.RunFunctionResponse, conditions []Condition) {
	for _, c := range conditions {
		was, known := before[c.Type]
		if !known || was.status == string(c.Status) {
			continue
		}
		text := fmt.Sprintf("%s is %s: %s", c.Type, c.Status, c.Reason)
		if c.Message != "" {
			text += ": " + c.Message
		}
		if c.Status == False {
			response.Warning(rsp, errors.New(text)).TargetCompositeAndClaim()
			continue
		}
		response.Normal(rsp, text).TargetCompositeAndClaim()
	}
}
