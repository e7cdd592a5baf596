package upgrade

import (
	"regexp"
	"slices"
	"strings"
)

// every is the case that means all cases.
const every = "all"

var (
	section = regexp.MustCompile(`^## \[?(\S+?)\]?(\s|$)`)
	rolls   = regexp.MustCompile(`^- rolls pods: ([^:]+): \S`)
)

// named returns the cases that the changelog names in the sections above that of a version. An
// upgrade from that version includes the changes of all of them:
//
//	## Unreleased
//
//	- rolls pods: <case>[, <case>]: why
func named(changelog, version string) (cases []string, found bool) {
	within := false
	for line := range strings.Lines(changelog) {
		if m := section.FindStringSubmatch(line); m != nil {
			if m[1] == version {
				return cases, true
			}
			within = true
		}
		if m := rolls.FindStringSubmatch(line); m != nil && within {
			for c := range strings.SplitSeq(m[1], ",") {
				cases = append(cases, strings.TrimSpace(c))
			}
		}
	}
	return nil, false
}

func excused(cases []string, name string) bool {
	return slices.Contains(cases, every) || slices.Contains(cases, name)
}
