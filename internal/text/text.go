// Package text formats text for errors, conditions and messages: within a limit, on one line,
// without duplicates.
package text

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// MaxMessage is the limit of a condition's message, in bytes.
	MaxMessage = 1 << 10
	// MaxProblems is the limit of the problems of a spec, in bytes. It suffices for all
	// problems of a spec that was written by hand.
	MaxProblems = 8 << 10
	// maxValue is how many bytes of a value an error repeats, so that the value does not hide
	// the problem.
	maxValue = 80
	// maxLine is how many bytes of another controller's message are repeated.
	maxLine = 256
)

// controlPlane is the cluster of an XR, where people read it.
const controlPlane = "the control plane's cluster"

// Cluster returns the name of a cluster for people. The cluster of the XR has none in a placement.
func Cluster(name string) string { return cmp.Or(name, controlPlane) }

// InCluster puts the name of a cluster before a text, unless it is the cluster of the XR.
func InCluster(name, text string) string {
	if name == "" {
		return text
	}
	return "cluster " + name + ": " + text
}

// List joins items for the message of a condition, without duplicates.
func List(items []string) string { return Join(items, MaxMessage) }

// Errors joins problems without duplicates. It counts those that exceed the limit.
func Errors(errs field.ErrorList) string {
	all := make([]string, 0, len(errs))
	for _, e := range errs {
		all = append(all, e.Error())
	}
	return Join(all, MaxProblems)
}

// Join joins items without duplicates, to about limit bytes. It counts those that exceed the
// limit.
func Join(items []string, limit int) string {
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
		b.WriteString(Cut(i, limit))
	}
	return b.String()
}

// OneLine puts another controller's message on one line, and truncates it.
func OneLine(s string) string { return Cut(strings.Join(strings.Fields(s), " "), maxLine) }

// changing is what network errors have that is another with each attempt: the port that a connection came from, and the time.
var changing = regexp.MustCompile(`\S+:\d+->|(current time )\S+ `)

// Steady leaves out of an error what is another with each attempt, so that a condition with it stays as it is. Crossplane
// changes lastTransitionTime whenever a message changes.
func Steady(s string) string { return changing.ReplaceAllString(s, "$1") }

// Cut truncates text to a number of bytes, and adds "..." to what it truncates. The result is valid UTF-8.
func Cut(s string, limit int) string {
	if len(s) > limit {
		s = s[:limit] + "..."
	}
	return strings.ToValidUTF8(s, "")
}

// Value truncates a value for an error to maxValue bytes.
func Value(s string) string { return Cut(s, maxValue) }

// Names lists the first names, and counts the others.
func Names(names []string, limit int) string {
	if len(names) <= limit {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:limit], ", "), len(names)-limit)
}

// WithReason adds a reason to a text, if there is one.
func WithReason(text, reason string) string {
	if reason == "" {
		return text
	}
	return text + ": " + reason
}
