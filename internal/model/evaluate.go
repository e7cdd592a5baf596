package model

import (
	"cmp"
	"fmt"
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/modelroute"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/remote"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// The conditions of an InferenceModel, besides Accepted.
const (
	// NoWarnings is False while the engines do not answer a target, as far as their commands say.
	NoWarnings = "NoWarnings"
	// Answered is True while the service is ready and its endpoint pickers have the model.
	Answered = "Answered"
)

// Reasons of the conditions.
const (
	reasonNoneFound       = "NothingSuspicious"
	reasonSuspicious      = "Suspicious"
	reasonAnswered        = "Answered"
	reasonNotResolved     = "NotResolved"
	reasonNoService       = "ServiceNotFound"
	reasonNotRouted       = "NotRouted"
	reasonNoPool          = "NoPool"
	reasonNotCreated      = "NotCreated"
	reasonUnknownTargets  = "UnknownTargets"
	reasonServiceNotReady = "ServiceNotReady"
)

// ConditionTypes are the types of all conditions, in the order of the response.
func ConditionTypes() []string {
	return []string{composite.Accepted, NoWarnings, AdaptersLoaded, Answered}
}

// evaluate returns the outcome of the call. The deferred objects are left out for now.
func evaluate(p *parsed, state *observedState, objects []kube.Object, left deferred) composite.Outcome {
	out := composite.Outcome{Ready: make(map[key.Key]bool, len(objects))}
	var missing []string
	inCluster := map[string]string{}
	for i := range state.loading {
		if cluster := state.pools[i].Target.Cluster; state.loading[i].waits {
			inCluster[cluster] = "the InferenceModelRewrite waits until the adapters are loaded: see the condition " + AdaptersLoaded
			missing = append(missing, text.InCluster(cluster, inCluster[cluster]))
		}
	}
	for _, o := range objects {
		if _, is := left[o.Key]; !is {
			out.Objects = append(out.Objects, o)
		}
		if o.Key.Kind == key.Job {
			continue // The condition AdaptersLoaded tells of them.
		}
		if o.Key.OnlyObserved() {
			out.Ready[o.Key] = true // It is there to be read, and nothing waits for it.
			continue
		}
		why := state.notReady(o, left)
		out.Ready[o.Key] = why == ""
		if why != "" {
			missing = append(missing, text.InCluster(o.Key.Cluster, why))
			inCluster[o.Key.Cluster] = why
		}
	}
	out.Status = status(p, state, inCluster)
	unknown := state.unknownTargets(p)
	answered := state.answered(p, missing, unknown)
	loaded := state.adaptersLoaded(p, left)
	for i := range state.loading {
		for _, j := range state.loading[i].jobs {
			out.Ready[j.key] = j.done
		}
	}
	out.Conditions = []composite.Condition{
		{Type: composite.Accepted, Status: composite.True, Reason: composite.ReasonAccepted},
		state.noWarnings(unknown),
		loaded,
		answered,
	}
	out.Stable = answered.Status == composite.True && loaded.Status == composite.True
	// The XR is ready once requests for the name are answered, by the targets of the spec.
	out.Deferred = !out.Stable
	return out
}

// notResolved is for a service of which nothing is known.
const notResolved = "Crossplane has not answered yet which services there are"

// kinds are those of the objects, as people read them.
var kinds = map[string]string{key.ConfigMap: "ConfigMap of the name", key.InferenceObjective: modelroute.KindObjective, key.InferenceModelRewrite: modelroute.KindRewrite}

// notReady says why an object is not as desired, or nothing.
func (r *observedState) notReady(o kube.Object, left deferred) string {
	observed := r.req.Observed(o.Key)
	if !observed.Exists() {
		return cmp.Or(left[o.Key], "the "+kinds[o.Key.Kind]+" is not created yet")
	}
	_, s := remote.Unwrap(observed)
	switch {
	case !s.Readable():
		return "the " + kinds[o.Key.Kind] + ": " + cmp.Or(text.OneLine(s.Message), s.Reason)
	case s.Outdated:
		return "the " + kinds[o.Key.Kind] + " is not up to date yet"
	}
	return ""
}

// unknownTargets are the targets that no engine answers, or that engines answer only if something else than this
// function has put an adapter into the service's adapterCache. It is nil where the engines may answer more
// than is known.
func (r *observedState) unknownTargets(p *parsed) []string {
	if r.service == nil || r.service.Status.ModelRouting == nil {
		return nil
	}
	m := r.service.Status.ModelRouting
	if !m.Complete && !m.AdapterCacheOnly {
		return nil
	}
	known, cached := modelroute.Known(m.ServedNames, m.AdapterNames), r.adapterCache() != nil
	for i := range r.adapters {
		known[r.adapters[i].target] = cached
	}
	return known.Unknown(&p.model)
}

// lacksCache tells that a target gets requests and has an adapter, and the service has no claim for adapters.
func (r *observedState) lacksCache() bool {
	return r.adapterCache() == nil && slices.ContainsFunc(r.adapters, func(a adapter) bool { return a.used })
}

func (r *observedState) noWarnings(unknown []string) composite.Condition {
	if len(unknown) == 0 {
		return composite.Condition{Type: NoWarnings, Status: composite.True, Reason: reasonNoneFound}
	}
	return composite.Condition{Type: NoWarnings, Status: composite.False, Reason: reasonSuspicious, Message: "spec.targets: " + r.whyUnknown(unknown)}
}

// whyUnknown says why targets are not answered, as far as is known.
func (r *observedState) whyUnknown(unknown []string) string {
	shown := make([]string, 0, len(unknown))
	for _, t := range unknown {
		shown = append(shown, text.Value(t))
	}
	if !r.service.Status.ModelRouting.Complete {
		return "engines of the service answer these " + modelroute.InCacheOnly + modelroute.Remedy + ": " + text.List(shown)
	}
	remedy := modelroute.Remedy
	if r.lacksCache() {
		remedy = "the service" + noCache
	}
	return "no engine of the service answers these: " + text.List(shown) + ": " + remedy
}

// answered tells whether requests for the name are answered.
func (r *observedState) answered(p *parsed, missing, unknown []string) composite.Condition {
	no := func(reason, message string) composite.Condition {
		return composite.Condition{Type: Answered, Status: composite.False, Reason: reason, Message: message}
	}
	name := "service " + p.spec.ServiceName
	switch {
	case !r.resolved:
		return composite.Condition{Type: Answered, Status: composite.Unknown, Reason: reasonNotResolved, Message: notResolved}
	case !r.held && len(r.pools) == 0:
		return no(reasonNotCreated, text.List(missing))
	case r.service == nil:
		return no(reasonNoService, fmt.Sprintf("there is no %s in namespace %s", name, p.identity.Namespace))
	case r.service.Status.ModelRouting == nil:
		return no(reasonNotRouted, name+" has no router that goes by the names of models, or waits for its ModelCache: "+modelroute.Routers)
	case len(r.pools) == 0:
		return no(reasonNoPool, name+" has no InferencePool yet")
	case len(missing) > 0:
		return no(reasonNotCreated, text.List(missing))
	case r.lacksCache():
		return no(reasonNoAdapterCache, name+noCache)
	case len(unknown) > 0 && !r.service.Status.ModelRouting.Complete:
		return composite.Condition{Type: Answered, Status: composite.Unknown, Reason: reasonUnknownTargets, Message: r.whyUnknown(unknown)}
	case len(unknown) > 0:
		return no(reasonUnknownTargets, r.whyUnknown(unknown))
	}
	if c, ready := r.serviceReady(); !ready {
		return no(reasonServiceNotReady, name+" is not ready: "+c)
	}
	return composite.Condition{Type: Answered, Status: composite.True, Reason: reasonAnswered}
}

// serviceReady tells whether the service is ready, and else why not.
func (r *observedState) serviceReady() (why string, ready bool) {
	c := apimeta.FindStatusCondition(r.service.Status.Conditions, "Ready")
	if c == nil {
		return "it has no condition Ready", false
	}
	return text.OneLine(c.Reason), c.Status == metav1.ConditionTrue
}

// status returns the status of a model. notReady says by the cluster why an object there is not as desired.
func status(p *parsed, state *observedState, notReady map[string]string) v1alpha1.InferenceModelStatus {
	st := v1alpha1.InferenceModelStatus{ModelName: p.model.Name, Adapters: state.adapterStatuses()}
	if !p.identity.Claimed {
		// The generation of a claim is another number than that of the XR behind it.
		st.ObservedGeneration = p.identity.Generation
	}
	differs := slices.ContainsFunc(state.pools, func(l remote.PoolLocation) bool { return l.Pool != state.pools[0].Pool })
	if p.model.Priority != nil && !differs {
		pool := p.localPool()
		if len(state.pools) > 0 {
			pool = state.pools[0].Pool
		}
		st.ObjectiveName = naming.ModelObject(pool, p.model.Name)
	}
	for i := range state.pools {
		cluster := state.pools[i].Target.Cluster
		if cluster == "" {
			continue
		}
		why := notReady[cluster]
		st.Clusters = append(st.Clusters, v1alpha1.ModelClusterStatus{Name: cluster, Ready: why == "", Message: why})
	}
	return st
}
