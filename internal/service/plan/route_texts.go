package plan

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// maxSteps is how many characters and operators a regular expression may have once its repetitions are written out. RE2 bounds the memory of
// an expression.
const maxSteps = 1000

// maxExpressions is how many bytes the regular expressions of a route may have together. Parsing a megabyte of them takes about a second.
// Each match may still have a path as long as the CRD allows.
const maxExpressions = maxRouteMatches * 1024

// checkTexts refuses texts that the CRDs allow and that may stop a shared gateway. Envoy refuses a whole configuration for one expression
// that does not compile, one header value that is none, or one format operator without an end (source/common/router/config_impl.cc,
// source/common/formatter/substitution_formatter.cc). The routes of all tenants are in that configuration. Traefik puts
// texts between backquotes (pkg/provider/kubernetes/gateway/httproute.go). experimental tells that clusters have the experimental channel of
// the Gateway API, which takes fewer values of headers.
func checkTexts(path *field.Path, spec *gateway.HTTPRouteSpec, experimental bool) field.ErrorList {
	texts, length := matchTexts(path.Child("rules"), spec.Rules), 0
	for _, t := range texts {
		if t.expression {
			length += len(t.value)
		}
	}
	if length > maxExpressions {
		return field.ErrorList{field.Invalid(path.Child("rules"), length, fmt.Sprintf("must have at most %d bytes in the regular expressions of all rules together", maxExpressions))}
	}
	var errs field.ErrorList
	for _, t := range texts {
		if t.expression {
			errs = append(errs, checkExpression(t.path, t.value)...)
		} else {
			errs = append(errs, checkQuoted(t.path, t.value)...)
		}
	}
	for i := range spec.Rules {
		rule, at := &spec.Rules[i], path.Child("rules").Index(i)
		errs = append(errs, checkBackoff(at.Child("retry", "backoff"), rule.Retry)...)
		errs = append(errs, checkFilterTexts(at.Child("filters"), rule.Filters, experimental)...)
		for j := range rule.BackendRefs {
			errs = append(errs, checkFilterTexts(at.Child("backendRefs").Index(j).Child("filters"), rule.BackendRefs[j].Filters, experimental)...)
		}
	}
	return errs
}

// A matchText is what a match compares a part of a request with.
type matchText struct {
	path       *field.Path
	value      string
	expression bool
}

// matchTexts returns the texts of all matches: their paths, and the names and values of headers and query parameters.
func matchTexts(path *field.Path, rules []gateway.HTTPRouteRule) []matchText {
	var all []matchText
	add := func(path *field.Path, value string, expression bool) {
		all = append(all, matchText{path, value, expression})
	}
	for i := range rules {
		for j, m := range rules[i].Matches {
			at := path.Index(i).Child("matches").Index(j)
			if m.Path != nil {
				add(at.Child("path", "value"), ptr.Deref(m.Path.Value, ""), ptr.Deref(m.Path.Type, "") == gateway.PathMatchRegularExpression)
			}
			for k, h := range m.Headers {
				header := at.Child("headers").Index(k)
				add(header.Child("name"), string(h.Name), false)
				add(header.Child("value"), h.Value, ptr.Deref(h.Type, "") == gateway.HeaderMatchRegularExpression)
			}
			for k, q := range m.QueryParams {
				param := at.Child("queryParams").Index(k)
				add(param.Child("name"), string(q.Name), false)
				add(param.Child("value"), q.Value, ptr.Deref(q.Type, "") == gateway.QueryParamMatchRegularExpression)
			}
		}
	}
	return all
}

// checkBackoff refuses a backoff of no time, with which Envoy takes no configuration either.
func checkBackoff(path *field.Path, r *gateway.HTTPRouteRetry) field.ErrorList {
	if r == nil || r.Backoff == nil {
		return nil
	}
	if d, err := time.ParseDuration(string(*r.Backoff)); err == nil && d > 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, text.Value(string(*r.Backoff)), "must be a time above 0s, such as 100ms")}
}

// checkQuoted checks a text that a gateway may put between backquotes.
func checkQuoted(path *field.Path, value string) field.ErrorList {
	if strings.IndexFunc(value, func(r rune) bool { return r < ' ' || r > '~' || r == '`' }) >= 0 {
		return field.ErrorList{field.Invalid(path, text.Value(value), "must have printable ASCII characters only, and no backquote")}
	}
	return nil
}

// beyondLatin finds classes such as \pL, and escapes of characters above \xff such as \x{3b1}. An escaped backslash begins none. RE2 knows
// fewer names of classes than the parser here, for which one can have hundreds of ranges. Without regard to case, the parser takes each
// character of a range by itself.
var beyondLatin = regexp.MustCompile(`(?:^|[^\\])(?:\\\\)*\\(?:[pP]|x\{0*[1-9A-Fa-f][0-9A-Fa-f]{2}|[4-7][0-7]{2})`)

func checkExpression(path *field.Path, value string) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, "must be a regular expression")}
	}
	if errs := checkQuoted(path, value); len(errs) > 0 {
		return errs
	}
	if beyondLatin.MatchString(value) {
		return field.ErrorList{field.Invalid(path, text.Value(value), "must have no classes of Unicode characters, of which gateways know different names, and no escapes of characters above \\xff")}
	}
	parsed, err := syntax.Parse(value, syntax.Perl)
	if err != nil {
		return field.ErrorList{field.Invalid(path, text.Value(value), "must be a regular expression of RE2: "+text.OneLine(err.Error()))}
	}
	if stepsOf(parsed) > maxSteps {
		return field.ErrorList{field.Invalid(path, text.Value(value), fmt.Sprintf("must be a shorter regular expression: at most %d characters and operators once its repetitions are written out", maxSteps))}
	}
	return nil
}

// stepsOf returns how many characters and operators an expression has once its repetitions are written out. The parser allows 1,000 of
// these at most, so it never overflows.
func stepsOf(re *syntax.Regexp) int {
	n := max(1, len(re.Rune))
	for _, sub := range re.Sub {
		n += stepsOf(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min+1, re.Max)
	}
	return n
}

func checkFilterTexts(path *field.Path, filters []gateway.HTTPRouteFilter, experimental bool) field.ErrorList {
	var errs field.ErrorList
	for i := range filters {
		f, at := &filters[i], path.Index(i)
		errs = append(errs, checkHeaderTexts(at.Child("requestHeaderModifier"), f.RequestHeaderModifier, experimental)...)
		errs = append(errs, checkHeaderTexts(at.Child("responseHeaderModifier"), f.ResponseHeaderModifier, experimental)...)
		if f.URLRewrite != nil {
			errs = append(errs, checkPathModifier(at.Child("urlRewrite", "path"), f.URLRewrite.Path)...)
		}
		if f.RequestRedirect != nil {
			errs = append(errs, checkPathModifier(at.Child("requestRedirect", "path"), f.RequestRedirect.Path)...)
		}
	}
	return errs
}

// checkPathModifier checks what a path is replaced by. Gateways put it into the replacement of a regular expression.
func checkPathModifier(path *field.Path, m *gateway.HTTPPathModifier) field.ErrorList {
	if m == nil {
		return nil
	}
	check := func(name string, value *string) field.ErrorList {
		if value == nil || *value == "" || plainPath(*value) {
			return nil
		}
		return field.ErrorList{field.Invalid(path.Child(name), text.Value(*value), messagePlainPath)}
	}
	return append(check("replaceFullPath", m.ReplaceFullPath), check("replacePrefixMatch", m.ReplacePrefixMatch)...)
}

// headerValue matches what the Gateway API's experimental channel allows as the value of a header.
var headerValue = regexp.MustCompile(`^[\x21-\x7E]+([\t ]?[\x21-\x7E]+)*$`)

const messageHeaderValue = "must have visible ASCII characters, with at most one blank between two"

// messageBlanks says what the values of headers may be with the standard channel, which leaves them to gateways.
const messageBlanks = "must have printable ASCII characters, with blanks only between them"

// checkHeaderTexts checks the headers of a filter: each value is that of a header, and no format string of Envoy. Envoy lets nobody change
// the Host header so.
func checkHeaderTexts(path *field.Path, h *gateway.HTTPHeaderFilter, experimental bool) field.ErrorList {
	if h == nil {
		return nil
	}
	var errs field.ErrorList
	valid, message := blanksInside, messageBlanks
	if experimental {
		valid, message = headerValue.MatchString, messageHeaderValue
	}
	checkName := func(path *field.Path, name string) {
		if strings.EqualFold(name, "host") || strings.HasPrefix(name, ":") {
			errs = append(errs, field.Invalid(path, text.Value(name), "must be another header: a route cannot change the host like this, but with a filter of type URLRewrite"))
		}
		errs = append(errs, checkQuoted(path, name)...)
	}
	for _, list := range []struct {
		name    string
		headers []gateway.HTTPHeader
	}{{"set", h.Set}, {"add", h.Add}} {
		for i, header := range list.headers {
			at := path.Child(list.name).Index(i)
			checkName(at.Child("name"), string(header.Name))
			if !valid(header.Value) || hasOperator(header.Value) {
				errs = append(errs, field.Invalid(at.Child("value"), text.Value(header.Value), message+", and each '%' twice: it begins a format operator in Envoy"))
			}
		}
	}
	for i, name := range h.Remove {
		checkName(path.Child("remove").Index(i), name)
	}
	return errs
}

// blanksInside tells whether a value of a header has printable characters, and blanks only between them.
func blanksInside(value string) bool {
	return value != "" && strings.Trim(value, " \t") == value && strings.IndexFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r > '~' }) < 0
}

// hasOperator tells whether Envoy finds a format operator in the value of a header.
func hasOperator(value string) bool {
	return strings.Contains(strings.ReplaceAll(value, "%%", ""), "%")
}
