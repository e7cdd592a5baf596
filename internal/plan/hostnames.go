package plan

import (
	"strings"

	"github.com/fusioninfer/function-inferenceservice/input/v1beta1"
)

// hostnames are the host names that a service may have.
type hostnames struct {
	// fallback of routes that name none, or nothing.
	fallback string
	// patterns, of which the fallback is one. Without any, nobody has said which names are
	// whose.
	patterns []string
}

func hostnamesOf(r *v1beta1.Routes, s Service) hostnames {
	expand := strings.NewReplacer(v1beta1.PlaceholderService, s.Name, v1beta1.PlaceholderNamespace, s.Namespace)
	h := hostnames{fallback: expand.Replace(r.DefaultHostname)}
	if h.fallback != "" {
		h.patterns = append(h.patterns, h.fallback)
	}
	for _, p := range r.AllowedHostnames {
		h.patterns = append(h.patterns, expand.Replace(p))
	}
	return h
}

// restricted tells whether anybody has said which names are whose.
func (h hostnames) restricted() bool { return len(h.patterns) > 0 }

// allow tells whether a route may have a name. A route without names has anyName.
func (h hostnames) allow(name string) bool {
	for _, p := range h.patterns {
		if hostnameMatches(p, name) {
			return true
		}
	}
	return false
}

// list is for people.
func (h hostnames) list() string {
	const most = 8
	if len(h.patterns) > most {
		return strings.Join(h.patterns[:most], ", ") + ", ..."
	}
	return strings.Join(h.patterns, ", ")
}

// anyName stands for every name.
const anyName = "*"

// hostnameMatches tells whether a pattern has every name that another one has. '*' as
// the first label stands for one or more labels, as in the Gateway API, where
// *.example.com has a.b.example.com and not example.com.
func hostnameMatches(pattern, name string) bool {
	if pattern == anyName || pattern == name {
		return true
	}
	suffix, wild := strings.CutPrefix(pattern, "*")
	return wild && strings.HasSuffix(name, suffix) && len(name) > len(suffix)
}
