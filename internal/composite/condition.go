package composite

import (
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// A Status is the status of a condition.
type Status string

// The statuses of a condition.
const (
	True    Status = "True"
	False   Status = "False"
	Unknown Status = "Unknown"
)

// A Condition of a composite resource.
type Condition struct {
	Type    string
	Status  Status
	Reason  string
	Message string
}

// notEvaluated returns conditions of these types for a composite resource that could not be
// evaluated.
func notEvaluated(types []string, err error) []Condition {
	conditions := make([]Condition, 0, len(types))
	for _, t := range types {
		conditions = append(conditions, Condition{Type: t, Status: Unknown, Reason: ReasonNotEvaluated, Message: text.Cut(err.Error(), text.MaxMessage)})
	}
	return conditions
}

// Refused returns conditions of these types for a composite resource that is not accepted.
func Refused(types []string, p *ProblemsError) []Condition {
	var conditions []Condition
	for _, t := range types {
		c := Condition{Type: t, Status: Unknown, Reason: ReasonNotEvaluated, Message: "not evaluated while Accepted is False"}
		if t == Accepted {
			c = Condition{Type: t, Status: False, Reason: p.Reason, Message: text.Errors(p.Errors)}
		}
		conditions = append(conditions, c)
	}
	return conditions
}

// Accepted is False while the spec, the Input or the objects that they describe are refused.
// Nothing changes meanwhile. All kinds of composite resources have this condition.
const Accepted = "Accepted"

// Reasons of conditions of all kinds of composite resources.
const (
	// ReasonAccepted is the reason of Accepted while it is True.
	ReasonAccepted = "Accepted"
	// ReasonInvalidSpec means that the author of the spec has to fix it.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonInvalidInput means that the platform team has to fix the Input.
	ReasonInvalidInput = "InvalidInput"
	// ReasonNameConflict means that another object already has a name that is needed.
	ReasonNameConflict = "NameConflict"
	// ReasonTooLarge means that Crossplane or the API server would not take the objects.
	ReasonTooLarge = "TooLarge"
	// ReasonNotEvaluated is the reason of all other conditions while Accepted is False, and of
	// all conditions after an internal error.
	ReasonNotEvaluated = "NotEvaluated"
)
