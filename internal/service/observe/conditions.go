package observe

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// The conditions of an InferenceService. Every response sets all of them, because
// Crossplane keeps a condition that a response leaves out as it was. Crossplane reserves
// Ready, Synced, Healthy, UpToDate and Responsive.
const (
	// NoWarnings is False while the spec has a setting that is probably a mistake, such as an
	// argument that the engine cannot parse.
	NoWarnings = "NoWarnings"
	// IsPlaced is False while replicas wait for capacity in the clusters of the fleet, or
	// move from one cluster to another. It is Unknown while the InferenceCluster cannot be read where they
	// run, and True with the reason Unreachable while that cluster is out of reach.
	IsPlaced = "Placed"
	// SecretsInPlace names the Secrets that pods need in other clusters. The function
	// neither copies them nor checks that they exist, because reading one would write it
	// into an Object. The condition is then True with the reason NotChecked.
	SecretsInPlace = "SecretsInPlace"
	// KindsAvailable is False while a cluster where the service runs lacks a kind. It is True with the reason
	// NotChecked where the Input does not set missingKinds to Skip.
	KindsAvailable = "KindsAvailable"
	// GangScheduled is True once Volcano has scheduled all gangs.
	GangScheduled = "GangScheduled"
	// WorkloadsReady is True while all replicas of all roles are ready.
	WorkloadsReady = "WorkloadsReady"
	// Scaled is False while a role runs another number of replicas than its scale target asks for, or its autoscaler does not
	// scale it. It is also False while its target or autoscaler does not exist or is being deleted: only then, the service is
	// not ready either.
	Scaled = v1alpha1.ConditionScaled
	// RouterReady is True while the endpoint picker is ready.
	RouterReady = "RouterReady"
	// RouteReady is False while a gateway refuses the route or the pool, or uses only a part of the route. It is also False while a
	// listener of the service's own Gateway receives no traffic. It is True with a reason that ends with NotReported while a gateway has not
	// reported: some never do.
	RouteReady = "RouteReady"
)

// ConditionTypes are the types of all conditions, in the order of the response.
func ConditionTypes() []string {
	return []string{composite.Accepted, NoWarnings, IsPlaced, SecretsInPlace, KindsAvailable, ModelReady, GangScheduled, WorkloadsReady, Scaled, RolledOut, RouterReady, RouteReady}
}

// Reasons of conditions, besides those of single objects.
const (
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
	ReasonSleeping     = "Sleeping"
	ReasonNoRouter     = "NoRouter"
	ReasonNoRoute      = "NoRoute"
	ReasonAccepted     = "Accepted"
)

// conditions in the order of ConditionTypes.
func (e *evaluator) conditions() []composite.Condition {
	groups := e.conditionGroups()
	return []composite.Condition{
		{Type: composite.Accepted, Status: composite.True, Reason: composite.ReasonAccepted},
		e.noWarnings(),
		e.placed(),
		e.secretsInPlace(),
		e.kindsAvailable(),
		e.modelReady(),
		e.gangScheduled(groups[GangScheduled]),
		e.workloadsReady(groups[WorkloadsReady]),
		e.scaled(groups[Scaled]),
		e.rolledOut(),
		e.routerReady(groups[RouterReady]),
		e.routeReady(groups[RouteReady]),
	}
}

func (e *evaluator) noWarnings() composite.Condition {
	warnings := slices.Concat(e.plan.Warnings, e.lowerRank(), e.losesAdapters(), e.claimOfOthers())
	if len(warnings) == 0 {
		return composite.Condition{Type: NoWarnings, Status: composite.True, Reason: ReasonNoneFound}
	}
	all := make([]string, 0, len(warnings))
	for _, w := range warnings {
		all = append(all, w.Path+": "+w.Message)
	}
	return composite.Condition{Type: NoWarnings, Status: composite.False, Reason: ReasonSuspicious, Message: text.Join(all, text.MaxProblems)}
}

func (e *evaluator) kindsAvailable() composite.Condition {
	var missing []string
	for _, d := range e.deferred {
		if d.Reason == plan.DeferredForKind {
			missing = append(missing, text.InCluster(d.Key.Cluster, d.Message))
		}
	}
	for _, s := range e.objects {
		if s.lacksKind() {
			missing = append(missing, text.InCluster(s.cluster.Target.Cluster, incoming.KindOf(s.desired).Missing()))
		}
	}
	if len(missing) > 0 {
		return composite.Condition{Type: KindsAvailable, Status: composite.False, Reason: plan.DeferredForKind, Message: text.Join(missing, text.MaxMessage)}
	}
	if e.plan.SkipsMissingKinds || e.everyKindExists() {
		return composite.Condition{Type: KindsAvailable, Status: composite.True, Reason: ReasonAvailable}
	}
	return composite.Condition{Type: KindsAvailable, Status: composite.True, Reason: ReasonNotChecked, Message: "the Composition's input does not set missingKinds to Skip"}
}

// everyKindExists tells whether an object of each kind is observed, which proves that the
// cluster has the kind.
func (e *evaluator) everyKindExists() bool {
	exists := map[string]bool{}
	for _, s := range e.objects {
		exists[s.kind] = exists[s.kind] || e.state.Observed(s.key)
	}
	return !slices.Contains(slices.Collect(maps.Values(exists)), false)
}

func (e *evaluator) gangScheduled(g *conditionGroup) composite.Condition {
	if len(g.objects)+len(g.deferred) == 0 {
		return composite.Condition{Type: GangScheduled, Status: composite.True, Reason: ReasonNoGang}
	}
	return g.condition(GangScheduled, ReasonScheduled)
}

func (e *evaluator) workloadsReady(g *conditionGroup) composite.Condition {
	g.failures = e.failures
	c := g.condition(WorkloadsReady, ReasonAllReady)
	if c.Status == composite.True && !g.hasReplicas() {
		return e.withoutReplicas()
	}
	return c
}

// withoutReplicas tells whether a service without any replicas starts again by itself.
func (e *evaluator) withoutReplicas() composite.Condition {
	var wakes []string
	for _, r := range e.plan.Roles {
		if r.Autoscaler != nil && r.Autoscaler.Min == 0 {
			wakes = append(wakes, r.Name)
		}
	}
	if len(wakes) == 0 {
		return composite.Condition{Type: WorkloadsReady, Status: composite.True, Reason: ReasonScaledToZero}
	}
	message := "no replicas run until an autoscaler starts some, of: " + text.Names(wakes, maxNamed)
	if e.plan.Router != nil && e.plan.Router.QueueTTL > 0 {
		message = fmt.Sprintf("no replicas run until a request comes, which waits up to %s in the endpoint picker for: %s", e.plan.Router.QueueTTL, text.Names(wakes, maxNamed))
	}
	return composite.Condition{Type: WorkloadsReady, Status: composite.True, Reason: ReasonSleeping, Message: message}
}

func (e *evaluator) routerReady(g *conditionGroup) composite.Condition {
	if e.plan.Router == nil {
		return composite.Condition{Type: RouterReady, Status: composite.True, Reason: ReasonNoRouter}
	}
	if len(g.objects)+len(g.deferred) == 0 {
		return e.withoutObjects(RouterReady)
	}
	g.failures = e.routerFailures
	return g.condition(RouterReady, ReasonAllReady)
}

// withoutObjects tells whether what a condition is about is missing, where none of it is to exist yet.
func (e *evaluator) withoutObjects(name string) composite.Condition {
	if !slices.ContainsFunc(e.plan.Clusters, func(c plan.ClusterPlan) bool { return len(c.Groups)+len(c.Pending) > 0 }) {
		return composite.Condition{Type: name, Status: composite.True, Reason: ReasonScaledToZero}
	}
	return composite.Condition{Type: name, Status: composite.False, Reason: ReasonNotCreated, Message: "it is made where the service is placed"}
}

func (e *evaluator) routeReady(g *conditionGroup) composite.Condition {
	switch {
	case e.plan.Router == nil:
		return composite.Condition{Type: RouteReady, Status: composite.True, Reason: ReasonNoRouter}
	case !e.plan.Router.HasRoute:
		return composite.Condition{
			Type: RouteReady, Status: composite.False, Reason: ReasonNoRoute,
			Message: "no gateway leads to the pool: the router's httproute names no parent, it has no gateway of its own, and the platform sets no default parent",
		}
	case len(g.objects)+len(g.deferred) == 0:
		return e.withoutObjects(RouteReady)
	}
	return g.condition(RouteReady, ReasonAccepted)
}
