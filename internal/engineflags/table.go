/*
Package engineflags knows the flags of engines, release by release, and reads command lines as the
engines do. It tells which flags cannot work.

The tables are made from the sources of the engines by test/tools/flags. They have some releases. One
between two of them has the flags of both, so that nothing is told which one of them allows. If the two are
several minor releases apart, it may have others, too. So may a release that is not known, or later than all.
Of these, only flags are told that resemble a known one.

The last line of a table may be the main branch of a day, with the release that is made of it later. That
release may have more flags, so it counts as later than all.
*/
package engineflags

import (
	_ "embed" // The tables.
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/fusioninfer/function-inferenceservice/internal/imageref"
)

//go:embed vllm.txt
var vllmTable string

//go:embed sglang.txt
var sglangTable string

var (
	vllm   = sync.OnceValue(func() *Table { return read("vLLM", vllmTable) })
	sglang = sync.OnceValue(func() *Table { return read("SGLang", sglangTable) })
)

// VLLM returns the flags of vLLM.
func VLLM() *Table { return vllm() }

// SGLang returns the flags of SGLang.
func SGLang() *Table { return sglang() }

// A Table has the flags of an engine.
type Table struct {
	engine   string
	releases []release
	flags    map[string][]entry
	// names of all flags, sorted.
	names []string
	// flexible tells that names may be written with _ for -, and that a dot and a key of a JSON value may
	// follow them.
	flexible bool
}

// A release of an engine, or its main branch.
type release struct {
	// name as people read it.
	name    string
	version imageref.Version
	// main tells that this is the main branch of a day. The version is that of the release after it.
	main bool
}

// What a flag takes.
const (
	takesNothing  = "switch"
	takesNo       = "bool"
	takesValue    = "value"
	takesValues   = "values"
	takesOptional = "optional"
	// takesOther marks the flag of another server, which the same command starts for other models.
	takesOther = "other"
)

// An entry is a flag of some releases.
type entry struct {
	// name is the flag's longest.
	name    string
	takes   string
	choices []string
	// releases has a bit for each.
	releases set
}

// A set of releases, by their indexes.
type set uint64

// mainOf is how people read a main branch. Its day follows.
const mainOf = "the main branch of "

// maxReleases is how many a set can have.
const maxReleases = 64

func (s set) and(other set) bool { return s&other != 0 }

// read reads a table. A broken one is empty, and a test tells.
func read(engine, table string) *Table {
	t, err := parse(engine, table)
	if err != nil {
		return &Table{engine: engine}
	}
	return t
}

// parse reads what test/tools/flags writes.
func parse(engine, table string) (*Table, error) {
	t := &Table{engine: engine, flags: map[string][]entry{}, flexible: engine == "vLLM"}
	for line := range strings.Lines(table) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || words[0] == "#":
		case len(words) < 3:
			return nil, fmt.Errorf("%q has too few words", line)
		case words[0] == "release", words[0] == "main":
			r, ok := parseRelease(words)
			if !ok || len(t.releases) == maxReleases {
				return nil, fmt.Errorf("%q is no release and no main branch before one, or one too many", line)
			}
			t.releases = append(t.releases, r)
		default:
			releases, err := t.parseReleases(words[2])
			if err != nil {
				return nil, fmt.Errorf("%q: %w", line, err)
			}
			names := strings.Split(words[1], ",")
			e := entry{name: names[0], takes: words[0], releases: releases}
			if len(words) > 3 {
				e.choices = strings.Split(words[3], "|")
			}
			for _, n := range names {
				t.flags[n] = append(t.flags[n], e)
			}
		}
	}
	for n := range t.flags {
		t.names = append(t.names, n)
	}
	slices.Sort(t.names)
	return t, nil
}

// parseRelease reads a release, or the main branch of a day before one.
func parseRelease(words []string) (release, bool) {
	v, ok := parseVersion(words[1])
	if words[0] == "release" {
		return release{name: words[1], version: v}, ok
	}
	if len(words) < 4 {
		return release{}, false
	}
	return release{name: mainOf + words[3], version: v, main: true}, ok
}

func (t *Table) parseReleases(ranges string) (set, error) {
	s := set(0)
	for part := range strings.SplitSeq(ranges, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, err := strconv.Atoi(from)
		if err != nil {
			return 0, err
		}
		last, err := strconv.Atoi(to)
		if err != nil {
			return 0, err
		}
		if first < 0 || last < first || last >= len(t.releases) {
			return 0, fmt.Errorf("%s are no releases", part)
		}
		for i := first; i <= last; i++ {
			s |= 1 << i
		}
	}
	return s, nil
}

// preRelease matches what follows the version of a release candidate. Its flags are those of neither
// release.
var preRelease = regexp.MustCompile(`^v?[0-9.]+\.?(rc|dev|a|b)[0-9]`)

// parseVersion returns the version of a release. A pre-release has none.
func parseVersion(tag string) (imageref.Version, bool) {
	if preRelease.MatchString(tag) {
		return imageref.Version{}, false
	}
	return imageref.ParseVersion(tag)
}

// A window is which of the known releases an engine may be, or lies between.
type window struct {
	releases set
	// certain tells that the release is known, and not later than the tables. complete tells that it has no
	// other flags than these releases.
	certain, complete bool
	// shown is the release as people know it. It is empty if it is not known.
	shown string
}

// newest names the newest of the releases.
func (t *Table) newest() string {
	last := len(t.releases) - 1
	if last > 0 && t.releases[last].main {
		return t.releases[last-1].name + ", nor its main branch of " + strings.TrimPrefix(t.releases[last].name, mainOf) + ","
	}
	return t.releases[last].name
}

// window returns the window of an image's tag. No tag means that the release is not known.
func (t *Table) window(tag string) window {
	all := window{releases: 1<<len(t.releases) - 1}
	v, ok := parseVersion(tag)
	if !ok || len(t.releases) == 0 {
		return all
	}
	i, exact := slices.BinarySearchFunc(t.releases, v, func(r release, v imageref.Version) int { return r.version.Compare(v) })
	w := window{certain: true, complete: true, shown: "v" + v.String()}
	switch {
	case exact && !t.releases[i].main:
		w.releases = 1 << i
	case exact || i == 0 || i == len(t.releases):
		all.shown = w.shown
		return all
	default:
		w.releases = 1<<i | 1<<(i-1)
		before, after := t.releases[i-1].version, t.releases[i].version
		w.complete = before[0] == after[0] && after[1]-before[1] <= 1
	}
	return w
}

// Lacks tells whether the engine of an image's tag lacks a flag. It does not if the release is not known.
func (t *Table) Lacks(flag, tag string) bool {
	w := t.window(tag)
	return w.complete && !slices.ContainsFunc(t.flags[flag], func(e entry) bool { return e.releases.and(w.releases) })
}
