package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	lws "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

// A role has the columns of one role: what its LeaderWorkerSets have in common, and sums.
type role struct {
	name, component, launcher, port, scheduler string
	replicas, nodes, pods, gpus                int64
	gpusPerPod                                 []string
	// images of the engine: that of leaders, and that of workers where it is another one.
	images []string
}

// writeRoles writes a line for each role. Where fewer replicas are rendered than the spec
// has, it says how many the spec has: others wait, or are in other clusters. It tells whether
// there are any roles.
func (p *placedObjects) writeRoles(b *strings.Builder, spec *v1alpha1.InferenceServiceSpec) bool {
	roles := p.roles()
	if p.cluster != "" || spec.Placement == nil {
		roles = withIdle(roles, spec)
	}
	if len(roles) == 0 {
		return false
	}
	fmt.Fprintln(b, "  ROLE\tTYPE\tREPLICAS\tNODES\tPODS\tGPUS/POD\tGPUS\tLAUNCHER\tPORT\tSCHEDULER\tIMAGE")
	pods, gpus := int64(0), int64(0)
	for _, r := range roles {
		replicas, nodes := strconv.FormatInt(r.replicas, 10), strconv.FormatInt(r.nodes, 10)
		if all := specReplicas(spec, r.name); all > r.replicas {
			replicas = fmt.Sprintf("%d of %d", r.replicas, all)
		}
		if r.replicas == 0 {
			nodes = "-"
		}
		fmt.Fprintf(b, "  %s\t%s\t%s\t%s\t%d\t%s\t%d\t%s\t%s\t%s\t%s\n",
			r.name, r.component, replicas, nodes, r.pods, strings.Join(r.gpusPerPod, "+"), r.gpus, r.launcher, r.port, r.scheduler, strings.Join(r.images, "+"))
		pods, gpus = pods+r.pods, gpus+r.gpus
	}
	fmt.Fprintf(b, "  total\t\t\t\t%d\t\t%d\t\t\t\t\n", pods, gpus)
	return true
}

// withIdle adds the roles of the spec that have no replicas, in the order of their names. Only their pods would tell the rest of them.
func withIdle(roles []*role, spec *v1alpha1.InferenceServiceSpec) []*role {
	for i := range spec.Roles {
		of := &spec.Roles[i]
		if of.ComponentType == v1alpha1.ComponentTypeRouter || slices.ContainsFunc(roles, func(r *role) bool { return r.name == of.Name }) {
			continue
		}
		roles = append(roles, &role{
			name: of.Name, component: string(of.ComponentType), launcher: "-", port: "-", scheduler: "-", gpusPerPod: []string{"-"}, images: []string{"-"},
		})
	}
	slices.SortStableFunc(roles, func(a, b *role) int { return strings.Compare(a.name, b.name) })
	return roles
}

// specReplicas is how many replicas of a role the spec has. A role with scaling has them from elsewhere.
func specReplicas(spec *v1alpha1.InferenceServiceSpec, role string) int64 {
	for i := range spec.Roles {
		if r := &spec.Roles[i]; r.Name == role {
			return int64(ptr.Deref(spec.Replicas, 1)) * int64(ptr.Deref(r.Replicas, 0))
		}
	}
	return 0
}

func (p *placedObjects) roles() []*role {
	var all []*role
	for _, o := range p.objects {
		set := &lws.LeaderWorkerSet{}
		if !typed(o, "LeaderWorkerSet", set) {
			continue
		}
		name := set.Labels[naming.LabelRoleName]
		i := slices.IndexFunc(all, func(r *role) bool { return r.name == name })
		if i < 0 {
			i = len(all)
			all = append(all, newRole(name, set))
		}
		all[i].add(set)
	}
	return all
}

func newRole(name string, set *lws.LeaderWorkerSet) *role {
	leader, worker := templates(set)
	r := &role{
		name:      name,
		component: set.Labels[naming.LabelComponentType],
		nodes:     size(set),
		launcher:  launcher(set, leader),
		port:      strconv.Itoa(int(plan.PortOf(&leader))),
		scheduler: leader.SchedulerName,
	}
	r.gpusPerPod = []string{strconv.FormatInt(gpus(leader), 10)}
	if r.nodes > 1 && gpus(worker) != gpus(leader) {
		r.gpusPerPod = append(r.gpusPerPod, strconv.FormatInt(gpus(worker), 10))
	}
	r.images = []string{plan.EngineOf(leader.Containers).Image}
	if image := plan.EngineOf(worker.Containers).Image; r.nodes > 1 && image != r.images[0] {
		r.images = append(r.images, image)
	}
	if r.scheduler == "" {
		r.scheduler = "default"
	}
	return r
}

func (r *role) add(set *lws.LeaderWorkerSet) {
	leader, worker := templates(set)
	r.replicas++
	r.pods += size(set)
	r.gpus += gpus(leader) + (size(set)-1)*gpus(worker)
}

func size(set *lws.LeaderWorkerSet) int64 {
	if s := set.Spec.LeaderWorkerTemplate.Size; s != nil {
		return int64(*s)
	}
	return 1
}

func templates(set *lws.LeaderWorkerSet) (leader, worker corev1.PodSpec) {
	t := set.Spec.LeaderWorkerTemplate
	if t.LeaderTemplate != nil {
		return t.LeaderTemplate.Spec, t.WorkerTemplate.Spec
	}
	return t.WorkerTemplate.Spec, t.WorkerTemplate.Spec
}

// gpus returns how many GPUs a pod has, or parts of a GPU, or what else engines compute with.
func gpus(pod corev1.PodSpec) int64 {
	n := int64(0)
	for _, c := range pod.Containers {
		for name, q := range c.Resources.Limits {
			if plan.IsGPU(name) {
				n += q.Value()
			}
		}
	}
	return n
}

// launcher returns how workers find their leader, by the leader's commands.
func launcher(set *lws.LeaderWorkerSet, leader corev1.PodSpec) string {
	if size(set) < 2 {
		return "-"
	}
	var words []string
	for _, c := range leader.Containers {
		words = append(append(words, c.Command...), c.Args...)
	}
	all := strings.Join(words, " ")
	switch {
	case strings.Contains(all, "ray start"):
		return "Ray"
	case strings.Contains(all, "--dist-init-addr"):
		return "SGLang"
	case strings.Contains(all, "--data-parallel-address"):
		return "VLLMDataParallel"
	case strings.Contains(all, "--nnodes"):
		return "VLLM"
	}
	return "None"
}
