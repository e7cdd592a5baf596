package epp

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

const (
	// maxErrors is the limit of the errors, and of the warnings, that Check returns.
	maxErrors = 30
	// maxTypes is more than the number of known plugins, so that messages list them all.
	maxTypes = 100
	// maxNames is how many names of a configuration a message lists.
	maxNames = 20
)

// problems are what is wrong with a configuration. They keep the first errors and warnings, and
// count the others. A configuration can have so many that all messages together would take far
// more memory than the configuration.
type problems struct {
	errs     field.ErrorList
	warnings []Warning
	// failed and warned are the numbers of all errors and warnings.
	failed, warned int
}

func (p *problems) fail(errs ...*field.Error) {
	for _, e := range errs {
		p.failWith(func() *field.Error { return e })
	}
}

// failWith makes an error only if it is kept. It is for errors of which there may be many.
func (p *problems) failWith(e func() *field.Error) {
	if p.failed++; p.failed <= maxErrors {
		p.errs = append(p.errs, e())
	}
}

func (p *problems) warn(at *field.Path, message func() string) {
	if p.warned++; p.warned <= maxErrors {
		p.warnings = append(p.warnings, Warning{at.String(), message()})
	}
}

// all returns the warnings and the errors, each with a last one that counts those left out.
func (p *problems) all(path *field.Path) ([]Warning, field.ErrorList) {
	if p.warned > maxErrors {
		p.warnings = append(p.warnings, Warning{path.String(), fmt.Sprintf("there are %d warnings, of which the first %d are listed", p.warned, maxErrors)})
	}
	if p.failed > maxErrors {
		p.errs = append(p.errs, field.Invalid(path, "...", fmt.Sprintf("has %d problems, of which the first %d are listed", p.failed, maxErrors)))
	}
	return p.warnings, p.errs
}

// listTypes joins types of plugins, or other names that this package knows, for a message.
func listTypes(names []string) string { return orNone(text.Names(names, maxTypes)) }

// listNames joins names of a configuration for a message. They can be many and long.
func listNames(names []string) string {
	var short []string
	for _, n := range names[:min(len(names), maxNames)] {
		short = append(short, text.Value(n))
	}
	if more := len(names) - len(short); more > 0 {
		return fmt.Sprintf("%s and %d more", text.Names(short, maxNames), more)
	}
	return orNone(text.Names(short, maxNames))
}

func orNone(list string) string {
	if list == "" {
		return "none"
	}
	return list
}
