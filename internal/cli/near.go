package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// KnownCommand returns an error if the first argument is the name of a command that does not exist. Without
// it, the argument counts as one of the default command, whose names of flags say nothing of it.
func KnownCommand(args, commands []string) error {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") || slices.Contains(commands, args[0]) {
		return nil
	}
	return fmt.Errorf("unknown command %s.%s There are: %s", args[0], didYouMean(args[0], commands), strings.Join(commands, ", "))
}

// didYouMean asks for the known name that a misspelt one resembles most. It is empty if none does. A name
// without its namespace resembles the one with it.
func didYouMean(name string, known []string) string {
	near := text.Nearest(name, known)
	if i := slices.IndexFunc(known, func(k string) bool { return strings.HasSuffix(k, "/"+name) }); i >= 0 {
		near = known[i]
	}
	if near == "" {
		return ""
	}
	return fmt.Sprintf(" Did you mean %s?", near)
}
