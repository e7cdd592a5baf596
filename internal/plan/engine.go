package plan

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/fusioninfer/function-inferenceservice/input/v1beta1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/launch"
	"github.com/fusioninfer/function-inferenceservice/internal/podspec"
)

// LabelDisaggregatedRole tells llm-d's endpoint picker which pods prefill and
// which decode.
const LabelDisaggregatedRole = "llm-d.ai/role"

// A rolePlanner plans one role.
type rolePlanner struct {
	spec          v1alpha1.Role
	input         *v1beta1.Input
	path          *field.Path
	disaggregated bool

	role     *Role
	warnings []Warning
	errs     field.ErrorList
}

// planRole plans one role that serves. It returns a role even where there are
// problems, so that what depends on its name and size can be checked too.
func planRole(i int, role v1alpha1.Role, in *v1beta1.Input, disaggregated bool) (*Role, []Warning, field.ErrorList) {
	p := rolePlanner{
		spec:          role,
		input:         in,
		path:          rolePath(i),
		disaggregated: disaggregated && role.ComponentType != v1alpha1.ComponentTypeWorker,
		role: &Role{
			Name:       role.Name,
			Type:       role.ComponentType,
			Replicas:   ptr.Deref(role.Replicas, 1),
			Nodes:      nodes(role.Multinode),
			Port:       defaultPort,
			EnginePort: defaultPort,
			path:       rolePath(i),
		},
	}
	// A template that is missing altogether was found by the validation.
	if role.Template != nil && p.templates() {
		p.ports()
		if p.run() {
			p.launch()
		}
		p.environment()
		p.fits()
		p.warn()
		p.sum()
	}
	return p.role, p.warnings, p.errs
}

func nodes(m *v1alpha1.Multinode) int32 {
	if m == nil {
		return 1
	}
	return max(m.NodeCount, 1)
}

// launcher of the role. On one node there is nothing to launch.
func (p *rolePlanner) launcher() v1alpha1.Launcher {
	if p.role.Nodes == 1 {
		return v1alpha1.LauncherNone
	}
	return p.spec.Multinode.Launcher
}

// templates reads the templates, and tells whether both can be planned with. Either
// may have problems that keep pods from being made, and no others from being found.
func (p *rolePlanner) templates() bool {
	worker := p.template(p.spec.Template, p.path.Child("template"))
	leader := worker
	switch {
	case p.ownLeader():
		leader = p.template(p.spec.LeaderTemplate, p.leaderPath())
	case p.spec.LeaderTemplate != nil:
		p.warnings = append(p.warnings, Warning{
			Path:    p.path.Child("leaderTemplate").String(),
			Message: "has no effect: a replica on one node is made from template",
		})
	}
	if leader == nil || worker == nil {
		return false
	}
	p.role.Leader, p.role.Worker = *leader, *worker
	return true
}

func (p *rolePlanner) template(doc *kube.Document, path *field.Path) *PodTemplate {
	t, warnings, errs := readTemplate(doc, path)
	p.warnings = append(p.warnings, warnings...)
	p.errs = append(p.errs, errs...)
	return t
}

// ownLeader tells whether leaders have a template of their own.
func (p *rolePlanner) ownLeader() bool { return p.spec.LeaderTemplate != nil && p.role.Nodes > 1 }

// leaderPath is where the leaders' template comes from.
func (p *rolePlanner) leaderPath() *field.Path {
	if p.ownLeader() {
		return p.path.Child("leaderTemplate")
	}
	return p.path.Child("template")
}

// run refuses commands that cannot run, in any container, and tells whether the engines'
// can.
func (p *rolePlanner) run() bool {
	p.runEach(&p.role.Worker, p.path.Child("template", "spec"))
	if p.ownLeader() {
		p.runEach(&p.role.Leader, p.leaderPath().Child("spec"))
	}
	return launch.Runs(p.role.Leader.command()) == nil && launch.Runs(p.role.Worker.command()) == nil
}

func (p *rolePlanner) runEach(t *PodTemplate, path *field.Path) {
	check := func(c *corev1.Container, at *field.Path) {
		if err := launch.Runs(launch.Command{Command: c.Command, Args: c.Args}); err != nil {
			p.errs = append(p.errs, field.Invalid(at.Child("command"), cutOff(strings.Join(slices.Concat(c.Command, c.Args), " ")), err.Error()))
		}
	}
	for i := range t.Spec.InitContainers {
		check(&t.Spec.InitContainers[i], path.Child("initContainers").Index(i))
	}
	for i := range t.Spec.Containers {
		check(&t.Spec.Containers[i], path.Child("containers").Index(i))
	}
}

// launch decides what leader and workers run.
func (p *rolePlanner) launch() {
	o := launch.Options{
		Launcher: p.launcher(),
		Nodes:    p.role.Nodes,
		RayPort:  *p.input.Ray.Port,
		Port:     p.role.EnginePort,
		MovePort: p.role.Sidecar != nil,
	}
	if o.Launcher == v1alpha1.LauncherRay {
		p.role.RayPort = o.RayPort
	}
	launched, before := o.Launcher != v1alpha1.LauncherNone, len(p.errs)
	if launched || o.MovePort {
		p.command(&p.role.Leader, p.leaderPath(), launch.Leader, o)
	}
	// What is wrong with a template that both have is said once.
	if launched && (len(p.errs) == before || p.ownLeader()) {
		p.command(&p.role.Worker, p.path.Child("template"), launch.Worker, o)
		p.role.Worker.Headless = true
	}
}

func (p *rolePlanner) command(t *PodTemplate, path *field.Path, f func(launch.Command, launch.Options) (launch.Command, error), o launch.Options) {
	c, err := f(t.command(), o)
	if err != nil {
		part, shown := "args", t.engine().Args
		if len(shown) == 0 {
			part, shown = "command", t.engine().Command
		}
		p.errs = append(p.errs, field.Invalid(t.enginePath(path).Child(part), cutOff(strings.Join(shown, " ")), err.Error()))
		return
	}
	t.Command, t.Args = c.Command, c.Args
}

func cutOff(s string) string {
	const limit = 120
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "..."
}

// environment decides what else the pods need.
func (p *rolePlanner) environment() {
	for _, t := range []*PodTemplate{&p.role.Leader, &p.role.Worker} {
		t.SharedMemory = !t.hasSharedMemory()
		if p.disaggregated && p.isVLLM(t) {
			t.Env = t.missing(nixl())
		}
	}
	if !p.disaggregated {
		return
	}
	p.role.PodLabels = map[string]string{LabelDisaggregatedRole: "prefill"}
	if p.role.Type == v1alpha1.ComponentTypeDecoder {
		p.role.PodLabels[LabelDisaggregatedRole] = "decode"
	}
}

// nixl is where vLLM's NIXL connector tells other pods to fetch the KV cache:
// without it, at localhost.
func nixl() []corev1.EnvVar {
	return []corev1.EnvVar{
		{Name: "VLLM_NIXL_SIDE_CHANNEL_HOST", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}},
		{Name: "VLLM_NIXL_SIDE_CHANNEL_PORT", Value: "5600"},
	}
}

// isVLLM tells whether a template's engine is vLLM, by its command, its launcher
// or its name.
func (p *rolePlanner) isVLLM(t *PodTemplate) bool {
	switch c := t.engine(); {
	case launch.EngineOf(t.command()) != launch.EngineUnknown:
		return launch.EngineOf(t.command()) == launch.EngineVLLM
	case p.launcher() == v1alpha1.LauncherRay, p.launcher() == v1alpha1.LauncherVLLM:
		return true
	case p.launcher() == v1alpha1.LauncherSGLang:
		return false
	default:
		return strings.Contains(c.Name, "vllm") || strings.Contains(c.Image, "vllm") || strings.Contains(c.Image, "llm-d")
	}
}

// warn tells of arguments that will hardly do what they were meant to.
func (p *rolePlanner) warn() {
	p.warnAbout(&p.role.Worker, p.path.Child("template"))
	if p.ownLeader() {
		p.warnAbout(&p.role.Leader, p.leaderPath())
	}
	if t := &p.role.Leader; p.disaggregated && p.isVLLM(t) && !t.mentions("kv-transfer-config") {
		p.warnings = append(p.warnings, Warning{
			Path:    t.enginePath(p.leaderPath()).Child("args").String(),
			Message: `nothing hands over the KV cache between prefill and decode: add --kv-transfer-config and {"kv_connector":"NixlConnector","kv_role":"kv_both"}, as two elements, to both roles`,
		})
	}
	if said := launch.Port(p.role.Leader.command()); p.role.Sidecar == nil && said != 0 && said != p.role.EnginePort {
		p.warnings = append(p.warnings, Warning{
			Path:    p.role.Leader.enginePath(p.leaderPath()).Child("ports").String(),
			Message: fmt.Sprintf("clients are sent to port %d, while the engine is told to listen on --port %d: make the two the same", p.role.EnginePort, said),
		})
	}
}

func (p *rolePlanner) warnAbout(t *PodTemplate, path *field.Path) {
	c := t.command()
	if p.launcher() == v1alpha1.LauncherNone {
		if why := launch.Alone(c, p.role.Nodes); why != "" {
			p.warnings = append(p.warnings, Warning{Path: t.enginePath(path).Child("args").String(), Message: why})
		}
	}
	for i, word := range launch.Words(c) {
		meant, mistyped := launch.Mistyped(word)
		if !mistyped {
			continue
		}
		at := t.enginePath(path)
		if i < len(c.Command) {
			at = at.Child("command").Index(i)
		} else {
			at = at.Child("args").Index(i - len(c.Command))
		}
		p.warnings = append(p.warnings, Warning{Path: at.String(), Message: describe(meant)})
	}
}

func describe(meant []string) string {
	if len(meant) == 1 {
		return fmt.Sprintf("the engine gets the quotes too, because no shell takes them away: write it without them, as %s", meant[0])
	}
	if len(meant) > 2 {
		return "a whole command line in one element cannot be run, because no shell splits it: write one element for each word"
	}
	return fmt.Sprintf("a flag and its value in one element cannot be parsed by the engine, because no shell splits them: write two elements, %s and %s, without quotes around the value, or one of the form %s=value", meant[0], meant[1], meant[0])
}

// sum adds up what the pods of a replica request.
func (p *rolePlanner) sum() {
	leader := p.leaderSpec()
	p.role.leaderRequests = minResources(leader)
	p.role.replicaResources = corev1.ResourceList{}
	addTimes(p.role.replicaResources, p.role.leaderRequests, 1)
	if p.role.Nodes > 1 {
		p.role.workerRequests = minResources(p.role.Worker.Spec)
		addTimes(p.role.replicaResources, p.role.workerRequests, p.role.Nodes-1)
	}
}

// leaderSpec is the leader's spec with the resources of the routing sidecar.
func (p *rolePlanner) leaderSpec() corev1.PodSpec {
	leader := p.role.Leader.Spec
	if s := p.role.Sidecar; s != nil && s.Resources != nil {
		leader.InitContainers = append(slices.Clip(leader.InitContainers), corev1.Container{
			Name:          "fusioninfer-routing-sidecar", // Some name that no other container has.
			Image:         s.Image,
			Resources:     *s.Resources,
			RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways),
		})
	}
	return leader
}

// fits refuses a limit of the whole pod that has no room for the routing sidecar. It is
// the only thing that is added to a template and can make a valid one invalid.
func (p *rolePlanner) fits() {
	spec := p.leaderSpec()
	if len(p.errs) > 0 || spec.Resources == nil || len(spec.InitContainers) == len(p.role.Leader.Spec.InitContainers) {
		return
	}
	resources := p.leaderPath().Child("spec", "resources")
	for _, e := range podspec.Validate(&corev1.PodTemplateSpec{Spec: spec}, p.leaderPath()) {
		if strings.HasPrefix(e.Field, resources.String()) {
			e.Detail += " (the routing sidecar that is added to the pod counts too)"
			p.errs = append(p.errs, e)
		}
	}
}
