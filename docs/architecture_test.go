package docs

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	module = "github.com/fusioninfer/function-inferenceservice/"
	// root stands for the package of the module's root.
	root = "."
)

// layers reads the table of architecture.md: the layer of each package, from the top.
func layers(t *testing.T) map[string]int {
	t.Helper()
	doc, err := os.ReadFile("architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(doc), "| layer | packages | what they do |")
	if !found {
		t.Fatal("architecture.md has no table of layers")
	}
	named := regexp.MustCompile("`((?:internal|input)/[^`]+)`")
	all, layer := map[string]int{root: 0}, 0
	for _, row := range strings.Split(table, "\n")[2:] {
		cells := strings.Split(row, "|")
		if len(cells) < 4 {
			break
		}
		for _, m := range named.FindAllStringSubmatch(cells[2], -1) {
			all[m[1]] = layer
		}
		layer++
	}
	return all
}

// TestImports holds the table of layers in architecture.md: each package is in it, and imports
// packages of lower layers only.
func TestImports(t *testing.T) {
	layer := layers(t)
	seen := map[string]bool{}
	err := fs.WalkDir(os.DirFS(".."), ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		dir := path.Dir(file)
		switch {
		case d.IsDir() && (strings.HasPrefix(file, ".") && file != "." || slices.Contains([]string{"test", "docs", "example", "package"}, file)):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go"):
			return nil
		// Test builders, and what generates and tests schemas, are used by tests only.
		case strings.HasSuffix(dir, "test") || dir == "internal/api/xrdgen":
			return nil
		}
		of, known := layer[dir]
		if !known {
			t.Errorf("%s: package %s is not in the table of docs/architecture.md", file, dir)
		}
		seen[dir] = true
		for _, imported := range imports(t, file) {
			if on, known := layer[imported]; known && on <= of {
				t.Errorf("%s imports %s, which is not of a lower layer", file, imported)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for dir := range layer {
		if !seen[dir] {
			t.Errorf("docs/architecture.md has %s, which is no package", dir)
		}
	}
}

// imports are the packages of this module that a file imports.
func imports(t *testing.T, file string) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), path.Join("..", file), nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, spec := range f.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		if local, is := strings.CutPrefix(p, module); is {
			all = append(all, local)
		}
	}
	return all
}
