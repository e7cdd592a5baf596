package engineflags_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/engineflags"
	"github.com/fusioninfer/function-inferenceservice/internal/launch"
)

// documented are the command lines of testdata/documented.txt, and the files that have them.
func documented(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("testdata/documented.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if file, command, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
			lines[command] = file
		}
	}
	return lines
}

// TestDocumented reads command lines that the engines' own documentation has. None has a problem, with
// the newest sources of the table, with the newest release and with one that is not known.
func TestDocumented(t *testing.T) {
	lines := documented(t)
	if len(lines) < 60 {
		t.Fatalf("want at least 60 command lines, got %d", len(lines))
	}
	for command, file := range lines {
		t.Run(file, func(t *testing.T) {
			a, ok := launch.Parse(launch.Command{Command: []string{"sh", "-c", command}}).Arguments(launch.EngineUnknown)
			if !ok {
				t.Fatalf("no engine found in %s", command)
			}
			table, newest := engineflags.VLLM(), "v0.28.0"
			if a.Engine == launch.EngineSGLang {
				table, newest = engineflags.SGLang(), "v0.5.18"
			}
			for of, got := range map[string]*engineflags.Line{
				"the newest sources": table.ReadNewest(a.Words),
				newest:               table.Read(a.Words, newest),
				"latest":             table.Read(a.Words, "latest"),
			} {
				if diff := cmp.Diff([]engineflags.Problem(nil), got.Problems); diff != "" {
					t.Errorf("%s: %s\n-want, +got:\n%s", of, command, diff)
				}
			}
		})
	}
}
