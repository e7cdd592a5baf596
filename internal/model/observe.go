package model

import (
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/remote"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// An observedState is what a request shows of a model's service, its pools, and what the model has composed.
type observedState struct {
	req incoming.Request

	// service is nil if it does not exist, or if that is not known. resolved tells whether it is known.
	service  *service
	resolved bool
	// held tells that the name lock is observed.
	held bool
	// own are the pools in which the model is, by their clusters.
	own map[string]remote.PoolLocation
	// pools are those that have the model, or get it, in the order of their clusters.
	pools []remote.PoolLocation
	// adapters are those of the targets, and loading is how far they are in each of the pools. Without
	// adapters both are empty.
	adapters []adapter
	loading  []loading
	// moved are the clusters in which the model is where the pool is no longer, because cluster or namespace have changed.
	moved map[string]bool
}

// A service is the part of an InferenceService that is read. Only Crossplane writes its status.
type service struct {
	Metadata struct {
		UID string `json:"uid"`
	} `json:"metadata"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
		Clusters   []struct {
			Name  string                  `json:"name"`
			State v1alpha1.PlacementState `json:"state"`
		} `json:"clusters"`
		ServedModels []struct {
			Name string `json:"name"`
		} `json:"servedModels"`
		ModelRouting *v1alpha1.ModelRoutingStatus `json:"modelRouting"`
		AdapterCache *v1alpha1.AdapterCacheStatus `json:"adapterCache"`
	} `json:"status"`
}

var serviceView = incoming.NewView[service]()

func observeModel(req incoming.Request, p *parsed, now time.Time) (*observedState, error) {
	r := &observedState{req: req, held: req.Observed(lockKey).Exists(), moved: map[string]bool{}}
	r.readOwn(p)
	r.readService()
	r.readPools(p)
	return r, r.readAdapters(p, now)
}

// readService reads the service. Behind a claim that was recreated there may be two: one of them is being
// deleted.
func (r *observedState) readService() {
	found, resolved := r.req.Required(serviceRequirement)
	r.resolved = resolved
	if len(found) == 0 {
		return
	}
	o := found[0]
	if i := slices.IndexFunc(found, func(o incoming.Object) bool { return o.DeletionTimestamp() == "" }); i >= 0 {
		o = found[i]
	}
	s := serviceView.In(o)
	r.service = &s
}

// readOwn finds the pools in which the model is. The one beside the XR has a name that never changes, so an edit of what
// refers to it moves nothing.
func (r *observedState) readOwn(p *parsed) {
	r.own = map[string]remote.PoolLocation{}
	for _, k := range r.req.ObservedKeys() {
		if k.Kind != key.InferenceModelRewrite && k.Kind != key.InferenceObjective {
			continue
		}
		if k.Cluster == "" {
			r.own[""] = remote.PoolLocation{Target: scheduling.Target{Namespace: p.identity.Namespace}, Pool: p.localPool()}
		} else if l, ok := remote.PoolAt(k, r.req.Observed(k)); ok {
			r.own[k.Cluster] = l
		}
	}
}

// readPools finds the pools. The model stays in a pool as long as there is one, and as long as nobody
// knows. The pool of a service has one name in a namespace, so an edit of what refers to it moves nothing.
// The model gets into a pool only while it holds the name, and only if the service that it names controls
// the pool: an Object of that pool says by which credentials the model gets into which namespace.
func (r *observedState) readPools(p *parsed) {
	found, all := map[string]bool{}, map[string]remote.PoolLocation{}
	for requirement, o := range r.poolObjects(p) {
		k := composite.KeyOf(o)
		if requirement == localRequirement {
			k.Cluster = ""
		}
		l, ok := remote.PoolAt(k, o)
		was, there := r.own[k.Cluster]
		found[k.Cluster] = true
		switch {
		case !ok || !there && !(r.held && r.controls(o)):
			continue
		case there && was.Target != l.Target:
			// One that somebody else controls says nothing.
			r.moved[k.Cluster] = r.moved[k.Cluster] || r.controls(o)
			continue
		}
		all[k.Cluster] = l
	}
	for cluster, l := range r.own {
		// A pool that is there, and cannot be read, is where it was.
		if _, is := all[cluster]; !is && !r.moved[cluster] && (found[cluster] || !r.poolsKnown(cluster)) {
			all[cluster] = l
		}
	}
	for _, cluster := range slices.Sorted(maps.Keys(all)) {
		r.pools = append(r.pools, all[cluster])
	}
}

// poolsKnown tells whether Crossplane has answered whether there is a pool in a cluster.
func (r *observedState) poolsKnown(cluster string) bool {
	requirement := remoteRequirement
	if cluster == "" {
		requirement = localRequirement
	}
	_, known := r.req.Required(requirement)
	return known
}

// poolObjects yields the pools that Crossplane has found, each with its requirement.
func (r *observedState) poolObjects(p *parsed) func(func(string, incoming.Object) bool) {
	return func(yield func(string, incoming.Object) bool) {
		local, _ := r.req.Required(localRequirement)
		for _, o := range local {
			if o.Name() == p.localPool() && !yield(localRequirement, o) {
				return
			}
		}
		others, _ := r.req.Required(remoteRequirement)
		for _, o := range others {
			if k := composite.KeyOf(o); k == key.New(k.Cluster, key.InferencePool) && k.Cluster != "" && !yield(remoteRequirement, o) {
				return
			}
		}
	}
}

// controls tells whether the service controls an object.
func (r *observedState) controls(o incoming.Object) bool {
	return r.service != nil && r.service.Metadata.UID != "" && composite.ControllerUID(o) == r.service.Metadata.UID
}

// forbidden are changes of the spec that the schema refuses too, and targets that an owner may not have.
func (r *observedState) forbidden(p *parsed) field.ErrorList {
	spec := field.NewPath("spec")
	var errs field.ErrorList
	if lock := r.req.Observed(lockKey); r.held && lock.Name() != p.lockName() {
		errs = append(errs, field.Forbidden(spec.Child("modelName"),
			"neither serviceName nor modelName can be changed: create another InferenceModel, and delete this one once the other is answered"))
	}
	whose := r.nameOfEngines(p.model.Name)
	if whose == "" {
		return errs
	}
	for _, t := range p.spec.Targets {
		if t.Name != p.model.Name || t.Adapter != nil {
			errs = append(errs, field.Forbidden(spec.Child("targets"), fmt.Sprintf(
				"must be left out: %s is the name of %s that the engines of service %s serve, whose requests only the service may give to others, in servedModels of its router",
				text.Value(p.model.Name), whose, p.spec.ServiceName)))
			break
		}
	}
	return errs
}

// nameOfEngines says what the engines of the service serve under a name: their model, or an adapter that they load when they start. It is
// empty if they serve neither.
func (r *observedState) nameOfEngines(name string) string {
	if r.service == nil || r.service.Status.ModelRouting == nil {
		return ""
	}
	switch m := r.service.Status.ModelRouting; {
	case slices.Contains(m.ServedNames, name):
		return "the model"
	case slices.Contains(m.AdapterNames, name):
		return "an adapter"
	}
	return ""
}

// nameConflicts refuses a model name that another InferenceModel, or the service itself, has.
func (r *observedState) nameConflicts(p *parsed) field.ErrorList {
	at := field.NewPath("spec", "modelName")
	var errs field.ErrorList
	if r.service != nil {
		for _, m := range r.service.Status.ServedModels {
			if m.Name == p.model.Name {
				errs = append(errs, field.Invalid(at, text.Value(p.model.Name), fmt.Sprintf("service %s has this name in servedModels of its router: choose another name, or have it removed there", p.spec.ServiceName)))
				break
			}
		}
	}
	if r.held {
		return errs
	}
	existing, _ := r.req.Required(composite.Existing(lockKey))
	for _, o := range existing {
		if whose := r.conflict(p, lockKey, o); whose != "" {
			errs = append(errs, field.Invalid(at, text.Value(p.model.Name), fmt.Sprintf("%s has this name of service %s already: choose another name", whose, p.spec.ServiceName)))
		}
	}
	return errs
}

// conflict says who has the name that the object of a key needs. It is empty if that is the model itself,
// which has just composed it.
func (r *observedState) conflict(p *parsed, k key.Key, existing incoming.Object) string {
	whose := composite.Controller(existing)
	switch {
	case whose == nil:
		return fmt.Sprintf("%s %s, which belongs to nobody,", existing.Kind(), existing.Name())
	case whose.UID == "" || whose.UID != p.identity.UID:
		return fmt.Sprintf("%s %s", text.Value(whose.Kind), text.Value(whose.Name))
	case composite.KeyOf(existing) != k:
		return "another object of this InferenceModel"
	}
	return ""
}
