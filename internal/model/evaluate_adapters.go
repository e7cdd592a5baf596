package model

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/remote"
	"github.com/fusioninfer/function-inferenceservice/internal/service/observe"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// AdaptersLoaded is True once the adapters of all targets are loaded where the service has a pool. It is True
// without adapters, too. Until then, requests go to the former targets.
const AdaptersLoaded = "AdaptersLoaded"

// Reasons of the condition AdaptersLoaded.
const (
	reasonNoAdapters     = "NoAdapters"
	reasonLoaded         = "Loaded"
	reasonLoading        = "Loading"
	reasonLoadFailed     = "LoadFailed"
	reasonNoAdapterCache = "NoAdapterCache"
)

// noCache says of a service that no adapter can be loaded for it, and what to do.
const noCache = " has no spec.adapterCache into which an adapter could be loaded: have it added there, or leave out spec.targets[].adapter and name adapters of the engines' --lora-modules"

// adaptersLoaded tells whether the adapters are loaded, and else what is in the way.
func (r *observedState) adaptersLoaded(p *parsed, left deferred) composite.Condition {
	no := func(reason, message string) composite.Condition {
		return composite.Condition{Type: AdaptersLoaded, Status: composite.False, Reason: reason, Message: message}
	}
	name := "service " + p.spec.ServiceName
	switch {
	case len(r.adapters) == 0:
		return composite.Condition{Type: AdaptersLoaded, Status: composite.True, Reason: reasonNoAdapters}
	case !r.resolved:
		return composite.Condition{Type: AdaptersLoaded, Status: composite.Unknown, Reason: reasonNotResolved, Message: notResolved}
	case r.service == nil:
		return no(reasonNoService, fmt.Sprintf("there is no %s in namespace %s", name, p.identity.Namespace))
	case r.adapterCache() == nil:
		return no(reasonNoAdapterCache, name+noCache)
	case len(r.pools) == 0:
		return no(reasonNoPool, name+" has no InferencePool yet")
	}
	var failed, loading []string
	for i := range r.loading {
		l, cluster := &r.loading[i], r.pools[i].Target.Cluster
		failures := observe.LoaderFailures(r.loaderPods(p, l, cluster))
		if l.claimUID == "" && len(l.loaded) < len(r.adapters) {
			loading = append(loading, text.InCluster(cluster, "the claim for adapters is not bound yet"))
		}
		for j := range l.jobs {
			job := &l.jobs[j]
			if job.done {
				continue
			}
			what := "target " + text.Value(job.adapter.target) + ": "
			if reasons := failures[job.name]; len(reasons) > 0 {
				failed = append(failed, text.InCluster(job.key.Cluster, what+text.Join(reasons, text.MaxMessage)+", and it tries again"))
				continue
			}
			loading = append(loading, text.InCluster(job.key.Cluster, what+r.progress(job, left)))
		}
	}
	switch {
	case len(failed) > 0:
		return no(reasonLoadFailed, text.Join(failed, text.MaxMessage))
	case len(loading) > 0:
		return no(reasonLoading, text.Join(loading, text.MaxMessage))
	case !r.allLoaded():
		// The Jobs of a call are limited, and one that has failed is left out once.
		return no(reasonLoading, "Jobs are about to be made")
	}
	return composite.Condition{Type: AdaptersLoaded, Status: composite.True, Reason: reasonLoaded}
}

// allLoaded tells whether each adapter is loaded for each pool.
func (r *observedState) allLoaded() bool {
	for i := range r.loading {
		if len(r.loading[i].loaded) < len(r.adapters) {
			return false
		}
	}
	return true
}

// progress says how far a Job is that is not complete.
func (r *observedState) progress(j *job, left deferred) string {
	observed := r.req.Observed(j.key)
	if why := left[j.key]; why != "" {
		return why
	}
	if !observed.Exists() {
		return "Job " + j.name + " is not created yet"
	}
	found, state := remote.Unwrap(observed)
	if !state.Readable() {
		return "Job " + j.name + ": " + text.OneLine(state.Message)
	}
	s := jobView.In(found)
	suspended := apimeta.IsStatusConditionTrue(s.Status.Conditions, string(batchv1.JobSuspended))
	why := observe.JobWaits(suspended, s.Status.Active, s.Status.Terminating)
	switch {
	case why != "":
		return "Job " + j.name + why
	case s.Status.Ready == 0 && j.key.Cluster != "":
		return "the pod of Job " + j.name + " does not run at the moment: see the pods of the Job there"
	case s.Status.Ready == 0:
		return "the pod of Job " + j.name + " does not run at the moment: if that lasts, its events say why"
	}
	return "Job " + j.name + " loads it"
}

// adapterStatuses say which directories the adapters have, and in how many clusters they are loaded.
func (r *observedState) adapterStatuses() []v1alpha1.AdapterStatus {
	var all []v1alpha1.AdapterStatus
	for i := range r.adapters {
		a := &r.adapters[i]
		if a.directory == "" {
			continue
		}
		st := v1alpha1.AdapterStatus{Name: a.target, Directory: a.directory}
		for j := range r.loading {
			for _, d := range r.loading[j].loaded {
				if d == a.directory {
					st.LoadedClusters++
				}
			}
		}
		all = append(all, st)
	}
	return all
}
