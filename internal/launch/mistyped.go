package launch

import (
	"regexp"
	"strings"
)

var (
	flagAndValue = regexp.MustCompile(`^(--?[A-Za-z][\w.-]*)[ \t]+(\S.*)$`)
	commandLine  = regexp.MustCompile(`^(vllm serve|python3? -m (vllm|sglang)\S*)[ \t]+\S`)
	quotedValue  = regexp.MustCompile(`^(--?[A-Za-z][\w.-]*=)?'(.*)'$`)
)

// Mistyped tells whether an argument is one that no engine can parse, because it
// is written as for a shell and there is none: a flag and its value in one word,
// a whole command line in one word, or quotes around a value. It returns the words
// that were meant.
func Mistyped(arg string) (meant []string, mistyped bool) {
	// Hardly any argument has one of these, and the expressions are slow.
	if !strings.ContainsAny(arg, " \t'") {
		return nil, false
	}
	if commandLine.MatchString(arg) {
		return strings.Fields(arg), true
	}
	if m := flagAndValue.FindStringSubmatch(arg); m != nil {
		return []string{m[1], unquoted(m[2])}, true
	}
	if m := quotedValue.FindStringSubmatch(arg); m != nil {
		return []string{m[1] + m[2]}, true
	}
	return nil, false
}

func unquoted(s string) string {
	for _, q := range []string{"'", `"`} {
		if len(s) > 1 && strings.HasPrefix(s, q) && strings.HasSuffix(s, q) {
			return s[1 : len(s)-1]
		}
	}
	return s
}

// Words returns the words of a command that the engine parses itself: first the
// command's, then the args'. There are none in front of a shell, which parses its
// script.
func Words(c Command) []string {
	l := parse(c)
	if l.script > 0 {
		return nil
	}
	return l.argv
}
