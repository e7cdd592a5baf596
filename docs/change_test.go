package docs

import (
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var codeSpan = regexp.MustCompile("`([^`]+)`")

// TestFilesOfChangesExist shows that the files exist that architecture.md names under "Where to change
// what". A file without a directory is in one that the same row names.
func TestFilesOfChangesExist(t *testing.T) {
	_, section, _ := strings.Cut(read(t, "architecture.md"), "\n## Where to change what\n")
	section, _, _ = strings.Cut(section, "\n## ")
	exists := func(file string) bool {
		found, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(file)))
		return err == nil && len(found) > 0
	}
	files := 0
	for _, row := range strings.Split(section, "\n") {
		cells := strings.Split(row, " | ")
		if len(cells) < 2 {
			continue
		}
		dirs := []string{"."}
		var names []string
		for _, span := range codeSpan.FindAllStringSubmatch(strings.Join(cells[1:], " "), -1) {
			switch name := span[1]; {
			case strings.HasPrefix(name, "make "):
			case strings.HasSuffix(name, ".go") || strings.HasSuffix(name, ".yaml"):
				names = append(names, name)
				if strings.Contains(name, "/") {
					dirs = append(dirs, path.Dir(name))
				}
			case strings.Contains(name, "/"):
				dirs = append(dirs, name)
				if !exists(name) {
					t.Errorf("%s does not exist, and this row names it: %s", name, row)
				}
			}
		}
		for _, name := range names {
			files++
			found := false
			for _, dir := range dirs {
				found = found || exists(path.Join(dir, name))
			}
			if !found {
				t.Errorf("%s is in none of %v, and this row names it: %s", name, dirs, row)
			}
		}
	}
	if files < 50 {
		t.Errorf("the table names %d files, want more: it was not found", files)
	}
}
