package simulation

import (
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
)

// systemConditions are those that Crossplane itself sets.
var systemConditions = []string{"Ready", "Synced", "Healthy", "Responsive"}

// A condition is one of a status.
type condition struct{ kind, status, reason, message string }

// conditionsOf returns the conditions of a status with some of them set. A condition keeps its lastTransitionTime if nothing of it
// changes.
func conditionsOf(status document, now time.Time, set ...condition) []any {
	var all []any
	seen := map[string]bool{}
	byKind := map[string]condition{}
	for _, c := range set {
		byKind[c.kind] = c
	}
	one := func(c condition) fields {
		f := fields{"type": c.kind, "status": c.status, "reason": c.reason, "lastTransitionTime": now.UTC().Format(time.RFC3339)}
		if c.message != "" {
			f["message"] = c.message
		}
		return f
	}
	for _, old := range items(status, "conditions") {
		kind := text(old, "type")
		seen[kind] = true
		c, changed := byKind[kind]
		if !changed || c == (condition{kind, text(old, "status"), text(old, "reason"), text(old, "message")}) {
			all = append(all, old.AsMap())
			continue
		}
		all = append(all, one(c))
	}
	for _, c := range set {
		if !seen[c.kind] {
			seen[c.kind] = true
			all = append(all, one(c))
		}
	}
	return all
}

// conditions returns the conditions of the response.
func (r *reconcile) conditions() []condition {
	var all []condition
	for _, c := range r.rsp.GetConditions() {
		status := "Unknown"
		switch c.GetStatus() {
		case fnv1.Status_STATUS_CONDITION_TRUE:
			status = "True"
		case fnv1.Status_STATUS_CONDITION_FALSE:
			status = "False"
		case fnv1.Status_STATUS_CONDITION_UNKNOWN, fnv1.Status_STATUS_CONDITION_UNSPECIFIED:
		}
		all = append(all, condition{c.GetType(), status, c.GetReason(), c.GetMessage()})
	}
	return all
}

// writeStatus writes the status that the function returned, with its conditions and Crossplane's own.
func (r *reconcile) writeStatus() {
	set := r.conditions()
	ready := condition{"Ready", "True", "Available", ""}
	if slices.ContainsFunc(r.desired, func(d desired) bool { return !d.ready }) || r.rsp.GetDesired().GetComposite().GetReady() == fnv1.Ready_READY_FALSE {
		ready = condition{"Ready", "False", "Creating", ""}
	}
	set = append(set, condition{"Synced", "True", "ReconcileSuccess", ""}, ready)
	status := object(r.rsp.GetDesired().GetComposite().GetResource(), "status")
	status = with(status, value(conditionsOf(object(r.xr.body, "status"), r.w.now, set...)), "conditions")
	r.w.server.setStatus(r.key.kind, r.key.name, status)
}

// fail writes the conditions of a reconcile that failed. What the response does not have becomes Unknown. The write is an update, so
// it does nothing if the composite resource has changed since it was read.
func (r *reconcile) fail(err error) {
	current := r.w.server.get(r.key.kind, r.key.name)
	if current == nil || current.version != r.xr.version {
		return
	}
	set := r.conditions()
	for _, old := range items(current.body, "status", "conditions") {
		kind := text(old, "type")
		if !slices.Contains(systemConditions, kind) && !slices.ContainsFunc(set, func(c condition) bool { return c.kind == kind }) {
			set = append(set, condition{kind, "Unknown", "FatalError", "A fatal error occurred before the status of this condition could be determined."})
		}
	}
	set = append(set, condition{"Synced", "False", "ReconcileError", err.Error()})
	status := object(current.body, "status")
	if status == nil {
		status = &structpb.Struct{}
	}
	r.w.server.setStatus(r.key.kind, r.key.name, with(status, value(conditionsOf(status, r.w.now, set...)), "conditions"))
}
