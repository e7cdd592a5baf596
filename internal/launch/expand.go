package launch

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Expand returns the command as the kubelet expands it. A reference to a variable whose value is known only in
// the cluster, or is longer than any model's name, stays as it is.
func (l Line) Expand(env []corev1.EnvVar) Line {
	values := map[string]string{}
	for _, e := range env {
		// References to earlier variables could make the value of each twice as long as that of the one before.
		delete(values, e.Name)
		if e.ValueFrom != nil || len(e.Value) > maxName {
			continue
		}
		if v := expandIn(e.Value, values); len(v) <= maxName {
			values[e.Name] = v
		}
	}
	expanded := make([]string, len(l.argv))
	for i, w := range l.argv {
		expanded[i] = expandIn(w, values)
	}
	if slices.Equal(expanded, l.argv) {
		return l // Its script may have been scanned already.
	}
	return Parse(Command{Command: expanded[:l.command], Args: expanded[l.command:]})
}

// expandIn replaces the references $(NAME) in a text by values, and $$ by $
// (third_party/forked/golang/expansion/expand.go of Kubernetes). It takes linear time.
func expandIn(s string, values map[string]string) string {
	expanded := &strings.Builder{}
	for {
		at := strings.IndexByte(s, '$')
		if at < 0 || at+1 == len(s) {
			expanded.WriteString(s)
			return expanded.String()
		}
		expanded.WriteString(s[:at])
		end := at + 2
		switch s[at+1] {
		case '$':
			expanded.WriteByte('$')
		case '(':
			length := strings.IndexByte(s[end:], ')')
			if length < 0 {
				// No later reference has an end either.
				expanded.WriteString(strings.ReplaceAll(s[at:], "$$", "$"))
				return expanded.String()
			}
			end += length + 1
			if v, known := values[s[at+2:end-1]]; known {
				expanded.WriteString(v)
			} else {
				expanded.WriteString(s[at:end])
			}
		default:
			expanded.WriteString(s[at:end])
		}
		s = s[end:]
	}
}

// shellVariable is a variable as a shell expands it, with a number as its default.
var shellVariable = regexp.MustCompile(`^\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?::-(\d+))?\})$`)

// Port returns the port that an expanded command tells its engine to listen on, also by a variable of its container. It is 0 if there is none, or
// if it is not known: more tells that the container has variables besides env, and a script may set its own.
func (l Line) Port(env []corev1.EnvVar, more bool) int32 {
	if port := l.port(); port != 0 {
		return port
	}
	m := shellVariable.FindStringSubmatch(valueOf(l.words(), "--port"))
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
