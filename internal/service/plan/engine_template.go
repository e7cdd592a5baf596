package plan

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/launch"
)

// template reads a template of the role, and adds what the model, adapters, the shutdown and traces need. It returns nil if the role
// cannot be planned.
func (p *rolePlanner) template(doc *kube.Document, path *field.Path) *PodTemplate {
	t, warnings, errs := readTemplate(doc, path)
	add := func(with func(*PodTemplate, *field.Path) (*kube.Document, *field.Error)) {
		doc, err := with(t, path)
		if err != nil {
			errs = append(errs, err)
			return
		}
		before, word := t.words(), t.modelWord
		if t, warnings, errs = readTemplate(doc, path); t != nil {
			t.modelWord = max(word, insertedWord(before, t.words()))
		}
	}
	// What the service adds has problems of its own, which are told together with those of the template.
	addOrCheck := func(with func(*PodTemplate, *field.Path) (*kube.Document, *field.Error)) {
		if len(errs) == 0 {
			add(with)
		} else if !engineInDoubt(errs, t.enginePath(path)) {
			if _, err := with(t, path); err != nil {
				errs = append(errs, err)
			}
		}
	}
	if p.model != nil && t != nil {
		addOrCheck(p.withModel)
	}
	if p.adapters != nil && t != nil {
		if len(errs) == 0 {
			p.warnOfAdapterVariables(t, path)
		}
		addOrCheck(p.withAdapters)
	}
	if t != nil && len(errs) == 0 && p.endsInTime(t) > 0 {
		add(withFlag(launch.ShutdownTimeout, strconv.Itoa(int(p.endsInTime(t)))))
	}
	if t != nil && len(errs) == 0 && p.traces(t) {
		add(withFlag(launch.TracesEndpoint, p.input.Monitoring.Tracing.Endpoint))
	}
	p.warnings = append(p.warnings, warnings...)
	p.errs = append(p.errs, errs...)
	return t
}

// withFlag returns how a template becomes one whose engine gets a flag, as if the user had written it.
func withFlag(name, value string) func(*PodTemplate, *field.Path) (*kube.Document, *field.Error) {
	return func(t *PodTemplate, _ *field.Path) (*kube.Document, *field.Error) {
		command := launch.WithFlag(t.command(), name, value)
		doc, _, container := t.editable()
		setCommand(container, command)
		return doc, nil
	}
}

// engineInDoubt tells whether there are errors about what says which engine a container runs, and with which flags. What is
// made of that would then be wrong, too.
func engineInDoubt(errs field.ErrorList, engine *field.Path) bool {
	for _, part := range []string{"name", "image", "command", "args"} {
		at := engine.Child(part).String()
		if slices.ContainsFunc(errs, func(e *field.Error) bool { return e.Field == at || strings.HasPrefix(e.Field, at+"[") }) {
			return true
		}
	}
	return false
}

// insertedWord is the index of the word that was put between others, or 0. In a script, and at the end of
// a command line, no word is.
func insertedWord(before, after []string) int {
	for i, w := range before {
		if len(after) > len(before) && after[i] != w {
			return i
		}
	}
	return 0
}
