package observe

import (
	"fmt"
	"slices"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/plan"
)

// A Verdict is what became of a plan.
type Verdict struct {
	// Ready tells of each desired object, by its key, whether it is.
	Ready map[string]bool
	// Objects has the same with what is missing, in the order of the objects.
	Objects []Outcome
	// Status of the InferenceService, without its conditions.
	Status v1alpha1.InferenceServiceStatus
	// Conditions, the same types in the same order in every verdict.
	Conditions []Condition
	// Held tells that something wanted is left out for now, which keeps the
	// service from being ready.
	Held bool
	// Settled tells that there is nothing to wait for, and Timed that the time decides
	// what comes next.
	Settled, Timed bool
}

// An Outcome is what became of one object.
type Outcome struct {
	Key   string
	Ready bool
	// Reason and Message are empty where nothing is missing.
	Reason, Message string
}

// A judgement collects what a verdict is made of.
type judgement struct {
	plan *plan.Plan
	seen *Reality
	held []plan.Held

	subjects []*subject
	byKey    map[string]*subject
	pods     *podIndex
	total    census
	groups   map[int32]bool
	// entries by cluster.
	entries map[string]entry
	// failures of engines' pods, and of the endpoint picker's.
	failures, routerFailures []string
}

// Judge judges the desired objects of a plan. Those that are held are not among
// them.
func Judge(p *plan.Plan, r *Reality, objects []kube.Object, held []plan.Held) Verdict {
	j := &judgement{
		plan:     p,
		seen:     r,
		held:     held,
		subjects: make([]*subject, 0, len(objects)),
		byKey:    make(map[string]*subject, len(objects)),
		pods:     r.pods(),
		total:    newCensus(p),
		groups:   map[int32]bool{},
		entries:  make(map[string]entry, len(p.Deployments)),
	}
	j.judgeObjects(objects)
	status := j.status()
	j.releaseGangs()
	v := Verdict{
		Ready:      make(map[string]bool, len(objects)),
		Objects:    make([]Outcome, 0, len(objects)),
		Status:     status,
		Conditions: j.conditions(),
		Held:       len(held) > 0,
		Timed:      j.timed(),
		Settled:    len(held) == 0 && j.settled() && !j.total.troubled() && len(j.routerFailures) == 0,
	}
	for _, s := range j.subjects {
		v.Ready[s.key] = s.ready
		v.Objects = append(v.Objects, Outcome{Key: s.key, Ready: s.ready, Reason: s.reason, Message: s.message})
		v.Settled = v.Settled && s.ready
	}
	return v
}

func (j *judgement) judgeObjects(objects []kube.Object) {
	at := make(map[string]*plan.Deployment, len(j.plan.Deployments))
	for i := range j.plan.Deployments {
		d := &j.plan.Deployments[i]
		at[d.Target.Cluster] = d
	}
	if j.plan.Fleet != nil && at[""] == nil {
		at[""] = j.local()
	}
	for _, o := range objects {
		d := at[plan.ClusterOf(o.Key)]
		if d == nil {
			continue
		}
		s := j.seen.subject(o, d)
		j.subjects = append(j.subjects, s)
		j.byKey[s.key] = s
		if s.kind == kindRoute || s.kind == kindGateway {
			e := j.entries[d.Target.Cluster]
			e.note(s)
			j.entries[d.Target.Cluster] = e
		}
	}
}

// status counts replicas and finds URLs.
func (j *judgement) status() v1alpha1.InferenceServiceStatus {
	st := v1alpha1.InferenceServiceStatus{ObservedGeneration: j.plan.Service.Generation, Placement: j.placement()}
	if j.plan.Hub != nil {
		st.URL = j.url(j.local())
	}
	alone := !slices.ContainsFunc(j.plan.Deployments, func(d plan.Deployment) bool { return !d.Leaving && !d.Nowhere })
	for i := range j.plan.Deployments {
		d := &j.plan.Deployments[i]
		c := j.count(d)
		// What leaves has a successor, which is what was asked for.
		if !d.Leaving || alone {
			j.total.merge(c)
		}
		url := j.url(d)
		if st.Selector == "" {
			// Of the ways to exclude something, clients of the scale subresource read notin only.
			st.Selector = fmt.Sprintf("%s=%s,%s notin (%s)", plan.LabelService, d.Base, plan.LabelComponentType, v1alpha1.ComponentTypeRouter)
		}
		if st.URL == "" && (!d.Target.Remote() || d.Endpoint == nil) {
			// A Service in another cluster is no URL here.
			st.URL = url
		}
		if d.Target.Remote() {
			st.Clusters = append(st.Clusters, v1alpha1.ClusterStatus{Name: d.Target.Cluster, Components: c.components(), URL: url})
		}
	}
	st.Components = j.total.components()
	st.Roles = j.total.line(j.plan)
	st.Replicas = int32(len(j.groups)) //nolint:gosec // The API allows a few hundred.
	if j.pods != nil {
		j.routerFailures = j.pods.router.failures
	}
	return st
}

// count counts the replicas in one place.
func (j *judgement) count(d *plan.Deployment) census {
	c := newCensus(j.plan)
	for i := range d.Groups {
		for k := range d.Groups[i].Replicas {
			j.countReplica(c, d, &d.Groups[i].Replicas[k])
		}
	}
	for i := range d.Waiting {
		c[d.Waiting[i].Role.Name].desired++
	}
	return c
}

func (j *judgement) countReplica(c census, d *plan.Deployment, r *plan.Replica) {
	s := j.byKey[r.Key]
	var pods *podFacts
	if !d.Target.Remote() {
		pods = j.pods.of(j.plan.Service, r)
	}
	c[r.Role.Name].count(s, pods)
	if s != nil && s.reason != ReasonNotCreated {
		j.groups[r.Group] = true
	}
	if pods != nil {
		j.failures = append(j.failures, pods.failures...)
	}
	if s != nil && s.reason == ReasonNotReady {
		s.message = podsMissing(pods, r.Role.Nodes)
	}
}

// podsMissing says more than a LeaderWorkerSet does, which counts whole groups.
func podsMissing(pods *podFacts, nodes int32) string {
	if pods == nil && nodes > 1 {
		return fmt.Sprintf("not all of its %d pods are ready", nodes)
	}
	if pods == nil {
		return "its pod is not ready"
	}
	message := fmt.Sprintf("%d of %d pods are ready", pods.ready, nodes)
	if pods.unscheduled > 0 {
		message += fmt.Sprintf(", %d wait for room", pods.unscheduled)
	}
	return message
}

// releaseGangs passes PodGroups whose replicas all run: the gang has served its
// purpose, whatever its scheduler says of it later.
func (j *judgement) releaseGangs() {
	for i := range j.plan.Deployments {
		for k := range j.plan.Deployments[i].Groups {
			g := &j.plan.Deployments[i].Groups[k]
			if g.PodGroup == nil {
				continue
			}
			s := j.byKey[g.PodGroup.Key]
			if s == nil || s.seen == nil || s.reason == ReasonDeleting || !j.allReady(g) {
				continue
			}
			s.ready, s.reason, s.message = true, "", ""
		}
	}
}

func (j *judgement) allReady(g *plan.Group) bool {
	for i := range g.Replicas {
		if s := j.byKey[g.Replicas[i].Key]; s == nil || !s.ready {
			return false
		}
	}
	return true
}
