// The scanner in this file finds the last command of a script. It reads the part of the shell's
// language that sh, dash and bash read the same way, and gives up at the rest. The alternative
// mvdan.cc/sh/v3/syntax v3.13.1 was compared with it, with execute_test.go as the oracle:
//
//   - It understands scripts with conditions, loops and backquotes before the last command. The
//     scanner gives up there.
//   - It needed 252 lines instead of 347. Some sixty of these were rules about what the parser,
//     Kubernetes and the shells read in different ways, and about how deep a script may nest.
//   - It returned a wrong end for the word $2 in "vllm serve $1$2\<newline>". An argument that was
//     added there became a part of that word.
//   - In its POSIX mode it fails for ${X^^}, ${X:0:8} and other expansions of bash, which the scanner
//     passes over. In its bash mode there is more that the shells read in different ways.
//   - It is recursive. 128 KiB of opening brackets took 260 MiB of stack and two seconds, so it needs
//     a limit on nesting. The scanner is not recursive. It takes 5 MiB for 128 KiB, and linear time.
//   - It took 40 µs and 82 allocations for a usual script. The first version of the scanner took 5 µs and 40. The
//     binary grew by 250 KB.

package launch

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// visiblePort matches --port with a number. The number can be replaced even in a script that the
// scanner cannot read.
var visiblePort = regexp.MustCompile(`--port(?:[ \t]+|=)(\d+)\b`)

// maxScript is the longest script that is scanned, in bytes. Scanning takes many times its length
// in memory.
const maxScript = 128 << 10

// A word of a script. literal is the word after the shell removes quotes. Expansions stay in it as
// text.
type word struct {
	start, end int
	literal    string
}

// A simpleCommand is the last command of a script.
type simpleCommand struct {
	words []word
	// literals are those of the words.
	literals []string
	// engine that the command starts.
	engine Engine
	// chained tells that only && joins the commands of the script.
	chained bool
}

// firstEngine returns the engine that a command starts. The engine must come first, because other
// programs may have its name among their arguments.
func firstEngine(words []string) Engine {
	for len(words) > 0 && (assignment.MatchString(words[0]) || words[0] == "exec" || words[0] == "env") {
		words = words[1:]
	}
	switch {
	case len(words) > 1 && words[1] == "serve":
		return engineOf(words[:2])
	case len(words) > 2 && words[1] == "-m" && python.MatchString(path.Base(words[0])):
		return engineOf(words[:3])
	}
	return EngineUnknown
}

// with returns the script with more arguments at the end of the command.
func (c simpleCommand) with(script, args string) string {
	end := c.words[len(c.words)-1].end
	return script[:end] + " " + args + script[end:]
}

// withPort returns the script with another port for the engine.
func (c simpleCommand) withPort(script, port string) string {
	changed := &strings.Builder{}
	written := 0
	put := func(from, to int, text string) {
		changed.WriteString(script[written:from])
		changed.WriteString(text)
		written = to
	}
	for i := 0; i < len(c.words); i++ {
		w := c.words[i]
		name, _, joined := cut(w.literal)
		switch {
		case name != "--port":
		case joined:
			put(w.start, w.end, "--port="+port)
		case i+1 < len(c.words):
			i++
			put(c.words[i].start, c.words[i].end, port)
		default:
			put(w.end, w.end, " "+port)
		}
	}
	if written == 0 {
		return c.with(script, "--port "+port)
	}
	return changed.String() + script[written:]
}

// scan finds the last command of a script, with or without an engine.
func scan(script string) (simpleCommand, bool) {
	if len(script) > maxScript {
		return simpleCommand{}, false
	}
	s := scanner{script: script, chained: true}
	for s.pos < len(script) && !s.failed {
		s.next()
	}
	s.endWord()
	s.endCommand(0)
	if s.failed || len(s.last) == 0 || s.lastFixed {
		return simpleCommand{}, false
	}
	literals := make([]string, len(s.last))
	for i, w := range s.last {
		literals[i] = w.literal
	}
	return simpleCommand{words: s.last, literals: literals, engine: firstEngine(literals), chained: s.chained}, true
}

var assignment = regexp.MustCompile(`^[A-Za-z_]\w*=`)

// A scanner reads a script as far as lastCommand needs it.
type scanner struct {
	script string
	pos    int
	failed bool

	current []word
	text    []byte
	start   int
	inWord  bool

	// fixed tells that no arguments can be added to the current command. lastFixed is that of last.
	fixed     bool
	last      []word
	lastFixed bool
	// chained tells that only && came between two commands. ended tells that another separator came
	// after a command.
	chained, ended bool
}

func (s *scanner) next() {
	c := s.script[s.pos]
	switch c {
	case ' ', '\t':
		s.endWord()
	case '\n', ';':
		s.separator(c)
		return
	case '&', '|':
		s.operator(c)
		return
	case '<', '>':
		s.redirection()
		return
	case '(', ')', '`':
		s.failed = true
	case '#':
		if !s.inWord {
			s.comment()
			return
		}
		s.add("#")
	case '\\':
		s.backslash()
		return
	case '\'':
		s.single()
		return
	case '"':
		s.double()
		return
	case '$':
		s.dollar()
		return
	default:
		s.add(s.script[s.pos : s.pos+1])
	}
	s.pos++
}

// add adds text to the current word.
func (s *scanner) add(text string) {
	if !s.inWord {
		s.inWord, s.start = true, s.pos
		s.text = s.text[:0]
	}
	s.text = append(s.text, text...)
}

func (s *scanner) endWord() {
	if !s.inWord {
		return
	}
	s.inWord = false
	w := word{start: s.start, end: s.pos, literal: s.script[s.start:s.pos]}
	if w.literal != string(s.text) {
		w.literal = string(s.text)
	}
	if len(s.current) == 0 {
		s.failed = s.failed || slices.Contains(reserved, s.script[w.start:w.end])
		s.chained = s.chained && !s.ended
	}
	if len(s.current) == cap(s.current) {
		// append adds a quarter to a long list. A script of many words would be copied too often.
		s.current = slices.Grow(s.current, max(8, len(s.current)))
	}
	s.current = append(s.current, w)
}

// endCommand ends the current command with an operator.
func (s *scanner) endCommand(operator byte) {
	if len(s.current) == 0 {
		return
	}
	// Nobody reads the command before, so its memory is used again.
	s.last, s.current = s.current, s.last[:0]
	// A command after || may not run, and one after | reads from another command.
	s.lastFixed, s.fixed = s.fixed || operator == '|', operator == '|'
	s.ended = s.ended || operator != '&'
}

func (s *scanner) separator(c byte) {
	s.endWord()
	if c == ';' && strings.HasPrefix(s.script[s.pos:], ";;") {
		s.failed = true
	}
	// A line may end after && and ||.
	if len(s.current) > 0 {
		s.endCommand(c)
	}
	s.pos++
}

func (s *scanner) operator(c byte) {
	s.endWord()
	double := s.pos+1 < len(s.script) && s.script[s.pos+1] == c
	if len(s.current) == 0 || c == '&' && !double {
		s.failed = true
		return
	}
	s.endCommand(c)
	s.pos++
	if double {
		s.pos++
	}
}

// redirection skips the operator. The name of the file becomes a word of the command. This is
// harmless, because nothing is added to a command with a redirection.
func (s *scanner) redirection() {
	s.endWord()
	if strings.HasPrefix(s.script[s.pos:], "<<") {
		s.failed = true
		return
	}
	s.fixed = true
	for s.pos < len(s.script) && strings.IndexByte("<>&|", s.script[s.pos]) >= 0 {
		s.pos++
	}
}

func (s *scanner) comment() {
	if i := strings.IndexByte(s.script[s.pos:], '\n'); i >= 0 {
		s.pos += i
		return
	}
	s.pos = len(s.script)
}

func (s *scanner) backslash() {
	if s.pos+1 >= len(s.script) {
		s.failed = true
		return
	}
	if s.script[s.pos+1] != '\n' {
		s.add(s.script[s.pos+1 : s.pos+2])
	}
	s.pos += 2
}

func (s *scanner) single() {
	i := strings.IndexByte(s.script[s.pos+1:], '\'')
	if i < 0 {
		s.failed = true
		return
	}
	s.add(s.script[s.pos+1 : s.pos+1+i])
	s.pos += i + 2
}

func (s *scanner) double() {
	s.add("")
	s.pos++
	for s.pos < len(s.script) && !s.failed {
		switch c := s.script[s.pos]; c {
		case '"':
			s.pos++
			return
		case '`':
			s.failed = true
		case '$':
			s.expansion()
		case '\\':
			s.inDouble()
		default:
			s.add(s.script[s.pos : s.pos+1])
			s.pos++
		}
	}
	s.failed = true
}

// inDouble reads a backslash between double quotes. It escapes only $, `, ", \ and a newline.
func (s *scanner) inDouble() {
	if s.pos+1 >= len(s.script) {
		s.failed = true
		return
	}
	c := s.script[s.pos+1]
	switch {
	case c == '\n':
	case strings.IndexByte("$`\"\\", c) >= 0:
		s.add(s.script[s.pos+1 : s.pos+2])
	default:
		s.add(s.script[s.pos : s.pos+2])
	}
	s.pos += 2
}

func (s *scanner) dollar() {
	if rest := s.script[s.pos+1:]; strings.HasPrefix(rest, "'") || strings.HasPrefix(rest, `"`) {
		s.failed = true
		return
	}
	s.expansion()
}

// expansion reads $name, ${...} and $(...), and fails if they nest. Their values are unknown, so
// their text becomes part of the word.
func (s *scanner) expansion() {
	rest := s.script[s.pos:]
	var closing string
	switch {
	case strings.HasPrefix(rest, "$("):
		closing = ")"
	case strings.HasPrefix(rest, "${"):
		closing = "}"
	default:
		s.add("$")
		s.pos++
		return
	}
	end := strings.Index(rest, closing)
	if end < 0 || strings.ContainsAny(rest[2:end], "({'\"`\\#$") {
		s.failed = true
		return
	}
	s.add(rest[:end+1])
	s.pos += end + 1
}
