package composite

import (
	"errors"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// What was decided about a composite resource.
const (
	// DecisionPlaced means that replicas start in a cluster.
	DecisionPlaced = "placed"
	// DecisionMoved means that replicas leave a cluster for another one.
	DecisionMoved = "moved"
	// DecisionReleased means that replicas have left a cluster.
	DecisionReleased = "released"
	// DecisionAccepted means that what was refused is accepted now.
	DecisionAccepted = "accepted"
	// DecisionRefused means that the spec, the Input or the objects are refused. Nothing changes.
	DecisionRefused = "refused"
)

// Decisions are all values of Decision.What.
func Decisions() []string {
	return []string{DecisionPlaced, DecisionMoved, DecisionReleased, DecisionAccepted, DecisionRefused}
}

// A Decision is a change for logs and metrics. It has names of clusters, and nothing else that a tenant
// has written.
type Decision struct {
	What string
	// From and To are clusters. They are empty where nothing moves.
	From, To string
	// Units is how many replicas or replica groups are moved. 0 where nothing moves.
	Units int
	// Reason of the condition Accepted, where something is refused.
	Reason string
	// Problems is how many problems are refused.
	Problems int
}

// Decided returns what this call has decided and the last one had not. What the last one had decided, the status
// of the composite resource says. While something that the response requires was not in the request, there are no
// decisions: Crossplane calls again with it, and uses the last response only.
func (c *Call) Decided() []Decision {
	for name := range c.Response.GetRequirements().GetResources() {
		if _, resolved := c.Request.Required(name); !resolved {
			return nil
		}
	}
	return c.decisions
}

// accepted notes that a composite resource is accepted after it was refused.
func (c *Call) accepted(before map[string]observedCondition) {
	if before[Accepted].status == string(False) {
		c.decisions = append(c.decisions, Decision{What: DecisionAccepted})
	}
}

// refused notes that a composite resource is refused, or for another reason than before.
func (c *Call) refused(err error) {
	var problems *ProblemsError
	if !errors.As(err, &problems) {
		return
	}
	if was := observedConditions(c.Request.Composite())[Accepted]; was.status == string(False) && was.reason == problems.Reason {
		return
	}
	c.decisions = append(c.decisions, Decision{What: DecisionRefused, Reason: problems.Reason, Problems: len(problems.Errors)})
}

// maxLogged is the most characters of a list of clusters in a log. Their names come from a status, which somebody
// may have edited.
const maxLogged = 512

// Log writes what was decided, one line for each decision, and the error that an operator has to look into, if there is one. Such an
// error names objects, and has no values of tenants. Each line names the composite resource.
func (c *Call) Log(log logging.Logger) {
	decided := c.Decided()
	if len(decided) == 0 && c.failure == nil {
		return
	}
	xr := c.Request.Composite()
	log = log.WithValues("kind", xr.Kind(), "namespace", xr.Namespace(), "name", xr.Name())
	if c.failure != nil {
		log.Info("Cannot evaluate", "error", text.Cut(c.failure.Error(), text.MaxMessage))
	}
	for _, d := range decided {
		values := []any{"decision", d.What}
		if d.From != "" {
			values = append(values, "from", text.Cut(d.From, maxLogged))
		}
		if d.To != "" {
			values = append(values, "to", text.Cut(d.To, maxLogged))
		}
		if d.Units > 0 {
			values = append(values, "units", d.Units)
		}
		if d.Reason != "" {
			values = append(values, "reason", d.Reason, "problems", d.Problems)
		}
		log.Info("Decided", values...)
	}
}
