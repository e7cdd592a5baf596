/*
Package modelcache takes a ModelCache through the steps of a call. A ModelCache is a download that several
services share.

It is planned as a service without roles: its plan has weights, and the clusters in which they are loaded.
So the claims and the Jobs, how far these are, names, conflicts and the fleet are those of a service with
a cache of its own. In a cluster of the fleet, it requests a place and no capacity: see
plan.CacheReplica.
*/
package modelcache

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/remote"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/service/observe"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
	"github.com/fusioninfer/function-inferenceservice/internal/service/render"
	"github.com/fusioninfer/function-inferenceservice/internal/service/require"
)

// IsKind tells whether composite resources of a kind are of this package.
func IsKind(kind string) bool {
	return kind == v1alpha1.KindModelCache || kind == v1alpha1.KindClaimedCache
}

// A Cache is the ModelCache of one call. Its steps run in the order of the methods, each once, until one
// returns an error.
type Cache struct {
	call *composite.Call

	identity naming.Identity
	spec     *v1alpha1.ModelCacheSpec
	input    *inputv1alpha1.Input
	problems field.ErrorList
	snapshot scheduling.Snapshot
	plan     *plan.Plan
	observed *observe.ObservedState
	renderer *render.Renderer
	objects  []kube.Object
}

// New returns the ModelCache of a call.
func New(c *composite.Call) *Cache {
	c.ConditionTypes = ConditionTypes()
	return &Cache{call: c}
}

var xrView = incoming.NewCompositeView[composite.XR[v1alpha1.ModelCacheSpec]]()

// Parse reads the ModelCache and the Input, which is of the same kind as that of services.
func (m *Cache) Parse() error {
	if err := m.call.CheckKinds(inputv1alpha1.KindInput, v1alpha1.KindModelCache, v1alpha1.KindClaimedCache); err != nil {
		return err
	}
	req := m.call.Request
	m.input, m.problems = composite.Input(req.Input())
	if tooLarge := composite.CheckBounds(req.Composite()); len(tooLarge) > 0 {
		return composite.Invalid(append(m.problems, tooLarge...))
	}
	x, unread := composite.Read(xrView, req.Composite())
	of := &v1alpha1.ModelCache{TypeMeta: x.TypeMeta, ObjectMeta: x.ObjectMeta(), Spec: x.Spec}
	m.problems = append(m.problems, unread...)
	m.problems = append(m.problems, composite.WithoutConsequences(v1alpha1.ValidateCache(of, x.Claim), unread)...)
	if err := composite.Invalid(m.problems); err != nil {
		return err
	}
	m.spec, m.identity = &x.Spec, x.Identity()
	m.identity.OfCache = true
	return nil
}

// Observe takes the snapshot of the fleet, and notes where the cache is.
func (m *Cache) Observe() error {
	m.snapshot = observe.CacheSnapshot(m.call.Request, m.spec.Placement(), m.call.Now)
	return nil
}

// Plan decides in which clusters the weights are loaded, and what is next in each.
func (m *Cache) Plan() error {
	if m.plan, m.problems = plan.BuildCache(m.identity, m.spec, m.input, m.snapshot); len(m.problems) > 0 {
		return composite.Invalid(m.problems)
	}
	if err := composite.Refusal(composite.ReasonInvalidSpec, m.plan.RefuseOtherWeights(m.call.Request.ObservedKeys())); err != nil {
		return err
	}
	m.plan.KeepClaim(observe.CacheClaim(m.call.Request, m.plan.Weights.Hash))
	var err error
	if m.renderer, err = render.New(m.plan); err != nil {
		return err
	}
	m.observed = observe.Read(m.call.Request, m.plan)
	users, known := observe.CacheUsers(m.call.Request)
	m.plan.PlaceCache(users, known, &plan.RunningView{Now: m.call.Now, Loader: m.renderer.Loader(), Weights: m.observed.Weights})
	return nil
}

// Render makes the claims and the Jobs.
func (m *Cache) Render() error {
	var err error
	m.objects, err = m.renderer.Render()
	return err
}

// Require asks Crossplane for the fleet, for the pods of the Jobs, and for what has the names of objects
// that do not exist yet. All kinds are there: Kubernetes' own, and provider-kubernetes' where there is
// a fleet. Only collections of its Objects may be missing.
func (m *Cache) Require() error {
	deferred := require.Declare(m.call.Request, m.call.Response, m.plan, m.objects)
	m.objects = render.Without(m.objects, deferred)
	return nil
}

// Respond answers with the objects, the status and the conditions.
func (m *Cache) Respond() error {
	if err := composite.Refusal(composite.ReasonNameConflict, m.observed.Conflicts(m.objects).Refused); err != nil {
		return err
	}
	if err := composite.Refusal(composite.ReasonTooLarge, m.checkSize()); err != nil {
		return err
	}
	e := m.observed.Evaluate(m.objects, nil)
	conditions := conditionsOf(&e)
	ready := true
	for _, c := range conditions {
		ready = ready && (c.Status == composite.True || c.Type == observe.NoWarnings)
	}
	return m.call.Accept(composite.Outcome{
		Objects: m.objects, Ready: e.Ready, Status: status(m.plan, &e), Conditions: conditions,
		Deferred: !ready, Stable: e.Stable && ready,
	})
}

// checkSize refuses more clusters than a response can carry. A list of them is limited, and a selector is
// not.
func (m *Cache) checkSize() field.ErrorList {
	at := field.NewPath("spec", "clusterSelector")
	if s := m.plan.Schedule; s != nil && len(s.Request.Clusters) > reservation.MaxClusters {
		return field.ErrorList{field.Invalid(at, fmt.Sprintf("%d clusters", len(s.Request.Clusters)), fmt.Sprintf("selects too many clusters: must select at most %d", reservation.MaxClusters))}
	}
	// What observes the pods of Jobs comes later.
	total := m.call.Size(m.objects) + m.plan.LaterLoaderObjects()*remote.ObserverSize
	if total <= composite.MaxResponse {
		return nil
	}
	return field.ErrorList{field.Invalid(at, fmt.Sprintf("%d bytes", total),
		fmt.Sprintf("selects more clusters than fit into an answer of %d bytes, Crossplane's limit: select fewer, or load on demand", composite.MaxResponse))}
}

// ConditionTypes are the types of all conditions, in the order of the response. They mean the same as those
// of a service.
func ConditionTypes() []string {
	return []string{composite.Accepted, observe.NoWarnings, observe.IsPlaced, observe.SecretsInPlace, observe.ModelReady}
}

// conditionsOf returns the conditions that are about a cache.
func conditionsOf(e *observe.Evaluation) []composite.Condition {
	all := make([]composite.Condition, 0, len(ConditionTypes()))
	for _, t := range ConditionTypes() {
		for _, c := range e.Conditions {
			if c.Type == t {
				all = append(all, c)
			}
		}
	}
	return all
}

// status says where the weights are, and how far each cluster is. Services read it.
func status(p *plan.Plan, e *observe.Evaluation) v1alpha1.ModelCacheStatus {
	st := v1alpha1.ModelCacheStatus{
		ObservedGeneration: e.Status.ObservedGeneration,
		ModelName:          p.ModelName(), ClaimName: p.Weights.ClaimName, Directory: p.Weights.Directory,
	}
	if e.Status.Model != nil {
		st.Caches = e.Status.Model.Caches
	}
	return st
}
