package launch

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// reference is a reference to a variable as the kubelet expands it, or the escape of one
// (third_party/forked/golang/expansion/expand.go of Kubernetes).
var reference = regexp.MustCompile(`\$\$|\$\([^)]*\)`)

// Expand returns a command as the kubelet expands it. A reference to a variable whose value is known only in
// the cluster, or is longer than any model's name, stays as it is.
func Expand(c Command, env []corev1.EnvVar) Command {
	values := map[string]string{}
	expand := func(s string) string {
		return reference.ReplaceAllStringFunc(s, func(r string) string {
			if r == "$$" {
				return "$"
			}
			if v, known := values[r[2:len(r)-1]]; known {
				return v
			}
			return r
		})
	}
	for _, e := range env {
		// References to earlier variables could make the value of each twice as long as that of the one before.
		delete(values, e.Name)
		if e.ValueFrom != nil || len(e.Value) > maxName {
			continue
		}
		if v := expand(e.Value); len(v) <= maxName {
			values[e.Name] = v
		}
	}
	all := func(words []string) []string {
		expanded := make([]string, len(words))
		for i, w := range words {
			expanded[i] = expand(w)
		}
		return expanded
	}
	return Command{Command: all(c.Command), Args: all(c.Args)}
}

// shellVariable is a variable as a shell expands it, with a number as its default.
var shellVariable = regexp.MustCompile(`^\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?::-(\d+))?\})$`)

// PortOf returns the port that a command tells its engine to listen on, also by a variable of its container. It is 0 if there is none, or if it
// is not known: more tells that the container has variables besides env, and a script may set its own.
func PortOf(c Command, env []corev1.EnvVar, more bool) int32 {
	c = Expand(c, env)
	if port := Port(c); port != 0 {
		return port
	}
	l := parse(c)
	m := shellVariable.FindStringSubmatch(value(l.words(), "--port"))
	if l.script == 0 || m == nil || strings.Contains(l.argv[l.script], m[1]+m[2]+"=") {
		return 0
	}
	at := slices.IndexFunc(env, func(e corev1.EnvVar) bool { return e.Name == m[1]+m[2] })
	switch {
	case at < 0 && more, at >= 0 && env[at].ValueFrom != nil:
		return 0
	case at < 0:
		return portIn(m[3])
	}
	return portIn(cmp.Or(env[at].Value, m[3]))
}
