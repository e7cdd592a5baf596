package example

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fusioninfer/function-inferenceservice/test/function"
)

// TestPlans runs the command in the first line of each file plan/*.txt, and compares what it
// writes with the rest of the file.
func TestPlans(t *testing.T) {
	t.Chdir("..")
	files, err := filepath.Glob("example/plan/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no plans: %v", err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			shown, _, _ := strings.Cut(string(b), "\n")
			args, runs := strings.CutPrefix(shown, "$ go run . ")
			if !runs {
				t.Fatalf("%s starts with %q, and has to start with $ go run .", f, shown)
			}
			out, errs, code := function.Command(t, strings.Fields(args)...)
			if code != 0 || errs != "" {
				t.Fatalf("exit code %d\n%s", code, errs)
			}
			again, _, _ := function.Command(t, strings.Fields(args)...)
			if again != out {
				t.Errorf("two plans of the same files differ:\n%s\n%s", out, again)
			}
			golden(t, f, shown+"\n"+out)
		})
	}
}

// TestPlanExitCodes has the codes of --detailed-exitcode.
func TestPlanExitCodes(t *testing.T) {
	t.Chdir("..")
	input := []string{"--input", "example/plan/input.yaml"}
	cases := map[string]struct {
		reason      string
		input, args []string
		want        int
	}{
		"Stays":     {"Nothing runs in the new cluster, which is abandoned at once.", input, []string{"--abandon", "us-north", "--change", "example/plan/new-cluster.yaml"}, 0},
		"Moves":     {"The other services have room.", input, []string{"--delete", "team-b/qwen", "--drain", "us-south"}, 2},
		"NotPlaced": {"There is no room for the new service.", input, []string{"--change", "example/plan/new-service.yaml"}, 3},
		"Error":     {"No such cluster.", input, []string{"--drain", "us"}, 1},
		"Refused":   {"Nobody knows what becomes of a service that is refused, as the one whose Gateway only the Input allows.", nil, []string{"--drain", "us-west"}, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"plan", "example/plan/fleet.yaml", "--detailed-exitcode"}, append(tc.input, tc.args...)...)
			if _, errs, got := function.Command(t, args...); got != tc.want {
				t.Errorf("%s\nwant exit code %d, got %d\n%s", tc.reason, tc.want, got, errs)
			}
		})
	}
}
