package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Documents name examples and other documents; a name that is wrong helps
// nobody.
func TestDocumentsNameWhatExists(t *testing.T) {
	docs, err := filepath.Glob("docs/*.md")
	if err != nil || len(docs) == 0 {
		t.Fatalf("no documents: %v", err)
	}
	names := regexp.MustCompile(`\bexample/[a-z0-9-]+(?:/[a-z.]+)?`)
	links := regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	for _, doc := range append(docs, "README.md", "example/README.md") {
		b, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		found := names.FindAllString(string(b), -1)
		for _, m := range links.FindAllStringSubmatch(string(b), -1) {
			found = append(found, filepath.Join(filepath.Dir(doc), m[1]))
		}
		for _, f := range found {
			if _, err := os.Stat(f); err != nil {
				t.Errorf("%s names %s, which does not exist", doc, f)
			}
		}
	}
}

// docs/security.md names a test for each control. Those are there.
func TestControlsHaveTests(t *testing.T) {
	b, err := os.ReadFile("docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`).FindAllStringSubmatch(string(source), -1) {
			have[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z]+)`").FindAllStringSubmatch(string(b), -1)
	if len(named) < 40 {
		t.Errorf("want a test for each control, found %d", len(named))
	}
	for _, m := range named {
		if !have[m[1]] {
			t.Errorf("docs/security.md names %s, and there is no such test", m[1])
		}
	}
	rows := regexp.MustCompile(`(?m)^\| [A-Z].*\|$`).FindAllString(string(b), -1)
	for _, row := range rows {
		if !strings.Contains(row, "`Test") && !strings.Contains(row, "`Fuzz") && !strings.Contains(row, "| releases |") {
			t.Errorf("docs/security.md has a control without a test: %s", row)
		}
	}
}
