package docs

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/fusioninfer/function-inferenceservice/test/function"
)

// maxWords is the length of a sentence that is understood when it is read once.
const maxWords = 30

var (
	code     = regexp.MustCompile("`[^`]*`")
	stop     = regexp.MustCompile(`[.!?]["')*]*(\s|$)`)
	listItem = regexp.MustCompile(`^\s*(?:[-*]|\d+\.) `)
)

// sentences are those of a document outside of code, tables and headings. What is in
// backquotes is one word.
func sentences(doc string) []string {
	var all []string
	var paragraph []string
	end := func() {
		text := code.ReplaceAllString(strings.Join(paragraph, " "), "code")
		text = targets.ReplaceAllString(text, "]")
		for _, s := range stop.Split(text, -1) {
			if s = strings.TrimSpace(s); s != "" {
				all = append(all, s)
			}
		}
		paragraph = nil
	}
	for line := range strings.Lines(prose(doc)) {
		line = strings.TrimRight(line, "\n")
		switch item := listItem.FindString(line); {
		case strings.TrimSpace(line) == "", strings.HasPrefix(line, "|"), strings.HasPrefix(line, "#"):
			end()
		case item != "":
			end()
			paragraph = append(paragraph, strings.TrimPrefix(line, item))
		default:
			paragraph = append(paragraph, line)
		}
	}
	end()
	return all
}

// TestSentences keeps the sentences of documents short.
func TestSentences(t *testing.T) {
	t.Chdir("..")
	n := 0
	for _, file := range markdown(t) {
		for _, s := range sentences(read(t, file)) {
			n++
			if words := len(strings.Fields(s)); words > maxWords {
				t.Errorf("%s: a sentence of %d words: %s", file, words, s)
			}
		}
	}
	if n < 500 {
		t.Errorf("the documents have %d sentences, which cannot be", n)
	}
}

// TestNeeds compares what a cluster needs in the README with the same in docs/operations.md: the components, and the versions
// that are not in a table of their own.
func TestNeeds(t *testing.T) {
	t.Chdir("..")
	link := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	needs := func(file string) map[string]string {
		_, section, _ := strings.Cut(read(t, file), "# What a cluster needs\n")
		_, table, _ := strings.Cut(section, "|---|")
		table, _, _ = strings.Cut(table, "\n\n")
		all := map[string]string{}
		for _, line := range strings.Split(table, "\n")[1:] {
			cells := strings.Split(link.ReplaceAllString(line, "$1"), " | ")
			name, version := strings.TrimPrefix(cells[0], "| "), cells[1]
			if strings.HasPrefix(name, "a gateway") {
				version = ""
			}
			all[name] = version
		}
		return all
	}
	readme, operations := needs("README.md"), needs("docs/operations.md")
	if diff := cmp.Diff(readme, operations); diff != "" || len(readme) < 10 {
		t.Errorf("-README.md, +docs/operations.md:\n%s", diff)
	}
}

// blocks are the blocks of code in a language.
func blocks(doc, language string) []string {
	var all []string
	for {
		_, after, found := strings.Cut(doc, "\n```"+language+"\n")
		if !found {
			return all
		}
		block, rest, _ := strings.Cut(after, "\n```")
		all, doc = append(all, block+"\n"), rest
	}
}

var exampleDir = regexp.MustCompile(`example/[a-z0-9-]+`)

// cut is the last line of shown output of which a document leaves out the rest.
const cut = "...\n"

// TestShownOutput compares what documents show of a command with the command's golden. It is
// all of it, or the beginning of it and a line that says so.
func TestShownOutput(t *testing.T) {
	t.Chdir("..")
	shown := 0
	for _, file := range markdown(t) {
		for _, block := range blocks(read(t, file), "console") {
			shown++
			command, output, _ := strings.Cut(block, "\n")
			golden := filepath.Join(exampleDir.FindString(command), "stderr.txt")
			if strings.Contains(command, "--format summary") {
				golden = filepath.Join(exampleDir.FindString(command), "summary.txt")
			}
			if strings.Contains(command, " plan ") {
				golden = planOf(t, command)
				_, output, _ = strings.Cut("\n"+block, "\n")
			}
			all := read(t, golden)
			begin, more := strings.CutSuffix(output, cut)
			switch rest, begins := strings.CutPrefix(all, begin); {
			case !begins:
				t.Errorf("%s shows of %s what %s does not begin with:\n%s", file, command, golden, output)
			case more != (rest != ""):
				t.Errorf("%s shows of %s what ends with %q: %t, and %s has more: %t", file, command, strings.TrimSpace(cut), more, golden, rest != "")
			}
		}
	}
	if shown < 3 {
		t.Errorf("the documents show the output of %d commands, want 3 and more", shown)
	}
}

// planOf returns the file that has the output of a plan. Its first line is the command.
func planOf(t *testing.T, command string) string {
	t.Helper()
	files, err := filepath.Glob("example/plan/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if strings.HasPrefix(read(t, f), command+"\n") {
			return f
		}
	}
	t.Fatalf("no file in example/plan starts with %s", command)
	return ""
}

// TestReadmeServices shows that the services of the README are examples, and renders each fragment
// put into the first one.
func TestReadmeServices(t *testing.T) {
	t.Chdir("..")
	first := read(t, "example/first-service/xr.yaml")
	fn := function.Start(t)
	shown, fragments := "", 0
	all := blocks(read(t, "README.md"), "yaml")
	input := slices.IndexFunc(all, func(block string) bool { return strings.Contains(block, "kind: Input\n") })
	if input < 0 {
		t.Fatal("README.md shows no Input")
	}
	for _, block := range all {
		switch {
		case strings.Contains(block, "kind: InferenceService\n"):
			shown += "\n" + block
		case strings.HasPrefix(block, "spec:\n"):
			fragments++
			dir := t.TempDir()
			xr := grown(t, first, block)
			if err := os.WriteFile(filepath.Join(dir, "xr.yaml"), xr, 0o600); err != nil {
				t.Fatal(err)
			}
			in := packaged(t)
			// Gateways of a fleet are shared, so the Input has to allow them.
			if strings.Contains(block, "  placement:\n") {
				maps.Copy(in, parse(t, all[input]))
			}
			b, err := yaml.Marshal(in)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "input.yaml"), b, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, errs, exit := fn.Render(t, dir, "yaml"); exit != 0 || errs != "" {
				t.Errorf("exit code %d\n%s\nof this fragment in README.md:\n%s", exit, errs, block)
			}
		}
	}
	if _, xr, _ := strings.Cut(first, "\napiVersion:"); !strings.Contains(shown, "\napiVersion:"+xr) {
		t.Error("README.md does not show example/first-service/xr.yaml")
	}
	if fragments < 5 {
		t.Errorf("README.md shows %d fragments, want 5", fragments)
	}
}

// TestFirstScaling shows that the service with which docs/scaling.md begins can be applied as it is: it is an example, in whatever
// namespace the reader works in.
func TestFirstScaling(t *testing.T) {
	t.Chdir("..")
	all := blocks(read(t, "docs/scaling.md"), "yaml")
	if len(all) == 0 {
		t.Fatal("docs/scaling.md shows no YAML")
	}
	want := parse(t, read(t, "example/scaling/xr.yaml"))
	delete(want["metadata"].(map[string]any), "namespace")
	if diff := cmp.Diff(want, parse(t, all[0])); diff != "" {
		t.Errorf("example/scaling/xr.yaml (-), docs/scaling.md (+):\n%s", diff)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "xr.yaml"), []byte(all[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, errs, exit := function.Start(t).Render(t, dir, "yaml"); exit != 0 || errs != "" {
		t.Errorf("exit code %d\n%s\nof the service in docs/scaling.md", exit, errs)
	}
}

// TestFirstProfiles shows that the Input of the first service has profiles as the packages bring them.
func TestFirstProfiles(t *testing.T) {
	t.Chdir("..")
	brought := map[any]any{}
	for _, p := range packaged(t)["profiles"].([]any) {
		brought[p.(map[string]any)["name"]] = p
	}
	for _, p := range parse(t, read(t, "example/first-service/input.yaml"))["profiles"].([]any) {
		if diff := cmp.Diff(brought[p.(map[string]any)["name"]], p); diff != "" {
			t.Errorf("package/xr/composition.yaml (-), example/first-service/input.yaml (+):\n%s", diff)
		}
	}
}

// packaged is an Input with the profiles of the package.
func packaged(t *testing.T) map[string]any {
	t.Helper()
	steps := parse(t, read(t, "package/xr/composition.yaml"))["spec"].(map[string]any)["pipeline"].([]any)
	in := steps[0].(map[string]any)["input"].(map[string]any)
	return map[string]any{"apiVersion": in["apiVersion"], "kind": in["kind"], "profiles": in["profiles"]}
}

// grown is a service with a fragment in it: roles of the fragment replace those of
// the same name. Prefill and decode replace the workers.
func grown(t *testing.T, service, fragment string) []byte {
	t.Helper()
	xr, more := parse(t, service), parse(t, fragment)
	spec, with := xr["spec"].(map[string]any), more["spec"].(map[string]any)
	roles := spec["roles"].([]any)
	maps.Copy(spec, with)
	changed, _ := with["roles"].([]any)
	taken := map[any]bool{}
	for _, r := range changed {
		role := r.(map[string]any)
		taken[role["name"]] = true
		taken["server"] = taken["server"] || role["componentType"] == "prefiller"
	}
	var kept []any
	for _, r := range roles {
		if !taken[r.(map[string]any)["name"]] {
			kept = append(kept, r)
		}
	}
	spec["roles"] = append(kept, changed...)
	b, err := yaml.Marshal(xr)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func parse(t *testing.T, doc string) map[string]any {
	t.Helper()
	m := map[string]any{}
	if err := yaml.UnmarshalStrict([]byte(doc), &m); err != nil {
		t.Fatal(err)
	}
	return m
}
