package engineflags

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// A Line is the command line of an engine, as the engine reads it.
type Line struct {
	// Model is the first word that is no flag and no value, and ModelAt its index, or -1.
	Model   string
	ModelAt int
	// Open tells that there may be other flags than those that are seen: from a file, from a variable, or
	// in a word that the engine cannot parse.
	Open bool
	// MayBeModel tells that a word which is taken for a value of a flag may be the model instead: the flag is
	// not known, or it need not have a value.
	MayBeModel bool
	// Problems that the line has, in its order.
	Problems []Problem

	given map[string]Given
}

// A Given is a flag of a line. If a flag is there twice, it is the last one.
type Given struct {
	// Index of the word that has the flag.
	Index int
	// Flag as it is written, without its value.
	Flag string
	// Value of the flag. It is empty for a switch.
	Value string
	// Key is what follows a dot: the key of a JSON value.
	Key string
	// Several tells that other values follow.
	Several bool
}

// Known tells whether there is one value, of plain text. That of a variable is not known before the engine
// starts.
func (g Given) Known() bool {
	return g.Value != "" && !g.Several && !strings.Contains(g.Value, "$")
}

// A Problem is a word that the engine cannot use.
type Problem struct {
	Index   int
	Message string
}

const (
	// maxProblems of a line are told.
	maxProblems = 8
	// maxSearches is for how many flags of a line a similar one is searched.
	maxSearches = 4
	// maxName is the most characters of a name for which a similar one is searched.
	maxName = 48
	// maxWords of a line are read.
	maxWords = 4096
	// maxListed choices are told.
	maxListed = 12
)

// Get returns the last of the flags with one of these names. A key of a JSON value is a name of its own:
// --kv-transfer-config.kv_role.
func (l *Line) Get(names ...string) (Given, bool) {
	best, found := Given{}, false
	for _, n := range names {
		if g, ok := l.given[n]; ok && (!found || g.Index > best.Index) {
			best, found = g, true
		}
	}
	return best, found
}

// Has tells whether one of the flags is there.
func (l *Line) Has(names ...string) bool {
	_, ok := l.Get(names...)
	return ok
}

// A reader reads one line.
type reader struct {
	*Table

	window window

	line     *Line
	words    []string
	searches int
	// other tells that the words are for another server than that of the table.
	other bool
}

// Read reads the words after the engine's name. The tag is that of the engine's image, if that is the
// engine's release.
func (t *Table) Read(words []string, tag string) *Line {
	return t.read(words, t.window(tag))
}

func (t *Table) read(words []string, of window) *Line {
	r := reader{Table: t, window: of, words: words, line: &Line{ModelAt: -1, given: map[string]Given{}}}
	if len(words) > maxWords {
		r.words, r.line.Open = words[:maxWords], true
	}
	for i := 0; i < len(r.words); {
		i = r.next(i)
	}
	if r.other {
		return &Line{ModelAt: -1, Open: true}
	}
	return r.line
}

// next reads a word with its values, and returns the index after them.
func (r *reader) next(i int) int {
	word := r.words[i]
	switch {
	case word == "--":
		r.positional(i + 1)
		return len(r.words)
	case isFlag(word):
		return r.flag(i)
	case i == 0 && strings.HasPrefix(word, "$("):
		// The first variable of Kubernetes is the model.
	case strings.HasPrefix(word, "$") || strings.HasPrefix(word, "-") && len(word) > 1 || strings.ContainsAny(word, " \t\n") && strings.Contains(word, "--"):
		// It may be flags, or is a flag that the engine cannot parse.
		r.line.Open = true
	}
	r.positional(i)
	return i + 1
}

func (r *reader) positional(i int) {
	if i < len(r.words) && r.line.ModelAt < 0 && !strings.HasPrefix(r.words[i], "-") {
		r.line.Model, r.line.ModelAt = r.words[i], i
	}
}

// isFlag tells whether a parser of Python's argparse takes a word for a flag.
func isFlag(word string) bool {
	if len(word) < 2 || word[0] != '-' || word == "--" {
		return false
	}
	// A number is none, and neither is a text with spaces.
	head, _, _ := strings.Cut(word, "=")
	return !strings.ContainsAny(head, " \t\n") && !strings.ContainsAny(word[1:2], ".0123456789")
}

// A written flag is a word that is split into its parts.
type written struct {
	// name as the table has it, and shown as the user wrote it.
	name, shown string
	key, value  string
	joined      bool
}

func (t *Table) split(word string) written {
	w := written{}
	w.shown, w.value, w.joined = strings.Cut(word, "=")
	w.name = w.shown
	if !t.flexible {
		return w
	}
	w.name, w.key, _ = strings.Cut(w.name, ".")
	if strings.HasPrefix(w.name, "--") {
		w.name = strings.ReplaceAll(w.name, "_", "-")
	} else if strings.HasPrefix(w.name, "-O") && len(w.name) > 2 {
		w.name, w.value, w.joined = "-O", strings.TrimPrefix(word, "-O"), true
	}
	return w
}

// flag reads a flag with its values, and returns the index after them.
func (r *reader) flag(i int) int {
	w := r.split(r.words[i])
	values := r.valuesAfter(i)
	if strings.Contains(w.name, "$") {
		r.line.Open = true
		return i + 1 + len(values)
	}
	r.other = r.other || slices.ContainsFunc(r.flags[w.name], func(e entry) bool { return e.takes == takesOther && e.releases.and(r.window.releases) })
	name, entries, no := r.find(w.name)
	if len(entries) == 0 {
		r.mayBeModel(values, "")
		r.unknown(i, w)
		return i + 1 + len(values)
	}
	if len(name) == 2 && len(w.name) > 2 {
		w.value, w.joined = w.shown[2:], true // -n2 is -n 2.
	}
	g := Given{Index: i, Flag: w.shown, Key: w.key, Value: w.value}
	takes := same(entries)
	switch {
	case no || takes == takesNothing || takes == takesNo:
		if !no {
			r.checkSwitch(i, w, values, takes)
		}
		values = values[:0]
	case !w.joined:
		if len(values) > 0 {
			g.Value = values[0]
		} else if takes == takesValue || takes == takesValues {
			r.problem(i, fmt.Sprintf("%s needs a value, and none follows: add it as the next element", text.Value(w.shown)))
		}
		if takes == takesValue || w.key != "" {
			values = values[:min(1, len(values))]
		}
		g.Several = len(values) > 1
		r.mayBeModel(values, takes)
		r.checkChoices(i+len(values), entries, w, g.Value, takes)
	default:
		values = values[:0]
		r.checkChoices(i, entries, w, g.Value, takes)
	}
	switch {
	case name == "--config":
		r.line.Open = true
	case name == "--model-type" && g.Value != "auto" && g.Value != "llm":
		r.other = true
	}
	r.remember(name, entries, g)
	return i + 1 + len(values)
}

// mayBeModel notes values of a flag that may be none: it takes none, or need not.
func (r *reader) mayBeModel(values []string, takes string) {
	if len(values) > 0 && takes != takesValue && takes != takesValues {
		r.line.MayBeModel = true
	}
}

// remember notes a flag under its names. A key of a JSON value has its own.
func (r *reader) remember(name string, entries []entry, g Given) {
	if g.Key != "" {
		r.line.given[entries[0].name+"."+g.Key] = g
		return
	}
	r.line.given[name] = g
	r.line.given[entries[0].name] = g
}

// valuesAfter returns the words after a flag up to the next one.
func (r *reader) valuesAfter(i int) []string {
	end := i + 1
	for end < len(r.words) && !isFlag(r.words[end]) && r.words[end] != "--" {
		end++
	}
	return r.words[i+1 : end]
}

// find returns the flag with a name in the releases of the window: the flag itself, its form --no-, or
// the only one that starts with the name. Of several that do, it returns none.
func (r *reader) find(name string) (full string, entries []entry, no bool) {
	if e := r.in(name); len(e) > 0 {
		return name, e, false
	}
	if positive, ok := strings.CutPrefix(name, "--no-"); ok {
		e := slices.DeleteFunc(r.in("--"+positive), func(e entry) bool { return e.takes != takesNo })
		if len(e) > 0 {
			return name, e, true
		}
	}
	if len(name) == 2 || len(name) > 2 && name[1] != '-' {
		if e := r.in(name[:2]); len(e) > 0 && len(name) > 2 {
			return name[:2], e, false
		}
		return name, nil, false
	}
	first := ""
	for _, n := range r.starting(name) {
		if e := r.in(n); len(e) > 0 {
			if first != "" && first != e[0].name {
				return name, nil, false
			}
			full, entries, first = n, e, e[0].name
		}
	}
	return full, entries, false
}

// starting returns the flags that start with some text.
func (t *Table) starting(with string) []string {
	from, _ := slices.BinarySearch(t.names, with)
	to := from
	for to < len(t.names) && strings.HasPrefix(t.names[to], with) {
		to++
	}
	return t.names[from:to]
}

// in returns what the releases of the window have of a flag.
func (r *reader) in(name string) []entry {
	var all []entry
	for _, e := range r.flags[name] {
		if e.takes != takesOther && e.releases.and(r.window.releases) {
			all = append(all, e)
		}
	}
	return all
}

// same returns what all entries take, or nothing if they differ.
func same(entries []entry) string {
	for _, e := range entries[1:] {
		if e.takes != entries[0].takes {
			return ""
		}
	}
	return entries[0].takes
}

func (r *reader) problem(i int, message string) {
	if len(r.line.Problems) < maxProblems {
		r.line.Problems = append(r.line.Problems, Problem{Index: i, Message: message})
	}
}
