package launch

import (
	"errors"
	"fmt"
	"strings"
)

const enableLoRA = "--enable-lora"

// WithAdapters makes vLLM serve LoRA adapters. It fails if the command turns them off, or if it is unknown
// where the command takes flags.
func WithAdapters(c Command) (Command, error) {
	l := Parse(c)
	if l.program() && l.words() != nil && l.Engine() == EngineUnknown {
		return Command{}, fmt.Errorf("it is unknown whether %.80q takes %s, which spec.adapterCache needs: start vLLM, or leave spec.adapterCache out", l.words()[0], enableLoRA)
	}
	if has(l.engineWords(), "--no-enable-lora") {
		return Command{}, errors.New("spec.adapterCache needs LoRA adapters: leave --no-enable-lora out, or leave spec.adapterCache out")
	}
	if !l.append(flag{names: []string{enableLoRA}}) {
		return Command{}, errors.New("spec.adapterCache adds a flag to the engine's command, which cannot be found in this script: make the engine's command the script's last line and leave out conditions, loops, functions, backquotes and here-documents, or run the engine without a shell")
	}
	return l.join(), nil
}

// Model returns the model that the command makes its engine load: a path, or a name in a hub. It is empty
// if the command does not say it, or leaves it to a variable.
func (l Line) Model() string {
	model := l.model()
	if strings.ContainsAny(model, "$`") || len(model) > maxName {
		return ""
	}
	return model
}
