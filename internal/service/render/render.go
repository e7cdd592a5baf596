/*
Package render renders the objects of a plan. Each package below it knows one family of
external APIs. This package collects their objects, adds the platform team's labels and
annotations, and wraps those that belong to other clusters.
*/
package render

import (
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
	if err != nil {
		return kube.Object{}, err
	}
	o.Resource = composite.Decorate(o.Resource, p.Labels, p.Annotations)
	return o, nil
}

// Render returns all objects of the plan.
func (r *Renderer) Render() ([]kube.Object, error) {
	p := r.plan
	all, err := fleet.Render(p)
	if err != nil {
		return nil, err
	}
	targets, err := scaling.Render(p)
	if err != nil {
		return nil, err
	}
	all = append(all, targets...)
	for i := range all {
		all[i].Resource = composite.Decorate(all[i].Resource, p.Labels, p.Annotations)
	}
	for i := range p.Clusters {
		cluster := &p.Clusters[i]
		if cluster.NotStarted {
			continue
		}
		objects, err := r.renderCluster(cluster)
		if err != nil {
			return nil, err
		}
		for _, o := range objects {
			o.Resource = composite.Decorate(o.Resource, p.Labels, p.Annotations)
			if cluster.Target.Remote() {
				if o, err = remote.Wrap(o, p.Service, cluster.Target, cluster.Abandoned); err != nil {
					return nil, err
				}
				o.Resource = composite.Decorate(o.Resource, p.Labels, p.Annotations)
			}
			all = append(all, o)
		}
		observed, err := renderObserved(p, cluster)
		if err != nil {
			return nil, err
		}
		all = append(all, observed...)
	}
	return all, nil
}

// renderObserved renders the Objects that only observe what others make for the replicas in another
// cluster: how Kueue admits them, pods that may have failed, pods that load weights, and the claim for weights
// that the service names.
func renderObserved(p *plan.Plan, cluster *plan.ClusterPlan) ([]kube.Object, error) {
	var all []kube.Object
	add := func(o kube.Object, err error) error {
		if err == nil {
			o.Resource = composite.Decorate(o.Resource, p.Labels, p.Annotations)
			all = append(all, o)
		}
		return err
	}
	if cluster.Target.Remote() && p.ReadsClaim(cluster) {
		if err := add(remote.WrapClaim(p.NamedClaimKey(cluster), p.Weights.ClaimName, p.Service, cluster.Target)); err != nil {
			return nil, err
		}
	}
	if err := renderLoaderPods(p, cluster, add); err != nil {
		return nil, err
	}
	if err := renderObservedReplicas(p, cluster, add); err != nil {
		return nil, err
	}
	return all, nil
}

// renderLoaderPods adds what finds and observes the pods of the loading Job.
func renderLoaderPods(p *plan.Plan, cluster *plan.ClusterPlan, add func(kube.Object, error) error) error {
	l := cluster.Loading
	if l == nil || !l.FindsPods {
		return nil
	}
	jobs := []remote.JobPods{{Job: l.JobName, Failed: l.FailedPods}}
	if err := add(remote.LoaderPods(p.LoaderPodsKey(cluster), p.Weights.LoaderName, jobs, p.Service, cluster.Target)); err != nil {
		return err
	}
	for _, pod := range l.PodNames {
		if err := add(remote.WrapPod(key.LoaderPod(cluster.Target.Cluster, pod), pod, p.Service, cluster.Target)); err != nil {
			return err
		}
	}
	return nil
}

// renderObservedReplicas adds the Objects that observe how Kueue admits replicas, and pods that may have failed.
func renderObservedReplicas(p *plan.Plan, cluster *plan.ClusterPlan, add func(kube.Object, error) error) error {
	for r := range cluster.Replicas() {
		if r.Workload != "" {
			if err := add(remote.WrapWorkload(cluster.WorkloadKey(r), r.Name, r.Workload, p.Service, cluster.Target)); err != nil {
				return err
			}
		}
		if !cluster.Target.Remote() {
			continue
		}
		for i := range r.PodsRead {
			if err := add(remote.WrapPod(cluster.PodKey(r, i), r.PodName(i), p.Service, cluster.Target)); err != nil {
				return err
			}
		}
	}
	return nil
}

// renderCluster renders the service in one cluster, as objects of that cluster.
func (r *Renderer) renderCluster(cluster *plan.ClusterPlan) ([]kube.Object, error) {
	p := r.plan
	all, err := r.weights.Render(cluster)
	if err != nil {
		return nil, err
	}
	if p.Router != nil {
		objects, err := router.Render(p, cluster)
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	if p.Network != nil {
		o, err := network.Render(p, cluster)
		if err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	if p.PodMonitors != nil {
		objects, err := monitor.Render(p, cluster)
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	if cluster.Endpoint != nil {
		o, err := endpoint.Render(cluster)
		if err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	groups, err := renderGroups(p, cluster, r.workloads)
	if err != nil {
		return nil, err
	}
	budgets, err := disruption.Render(cluster)
	if err != nil {
		return nil, err
	}
	access, err := router.RenderSidecarAccess(p, cluster)
	if err != nil {
		return nil, err
	}
	return slices.Concat(all, groups, budgets, access), nil
}

// renderGroups renders the groups of the service in one cluster, each after its gang.
func renderGroups(p *plan.Plan, cluster *plan.ClusterPlan, workloads *workload.Renderer) ([]kube.Object, error) {
	var all []kube.Object
	for i := range cluster.Groups {
		g := &cluster.Groups[i]
		if g.PodGroup != nil {
			o, err := gang.Render(cluster, g, p.Service.Grouped)
			if err != nil {
				return nil, err
			}
			all = append(all, o)
		}
		for j := range g.Replicas {
			o, err := workloads.LeaderWorkerSet(cluster, &g.Replicas[j])
			if err != nil {
				return nil, err
			}
			all = append(all, o)
		}
	}
	return all, nil
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
