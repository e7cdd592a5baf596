package cli

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	lws "sigs.k8s.io/lws/api/leaderworkerset/v1"
	"sigs.k8s.io/yaml"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/plan"
)

// writeSummary says for people what runs where. It reads what is rendered and
// the status, so it shows what will be, not what was meant.
func writeSummary(w io.Writer, r *rendered) error {
	b := &strings.Builder{}
	fmt.Fprintf(b, "%s %s\n", r.xr.GetKind(), strings.TrimPrefix(r.xr.GetNamespace()+"/"+r.xr.GetName(), "/"))
	if ofCluster(r.xr) {
		writeCluster(b, r.xr)
	} else {
		writePlacement(b, r.xr)
		writeFleet(b, r.fleet)
		for _, p := range places(r) {
			p.write(b)
		}
	}
	writeNotTrue(b, r.xr)
	return align(w, b.String())
}

// align puts cells into columns, without blanks at the end of a line.
func align(w io.Writer, cells string) error {
	b := &strings.Builder{}
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	if _, err := io.WriteString(t, cells); err != nil {
		return err
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(b.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// A place is where objects go: beside the XR, or in another cluster.
type place struct {
	cluster, config string
	objects         []object
	url             string
}

func places(r *rendered) []*place {
	var all []*place
	for _, o := range r.composed {
		cluster, config, inner := unwrap(o)
		i := slices.IndexFunc(all, func(p *place) bool { return p.cluster == cluster })
		if i < 0 {
			i = len(all)
			all = append(all, &place{cluster: cluster, config: config, url: url(r.xr, cluster)})
		}
		all[i].objects = append(all[i].objects, inner)
	}
	return all
}

// unwrap returns what provider-kubernetes applies in another cluster.
func unwrap(o object) (cluster, config string, inner object) {
	key, remote := strings.CutPrefix(o.GetAnnotations()[annotationResourceName], "cluster/")
	manifest, ok, _ := unstructured.NestedMap(o.Object, "spec", "forProvider", "manifest")
	if !remote || !ok {
		return "", "", o
	}
	cluster, _, _ = strings.Cut(key, "/")
	config, _, _ = unstructured.NestedString(o.Object, "spec", "providerConfigRef", "name")
	return cluster, config, object{Object: manifest}
}

func url(xr object, cluster string) string {
	if cluster == "" {
		u, _, _ := unstructured.NestedString(xr.Object, "status", "url")
		return u
	}
	list, _, _ := unstructured.NestedSlice(xr.Object, "status", "clusters")
	for _, c := range list {
		m, _ := c.(map[string]any)
		if name, _, _ := unstructured.NestedString(m, "name"); name == cluster {
			u, _, _ := unstructured.NestedString(m, "url")
			return u
		}
	}
	return ""
}

func (p *place) write(b *strings.Builder) {
	where := "this cluster"
	if p.cluster != "" {
		where = fmt.Sprintf("cluster %s (provider configuration %s)", p.cluster, p.config)
	}
	if len(p.objects) > 0 && p.objects[0].GetNamespace() != "" {
		where += ", namespace " + p.objects[0].GetNamespace()
	}
	fmt.Fprintf(b, "\nIn %s: %d objects\n", where, len(p.objects))
	p.writeRoles(b)
	fmt.Fprintln(b)
	p.writeGangs(b)
	p.writeRouter(b)
	if p.url != "" {
		fmt.Fprintf(b, "  URL\t%s\n", p.url)
	}
}

// A role is what all LeaderWorkerSets of one role have in common, and their sums.
type role struct {
	name, component, launcher, port, scheduler string
	replicas, nodes, pods                      int64
	gpus                                       int64
	perPod                                     []string
}

func (p *place) writeRoles(b *strings.Builder) {
	roles := p.roles()
	if len(roles) == 0 {
		return
	}
	fmt.Fprintln(b, "  ROLE\tTYPE\tREPLICAS\tNODES\tPODS\tGPUS/POD\tGPUS\tLAUNCHER\tPORT\tSCHEDULER")
	pods, gpus := int64(0), int64(0)
	for _, r := range roles {
		fmt.Fprintf(b, "  %s\t%s\t%d\t%d\t%d\t%s\t%d\t%s\t%s\t%s\n",
			r.name, r.component, r.replicas, r.nodes, r.pods, strings.Join(r.perPod, "+"), r.gpus, r.launcher, r.port, r.scheduler)
		pods, gpus = pods+r.pods, gpus+r.gpus
	}
	fmt.Fprintf(b, "  total\t\t\t\t%d\t\t%d\t\t\t\n", pods, gpus)
}

func (p *place) roles() []*role {
	var all []*role
	for _, o := range p.objects {
		set := &lws.LeaderWorkerSet{}
		if !typed(o, "LeaderWorkerSet", set) {
			continue
		}
		name := set.Labels[plan.LabelRoleName]
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
		component: set.Labels[plan.LabelComponentType],
		nodes:     size(set),
		launcher:  launcher(set, leader),
		port:      port(leader),
		scheduler: leader.SchedulerName,
		perPod:    []string{strconv.FormatInt(gpus(leader), 10)},
	}
	if r.nodes > 1 && gpus(worker) != gpus(leader) {
		r.perPod = append(r.perPod, strconv.FormatInt(gpus(worker), 10))
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

// gpus counts the devices that vendors' plugins offer as .../gpu, and the slices
// of one that NVIDIA's offers under other names.
func gpus(pod corev1.PodSpec) int64 {
	n := int64(0)
	for _, c := range pod.Containers {
		for name, q := range c.Resources.Limits {
			if strings.HasSuffix(string(name), "/gpu") || strings.HasPrefix(string(name), "nvidia.com/") {
				n += q.Value()
			}
		}
	}
	return n
}

// launcher tells by the leader's commands how its workers find it.
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
	case strings.Contains(all, "--nnodes"):
		return "VLLM"
	}
	return "None"
}

// port is the one that clients use: the sidecar's, where one stands in front.
func port(leader corev1.PodSpec) string {
	for _, c := range append(slices.Clone(leader.InitContainers), leader.Containers...) {
		for _, p := range c.Ports {
			if p.Name == "http" || p.Name == "" && p.ContainerPort != rayPort {
				return strconv.Itoa(int(p.ContainerPort))
			}
		}
	}
	return strconv.Itoa(enginePort)
}

const (
	// rayPort is the launcher's, and enginePort where an engine serves that declares
	// no port.
	rayPort    = 6379
	enginePort = 8000
)

func (p *place) writeGangs(b *strings.Builder) {
	found := false
	for _, o := range p.objects {
		group := &volcano.PodGroup{}
		if !typed(o, "PodGroup", group) {
			continue
		}
		found = true
		fmt.Fprintf(b, "  Gang\t%s: at least %d pods at once (%s)\n", group.Name, group.Spec.MinMember, members(group))
	}
	if !found {
		fmt.Fprintln(b, "  Gang\tnone")
	}
}

func members(group *volcano.PodGroup) string {
	var parts []string
	for _, s := range group.Spec.SubGroupPolicy {
		n, pods := int32(1), int32(0)
		if s.MinSubGroups != nil {
			n = *s.MinSubGroups
		}
		if s.SubGroupSize != nil {
			pods = *s.SubGroupSize
		}
		parts = append(parts, fmt.Sprintf("%s %d x %d", s.Name, n, pods))
	}
	if len(parts) > 0 {
		return "SubGroup: " + strings.Join(parts, ", ")
	}
	for task, n := range group.Spec.MinTaskMember {
		parts = append(parts, fmt.Sprintf("%s %d", task, n))
	}
	slices.Sort(parts)
	return "TaskMember: " + strings.Join(parts, ", ")
}

func (p *place) writeRouter(b *strings.Builder) {
	for _, o := range p.objects {
		if o.GetKind() != "Deployment" {
			continue
		}
		containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
		for _, c := range containers {
			m, _ := c.(map[string]any)
			image, _, _ := unstructured.NestedString(m, "image")
			fmt.Fprintf(b, "  Router\t%s\n  Image\t%s\n", p.strategy(), image)
		}
	}
}

// strategy tells by the endpoint picker's configuration what it goes by.
func (p *place) strategy() string {
	for _, o := range p.objects {
		text, ok, _ := unstructured.NestedString(o.Object, "data", "config.yaml")
		if o.GetKind() != "ConfigMap" || !ok {
			continue
		}
		config := struct {
			Plugins []struct {
				Type string `json:"type"`
			} `json:"plugins"`
			SchedulingProfiles []struct {
				Name string `json:"name"`
			} `json:"schedulingProfiles"`
		}{}
		if err := yaml.Unmarshal([]byte(text), &config); err != nil {
			return "a configuration of its own"
		}
		var by []string
		for _, plugin := range config.Plugins {
			if s, ok := strings.CutSuffix(plugin.Type, "-scorer"); ok {
				by = append(by, s)
			}
		}
		s := "by " + strings.Join(by, ", ")
		if len(by) == 0 {
			s = "without a scorer"
		}
		if len(config.SchedulingProfiles) > 1 {
			var names []string
			for _, profile := range config.SchedulingProfiles {
				names = append(names, profile.Name)
			}
			s = strings.Join(names, " and ") + " apart, " + s
		}
		return s
	}
	return "without a configuration"
}

// writeFleet says who runs in which cluster, and who waits.
func writeFleet(b *strings.Builder, clusters []object) {
	if len(clusters) == 0 {
		return
	}
	fmt.Fprintln(b, "\nFleet")
	fmt.Fprintln(b, "  CLUSTER\tFREE\tSERVICE\tPODS\tREPLICAS")
	for _, o := range clusters {
		c := v1alpha1.InferenceCluster{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &c) != nil {
			continue // It is as the function wrote it.
		}
		fmt.Fprintf(b, "  %s\t%s\t\t\t\n", c.Name, c.Status.Free)
		for _, a := range c.Status.Allocations {
			fmt.Fprintf(b, "  \t\t%s/%s\t%d\t%s\n", a.Namespace, a.Name, a.Pods, strings.Join(a.Replicas, ","))
		}
		for _, w := range c.Status.Waiting {
			fmt.Fprintf(b, "  \t\t%s/%s\t\twaits: %s\n", w.Namespace, w.Name, w.Message)
		}
	}
}

// writePlacement says which cluster has the service, and why the others have not.
func writePlacement(b *strings.Builder, xr object) {
	list, _, _ := unstructured.NestedSlice(xr.Object, "status", "placement")
	for i, c := range list {
		m, _ := c.(map[string]any)
		text := func(f string) string { v, _, _ := unstructured.NestedString(m, f); return v }
		units, _, _ := unstructured.NestedStringSlice(m, "units")
		if i == 0 {
			fmt.Fprintln(b, "\nPlacement")
			fmt.Fprintln(b, "  CLUSTER\tSTATE\tUNITS\tWHY")
		}
		why := strings.Trim(text("reason")+": "+text("message"), ": ")
		fmt.Fprintf(b, "  %s\t%s\t%s\t%s\n", text("cluster"), text("state"), strings.Join(units, ","), why)
	}
}

func writeNotTrue(b *strings.Builder, xr object) {
	first := true
	for _, c := range conditionsOf(xr) {
		if c.Status == "True" {
			continue
		}
		if first {
			fmt.Fprintln(b, "\nNot ready")
			first = false
		}
		for i, m := range strings.Split(c.Message, "; ") {
			if i == 0 {
				fmt.Fprintf(b, "  %s\t%s\t%s\n", c.Type, c.Reason, m)
				continue
			}
			fmt.Fprintf(b, "  \t\t%s\n", m)
		}
	}
}

// typed reads an object of a kind. Fields that the type lacks are passed over.
func typed(o object, kind string, into any) bool {
	return o.GetKind() == kind && runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, into) == nil
}
