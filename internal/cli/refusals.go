package cli

import (
	"fmt"
	"strings"
)

// refusals are why the function refuses XRs, by their identities.
func (s *simulation) refusals() map[identity]string {
	all := map[identity]string{}
	for id, p := range s.xrs {
		if p.refused != "" {
			all[id] = p.refused
		}
	}
	return all
}

// alike are XRs of one kind that the function refuses for the same reason: a mistake in the Input refuses every service.
type alike struct {
	kind  string
	names []string
	why   string
}

// refusedAlike returns those of some XRs that are refused. Each reason is there once for a kind.
func refusedAlike(refused map[identity]string, ids []identity) []*alike {
	type reason struct{ kind, why string }
	var all []*alike
	of := map[reason]*alike{}
	for _, id := range ids {
		why := refused[id]
		if why == "" {
			continue
		}
		r := reason{id.kind, why}
		if of[r] == nil {
			of[r] = &alike{kind: id.kind, why: why}
			all = append(all, of[r])
		}
		of[r].names = append(of[r].names, id.nice())
	}
	return all
}

// subject names some of them.
func (a *alike) subject() string { return a.kind + a.number("", "s") + " " + some(a.names) }

// number returns a text for one of them, or for several.
func (a *alike) number(one, several string) string {
	if len(a.names) == 1 {
		return one
	}
	return several
}

// err says that they are refused, with each problem on a line.
func (a *alike) err() error {
	return fmt.Errorf("%s %s refused: %s", a.subject(), a.number("is", "are"), strings.Join(problems(a.why), "\n  "))
}
