package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/engineflags"
	"github.com/fusioninfer/function-inferenceservice/internal/imageref"
	"github.com/fusioninfer/function-inferenceservice/internal/launch"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// An engineLine is the command line of an engine before the launcher's changes. wordPath maps its words back to the user's fields.
type engineLine struct {
	*engineflags.Line

	engine launch.Engine
	// named tells that the command names the engine. Otherwise it is that of the image.
	named bool
	// starts tells that the command starts the engine, or the image is known to.
	starts bool
	// tag is the release of the engine, if the image has it as its tag.
	tag string
	// script tells that a shell reads it.
	script bool
	// at are the fields of its words, and args that of its arguments.
	at   func(word int) *field.Path
	args *field.Path
}

// releaseImages are images whose tag is the release of their engine, by the end of their name.
var releaseImages = []string{vllmImage, "vllm-openai-rocm", "vllm-openai-cpu", "vllm-openai-xpu", "vllm-tpu", "vllm-cpu-release-repo", "sglang"}

// engineLine reads the command line of a template's engine. It returns nil for an engine that is not
// known.
func (p *rolePlanner) engineLine(t *PodTemplate, path *field.Path) *engineLine {
	e, entrypoint := t.engine(), launch.EngineUnknown
	name, tag := imageref.Split(e.Image)
	if name == vllmImage || p.launcher().OfVLLM() || p.model != nil && p.engineOf(t) == launch.EngineVLLM {
		entrypoint = launch.EngineVLLM
	}
	a, ok := t.parsed.Arguments(entrypoint)
	if !ok {
		return nil
	}
	if !slices.Contains(releaseImages, name) {
		tag = ""
	}
	table := engineflags.VLLM()
	if a.Engine == launch.EngineSGLang {
		table = engineflags.SGLang()
	}
	return &engineLine{
		Line:   table.Read(a.Words, tag),
		engine: a.Engine,
		named:  a.Named,
		starts: a.Named || name == vllmImage,
		tag:    tag,
		script: a.Script,
		args:   t.enginePath(path).Child("args"),
		at:     func(word int) *field.Path { return t.wordPath(path, a.At[word]) },
	}
}

// number returns the number that a flag gives, or another if the flag is not there. It is not ok if the
// value is not known.
func (l *engineLine) number(otherwise int, names ...string) (n int, ok bool) {
	g, given := l.Get(names...)
	if !given {
		return otherwise, true
	}
	n, err := strconv.Atoi(g.Value)
	return n, err == nil && n > 0 && n <= maxParallel
}

// maxParallel is the largest size that counts, so that products of sizes do not overflow.
const maxParallel = 1 << 12

// pathOf is the field of a flag, or of the arguments if it is not there.
func (l *engineLine) pathOf(names ...string) *field.Path {
	if g, ok := l.Get(names...); ok {
		return l.at(g.Index)
	}
	return l.args
}

// warnOfFlags warns of flags that the engine does not have or cannot use. It also warns of sizes that do not
// fit the GPUs, and of nodes that do not know of each other.
func (p *rolePlanner) warnOfFlags() {
	p.warnOfProblems(p.role.line)
	if p.ownLeader() {
		p.warnOfProblems(p.engineLine(&p.role.Worker, p.path.Child("template")))
	}
	p.warnOfRay()
	p.warnOfLauncher()
	p.warnWithoutModel()
	if l := p.role.line; l != nil && !l.Open {
		p.warnOfNodes(l)
		p.warnOfBalancing(l)
		p.warnOfSizes(l)
	}
}

func (p *rolePlanner) warnOfProblems(l *engineLine) {
	if l == nil {
		return
	}
	for _, problem := range l.Problems {
		p.warn(l.at(problem.Index), "%s", problem.Message)
	}
}

// connects are flags of an engine that is told of other nodes.
var connects = []string{
	"--nnodes", "--node-rank", "--headless", "--master-addr", "--distributed-executor-backend",
	"--data-parallel-rank", "--data-parallel-start-rank", "--data-parallel-address", "--data-parallel-size-local", "--data-parallel-backend",
	"--data-parallel-external-lb", "--data-parallel-hybrid-lb", "--data-parallel-multi-port-external-lb",
	"--dist-init-addr", "--nccl-init-addr",
}

// withoutRay is the first release of the image vllm-openai that has no Ray (requirements/cuda.txt of vLLM v0.18.0).
var withoutRay = imageref.Version{0, 18, 0}

// warnOfRay warns of the launcher Ray, which is the default, where the image has no Ray.
func (p *rolePlanner) warnOfRay() {
	if p.role.Nodes == 1 || p.launcher() != v1alpha1.LauncherRay {
		return
	}
	leader := p.role.Leader.engine()
	if v, known := vllmVersion(leader); !known || v.Compare(withoutRay) < 0 {
		return
	}
	p.warn(p.path.Child("multinode", "launcher"),
		"%s has no Ray, as of v%s, so the pods end with \"ray: not found\": set launcher: %s, or use an image with Ray and another name", text.Value(leader.Image), withoutRay, v1alpha1.LauncherVLLM)
}

// newFlags are flags that launchers add, and that old releases of vLLM lack. instead says which launcher these releases can have.
var (
	newFlags = map[v1alpha1.Launcher]string{v1alpha1.LauncherVLLM: "--nnodes", v1alpha1.LauncherVLLMDataParallel: "--data-parallel-address"}
	instead  = map[v1alpha1.Launcher]string{v1alpha1.LauncherVLLM: ", or set launcher: " + string(v1alpha1.LauncherRay)}
)

// warnOfLauncher warns of a launcher for another engine than the image's, or for a newer release of it.
func (p *rolePlanner) warnOfLauncher() {
	l := p.role.line
	if p.role.Nodes == 1 || l == nil {
		return
	}
	image, launcher, at := p.role.Leader.engine().Image, p.launcher(), p.path.Child("multinode", "launcher")
	word := engineWord(image)
	flag := newFlags[launcher]
	switch {
	case launcher == v1alpha1.LauncherSGLang && !l.named && l.engine == launch.EngineVLLM:
		p.warn(at, "%s starts vLLM, which does not have the flags of SGLang that this launcher adds: set launcher: %s", text.Value(image), v1alpha1.LauncherVLLM)
	case launcher.OfVLLM() && !l.named && strings.Contains(word, "sglang") && !strings.Contains(word, "vllm"):
		p.warn(at, "%s seems to have SGLang, and this launcher is for vLLM: set launcher: %s", text.Value(image), v1alpha1.LauncherSGLang)
	case flag != "" && engineflags.VLLM().Lacks(flag, l.tag):
		p.warn(at, "vLLM %s has no flag %s, which this launcher adds: use an image of a later release%s", text.Value(l.tag), flag, instead[launcher])
	}
}

// warnOfNodes warns of an engine that runs on several nodes and is not told so.
func (p *rolePlanner) warnOfNodes(l *engineLine) {
	t := &p.role.Leader
	if p.role.Nodes == 1 || p.launcher() != v1alpha1.LauncherNone || p.ownLeader() || l.script || l.Has(connects...) || t.mentions("LWS_") || t.mentions("RANK") {
		return
	}
	launcher := v1alpha1.LauncherVLLM
	if l.engine == launch.EngineSGLang {
		launcher = v1alpha1.LauncherSGLang
	}
	p.warn(p.path.Child("multinode", "launcher"),
		"each of the %d pods starts %s with the whole model, because nothing connects them: set launcher: %s, or tell the engine of the other nodes by its flags and $(LWS_LEADER_ADDRESS)", p.role.Nodes, l.engine, launcher)
}

// externallyBalanced are flags of vLLM with which somebody else spreads the requests over the nodes.
var externallyBalanced = []string{
	"--data-parallel-external-lb", "--data-parallel-rank", "--data-parallel-hybrid-lb", "--data-parallel-start-rank", flagManyPorts,
}

// flagManyPorts makes each rank answer on a port of its own, from that of --port on.
const flagManyPorts = "--data-parallel-multi-port-external-lb"

// warnOfBalancing warns of data-parallel ranks that get no requests, because nobody spreads them: requests come to the leader alone, and to one
// port of it (vllm/entrypoints/cli/serve.py and vllm/entrypoints/openai/dp_supervisor.py).
func (p *rolePlanner) warnOfBalancing(l *engineLine) {
	if l.engine != launch.EngineVLLM || l.Has("--headless") {
		return
	}
	own := p.role.Nodes > 1 && p.launcher() == v1alpha1.LauncherNone
	switch i := slices.IndexFunc(externallyBalanced, func(flag string) bool { return l.Has(flag) }); {
	case l.Has(flagManyPorts):
		p.warn(l.pathOf(flagManyPorts), "requests come to port %d alone, so the ranks on other ports get none: leave the flag out, and vLLM spreads them over all ranks", p.role.EnginePort)
	case own && i >= 0:
		p.warn(l.pathOf(externallyBalanced[i]),
			"requests come to the leader alone, and with %s it passes none on, so the ranks of other nodes get none: set launcher: %s, with which it does", externallyBalanced[i], v1alpha1.LauncherVLLMDataParallel)
	}
}

// gpusOf returns the GPUs of an engine's container. It is 0 if they are not known.
func gpusOf(t *PodTemplate) (n int, name corev1.ResourceName) {
	r := t.engine().Resources
	if len(r.Claims) > 0 || slices.ContainsFunc(t.engine().Env, choosesGPUs) {
		return 0, ""
	}
	for _, gpu := range singleGPUs() {
		q, ok := r.Limits[gpu]
		if !ok {
			q, ok = r.Requests[gpu]
		}
		if !ok {
			continue
		}
		if n > 0 || q.Value() < 1 || q.Value() > maxParallel {
			return 0, ""
		}
		n, name = int(q.Value()), gpu
	}
	return n, name
}

// choosesGPUs tells whether a variable changes which GPUs an engine uses, or how many.
func choosesGPUs(e corev1.EnvVar) bool {
	return strings.HasSuffix(e.Name, "_VISIBLE_DEVICES") || strings.HasSuffix(e.Name, "_VISIBLE_MODULES") || strings.HasPrefix(e.Name, "VLLM_DP_")
}

// A sizing is how many GPUs an engine uses.
type sizing struct {
	gpus int
	// besides is how many tensor parallel groups it has.
	besides int
	// atLeast tells that it may use more.
	atLeast bool
	// formula is how it comes about.
	formula string
}

// gpus returns the GPUs that an engine's sizes are for, and whose they are. Without a name they are not
// known.
func (p *rolePlanner) gpus() (n int, name corev1.ResourceName, of string) {
	n, name = gpusOf(&p.role.Leader)
	if p.role.Nodes == 1 {
		return n, name, "the pod"
	}
	worker, same := gpusOf(&p.role.Worker)
	switch l := p.launcher(); {
	case l == v1alpha1.LauncherNone || same != name:
		return 0, "", ""
	// Each pod has an engine with ranks of its own.
	case l == v1alpha1.LauncherVLLMDataParallel && worker == n:
		return n, name, "each pod"
	case l == v1alpha1.LauncherVLLMDataParallel:
		return 0, "", ""
	}
	return n + worker*(int(p.role.Nodes)-1), name, fmt.Sprintf("a replica with %d pods", p.role.Nodes)
}

// warnOfSizes warns of an engine that uses more GPUs than it has, or fewer.
func (p *rolePlanner) warnOfSizes(l *engineLine) {
	gpus, name, of := p.gpus()
	if name == "" {
		return
	}
	s, ok := p.vllmSizing(l)
	if l.engine == launch.EngineSGLang {
		s, ok = sglangSizing(l, gpus)
	}
	warn := func(message string, args ...any) {
		p.warn(l.pathOf("--tensor-parallel-size", "--tp-size"), "%s, so %s %s", s.formula, l.engine, fmt.Sprintf(message, args...))
	}
	const idle = "uses %d of the %d GPUs of %s (%s): "
	switch {
	case !ok || s.gpus == gpus:
	case s.gpus > gpus:
		warn("needs %d GPUs, and %s has %d (%s): set smaller sizes, or request more GPUs", s.gpus, of, gpus, name)
	case !s.atLeast && gpus%s.besides == 0:
		warn(idle+"set --tensor-parallel-size to %d, or request fewer GPUs", s.gpus, gpus, of, name, gpus/s.besides)
	case !s.atLeast:
		warn(idle+"set sizes that use them all, or request fewer GPUs", s.gpus, gpus, of, name)
	}
}

// elsewhere are flags of an engine whose data parallel ranks are not all in its replica.
var elsewhere = []string{
	"--data-parallel-rank", "--data-parallel-start-rank", "--data-parallel-address", "--data-parallel-backend", "--data-parallel-external-lb", "--data-parallel-hybrid-lb",
	"--data-parallel-multi-port-external-lb", "--headless",
}

// vllmSizing returns how many GPUs vLLM uses. Ray may have other GPUs than those of the replica, unless
// the launcher starts it.
func (p *rolePlanner) vllmSizing(l *engineLine) (sizing, bool) {
	executor, _ := l.Get("--distributed-executor-backend")
	if l.Has("--device", "--device-ids", "--enable-elastic-ep") || executor.Value != "" && executor.Value != "mp" && executor.Value != "uni" && p.launcher() != v1alpha1.LauncherRay {
		return sizing{}, false
	}
	tensor, ok1 := l.number(1, "--tensor-parallel-size")
	pipeline, ok2 := l.number(1, "--pipeline-parallel-size")
	context, ok3 := l.number(1, "--prefill-context-parallel-size")
	data, ok4 := l.number(1, "--data-parallel-size")
	s := sizing{formula: fmt.Sprintf("tensor x pipeline x data parallel is %d x %d x %d", tensor, pipeline, data)}
	if context > 1 {
		s.formula = fmt.Sprintf("tensor x pipeline x context x data parallel is %d x %d x %d x %d", tensor, pipeline, context, data)
	}
	switch local, known := l.number(0, "--data-parallel-size-local"); {
	case !known:
		return s, false
	case local == 0 && p.launcher() == v1alpha1.LauncherVLLMDataParallel:
		// The launcher divides the ranks among the nodes, and refuses others. The GPUs are those of each.
		if data%int(p.role.Nodes) != 0 {
			return s, false
		}
		data /= int(p.role.Nodes)
		s.formula = fmt.Sprintf("tensor x pipeline x data parallel of each node is %d x %d x %d", tensor, pipeline, data)
	case local > 0:
		data, s.formula = local, fmt.Sprintf("tensor x pipeline x local data parallel is %d x %d x %d", tensor, pipeline, local)
	case l.Has(elsewhere...):
		data, s.atLeast, s.formula = 1, true, fmt.Sprintf("tensor x pipeline parallel is %d x %d", tensor, pipeline)
	}
	s.besides = pipeline * context * data
	s.gpus = tensor * s.besides
	return s, ok1 && ok2 && ok3 && ok4
}

// sglangSizing returns how many GPUs SGLang uses. With data parallel attention, its ranks share the GPUs of
// tensor parallel. SGLang chooses that itself for some models.
func sglangSizing(l *engineLine, gpus int) (sizing, bool) {
	if l.Has("--device", "--base-gpu-id", "--gpu-id-step", "--encoder-only", "--elastic-ep-backend") {
		return sizing{}, false
	}
	tensor, ok1 := l.number(1, "--tensor-parallel-size", "--tp-size")
	pipeline, ok2 := l.number(1, "--pipeline-parallel-size", "--pp-size")
	data, ok3 := l.number(1, "--data-parallel-size", "--dp-size")
	s := sizing{gpus: tensor * pipeline, besides: pipeline, formula: fmt.Sprintf("tensor x pipeline parallel is %d x %d", tensor, pipeline)}
	if s.gpus != gpus && !l.Has("--enable-dp-attention") {
		s.gpus, s.besides, s.formula = s.gpus*data, pipeline*data, fmt.Sprintf("tensor x pipeline x data parallel is %d x %d x %d", tensor, pipeline, data)
	}
	return s, ok1 && ok2 && ok3
}
