package launch

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// visiblePort is a port that can be read, and replaced, in any script.
var visiblePort = regexp.MustCompile(`--port(?:[ \t]+|=)(\d+)\b`)

// maxScript is the most of a script that is read. Looking for words takes memory many times
// its length.
const maxScript = 128 << 10

// A word of a script. Its literal is what the shell makes of it, where that can
// be known from the text.
type word struct {
	start, end int
	literal    string
}

// A simpleCommand is the last command of a script, which starts an engine.
type simpleCommand struct {
	words []word
	// chained tells that && is all that joins the script's commands.
	chained bool
}

func (c simpleCommand) literals() []string {
	all := make([]string, len(c.words))
	for i, w := range c.words {
		all[i] = w.literal
	}
	return all
}

// engine that the command starts. It has to come first: other programs may have
// its name among their arguments.
func (c simpleCommand) engine() Engine {
	words := c.literals()
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
	found := false
	for i := len(c.words) - 1; i >= 0; i-- {
		w := c.words[i]
		name, _, joined := cut(w.literal)
		switch {
		case name != "--port":
			continue
		case joined:
			script = script[:w.start] + "--port=" + port + script[w.end:]
		case i+1 < len(c.words):
			script = script[:c.words[i+1].start] + port + script[c.words[i+1].end:]
		default:
			script = script[:w.end] + " " + port + script[w.end:]
		}
		found = true
	}
	if found {
		return script
	}
	return c.with(script, "--port "+port)
}

// lastCommand finds the last command of a script, and whether arguments can be
// added to it: it is a simple command that starts an engine. Anything that would
// take a whole shell to understand (compound commands, functions, here-documents,
// backquotes, pipes and redirections around the engine) is not.
func lastCommand(script string) (simpleCommand, bool) {
	c, ok := scan(script)
	if !ok || c.engine() == EngineUnknown {
		return c, false
	}
	return c, true
}

// scan finds the last command of a script, whatever it starts.
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
	return simpleCommand{words: s.last, chained: s.chained}, true
}

var assignment = regexp.MustCompile(`^[A-Za-z_]\w*=`)

// A scanner reads a script as far as lastCommand needs it.
type scanner struct {
	script string
	pos    int
	failed bool

	current []word
	text    strings.Builder
	start   int
	inWord  bool

	// fixed tells that nothing can be added to the current command.
	fixed     bool
	last      []word
	lastFixed bool
	// chained tells that no separator but && came between two commands; ended,
	// that one came after the last.
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
		s.text.Reset()
	}
	s.text.WriteString(text)
}

func (s *scanner) endWord() {
	if !s.inWord {
		return
	}
	s.inWord = false
	w := word{start: s.start, end: s.pos, literal: s.text.String()}
	if len(s.current) == 0 {
		s.failed = s.failed || slices.Contains(reserved, s.script[w.start:w.end])
		s.chained = s.chained && !s.ended
	}
	s.current = append(s.current, w)
}

// endCommand ends the current command with an operator.
func (s *scanner) endCommand(operator byte) {
	if len(s.current) == 0 {
		return
	}
	s.last, s.lastFixed = s.current, s.fixed || operator == '|'
	// What comes after || or | may not run, or not alone.
	s.current, s.fixed = nil, operator == '|'
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

// redirection skips its operator. What it names becomes a word, which does no
// harm: nothing is added to such a command.
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

// inDouble is a backslash between double quotes, which protects little.
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

// expansion skips $name, ${...} and $(...), if nothing is nested in them. Its
// value is not known; its text stands in for it.
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
