package plan

import (
	"path"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/launch"
	"github.com/fusioninfer/function-inferenceservice/internal/podspec"
)

// A podTemplate is the part of a template that is read.
type podTemplate struct {
	Metadata struct {
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec corev1.PodSpec `json:"spec"`
}

// readTemplate reads a pod template, validates it, and finds its engine. Where it
// returns none, the template cannot be planned with.
//
// It is validated as it was written, with the API server's defaults, and not with what
// is rendered on top of it: so each path is one of the user's fields. What is rendered
// keeps a valid template valid, with one exception (see fits). The fuzzers and
// TestRenderedTemplatesAreValid hold it to that.
func readTemplate(doc *kube.Document, at *field.Path) (*PodTemplate, []Warning, field.ErrorList) {
	t := podTemplate{}
	if errs := kube.Decode(doc, at, &t); len(errs) > 0 {
		return nil, nil, errs
	}
	errs := checkLists(structpb.NewStructValue(doc), at)
	warnings, more := checkMetadata(doc, at)
	errs = append(errs, more...)
	p := &PodTemplate{Document: doc, Spec: t.Spec, Labels: t.Metadata.Labels, Annotations: t.Metadata.Annotations}
	containers := at.Child("spec", "containers")
	if len(t.Spec.Containers) == 0 {
		hint := "a pod template has at least one container"
		if doc.GetFields()["containers"] != nil {
			hint = "a pod template has its containers below spec"
		}
		errs = append(errs, field.Required(containers, hint))
	}
	errs = append(errs, unsaid(podspec.Validate(&corev1.PodTemplateSpec{
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
	return p, warnings, errs
}

// unsaid leaves out what was said already: of the same field, of an element that is
// null, and of one that is there twice.
func unsaid(errs, said field.ErrorList) field.ErrorList {
	return slices.DeleteFunc(errs, func(e *field.Error) bool {
		return slices.ContainsFunc(said, func(s *field.Error) bool {
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

// engineNames are what a container is called that serves a model.
var engineNames = []string{"vllm", "sglang", "engine", "inference-engine", "inference", "inference-server", "model", "model-server", "llm", "server", "prefill", "decode", "worker", "leader", "main"}

// hints tell the engine's container from others, the best first.
var hints = []func(*corev1.Container) bool{
	func(c *corev1.Container) bool {
		return launch.EngineOf(launch.Command{Command: c.Command, Args: c.Args}) != launch.EngineUnknown
	},
	func(c *corev1.Container) bool { return slices.Contains(engineNames, c.Name) },
	func(c *corev1.Container) bool {
		return mentionsEngine(c.Name) || mentionsEngine(c.Image)
	},
	func(c *corev1.Container) bool {
		return slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == "http" || p.ContainerPort == defaultPort })
	},
	hasDevices,
}

func mentionsEngine(s string) bool {
	base := path.Base(s)
	return strings.Contains(base, "vllm") || strings.Contains(base, "sglang")
}

// hasDevices tells whether a container has a GPU or the like: a resource of a
// vendor.
func hasDevices(c *corev1.Container) bool {
	for name := range c.Resources.Limits {
		if isDevice(name) {
			return true
		}
	}
	return len(c.Resources.Claims) > 0
}

// findEngine returns the index of the engine's container. Each hint narrows the
// candidates down, unless it fits none of them.
func findEngine(containers []corev1.Container) (int, func(*field.Path) *field.Error) {
	candidates := make([]int, len(containers))
	for i := range candidates {
		candidates[i] = i
	}
	for _, hint := range hints {
		if len(candidates) == 1 {
			break
		}
		fits := slices.DeleteFunc(slices.Clone(candidates), func(i int) bool { return !hint(&containers[i]) })
		if len(fits) > 0 {
			candidates = fits
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
		return field.Invalid(at, strings.Join(names, ", "), "cannot tell which of these containers is the engine: name it vllm, sglang or engine, or give it a port named http")
	}
}

func (t *PodTemplate) engine() *corev1.Container { return &t.Spec.Containers[t.Engine] }

func (t *PodTemplate) command() launch.Command {
	return launch.Command{Command: t.engine().Command, Args: t.engine().Args}
}

// mentions tells whether a text is anywhere in the engine's command or its
// environment, from which some images take their arguments.
func (t *PodTemplate) mentions(text string) bool {
	c := t.engine()
	in := func(s string) bool { return strings.Contains(s, text) }
	return slices.ContainsFunc(c.Command, in) || slices.ContainsFunc(c.Args, in) || len(c.EnvFrom) > 0 ||
		slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return in(e.Value) })
}

// enginePath is where the engine's container is in the spec.
func (t *PodTemplate) enginePath(at *field.Path) *field.Path {
	return at.Child("spec", "containers").Index(t.Engine)
}

// hasSharedMemory tells whether the engine has more shared memory than a
// container's 64 MiB: a mount of the user's, or the node's own.
func (t *PodTemplate) hasSharedMemory() bool {
	return t.Spec.HostIPC || slices.ContainsFunc(t.engine().VolumeMounts, func(m corev1.VolumeMount) bool { return path.Clean(m.MountPath) == "/dev/shm" })
}

// missing returns the variables that the engine's container does not have.
func (t *PodTemplate) missing(env []corev1.EnvVar) []corev1.EnvVar {
	return slices.DeleteFunc(env, func(e corev1.EnvVar) bool {
		return slices.ContainsFunc(t.engine().Env, func(own corev1.EnvVar) bool { return own.Name == e.Name })
	})
}

// routingSidecar returns the routing sidecar that the user brought along, if
// any.
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
