package main

import (
	"cmp"
	"slices"
	"strings"
)

// What a flag takes.
const (
	// takesNothing is a switch.
	takesNothing = "switch"
	// takesNo is a switch that also has the form --no-flag.
	takesNo = "bool"
	// takesValue needs a value, and takesValues one at least.
	takesValue  = "value"
	takesValues = "values"
	// takesOptional works with and without a value.
	takesOptional = "optional"
	// takesOther marks the flag of another server that the same command starts.
	takesOther = "other"
)

// A flag of an engine.
type option struct {
	names   []string
	takes   string
	choices []string
}

// flags returns the flags of the calls of add_argument, and of the fields of some classes: of each field,
// or of those that are annotated with A.
func (m *module) flags(annotated bool, classes ...string) []option {
	var all []option
	for _, c := range m.calls {
		if f, ok := m.flag(c); ok {
			all = append(all, f)
		}
	}
	for _, class := range classes {
		for _, f := range m.classes[class] {
			if annotated != (text0(f.of) == "A") {
				continue
			}
			if f, ok := m.ofField(f); ok {
				all = append(all, f)
			}
		}
	}
	return all
}

// ofField returns the flag of a field of a class: vLLM's by its name, and SGLang's with what its
// annotation says.
func (m *module) ofField(f field) (option, bool) {
	if f.name == "" || strings.Contains(text0(f.of), "ClassVar") {
		return option{}, false
	}
	made := option{names: []string{"--" + strings.ReplaceAll(f.name, "_", "-")}}
	if text0(f.of) != "A" {
		made.takes, made.choices = m.takes(m.types(f.of), true)
		return made, true
	}
	parts := arguments(f.of[2:])
	if len(parts) < 2 {
		return option{}, false
	}
	made.takes, made.choices = m.takes(m.types(parts[0]), false)
	for _, part := range parts[1:] {
		if part[0].text == "Arg" && len(part) > 2 {
			return made, m.annotate(&made, arguments(part[2:]))
		}
	}
	return made, true
}

// annotate reads SGLang's Arg(...). It tells whether there is a flag.
func (m *module) annotate(f *option, args [][]token) bool {
	for _, a := range args {
		key, value := keyword(a)
		switch key {
		case "no_cli":
			if text0(value) == "True" {
				return false
			}
		case "cli_name":
			f.names[0] = text0(value)
		case "aliases":
			f.names = append(f.names, literals(value)...)
		case "choices":
			f.choices = m.choices(value)
		case "nargs":
			f.takes = nargs(value, f.takes)
		case "type_parser":
			f.takes = takesValue
		case "action":
			f.takes = action(value, f.takes)
		}
	}
	return true
}

// flag reads a call of add_argument. It is not ok for a positional argument, and without a name that is
// a literal.
func (m *module) flag(c call) (option, bool) {
	f := option{takes: takesValue}
	rest := c.args
	for len(rest) > 0 && len(rest[0]) == 1 && rest[0][0].kind == text {
		if strings.HasPrefix(rest[0][0].text, "-") {
			f.names = append(f.names, rest[0][0].text)
		}
		rest = rest[1:]
	}
	if len(f.names) == 0 {
		return f, false
	}
	for _, a := range rest {
		m.unpack(a, &f)
	}
	for _, a := range rest {
		switch key, value := keyword(a); key {
		case "choices":
			f.choices = m.choices(value)
		case "action":
			f.takes = action(value, f.takes)
		}
	}
	for _, a := range rest {
		if key, value := keyword(a); key == "nargs" {
			f.takes = nargs(value, f.takes)
		}
	}
	return f, true
}

// unpack reads an argument of the form **x_kwargs["field"], or **{**x_kwargs["field"], "default": None}.
func (m *module) unpack(a []token, f *option) {
	of := [][]token{a}
	if len(a) > 2 && a[0].is("**") && a[1].is("{") {
		of = arguments(a[2:])
	}
	for _, e := range of {
		if e[0].is("**") {
			f.takes, f.choices = m.ofConfig(e[1:])
		}
	}
}

// ofConfig returns what a flag of **x_kwargs["field"] takes.
func (m *module) ofConfig(of []token) (takes string, choices []string) {
	if len(of) != 4 || !of[1].is("[") || of[2].kind != text {
		return takesValue, nil
	}
	for _, f := range m.classes[m.configs[of[0].text]] {
		if f.name == of[2].text {
			return m.takes(m.types(f.of), true)
		}
	}
	return takesValue, nil
}

// keyword splits key=value. The key is empty for other arguments.
func keyword(a []token) (key string, value []token) {
	if len(a) < 3 || a[0].kind != name || !a[1].is("=") {
		return "", nil
	}
	return a[0].text, a[2:]
}

// action returns what a flag with this action takes.
func action(value []token, before string) string {
	switch last := value[len(value)-1].text; {
	case last == "BooleanOptionalAction":
		return takesNo
	case strings.HasPrefix(last, "store_true"), strings.HasPrefix(last, "store_false"), last == "store_const", last == "help", last == "version", last == "count",
		last == "DeprecatedAction", strings.HasPrefix(last, "DeprecatedStore"):
		return takesNothing
	}
	return before
}

// nargs returns what a flag with this number of values takes.
func nargs(value []token, before string) string {
	switch text0(value) {
	case "?", "*":
		return takesOptional
	case "0":
		return takesNothing
	case "+":
		return takesValues
	}
	return cmp.Or(before, takesValue)
}

func text0(of []token) string {
	if len(of) == 0 {
		return ""
	}
	return of[0].text
}

// literals returns the elements of a list. They are nil if one is no literal.
func literals(of []token) []string {
	if len(of) < 2 || !of[0].is("[") && !of[0].is("(") {
		return nil
	}
	var all []string
	for _, e := range arguments(of[1:]) {
		switch {
		case len(e) == 1 && (e[0].kind == text || e[0].kind == number || e[0].text == "None"):
			all = append(all, e[0].text)
		default:
			return nil
		}
	}
	return all
}

// choices returns the values that a flag allows, if the source has them. A list that plugins extend is
// not complete.
func (m *module) choices(of []token) []string {
	switch {
	case len(of) == 1 && !m.extended[of[0].text]:
		if c := m.constants[of[0].text]; len(c) > 1 {
			return m.choices(c)
		}
		return nil
	case len(of) > 3 && of[0].text == "get_args" && of[2].kind == name && !m.extended[of[2].text]:
		_, choices := m.takes(m.types(m.constants[of[2].text]), false)
		return choices
	case len(of) > 0 && find(of, "+") >= 0, len(of) > 0 && slices.ContainsFunc(of, func(t token) bool { return t.text == "for" }):
		return nil
	}
	return literals(of)
}

// A typeSet is what the type of a field may be.
type typeSet struct {
	// names of the types that are no literals.
	names []string
	// values of literals.
	values []string
}

func (s *typeSet) has(name string) bool { return slices.Contains(s.names, name) }

// maxAliases is how many names of types are followed.
const maxAliases = 8

// types reads the type of a field.
func (m *module) types(of []token) *typeSet {
	s := &typeSet{}
	m.addTypes(s, of, maxAliases)
	return s
}

func (m *module) addTypes(s *typeSet, of []token, aliases int) {
	if i := find(of, "|"); i >= 0 {
		m.addTypes(s, of[:i], aliases)
		m.addTypes(s, of[i+1:], aliases)
		return
	}
	if len(of) == 0 {
		return
	}
	first := of[0].text
	if len(of) > 2 && of[1].is("[") {
		inner := arguments(of[2:])
		switch first {
		case "Optional":
			s.names = append(s.names, "None")
			fallthrough
		case "Union":
			for _, t := range inner {
				m.addTypes(s, t, aliases)
			}
			return
		case "Annotated", "SkipValidation":
			m.addTypes(s, inner[0], aliases)
			return
		case "Literal":
			s.values = append(s.values, m.literal(of[1:], inner, aliases)...)
			return
		}
	}
	if alias := m.constants[first]; len(of) == 1 && len(alias) > 0 && aliases > 0 {
		m.addTypes(s, alias, aliases-1)
		return
	}
	s.names = append(s.names, first)
}

// literal returns the values of Literal[...], which may have other literals inside.
func (m *module) literal(of []token, inner [][]token, aliases int) []string {
	if plain := literals(of); plain != nil {
		return plain
	}
	s := &typeSet{}
	for _, e := range inner {
		if len(e) == 1 && (e[0].kind == text || e[0].kind == number) {
			s.values = append(s.values, e[0].text)
		} else {
			m.addTypes(s, e, aliases-1)
		}
	}
	return s.values
}

// takes returns what a flag of a type takes. With pairs, a bool has the form --no-flag.
func (m *module) takes(s *typeSet, pairs bool) (takes string, choices []string) {
	if s.has("bool") {
		others := slices.DeleteFunc(slices.Clone(s.names), func(n string) bool { return n == "bool" || n == "None" })
		switch {
		case pairs && s.has("str") && s.has("None") && len(others) == 1:
			return takesOptional, nil
		case pairs:
			return takesNo, nil
		}
		return takesNothing, nil
	}
	others := slices.DeleteFunc(slices.Clone(s.names), func(n string) bool { return n == "None" })
	if slices.ContainsFunc(others, func(n string) bool { return slices.Contains([]string{"list", "List", "set", "tuple"}, n) }) {
		return takesValues, nil
	}
	if len(s.values) == 0 || len(others) > 0 {
		return takesValue, nil
	}
	choices = s.values
	if s.has("None") {
		choices = append(slices.Clone(choices), "None")
	}
	return takesValue, choices
}
