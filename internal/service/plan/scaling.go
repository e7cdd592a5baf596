package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

// A ScaleView is what is observed of a role's scale target and of its replicas.
type ScaleView struct {
	// Replicas that the InferenceRole asks for. Nil if there is none, or if it does not say.
	Replicas *int32
	// Untouched tells that this is the number that the service has written there.
	Untouched bool
	// Version is the resourceVersion of the InferenceRole.
	Version string
	// Running is the number of replicas that exist, without those that only a rollout runs.
	Running int32
	// Desired is the number that the role had last, by the status of the service. Nil if that is not known, and 0 only for a
	// role that sleeps.
	Desired *int32
	// Autoscaled tells that an autoscaler of the role exists.
	Autoscaled bool
}

// A Scale is how many replicas a role with scaling has.
type Scale struct {
	// Requested is the number that the scale target asks for, and Replicas the one that is run.
	Requested, Replicas int32
	// Reason why both differ. Empty if they do not.
	Reason string
	// Written is the number that the service writes on the InferenceRole, with a note of it. Nil leaves
	// it to whoever has set it.
	Written *int32
	// Version is the resourceVersion with which Written was read. Empty if there is no InferenceRole yet.
	Version string
	// Running is the number of replicas that exist.
	Running int32
	// Autoscales tells that an autoscaler may be there: the scale target has a number to start from. One
	// that exists stays, so that it does not go and come back where somebody deletes the target.
	Autoscales bool
}

// ScaleRoles decides how many replicas the roles with scaling have, by the names of the roles. It never
// takes what is not known for 0: a role without a number keeps what runs.
//
// The service has to write a number at first, because an object without one has no scale. Server-side
// apply removes what its only owner leaves out. So the number is written again as long as it is the one of
// the note, and only onto the version that it was read with. Whoever writes another number becomes its only
// owner. From then on the service writes neither, so it never takes back a number that somebody else has set.
func ScaleRoles(spec *v1alpha1.InferenceServiceSpec, views map[string]ScaleView) map[string]*Scale {
	all := map[string]*Scale{}
	for i := range spec.Roles {
		r := &spec.Roles[i]
		if r.Scaling == nil {
			continue
		}
		v := views[r.Name]
		s := &Scale{Running: v.Running, Autoscales: v.Replicas != nil || v.Autoscaled}
		switch {
		case v.Replicas != nil:
			s.Requested = *v.Replicas
		case v.Desired != nil:
			// The status may be older than what runs, which may serve. The HorizontalPodAutoscaler never scales a target of 0
			// (pkg/controller/podautoscaler/horizontal.go).
			s.Requested = max(*v.Desired, v.Running, r.Scaling.Min())
		case v.Running > 0:
			s.Requested = v.Running
		default:
			s.Requested = max(1, r.Scaling.Min())
		}
		if v.Replicas == nil || v.Untouched {
			// Nobody set this number, so clamp it to the limits without reporting a limit.
			s.Requested = min(max(s.Requested, r.Scaling.Min()), r.Scaling.Max())
			s.Written, s.Version = ptr.To(s.Requested), v.Version
		}
		s.Replicas = s.Requested
		if lowest := r.Scaling.Min(); s.Replicas < lowest {
			s.Replicas, s.Reason = lowest, v1alpha1.ScaledMinimum
		}
		if highest := r.Scaling.Max(); s.Replicas > highest {
			s.Replicas, s.Reason = highest, v1alpha1.ScaledMaximum
		}
		all[r.Name] = s
	}
	if ratio := spec.Ratio(); ratio != nil {
		balance(ratio, spec.Roles, all)
	}
	return all
}

// A balanced role is one side of a ratio.
type balanced struct {
	*Scale
	scaling *v1alpha1.RoleScaling
	share   int32
}

// asksNothing tells whether a role has a number that nobody has asked for, and has no autoscaler that could.
func (b *balanced) asksNothing() bool { return b.Written != nil && !b.scaling.Autoscales() }

// follows tells whether a role only goes by the other one of the pair. While nobody has scaled the other one either, both
// keep what they start with.
func (b *balanced) follows(other *balanced) bool { return b.asksNothing() && other.Written == nil }

// balance keeps the ratio of prefill and decode replicas. A role with more replicas than the other can follow gets
// fewer, and then each gets as many as the other asks for. A role that follows asks for no more than its share, and its
// InferenceRole gets the number that it has. Neither goes by what was asked before: who asks for the same, or for what balance
// gave, gets the same again. So an InferenceRole that is lost and comes back with either changes nothing, unless its role follows then.
func balance(ratio *v1alpha1.ReplicaRatio, roles []v1alpha1.Role, all map[string]*Scale) {
	prefiller, decoder := v1alpha1.RatioPair(roles)
	if prefiller == nil || decoder == nil || ptr.Deref(ratio.Prefill, 0) < 1 || ptr.Deref(ratio.Decode, 0) < 1 {
		return // Validation says so.
	}
	prefill, decode := &balanced{all[prefiller.Name], prefiller.Scaling, *ratio.Prefill}, &balanced{all[decoder.Name], decoder.Scaling, *ratio.Decode}
	tolerance := ptr.Deref(ratio.TolerancePercent, 0)
	mostP, mostD := mostBeside(prefill, decode, tolerance), mostBeside(decode, prefill, tolerance)
	p, d := min(prefill.asks(decode, mostD), mostP), min(decode.asks(prefill, mostP), mostD)
	for {
		moreP := max(p, min(leastBeside(d, decode, prefill, tolerance), mostP))
		moreD := max(d, min(leastBeside(moreP, prefill, decode, tolerance), mostD))
		if moreP == p && moreD == d {
			break
		}
		p, d = moreP, moreD
	}
	prefill.become(p, decode)
	decode.become(d, prefill)
}

// asks is the number of replicas for which a role itself asks. A role that follows asks for what it has, but for no more than
// the ratio gives it beside the other role. The other role counts with no more than most.
func (b *balanced) asks(other *balanced, most int32) int32 {
	if b.follows(other) {
		return max(b.scaling.Min(), min(b.Replicas, leastBeside(min(other.Replicas, most), other, b, 0)))
	}
	return b.Replicas
}

// become takes the number of replicas that the ratio gives. It does not change which role follows.
func (b *balanced) become(n int32, other *balanced) {
	if b.follows(other) {
		b.Requested, b.Replicas, b.Written = n, n, ptr.To(n)
		return
	}
	if n != b.Replicas {
		b.Replicas, b.Reason = n, v1alpha1.ScaledRatio
	}
	if b.Replicas == b.Requested {
		b.Reason = ""
	}
}

// leastBeside is the least number of replicas of one role that are enough for n of the other one.
func leastBeside(n int32, other, of *balanced, tolerance int32) int32 {
	return v1alpha1.LeastBeside(n, other.share, of.share, tolerance)
}

// mostBeside is the largest number of replicas of a role for which the other one can have enough. It is at least
// the role's own minimum, and never stops the role.
func mostBeside(of, other *balanced, tolerance int32) int32 {
	n := of.scaling.Max()
	for n > max(1, of.scaling.Min()) && leastBeside(n, of, other, tolerance) > other.scaling.Max() {
		n--
	}
	return n
}

// HasRatio tells whether the replicas of prefill and decode stay in proportion.
func (p *Plan) HasRatio() bool { return p.spec.Ratio() != nil }

// ScaledRoles are the roles with scaling, in the order of the spec.
func (p *Plan) ScaledRoles() []*Role {
	var all []*Role
	for _, r := range p.Roles {
		if p.Scales[r.Name] != nil {
			all = append(all, r)
		}
	}
	return all
}

// MostReplicas is the largest number of replicas that a role with scaling may have in all clusters, with those of a
// rollout. Replicate runs all of them in each cluster. What leaves a cluster is not among them.
func (p *Plan) MostReplicas(r *Role) int {
	copies := 1
	if p.policy() == v1alpha1.PlacementReplicate {
		copies = 0
		for i := range p.Clusters {
			if !p.Clusters[i].Leaving {
				copies++
			}
		}
		copies = max(1, copies)
	}
	return copies * int(r.Most()+p.mostExtraOf(r))
}

// RunningReplicas is the number of replicas of a role that run or wait for capacity or a name, and are not about to leave.
func (p *Plan) RunningReplicas(r *Role) int {
	n := 0
	for c, replica := range p.NamedReplicas() {
		if replica.Role == r && !c.Leaving {
			n++
		}
	}
	for i := range p.Clusters {
		for _, pending := range p.Clusters[i].Pending {
			if pending.Role == r {
				n++
			}
		}
	}
	return n
}

// scales tells whether any role has scaling.
func (p *Plan) scales() bool {
	return slices.ContainsFunc(p.Roles, func(r *Role) bool { return r.scaling != nil })
}

// warnOfScaling warns of a gang that starts only as a whole, and so waits with every replica more until
// all fit.
func (p *Plan) warnOfScaling() {
	if p.gang.mode != v1alpha1.GangAllOrNothing || len(p.gang.spec.MinRoleReplicas) > 0 {
		return
	}
	for _, r := range p.Roles {
		if r.scaling != nil {
			p.warn(r.path.Child("scaling"),
				"scales in a gang of mode AllOrNothing, whose minimum grows with it: pods that are made anew start only where all of them fit. "+
					"Set spec.schedulingStrategy.gang.mode to MinimumFirst, so that it grows replica by replica")
		}
	}
}

// warnOfPartReplicas warns of replicas on several nodes that the minimum of a gang leaves out. Volcano schedules their pods one by one:
// only MinimumFirst has a subgroup for each replica (allocateResourcesForTasks in pkg/scheduler/actions/allocate of v1.14.1).
func (p *Plan) warnOfPartReplicas() {
	if p.gang.mode != v1alpha1.GangAllOrNothing || len(p.gang.spec.MinRoleReplicas) == 0 {
		return
	}
	for _, r := range p.Roles {
		if r.Nodes > 1 && p.gang.minimum(r) < r.Replicas {
			p.warn(field.NewPath("spec", "schedulingStrategy", "gang", "minRoleReplicas"),
				"leaves out replicas of role %s, which have %d nodes each: with mode AllOrNothing, a part of such a replica may start and hold its nodes while the rest waits. Set mode: MinimumFirst", r.Name, r.Nodes)
		}
	}
}
