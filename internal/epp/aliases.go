package epp

import (
	"errors"
	"fmt"
	"io"
	"strings"

	goyaml "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// maxExpanded limits the keys and values of a configuration in bytes, with its aliases written
// out. No configuration without aliases has more: a character has at most 4 bytes.
const maxExpanded = 4 * v1alpha1.MaxConfig

// checkAliases refuses a configuration that its aliases make too large. The decoder writes each
// alias out, so this has to be known before it starts. Without aliases, the result of the
// decoder is in proportion to the text, and kube.CheckBounds says better what is too large.
func checkAliases(config string, path *field.Path) *field.Error {
	if !strings.Contains(config, "*") {
		return nil
	}
	n := goyaml.Node{}
	if err := goyaml.NewDecoder(strings.NewReader(config)).Decode(&n); errors.Is(err, io.EOF) {
		return nil
	} else if err != nil {
		// This is not the decoder that reads the configuration. It might find no error.
		return notYAML(err, config, path)
	}
	m := measurer{anchored: map[*goyaml.Node]*size{}}
	s := m.measure(&n)
	switch {
	case m.aliases == 0:
		return nil
	case m.cyclic != "":
		return field.Invalid(path, "*"+text.Value(m.cyclic), "must not be an alias within the value that it stands for")
	case s.values-1 > kube.MaxValues: // The document itself does not count.
		return field.Invalid(path, fmt.Sprintf("more than %d values", kube.MaxValues), fmt.Sprintf("must have at most %d values in all, with its aliases written out", kube.MaxValues))
	case s.bytes > maxExpanded:
		return field.Invalid(path, fmt.Sprintf("more than %d bytes", maxExpanded), fmt.Sprintf("must have at most %d bytes of keys and values in all, with its aliases written out", maxExpanded))
	case s.depth-1 > kube.MaxDepth:
		return field.Invalid(path, "...", fmt.Sprintf("must be nested at most %d deep, with its aliases written out", kube.MaxDepth))
	}
	return nil
}

// A size is that of a value with its aliases written out.
type size struct{ values, bytes, depth int }

// add adds the size of a value within this one.
func (s *size) add(inner size) {
	// What is too large need not be exact. Without a limit, aliases of aliases exceed any number.
	s.values = min(s.values+inner.values, 2*kube.MaxValues)
	s.bytes = min(s.bytes+inner.bytes, 2*maxExpanded)
	s.depth = max(s.depth, inner.depth+1)
}

// A measurer measures each value once, however many aliases it has.
type measurer struct {
	// anchored are the sizes of the values that aliases may stand for. Nil is a value that is
	// not measured to its end.
	anchored map[*goyaml.Node]*size
	aliases  int
	// cyclic is an alias that is within the value that it stands for.
	cyclic string
}

// measure visits the values in the order of the text. So an alias always comes after the start of
// what it stands for, and its depth does not matter for the stack.
func (m *measurer) measure(n *goyaml.Node) size {
	if n.Kind == goyaml.DocumentNode {
		return m.measure(n.Content[0])
	}
	if n.Kind == goyaml.AliasNode {
		m.aliases++
		s := m.anchored[n.Alias]
		if s == nil {
			m.cyclic = n.Value
			return size{}
		}
		return *s
	}
	if n.Anchor != "" {
		m.anchored[n] = nil
	}
	s := size{values: 1, bytes: len(n.Value)}
	for i, inner := range n.Content {
		of := m.measure(inner)
		if n.Kind == goyaml.MappingNode && i%2 == 0 {
			of.values-- // A key is not a value of its own.
		}
		s.add(of)
	}
	if n.Anchor != "" {
		m.anchored[n] = &s
	}
	return s
}
