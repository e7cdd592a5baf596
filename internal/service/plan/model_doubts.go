package plan

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/launch"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// The hub finds a commit by its whole hash only (docs/source/en/guides/download.md and REGEX_COMMIT_HASH in
// src/huggingface_hub/file_download.py of huggingface_hub). A date is a likely tag, and has no letters.
var (
	partOfCommit = regexp.MustCompile(`^[0-9a-fA-F]{7,39}$`)
	onlyDigits   = regexp.MustCompile(`^[0-9]+$`)
)

// warnOfSource warns of a model that the hub probably does not have. at is the path of the model.
func warnOfSource(at *field.Path, m *v1alpha1.Model) []Warning {
	if m == nil || m.Source().Hub == "" {
		return nil
	}
	var all []Warning
	if hub := m.Source().Hub; !strings.Contains(hub, "/") {
		all = append(all, warningAt(at.Child("uri"), "%q has no organization, and the hub has only a few old models without one, such as gpt2: write hf://{organization}/%s", text.Value(hub), text.Value(hub)))
	}
	if r := m.Revision; partOfCommit.MatchString(r) && !onlyDigits.MatchString(r) {
		all = append(all, warningAt(at.Child("revision"), "%q looks like a part of a commit, and the hub finds a commit by all of its 40 digits only: write all of them, or the name of a branch or a tag", r))
	}
	return all
}

// warnWithoutModel warns of an engine that is told of no model. vLLM loads a small one then, by the default of
// --model (vllm/config/model.py), and SGLang ends, because it requires --model-path
// (python/sglang/srt/server_args.py).
func (p *rolePlanner) warnWithoutModel() {
	if p.model != nil {
		return
	}
	lines := []*engineLine{p.role.line}
	// Ray starts the workers, and the leader alone starts the engine.
	if p.ownLeader() && p.launcher() != v1alpha1.LauncherRay {
		lines = append(lines, p.engineLine(&p.role.Worker, p.path.Child("template")))
	}
	for _, l := range lines {
		// The entrypoint of another image may add the model.
		if l == nil || l.names() || !l.starts {
			continue
		}
		message := "vLLM gets no model, so it loads a small one by default: set spec.model, or write the model in args"
		if l.engine == launch.EngineSGLang {
			message = "SGLang gets no --model-path, without which it ends at once: set spec.model, or write --model-path in args"
		}
		p.warn(p.path, "%s", message)
		return
	}
}

// names tells whether a command line may name a model, or needs none.
func (l *engineLine) names() bool {
	return l.Open || l.ModelAt >= 0 || l.MayBeModel || l.Has("--model", "--model-path", "--help", "--version")
}
