package main

import (
	"os"
	"path/filepath"
	"regexp"
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
