package launch

import (
	"slices"
	"strings"
)

// reserved words have a meaning for the shell if they start a command. So do assignments.
var reserved = []string{"if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "in", "function", "select", "time", "coproc", "{", "}", "!", "[["}

// plain tells whether a shell reads a word as it is, without quotes.
func plain(word string) bool {
	return word != "" && !strings.ContainsFunc(word, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("_@%+=:,./-", c)
	})
}

// quoteAll joins words into a command for a shell, with quotes where they are needed.
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
