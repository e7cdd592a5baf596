package launch

import (
	"regexp"

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
