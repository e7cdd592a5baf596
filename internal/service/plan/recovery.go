package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/sorting"
)

/*
A replica of a role with the policy InferGroupRestart has failed if LeaderWorkerSet made its leader
pod anew after it had served, from the same template. LeaderWorkerSet does so whenever a container
of the replica restarts, or a pod of it is deleted. The rest of the group is then recreated, too.

Nothing here goes by when that is noticed. Each LeaderWorkerSet has a note (Recovery): how many
failures of its group it knows of, and its own leader pod. A failure is one more than the failed
replica knows of. So the same observation gives the same number, however often it is seen, and
wherever an apply stopped half way. A replica that knows of fewer failures than another one of its
group is recreated. The failed replica has new pods already. Its note forgets the former leader with
the same apply, and has no leader until it serves again. So a replica that never serves again does
not fail once more.
*/

// A Recovery is what a replica notes on its LeaderWorkerSet, to read it back.
type Recovery struct {
	// Failures in its group that the replica knows of.
	Failures int64
	// Restart is the failure for which its pods were last recreated. It is on the pods, too, so that
	// LeaderWorkerSet replaces them when it changes.
	Restart int64
	// Leader is the pod with which the replica served last. The zero value means that the replica
	// cannot fail, because it has not served since its pods were changed.
	Leader LeaderID
}

// A LeaderID identifies the leader pod of a replica.
type LeaderID struct {
	// Revision of the template, by LeaderWorkerSet.
	Revision string
	// UID of the pod.
	UID string
}

// Text is the ID as it is noted. The zero value is empty.
func (l LeaderID) Text() string {
	if l == (LeaderID{}) {
		return ""
	}
	return l.Revision + "/" + l.UID
}

// ParseLeaderID returns the ID of a text. A text that is none is the zero value.
func ParseLeaderID(text string) LeaderID {
	revision, uid, is := strings.Cut(text, "/")
	if !is {
		return LeaderID{}
	}
	return LeaderID{revision, uid}
}

// A Leader is a leader pod that is not being deleted.
type Leader struct {
	LeaderID

	// Created is when it was made.
	Created time.Time
	// Ready tells that it is ready.
	Ready bool
}

// WatchesLeaders tells whether it matters which leader pods there are.
func (p *Plan) WatchesLeaders() bool {
	return slices.ContainsFunc(p.Roles, func(r *Role) bool { return r.Recovery == v1alpha1.RecoverGroup })
}

// recover decides which replicas are recreated because another one of their group has failed. Of
// other clusters not all pods are read.
func (p *Plan) recover(running *RunningView) {
	for i := range p.Clusters {
		c := &p.Clusters[i]
		if c.Target.Remote() {
			continue
		}
		for j := range c.Groups {
			p.recoverGroup(c.Groups[j].Replicas, running)
		}
	}
}

func (p *Plan) recoverGroup(replicas []Replica, running *RunningView) {
	watched, failures, failed := p.WatchesLeaders(), int64(0), make([]bool, len(replicas))
	for i := range replicas {
		r := &replicas[i]
		r.Recovery = running.Recovery(r.Key)
		known := r.Recovery.Failures
		if failed[i] = watched && len(replicas) > 1 && p.failed(r, running); failed[i] {
			p.Failed = append(p.Failed, r.Name)
			known++
		}
		failures = max(failures, known)
	}
	for i := range replicas {
		r := &replicas[i]
		if watched {
			r.recover(failures, failed[i], running)
			continue
		}
		// Without the policy nothing is recreated, and the pods keep what they have.
		r.Recovery = Recovery{Failures: failures, Restart: r.Recovery.Restart}
	}
}

// recover decides on one replica, by the failures in its group. One that has failed itself has new
// pods already. Held replicas keep their pods, and released ones get others anyway.
func (r *Replica) recover(failures int64, failed bool, running *RunningView) {
	state, note := running.Replica(r.Key), &r.Recovery
	known := note.Failures
	note.Failures = failures
	updated := state.Exists && state.Updated(running.Revision[r.Role.Name])
	switch leader, seen := running.Leader(r); {
	case !updated, failed, r.Role.Recovery != v1alpha1.RecoverGroup && known == failures:
		note.Leader = LeaderID{}
	case known < failures:
		note.Leader = LeaderID{}
		note.Restart, r.Recreated = failures, true
	case seen && leader.Ready && state.Serving:
		note.Leader = leader.LeaderID
	}
}

// forgetLeaders forgets the leaders in clusters where not all pods are read. Once they are read again, another pod may
// lead a replica that has not failed.
func (p *Plan) forgetLeaders() {
	for i := range p.Clusters {
		c := &p.Clusters[i]
		if p.ReadsPods(c) {
			continue
		}
		for r := range c.Replicas() {
			r.Recovery.Leader = LeaderID{}
		}
	}
}

// failed tells whether a replica has failed, and does not serve again within its grace period. A
// leader pod of another revision was made for an update.
func (p *Plan) failed(r *Replica, running *RunningView) bool {
	noted, state := r.Recovery.Leader, running.Replica(r.Key)
	leader, seen := running.Leader(r)
	switch {
	case r.Role.Recovery != v1alpha1.RecoverGroup, noted == LeaderID{}, !seen, !state.Updated(running.Revision[r.Role.Name]):
		return false
	case leader.Revision != noted.Revision, leader.UID == noted.UID:
		return false
	case r.Role.RestartGrace == 0:
		return true
	case leader.Ready && state.Serving:
		return false
	}
	due := leader.Created.Add(r.Role.RestartGrace)
	if !due.After(running.Now) {
		return true
	}
	p.decideAt(due)
	return false
}

// decideAt has the function called again at a time, or before. The zero time is none.
func (p *Plan) decideAt(due time.Time) { p.Due = sorting.Earlier(p.Due, due) }

// warnOfRecovery warns where the failure of a replica cannot be told from its pods, because not all of
// them are read.
func (p *Plan) warnOfRecovery() {
	why, elsewhere := "", p.inFleet
	for i := range p.Clusters {
		switch n := p.Clusters[i].Pods(); {
		case p.Clusters[i].Target.Remote():
			elsewhere = true
		case n > p.PodLimit:
			why = fmt.Sprintf("with %d pods, because of more than %d not all are read", n, p.PodLimit)
		}
	}
	if elsewhere {
		why = "in other clusters, where not all pods are read"
	}
	for _, r := range p.Roles {
		if r.Recovery == v1alpha1.RecoverGroup && why != "" {
			p.warn(r.path.Child("recoveryPolicy"), "works like RoleRestart %s: a replica that fails is made anew alone", why)
		}
	}
}
