package launch

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestExpandCommand(t *testing.T) {
	long := strings.Repeat("x", maxName)
	cases := map[string]struct {
		reason string
		env    []corev1.EnvVar
		word   string
		want   string
	}{
		"Value":   {reason: "A value is known.", env: []corev1.EnvVar{{Name: "A", Value: "chat"}}, word: "--name=$(A)", want: "--name=chat"},
		"Chained": {reason: "A value may have earlier ones.", env: []corev1.EnvVar{{Name: "A", Value: "a"}, {Name: "B", Value: "$(A)-b"}}, word: "$(B)", want: "a-b"},
		"Later":   {reason: "A later variable is not known to an earlier one.", env: []corev1.EnvVar{{Name: "B", Value: "$(A)"}, {Name: "A", Value: "a"}}, word: "$(B)", want: "$(A)"},
		"Twice":   {reason: "The last value of a name counts.", env: []corev1.EnvVar{{Name: "A", Value: "a"}, {Name: "A", Value: "b"}}, word: "$(A)", want: "b"},
		"Source":  {reason: "The value comes from an object in the cluster.", env: []corev1.EnvVar{{Name: "A", Value: "a"}, {Name: "A", ValueFrom: &corev1.EnvVarSource{}}}, word: "$(A)", want: "$(A)"},
		"Unset":   {reason: "The kubelet leaves what nobody sets.", word: "$(A) $A ${A} $(", want: "$(A) $A ${A} $("},
		"Escaped": {reason: "Two dollars are one.", env: []corev1.EnvVar{{Name: "A", Value: "a"}}, word: "$$(A) $$$(A)", want: "$(A) $a"},
		"Long":    {reason: "Values do not grow without bounds.", env: []corev1.EnvVar{{Name: "A", Value: long}, {Name: "B", Value: "$(A)$(A)"}}, word: "$(B)", want: "$(B)"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := Command{Command: []string{tc.want}, Args: []string{tc.want}}
			if diff := cmp.Diff(want, Parse(Command{Command: []string{tc.word}, Args: []string{tc.word}}).Expand(tc.env).join()); diff != "" {
				t.Errorf("%s\nExpand(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestExpandShortTexts compares with a regular expression what every short text becomes.
func TestExpandShortTexts(t *testing.T) {
	reference := regexp.MustCompile(`\$\$|\$\([^)]*\)`)
	values := map[string]string{"A": "<$$(A)>", "": "<none>", "$": "<dollar>", "AA": ""}
	texts := []string{""}
	for from := 0; len(texts[from]) < 7; from++ {
		for _, c := range []string{"$", "(", ")", "A", "\xff"} {
			texts = append(texts, texts[from]+c)
		}
	}
	for _, text := range texts {
		want := reference.ReplaceAllStringFunc(text, func(r string) string {
			if r == "$$" {
				return "$"
			}
			if v, known := values[r[2:len(r)-1]]; known {
				return v
			}
			return r
		})
		if got := expandIn(text, values); got != want {
			t.Errorf("%q: want %q, got %q", text, want, got)
		}
	}
}

// TestPortOfVariable shows which variables say the port of an engine.
func TestPortOfVariable(t *testing.T) {
	env := []corev1.EnvVar{{Name: "PORT", Value: "9000"}, {Name: "FROM", ValueFrom: &corev1.EnvVarSource{}}, {Name: "EMPTY"}}
	cases := map[string]struct {
		reason  string
		command Command
		more    bool
		want    int32
	}{
		"Number":      {"It needs no variable.", sh("exec vllm serve M --port 8001"), false, 8001},
		"Kubernetes":  {"The kubelet expands it.", Command{Args: []string{"M", "--port=$(PORT)"}}, true, 9000},
		"Shell":       {"The shell does.", sh("exec vllm serve M --port $PORT"), true, 9000},
		"Braces":      {"Also in braces.", sh("exec vllm serve M --port=${PORT}"), true, 9000},
		"Default":     {"There is no such variable.", sh("exec vllm serve M --port ${OTHER:-8123}"), false, 8123},
		"DefaultOfNo": {"It is empty.", sh("exec vllm serve M --port ${EMPTY:-8123}"), true, 8123},
		"More":        {"The variable may be among the others.", sh("exec vllm serve M --port ${OTHER:-8123}"), true, 0},
		"Object":      {"Only the cluster has its value.", sh("exec vllm serve M --port $FROM"), false, 0},
		"Set":         {"The script sets it.", sh("PORT=9001; exec vllm serve M --port $PORT"), false, 0},
		"NoShell":     {"Nobody expands it.", Command{Args: []string{"M", "--port=$PORT"}}, false, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Parse(tc.command).Expand(env).Port(env, tc.more); got != tc.want {
				t.Errorf("%s\nwant %d, got %d", tc.reason, tc.want, got)
			}
		})
	}
}
