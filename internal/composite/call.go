/*
Package composite has what all kinds of composite resources have in common: one call of Crossplane, and the response to it. It reads the
Input, names requirements, and writes conditions, results, status and desired objects.

A problem is a Fatal, which keeps every live object as it is. Crossplane deletes objects that a
response without a Fatal leaves out.
*/
package composite

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/response"

	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// A Call is one request of Crossplane about one composite resource, and the response to it.
type Call struct {
	Request  incoming.Request
	Response *fnv1.RunFunctionResponse
	// Now is the time of the call. There is no other clock.
	Now time.Time
	// ConditionTypes are the types of all conditions of the composite resource. Each response
	// sets all of them, because a condition that is not sent keeps its old status.
	ConditionTypes []string

	// decisions of this call, for logs and metrics.
	decisions []Decision
	// failure is an error that no author of a spec or of an Input can mend, for logs.
	failure error
}

// NewCall returns a call whose response has the desired state of the functions that ran before.
func NewCall(req *fnv1.RunFunctionRequest, now time.Time) *Call {
	return &Call{Request: incoming.Of(req), Response: response.To(req, Soon), Now: now}
}

// Kind of the composite resource.
func (c *Call) Kind() string { return c.Request.Composite().Kind() }

// A ProblemsError says why a composite resource is not accepted. The author of the spec or of
// the Input can fix the problems.
type ProblemsError struct {
	// Reason of the condition Accepted, which is False.
	Reason string
	// Errors has at least one problem.
	Errors field.ErrorList
}

// Error returns all problems in one text.
func (p *ProblemsError) Error() string { return text.Errors(p.Errors) }

// Refusal returns problems as an error with a reason, or nil if there are none.
func Refusal(reason string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return &ProblemsError{Reason: reason, Errors: errs}
}

// Invalid returns the problems of a spec and of an Input as an error, or nil if there are none.
// The reason is that of the Input if it has problems: until they are fixed, no spec is accepted.
func Invalid(errs field.ErrorList) error {
	if InputInvalid(errs) {
		return Refusal(ReasonInvalidInput, errs)
	}
	return Refusal(ReasonInvalidSpec, errs)
}

// inputPath is the first part of the paths of an Input's fields in errors.
const inputPath = "input"

// InputInvalid tells whether any problem is one of the Input.
func InputInvalid(errs field.ErrorList) bool {
	return slices.ContainsFunc(errs, func(e *field.Error) bool {
		return e.Field == inputPath || strings.HasPrefix(e.Field, inputPath+".")
	})
}

// Refuse responds with a Fatal. Crossplane applies the conditions of such a response, so they
// say what is wrong. Ready stays as it was.
func (c *Call) Refuse(err error) {
	c.decisions = nil
	c.refused(err)
	c.Response.Conditions = nil
	var problems *ProblemsError
	if errors.As(err, &problems) {
		slices.SortStableFunc(problems.Errors, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
		c.setConditions(Refused(c.ConditionTypes, problems))
	} else {
		c.failure = err
		c.setConditions(notEvaluated(c.ConditionTypes, err))
	}
	response.Fatal(c.Response, fmt.Errorf("nothing was changed: %w", err))
}

// RefuseInternalError responds to a panic with a Fatal. A crash would abort the calls of all
// other composite resources. It does nothing if recovered is nil.
func (c *Call) RefuseInternalError(log logging.Logger, recovered any) {
	if recovered == nil {
		return
	}
	log.Info("Recovered from an internal error", "panic", recovered, "stack", string(debug.Stack()))
	c.Refuse(fmt.Errorf("internal error of the function: %v", recovered))
	c.failure = nil // The line above has it.
}
