package launch

import (
	"regexp"
	"slices"
	"strings"
)

var (
	// plain words mean themselves in a shell.
	plain = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)
	// reserved words, and assignments, mean something else at the start.
	reserved = []string{"if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "in", "function", "select", "time", "coproc", "{", "}", "!", "[["}
)

// quoteAll writes words as a shell reads them.
func quoteAll(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		if plain.MatchString(w) && (i > 0 || !strings.Contains(w, "=") && !slices.Contains(reserved, w)) {
			quoted[i] = w
			continue
		}
		quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	return strings.Join(quoted, " ")
}
