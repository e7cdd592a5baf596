package observe

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fusioninfer/function-inferenceservice/internal/loader"
)

// loadedSoFar is what the containers of loading pods have said last.
type loadedSoFar struct {
	// done and total are KiB. The total is 0 if it is not known.
	done, total int64
	at          time.Time
	known       bool
}

// read reads what the containers of a pod have said when they ended.
func (l *loadedSoFar) read(p *pod) {
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		for _, t := range []*terminated{s.State.Terminated, s.LastState.Terminated} {
			if n, ok := loaded(t); ok && n.after(l) {
				*l = n
			}
		}
	}
}

// after compares by time, and then by anything that does not depend on the order of the pods.
func (l *loadedSoFar) after(other *loadedSoFar) bool {
	if !other.known || !l.at.Equal(other.at) {
		return !other.known || l.at.After(other.at)
	}
	return l.done > other.done || l.done == other.done && l.total > other.total
}

// loaded reads the last word of a container: how much is loaded in KiB, and how much there will be in bytes, if
// that is known. Anything else is no word of a loader.
func loaded(t *terminated) (loadedSoFar, bool) {
	if t == nil || len(t.Message) > 64 {
		return loadedSoFar{}, false
	}
	words := strings.Fields(t.Message)
	if len(words) == 0 || len(words) > 2 {
		return loadedSoFar{}, false
	}
	numbers := [2]int64{}
	for i, w := range words {
		n, err := strconv.ParseInt(w, 10, 54)
		if err != nil || n < 0 {
			return loadedSoFar{}, false
		}
		numbers[i] = n
	}
	at, _ := time.Parse(time.RFC3339, t.FinishedAt) // Without a time it is before all others.
	return loadedSoFar{done: numbers[0], total: numbers[1] / 1024, at: at, known: true}, true
}

func (l *loadedSoFar) String() string {
	if !l.known {
		return ""
	}
	s := ", with " + kibibytes(l.done)
	if l.total > 0 {
		// Directories and temporary files count, too.
		s = ", with " + kibibytes(min(l.done, l.total)) + " of " + kibibytes(l.total)
	}
	if l.at.IsZero() {
		return s + " loaded so far"
	}
	return s + " loaded at " + l.at.UTC().Format(time.RFC3339)
}

// kibibytes writes KiB as people read them: 12.3Gi.
func kibibytes(kib int64) string {
	const step = 1024
	n, unit := float64(kib), "Ki"
	for _, next := range []string{"Mi", "Gi", "Ti"} {
		if n < step {
			break
		}
		n, unit = n/step, next
	}
	return strconv.FormatFloat(math.Round(n*10)/10, 'f', -1, 64) + unit
}

// saysProgress tells that a container of a loader ends only to say how much is loaded. The kubelet starts it again,
// with its back-off.
func (c containerStatus) saysProgress() bool {
	w := c.State.Waiting
	return c.Name == loader.ProgressName && (w == nil || w.Reason == crashLoop)
}
