package plan

import (
	"fmt"
	"regexp/syntax"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// TestRouteTexts proves that no text of a route reaches a shared gateway that may refuse its whole configuration for it, or read it as its
// own configuration.
func TestRouteTexts(t *testing.T) {
	match := func(m string) string { return `{"matches":[` + m + `]}` }
	header := func(h string) string { return match(`{"headers":[` + h + `]}`) }
	set := func(of, h string) string {
		return `{"filters":[{"type":"` + of + `","` + strings.ToLower(of[:1]) + of[1:] + `":{"set":[` + h + `]}}]}`
	}
	request := func(h string) string { return set("RequestHeaderModifier", h) }
	// long is so many matches, whose expressions are as long as the CRD allows.
	long := func(n int) string {
		return strings.Trim(repeated(n, `{"path":{"type":"RegularExpression","value":"[`+strings.Repeat("a", 1022)+`]"}}`), "[]")
	}
	const matches, filters = "httproute.rules[0].matches[0].", "httproute.rules[0].filters[0]."
	cases := map[string]struct {
		reason, rule string
		errs         []string
	}{
		"Expression":    {"RE2 compiles it.", match(`{"path":{"type":"RegularExpression","value":"/v[0-9]+/(chat|models)(/.*)?"}}`), nil},
		"NoExpression":  {"RE2 does not compile it.", match(`{"path":{"type":"RegularExpression","value":"/(?!x)["}}`), []string{matches + "path.value"}},
		"Empty":         {"Envoy takes no empty one.", match(`{"path":{"type":"RegularExpression","value":""}}`), []string{matches + "path.value"}},
		"Unicode":       {"RE2 does not know the name.", match(`{"path":{"type":"RegularExpression","value":"/\\p{digit}"}}`), []string{matches + "path.value"}},
		"Escape":        {"A dot by its number is a legal character.", match(`{"path":{"type":"RegularExpression","value":"/v1\\x2e\\x{02E}\\056\\177[0-9]"}}`), nil},
		"Braces":        {"Each character of the range would be parsed by itself.", match(`{"path":{"type":"RegularExpression","value":"(?i)[B-\\x{1e942}]"}}`), []string{matches + "path.value"}},
		"Zeros":         {"It is such a character, too.", match(`{"path":{"type":"RegularExpression","value":"\\x{00100}"}}`), []string{matches + "path.value"}},
		"Octal":         {"It is another one.", match(`{"path":{"type":"RegularExpression","value":"\\400"}}`), []string{matches + "path.value"}},
		"Latin":         {"Values of headers may have these bytes.", header(`{"name":"a","type":"RegularExpression","value":"[\\x20-\\x7e\\x80-\\xff]+\\377"}`), nil},
		"Backslash":     {"It is no escape, but a backslash.", match(`{"path":{"type":"RegularExpression","value":"/\\\\pL\\\\x{3b1}"}}`), nil},
		"Backslashes":   {"The third one begins an escape.", match(`{"path":{"type":"RegularExpression","value":"/\\\\\\pL"}}`), []string{matches + "path.value"}},
		"AllLong":       {"Each match may have the longest path.", match(long(64)) + "," + match(long(64)), nil},
		"TooLong":       {"The last one is a character longer.", match(long(64)) + "," + match(long(63)+`,{"headers":[{"name":"a","type":"RegularExpression","value":"[`+strings.Repeat("a", 1023)+`]"}]}`), []string{"httproute.rules"}},
		"Repeated":      {"RE2 writes repetitions out.", match(`{"path":{"type":"RegularExpression","value":"/(abcdefgh){1000}"}}`), []string{matches + "path.value"}},
		"RepeatedTwice": {"It is in a repetition itself.", match(`{"path":{"type":"RegularExpression","value":"/((abcdefgh){30}){30}"}}`), []string{matches + "path.value"}},
		"Header":        {"It is compared as it is.", header(`{"name":"a","value":"*["}`), nil},
		"HeaderExpr":    {"RE2 does not compile it.", header(`{"name":"a","type":"RegularExpression","value":"*"}`), []string{matches + "headers[0].value"}},
		"QueryExpr":     {"RE2 does not compile it.", match(`{"queryParams":[{"name":"a","type":"RegularExpression","value":"("}]}`), []string{matches + "queryParams[0].value"}},
		"Backquote":     {"It would end the text in a rule of Traefik, and begin another rule.", header("{\"name\":\"a\",\"value\":\"x`) || PathPrefix(`/\"}"), []string{matches + "headers[0].value"}},
		"QueryQuote":    {"So it would in a query.", match("{\"queryParams\":[{\"name\":\"a`\",\"value\":\"b`\"}]}"), []string{matches + "queryParams[0].name", matches + "queryParams[0].value"}},
		"Set":           {"It is a value of a header.", request(`{"name":"a","value":"max-age=3, \"b\"; c"}`), nil},
		"Percent":       {"Envoy reads an operator, without an end.", request(`{"name":"a","value":"50%off"}`), []string{filters + "requestHeaderModifier.set[0].value"}},
		"TwoPercents":   {"They stand for one.", request(`{"name":"a","value":"50%%off"}`), nil},
		"Operator":      {"It would have the gateway tell its environment.", set("ResponseHeaderModifier", `{"name":"a","value":"%ENVIRONMENT(TOKEN)%"}`), []string{filters + "responseHeaderModifier.set[0].value"}},
		"Lines":         {"No header has two lines.", request(`{"name":"a","value":"a\nb"}`), []string{filters + "requestHeaderModifier.set[0].value"}},
		"Blanks":        {"Nor blanks at its end.", request(`{"name":"a","value":"a "}`), []string{filters + "requestHeaderModifier.set[0].value"}},
		"Host":          {"Envoy does not let it change.", request(`{"name":"Host","value":"x"}`), []string{filters + "requestHeaderModifier.set[0].name"}},
		"RemoveHost":    {"Nor go.", `{"filters":[{"type":"RequestHeaderModifier","requestHeaderModifier":{"remove":["hOst"]}}]}`, []string{filters + "requestHeaderModifier.remove[0]"}},
		"Rewrite":       {"It is a path.", `{"filters":[{"type":"URLRewrite","urlRewrite":{"path":{"type":"ReplacePrefixMatch","replacePrefixMatch":"/v1"}}}]}`, nil},
		"RewriteGroup":  {"Envoy would look for a group of an expression.", `{"filters":[{"type":"URLRewrite","urlRewrite":{"path":{"type":"ReplaceFullPath","replaceFullPath":"/\\9"}}}]}`, []string{filters + "urlRewrite.path.replaceFullPath"}},
		"Redirect":      {"So it would in a redirect.", `{"filters":[{"type":"RequestRedirect","requestRedirect":{"path":{"type":"ReplacePrefixMatch","replacePrefixMatch":"/\\9"}}}]}`, []string{filters + "requestRedirect.path.replacePrefixMatch"}},
		"Backoff":       {"It is some time.", `{"retry":{"attempts":2,"backoff":"100ms"}}`, nil},
		"NoBackoff":     {"Envoy takes no time that is none.", `{"retry":{"attempts":2,"backoff":"0s"}}`, []string{"httproute.rules[0].retry.backoff"}},
		"OfBackend":     {"A backend has filters too.", `{"backendRefs":[{"name":"a","port":80,"filters":[{"type":"RequestHeaderModifier","requestHeaderModifier":{"add":[{"name":"a","value":"%"}]}}]}]}`, []string{"httproute.rules[0].backendRefs[0].filters[0].requestHeaderModifier.add[0].value"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := &inputv1alpha1.Input{Policy: inputv1alpha1.Policy{Routes: &inputv1alpha1.Routes{ExperimentalFields: inputv1alpha1.Allow}}}
			_, errs, messages := routed(t, `{"parentRefs":[{"name":"gw"}],"rules":[`+tc.rule+`]}`, "", in, nil, scheduling.Snapshot{})
			if diff := cmp.Diff(tc.errs, errs, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nerrors at: -want, +got:\n%s\n%s", tc.reason, diff, messages)
			}
		})
	}
}

// TestBeyondLatin compares with the parser which escapes are characters above \xff.
func TestBeyondLatin(t *testing.T) {
	var escapes []string
	for c := range 0x1100 {
		escapes = append(escapes, fmt.Sprintf(`\x{%x}`, c), fmt.Sprintf(`\x{%X}`, c), fmt.Sprintf(`\x{00%03x}`, c))
		if c <= 0xff {
			escapes = append(escapes, fmt.Sprintf(`\x%02x`, c), fmt.Sprintf(`\x%02X`, c))
		}
		if c <= 0o777 {
			escapes = append(escapes, fmt.Sprintf(`\%03o`, c))
		}
	}
	for c := ' '; c <= '~'; c++ {
		escapes = append(escapes, `\`+string(c))
	}
	known := 0
	for _, e := range escapes {
		re, err := syntax.Parse(e, syntax.Perl)
		if err != nil || re.Op != syntax.OpLiteral {
			continue
		}
		known++
		if want, got := re.Rune[0] > 0xff, beyondLatin.MatchString(e); got != want {
			t.Errorf("%s is the character %x: want %t, got %t", e, re.Rune[0], want, got)
		}
	}
	if known < 10_000 {
		t.Errorf("the parser knows only %d of these escapes", known)
	}
}
