package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

// markdown lists the Markdown files of the repository, below the working directory. What
// tools keep or build is left out.
func markdown(t *testing.T) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if hidden := strings.HasPrefix(d.Name(), ".") && path != "." && d.Name() != ".github"; d.IsDir() && (hidden || path == "dist") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) == ".md" {
			all = append(all, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"README.md", "docs/api.md", "example/README.md"} {
		if !slices.Contains(all, want) {
			t.Fatalf("%s is not among the documents: %q", want, all)
		}
	}
	return all
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// prose is a document without its blocks of code.
func prose(doc string) string {
	var kept []string
	in := false
	for line := range strings.Lines(doc) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			in = !in
			// It still ends the paragraph before it.
			kept = append(kept, "\n")
			continue
		}
		if !in {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

var (
	headings = regexp.MustCompile(`(?m)^#+ +(.*?)\s*$`)
	// links to other places have a scheme, which has a colon.
	links   = regexp.MustCompile(`\[([^\]]*)\]\(([^)\s:]+)\)`)
	targets = regexp.MustCompile(`\]\([^)]*\)`)
)

// anchors are what a document's headings can be linked to by, as GitHub makes them: lower
// case, without punctuation, a hyphen for each space, numbered where two are alike.
func anchors(doc string) map[string]bool {
	all := map[string]bool{}
	for _, m := range headings.FindAllStringSubmatch(prose(doc), -1) {
		slug := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-', r == '_', unicode.IsLetter(r), unicode.IsNumber(r):
				return unicode.ToLower(r)
			}
			return -1
		}, targets.ReplaceAllString(m[1], "]"))
		name := slug
		for i := 1; all[name]; i++ {
			name = slug + "-" + strconv.Itoa(i)
		}
		all[name] = true
	}
	return all
}

// TestAnchors looks at the headings that the test of links goes by.
func TestAnchors(t *testing.T) {
	doc := "# A `b` c: d\n\n## Same\n\n```sh\n# no heading\n```\n\n## Same\n\n### See [e](f.md) & g\n"
	want := map[string]bool{"a-b-c-d": true, "same": true, "same-1": true, "see-e--g": true}
	if diff := cmp.Diff(want, anchors(doc)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestLinks follows every link from one document to another file, or to a heading.
func TestLinks(t *testing.T) {
	t.Chdir("..")
	for _, doc := range markdown(t) {
		for _, m := range links.FindAllStringSubmatch(prose(read(t, doc)), -1) {
			file, anchor, has := strings.Cut(m[2], "#")
			target := doc
			if file != "" {
				target = filepath.Join(filepath.Dir(doc), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which does not exist", doc, m[2])
				continue
			}
			if has && !anchors(read(t, target))[anchor] {
				t.Errorf("%s links to %s: %s has no such heading", doc, m[2], target)
			}
		}
	}
}
