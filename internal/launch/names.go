package launch

import (
	"encoding/json"
	"slices"
	"strings"
)

// Names are the names of models that an engine answers.
type Names struct {
	// Served are the names of the engine's own model.
	Served []string
	// Adapters are the names of the LoRA adapters that it loads when it starts.
	Adapters []string
	// Complete tells that it answers no other names, as far as its command says.
	Complete bool
	// CacheAlone tells that it answers no other names but those of adapters in spec.adapterCache. Then the names are
	// not complete.
	CacheAlone bool
}

// maxNames is the most names that are read of one command, and maxName the most bytes of a name.
const maxNames, maxName = 256, 253

// Names returns the names of models that the command's engine answers.
//
// vLLM refuses other names, unless it loads adapters at run time. SGLang answers any name.
func (l Line) Names(e Engine) Names {
	words := l.engineWords()
	n := Names{Complete: e == EngineVLLM && words != nil && !has(words, "--config")}
	if e == EngineUnknown || words == nil || l.program() && l.Engine() == EngineUnknown {
		return Names{}
	}
	n.Served = values(words, "--served-model-name")
	if served := l.model(); len(n.Served) == 0 && served != "" {
		n.Served = []string{served}
	}
	flag := "--lora-modules"
	if e == EngineSGLang {
		flag = "--lora-paths"
	}
	for _, v := range values(words, flag) {
		if name := adapterName(v); name != "" {
			n.Adapters = append(n.Adapters, name)
		} else {
			n.Complete = false
		}
	}
	n.Complete = n.Complete && len(n.Served) > 0 && len(n.Served)+len(n.Adapters) <= maxNames
	n.Served, n.Adapters = n.known(n.Served), n.known(n.Adapters)
	return n
}

// known returns the names without those that only Kubernetes or a shell can expand, and those that no
// client can request.
func (n *Names) known(names []string) []string {
	unknown := func(s string) bool { return strings.ContainsAny(s, "$`") || len(s) > maxName || s == "" }
	if slices.ContainsFunc(names, unknown) {
		n.Complete = false
		names = slices.DeleteFunc(slices.Clone(names), unknown)
	}
	return names[:min(len(names), maxNames)]
}

// values returns the values of a flag that takes several: all words up to the next flag. Of a repeated
// flag, the engines take the last values. Here all count, so that none is missed.
func values(words []string, flag string) []string {
	var all []string
	for i := 0; i < len(words); i++ {
		name, v, joined := cut(words[i])
		switch {
		case name != flag:
		case joined:
			all = append(all, v)
		default:
			for i+1 < len(words) && !strings.HasPrefix(words[i+1], "-") {
				i++
				all = append(all, words[i])
			}
		}
	}
	return all
}

// adapterName is the name of an adapter: in name=path, or in a JSON object.
func adapterName(v string) string {
	if strings.HasPrefix(v, "{") {
		o := struct {
			Name     string `json:"name"`
			LoRAName string `json:"lora_name"`
		}{}
		if json.Unmarshal([]byte(v), &o) != nil {
			return ""
		}
		return o.Name + o.LoRAName
	}
	name, _, found := strings.Cut(v, "=")
	if !found {
		return ""
	}
	return name
}
