package launch

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// A Model is what an engine loads. Its texts have no characters that a shell reads in another way.
type Model struct {
	// Path of the weights, or their name in the hub from which the engine downloads them.
	Path string
	// Name by which clients ask for the model.
	Name string
	// Revision in the hub. Empty means the hub's default.
	Revision string
}

// WithModel makes an engine load a model. It fails if the command names a model or another revision itself, or if it is
// unknown where the command takes one.
//
// vllm serve takes the model as its first word, and its --model is deprecated since v0.10. The entrypoint
// of vLLM's images is vllm serve, or api_server in older ones, and both take --model
// (vllm/utils/argparse_utils.py of vLLM v0.11.0 and later turns it into the first word).
func WithModel(c Command, e Engine, m Model) (Command, error) {
	l := Parse(c)
	if l.program() && l.words() != nil && l.Engine() == EngineUnknown {
		return Command{}, fmt.Errorf("it is unknown how %.80q takes the model of spec.model: start vLLM or SGLang, or leave spec.model out", l.words()[0])
	}
	if e == EngineUnknown {
		return Command{}, errors.New("it is unknown which engine the image starts, and so how it takes the model of spec.model: name the container vllm or sglang, set its command, or leave spec.model out")
	}
	if l.script > 0 {
		if _, ok := l.lastCommand(); !ok {
			return Command{}, errors.New("spec.model adds flags to the engine's command, which cannot be found in this script: make the engine's command the script's last line and leave out conditions, loops, functions, backquotes and here-documents, or run the engine without a shell")
		}
	}
	if named := l.model(); named != "" {
		return Command{}, fmt.Errorf("it names the model %.80q, and so does spec.model: leave one of them out", named)
	}
	if named := valueOf(l.engineWords(), "--revision"); named != "" && m.Revision != "" && named != m.Revision {
		return Command{}, fmt.Errorf("it names the revision %.80q, and spec.model %.80q: leave one of them out", named, m.Revision)
	}
	flags := []flag{{names: []string{"--served-model-name"}, value: m.Name}}
	if m.Revision != "" {
		flags = append(flags, flag{names: []string{"--revision"}, value: m.Revision})
	}
	switch {
	case e == EngineSGLang:
		flags = slices.Insert(flags, 0, flag{names: []string{"--model-path"}, value: m.Path})
	case !l.serves():
		flags = slices.Insert(flags, 0, flag{names: []string{"--model"}, value: m.Path})
	}
	l.append(flags...)
	if e != EngineSGLang {
		l.afterServe(m.Path)
	}
	return l.join(), nil
}

// model returns the model that the engine's command names, or nothing.
func (l *Line) model() string {
	words := l.engineWords()
	for _, flag := range []string{"--model", "--model-path"} {
		if v := valueOf(words, flag); v != "" {
			return v
		}
	}
	// The first word is the model of vllm serve, and of an image whose entrypoint that is.
	if len(words) > 0 && !strings.HasPrefix(words[0], "-") {
		return words[0]
	}
	return ""
}

// serves tells whether the command has vllm serve.
func (l *Line) serves() bool { return l.serveIndex() >= 0 }

// serveIndex is the index of serve in vllm serve, or -1.
func (l *Line) serveIndex() int {
	words := l.words()
	if l.startsWithServe() {
		return 0
	}
	for i := 1; i < len(words); i++ {
		if words[i] == "serve" && path.Base(words[i-1]) == "vllm" {
			return i
		}
	}
	return -1
}

// afterServe puts a word behind vllm serve, if the command has it.
func (l *Line) afterServe(w string) {
	i := l.serveIndex()
	switch {
	case i < 0:
	case l.script > 0:
		script := l.argv[l.script]
		last, _ := l.lastCommand()
		end := last.words[i].end
		l.setScript(script[:end] + " " + w + script[end:])
	default:
		if i+1 < l.command {
			l.command++
		}
		l.argv = slices.Insert(l.argv, i+1, w)
	}
}
