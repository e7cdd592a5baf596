/*
Command metrics writes the tables of package/monitoring/testdata: which metrics the releases of engines and of
endpoint pickers have. It reads their own sources from git directories, and uses no network:

	go run ./test/tools/metrics -of vLLM v0.12.0=/src/vllm@d7284a2604ef v0.28.0=/src/vllm@017e9f4448b7 > package/monitoring/testdata/vllm.txt

The others are SGLang, GAIE and LLMD. A release is its name, a git directory and a revision in it. Releases are
given in their order. A metric whose name the sources only compute is not found.
*/
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

func main() {
	of := flag.String("of", "", "whose sources they are: vLLM, SGLang, GAIE or LLMD")
	flag.Parse()
	if err := run(os.Stdout, *of, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A source says where metrics are, and how they are read.
type source struct {
	dir, pattern string
	read         func(files []string) map[string]string
}

// The projects. Each file that matches the pattern is read.
var sources = map[string]source{
	"vLLM":   {"vllm", `"vllm:`, python},
	"SGLang": {"python/sglang/srt", `"sglang:`, python},
	"GAIE":   {"pkg", `Opts[{]|= "[a-z_]+"$`, golang},
	"LLMD":   {"pkg", `Opts[{]|= "[a-z_]+"$`, golang},
}

func run(out io.Writer, of string, args []string) error {
	s, known := sources[of]
	if !known || len(args) == 0 {
		return errors.New("name vLLM, SGLang, GAIE or LLMD, and at least one release")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Metrics of %s by release. Written by test/tools/metrics from the sources of %s. Do not edit.\n", of, of)
	releases := map[string][]string{}
	for i, arg := range args {
		name, from, ok := strings.Cut(arg, "=")
		dir, revision, at := strings.Cut(from, "@")
		if !ok || !at {
			return fmt.Errorf("%s: must be RELEASE=DIRECTORY@REVISION", arg)
		}
		files, commit, err := s.checkout(dir, revision)
		if err != nil {
			return fmt.Errorf("%s: %w", arg, err)
		}
		found := s.read(files)
		if len(found) < fewest {
			return fmt.Errorf("%s: %d metrics found: must be at least %d", arg, len(found), fewest)
		}
		fmt.Fprintf(&b, "release %s %s\n", name, commit)
		for metric, kind := range found {
			row := kind + " " + metric
			releases[row] = append(releases[row], strconv.Itoa(i))
		}
	}
	for _, row := range slices.Sorted(maps.Keys(releases)) {
		fmt.Fprintf(&b, "%s %s\n", row, strings.Join(releases[row], ","))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// fewest is how many metrics each of them has at least. With fewer, the sources are not read as they should be.
const fewest = 15

// checkout returns the contents of the files that match, and the commit.
func (s source) checkout(dir, revision string) (files []string, commit string, err error) {
	if commit, err = git(dir, "log", "-1", "--format=%h %cs", "--abbrev=12", revision); err != nil {
		return nil, "", err
	}
	list, err := git(dir, "grep", "-l", "-E", s.pattern, revision, "--", s.dir)
	if err != nil {
		return nil, "", err
	}
	for file := range strings.Lines(list) {
		file = strings.TrimSpace(file)
		if strings.HasSuffix(file, "_test.go") || !strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, ".py") {
			continue
		}
		text, err := git(dir, "show", file)
		if err != nil {
			return nil, "", err
		}
		files = append(files, text)
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

// made matches a call that makes a metric of prometheus_client, with its name as the first argument.
var made = regexp.MustCompile(`(\w+)\(\s*(?:name\s*=\s*)?"((?:vllm|sglang):[a-z0-9_:]+)"`)

// python returns the metrics of engines, and their kinds. prometheus_client adds _total to the names of counters.
func python(files []string) map[string]string {
	found := map[string]string{}
	for _, text := range files {
		for _, m := range made.FindAllStringSubmatch(text, -1) {
			call, metric := strings.ToLower(m[1]), m[2]
			switch {
			case strings.Contains(call, "counter"):
				found[strings.TrimSuffix(metric, "_total")+"_total"] = "counter"
			case strings.Contains(call, "gauge"):
				found[metric] = "gauge"
			case strings.Contains(call, "histogram"):
				found[metric] = "histogram"
			}
		}
	}
	return found
}

// What is read of Go: the options of metrics, and the names that their subsystems have.
var (
	options = regexp.MustCompile(`(Counter|Gauge|Histogram)Opts\{\s*Subsystem:\s*(?:\w+\.)?("?\w+"?),\s*Name:\s*"([a-z0-9_]+)"`)
	names   = regexp.MustCompile(`(?m)^\s*(?:const )?(\w+)\s*=\s*"([a-z_]+)"`)
)

// golang returns the metrics of endpoint pickers, and their kinds.
func golang(files []string) map[string]string {
	subsystems := map[string]string{}
	for _, text := range files {
		for _, m := range names.FindAllStringSubmatch(text, -1) {
			subsystems[m[1]] = m[2]
		}
	}
	found := map[string]string{}
	for _, text := range files {
		for _, m := range options.FindAllStringSubmatch(text, -1) {
			subsystem := strings.Trim(m[2], `"`)
			if subsystem == m[2] {
				subsystem = subsystems[m[2]]
			}
			if subsystem != "" {
				found[subsystem+"_"+m[3]] = strings.ToLower(m[1])
			}
		}
	}
	return found
}
