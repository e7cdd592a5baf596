package plan

import (
	"slices"
	"time"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/rollout"
	"github.com/fusioninfer/function-inferenceservice/internal/sorting"
)

// pauseScaleIn has the autoscaler of a target remove no replicas while some start. An engine that starts has no metrics, so it
// counts as one without load. By its window, the HorizontalPodAutoscaler goes by former results only for as long as it has any:
// without a result it notes nothing (pkg/controller/podautoscaler/horizontal.go of Kubernetes v1.36). So after all engines have
// restarted for longer, the first one that is back would have it remove the others.
//
// A few replicas that start beside many others change a sum by less than the HorizontalPodAutoscaler minds. In a large role, some
// replica may start at any time.
func (p *Plan) pauseScaleIn(running *Running) {
	count, starting, until := map[*Role]int32{}, map[*Role]int32{}, map[*Role]time.Time{}
	for c, r := range p.Replicas() {
		if !r.Extra && !c.Leaving {
			count[r.Role]++
		}
		a, scale := r.Role.Autoscaler, p.Scales[r.Role.Name]
		if a == nil || scale == nil || r.Role.scaling.Target == nil || r.Extra || c.Leaving || scale.Requested <= max(1, a.Min) {
			continue // A role at its minimum loses none, and may go to 0.
		}
		at := slices.IndexFunc(p.spec.Roles, func(s v1alpha1.Role) bool { return s.Name == r.Role.Name })
		startup, _, _ := p.spec.Roles[at].LifecycleOf()
		end := r.startsUntil(running.Replica(r.Key), time.Duration(startup)*time.Second, running.Now)
		if !end.After(running.Now) {
			continue
		}
		starting[r.Role]++
		until[r.Role] = sorting.Earlier(until[r.Role], end)
	}
	for r, n := range starting {
		if n*tolerated > min(p.Scales[r.Name].Requested, count[r]) {
			r.Autoscaler.Starting = true
			p.decideAt(until[r])
		}
	}
}

// tolerated is what share of the replicas may start while others are removed: one of so many. A HorizontalPodAutoscaler minds no
// change of a tenth (--horizontal-pod-autoscaler-tolerance).
const tolerated = 10

// settles is how long a replica that serves counts as one that starts: until Prometheus has read all of those that are back, and
// the HorizontalPodAutoscaler has such a result.
const settles = maxInterval + time.Minute

// startsUntil is until when a replica that exists counts as one that starts. What has not served for longer than it may take to
// start does not: it may fail for ever. Crashes do not matter, because all replicas may have crashed together.
func (r *Replica) startsUntil(state rollout.State, startup time.Duration, now time.Time) time.Time {
	switch released := !r.Held && !r.Updated; {
	case state.Since.IsZero():
		return time.Time{}
	case state.Serving && !released:
		return state.Since.Add(settles)
	case state.Broken:
		return state.Since.Add(startup)
	}
	return now.Add(settles) // It gets other pods by this response, or its controller has not said anything of them.
}

// keepHeld has no autoscaler remove replicas that keep a former template while the rollout is paused, or below its partition, or while
// a replica does not get ready with the newest one. Whatever is added later gets the newest template, so a role that goes to 0 by
// night would come back with a template that nobody has released, or that does not start.
//
// A rollout that waits for capacity of the fleet keeps nothing: what is removed may give it room. Whether a replica that exists waits for
// room or fails is not known from its LeaderWorkerSet, so both keep what serves.
func (p *Plan) keepHeld() {
	stuck := p.Rollout.Paused
	for c, r := range p.Replicas() {
		stuck = stuck || r.Updated && r.broken && !c.Leaving
	}
	for c, r := range p.Replicas() {
		if a := r.Role.Autoscaler; a != nil && r.Held && !r.Extra && !c.Leaving && (stuck || r.BelowPartition) {
			a.Kept = min(a.Max, max(a.Kept, r.Index+1))
		}
	}
}
