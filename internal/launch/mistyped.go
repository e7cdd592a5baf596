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

// Mistyped tells whether an argument is written for a shell, although no shell parses it: a flag
// and its value in one word, a whole command line in one word, or quotes around a value. No engine
// can parse these. It returns the words that the user probably meant.
func Mistyped(arg string) (meant []string, mistyped bool) {
	// Few arguments have one of these characters, and the regular expressions are slow.
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

// Words returns the words of a command that reach the engine as they are: first the command's,
// then the args'. With a shell script it returns none, because the shell parses the script.
func Words(c Command) []string {
	l := Parse(c)
	if l.script > 0 {
		return nil
	}
	return l.argv
}
