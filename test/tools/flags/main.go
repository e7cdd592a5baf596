/*
Command flags writes the tables of internal/engineflags: which flags the releases of vLLM and SGLang
have. It reads the engines' own sources from git directories, and uses no network:

	go run ./test/tools/flags -engine vLLM v0.10.0=/src/vllm@v0.10.0 main:v0.28.0=/src/vllm@017e9f4448b7 > internal/engineflags/vllm.txt

A release is its name, a git directory and a revision in it. Releases are given in their order. The last one may be the
main branch, with the release that is made of it later. tables.sh has the whole commands.
*/
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

func main() {
	engine := flag.String("engine", "", "the engine of the sources: vLLM or SGLang")
	flag.Parse()
	if err := run(os.Stdout, *engine, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(out io.Writer, engine string, args []string) error {
	var all []release
	for i, arg := range args {
		name, from, ok := strings.Cut(arg, "=")
		dir, revision, at := strings.Cut(from, "@")
		if !ok || !at {
			return fmt.Errorf("%s: must be RELEASE=DIRECTORY@REVISION", arg)
		}
		files, commit, err := checkout(dir, revision, engine)
		if err != nil {
			return fmt.Errorf("%s: %w", arg, err)
		}
		options, err := read(engine, files)
		if err != nil {
			return fmt.Errorf("%s: %w", arg, err)
		}
		next, main := strings.CutPrefix(name, "main:")
		if main && i < len(args)-1 {
			return fmt.Errorf("%s: the main branch must be the last", arg)
		}
		all = append(all, release{name: next, main: main, commit: commit, options: options})
	}
	table, err := write(engine, all)
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, table)
	return err
}

// The sources of each engine. Those of the first list have the calls of add_argument.
var (
	parsers = map[string][]string{
		"vLLM":   {"vllm/engine/arg_utils.py", "vllm/entrypoints/openai/cli_args.py", "vllm/entrypoints/cli/serve.py"},
		"SGLang": {"python/sglang/srt/server_args.py"},
	}
	types = map[string][]string{
		"vLLM":   {"vllm/config.py", "vllm/config"},
		"SGLang": {"python/sglang/srt/arg_groups"},
	}
	// others are the sources of other servers that the same command starts, for models of other kinds.
	others = map[string][]string{
		"SGLang": {"python/sglang/multimodal_gen/runtime/server_args.py", "python/sglang/multimodal_gen/runtime/server_args", "python/sglang/multimodal_gen/runtime/entrypoints/cli/serve.py"},
	}
)

// checkout returns the sources of an engine at a revision, by their paths, and the commit.
func checkout(dir, revision, engine string) (files map[string]string, commit string, err error) {
	if commit, err = git(dir, "log", "-1", "--format=%h %cs", "--abbrev=12", revision); err != nil {
		return nil, "", err
	}
	list, err := git(dir, append([]string{"ls-tree", "-r", "--name-only", revision, "--"}, slices.Concat(parsers[engine], types[engine], others[engine])...)...)
	if err != nil {
		return nil, "", err
	}
	files = map[string]string{}
	for path := range strings.Lines(list) {
		path = strings.TrimSpace(path)
		if !strings.HasSuffix(path, ".py") {
			continue
		}
		if files[path], err = git(dir, "show", revision+":"+path); err != nil {
			return nil, "", err
		}
	}
	return files, strings.TrimSpace(commit), nil
}

func git(dir string, args ...string) (string, error) {
	c := exec.CommandContext(context.Background(), "git", append([]string{"-C", dir}, args...)...) //nolint:gosec // A developer gives these.
	out, err := c.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return "", fmt.Errorf("git %s: %s", args[0], failed.Stderr)
	}
	return string(out), err
}

// fewest is how many flags an engine has at least. With fewer, its sources are not read as they should be.
const fewest = 100

// read returns the flags of an engine's sources.
func read(engine string, files map[string]string) ([]option, error) {
	m, other := newModule(), newModule()
	paths := make([]string, 0, len(files))
	for path := range files {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	for _, path := range paths {
		if slices.ContainsFunc(others[engine], func(o string) bool { return path == o || strings.HasPrefix(path, o+"/") }) {
			other.read(files[path], true)
		} else {
			m.read(files[path], slices.Contains(parsers[engine], path))
		}
	}
	help := option{names: []string{"-h", "--help"}, takes: takesOptional}
	var options []option
	switch engine {
	case "vLLM":
		options = m.flags(false, "BaseFrontendArgs", "FrontendArgs")
		// The parser itself knows this one (vllm/utils/argparse_utils.py).
		options = append(options, option{names: []string{"-O"}, takes: takesValue})
	case "SGLang":
		options = m.flags(true, "ServerArgs")
		// sglang serve takes it before the others are parsed (python/sglang/cli/serve.py).
		options = append(options, option{names: []string{"--model-type"}, takes: takesValue})
	default:
		return nil, fmt.Errorf("%s: must be vLLM or SGLang", engine)
	}
	if len(options) < fewest {
		return nil, fmt.Errorf("%d flags found: must be at least %d", len(options), fewest)
	}
	return append(append(options, help), onlyIn(other.flags(true), options)...), nil
}

// onlyIn returns the flags of another server that the engine does not have.
func onlyIn(others, options []option) []option {
	known := map[string]bool{}
	for _, o := range options {
		for _, n := range o.names {
			known[n] = true
		}
	}
	var only []option
	for _, o := range others {
		if !slices.ContainsFunc(o.names, func(n string) bool { return known[n] }) {
			only = append(only, option{names: o.names, takes: takesOther})
		}
	}
	return only
}

// A release of an engine, or its main branch before a release.
type release struct {
	name, commit string
	main         bool
	options      []option
}

// A row of a table is a flag with the releases that have it.
type row struct {
	option

	// open tells that a release allows any value.
	open     bool
	releases []int
}

// write returns the table of some releases.
func write(engine string, all []release) (string, error) {
	if len(all) == 0 {
		return "", errors.New("give at least one release")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Flags of %s by release. Written by test/tools/flags from the sources of %s. Do not edit.\n", engine, engine)
	rows := map[string]*row{}
	for i, r := range all {
		kind := "release"
		if r.main {
			kind = "main"
		}
		fmt.Fprintf(&b, "%s %s %s\n", kind, r.name, r.commit)
		for _, o := range r.options {
			add(rows, o, i)
		}
	}
	sorted := make([]*row, 0, len(rows))
	for _, r := range rows {
		sorted = append(sorted, r)
	}
	slices.SortFunc(sorted, func(a, b *row) int {
		return cmp.Or(strings.Compare(a.names[0], b.names[0]), slices.Compare(a.names, b.names), strings.Compare(a.takes, b.takes))
	})
	for _, r := range sorted {
		fmt.Fprintf(&b, "%s %s %s", r.takes, strings.Join(r.names, ","), ranges(r.releases))
		if len(r.choices) > 0 && !r.open {
			slices.Sort(r.choices)
			b.WriteString(" " + strings.Join(r.choices, "|"))
		}
		b.WriteString("\n")
	}
	return b.String(), nil
}

func add(rows map[string]*row, o option, in int) {
	names := slices.Clone(o.names)
	// The longest name is the one that people read.
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	key := o.takes + " " + strings.Join(names, ",")
	r := rows[key]
	if r == nil {
		r = &row{option: option{names: names, takes: o.takes}}
		rows[key] = r
	}
	if !slices.Contains(r.releases, in) {
		r.releases = append(r.releases, in)
	}
	r.open = r.open || len(o.choices) == 0 || slices.ContainsFunc(o.choices, func(c string) bool { return c == "" || strings.ContainsAny(c, " |\n") })
	for _, c := range o.choices {
		if !slices.Contains(r.choices, c) {
			r.choices = append(r.choices, c)
		}
	}
}

// ranges writes the indexes of releases: 0-3,5.
func ranges(of []int) string {
	var parts []string
	for i := 0; i < len(of); {
		j := i
		for j+1 < len(of) && of[j+1] == of[j]+1 {
			j++
		}
		if i == j {
			parts = append(parts, strconv.Itoa(of[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", of[i], of[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ",")
}
