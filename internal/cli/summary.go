package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/epp"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/service/observe"
)

// writeSummary writes for people what runs where. It goes by the rendered objects and the
// status rather than the spec, so it shows what happens.
func writeSummary(w io.Writer, r *rendered) error {
	b := &strings.Builder{}
	fmt.Fprintf(b, "%s %s\n", r.xr.GetKind(), strings.TrimPrefix(r.xr.GetNamespace()+"/"+r.xr.GetName(), "/"))
	switch {
	case ofCluster(r.xr):
		writeCluster(b, r.xr)
	case ofModel(r.xr):
		writeModel(b, r)
	case ofCache(r.xr):
		writeCaches(b, r.xr)
	default:
		writePlacement(b, r.xr)
		writeFleet(b, r.fleet)
		planned := byCluster(r.planned, r.xr)
		for _, p := range byCluster(r.composed, r.xr) {
			i := slices.IndexFunc(planned, func(then *placedObjects) bool { return then.cluster == p.cluster })
			if i >= 0 && len(p.roles()) == 0 {
				p.planned = planned[i]
			}
			p.write(b, r.spec)
		}
		writeScaling(b, r.xr, r.spec)
	}
	writeWarnings(b, r.xr)
	writeConditions(b, "Not ready", r.xr, func(c condition) bool { return c.Status != "True" && !c.warns() })
	// The table Placement already has the message of the condition Placed.
	writeConditions(b, "Notes", r.xr, func(c condition) bool { return c.Status == "True" && c.Message != "" && c.Type != observe.IsPlaced })
	return align(w, b.String())
}

// align writes cells in columns, without spaces at the end of a line.
func align(w io.Writer, cells string) error {
	b := &strings.Builder{}
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	if _, err := io.WriteString(forPeople{t}, cells); err != nil {
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

// placedObjects are the rendered objects of one cluster.
type placedObjects struct {
	// cluster is the name in the placement, and config the provider configuration. Both are
	// empty for the control plane, where the XR is.
	cluster, config string
	objects         []object
	url             string
	// planned is what runs there once the weights of the model are in their cache. It is nil if that changes no role.
	planned *placedObjects
}

func byCluster(composed []object, xr object) []*placedObjects {
	var all []*placedObjects
	for _, o := range composed {
		cluster, config, inner := unwrap(o)
		i := slices.IndexFunc(all, func(p *placedObjects) bool { return p.cluster == cluster })
		if i < 0 {
			i = len(all)
			all = append(all, &placedObjects{cluster: cluster, config: config, url: url(xr, cluster)})
		}
		all[i].objects = append(all[i].objects, inner)
	}
	return all
}

// unwrap returns the object that provider-kubernetes applies in another cluster, or the
// object itself.
func unwrap(o object) (cluster, config string, inner object) {
	cluster = key.Parse(o.GetAnnotations()[composite.AnnotationResourceName]).Cluster
	manifest, ok, _ := unstructured.NestedMap(o.Object, "spec", "forProvider", "manifest")
	if cluster == "" || !ok {
		return "", "", o
	}
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

// write describes the objects of one cluster. With a placement, what is beside the XR only serves other clusters.
func (p *placedObjects) write(b *strings.Builder, spec *v1alpha1.InferenceServiceSpec) {
	where := "In this cluster"
	switch {
	case p.cluster != "":
		where = fmt.Sprintf("In cluster %s (provider configuration %s)", p.cluster, p.config)
	case spec.Placement != nil:
		where = "On the control plane"
	}
	if len(p.objects) > 0 && p.objects[0].GetNamespace() != "" {
		where += ", namespace " + p.objects[0].GetNamespace()
	}
	objects := "objects"
	if len(p.objects) == 1 {
		objects = "object"
	}
	fmt.Fprintf(b, "\n%s: %d %s\n", where, len(p.objects), objects)
	of := p
	if p.planned != nil && len(p.planned.roles()) > 0 {
		of = p.planned
		fmt.Fprintln(b, "  These roles wait until the weights are in their cache:")
	}
	if of.writeRoles(b, spec) {
		fmt.Fprintln(b)
		of.writeGangs(b)
	}
	p.writeRouter(b)
	if p.url != "" {
		fmt.Fprintf(b, "  URL\t%s\n", p.url)
	}
}

func (p *placedObjects) writeGangs(b *strings.Builder) {
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
		return "MinimumFirst: " + strings.Join(parts, ", ")
	}
	for task, n := range group.Spec.MinTaskMember {
		parts = append(parts, fmt.Sprintf("%s %d", task, n))
	}
	slices.Sort(parts)
	return "AllOrNothing: " + strings.Join(parts, ", ")
}

func (p *placedObjects) writeRouter(b *strings.Builder) {
	for _, o := range p.objects {
		if o.GetKind() != "Deployment" {
			continue
		}
		containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
		for _, c := range containers {
			m, _ := c.(map[string]any)
			image, _, _ := unstructured.NestedString(m, "image")
			fmt.Fprintf(b, "  Router\t%s\n  Endpoint picker\t%s\n", p.strategy(), image)
		}
	}
}

// strategy says by which scorers the endpoint picker chooses, from its configuration.
func (p *placedObjects) strategy() string {
	for _, o := range p.objects {
		text, ok, _ := unstructured.NestedString(o.Object, "data", epp.ConfigFile)
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
			return "with a configuration that cannot be read"
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
			s = "separate " + strings.Join(names, " and ") + ", " + s
		}
		return s
	}
	return "without a configuration"
}

// typed decodes an object of a kind, and reports whether it is one. It skips unknown fields.
func typed(o object, kind string, into any) bool {
	return o.GetKind() == kind && runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, into) == nil
}
