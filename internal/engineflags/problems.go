package engineflags

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// unknown tells of a flag that the engine does not have.
func (r *reader) unknown(i int, w written) {
	if len(r.line.Problems) >= maxProblems || len(r.names) == 0 {
		return
	}
	flag := text.Value(w.shown)
	if several := r.several(w.name); len(several) > 1 {
		r.problem(i, fmt.Sprintf("%s is short for several flags of %s, such as %s and %s: write the whole name", flag, r.engine, several[0], several[1]))
		return
	}
	lacks := fmt.Sprintf("%s %s has no flag %s: ", r.engine, r.window.shown, flag)
	if r.window.certain {
		if elsewhere := r.elsewhere(w.name); elsewhere != "" {
			r.problem(i, lacks+elsewhere)
			return
		}
	}
	switch near := r.near(w.name); {
	case near != "":
		if !r.window.certain {
			lacks = fmt.Sprintf("no release of %s up to %s has a flag %s: ", r.engine, r.newest(), flag)
		}
		r.problem(i, lacks+"did you mean "+near+"?")
	case r.window.complete:
		r.problem(i, lacks+"leave it out")
	}
}

// several returns the flags that start with a name, if the engine cannot tell which one is meant.
func (r *reader) several(name string) []string {
	if !strings.HasPrefix(name, "--") || len(name) < 3 || !r.window.complete {
		return nil
	}
	var all []string
	for _, n := range r.starting(name) {
		if len(r.in(n)) > 0 {
			all = append(all, n)
		}
	}
	return all
}

// elsewhere tells in which other release a flag is.
func (r *reader) elsewhere(name string) string {
	entries := r.flags[name]
	if positive, ok := strings.CutPrefix(name, "--no-"); ok && len(entries) == 0 {
		entries = slices.DeleteFunc(slices.Clone(r.flags["--"+positive]), func(e entry) bool { return e.takes != takesNo })
	}
	has := set(0)
	for _, e := range entries {
		if e.takes != takesOther {
			has |= e.releases
		}
	}
	after, before := "", ""
	for i, release := range r.releases {
		switch here := set(1) << i; {
		case !has.and(here):
		case here > r.window.releases:
			if after == "" {
				after = release.name
			}
		default:
			before = release.name
		}
	}
	switch {
	case after != "" && before == "":
		return fmt.Sprintf("%s has it, so use a newer image or leave the flag out", after)
	case before != "" && after == "":
		return fmt.Sprintf("%s was one of the last that had it, so leave the flag out", before)
	case before != "":
		return fmt.Sprintf("%s and %s have it, so use another image or leave the flag out", before, after)
	}
	return ""
}

// near returns the known flag that a name resembles most, or nothing.
func (r *reader) near(name string) string {
	if len(name) > maxName || len(name) < 4 || r.searches == maxSearches {
		return ""
	}
	r.searches++
	limit := 1 + len(name)/8
	if !r.window.complete {
		limit = min(2, len(name)/6)
	}
	// New flags often differ from others in their first word alone, as --ec-transfer-config does.
	first := name[:max(2, 2+strings.IndexByte(name[2:], '-'))]
	best, found := limit+1, ""
	for _, n := range r.names {
		if d := len(n) - len(name); d > limit || -d > limit || len(r.in(n)) == 0 || !r.window.complete && !strings.HasPrefix(n, first) {
			continue
		}
		if d := text.Distance(name, n, best); d < best {
			best, found = d, n
		}
	}
	return found
}

var (
	yes = []string{"true", "1", "yes", "on"}
	no  = []string{"false", "0", "no", "off"}
)

// checkSwitch tells of a value behind a flag that takes none.
func (r *reader) checkSwitch(i int, w written, values []string, takes string) {
	value := w.value
	if !w.joined {
		if len(values) == 0 {
			return
		}
		value = values[0]
	}
	isNo := slices.Contains(no, strings.ToLower(value))
	if !w.joined && !isNo && !slices.Contains(yes, strings.ToLower(value)) {
		return // It may be the model.
	}
	instead := "write " + text.Value(w.shown) + " alone"
	switch {
	case isNo && takes == takesNo:
		instead = "write --no-" + text.Value(strings.TrimPrefix(w.name, "--"))
	case isNo:
		instead = "leave the flag out"
	}
	at := i
	if !w.joined {
		at++
	}
	r.problem(at, fmt.Sprintf("%s takes no value, so %s cannot parse %q: %s", text.Value(w.shown), r.engine, text.Value(value), instead))
}

// checkChoices tells of a value that the engine does not allow.
func (r *reader) checkChoices(i int, entries []entry, w written, value, takes string) {
	if !r.window.certain || w.key != "" || takes != takesValue || value == "" || strings.Contains(value, "$") {
		return
	}
	var all []string
	for _, e := range entries {
		if len(e.choices) == 0 || slices.Contains(e.choices, value) {
			return
		}
		all = append(all, e.choices...)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	if len(all) > maxListed {
		all = append(all[:maxListed], "…")
	}
	r.problem(i, fmt.Sprintf("%s cannot be %q: %s allows %s", text.Value(w.shown), text.Value(value), r.engine, strings.Join(all, ", ")))
}
