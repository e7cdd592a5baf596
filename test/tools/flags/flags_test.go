package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// options reads a source as the command does.
func options(t *testing.T, file string, annotated bool, classes ...string) []string {
	t.Helper()
	source, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	m := newModule()
	m.read(string(source), true)
	var lines []string
	for _, o := range m.flags(annotated, classes...) {
		line := o.takes + " " + strings.Join(o.names, ",")
		if len(o.choices) > 0 {
			line += " " + strings.Join(o.choices, "|")
		}
		lines = append(lines, line)
	}
	return lines
}

func TestVLLM(t *testing.T) {
	want := []string{
		"bool --enabled",
		"bool --maybe",
		"optional --token",
		"value --level,-l low|high|highest",
		"value --level-or-none low|high|None",
		"value --level-or-text",
		"values --names",
		"value --size",
		"value --other",
		"switch --switch",
		"optional --old-switch",
		"value --known a|b",
		"value --open",
		"value --computed",
		"value --level-of low|high",
		"bool --both",
		"value --host",
		"bool --reload",
	}
	if diff := cmp.Diff(want, options(t, "vllm.py", false, "FrontendArgs")); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestSGLang(t *testing.T) {
	want := []string{
		"switch --old",
		"value --alias",
		"value --model-path,--model",
		"value --tensor-parallel-size,--tp-size",
		"switch --trust",
		"value --mode auto|off|None",
		"value --kind one|two",
		"values --paths",
		"value --list-in-one",
		"optional --some",
	}
	if diff := cmp.Diff(want, options(t, "sglang.py", true, "ServerArgs")); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestWrite merges the flags of three releases into a table.
func TestWrite(t *testing.T) {
	same := option{names: []string{"-s", "--same"}, takes: takesValue, choices: []string{"b", "a"}}
	more := option{names: []string{"-s", "--same"}, takes: takesValue, choices: []string{"c"}}
	table, err := write("vLLM", []release{
		{name: "v1.0.0", commit: "aaa 2026-01-01", options: []option{same, {names: []string{"--changed"}, takes: takesNothing}, {names: []string{"--open"}, takes: takesValue, choices: []string{"x"}}}},
		{name: "v1.1.0", commit: "bbb 2026-02-01", options: []option{{names: []string{"--changed"}, takes: takesNo}, {names: []string{"--open"}, takes: takesValue}}},
		{name: "v1.2.0", main: true, commit: "ccc 2026-03-01", options: []option{more, {names: []string{"--changed"}, takes: takesNo}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `# Flags of vLLM by release. Written by test/tools/flags from the sources of vLLM. Do not edit.
release v1.0.0 aaa 2026-01-01
release v1.1.0 bbb 2026-02-01
main v1.2.0 ccc 2026-03-01
bool --changed 1-2
switch --changed 0
value --open 0-1
value --same,-s 0,2 a|b|c
`
	if diff := cmp.Diff(want, table); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if _, err := write("vLLM", nil); err == nil {
		t.Error("a table without releases is written")
	}
}

// TestReadRefuses proves that sources which are not understood make no table.
func TestReadRefuses(t *testing.T) {
	for _, engine := range []string{"vLLM", "SGLang", "other"} {
		if _, err := read(engine, map[string]string{"vllm/engine/arg_utils.py": "x = 1"}); err == nil {
			t.Errorf("%s: sources without flags are read", engine)
		}
	}
}

// TestRun writes the table of a release in a git directory.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{"vllm/engine/arg_utils.py": "", "vllm/config/a.py": "class AConfig:\n    b: bool = False\n", "vllm/config/a.txt": "class BConfig:"}
	files["vllm/engine/arg_utils.py"] = "def add_cli_args(parser):\n    a_kwargs = get_kwargs(AConfig)\n    parser.add_argument('--a', **a_kwargs['b'])\n"
	for i := range fewest {
		files["vllm/engine/arg_utils.py"] += fmt.Sprintf("    parser.add_argument('--flag-%03d')\n", i)
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "--quiet"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "--message=a", "--no-gpg-sign"}, {"tag", "v1"}} {
		if out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	var table strings.Builder
	if err := run(&table, "vLLM", []string{"v1.0.0=" + dir + "@v1", "main:v1.1.0=" + dir + "@HEAD"}); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"release v1.0.0 ", "main v1.1.0 ", "bool --a 0-1\n", "value --flag-099 0-1\n"} {
		if !strings.Contains(table.String(), "\n"+line) {
			t.Errorf("no line %q in\n%s", line, table.String())
		}
	}
	for _, wrong := range []string{"v1.0.0", "v1.0.0=" + dir, "v1.0.0=" + dir + "@v2", "main:v1.0.0=" + dir + "@v1 v1.1.0=" + dir + "@v1"} {
		if err := run(&table, "vLLM", strings.Fields(wrong)); err == nil {
			t.Errorf("%s is read without an error", wrong)
		}
	}
}
