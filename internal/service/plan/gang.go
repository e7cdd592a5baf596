package plan

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
)

// SchedulerVolcano is the name of the scheduler that implements PodGroups.
const SchedulerVolcano = "volcano"

// A gangPolicy says how the pods of each group start. All groups of a service share it.
type gangPolicy struct {
	// mode is GangNone if the pods need no gang. It is empty in the plan of a ModelCache, which has none.
	mode v1alpha1.GangMode
	// spec of the gang, with the platform's defaults filled in.
	spec v1alpha1.Gang
	// queue that the service names, and the one that the platform's Input does.
	queue, platformQueue string
}

// exists tells whether the pods start as a gang.
func (g gangPolicy) exists() bool { return g.mode != v1alpha1.GangNone && g.mode != "" }

// A PodGroup is the gang of one group.
type PodGroup struct {
	// Key in the composed resources.
	Key  key.Key
	Name string
	// MinMember is the number of pods that must be schedulable at once.
	MinMember int32
	// MinTaskMember has the number of pods of each replica that must be schedulable, by its task.
	MinTaskMember map[string]int32
	// SubGroups of mode MinimumFirst.
	SubGroups []SubGroup
	// NetworkTopology, Queue and PriorityClassName, as in the spec.
	NetworkTopology   *v1alpha1.NetworkTopology
	Queue             string
	PriorityClassName string
	// MinResources are the requests of the MinMember pods. Nil if these are not known.
	MinResources corev1.ResourceList
}

// A SubGroup is a role in a gang of mode MinimumFirst.
type SubGroup struct {
	// Role whose replicas are the subgroups.
	Role string
	// Size is the number of pods of a replica.
	Size int32
	// Min is the number of replicas that must be schedulable at once.
	Min int32
}

// planGang decides whether the roles start as a gang, and sets their scheduler. A service has a
// gang if it has both prefiller and decoder roles, or if a role runs on several nodes.
func planGang(s *v1alpha1.SchedulingStrategy, in *inputv1alpha1.Input, roles []*Role) (gangPolicy, field.ErrorList) {
	if s == nil {
		s = &v1alpha1.SchedulingStrategy{}
	}
	platform := &in.Defaults.SchedulingStrategy
	policy := gangPolicy{queue: s.QueueName, platformQueue: platform.QueueName}
	if s.QueueName == platform.QueueName {
		policy.queue = "" // It is allowed to all, and so is no way around a cluster's queue.
	}
	if s.Gang != nil {
		policy.spec = *s.Gang
	}
	policy.spec.PriorityClassName = cmp.Or(policy.spec.PriorityClassName, platform.Gang.PriorityClassName)
	policy.mode = cmp.Or(policy.spec.Mode, v1alpha1.GangMode(platform.Gang.Mode), v1alpha1.GangAllOrNothing)
	if !startTogether(roles) {
		policy.mode = v1alpha1.GangNone
	}
	if !policy.exists() {
		setScheduler(roles, s.SchedulerName, platform.SchedulerName)
		return policy, nil
	}
	errs := refuseOtherSchedulers(s, roles)
	setScheduler(roles, SchedulerVolcano, "")
	return policy, errs
}

// warnWithoutGang warns of fields about a gang that there is not. Mode None says itself that there is none.
func (g gangPolicy) warnWithoutGang(s *v1alpha1.SchedulingStrategy) []Warning {
	if s == nil || g.exists() {
		return nil
	}
	gang := s.Gang
	if gang == nil {
		gang = &v1alpha1.Gang{}
	}
	path := field.NewPath("spec", "schedulingStrategy")
	var all []Warning
	for _, f := range []struct {
		at  *field.Path
		set bool
	}{
		{path.Child("queueName"), s.QueueName != ""},
		{path.Child("gang", "mode"), gang.Mode != "" && gang.Mode != v1alpha1.GangNone},
		{path.Child("gang", "minRoleReplicas"), len(gang.MinRoleReplicas) > 0},
		{path.Child("gang", "networkTopology"), gang.NetworkTopology != nil},
		{path.Child("gang", "priorityClassName"), gang.PriorityClassName != ""},
	} {
		if f.set {
			all = append(all, warningAt(f.at, "has no effect: the service has no gang"))
		}
	}
	return all
}

// startTogether tells whether the pods of the roles serve nobody by themselves.
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

// HasGang tells whether the pods start as a gang.
func (p *Plan) HasGang() bool { return p.gang.exists() }

// setScheduler sets the scheduler of the roles. The service's choice overrides the template's, and
// the template's overrides the platform's default.
func setScheduler(roles []*Role, name, fallback string) {
	for _, r := range roles {
		switch {
		case name != "":
			r.Scheduler = name
		case r.Worker.Spec.SchedulerName == "" && r.Leader.Spec.SchedulerName == "":
			r.Scheduler = fallback
		}
	}
}

// refuseOtherSchedulers refuses a gang with another scheduler than Volcano. That scheduler
// ignores PodGroups, so part of a replica could start and wait forever for the rest.
func refuseOtherSchedulers(s *v1alpha1.SchedulingStrategy, roles []*Role) field.ErrorList {
	const want = "must be volcano or unset: the pods of this service start as a gang, which needs Volcano; for another scheduler set spec.schedulingStrategy.gang.mode: None"
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

// podGroup returns the PodGroup of one group, in a cluster whose InferenceCluster may name a queue. It is nil
// without a gang or without replicas.
func (g gangPolicy) podGroup(k key.Key, name, clusterQueue string, roles []*Role, replicas []Replica) *PodGroup {
	if !g.exists() || len(replicas) == 0 {
		return nil
	}
	pg := &PodGroup{
		Key:               k,
		Name:              name,
		NetworkTopology:   g.spec.NetworkTopology,
		Queue:             cmp.Or(g.queue, clusterQueue, g.platformQueue),
		PriorityClassName: g.spec.PriorityClassName,
		MinResources:      corev1.ResourceList{},
	}
	known := true
	for _, r := range roles {
		own := ofRole(replicas, r)
		minimum := min(g.minimum(r), int32(len(own))) //nolint:gosec // The API allows a few thousand.
		for i := range own[:minimum] {
			pg.MinMember += own[i].Nodes
			known = known && !own[i].Held
		}
		addTimes(pg.MinResources, r.replicaResources, minimum)
		switch {
		case g.mode == v1alpha1.GangMinimumFirst && len(own) > 0:
			pg.SubGroups = append(pg.SubGroups, SubGroup{Role: r.Name, Size: fewestPods(own), Min: minimum})
		case g.mode == v1alpha1.GangAllOrNothing && minimum > 0:
			pg.requireTasks(own[:minimum])
		}
	}
	if !known {
		// Only the newest template's requests are known, and a held replica runs a former one. Volcano enqueues no gang whose
		// resources the queue or the cluster lacks, so pods that are recreated would wait for room that they do not need.
		// Without the field, it looks at the pods alone (pkg/scheduler/plugins/overcommit of v1.14.1).
		pg.MinResources = nil
	}
	return pg
}

// ofRole returns the replicas of a role. A cluster that runs a part of the service has only some
// of them.
func ofRole(replicas []Replica, r *Role) []Replica {
	var own []Replica
	for i := range replicas {
		if replicas[i].Role == r {
			own = append(own, replicas[i])
		}
	}
	return own
}

// fewestPods returns the fewest pods of a replica of a role. The subgroups of a PodGroup have one size, and Volcano never starts one
// that has fewer pods (pkg/scheduler/api/sub_job_info.go of v1.14.1, IsReady). So a larger one may start before all of it fits, as
// long as a rollout of another nodeCount is under way.
func fewestPods(replicas []Replica) int32 {
	fewest := replicas[0].Nodes
	for i := range replicas {
		fewest = min(fewest, replicas[i].Nodes)
	}
	return fewest
}

// requireTasks makes every pod of the replicas necessary for the gang to start.
func (pg *PodGroup) requireTasks(replicas []Replica) {
	if pg.MinTaskMember == nil {
		pg.MinTaskMember = map[string]int32{}
	}
	for i := range replicas {
		pg.MinTaskMember[replicas[i].Task] = replicas[i].Nodes
	}
}

// minimum is the number of replicas of a role that must be schedulable at once. minRoleReplicas
// sets it. Its default is all replicas, or one in mode MinimumFirst.
func (g gangPolicy) minimum(r *Role) int32 {
	want := r.Replicas
	switch {
	case len(g.spec.MinRoleReplicas) > 0:
		want = g.spec.MinRoleReplicas[r.Name]
	case g.mode == v1alpha1.GangMinimumFirst:
		want = 1
	}
	return min(want, r.Replicas)
}
