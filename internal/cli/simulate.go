package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
)

// A Clocked function can be run at another time than now. A simulation needs that: what
// depends on the time must neither take time nor differ from run to run.
type Clocked interface {
	Runner
	// At returns the function as it runs at a time.
	At(t time.Time) Runner
}

// maxRounds is how often everything is reconciled until the simulation gives up. One change
// takes some rounds for each cluster that a service tries.
const maxRounds = 300

// firstWait is the first step of the simulated time after everything has settled. Each further
// one is four times as long, because each of them costs a call for everything.
const firstWait = 15 * time.Second

// A simulation is a control plane without a network: a store of objects, the XRs in it, which
// are reconciled until nothing changes, and a clock. It runs the function as Crossplane does
// and reads nothing that the function writes for itself. Every pod that is wanted starts at
// once.
type simulation struct {
	fn    Runner
	store *store
	// inputs of the function, by the kind of the XR.
	inputs map[string]*object
	// made are the kinds whose input nobody has given.
	made map[string]bool
	now  time.Time
	xrs  map[identity]*participant
	// lost are the clusters that do not answer.
	lost map[config]bool
}

// A participant is an XR that is reconciled.
type participant struct {
	// seen describes what the last call has seen, and at what time.
	seen         string
	requirements *fnv1.Requirements
	// refused is why the function refuses the XR as it is now.
	refused string
}

func newSimulation(fn Runner, now time.Time) *simulation {
	return &simulation{fn: fn, store: newStore(), inputs: map[string]*object{}, made: map[string]bool{}, now: now, xrs: map[identity]*participant{}, lost: map[config]bool{}}
}

// isXRKind reports whether an object is an XR that takes part. InferenceModels do not: nothing moves for them.
func isXRKind(o object) bool {
	return o.GetAPIVersion() == v1alpha1.APIVersion && slices.Contains(simulatedKinds, o.GetKind())
}

// add adds an object, which takes part if it is an XR.
func (s *simulation) add(o object) error {
	if isXRKind(o) {
		before, _, _ := unstructured.NestedMap(o.Object, "status")
		o = asXR(*o.DeepCopy())
		o.Object["status"] = keepTimes(before, o.Object["status"].(map[string]any)) //nolint:forcetypeassert // asXR sets it.
		if s.xrs[identityOf(o)] == nil {
			s.xrs[identityOf(o)] = &participant{}
		}
	}
	_, err := s.store.put(o)
	return err
}

// drop removes an XR and all that it has composed.
func (s *simulation) drop(id identity) error {
	for _, key := range slices.Sorted(maps.Keys(s.store.composed[id])) {
		if _, err := s.forget(id, key); err != nil {
			return err
		}
	}
	delete(s.xrs, id)
	delete(s.store.composed, id)
	s.store.remove(id)
	return nil
}

// lose takes clusters out of reach, or brings them back.
func (s *simulation) lose(lost map[config]bool) error {
	s.lost = lost
	for _, id := range slices.SortedFunc(maps.Keys(s.store.composed), identity.compare) {
		for _, o := range s.store.observed(id) {
			if _, err := s.store.put(s.reported(id, o)); err != nil {
				return err
			}
		}
	}
	return nil
}

// settle reconciles everything until nothing changes any more, whatever time passes meanwhile.
// A limit of 0 lets no time pass.
func (s *simulation) settle(ctx context.Context, limit time.Duration) error {
	s.scaleTargets()
	wait, quiet := firstWait, time.Duration(0)
	for range maxRounds {
		changed, err := s.round(ctx)
		switch {
		case err != nil:
			return err
		case len(changed) > 0:
			wait, quiet = firstWait, 0
		case quiet >= limit:
			return nil
		default:
			s.now = s.now.Add(wait)
			wait, quiet = 4*wait, quiet+wait
		}
	}
	changed, err := s.round(ctx)
	if err != nil {
		return err
	}
	return fmt.Errorf("the fleet does not settle: after %d rounds, these still change: %s. That is a bug of the function, or a fleet that no real one is like: please report it with the files", maxRounds, some(changed))
}

// round reconciles the services, and then the clusters. It names what has changed.
func (s *simulation) round(ctx context.Context) ([]string, error) {
	ids := slices.SortedFunc(maps.Keys(s.xrs), func(a, b identity) int {
		if a, b := a.kind == v1alpha1.KindInferenceCluster, b.kind == v1alpha1.KindInferenceCluster; a != b {
			if b {
				return -1
			}
			return 1
		}
		return a.compare(b)
	})
	var all []string
	for _, id := range ids {
		changed, err := s.reconcile(ctx, id)
		if err != nil {
			return nil, err
		}
		if changed {
			all = append(all, id.kind+" "+id.nice())
		}
	}
	return all, nil
}

// reconcile calls the function for an XR, if anything that it reads has changed, and applies
// what it answers. It reports whether that has changed anything.
func (s *simulation) reconcile(ctx context.Context, id identity) (bool, error) {
	xr, p := s.store.objects[id].object, s.xrs[id]
	if xr.GetAnnotations()[annotationPaused] == "true" {
		return false, nil
	}
	at := func() string { return stamp(s.now) + s.store.seen(id, p.requirements) }
	if p.seen == at() {
		return false, nil
	}
	g := &snapshot{xr: xr, input: s.inputs[xr.GetKind()], inputMade: s.made[xr.GetKind()], observed: s.store.observed(id), store: s.store}
	fn := s.fn
	if c, ok := fn.(Clocked); ok {
		fn = c.At(s.now)
	}
	rsp, err := callAgain(ctx, fn, g, p.requirements)
	if err != nil {
		return false, fmt.Errorf("cannot reconcile %s %s: %w", id.kind, id.nice(), err)
	}
	p.requirements = rsp.GetRequirements()
	p.seen, p.refused = at(), ""
	if isFatal(rsp) {
		p.refused = fatal(rsp)
		return false, nil
	}
	return s.apply(id, g, rsp)
}

// annotationPaused stops Crossplane from reconciling an XR.
const annotationPaused = "crossplane.io/paused"

func fatal(rsp *fnv1.RunFunctionResponse) string {
	for _, r := range rsp.GetResults() {
		if r.GetSeverity() == fnv1.Severity_SEVERITY_FATAL {
			return r.GetMessage()
		}
	}
	return ""
}

// apply writes the composed resources and the status, and deletes what is not desired.
func (s *simulation) apply(id identity, g *snapshot, rsp *fnv1.RunFunctionResponse) (bool, error) {
	out, err := compose(g, rsp)
	if err != nil {
		return false, err
	}
	moved, desired := false, map[string]bool{}
	for _, o := range out.composed {
		key := o.GetAnnotations()[composite.AnnotationResourceName]
		desired[key] = true
		if o.GetName() == "" {
			o.SetName(generatedName(o, g.xr, key))
		}
		before, _ := s.store.get(identityOf(o))
		o = s.reported(id, live(before, o, "", s.now))
		changed, err := s.store.put(o)
		if err != nil {
			return false, err
		}
		s.store.own(id, key, identityOf(o))
		moved = moved || changed
	}
	for _, key := range slices.Sorted(maps.Keys(g.observed)) {
		if desired[key] {
			continue
		}
		changed, err := s.forget(id, key)
		if err != nil {
			return false, err
		}
		moved = moved || changed
	}
	xr := *g.xr.DeepCopy()
	before, _, _ := unstructured.NestedMap(xr.Object, "status")
	status, _, _ := unstructured.NestedMap(out.xr.Object, "status")
	for _, c := range status["conditions"].([]any) { //nolint:forcetypeassert // compose always sets some.
		c.(map[string]any)["lastTransitionTime"] = stamp(s.now) //nolint:forcetypeassert // These are maps.
	}
	xr.Object["status"] = keepTimes(before, status)
	changed, err := s.store.put(xr)
	return moved || changed, err
}

// reported returns a composed resource as the controllers report it.
func (s *simulation) reported(xr identity, o object) object {
	if !isObject(o) {
		return running(*o.DeepCopy(), s.now)
	}
	owner, _ := s.store.get(xr)
	ref, fleet := configOfObject(o)
	return synced(*o.DeepCopy(), fleet && s.lost[ref], addressOf(owner, ref), s.now)
}

// forget deletes a composed resource. An Object in a lost cluster stays until the cluster
// answers, and Crossplane observes it no longer.
func (s *simulation) forget(xr identity, key string) (bool, error) {
	id := s.store.composed[xr][key]
	delete(s.store.composed[xr], key)
	o, exists := s.store.get(id)
	if !exists {
		return false, nil
	}
	if ref, fleet := configOfObject(o); isObject(o) && fleet && s.lost[ref] && deletes(o) {
		o = *o.DeepCopy()
		t := metaTime(s.now)
		o.SetDeletionTimestamp(&t)
		return s.store.put(o)
	}
	s.store.remove(id)
	return true, nil
}

// simulate places the services among the required objects in the InferenceClusters among
// them, as a control plane would in which every cluster is reachable. Afterwards g has all
// objects as they are then.
func simulate(ctx context.Context, fn Runner, g *snapshot) error {
	s := newSimulation(fn, latestTime(g.cluster))
	s.inputs[g.xr.GetKind()] = g.input
	for _, kind := range simulatedKinds {
		if inputKind(xrOf(kind)) == inputKind(g.xr) {
			s.inputs[kind] = g.input
		}
	}
	s.shareNamespace()
	xr := identityOf(g.xr)
	for _, o := range g.cluster {
		if err := s.add(o); err != nil {
			return err
		}
	}
	for key, o := range g.observed {
		s.store.own(xr, key, identityOf(o))
	}
	if err := s.settle(ctx, 0); err != nil {
		return err
	}
	refused := s.refusals()
	ids := slices.SortedFunc(maps.Keys(refused), identity.compare)
	// Of a cache, a service that names it says so.
	ids = slices.DeleteFunc(ids, func(id identity) bool { return id != xr && ofCache(xrOf(id.kind)) })
	var all []error
	for _, a := range sharedRefusals(refused, ids) {
		all = append(all, a.err())
	}
	if len(all) > 0 {
		return errors.Join(all...)
	}
	g.store, g.observed = s.store, s.store.observed(xr)
	g.xr, _ = s.store.get(xr)
	return nil
}

// latestTime is the latest time in the status and the metadata of objects. A simulation starts
// there, so that the same files give the same result on any day.
func latestTime(all []object) time.Time {
	latest, _ := time.Parse(time.RFC3339, conditionTime)
	for _, o := range all {
		var b strings.Builder
		_, _ = fmt.Fprint(&b, o.Object["metadata"], o.Object["status"], o.Object["data"]) // It never fails.
		for _, text := range aTime.FindAllString(b.String(), -1) {
			if t, err := time.Parse(time.RFC3339, text); err == nil && t.After(latest) {
				latest = t
			}
		}
	}
	return latest.UTC().Truncate(time.Second)
}
