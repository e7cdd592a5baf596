package observe

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	lws "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// An Evaluation is what exists of a plan, compared with the plan, and the outcome of the call.
type Evaluation struct {
	composite.Outcome

	// Status of the InferenceService, without its conditions. The outcome has the same.
	Status v1alpha1.InferenceServiceStatus
}

// An evaluator collects what an Evaluation is made of.
type evaluator struct {
	plan     *plan.Plan
	state    *ObservedState
	deferred []plan.Deferred

	objects []*objectState
	byKey   map[key.Key]*objectState
	pods    *podIndex
	// byName has the facts about pods that are read by their names, by the key of their replica.
	byName map[key.Key]podFacts
	total  roleCounts
	// groups are the indices of the replica groups of which something exists.
	groups map[int32]bool
	// waiting has why replicas do not start in a cluster, by its name.
	waiting map[string]*wait
	// entrypoints by cluster.
	entrypoints map[string]routeObjects
	// failures of the pods of the roles, and of those of the endpoint picker.
	failures, routerFailures []string
}

// Evaluate compares the desired objects of a plan with the observed state. The objects do
// not include the deferred ones.
func (r *ObservedState) Evaluate(objects []kube.Object, deferred []plan.Deferred) Evaluation {
	e := newEvaluator(r, objects, deferred)
	v := e.evaluation()
	v.Outcome.Objects, v.Outcome.Status, v.Due = objects, v.Status, r.plan.Due
	return v
}

func newEvaluator(r *ObservedState, objects []kube.Object, deferred []plan.Deferred) *evaluator {
	e := &evaluator{
		plan:        r.plan,
		state:       r,
		deferred:    deferred,
		objects:     make([]*objectState, 0, len(objects)),
		byKey:       make(map[key.Key]*objectState, len(objects)),
		pods:        r.pods(),
		byName:      r.allByName(),
		total:       newRoleCounts(r.plan),
		groups:      map[int32]bool{},
		waiting:     map[string]*wait{},
		entrypoints: make(map[string]routeObjects, len(r.plan.Clusters)),
	}
	e.evaluateObjects(objects)
	e.passStartedGangs()
	e.passAdmitted()
	for i := range r.plan.Clusters {
		if c := &r.plan.Clusters[i]; c.Target.Remote() {
			e.waiting[c.Target.Cluster] = e.waits(c)
		}
	}
	return e
}

func (e *evaluator) evaluation() Evaluation {
	v := Evaluation{Status: e.status()}
	v.Ready = make(map[key.Key]bool, len(e.objects))
	v.Events, v.Decisions = e.moves(v.Status.Clusters)
	v.Conditions, v.Events = e.conditions(), append(v.Events, e.failed()...)
	v.Deferred = len(e.deferred) > 0
	v.Stable = !v.Deferred && e.stable() && !e.total.troubled() && len(e.routerFailures) == 0
	for _, c := range v.Conditions {
		if c.Type != RolledOut {
			continue
		}
		if c.Status == composite.True {
			// Absent where observedGeneration is.
			v.Status.Rollout.CompletedGeneration = v.Status.ObservedGeneration
		}
		v.Stable = v.Stable && (c.Status == composite.True || c.Reason == ReasonPaused)
	}
	for _, s := range e.objects {
		v.Ready[s.key] = s.ready
		v.Stable = v.Stable && s.ready
	}
	return v
}

func (e *evaluator) evaluateObjects(objects []kube.Object) {
	clusters := make(map[string]*plan.ClusterPlan, len(e.plan.Clusters))
	for i := range e.plan.Clusters {
		c := &e.plan.Clusters[i]
		clusters[c.Target.Cluster] = c
	}
	if (e.plan.Schedule != nil || len(e.plan.Scales) > 0) && clusters[""] == nil {
		clusters[""] = e.local()
	}
	for _, o := range objects {
		c := clusters[o.Key.Cluster]
		if c == nil {
			continue
		}
		s := e.state.objectState(o, c)
		e.objects = append(e.objects, s)
		e.byKey[s.key] = s
		if s.kind == kindRoute || s.kind == kindGateway {
			entry := e.entrypoints[c.Target.Cluster]
			entry.note(s)
			e.entrypoints[c.Target.Cluster] = entry
		}
	}
}

// status counts the replicas, and finds the URLs.
func (e *evaluator) status() v1alpha1.InferenceServiceStatus {
	st := v1alpha1.InferenceServiceStatus{Clusters: e.clusters(), Profile: e.plan.Profile, Model: e.modelStatus(), AdapterCache: e.adapterStatus()}
	e.noteWaits(st.Clusters)
	if !e.plan.Service.Claimed {
		// Crossplane copies the status to the claim, whose generation is another number
		// (internal/controller/apiextensions/claim/syncer_ssa.go of crossplane).
		st.ObservedGeneration = e.plan.Service.Generation
	}
	if r := e.plan.FleetRoute; r != nil && !r.Ends {
		st.URL = e.url(e.local())
	}
	var offered []copyURL
	noneStays := !slices.ContainsFunc(e.plan.Clusters, func(c plan.ClusterPlan) bool { return !c.Leaving && !c.Unschedulable })
	for i := range e.plan.Clusters {
		c := &e.plan.Clusters[i]
		counts := e.count(c)
		// Replicas that leave a cluster are replaced in another one, which counts them.
		if !c.Leaving || noneStays {
			e.total.merge(counts)
		}
		url := e.url(c)
		if st.Selector == "" {
			st.Selector = selector(e.plan, c)
		}
		if !c.Target.Remote() || c.Endpoint == nil || c.Endpoint.Former {
			// Clients here do not reach the Service of another cluster.
			offered = append(offered, copyURL{url: url, leaving: c.Leaving, answers: counts.answer(e.plan)})
		}
		if c.Target.Remote() {
			at := slices.IndexFunc(st.Clusters, func(s v1alpha1.ClusterStatus) bool { return s.Name == c.Target.Cluster })
			if at < 0 {
				continue
			}
			st.Clusters[at].Components, st.Clusters[at].URL = counts.components(), url
		}
	}
	st.URL = cmp.Or(st.URL, urlOfCopies(offered))
	st.Components, st.ServedModels, st.ModelRouting = e.components(), servedModels(e.plan), modelRouting(e.plan)
	st.Summary, st.Rollout = e.total.summary(e.plan), e.total.rollout(e.plan)
	st.Replicas = int32(len(e.groups)) //nolint:gosec // The API allows a few hundred.
	if e.pods != nil {
		e.routerFailures = e.pods.router.failures
	}
	return st
}

// selector selects the service's pods for the scale subresource. Of each group it is one leader: a HorizontalPodAutoscaler counts the
// pods that it selects as replicas (pkg/controller/podautoscaler/replica_calculator.go of Kubernetes v1.36).
func selector(p *plan.Plan, c *plan.ClusterPlan) string {
	first := slices.IndexFunc(p.Roles, func(r *plan.Role) bool { return r.Replicas > 0 })
	if p.Service.Grouped && first >= 0 {
		return fmt.Sprintf("%s=%s,%s=%s,%s=0,%s=0", naming.LabelService, c.Base, naming.LabelRoleName, p.Roles[first].Name, naming.LabelReplicaIndex, lws.WorkerIndexLabelKey)
	}
	return fmt.Sprintf("%s=%s,%s in (%s)", naming.LabelService, c.Base, naming.LabelComponentType, strings.Join(v1alpha1.EngineTypes(), ","))
}

// count counts the replicas in one cluster.
func (e *evaluator) count(c *plan.ClusterPlan) roleCounts {
	counts := newRoleCounts(e.plan)
	for r := range c.Replicas() {
		e.countReplica(counts, c, r)
	}
	for r := range c.LeftOutReplicas() {
		if !r.Extra {
			counts[r.Role.Name].desired++
		}
	}
	for i := range c.Pending {
		counts[c.Pending[i].Role.Name].desired++
	}
	if r := e.plan.Router; r != nil && (!c.Unschedulable || len(e.plan.Clusters) == 1) {
		s, pods := e.byKey[c.DeploymentKey()], e.routerPods(c)
		counts[r.Name].countRouter(r, s, pods)
		if s != nil && s.reason == ReasonNotReady && pods != nil {
			s.message += pods.waiting()
		}
	}
	return counts
}

// routerPods are the pods of the endpoint pickers in one cluster, or nil where they are not
// read.
func (e *evaluator) routerPods(c *plan.ClusterPlan) *podFacts {
	if e.pods == nil || c.Target.Remote() {
		return nil
	}
	return &e.pods.router
}

// podsOf returns the facts about the pods of a replica, or nil where not all of them are read.
func (e *evaluator) podsOf(c *plan.ClusterPlan, r *plan.Replica) *podFacts {
	if c.Target.Remote() {
		return nil
	}
	return e.pods.of(e.plan.Service, r)
}

// failuresOf returns what fails in the pods of a replica that are read. While new pods start after a crash,
// that is why the former ones crashed.
func (e *evaluator) failuresOf(c *plan.ClusterPlan, r *plan.Replica) []string {
	pods := e.podsOf(c, r)
	var failures []string
	if pods != nil {
		failures = pods.failures
	} else {
		for _, failure := range e.byName[r.Key].failures {
			failures = append(failures, text.InCluster(c.Target.Cluster, failure))
		}
	}
	s := e.byKey[r.Key]
	starting := []string{ReasonUpdating, ReasonNotReady}
	if !c.Target.Remote() {
		// An Object keeps the note while its cluster is recreated.
		starting = append(starting, ReasonNotReported)
	}
	starts := s != nil && slices.Contains(starting, s.reason) && (pods == nil || pods.unscheduled == 0)
	if note := r.LastFailure.Text; len(failures) == 0 && note != "" && starts {
		return []string{text.InCluster(c.Target.Cluster, note)}
	}
	return failures
}

func (e *evaluator) countReplica(counts roleCounts, c *plan.ClusterPlan, r *plan.Replica) {
	s, pods, failures := e.byKey[r.Key], e.podsOf(c, r), e.failuresOf(c, r)
	if r.Extra {
		counts[r.Role.Name].extra++
	} else {
		counts[r.Role.Name].count(r, s, pods)
		counts[r.Role.Name].failed = counts[r.Role.Name].failed || len(failures) > 0
	}
	if !r.Extra && s != nil && s.reason != ReasonNotCreated {
		e.groups[r.Group] = true
	}
	e.failures = append(e.failures, failures...)
	switch {
	case s == nil:
	case s.reason == ReasonNotReady:
		s.message = e.podsMissing(c, r, pods)
	case s.reason == ReasonUpdating && pods != nil:
		s.message += pods.waiting()
	}
}

// podsMissing says how many pods of a replica are missing. Its LeaderWorkerSet counts whole groups only.
func (e *evaluator) podsMissing(c *plan.ClusterPlan, r *plan.Replica, pods *podFacts) string {
	nodes := r.Role.Nodes
	if pods == nil && e.pods != nil && !c.Target.Remote() {
		pods = &podFacts{} // None of the pods that are read is one of the replica.
	}
	some := e.byName[r.Key]
	switch {
	case pods != nil:
		return fmt.Sprintf("%d of %d pods are ready", pods.ready, nodes) + pods.missing(nodes)
	case nodes > 1:
		return fmt.Sprintf("not all of its %d pods are ready", nodes) + some.waiting()
	}
	return "its pod is not ready" + some.waiting()
}

// passStartedGangs makes a PodGroup ready if its replicas are all ready. Its gang has started
// then, and what Volcano reports on it later does not matter.
func (e *evaluator) passStartedGangs() {
	for i := range e.plan.Clusters {
		for k := range e.plan.Clusters[i].Groups {
			g := &e.plan.Clusters[i].Groups[k]
			if g.PodGroup == nil {
				continue
			}
			s := e.byKey[g.PodGroup.Key]
			if s == nil || s.view == nil || s.refused || s.reason == ReasonDeleting || !e.allReady(g) {
				continue
			}
			s.ready, s.reason, s.message = true, "", ""
		}
	}
}

func (e *evaluator) allReady(g *plan.Group) bool {
	for i := range g.Replicas {
		if s := e.byKey[g.Replicas[i].Key]; s == nil || !s.ready && !s.serves {
			return false
		}
	}
	return true
}
