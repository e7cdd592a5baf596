// Package docs compares the documents with what they are about.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestExamplesExist looks for the examples that documents name: a name that is wrong helps
// nobody. TestLinks follows links.
func TestExamplesExist(t *testing.T) {
	t.Chdir("..")
	names := regexp.MustCompile(`\bexample/[a-z0-9-]+(?:\.[a-z]+|/[a-z.]+)?`)
	for _, doc := range markdown(t) {
		for _, f := range names.FindAllString(read(t, doc), -1) {
			if _, err := os.Stat(f); err != nil {
				t.Errorf("%s names %s, which does not exist", doc, f)
			}
		}
	}
}

// docs/security.md names a test for each control. Those are there.
func TestControlsHaveTests(t *testing.T) {
	t.Chdir("..")
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

// TestReasons proves that the documents have each reason of a condition, and of a cluster in the status of a service. Whoever reads a status looks for
// the reason first.
func TestReasons(t *testing.T) {
	t.Chdir("..")
	var all strings.Builder
	for _, doc := range markdown(t) {
		if strings.HasPrefix(doc, "docs/") {
			all.WriteString(read(t, doc))
		}
	}
	constant, found := regexp.MustCompile(`(?m)^(?:const )?\s*[rR]eason\w+\s+= "(\w+)"`), 0
	for _, dir := range []string{"composite", "scheduling", "service/observe", "cluster", "model"} {
		files, err := filepath.Glob(filepath.Join("internal", dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			for _, reason := range constant.FindAllStringSubmatch(read(t, file), -1) {
				found++
				if !strings.Contains(all.String(), "`"+reason[1]+"`") {
					t.Errorf("%s has the reason %s, and no document does", file, reason[1])
				}
			}
		}
	}
	if found < 90 {
		t.Errorf("want all reasons, found %d", found)
	}
}

// TestReasonsToWait proves that the table of docs/operations.md has each reason for which an object is left out for now.
func TestReasonsToWait(t *testing.T) {
	t.Chdir("..")
	reasons := regexp.MustCompile(`(?m)^\tDeferredFor\w+ += "(\w+)"$`).FindAllStringSubmatch(read(t, "internal/service/plan/deferred.go"), -1)
	if len(reasons) < 7 {
		t.Fatalf("want all reasons, found %d", len(reasons))
	}
	_, table, _ := strings.Cut(read(t, "docs/operations.md"), "\n## Troubleshooting\n")
	table, _, _ = strings.Cut(table, "\n## ")
	for _, reason := range reasons {
		if !regexp.MustCompile("(?m)^\\| [^|]*`" + reason[1] + "`").MatchString(table) {
			t.Errorf("the table of docs/operations.md does not have the reason %s", reason[1])
		}
	}
}
