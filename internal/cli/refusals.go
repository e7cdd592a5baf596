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

// A sharedRefusal is why the function refuses some XRs of one kind: a mistake in the Input refuses every service.
type sharedRefusal struct {
	kind  string
	names []string
	why   string
}

// sharedRefusals groups those of some XRs that are refused, by their kind and the reason.
func sharedRefusals(refused map[identity]string, ids []identity) []*sharedRefusal {
	type reason struct{ kind, why string }
	var all []*sharedRefusal
	of := map[reason]*sharedRefusal{}
	for _, id := range ids {
		why := refused[id]
		if why == "" {
			continue
		}
		r := reason{id.kind, why}
		if of[r] == nil {
			of[r] = &sharedRefusal{kind: id.kind, why: why}
			all = append(all, of[r])
		}
		of[r].names = append(of[r].names, id.nice())
	}
	return all
}

// subject names some of them.
func (a *sharedRefusal) subject() string { return a.kind + a.number("", "s") + " " + some(a.names) }

// number returns a text for one of them, or for several.
func (a *sharedRefusal) number(one, several string) string {
	if len(a.names) == 1 {
		return one
	}
	return several
}

// err says that they are refused, with each problem on a line.
func (a *sharedRefusal) err() error {
	return fmt.Errorf("%s %s refused: %s", a.subject(), a.number("is", "are"), strings.Join(problems(a.why), "\n  "))
}
