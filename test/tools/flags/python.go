package main

import (
	"slices"
	"strings"
)

// A kind of token.
type kind int

const (
	name kind = iota
	text
	number
	operator
	newline
)

// A token of a Python source.
type token struct {
	kind kind
	// text of the token. That of a string is what is between its quotes, with its escapes.
	text string
	// column of a token that is the first of a statement. Otherwise -1.
	column int
}

// is tells whether the token is an operator.
func (t token) is(op string) bool { return t.kind == operator && t.text == op }

// tokenize splits a Python source into tokens. A newline token ends a statement. Comments are left out.
// It knows as much of Python as the definitions of arguments need.
func tokenize(source string) []token {
	s := scanner{source: source}
	for s.pos < len(s.source) {
		s.next()
	}
	s.end()
	return s.tokens
}

type scanner struct {
	source string
	pos    int
	// depth of brackets. A statement goes on while one is open.
	depth  int
	line   int
	middle bool
	tokens []token
}

func (s *scanner) add(k kind, text string) {
	column := -1
	if !s.middle {
		column = s.pos - s.line
	}
	s.tokens = append(s.tokens, token{kind: k, text: text, column: column})
	s.middle = true
}

// end ends a statement.
func (s *scanner) end() {
	if s.middle {
		s.tokens = append(s.tokens, token{kind: newline, column: -1})
	}
	s.middle = false
}

func (s *scanner) next() {
	c := s.source[s.pos]
	switch {
	case c == '\n':
		if s.depth == 0 {
			s.end()
		}
		s.pos++
		s.line = s.pos
	case c == ' ' || c == '\t' || c == '\r':
		s.pos++
	case c == '\\':
		s.pos++ // The newline after it is skipped, too.
		if s.pos < len(s.source) && s.source[s.pos] == '\n' {
			s.pos++
		}
	case c == '#':
		s.pos += length(s.source[s.pos:], func(c byte) bool { return c != '\n' })
	case c == '"' || c == '\'':
		s.string(0)
	case letter(c):
		s.word()
	case digit(c):
		n := length(s.source[s.pos:], func(c byte) bool { return letter(c) || digit(c) || c == '.' })
		s.add(number, s.source[s.pos:s.pos+n])
		s.pos += n
	default:
		s.operator(c)
	}
}

func (s *scanner) operator(c byte) {
	switch c {
	case '(', '[', '{':
		s.depth++
	case ')', ']', '}':
		s.depth = max(0, s.depth-1)
	}
	op := string(c)
	if strings.HasPrefix(s.source[s.pos:], "**") || strings.HasPrefix(s.source[s.pos:], "==") {
		op = s.source[s.pos : s.pos+2]
	}
	s.add(operator, op)
	s.pos += len(op)
}

// word reads a name, or the prefix of a string.
func (s *scanner) word() {
	n := length(s.source[s.pos:], func(c byte) bool { return letter(c) || digit(c) })
	after := s.pos + n
	if n <= 2 && after < len(s.source) && (s.source[after] == '"' || s.source[after] == '\'') {
		s.string(n)
		return
	}
	s.add(name, s.source[s.pos:after])
	s.pos = after
}

// string reads a string after a prefix of some characters. A formatted one is no literal, so it becomes
// a name.
func (s *scanner) string(prefix int) {
	k := text
	if strings.ContainsAny(s.source[s.pos:s.pos+prefix], "fF") {
		k = name
	}
	start := s.pos + prefix
	quote := s.source[start : start+1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(s.source[start:], triple) {
		quote = triple
	}
	start += len(quote)
	end := start
	for end < len(s.source) && !strings.HasPrefix(s.source[end:], quote) {
		if s.source[end] == '\\' {
			end++
		}
		end++
	}
	end = min(end, len(s.source))
	s.add(k, s.source[start:end])
	s.pos = min(end+len(quote), len(s.source))
}

func length(s string, of func(byte) bool) int {
	n := 0
	for n < len(s) && of(s[n]) {
		n++
	}
	return n
}

func letter(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
func digit(c byte) bool { return c >= '0' && c <= '9' }

// A field of a class, with the tokens of its type.
type field struct {
	name string
	of   []token
}

// A call of add_argument, with the tokens of each argument.
type call struct {
	args [][]token
}

// A module is what is read of Python sources.
type module struct {
	// constants are the expressions of assignments outside of classes and functions.
	constants map[string][]token
	// classes are the fields of classes in their order.
	classes map[string][]field
	// extended are constants to which something is added later.
	extended map[string]bool
	// configs are the classes whose fields a variable has: x_kwargs = get_kwargs(X).
	configs map[string]string
	calls   []call
}

func newModule() *module {
	return &module{constants: map[string][]token{}, classes: map[string][]field{}, extended: map[string]bool{}, configs: map[string]string{}}
}

// read adds what a source has. Calls are read only if wanted: other files may have parsers of their own.
func (m *module) read(source string, calls bool) {
	tokens := tokenize(source)
	class := ""
	for len(tokens) > 0 {
		n := 0
		for n < len(tokens) && tokens[n].kind != newline {
			n++
		}
		statement := tokens[:n]
		tokens = tokens[min(n+1, len(tokens)):]
		if n == 0 {
			continue
		}
		if statement[0].column == 0 {
			class = ""
			if n > 1 && statement[0].text == "class" {
				class = statement[1].text
			}
		}
		m.statement(statement, class)
		if calls {
			m.callsOf(statement)
		}
	}
}

func (m *module) statement(s []token, class string) {
	first := s[0]
	switch {
	case first.kind != name || len(s) < 3:
	case first.column == 0 && s[1].is("="):
		m.constants[first.text] = s[2:]
	case first.column == 0 && s[1].is(":"):
		if i := find(s, "="); i > 0 {
			m.constants[first.text] = s[i+1:]
		}
	case first.column == 4 && class != "" && s[1].is(":"):
		end := find(s, "=")
		if end < 0 {
			end = len(s)
		}
		m.classes[class] = append(m.classes[class], field{name: first.text, of: s[2:end]})
	case s[1].is("=") && len(s) > 5 && s[2].text == "get_kwargs":
		m.configs[first.text] = s[4].text
	case s[1].is(".") && (s[2].text == "extend" || s[2].text == "append"), s[1].is("+"):
		m.extended[first.text] = true
	}
}

// Brackets.
var (
	opening = []string{"(", "[", "{"}
	closing = []string{")", "]", "}"}
)

// find returns the index of an operator outside of brackets, or -1.
func find(s []token, op string) int {
	depth := 0
	for i, t := range s {
		switch {
		case t.kind != operator:
		case depth == 0 && t.text == op:
			return i
		case slices.Contains(opening, t.text):
			depth++
		case slices.Contains(closing, t.text):
			depth--
		}
	}
	return -1
}

func (m *module) callsOf(s []token) {
	for i := range s {
		if s[i].text == "add_argument" && s[i].kind == name && i+1 < len(s) && s[i+1].is("(") {
			m.calls = append(m.calls, call{args: arguments(s[i+2:])})
		}
	}
}

// arguments splits what is between brackets at its commas. It gets the tokens after the opening bracket.
func arguments(s []token) [][]token {
	var all [][]token
	depth, start := 0, 0
	for i, t := range s {
		if t.kind != operator {
			continue
		}
		closes := slices.Contains(closing, t.text)
		switch {
		case depth == 0 && (closes || t.text == ","):
			if i > start {
				all = append(all, s[start:i])
			}
			if closes {
				return all
			}
			start = i + 1
		case closes:
			depth--
		case slices.Contains(opening, t.text):
			depth++
		}
	}
	return all
}
