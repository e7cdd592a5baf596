package plan

import (
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
//
// Requests reach decode by prefill, and the other way round. So while many of the one start, the other has less load than it will have.
func (p *Plan) pauseScaleIn(running *RunningView) {
	replicas := map[*Role][]*Replica{}
	for c, r := range p.Replicas() {
		if !r.Extra && !c.Leaving {
			replicas[r.Role] = append(replicas[r.Role], r)
		}
	}
	for _, r := range p.Roles {
		a, scale := r.Autoscaler, p.Scales[r.Name]
		if a == nil || scale == nil || r.scaling.Target == nil || scale.Requested <= max(1, a.Min) {
			continue // A role at its minimum loses none, and may go to 0.
		}
		for _, of := range p.Roles {
			wait := settles
			switch {
			case of == r:
				wait = settling(r.scaling.Target)
			case !p.InPair(of) || !p.InPair(r):
				continue
			}
			if until := p.manyStart(of, replicas[of], wait, running); !until.IsZero() {
				a.Starting = true
				p.decideAt(until)
			}
		}
	}
}

// manyStart returns until when one of the replicas of a role starts, if that is more than a few of them, or zero.
func (p *Plan) manyStart(r *Role, replicas []*Replica, settling time.Duration, running *RunningView) time.Time {
	starting, until := 0, time.Time{}
	for _, of := range replicas {
		if end := of.startsUntil(running.Replica(of.Key), r.startup, settling, running.Now); end.After(running.Now) {
			starting++
			until = sorting.Earlier(until, end)
		}
	}
	count := len(replicas)
	if scale := p.Scales[r.Name]; scale != nil {
		count = min(count, int(scale.Requested))
	}
	if starting*tolerated <= count {
		return time.Time{}
	}
	return until
}

// tolerated is what share of the replicas may start while others are removed: one of so many. A HorizontalPodAutoscaler minds no
// change of a tenth (--horizontal-pod-autoscaler-tolerance).
const tolerated = 10

// settles is how long a replica that serves counts as one that starts: until Prometheus has read all of those that are back, and
// the HorizontalPodAutoscaler has such a result.
const settles = maxInterval + time.Minute

// settling is how long that is for a target. One that is measured in a window knows the load once the replicas have served for all of it.
func settling(t *v1alpha1.ScalingTarget) time.Duration {
	if t.TokensPerSecond != nil || t.TimeToFirstTokenMilliseconds != nil {
		return covered + settles
	}
	return settles
}

// startsUntil is until when a replica that exists counts as one that starts. What has not served for longer than it may take to
// start does not: it may fail for ever. Crashes do not matter, because all replicas may have crashed together.
func (r *Replica) startsUntil(state rollout.State, startup, settling time.Duration, now time.Time) time.Time {
	switch released := !r.Held && !r.Updated; {
	case state.Since.IsZero():
		return time.Time{}
	case state.Serving && !released:
		return state.Since.Add(settling)
	case state.Broken:
		return state.Since.Add(startup)
	}
	return now.Add(settles) // It gets other pods by this response, or its controller has not said anything of them.
}

// keepHeld has no autoscaler remove certain replicas that keep a former template: those below the partition of the rollout, and all of
// them while it is paused, or while a replica does not get ready with the newest template. Whatever is added later gets the newest one. So
// a role that goes to 0 by night would come back with a template that nobody has released, or that does not start.
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
			a.Floor = min(a.Max, max(a.Floor, r.Index+1))
		}
	}
}
