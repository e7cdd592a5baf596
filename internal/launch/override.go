package launch

import (
	"errors"
	"regexp"
	"slices"
	"strings"
)

// A Word is a word of a command line that Override made of two.
type Word struct {
	// Over tells that the word is one of the arguments that were put over the command line.
	// Otherwise it is one of the command line's own: of its command, and then of its args.
	Over bool
	// Index of the word there.
	Index int
}

// Override puts arguments over a command line, flag by flag, and returns command and args of the
// result. A flag is a word that starts with - or --, except a negative number. It takes all words up
// to the next flag with it. It replaces the same flag of the command line: wherever that is, however
// often, and in every form (--flag v, --flag=v, --no-flag, and with _ for -). Other flags stay.
//
// Words before the first flag, such as the name of a model, replace those of the command line's args.
// They come first, then what stays of the command line, then the flags of the arguments in their
// order. Everything after -- is kept together at the end.
//
// It refuses a command line whose flags are inside the script of a shell.
func Override(under Command, over []string) (command, args []Word, err error) {
	if l := Parse(under); l.script > 0 {
		return nil, nil, errors.New("it is a shell's script, into which no arguments can be put")
	}
	head := firstFlag(under.Command)
	for i := range head {
		command = append(command, Word{Index: i})
	}
	own := split(slices.Concat(under.Command, under.Args), head, len(under.Command))
	given := split(over, 0, 0)
	replaced := map[string]bool{}
	for _, g := range given.flags {
		replaced[g.name] = true
	}
	if len(given.leading) > 0 {
		args = appendWords(args, given.leading, true)
	} else {
		args = appendWords(args, own.leading, false)
	}
	for _, g := range own.flags {
		if !replaced[g.name] {
			args = appendWords(args, g.words, false)
		}
	}
	for _, g := range given.flags {
		args = appendWords(args, g.words, true)
	}
	if len(given.rest) > 0 {
		return command, appendWords(args, given.rest, true), nil
	}
	return command, appendWords(args, own.rest, false), nil
}

// firstFlag returns the index of the first flag in a command, or the command's length. Programs before the engine, such as
// tini -- or numactl --all, have flags of their own. Without a known engine, a -- only ends these.
func firstFlag(command []string) int {
	_, from := findEngine(command)
	for i := from; i < len(command); i++ {
		if w := command[i]; strings.HasPrefix(w, "--") && (from > 0 || w != "--") {
			return i
		}
	}
	return len(command)
}

// A given flag is the indexes of its words.
type givenFlag struct {
	name  string
	words []int
}

// splitWords are the indexes of the words before the first flag, of each flag, and from -- on.
type splitWords struct {
	leading []int
	flags   []givenFlag
	rest    []int
}

// split splits the words from an index on. Words of the command before args are never leading: they
// belong to the flags of the command.
func split(words []string, from, args int) splitWords {
	s := splitWords{}
	for i := from; i < len(words); i++ {
		switch name := flagName(words[i]); {
		case words[i] == "--":
			for ; i < len(words); i++ {
				s.rest = append(s.rest, i)
			}
		case name != "":
			s.flags = append(s.flags, givenFlag{name: name, words: []int{i}})
		case len(s.flags) == 0 && i >= args:
			s.leading = append(s.leading, i)
		case len(s.flags) > 0:
			last := &s.flags[len(s.flags)-1]
			last.words = append(last.words, i)
		}
	}
	return s
}

func appendWords(to []Word, indexes []int, over bool) []Word {
	for _, i := range indexes {
		to = append(to, Word{Over: over, Index: i})
	}
	return to
}

var negativeNumber = regexp.MustCompile(`^-([0-9]+|[0-9]*\.[0-9]+)$`)

// flagName returns the name by which a flag is known, or nothing for a word that is no flag.
func flagName(word string) string {
	if len(word) < 2 || word[0] != '-' || negativeNumber.MatchString(word) {
		return ""
	}
	name, _, _ := cut(word)
	if i := strings.IndexAny(name, " \t\r\n\f"); i > 0 {
		name = name[:i]
	}
	if positive, ok := strings.CutPrefix(name, "--no-"); ok && positive != "" {
		return "--" + positive
	}
	return name
}
