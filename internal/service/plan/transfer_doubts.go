package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

// warnOfTransfer warns of engines of prefill and decode that are not told to hand over the KV cache. The engines of all nodes have to be.
func (p *rolePlanner) warnOfTransfer() {
	if !p.paired {
		return
	}
	p.warnWithoutTransfer(&p.role.Leader, p.leaderPath(), p.role.line)
	// Under Ray, workers do not run the command of their template.
	if p.ownLeader() && p.launcher() != v1alpha1.LauncherRay {
		path := p.path.Child("template")
		if l := p.engineLine(&p.role.Worker, path); l != nil {
			p.warnWithoutTransfer(&p.role.Worker, path, l)
		}
	}
}

func (p *rolePlanner) warnWithoutTransfer(t *PodTemplate, path *field.Path, l *engineLine) {
	if p.isVLLM(t) && !t.hasConnector(l) {
		p.warn(t.enginePath(path).Child("args"),
			`prefill cannot pass the KV cache to decode: add --kv-transfer-config and {"kv_connector":"NixlConnector","kv_role":"kv_both"}, as two elements, to both roles`)
	}
}

// hasConnector tells whether a template may give vLLM a KV connector. The line is nil for a program that is not known.
func (t *PodTemplate) hasConnector(l *engineLine) bool {
	const flag = "--kv-transfer-config"
	if l != nil && (l.Open || l.Has(flag, flag+".kv_connector")) || len(t.engine().EnvFrom) > 0 {
		return true
	}
	return slices.ContainsFunc([]string{"kv-transfer-config", "kv_transfer_config"}, func(text string) bool {
		return t.envSays(text) || l == nil && t.says(text)
	})
}
