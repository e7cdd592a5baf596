package plan

import (
	"strings"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/rollout"
)

// types of roles.
type types map[v1alpha1.ComponentType]bool

// Versions are the types of some replicas, by the revision that they run.
type Versions map[string]types

// addIf adds a replica, if it is one of them.
func (v Versions) addIf(r *Replica, s rollout.State, is bool) {
	if is {
		v.Add(r.Role.Type, s.RunningRevision)
	}
}

// Add adds a replica of a type that runs a revision.
func (v Versions) Add(t v1alpha1.ComponentType, revision string) {
	if v[revision] == nil {
		v[revision] = types{}
	}
	v[revision][t] = true
}

// some tells whether any version satisfies the predicate.
func (v Versions) some(are func(version string, t types) bool) bool {
	for version, t := range v {
		if are(version, t) {
			return true
		}
	}
	return false
}

// every tells whether there are versions, and each satisfies the predicate.
func (v Versions) every(are func(version string, t types) bool) bool {
	return len(v) > 0 && !v.some(func(version string, t types) bool { return !are(version, t) })
}

// bothSuffix ends the revisions of which decode answers no request without prefill. So a former revision tells it, too,
// whatever the roles are today.
const bothSuffix = "-both"

// PairRevision is the revision of prefill and decode whose pods have a hash.
func (p *Plan) PairRevision(hash string) string {
	if needEachOther(p.Roles) {
		return hash + bothSuffix
	}
	return hash
}

// answersAlone tells whether decode of a revision is known to answer requests without prefill.
func answersAlone(revision string) bool {
	return revision != "" && !strings.HasSuffix(revision, bothSuffix)
}

// answers tells whether a version can answer whole requests: a worker, decode with prefill, or either alone where the engine
// allows it.
func answers(version string, t types) bool {
	return t[v1alpha1.ComponentTypeWorker] || t[v1alpha1.ComponentTypeDecoder] && t[v1alpha1.ComponentTypePrefiller] || answersAlone(version)
}

// Any tells whether some version can answer whole requests.
func (v Versions) Any() bool { return v.some(answers) }

// All tells whether there are versions, and each can answer whole requests.
func (v Versions) All() bool { return v.every(answers) }

// alone tells whether each replica of a version answers whole requests by itself.
func alone(version string, t types) bool {
	return t[v1alpha1.ComponentTypeWorker] || answersAlone(version)
}

// Whole tells whether some replica answers whole requests by itself.
func (v Versions) Whole() bool { return v.some(alone) }

// AllWhole tells whether there are versions, and each replica answers whole requests by itself.
func (v Versions) AllWhole() bool { return v.every(alone) }

// Pairs tells whether some version has prefill and decode that are known to need each other.
func (v Versions) Pairs() bool {
	return v.some(func(version string, t types) bool {
		return strings.HasSuffix(version, bothSuffix) && t[v1alpha1.ComponentTypeDecoder] && t[v1alpha1.ComponentTypePrefiller]
	})
}

// Picked tells whether some of them answer requests of an endpoint picker that picks prefill and decode apart. needsBoth tells
// that it wants prefill and decode of each version.
func (v Versions) Picked(needsBoth bool) bool {
	return v.some(func(version string, t types) bool {
		alone := !needsBoth && answersAlone(version)
		return t[v1alpha1.ComponentTypeWorker] || t[v1alpha1.ComponentTypeDecoder] && (t[v1alpha1.ComponentTypePrefiller] || alone)
	})
}
