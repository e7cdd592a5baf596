package plan

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/input/v1beta1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

// SchedulerVolcano is the scheduler that knows PodGroups.
const SchedulerVolcano = "volcano"

// A gangPolicy is how the groups of a service start, decided once for all of
// them.
type gangPolicy struct {
	// mode is GangNone where nothing has to start together.
	mode v1alpha1.GangMode
	// spec of the gang; never nil.
	spec *v1alpha1.Gang
	// queue of the gang, with the platform's default.
	queue string
}

// planGang decides whether and how the roles start together, and sets their
// scheduler. There is a gang wherever prefiller and decoder are both present, or
// any role runs on several nodes; single-node workers alone need none.
func planGang(s *v1alpha1.SchedulingStrategy, in *v1beta1.Input, roles []*Role) (gangPolicy, field.ErrorList) {
	if s == nil {
		s = &v1alpha1.SchedulingStrategy{}
	}
	policy := gangPolicy{spec: s.Gang, mode: gangMode(s, in), queue: in.Scheduling.Queue}
	if policy.spec == nil {
		policy.spec = &v1alpha1.Gang{}
	}
	if policy.spec.Queue != "" {
		policy.queue = policy.spec.Queue
	}
	if !startTogether(roles) {
		policy.mode = v1alpha1.GangNone
	}
	if policy.mode == v1alpha1.GangNone {
		schedule(roles, s.SchedulerName, in.Scheduling.SchedulerName)
		return policy, nil
	}
	errs := refuseOtherSchedulers(s, roles)
	schedule(roles, SchedulerVolcano, "")
	return policy, errs
}

func gangMode(s *v1alpha1.SchedulingStrategy, in *v1beta1.Input) v1alpha1.GangMode {
	switch {
	case s.Gang != nil && s.Gang.Mode != "":
		return s.Gang.Mode
	case in.Scheduling.GangMode != "":
		return v1alpha1.GangMode(in.Scheduling.GangMode)
	}
	return v1alpha1.GangTaskMember
}

func startTogether(roles []*Role) bool {
	var prefiller, decoder bool
	for _, r := range roles {
		prefiller = prefiller || r.Type == v1alpha1.ComponentTypePrefiller
		decoder = decoder || r.Type == v1alpha1.ComponentTypeDecoder
		if r.Nodes > 1 {
			return true
		}
	}
	return prefiller && decoder
}

// schedule sets the roles' scheduler: the service's own choice wins over the
// template's, which wins over the platform's default.
func schedule(roles []*Role, name, fallback string) {
	for _, r := range roles {
		switch {
		case name != "":
			r.Scheduler = name
		case r.Worker.Spec.SchedulerName == "" && r.Leader.Spec.SchedulerName == "":
			r.Scheduler = fallback
		}
	}
}

// refuseOtherSchedulers refuses a gang for a scheduler that would not see it:
// half a replica could run and wait for ever.
func refuseOtherSchedulers(s *v1alpha1.SchedulingStrategy, roles []*Role) field.ErrorList {
	const want = "must be volcano or unset: replicas of this service start together, which only Volcano does; for another scheduler set spec.schedulingStrategy.gang.mode to None"
	var errs field.ErrorList
	if s.SchedulerName != "" && s.SchedulerName != SchedulerVolcano {
		errs = append(errs, field.Invalid(field.NewPath("spec", "schedulingStrategy", "schedulerName"), s.SchedulerName, want))
	}
	for _, r := range roles {
		for _, t := range []struct {
			field string
			spec  corev1.PodSpec
		}{{"template", r.Worker.Spec}, {"leaderTemplate", r.Leader.Spec}} {
			if n := t.spec.SchedulerName; n != "" && n != SchedulerVolcano {
				errs = append(errs, field.Invalid(r.path.Child(t.field, "spec", "schedulerName"), n, want))
				break
			}
		}
	}
	return errs
}

// podGroup is the gang of one group, or nil where nothing of it has to start
// together.
func (g gangPolicy) podGroup(key, name string, roles []*Role, replicas []Replica) *PodGroup {
	if g.mode == v1alpha1.GangNone || len(replicas) == 0 {
		return nil
	}
	pg := &PodGroup{
		Key:               key,
		Name:              name,
		NetworkTopology:   g.spec.NetworkTopology,
		Queue:             g.queue,
		PriorityClassName: g.spec.PriorityClassName,
		MinResources:      corev1.ResourceList{},
	}
	for _, r := range roles {
		of := ofRole(replicas, r)
		minimum := min(g.minimum(r), int32(len(of))) //nolint:gosec // The API allows a few thousand.
		pg.MinMember += minimum * r.Nodes
		addTimes(pg.MinResources, r.replicaResources, minimum)
		switch {
		case g.mode == v1alpha1.GangSubGroup && len(of) > 0:
			pg.SubGroups = append(pg.SubGroups, SubGroup{Role: r.Name, Size: r.Nodes, Min: minimum})
		case g.mode == v1alpha1.GangTaskMember && minimum > 0:
			pg.requireTasks(r, of[:minimum])
		}
	}
	return pg
}

// ofRole are those replicas that are of a role. In a cluster that got a part of the
// service not all of them are there.
func ofRole(replicas []Replica, r *Role) []Replica {
	var of []Replica
	for i := range replicas {
		if replicas[i].Role == r {
			of = append(of, replicas[i])
		}
	}
	return of
}

func (pg *PodGroup) requireTasks(r *Role, replicas []Replica) {
	if pg.MinTaskMember == nil {
		pg.MinTaskMember = map[string]int32{}
	}
	for i := range replicas {
		pg.MinTaskMember[replicas[i].Task] = r.Nodes
	}
}

// minimum is the number of replicas of a role that have to fit at once: all of
// them, or one of them in mode SubGroup, unless minRoleReplicas says otherwise.
func (g gangPolicy) minimum(r *Role) int32 {
	want := r.Replicas
	switch {
	case len(g.spec.MinRoleReplicas) > 0:
		want = g.spec.MinRoleReplicas[r.Name]
	case g.mode == v1alpha1.GangSubGroup:
		want = 1
	}
	return min(want, r.Replicas)
}
