package plan

import (
	"regexp"
	"strings"
)

/*
LeaderWorkerSet deletes the pods of a replica as soon as one of its containers has been started again, and
makes new ones. So why a replica crashes is in its pods for a moment only, and in a crash loop a service
would fail and start by turns. Each LeaderWorkerSet therefore has a note of why its pods crashed last. The
note goes once the replica serves, or gets another template.

Nothing but the status goes by the note. Whoever can write it can make a service look as if it had failed,
in the words that a failure may have, and not more.
*/

// A Failure says why pods of a replica crashed. The zero value means that they have not.
type Failure struct {
	// Revision of the template that the pods were made from.
	Revision string
	// Text names the pod, the container and the reason. It has no time and no UID, so that it is the same
	// for each crash.
	Text string
}

// Note returns the failure as a note. ParseFailure reads it.
func (f Failure) Note() string {
	if f == (Failure{}) {
		return ""
	}
	return f.Revision + " " + f.Text
}

// A note is a revision, which may end with bothSuffix, and the text of a container that ended (internal/service/observe/pods.go).
var failureNote = regexp.MustCompile(`^[a-z0-9]{1,63}(?:` + bothSuffix + `)? pod [a-z0-9.-]{1,253}: container [a-z0-9-]{1,63}: [A-Za-z]{1,64} \(exit code -?[0-9]{1,10}\)$`)

// ParseFailure returns the zero value for what is no note of a failure.
func ParseFailure(note string) Failure {
	if !failureNote.MatchString(note) {
		return Failure{}
	}
	revision, text, _ := strings.Cut(note, " ")
	return Failure{revision, text}
}

// remember decides what each replica notes of its crashes. A note stays while the same pod gives the same
// reason, or none. Other pods of the replica that crash with it change nothing, so a crash loop writes
// the note once.
func (p *Plan) remember(running *RunningView) {
	if running.Crashes == nil {
		return
	}
	for c, r := range p.Replicas() {
		state, newest := running.Replica(r.Key), running.Revision[r.Role.Name]
		if !state.Exists || state.Serving || c.LocalQueue != "" && !running.Admitted(c.WorkloadKey(r)) {
			continue
		}
		// The pods of a held replica have a former revision.
		noted := running.LastFailure(r.Key)
		if noted.Revision == newest || r.Held {
			r.LastFailure = noted
		}
		pod, _, _ := strings.Cut(r.LastFailure.Text, ": ")
		for _, f := range running.Crashes(c, r) {
			of, _, _ := strings.Cut(f.Text, ": ")
			if f = ParseFailure(f.Note()); (f.Revision == newest || r.Held) && (r.LastFailure == Failure{} || of == pod) {
				r.LastFailure = f
				break
			}
		}
	}
}
