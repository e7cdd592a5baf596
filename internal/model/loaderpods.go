package model

import (
	"slices"

	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/remote"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// maxLoaderPods is how many pods of Jobs Objects observe in one other cluster.
const maxLoaderPods = 8

// findPods decides in which other clusters the pods of Jobs are found, and which of them are observed.
func (r *observedState) findPods() {
	for i := range r.pools {
		if l := &r.loading[i]; r.pools[i].Target.Remote() && slices.ContainsFunc(l.jobs, func(j job) bool { return j.active }) {
			members, _ := r.req.Required(loaderPodsRequirement(r.pools[i].Target.Cluster))
			l.findsPods, l.podNames = true, remote.PodNames(members, maxLoaderPods)
		}
	}
}

// observed returns what finds and observes the pods of the Jobs in another cluster.
func (l *loading) observed(p *parsed, t scheduling.Target) ([]kube.Object, error) {
	var jobs []remote.JobPods
	for i := range l.jobs {
		if j := &l.jobs[i]; j.active {
			jobs = append(jobs, remote.JobPods{Job: j.name, Failed: j.failedPods})
		}
	}
	o, err := remote.LoaderPods(loaderPodsKey(t.Cluster), p.loaderName(), jobs, p.identity, t)
	if err != nil {
		return nil, err
	}
	all := []kube.Object{o}
	for _, name := range l.podNames {
		if o, err = remote.WrapPod(key.LoaderPod(t.Cluster, name), name, p.identity, t); err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	return all, nil
}

// laterLoaderObjects is how many objects are rendered later to find and observe the pods of Jobs.
func (r *observedState) laterLoaderObjects() int {
	n := 0
	for i := range r.loading {
		if l := &r.loading[i]; r.pools[i].Target.Remote() && len(l.jobs) > 0 {
			n += 1 + maxLoaderPods
			if l.findsPods {
				n -= 1 + len(l.podNames)
			}
		}
	}
	return n
}

// loaderPods returns the pods that load adapters in a cluster. In another one only their labels tell that they do: a
// collection says what was there when it looked.
func (r *observedState) loaderPods(p *parsed, l *loading, cluster string) []incoming.Object {
	if cluster == "" {
		pods, _ := r.req.Required(loadersRequirement)
		return pods
	}
	var all []incoming.Object
	for _, name := range l.podNames {
		found, state := remote.Unwrap(r.req.Observed(key.LoaderPod(cluster, name)))
		if state.Readable() && found.Name() == name && loaderLabel.Text(found) == p.loaderName() {
			all = append(all, found)
		}
	}
	return all
}

// loaderLabel is the label of pods that load adapters.
var loaderLabel = incoming.NewPath("metadata", "labels", naming.LabelModelLoader)
