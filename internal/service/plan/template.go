package plan

import (
	"path"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/imageref"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/launch"
	"github.com/fusioninfer/function-inferenceservice/internal/podspec"
)

// A podTemplate has the fields of a template that planning reads.
type podTemplate struct {
	Metadata struct {
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec corev1.PodSpec `json:"spec"`
}

// readTemplate reads a pod template, validates it, and finds its engine. If it returns no
// template, the role cannot be planned.
//
// It validates what the user wrote with the API server's defaults, without what rendering adds.
// So each error's path is one of the user's fields. Rendering keeps a valid template valid, with
// one exception: see checkPodResources. The fuzzers and TestRenderedTemplatesAreValid test this.
func readTemplate(doc *kube.Document, at *field.Path) (*PodTemplate, []Warning, field.ErrorList) {
	t := podTemplate{}
	unknown, errs := kube.DecodeKnown(doc, at, &t)
	if len(errs) > 0 {
		return nil, nil, errs
	}
	if errs := checkPodSize(&t.Spec, at.Child("spec")); len(errs) > 0 {
		return nil, nil, errs
	}
	errs = checkLists(structpb.NewStructValue(doc), at)
	warnings, more := checkMetadata(doc, at)
	warnings = append(warnings, warnOfProbes(&t.Spec, at.Child("spec"))...)
	warnings = append(warnings, warnOfResources(t.Spec.InitContainers, at.Child("spec", "initContainers"))...)
	warnings = append(warnings, warnOfResources(t.Spec.Containers, at.Child("spec", "containers"))...)
	// What metadata has, checkMetadata checks.
	metadata := at.Child("metadata").String() + "."
	unknown = slices.DeleteFunc(unknown, func(u kube.UnknownField) bool { return strings.HasPrefix(u.Path, metadata) })
	unknown, misplaced := withoutMisplaced(unknown, at)
	doubts, misspelt := judgeUnknown(unknown, podspec.UnknownField)
	warnings = append(warnings, doubts...)
	errs = slices.Concat(errs, more, misplaced, misspelt)
	p := &PodTemplate{Document: doc, Spec: t.Spec, Labels: t.Metadata.Labels, Annotations: t.Metadata.Annotations}
	containers := at.Child("spec", "containers")
	if len(t.Spec.Containers) == 0 {
		errs = append(errs, field.Required(containers, "a pod template has at least one container"))
	}
	errs = append(errs, withoutRepeats(podspec.Validate(&corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: t.Metadata.Labels, Annotations: t.Metadata.Annotations},
		Spec:       t.Spec,
	}, at), errs)...)
	if len(t.Spec.Containers) == 0 {
		return nil, warnings, errs
	}
	engine, err := findEngine(t.Spec.Containers)
	if err != nil {
		return nil, warnings, append(errs, err(containers))
	}
	p.Engine = engine
	p.parsed = launch.Parse(p.command())
	p.expanded = p.parsed.Expand(p.engine().Env)
	return p, warnings, errs
}

// withoutRepeats removes errors that earlier ones already report: about the same field, below a
// required field that is missing, and about an element that is a duplicate.
func withoutRepeats(errs, earlier field.ErrorList) field.ErrorList {
	return slices.DeleteFunc(errs, func(e *field.Error) bool {
		return slices.ContainsFunc(earlier, func(s *field.Error) bool {
			rest, below := strings.CutPrefix(e.Field, s.Field)
			switch {
			case !below || rest != "" && rest[0] != '.' && rest[0] != '[':
				return false
			case rest == "" || s.Type == field.ErrorTypeRequired:
				return true
			}
			return s.Type == field.ErrorTypeDuplicate && (e.Type == field.ErrorTypeDuplicate || e.Detail == "must be unique")
		})
	})
}

// engineNames are usual names of the engine's container.
var engineNames = []string{"vllm", "sglang", "engine", "inference-engine", "inference", "inference-server", "model", "model-server", "llm", "server", "prefill", "decode", "worker", "leader", "main"}

// hints tell whether a container may be the engine. Earlier ones are more reliable.
var hints = []func(*corev1.Container) bool{
	func(c *corev1.Container) bool {
		return launch.Parse(commandOf(c)).Engine() != launch.EngineUnknown
	},
	func(c *corev1.Container) bool { return slices.Contains(engineNames, c.Name) },
	func(c *corev1.Container) bool {
		return mentionsEngine(c.Name) || mentionsEngine(path.Base(c.Image))
	},
	func(c *corev1.Container) bool {
		return slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == "http" || p.ContainerPort == defaultPort })
	},
	hasDevices,
}

func mentionsEngine(s string) bool {
	return strings.Contains(s, "vllm") || strings.Contains(s, "sglang")
}

// engineWord is the part of an image that names its engine: the last element of the repository, or else the tag. If neither does, it is
// the whole image.
func engineWord(image string) string {
	name, tag := imageref.Split(image)
	for _, word := range []string{name, tag} {
		if mentionsEngine(word) || strings.Contains(word, llmd) {
			return word
		}
	}
	return image
}

// hasDevices tells whether a container requests devices, such as GPUs.
func hasDevices(c *corev1.Container) bool {
	for name := range c.Resources.Limits {
		if capacity.IsDevice(name) {
			return true
		}
	}
	return len(c.Resources.Claims) > 0
}

// findEngine returns the index of the engine's container. Each hint narrows down the candidates,
// unless it matches none of them.
func findEngine(containers []corev1.Container) (int, func(*field.Path) *field.Error) {
	candidates := make([]int, len(containers))
	for i := range candidates {
		candidates[i] = i
	}
	for _, hint := range hints {
		if len(candidates) == 1 {
			break
		}
		matching := slices.DeleteFunc(slices.Clone(candidates), func(i int) bool { return !hint(&containers[i]) })
		if len(matching) > 0 {
			candidates = matching
		}
	}
	if len(candidates) == 1 {
		return candidates[0], nil
	}
	names := make([]string, len(candidates))
	for i, c := range candidates {
		names[i] = containers[c].Name
	}
	return 0, func(at *field.Path) *field.Error {
		return field.Invalid(at, strings.Join(names, ", "), "cannot tell which of these containers is the engine: name the engine's container vllm, sglang or engine, or give it a port named http")
	}
}

// EngineOf returns the container of a pod that is the engine. Where that cannot be told, it is the first one.
func EngineOf(containers []corev1.Container) *corev1.Container {
	if len(containers) == 0 {
		return &corev1.Container{}
	}
	i, _ := findEngine(containers)
	return &containers[i]
}

func (t *PodTemplate) engine() *corev1.Container { return &t.Spec.Containers[t.Engine] }

func (t *PodTemplate) command() launch.Command { return commandOf(t.engine()) }

func commandOf(c *corev1.Container) launch.Command {
	return launch.Command{Command: c.Command, Args: c.Args}
}

// words are those of the engine's command line.
func (t *PodTemplate) words() []string { return slices.Concat(t.engine().Command, t.engine().Args) }

// wordPath is the path of a word of the engine's command line, in the template at a path. It is the path
// that the user knows, without the model of spec.model.
func (t *PodTemplate) wordPath(at *field.Path, i int) *field.Path {
	command := len(t.engine().Command)
	if t.modelWord > 0 && i >= t.modelWord {
		i--
		if t.modelWord < command {
			command--
		}
	}
	if i < command {
		return t.enginePath(at).Child("command").Index(i)
	}
	return t.enginePath(at).Child("args").Index(i - command)
}

// mentions tells whether the engine's command or environment may contain a text. Some images take
// arguments from the environment, and the values of envFrom are unknown.
func (t *PodTemplate) mentions(text string) bool { return t.says(text) || len(t.engine().EnvFrom) > 0 }

// says tells whether the engine's command or environment contains a text, as far as their values are known.
func (t *PodTemplate) says(text string) bool {
	return t.envSays(text) || slices.ContainsFunc(t.words(), func(s string) bool { return strings.Contains(s, text) })
}

// envSays tells whether the engine's environment contains a text, as far as its values are known.
func (t *PodTemplate) envSays(text string) bool {
	return slices.ContainsFunc(t.engine().Env, func(e corev1.EnvVar) bool { return strings.Contains(e.Value, text) })
}

// enginePath is the path of the engine's container.
func (t *PodTemplate) enginePath(at *field.Path) *field.Path {
	return at.Child("spec", "containers").Index(t.Engine)
}

// hasSharedMemory tells whether the engine has more than the default 64 MiB at /dev/shm: from a
// volume of the user, or from the node by hostIPC.
func (t *PodTemplate) hasSharedMemory() bool {
	return t.Spec.HostIPC || slices.ContainsFunc(t.engine().VolumeMounts, func(m corev1.VolumeMount) bool { return path.Clean(m.MountPath) == "/dev/shm" })
}

// missing returns the variables that the engine's container does not have.
func (t *PodTemplate) missing(env []corev1.EnvVar) []corev1.EnvVar {
	return slices.DeleteFunc(env, func(e corev1.EnvVar) bool {
		return slices.ContainsFunc(t.engine().Env, func(own corev1.EnvVar) bool { return own.Name == e.Name })
	})
}

// routingSidecar returns the routing sidecar that the user's template has, or nil.
func (t *PodTemplate) routingSidecar() *corev1.Container {
	for _, list := range [][]corev1.Container{t.Spec.InitContainers, t.Spec.Containers} {
		for i := range list {
			image := path.Base(list[i].Image)
			if strings.Contains(image, "disagg-sidecar") || strings.Contains(image, "routing-sidecar") {
				return &list[i]
			}
		}
	}
	return nil
}
