/*
Package service takes an InferenceService through the steps of a call. The packages below do
the work. plan decides, and render makes objects of the plan. require asks Crossplane for
what else has to be known. observe reads and evaluates what exists.

render and observe never import each other. They refer to an object by the key that the plan
gave it.
*/
package service

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/service/observe"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
	"github.com/fusioninfer/function-inferenceservice/internal/service/render"
	"github.com/fusioninfer/function-inferenceservice/internal/service/require"
)

// A Service is the InferenceService of one call. Its steps run in the order of the methods,
// each once, until one returns an error.
type Service struct {
	call *composite.Call

	parsed   parsed
	problems field.ErrorList
	snapshot scheduling.Snapshot
	shared   *plan.SharedCache
	scales   map[string]*plan.Scale
	plan     *plan.Plan
	observed *observe.ObservedState
	renderer *render.Renderer
	objects  []kube.Object
	deferred []plan.Deferred
}

// New returns the InferenceService of a call.
func New(c *composite.Call) *Service {
	c.ConditionTypes = observe.ConditionTypes()
	return &Service{call: c}
}

// Parse reads the InferenceService and the Input. Plan returns the problems of both, so
// that a user reads all of them at once. Only another version of the API is refused here,
// because its fields may mean something else.
func (s *Service) Parse() error {
	if err := s.call.CheckKinds(inputv1alpha1.KindInput, v1alpha1.KindInferenceService, v1alpha1.KindClaimedService); err != nil {
		return err
	}
	s.parsed, s.problems = parse(s.call.Request)
	return nil
}

// Observe takes the snapshot: what planning goes by, besides the spec and the Input.
func (s *Service) Observe() error {
	p := &s.parsed
	s.scales = observe.Scaling(s.call.Request, p.spec)
	for i := range p.spec.Roles {
		if scale := s.scales[p.spec.Roles[i].Name]; scale != nil {
			p.spec.Roles[i].Replicas = &scale.Replicas
		}
	}
	s.problems = append(s.problems, observe.ScalingEnds(s.call.Request, p.spec, p.unnumbered)...)
	s.snapshot = observe.Snapshot(s.call.Request, p.spec, s.call.Now)
	if p.spec.Model == nil || p.spec.Model.CacheRef == nil {
		return nil
	}
	var problems field.ErrorList
	s.shared, problems = observe.SharedCache(s.call.Request, p.spec.Model.CacheRef.Name)
	s.problems = append(s.problems, problems...)
	p.spec.Model = s.shared.Model(p.spec.Model)
	return nil
}

// Plan decides what is needed, and where it runs. An Input says what each namespace may use. If it has problems, or the service has no
// namespace, only the templates are checked. Without the profile that the service names, nothing is known of them.
func (s *Service) Plan() error {
	p := s.parsed
	if p.unmerged {
		return s.invalid()
	}
	if composite.InputInvalid(s.problems) || p.service.Namespace == "" {
		s.problems = append(s.problems, plan.CheckTemplates(p.spec, p.input)...)
		return s.invalid()
	}
	s.plan, s.problems = plan.Build(p.service, p.spec, p.input, s.snapshot, s.problems)
	s.problems = withoutAdded(s.problems, p.document)
	if err := s.invalid(); err != nil {
		return err
	}
	s.plan.Shared, s.plan.Scales = s.shared, s.scales
	for _, d := range p.profile.Doubts() {
		s.plan.Warnings = append(s.plan.Warnings, plan.Warning(d))
	}
	if a := p.profile; a != nil {
		s.plan.Profile = &v1alpha1.ProfileStatus{Name: a.Name, Hash: a.Hash}
	}
	return s.place()
}

// invalid returns the problems as an error. They say what comes from a profile.
func (s *Service) invalid() error {
	s.parsed.profile.Explain(s.problems)
	return composite.Invalid(s.problems)
}

// place decides where replicas run, and which of them get the newest template now. What that is,
// rendering knows.
func (s *Service) place() error {
	var err error
	if s.renderer, err = render.New(s.plan); err != nil {
		return err
	}
	s.observed = observe.Read(s.call.Request, s.plan)
	running := s.observed.RunningView()
	running.Now, running.Revision, running.Loader = s.call.Now, s.renderer.Revisions(), s.renderer.Loader()
	running.Size, running.Room = sizeOf(s.renderer), roomForReplicas
	s.problems = s.plan.Place(running)
	if err := composite.Refusal(composite.ReasonTooLarge, checkRequested(s.plan)); err != nil {
		return err
	}
	if err := s.invalid(); err != nil {
		return err
	}
	s.plan.RollOut(running)
	return nil
}

// Render makes the objects of the plan.
func (s *Service) Render() error {
	var err error
	s.objects, err = s.renderer.Render()
	return err
}

// Require asks Crossplane for what else has to be known. Objects whose kind the cluster
// lacks are deferred.
func (s *Service) Require() error {
	s.deferred = require.Declare(s.call.Request, s.call.Response, s.plan, s.objects)
	return nil
}

// Respond evaluates what exists, and answers with the objects, the status and the
// conditions. Only an object that does not exist is ever deferred.
func (s *Service) Respond() error {
	state := s.observed
	deferred := slices.Concat(s.deferred, s.plan.Deferred, s.plan.DeferForGang(state.PodGroup, state.Observed),
		s.plan.DeferForWeights(state.Observed), s.plan.DeferUnchecked(s.objects, state.Observed))
	conflicts := state.Conflicts(s.objects)
	if err := s.refusal(conflicts.Refused); err != nil {
		return err
	}
	deferred = append(deferred, conflicts.Deferred...)
	s.plan.Warnings = append(s.plan.Warnings, conflicts.Warnings...)
	objects := render.Without(s.objects, slices.Concat(deferred, conflicts.Spared))
	return s.call.Accept(state.Evaluate(objects, deferred).Outcome)
}

// refusal is why the objects cannot be applied, or nil. All problems are reported at once.
func (s *Service) refusal(conflicts field.ErrorList) error {
	changes := s.observed.ForbiddenChanges(s.objects)
	s.parsed.profile.Explain(changes)
	reason := composite.ReasonTooLarge
	switch {
	case composite.InputInvalid(changes):
		reason = composite.ReasonInvalidInput
	case len(changes) > 0:
		reason = composite.ReasonInvalidSpec
	case len(conflicts) > 0:
		reason = composite.ReasonNameConflict
	}
	return composite.Refusal(reason, slices.Concat(changes, conflicts, checkSize(s.call, s.parsed.document, s.plan, s.renderer, s.objects)))
}
