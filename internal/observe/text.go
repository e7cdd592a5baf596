package observe

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// maxList keeps a condition's message readable.
	maxList = 1 << 10
	// maxErrors has room for all problems of a spec that was written by hand.
	maxErrors = 8 << 10
	// maxSaid is what is repeated of another controller's message.
	maxSaid = 256
)

// Join puts items into the message of a condition, each once.
func Join(items []string) string { return join(items, maxList) }

// JoinErrors puts problems into one text, each once, and counts those that do not fit.
func JoinErrors(errs field.ErrorList) string {
	all := make([]string, 0, len(errs))
	for _, e := range errs {
		all = append(all, e.Error())
	}
	return join(all, maxErrors)
}

// join puts items into one text of about limit bytes at most, each once. What does not fit is counted.
func join(items []string, limit int) string {
	var b strings.Builder
	known := make(map[string]bool, len(items))
	distinct := make([]string, 0, len(items))
	for _, i := range items {
		if !known[i] {
			known[i] = true
			distinct = append(distinct, i)
		}
	}
	for n, i := range distinct {
		if n > 0 {
			if b.Len()+len(i) > limit {
				fmt.Fprintf(&b, "; and %d more", len(distinct)-n)
				break
			}
			b.WriteString("; ")
		}
		b.WriteString(cut(i, limit))
	}
	return b.String()
}

// oneLine makes another controller's words fit into a sentence.
func oneLine(s string) string { return cut(strings.Join(strings.Fields(s), " "), maxSaid) }

func cut(s string, limit int) string {
	if len(s) > limit {
		s = s[:limit] + "..."
	}
	return strings.ToValidUTF8(s, "")
}
