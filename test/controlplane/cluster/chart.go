package cluster

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// A chart is a Helm chart whose simple templates can be rendered with its own values,
// so that what a project installs is not written down a second time.
type chart struct{ dir, release, namespace string }

// render renders templates of the chart.
func (c chart) render(files ...string) ([]*unstructured.Unstructured, error) {
	meta, values := map[string]any{}, map[string]any{}
	if err := c.read("Chart.yaml", &meta); err != nil {
		return nil, err
	}
	if err := c.read("values.yaml", &values); err != nil {
		return nil, err
	}
	data := map[string]any{
		"Chart":   map[string]any{"Name": meta["name"], "Version": meta["version"], "AppVersion": meta["appVersion"]},
		"Values":  values,
		"Release": map[string]any{"Name": c.release, "Namespace": c.namespace, "Service": "Helm"},
	}
	t := template.New("")
	t.Funcs(functions(t))
	if helpers := filepath.Join(c.dir, "templates", "_helpers.tpl"); exists(helpers) {
		files = append([]string{"templates/_helpers.tpl"}, files...)
	}
	out := &bytes.Buffer{}
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(c.dir, filepath.FromSlash(f)))
		if err != nil {
			return nil, err
		}
		one, err := t.New(f).Parse(string(b))
		if err != nil {
			return nil, fmt.Errorf("cannot parse %s: %w", f, err)
		}
		out.WriteString("\n---\n")
		if err := one.Execute(out, data); err != nil {
			return nil, fmt.Errorf("cannot render %s: %w", f, err)
		}
	}
	return Documents(out.Bytes())
}

// value is one of the chart's own values.
func (c chart) value(path ...string) (string, error) {
	values := map[string]any{}
	if err := c.read("values.yaml", &values); err != nil {
		return "", err
	}
	s, ok, err := unstructured.NestedString(values, path...)
	if err != nil || !ok {
		return "", fmt.Errorf("the chart has no value %s: %w", strings.Join(path, "."), err)
	}
	return s, nil
}

func (c chart) read(file string, into any) error {
	b, err := os.ReadFile(filepath.Join(c.dir, file)) //nolint:gosec // A file of a module.
	if err != nil {
		return err
	}
	return yaml.Unmarshal(b, into)
}

// functions are those of Helm's that the templates use which are rendered here.
func functions(t *template.Template) template.FuncMap {
	indent := func(n int, s string) string {
		pad := strings.Repeat(" ", n)
		return pad + strings.ReplaceAll(s, "\n", "\n"+pad)
	}
	return template.FuncMap{
		"include": func(name string, data any) (string, error) {
			b := &strings.Builder{}
			err := t.ExecuteTemplate(b, name, data)
			return b.String(), err
		},
		"indent":  indent,
		"nindent": func(n int, s string) string { return "\n" + indent(n, s) },
		"default": func(or, v any) any {
			if v == nil || v == "" {
				return or
			}
			return v
		},
		"quote":      func(v any) string { return strconv.Quote(fmt.Sprint(v)) },
		"replace":    func(from, to, s string) string { return strings.ReplaceAll(s, from, to) },
		"trunc":      func(n int, s string) string { return s[:min(n, len(s))] },
		"trimSuffix": func(suffix, s string) string { return strings.TrimSuffix(s, suffix) },
		"regexMatch": regexp.MatchString,
		"toYaml": func(v any) (string, error) {
			b, err := yaml.Marshal(v)
			return strings.TrimSuffix(string(b), "\n"), err
		},
	}
}

func exists(file string) bool {
	_, err := os.Stat(file) //nolint:gosec // Nothing is read of it.
	return err == nil
}
