package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/launch"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// warnOfTransfer warns of engines of prefill and decode that are not told to hand over the KV cache. The engines of all nodes have to be.
func (p *rolePlanner) warnOfTransfer() {
	if !p.paired {
		return
	}
	p.warnOfNoConnector(&p.role.Leader, p.leaderPath(), p.role.line)
	p.warnOfMode(p.role.line)
	// Under Ray, workers do not run the command of their template.
	if p.ownLeader() && p.launcher() != v1alpha1.LauncherRay {
		path := p.path.Child("template")
		if l := p.engineLine(&p.role.Worker, path); l != nil {
			p.warnOfNoConnector(&p.role.Worker, path, l)
			p.warnOfMode(l)
		}
	}
}

// warnOfNoConnector warns of vLLM without a KV connector.
func (p *rolePlanner) warnOfNoConnector(t *PodTemplate, path *field.Path, l *engineLine) {
	if p.engineOf(t) == launch.EngineVLLM && !t.hasConnector(l) {
		p.warn(t.enginePath(path).Child("args"),
			`prefill cannot pass the KV cache to decode: add --kv-transfer-config and {"kv_connector":"NixlConnector","kv_role":"kv_both"}, as two elements, to both roles`)
	}
}

// warnOfMode warns of SGLang whose mode is not that of its role. Without a mode it serves alone (python/sglang/srt/server_args.py of
// SGLang v0.5.5).
func (p *rolePlanner) warnOfMode(l *engineLine) {
	const flag = "--disaggregation-mode"
	if l == nil || l.Open || l.engine != launch.EngineSGLang {
		return
	}
	mode := "prefill"
	if p.role.Type == v1alpha1.ComponentTypeDecoder {
		mode = "decode"
	}
	switch g, given := l.Get(flag); {
	case !given:
		p.warn(l.args, "prefill cannot pass the KV cache to decode: add %s=%s", flag, mode)
	case g.Known() && g.Value != mode:
		p.warn(l.at(g.Index), "prefill cannot pass the KV cache to decode with %s %s: set it to %s in a %s", flag, text.Value(g.Value), mode, p.role.Type)
	}
}

// hasConnector tells whether a template may give vLLM a KV connector. The line is nil for a program that is not known.
func (t *PodTemplate) hasConnector(l *engineLine) bool {
	const flag = "--kv-transfer-config"
	if l != nil && (l.Open || l.Has(flag, flag+".kv_connector")) || len(t.engine().EnvFrom) > 0 {
		return true
	}
	return slices.ContainsFunc([]string{"kv-transfer-config", "kv_transfer_config"}, func(name string) bool {
		return t.envSays(name) || l == nil && t.says(name)
	})
}
