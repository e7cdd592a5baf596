package scheduling

import (
	"fmt"
	"time"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// An eligibility tells why a cluster takes nothing new, if so.
type eligibility struct {
	reason, message string
	// mustLeave tells that what exists there has to leave.
	mustLeave bool
}

func (e eligibility) eligible() bool { return e.reason == "" }

// Stopped says why a cluster with a stop policy takes nothing new, as the reason and the
// message of a condition. Both are empty without such a policy.
func Stopped(policy v1alpha1.StopPolicy, because string) (reason, message string) {
	switch policy {
	case v1alpha1.StopAbandon:
		return ReasonAbandoned, text.WithReason("the cluster is abandoned", because)
	case v1alpha1.StopDrain:
		return ReasonDraining, text.WithReason("the cluster is drained", because)
	case v1alpha1.StopHold:
		return ReasonOnHold, text.WithReason("the cluster is on hold", because)
	case v1alpha1.StopNone:
	}
	return "", ""
}

func (p *scheduler) eligibilityOf(c *Candidate) eligibility {
	stopped, message := Stopped(c.StopPolicy, c.StopMessage)
	switch {
	case c.StopPolicy == v1alpha1.StopAbandon:
		return eligibility{stopped, message, true}
	case c.Unknown != "":
		return eligibility{ReasonUnknown, c.Unknown, false}
	case c.DuplicateOf != "":
		return eligibility{ReasonDuplicate, "it has the same provider configuration and namespace as " + c.DuplicateOf, false}
	case c.NotAllowed:
		return eligibility{ReasonDeselected, "the cluster no longer allows this namespace", true}
	case c.Deselected:
		return eligibility{ReasonDeselected, "the placement no longer names or selects it", true}
	case c.StopPolicy == v1alpha1.StopDrain:
		return eligibility{stopped, message, true}
	case c.Unreachable != nil:
		since := c.Unreachable.UTC().Format(time.RFC3339)
		if c.InOutage {
			return eligibility{ReasonUnreachable, "out of reach since " + since + ", like most of the fleet: the control plane is probably the cause, so nothing moves", false}
		}
		// With Replicate nothing moves, since the other clusters already have a copy.
		if p.Policy != v1alpha1.PlacementReplicate && p.Now.Sub(*c.Unreachable) >= p.FailoverAfter {
			return eligibility{ReasonUnreachable, fmt.Sprintf("out of reach since %s, longer than %s", since, p.FailoverAfter), true}
		}
		return eligibility{ReasonUnreachable, "out of reach since " + since, false}
	case c.OutOfScope != "":
		return eligibility{c.OutOfScope, c.OutOfScopeMessage, false}
	case p.Policy == v1alpha1.PlacementSpread && c.Weight == 0:
		return eligibility{ReasonWeight, "its weight is 0", true}
	}
	return eligibility{}
}
