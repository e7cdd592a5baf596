package plan

import (
	"strings"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// hostnames are the host names that the platform team allows for a service.
type hostnames struct {
	// fallback is the host name for routes that name none. It may be empty.
	fallback string
	// patterns of allowed names. The fallback is one of them. Without patterns the platform
	// team has assigned no host names.
	patterns []string
}

func hostnamesOf(r *inputv1alpha1.Routes, s naming.Identity) hostnames {
	expand := placeholders(s)
	h := hostnames{fallback: expand.Replace(r.DefaultHostname)}
	if h.fallback != "" {
		h.patterns = append(h.patterns, h.fallback)
	}
	for _, p := range r.AllowedHostnames {
		h.patterns = append(h.patterns, expand.Replace(p))
	}
	return h
}

// placeholders replaces those of names by what they stand for in a service.
func placeholders(s naming.Identity) *strings.Replacer {
	return strings.NewReplacer(inputv1alpha1.PlaceholderService, s.Name, inputv1alpha1.PlaceholderNamespace, s.Namespace)
}

// restricted tells whether the platform team has assigned host names.
func (h hostnames) restricted() bool { return len(h.patterns) > 0 }

// allow tells whether a route may use a host name. The name of a route without host names is
// anyName.
func (h hostnames) allow(name string) bool {
	for _, p := range h.patterns {
		if hostnameMatches(p, name) {
			return true
		}
	}
	return false
}

// firstPatterns formats the first patterns for an error message.
func firstPatterns(patterns []string) string {
	const shown = 8
	return text.Names(patterns, shown)
}

// anyName matches every name.
const anyName = "*"

// hostnameMatches tells whether a pattern matches a name, or every name that another pattern
// matches. As in the Gateway API, a '*' as the first label stands for one or more labels:
// *.example.com matches a.b.example.com and not example.com.
func hostnameMatches(pattern, name string) bool {
	if pattern == anyName || pattern == name {
		return true
	}
	suffix, wild := strings.CutPrefix(pattern, "*")
	return wild && strings.HasSuffix(name, suffix) && len(name) > len(suffix)
}
