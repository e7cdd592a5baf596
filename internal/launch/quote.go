package launch

import (
	"slices"
	"strings"
)

// reserved words, and assignments, mean something else at the start.
var reserved = []string{"if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "in", "function", "select", "time", "coproc", "{", "}", "!", "[["}

// plain words mean themselves in a shell.
func plain(word string) bool {
	return word != "" && !strings.ContainsFunc(word, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("_@%+=:,./-", c)
	})
}

// quoteAll writes words as a shell reads them.
func quoteAll(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		if plain(w) && (i > 0 || !strings.Contains(w, "=") && !slices.Contains(reserved, w)) {
			quoted[i] = w
			continue
		}
		quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	return strings.Join(quoted, " ")
}
