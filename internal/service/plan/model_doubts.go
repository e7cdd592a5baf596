package plan

import (
	"slices"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/imageref"
	"github.com/fusioninfer/function-inferenceservice/internal/launch"
)

// warnWithoutModel warns of an engine that is told of no model. vLLM loads a small one then, by the default of
// --model (vllm/config/model.py), and SGLang ends, because it requires --model-path
// (python/sglang/srt/server_args.py).
func (p *rolePlanner) warnWithoutModel() {
	if p.model != nil {
		return
	}
	templates := []*PodTemplate{&p.role.Leader}
	lines := []*engineLine{p.role.line}
	// Ray starts the workers, and the leader alone starts the engine.
	if p.ownLeader() && p.launcher() != v1alpha1.LauncherRay {
		templates = append(templates, &p.role.Worker)
		lines = append(lines, p.engineLine(&p.role.Worker, p.path.Child("template")))
	}
	for i, l := range lines {
		if l == nil || l.names() || !startsEngine(templates[i]) {
			continue
		}
		message := "vLLM gets no model, so it loads a small one by default: set spec.model, or write the model in args"
		if l.engine == launch.EngineSGLang {
			message = "SGLang gets no --model-path, without which it ends at once: set spec.model, or write --model-path in args"
		}
		p.warnings = append(p.warnings, Warning{Path: p.path.String(), Message: message})
		return
	}
}

// names tells whether a command line may name a model, or needs none.
func (l *engineLine) names() bool {
	return l.Open || l.ModelAt >= 0 || l.MayBeModel || l.Has("--model", "--model-path", "--help", "--version")
}

// startsEngine tells whether a template's command starts an engine, or has none and the image is known to start
// one. The entrypoint of another image may add the model.
func startsEngine(t *PodTemplate) bool {
	name, _ := imageref.Split(t.engine().Image)
	return launch.EngineOf(t.command()) != launch.EngineUnknown || slices.Contains(entrypoints, name)
}
