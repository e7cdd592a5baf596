package observe

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/plan"
)

// A Status of a condition.
type Status string

// The statuses.
const (
	True    Status = "True"
	False   Status = "False"
	Unknown Status = "Unknown"
)

// A Condition of an InferenceService.
type Condition struct {
	Type    string
	Status  Status
	Reason  string
	Message string
}

// The conditions of an InferenceService. Each is set on every call, because one
// that is no longer sent would stay as it was. Crossplane keeps Ready, Synced, Healthy,
// UpToDate and Responsive for itself.
const (
	// SpecValid is False while the spec, or a name that it takes, is refused.
	// Nothing changes then.
	SpecValid = "SpecValid"
	// NoWarnings is False where something is passed on although it will hardly do
	// what was meant, such as an argument that its program cannot parse.
	NoWarnings = "NoWarnings"
	// IsPlaced is False while some of the service waits for room in the clusters of the
	// fleet, or is on its way from one to another.
	IsPlaced = "Placed"
	// SecretsInPlace is Unknown where pods need Secrets in another cluster: they are not
	// carried there, and reading them would put them into an Object.
	SecretsInPlace = "SecretsInPlace"
	// KindsAvailable is False while the cluster lacks a kind.
	KindsAvailable = "KindsAvailable"
	// GangScheduled is True once the pods that start together have found room.
	GangScheduled = "GangScheduled"
	// WorkloadsReady is True while all replicas of all roles are ready.
	WorkloadsReady = "WorkloadsReady"
	// RouterReady is True while the endpoint picker runs.
	RouterReady = "RouterReady"
	// RouteReady is True while gateways accept the way to the service.
	RouteReady = "RouteReady"
)

// ConditionTypes are all conditions, in the order in which they come.
func ConditionTypes() []string {
	return []string{SpecValid, NoWarnings, IsPlaced, SecretsInPlace, KindsAvailable, GangScheduled, WorkloadsReady, RouterReady, RouteReady}
}

// Reasons of conditions, beside those of single objects.
const (
	ReasonValid        = "Valid"
	ReasonRefused      = "Refused"
	ReasonNotJudged    = "NotJudged"
	ReasonNoneFound    = "NothingSuspicious"
	ReasonSuspicious   = "Suspicious"
	ReasonNoFleet      = "NoFleet"
	ReasonNoCluster    = "NoCluster"
	ReasonPlaced       = "Placed"
	ReasonNoSecrets    = "NoneElsewhere"
	ReasonAvailable    = "AllAvailable"
	ReasonNotChecked   = "NotChecked"
	ReasonNoGang       = "NoGang"
	ReasonScheduled    = "Scheduled"
	ReasonAllReady     = "AllReady"
	ReasonScaledToZero = "ScaledToZero"
	ReasonNoRouter     = "NoRouter"
	ReasonNoRoute      = "NoRoute"
	ReasonAccepted     = "Accepted"
)

// NotJudged are the conditions, of these types, of something that could not be judged.
func NotJudged(types []string, err error) []Condition {
	conditions := make([]Condition, 0, len(types))
	for _, t := range types {
		conditions = append(conditions, Condition{Type: t, Status: Unknown, Reason: ReasonNotJudged, Message: cut(err.Error(), maxList)})
	}
	return conditions
}

// Refused are the conditions, of these types, of something whose spec is refused.
func Refused(types []string, errs field.ErrorList) []Condition {
	message := JoinErrors(errs)
	var conditions []Condition
	for _, t := range types {
		c := Condition{Type: t, Status: Unknown, Reason: ReasonNotJudged, Message: "not judged while the spec is refused"}
		if t == SpecValid {
			c = Condition{Type: t, Status: False, Reason: ReasonRefused, Message: message}
		}
		conditions = append(conditions, c)
	}
	return conditions
}

// conditions in the order of ConditionTypes.
func (j *judgement) conditions() []Condition {
	parts := j.parts()
	return []Condition{
		{Type: SpecValid, Status: True, Reason: ReasonValid},
		j.noWarnings(),
		j.placed(),
		j.secretsInPlace(),
		j.kindsAvailable(),
		j.gangScheduled(parts[GangScheduled]),
		j.workloadsReady(parts[WorkloadsReady]),
		j.routerReady(parts[RouterReady]),
		j.routeReady(parts[RouteReady]),
	}
}

func (j *judgement) noWarnings() Condition {
	if len(j.plan.Warnings) == 0 {
		return Condition{Type: NoWarnings, Status: True, Reason: ReasonNoneFound}
	}
	all := make([]string, 0, len(j.plan.Warnings))
	for _, w := range j.plan.Warnings {
		all = append(all, w.Path+": "+w.Message)
	}
	return Condition{Type: NoWarnings, Status: False, Reason: ReasonSuspicious, Message: join(all, maxErrors)}
}

func (j *judgement) kindsAvailable() Condition {
	var missing []string
	for _, h := range j.held {
		if h.Reason == plan.HeldForKind {
			missing = append(missing, heldMessage(h))
		}
	}
	if len(missing) > 0 {
		return Condition{Type: KindsAvailable, Status: False, Reason: plan.HeldForKind, Message: join(missing, maxList)}
	}
	if j.plan.RequireKinds || j.everyKindExists() {
		return Condition{Type: KindsAvailable, Status: True, Reason: ReasonAvailable}
	}
	return Condition{Type: KindsAvailable, Status: Unknown, Reason: ReasonNotChecked, Message: "the Composition's input does not set requireKinds"}
}

// everyKindExists tells whether something of each kind is observed.
func (j *judgement) everyKindExists() bool {
	exists := map[string]bool{}
	for _, s := range j.subjects {
		exists[s.kind] = exists[s.kind] || j.seen.Observed(s.key)
	}
	for _, there := range exists {
		if !there {
			return false
		}
	}
	return true
}

func (j *judgement) gangScheduled(p *part) Condition {
	if len(p.subjects)+len(p.held) == 0 {
		return Condition{Type: GangScheduled, Status: True, Reason: ReasonNoGang}
	}
	return p.condition(GangScheduled, ReasonScheduled)
}

func (j *judgement) workloadsReady(p *part) Condition {
	p.failures = j.failures
	if len(p.subjects)+len(p.held) == 0 {
		return Condition{Type: WorkloadsReady, Status: True, Reason: ReasonScaledToZero}
	}
	return p.condition(WorkloadsReady, ReasonAllReady)
}

func (j *judgement) routerReady(p *part) Condition {
	if j.plan.Router == nil {
		return Condition{Type: RouterReady, Status: True, Reason: ReasonNoRouter}
	}
	if len(p.subjects)+len(p.held) == 0 {
		if !slices.ContainsFunc(j.plan.Deployments, func(d plan.Deployment) bool { return len(d.Groups)+len(d.Waiting) > 0 }) {
			return Condition{Type: RouterReady, Status: True, Reason: ReasonScaledToZero}
		}
		return Condition{Type: RouterReady, Status: False, Reason: ReasonNotCreated, Message: "it is made where the service is placed"}
	}
	p.failures = j.routerFailures
	return p.condition(RouterReady, ReasonAllReady)
}

func (j *judgement) routeReady(p *part) Condition {
	switch {
	case j.plan.Router == nil:
		return Condition{Type: RouteReady, Status: True, Reason: ReasonNoRouter}
	case !j.plan.Router.HasRoute:
		return Condition{
			Type: RouteReady, Status: False, Reason: ReasonNoRoute,
			Message: "no gateway leads to the pool: the router's httproute names no parent, it has no gateway of its own, and the platform sets no default parent",
		}
	}
	return p.condition(RouteReady, ReasonAccepted)
}
