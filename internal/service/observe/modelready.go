package observe

import (
	"cmp"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/remote"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
	"github.com/fusioninfer/function-inferenceservice/internal/service/require"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// ModelReady is True once the weights of spec.model are in the claims of all clusters that the
// service runs in. It is True without a cache, too: then the engines load the weights.
const ModelReady = "ModelReady"

// Reasons of the condition ModelReady.
const (
	// ReasonNoCache: the engines load the weights themselves.
	ReasonNoCache = "NoCache"
	// ReasonLoaded: the weights are there.
	ReasonLoaded = "Loaded"
	// ReasonLoading: Jobs load them.
	ReasonLoading = "Loading"
	// ReasonLoadFailed: a Job has failed, and tries again.
	ReasonLoadFailed = "LoadFailed"
)

// loading says how the newest weights come to a cluster.
func (e *evaluator) loading(c *plan.ClusterPlan) (state v1alpha1.CacheState, message string) {
	l := c.Loading
	switch {
	case l.Done:
		return v1alpha1.CacheReady, ""
	case l.Shared != nil:
		return l.Shared.State, text.InCluster(c.Target.Cluster, l.Shared.Message)
	case !l.Renders:
		s := e.byKey[e.plan.ClaimKey(c)]
		if s != nil && s.reason == ReasonDeleting {
			return v1alpha1.CacheLoading, s.String() + ": " + s.message + ", which takes until no pod uses it: " + e.anotherClaim()
		}
		if s != nil && s.reason != "" {
			return v1alpha1.CacheLoading, s.String() + ": " + s.message
		}
		if s != nil && e.state.claim(s.key).Lost {
			return v1alpha1.CacheFailed, s.String() + ": has lost its volume, and the weights with it: delete it, and it is made anew once no pod uses it, or " + e.anotherClaim()
		}
		return v1alpha1.CacheLoading, text.InCluster(c.Target.Cluster, "Job "+l.JobName+" is about to be made")
	}
	s := e.byKey[l.Job]
	if s == nil || s.reason == ReasonNotCreated {
		return v1alpha1.CacheLoading, text.InCluster(c.Target.Cluster, "Job "+l.JobName+": not created yet")
	}
	pods, progress := e.state.loader(c)
	switch {
	case len(pods.failures) > 0:
		return v1alpha1.CacheFailed, text.Join(pods.failures, text.MaxMessage) + progress + ", and it tries again"
	case s.reason == ReasonFailed:
		return v1alpha1.CacheFailed, s.String() + ": " + s.message + progress
	case s.reason == ReasonNotReady || s.reason == "":
		return v1alpha1.CacheLoading, s.String() + e.state.loads(c, pods) + progress
	}
	return v1alpha1.CacheLoading, s.String() + ": " + s.message + progress
}

// anotherClaim says what makes another claim.
func (e *evaluator) anotherClaim() string {
	if e.plan.Service.OfCache {
		return "another ModelCache has another claim"
	}
	return "a change of spec.model.cache makes another claim"
}

// modelReady tells of the clusters that have failed, or else of all that load.
func (e *evaluator) modelReady() composite.Condition {
	if e.plan.Weights == nil && e.plan.Shared == nil {
		message := ""
		if e.plan.Downloads {
			message = "each pod downloads the weights at each start: set spec.model.cache to load them once before, or spec.model.cacheRef to share them"
		}
		return composite.Condition{Type: ModelReady, Status: composite.True, Reason: ReasonNoCache, Message: message}
	}
	said := map[v1alpha1.CacheState][]string{}
	for i := range e.plan.Clusters {
		if c := &e.plan.Clusters[i]; c.Loading != nil && c.Loading.Wanted && !c.Leaving {
			state, message := e.loading(c)
			said[state] = append(said[state], message)
		}
	}
	failed, loading := said[v1alpha1.CacheFailed], said[v1alpha1.CacheLoading]
	switch {
	case len(failed) > 0:
		return composite.Condition{Type: ModelReady, Status: composite.False, Reason: ReasonLoadFailed, Message: text.Join(failed, text.MaxMessage)}
	case len(loading) > 0:
		return composite.Condition{Type: ModelReady, Status: composite.False, Reason: ReasonLoading, Message: text.Join(loading, text.MaxMessage)}
	case len(said) == 0 && e.plan.LoadsOnDemand && e.notNeeded():
		return composite.Condition{Type: ModelReady, Status: composite.True, Reason: scheduling.ReasonNotNeeded, Message: "no service that names the ModelCache is placed so far"}
	case len(said) == 0 && (e.plan.Service.OfCache || slices.ContainsFunc(e.plan.Clusters, func(c plan.ClusterPlan) bool { return len(c.Pending) > 0 })):
		return composite.Condition{Type: ModelReady, Status: composite.False, Reason: ReasonLoading, Message: "the weights are loaded where capacity is reserved: see the condition Placed"}
	}
	return composite.Condition{Type: ModelReady, Status: composite.True, Reason: ReasonLoaded}
}

// notNeeded tells that no cluster is asked for a place.
func (e *evaluator) notNeeded() bool {
	return e.plan.Schedule != nil && !slices.ContainsFunc(e.plan.Schedule.Assignments, func(a scheduling.Assignment) bool { return a.Reason != scheduling.ReasonNotNeeded })
}

// modelStatus says which claims have weights. What it says of weights that are loaded is read by the
// next call.
func (e *evaluator) modelStatus() *v1alpha1.ModelStatus {
	var all []v1alpha1.CacheStatus
	for i := range e.plan.Clusters {
		c := &e.plan.Clusters[i]
		for _, cache := range c.Caches {
			if e.plan.Weights != nil && cache.Weights == e.plan.Weights.Hash {
				continue
			}
			if s, ok := e.state.former(c, cache); ok {
				all = append(all, s)
			}
		}
		if e.plan.Weights != nil && c.Loading != nil && c.Loading.Wanted {
			all = append(all, e.newestStatus(c))
		}
	}
	var used *v1alpha1.SharedCacheStatus
	if s := e.plan.Shared; s != nil {
		used = s.Used
	}
	if len(all) == 0 && used == nil {
		return nil
	}
	return &v1alpha1.ModelStatus{Caches: all, Shared: used}
}

// newestStatus is the status of the newest weights in a cluster.
func (e *evaluator) newestStatus(c *plan.ClusterPlan) v1alpha1.CacheStatus {
	state, message := e.loading(c)
	s := v1alpha1.CacheStatus{Cluster: c.Target.Cluster, ClaimName: e.plan.Weights.ClaimName, Weights: e.plan.Weights.Hash, State: state, Message: text.Cut(message, text.MaxMessage)}
	said, _ := e.state.loaded(c, s.Weights, s.ClaimName)
	switch at := slices.IndexFunc(c.Caches, func(x plan.Cache) bool { return x.Loaded }); {
	case state != v1alpha1.CacheReady:
		s.ClaimUID = said // Pods may use a claim that had all of the weights once.
	case at >= 0:
		s.ClaimUID = cmp.Or(c.Caches[at].UID, said) // The cluster may not answer.
	default:
		s.ClaimUID = c.Loading.ClaimUID
	}
	return s
}

// former returns what was said of former weights. Pods began to use them when they were complete.
func (r *ObservedState) former(c *plan.ClusterPlan, cache plan.Cache) (v1alpha1.CacheStatus, bool) {
	uid, ok := r.loaded(c, cache.Weights, cache.ClaimName)
	return v1alpha1.CacheStatus{Cluster: c.Target.Cluster, ClaimName: cache.ClaimName, Weights: cache.Weights, State: v1alpha1.CacheReady, ClaimUID: uid}, ok
}

// loads says what a loading Job does at the moment. A pod that no node takes often waits for the volume of its
// claim: the class may have none that several nodes can mount.
func (r *ObservedState) loads(c *plan.ClusterPlan, pods podFacts) string {
	found, state := remote.Unwrap(r.req.Observed(c.Loading.Job))
	j := jobView.In(found)
	suspended := find(j.Status.Conditions, string(batchv1.JobSuspended)).Status == composite.True
	why := JobWaits(suspended, j.Status.Active, j.Status.Terminating)
	switch {
	case !state.Readable():
	case why != "":
		return why
	case pods.unscheduled > 0 && r.lacksNamedClaim(c):
		return " has a pod that waits for claim " + r.plan.Weights.ClaimName + ", which does not exist in namespace " + c.Target.Namespace
	case pods.unscheduled > 0:
		for _, claim := range r.Weights(c).Claims {
			if claim.Key == r.plan.ClaimKey(c) && !claim.Bound {
				return " has a pod that waits for a node, and claim " + claim.Name + " has no volume: if that lasts, the events of both say why"
			}
		}
		return " has a pod that waits for a node: if that lasts, its events say why"
	case pods.idle > 0:
		return " has a pod that is not started: if that lasts, its events say why"
	}
	return " loads them"
}

// JobWaits says, behind the name of a loading Job, why it has no pod, by what its status says. It is empty if the Job has one.
func JobWaits(suspended bool, active, terminating int32) string {
	switch {
	case suspended:
		return " is suspended, for example by Kueue: whoever did that has to let it run"
	case active != 0:
		return ""
	case terminating > 0:
		return " has a pod that is being deleted, and gets another one once that is gone: if that lasts, its node does not answer"
	}
	return " has no pod so far: if that lasts, its events say why"
}

// loader returns the facts about the pods of a loading Job, and how much they have said last that is loaded. In another cluster the
// pods may not be known.
func (r *ObservedState) loader(c *plan.ClusterPlan) (facts podFacts, progress string) {
	pods := r.loaderPods(c)
	if c.Target.Remote() && len(pods) == 0 {
		found, state := remote.Unwrap(r.req.Observed(c.Loading.Job))
		j := jobView.In(found)
		if state.Readable() && j.Status.Active > 0 && j.Status.Ready == 0 {
			progress = ", and its pod does not run at the moment: see the pods of the Job there"
		}
		return facts, progress
	}
	said, last := []string{}, loadedSoFar{}
	active := slices.ContainsFunc(pods, func(p *pod) bool { return p.Status.Phase == corev1.PodPending || p.Status.Phase == corev1.PodRunning })
	for _, p := range pods {
		last.read(p)
		if p.Status.Phase == corev1.PodFailed && active {
			// The Job has made another pod, such as after an eviction. It keeps this one until it is complete.
			said = append(said, ", after "+word(p.Status.Reason, "Failed"))
			continue
		}
		p.Status.InitContainerStatuses = slices.DeleteFunc(p.Status.InitContainerStatuses, containerStatus.saysProgress)
		facts.add(p)
		for _, s := range p.Status.ContainerStatuses {
			if failed := s.LastState.Terminated; failed != nil && s.State.Waiting == nil && s.State.Terminated == nil {
				said = append(said, ", after "+failed.failureOrEnd())
			}
		}
	}
	for i := range facts.failures {
		facts.failures[i] = text.InCluster(c.Target.Cluster, facts.failures[i])
	}
	// The order of the pods is any.
	slices.Sort(facts.failures)
	slices.Sort(said)
	return facts, strings.Join(said, "") + last.String()
}

// loaderPods reads the pods of a loading Job. In another cluster only the labels of what an Object observes tell
// that it is one: a collection says what was there when it looked.
func (r *ObservedState) loaderPods(c *plan.ClusterPlan) []*pod {
	var found []incoming.Object
	if c.Target.Remote() {
		for _, name := range c.Loading.PodNames {
			if o, state := remote.Unwrap(r.req.Observed(key.LoaderPod(c.Target.Cluster, name))); state.Readable() && o.Name() == name {
				found = append(found, o)
			}
		}
	} else {
		found, _ = r.req.Required(require.Loader(c.Loading.Job))
	}
	var all []*pod
	for _, o := range found {
		p := podView.In(o)
		if !c.Target.Remote() || p.Metadata.Labels[naming.LabelModelLoader] == r.plan.Weights.LoaderName {
			all = append(all, &p)
		}
	}
	return all
}

// failureOrEnd is how a container ended.
func (t *terminated) failureOrEnd() string {
	if f := t.failure(); f != "" {
		return f
	}
	return "an end without an error"
}

// jobDone finds a loading Job that is not complete.
func jobDone(s *objectState) (string, string, bool) {
	if c := find(s.view.Status.Conditions, string(batchv1.JobFailed)); c.Status == composite.True {
		return ReasonFailed, "has failed (" + word(c.Reason, "Failed") + "), and is made anew some minutes later", true
	}
	return ReasonNotReady, "is not complete", find(s.view.Status.Conditions, string(batchv1.JobComplete)).Status != composite.True
}
