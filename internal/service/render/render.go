/*
Package render renders the objects of a plan. Each package below it knows one family of
external APIs. This package collects their objects, adds the platform team's labels and
annotations, and wraps those that belong to other clusters.
*/
package render

import (
	"errors"
	"fmt"
	"slices"

	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/remote"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
	"github.com/fusioninfer/function-inferenceservice/internal/service/render/disruption"
	"github.com/fusioninfer/function-inferenceservice/internal/service/render/endpoint"
	"github.com/fusioninfer/function-inferenceservice/internal/service/render/fleet"
	"github.com/fusioninfer/function-inferenceservice/internal/service/render/gang"
	"github.com/fusioninfer/function-inferenceservice/internal/service/render/monitor"
	"github.com/fusioninfer/function-inferenceservice/internal/service/render/network"
	"github.com/fusioninfer/function-inferenceservice/internal/service/render/router"
	"github.com/fusioninfer/function-inferenceservice/internal/service/render/scaling"
	"github.com/fusioninfer/function-inferenceservice/internal/service/render/weights"
	"github.com/fusioninfer/function-inferenceservice/internal/service/render/workload"
)

// A Renderer renders the objects of one plan.
type Renderer struct {
	plan      *plan.Plan
	workloads *workload.Renderer
	weights   *weights.Renderer
}

// New renders what the replicas of each role have in common.
func New(p *plan.Plan) (*Renderer, error) {
	workloads, err := workload.New(p)
	if err != nil {
		return nil, err
	}
	loaders, err := weights.New(p)
	if err != nil {
		return nil, err
	}
	return &Renderer{plan: p, workloads: workloads, weights: loaders}, nil
}

// Revisions of the pods' templates, by the names of their roles.
func (r *Renderer) Revisions() map[string]string { return r.workloads.Revisions() }

// Loader is the hash of what the loading Job is made from. It is empty for a service without a cache.
func (r *Renderer) Loader() string { return r.weights.Hash() }

// Example renders the LeaderWorkerSet of a replica of a role that may not exist. It is about as large as any other.
func (r *Renderer) Example(role *plan.Role) (kube.Object, error) {
	p := r.plan
	cluster := &plan.ClusterPlan{Base: p.Service.Name}
	cluster.Target.Namespace = p.Service.Namespace
	if len(p.Clusters) > 0 {
		cluster = &p.Clusters[0]
	}
	name := fmt.Sprintf("%s-%d", role.Name, role.Most())
	o, err := r.workloads.LeaderWorkerSet(cluster, &plan.Replica{
		Role: role, Name: cluster.Base + "-" + name, Task: name, PodGroup: cluster.Base, Index: role.Most(), Nodes: role.Nodes,
	})
	return decorated(p, o), err
}

// A rendering collects objects.
type rendering struct {
	objects []kube.Object
	// err has all errors. With one, the objects do not count.
	err error
}

func (r *rendering) add(o kube.Object, err error) { r.addAll([]kube.Object{o}, err) }

func (r *rendering) addAll(objects []kube.Object, err error) {
	if r.err = errors.Join(r.err, err); err == nil {
		r.objects = append(r.objects, objects...)
	}
}

// decorated returns an object with the platform team's labels and annotations.
func decorated(p *plan.Plan, o kube.Object) kube.Object {
	o.Resource = composite.Decorate(o.Resource, p.Labels, p.Annotations)
	return o
}

// Render returns all objects of the plan.
func (r *Renderer) Render() ([]kube.Object, error) {
	p, all := r.plan, &rendering{}
	all.addAll(fleet.Render(p))
	all.addAll(scaling.Render(p))
	for i := range p.Clusters {
		cluster := &p.Clusters[i]
		if cluster.NotStarted {
			continue
		}
		in := r.renderCluster(cluster)
		if cluster.Target.Remote() {
			in = wrapped(p, cluster, in)
		}
		all.addAll(in.objects, in.err)
		renderObserved(all, p, cluster)
	}
	for i, o := range all.objects {
		all.objects[i] = decorated(p, o)
	}
	return all.objects, all.err
}

// wrapped returns the objects of another cluster as Objects.
func wrapped(p *plan.Plan, cluster *plan.ClusterPlan, in *rendering) *rendering {
	all := &rendering{err: in.err}
	for _, o := range in.objects {
		all.add(remote.Wrap(decorated(p, o), p.Service, cluster.Target, cluster.Abandoned))
	}
	return all
}

// renderObserved renders the Objects that only observe what others make for the replicas in another
// cluster: how Kueue admits them, pods that may have failed, pods that load weights, and the claim for weights
// that the service names.
func renderObserved(all *rendering, p *plan.Plan, cluster *plan.ClusterPlan) {
	if cluster.Target.Remote() && p.ReadsClaim(cluster) {
		all.add(remote.WrapClaim(p.NamedClaimKey(cluster), p.Weights.ClaimName, p.Service, cluster.Target))
	}
	if l := cluster.Loading; l != nil && l.FindsPods {
		jobs := []remote.JobPods{{Job: l.JobName, Failed: l.FailedPods}}
		all.add(remote.LoaderPods(p.LoaderPodsKey(cluster), p.Weights.LoaderName, jobs, p.Service, cluster.Target))
		for _, pod := range l.PodNames {
			all.add(remote.WrapPod(key.LoaderPod(cluster.Target.Cluster, pod), pod, p.Service, cluster.Target))
		}
	}
	for r := range cluster.Replicas() {
		if r.Workload != "" {
			all.add(remote.WrapWorkload(cluster.WorkloadKey(r), r.Name, r.Workload, p.Service, cluster.Target))
		}
		if !cluster.Target.Remote() {
			continue
		}
		for i := range r.PodsRead {
			all.add(remote.WrapPod(cluster.PodKey(r, i), r.PodName(i), p.Service, cluster.Target))
		}
	}
}

// renderCluster renders the service in one cluster, as objects of that cluster.
func (r *Renderer) renderCluster(cluster *plan.ClusterPlan) *rendering {
	p, all := r.plan, &rendering{}
	all.addAll(r.weights.Render(cluster))
	if p.Router != nil {
		all.addAll(router.Render(p, cluster))
	}
	if p.Network != nil {
		all.add(network.Render(p, cluster))
	}
	if p.PodMonitors != nil {
		all.addAll(monitor.Render(p, cluster))
	}
	if cluster.Endpoint != nil {
		all.add(endpoint.Render(cluster))
	}
	r.renderGroups(all, cluster)
	all.addAll(disruption.Render(cluster))
	all.addAll(router.RenderSidecarAccess(p, cluster))
	return all
}

// renderGroups renders the groups of the service in one cluster, each after its gang.
func (r *Renderer) renderGroups(all *rendering, cluster *plan.ClusterPlan) {
	for _, g := range slices.Concat(cluster.Groups, cluster.LeftOut) {
		if g.PodGroup != nil {
			all.add(gang.Render(cluster, &g, r.plan.Service.Grouped))
		}
		for j := range g.Replicas {
			all.add(r.workloads.LeaderWorkerSet(cluster, &g.Replicas[j]))
		}
	}
}

// Without returns the objects that are not deferred.
func Without(objects []kube.Object, deferred []plan.Deferred) []kube.Object {
	if len(deferred) == 0 {
		return objects
	}
	keys := make(map[key.Key]bool, len(deferred))
	for _, d := range deferred {
		keys[d.Key] = true
	}
	kept := make([]kube.Object, 0, len(objects))
	for _, o := range objects {
		if !keys[o.Key] {
			kept = append(kept, o)
		}
	}
	return kept
}
