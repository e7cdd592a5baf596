package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode"

	"sigs.k8s.io/yaml"
)

// forPeople writes text that people read in a terminal, which what strangers have written must not control. It
// replaces control characters, besides ends of lines and tabs.
type forPeople struct{ io.Writer }

// Write writes the text of whole characters.
func (w forPeople) Write(b []byte) (int, error) {
	plain := bytes.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return unicode.ReplacementChar
		}
		return r
	}, b)
	if _, err := w.Writer.Write(plain); err != nil {
		return 0, fmt.Errorf("cannot write: %w", err)
	}
	return len(b), nil
}

func write(w io.Writer, format string, r *rendered) error {
	switch format {
	case "json":
		return writeJSON(w, r)
	case "summary":
		return writeSummary(w, r)
	default:
		return writeYAML(w, r.all())
	}
}

// all returns the documents in the order of the output.
func (r *rendered) all() []object { return append([]object{r.xr}, r.composed...) }

func writeYAML(w io.Writer, all []object) error {
	for _, o := range all {
		b, err := yaml.Marshal(o.Object)
		if err != nil {
			return fmt.Errorf("cannot write %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		if _, err := fmt.Fprintf(w, "---\n%s", b); err != nil {
			return err
		}
	}
	return nil
}

// writeJSON writes one List, which kubectl and jq can read.
func writeJSON(w io.Writer, r *rendered) error {
	items := make([]any, 0, len(r.composed)+1)
	for _, o := range r.all() {
		items = append(items, o.Object)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
}
