package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/launch"
	"github.com/fusioninfer/function-inferenceservice/internal/podspec"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// LabelDisaggregatedRole tells llm-d's endpoint picker whether a pod runs prefill or decode.
const LabelDisaggregatedRole = "llm-d.ai/role"

// LabelEngineType tells endpoint pickers whose metrics a pod has. They take a pod without it for one of vLLM
// (pkg/epp/framework/plugins/datalayer/extractor/metrics of GAIE v1.5.0). llm-d's reads llm-d.ai/engine-type first, and
// then this one (the same directory of llm-d-router v0.10.0).
const LabelEngineType = "inference.networking.k8s.io/engine-type"

// labelEngineTypeLLMD is the label that llm-d's endpoint picker reads first.
const labelEngineTypeLLMD = "llm-d.ai/engine-type"

// engineTypeSGLang is the value of LabelEngineType for SGLang.
const engineTypeSGLang = "sglang"

// llmd is in the names of llm-d's images, whose engine is vLLM.
const llmd = "llm-d"

// A rolePlanner plans one role.
type rolePlanner struct {
	spec  v1alpha1.Role
	input *inputv1alpha1.Input
	path  *field.Path
	// model is what the engines load. It is nil where the templates say that.
	model *loadedModel
	// adapters is the claim for LoRA adapters, or nil.
	adapters *Adapters
	// paired tells that the role is prefill or decode of a service that has both.
	paired bool

	role     *Role
	warnings []Warning
	errs     field.ErrorList
}

// planRole plans one serving role. Pairs tells that the service has prefill and decode roles. planRole
// returns the role even with errors, so that checks that need only its name and size can run.
func planRole(i int, role v1alpha1.Role, l loads, in *inputv1alpha1.Input, pairs bool) (*Role, []Warning, field.ErrorList) {
	p := rolePlanner{
		spec:     role,
		input:    in,
		model:    l.model,
		adapters: l.adapters,
		path:     rolePath(i),
		paired:   pairs && role.ComponentType != v1alpha1.ComponentTypeWorker,
		role: &Role{
			Name:       role.Name,
			Type:       role.ComponentType,
			Replicas:   ptr.Deref(role.Replicas, 1),
			startup:    time.Duration(role.LifecycleOf().StartupSeconds) * time.Second,
			scaling:    role.Scaling,
			Nodes:      nodes(role.Multinode),
			Port:       defaultPort,
			EnginePort: defaultPort,
			path:       rolePath(i),
		},
	}
	p.role.Recovery, p.role.RestartGrace = role.RecoveryOf()
	// Validation reports a missing template.
	if role.Template != nil && p.templates() {
		p.role.line = p.engineLine(&p.role.Leader, p.leaderPath())
		p.ports()
		if p.checkCommands() {
			p.launch()
		}
		p.environment()
		p.lifecycle()
		p.warnOfLifecycle()
		p.metrics()
		p.checkPodResources()
		p.warnOfArguments()
		p.checkServers()
		p.names()
		if len(p.errs) == 0 {
			p.checkModel()
		}
		p.sum()
	}
	return p.role, p.warnings, p.errs
}

// warn adds a warning about a field.
func (p *rolePlanner) warn(at *field.Path, format string, args ...any) {
	p.warnings = append(p.warnings, warningAt(at, format, args...))
}

func nodes(m *v1alpha1.Multinode) int32 {
	if m == nil {
		return 1
	}
	return max(ptr.Deref(m.NodeCount, 1), 1)
}

// launcher returns the launcher of the role. A replica on one node needs none.
func (p *rolePlanner) launcher() v1alpha1.Launcher {
	if p.role.Nodes == 1 {
		return v1alpha1.LauncherNone
	}
	return p.spec.Multinode.Launcher
}

// templates reads the templates, and tells whether the role can be planned with them. Errors in a
// template need not prevent this, so that more errors can be found.
func (p *rolePlanner) templates() bool {
	worker := p.template(p.spec.Template, p.path.Child("template"))
	leader := worker
	switch {
	case p.ownLeader():
		leader = p.template(p.spec.LeaderTemplate, p.leaderPath())
	case p.spec.LeaderTemplate != nil:
		p.warn(p.path.Child("leaderTemplate"), "has no effect: a replica on one node uses template")
	}
	if leader == nil || worker == nil {
		return false
	}
	p.role.Leader, p.role.Worker = *leader, *worker
	return true
}

// ownLeader tells whether leaders have a template of their own.
func (p *rolePlanner) ownLeader() bool { return p.spec.LeaderTemplate != nil && p.role.Nodes > 1 }

// leaderPath is the path of the leaders' template.
func (p *rolePlanner) leaderPath() *field.Path {
	if p.ownLeader() {
		return p.path.Child("leaderTemplate")
	}
	return p.path.Child("template")
}

// checkCommands refuses commands that cannot run, in all containers. It tells whether the engines'
// commands can run.
func (p *rolePlanner) checkCommands() bool {
	p.checkCommandsOf(&p.role.Worker, p.path.Child("template", "spec"))
	if p.ownLeader() {
		p.checkCommandsOf(&p.role.Leader, p.leaderPath().Child("spec"))
	}
	return launch.CheckCommand(p.role.Leader.command()) == nil && launch.CheckCommand(p.role.Worker.command()) == nil
}

func (p *rolePlanner) checkCommandsOf(t *PodTemplate, path *field.Path) {
	check := func(c *corev1.Container, at *field.Path) {
		if err := launch.CheckCommand(commandOf(c)); err != nil {
			p.errs = append(p.errs, field.Invalid(at.Child("command"), text.Cut(strings.Join(slices.Concat(c.Command, c.Args), " "), maxCommand), err.Error()))
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
		RayPort:  p.role.RayPort,
		Port:     p.role.EnginePort,
		MovePort: p.role.Sidecar != nil,
	}
	launched, before := o.Launcher != v1alpha1.LauncherNone, len(p.errs)
	leader, worker := p.role.Leader.command(), p.role.Worker.command()
	if launched || o.MovePort {
		p.command(&p.role.Leader, p.leaderPath(), launch.Leader, o)
	}
	// Leader and workers may share a template, whose errors are reported once.
	if launched && (len(p.errs) == before || p.ownLeader()) {
		p.command(&p.role.Worker, p.path.Child("template"), launch.Worker, o)
		p.role.Worker.Headless = true
	}
	if o.Launcher != v1alpha1.LauncherVLLMDataParallel || !p.ownLeader() || len(p.errs) > before {
		return
	}
	if err := launch.RanksDiffer(leader, worker, o.Nodes); err != nil {
		p.refuseCommand(&p.role.Worker, p.path.Child("template"), err)
	}
}

// maxCommand is the most characters of a command that an error quotes.
const maxCommand = 120

func (p *rolePlanner) command(t *PodTemplate, path *field.Path, f func(launch.Command, launch.Options) (launch.Command, error), o launch.Options) {
	c, err := f(t.command(), o)
	if err != nil {
		p.refuseCommand(t, path, err)
		return
	}
	t.Command, t.Args = c.Command, c.Args
}

func (p *rolePlanner) refuseCommand(t *PodTemplate, path *field.Path, err error) {
	p.errs = append(p.errs, t.invalidCommand(path, err))
}

// invalidCommand is the error of an engine's command, in the template at a path.
func (t *PodTemplate) invalidCommand(at *field.Path, err error) *field.Error {
	part, shown := "args", t.engine().Args
	if len(shown) == 0 {
		part, shown = "command", t.engine().Command
	}
	return field.Invalid(t.enginePath(at).Child(part), text.Cut(strings.Join(shown, " "), maxCommand), err.Error())
}

// setCommand sets the command and the arguments of a container.
func setCommand(container *structpb.Struct, c launch.Command) {
	kube.SetTexts(container, "command", c.Command)
	kube.SetTexts(container, "args", c.Args)
}

// environment decides environment variables, shared memory and labels of the pods.
func (p *rolePlanner) environment() {
	for _, t := range []*PodTemplate{&p.role.Leader, &p.role.Worker} {
		t.SharedMemory = !t.hasSharedMemory()
		if p.paired && p.engineOf(t) == launch.EngineVLLM {
			t.Env = t.missing(nixl())
		}
		if p.traces(t) {
			t.Env = append(t.Env, t.missing(tracing(p.input.Monitoring.Tracing, p.role.Name))...)
		}
	}
	label := func(k, v string) {
		if p.role.PodLabels == nil {
			p.role.PodLabels = map[string]string{}
		}
		p.role.PodLabels[k] = v
	}
	// A label of the user says the same, and another one would restart the pods.
	if l := p.role.Leader.Labels; p.engineOf(&p.role.Leader) == launch.EngineSGLang && l[LabelEngineType] == "" && l[labelEngineTypeLLMD] == "" {
		label(LabelEngineType, engineTypeSGLang)
	}
	switch {
	case !p.paired:
	case p.role.Type == v1alpha1.ComponentTypeDecoder:
		label(LabelDisaggregatedRole, "decode")
	default:
		label(LabelDisaggregatedRole, "prefill")
	}
}

// nixl returns the address at which vLLM's NIXL connector offers the KV cache to other pods. By
// default vLLM offers it at localhost.
func nixl() []corev1.EnvVar {
	return []corev1.EnvVar{
		{Name: "VLLM_NIXL_SIDE_CHANNEL_HOST", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}},
		{Name: "VLLM_NIXL_SIDE_CHANNEL_PORT", Value: "5600"},
	}
}

// engineOf returns the engine of a template: by its command, else by the launcher, else by the names of container and image.
func (p *rolePlanner) engineOf(t *PodTemplate) launch.Engine {
	name, image := t.engine().Name, engineWord(t.engine().Image)
	switch e, l := t.parsed.Engine(), p.launcher(); {
	case e != launch.EngineUnknown:
		return e
	case l == v1alpha1.LauncherRay, l.OfVLLM():
		return launch.EngineVLLM
	case l == v1alpha1.LauncherSGLang:
		return launch.EngineSGLang
	case strings.Contains(name, "vllm"), strings.Contains(image, "vllm"), strings.Contains(image, llmd):
		return launch.EngineVLLM
	case strings.Contains(name, "sglang"), strings.Contains(image, "sglang"):
		return launch.EngineSGLang
	}
	return launch.EngineUnknown
}

// warnOfArguments warns of arguments that are valid but probably a mistake.
func (p *rolePlanner) warnOfArguments() {
	p.warnOfFlags()
	p.warnAbout(&p.role.Worker, p.path.Child("template"))
	if p.ownLeader() {
		p.warnAbout(&p.role.Leader, p.leaderPath())
	}
	p.warnOfTransfer()
	p.warnOfHost()
	p.warnOfPort()
}

// vllmPort is the port on which vLLM listens without --port (vllm/entrypoints/openai/cli_args.py of vLLM v0.11.0).
const vllmPort = 8000

// warnOfPort warns of an engine that listens on another port than the one that clients connect to. Behind a proxy of the user's it may,
// unless the function's own readiness probe asks the engine at the other port. Probes of the user's do not count: they may ask the proxy.
func (p *rolePlanner) warnOfPort() {
	leader, who := &p.role.Leader, "clients connect"
	switch same := p.role.Port == p.role.EnginePort; {
	case p.role.Sidecar != nil, leader.proxied(p.role.EnginePort), same && leader.routingSidecar() != nil, !same && leader.Readiness == nil:
		return
	case !same:
		who = "the readiness probe connects"
	}
	at, port := leader.enginePath(p.leaderPath()).Child("ports"), leader.flagPort()
	if port != 0 {
		if port != p.role.EnginePort {
			p.warn(at, "%s to port %d, but --port makes the engine listen on %d: use one port for both", who, p.role.EnginePort, port)
		}
		return
	}
	l := p.role.line
	if l == nil || l.engine != launch.EngineVLLM || l.Open || l.script || l.Has("--port", "--uds") || p.role.EnginePort == vllmPort {
		return
	}
	// An entrypoint of someone's own may set the port.
	if l.starts {
		p.warn(at, "%[1]s to port %[2]d, but vLLM listens on %[3]d without --port: set --port %[2]d, or name the port of vLLM http", who, p.role.EnginePort, vllmPort)
	}
}

func (p *rolePlanner) warnAbout(t *PodTemplate, path *field.Path) {
	p.warnOfConnectors(t, path)
	p.warnOfTopology(t, path)
	p.warnOfDNS(t, path)
	if p.launcher() == v1alpha1.LauncherNone {
		if why := t.parsed.WarnWithoutLauncher(p.role.Nodes); why != "" {
			p.warn(t.enginePath(path).Child("args"), "%s", why)
		}
	}
	for i, word := range launch.Words(t.command()) {
		meant, mistyped := launch.Mistyped(word)
		if !mistyped {
			continue
		}
		p.warn(t.wordPath(path, i), "%s", describe(meant))
	}
}

func describe(meant []string) string {
	if len(meant) == 1 {
		return fmt.Sprintf("no shell removes the quotes, so the engine receives them: write %s", meant[0])
	}
	if len(meant) > 2 {
		return "no shell splits this element into words, so it cannot run: write one element for each word"
	}
	return fmt.Sprintf("no shell splits this element into a flag and its value, so the engine cannot parse it: write two elements, %s and %s, without quotes around the value, or one of the form %s=value", meant[0], meant[1], meant[0])
}

// sum computes the requests of the pods and of a replica.
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

// leaderSpec returns the leader's spec with the resources of the routing sidecar added.
func (p *rolePlanner) leaderSpec() corev1.PodSpec {
	leader := p.role.Leader.Spec
	if s := p.role.Sidecar; s != nil && s.Resources != nil {
		leader.InitContainers = append(slices.Clip(leader.InitContainers), corev1.Container{
			Name:          "fusioninfer-routing-sidecar", // Only has to be unique.
			Image:         s.Image,
			Resources:     *s.Resources,
			RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways),
		})
	}
	return leader
}

// checkPodResources refuses pod-level resources that are too small for the routing sidecar. The
// sidecar is the only addition that can make a valid template invalid.
func (p *rolePlanner) checkPodResources() {
	spec := p.leaderSpec()
	if len(p.errs) > 0 || spec.Resources == nil || len(spec.InitContainers) == len(p.role.Leader.Spec.InitContainers) {
		return
	}
	resources := p.leaderPath().Child("spec", "resources")
	for _, e := range podspec.Validate(&corev1.PodTemplateSpec{Spec: spec}, p.leaderPath()) {
		if strings.HasPrefix(e.Field, resources.String()) {
			e.Detail += " (this includes the routing sidecar, which is added to the pod)"
			p.errs = append(p.errs, e)
		}
	}
}
