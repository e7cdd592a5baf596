package plan

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// Build plans the roles of a service. The spec and the input are defaulted already. errs are the
// problems that validation found. Build checks the roles even then, so that the user sees
// all problems at once. With any problem it returns no plan. Place says where the replicas run.
func Build(s naming.Identity, spec *v1alpha1.InferenceServiceSpec, in *inputv1alpha1.Input, snapshot scheduling.Snapshot, errs field.ErrorList) (*Plan, field.ErrorList) {
	policy := newTenantPolicy(s, in)
	spec = policy.withCache(spec)
	p := &Plan{
		Service:           s,
		PodLimit:          *in.PodObservationLimit,
		FleetNamespace:    in.Fleet.Namespace,
		SkipsMissingKinds: in.MissingKinds == inputv1alpha1.MissingKindsSkip,
		Labels:            in.Labels,
		Annotations:       in.Annotations,
		Network:           in.NetworkPolicy,
		PodMonitors:       in.Monitoring.PodMonitors,
		Rollout:           Rollout{Rollout: spec.RolloutOf()},
		spec:              spec,
		snapshot:          &snapshot,
		groups:            ptr.Deref(spec.Replicas, 1),
	}
	errs = append(errs, p.planRoles(in, policy)...)
	errs = append(errs, p.planWeights(in, policy)...)
	errs = append(errs, p.planAdapters(in, policy)...)
	errs = append(errs, refuseOutsideFleet(spec)...)
	errs = append(errs, p.planAutoscalers(in, policy)...)
	p.planBootstrap()
	gang, more := planGang(spec.SchedulingStrategy, in, p.Roles)
	p.gang = gang
	errs = append(errs, more...)
	errs = append(errs, policy.checkGang(spec.SchedulingStrategy, in)...)
	p.NamesConfigs, p.Unchecked = NamesConfigs(spec.Placement), unchecked(spec.Placement, &snapshot)
	errs = append(errs, policy.checkConfigs(s, spec.Placement, &snapshot)...)
	errs = append(errs, checkStates(field.NewPath("spec", "placement"), &snapshot)...)
	p.inFleet = scheduling.InFleet(spec.Placement) || scheduling.LeavesFleet(&snapshot)
	errs = append(errs, checkPodLimits(p.Roles, gang, p.inFleet)...)
	if len(errs) == 0 {
		errs = append(p.checkReplicas(), policy.checkLimits(p)...)
	}
	if policy.security == nil && len(errs) == 0 {
		errs = append(errs, field.InternalError(field.NewPath("input", "podSecurity"), errNoPodSecurity))
	}
	if len(errs) > 0 {
		return nil, errs
	}
	if spec.Placement != nil {
		p.Secrets = p.secrets()
	}
	if p.inFleet {
		p.FleetRoute = p.fleetRoute(in)
	}
	p.warnOfSpec(in)
	return p, nil
}

// warnOfSpec warns of what the roles and the settings of the service say together.
func (p *Plan) warnOfSpec(in *inputv1alpha1.Input) {
	p.Warnings = append(p.Warnings, warnOfSource(field.NewPath("spec", "model"), p.spec.Model)...)
	p.warnWithoutRouter()
	p.warnOfName()
	p.warnOfPorts()
	p.Warnings = append(p.Warnings, warnOfPlacement(p.spec, p.Roles)...)
	p.warnOfDisagreement()
	p.warnOfSidecarConnectors()
	p.warnOfTLS()
	p.warnOfContext(p.spec.ProfileName, in)
	p.warnOfPartition()
	p.warnOfScaling()
	p.warnOfPartReplicas()
	p.Warnings = append(p.Warnings, p.gang.warnWithoutGang(p.spec.SchedulingStrategy)...)
	if p.inFleet {
		p.warnOfMoves()
		p.warnOfUncounted()
	}
}

// Place decides in which clusters the replicas run. A rollout may run further ones in the fleet, which
// depends on what runs.
func (p *Plan) Place(running *RunningView) field.ErrorList {
	if p.inFleet {
		p.schedule(p.demand(running))
		if p.FleetRoute != nil {
			p.FleetRoute.Backends = p.backends(running)
			p.endFleetRoute()
		}
		p.warnOfRecovery()
		return p.refuseGangInKueue()
	}
	for _, t := range scheduling.OutsideFleet(p.Service.Namespace, p.spec.Placement) {
		c := p.layout(t, everyReplica)
		for i := range c.Groups {
			c.addGang(p, &c.Groups[i], p.gang)
		}
		p.Clusters = append(p.Clusters, c)
	}
	p.warnOfRecovery()
	return nil
}

// CheckTemplates returns the problems that the serving roles have whatever the Input allows.
func CheckTemplates(spec *v1alpha1.InferenceServiceSpec, in *inputv1alpha1.Input) field.ErrorList {
	var errs field.ErrorList
	pairs := hasPairs(spec)
	for i := range spec.Roles {
		if spec.Roles[i].ComponentType != v1alpha1.ComponentTypeRouter && !unmerged(spec, i) {
			_, _, more := planRole(i, spec.Roles[i], loadsOf(spec, naming.Identity{}), in, pairs)
			errs = append(errs, more...)
		}
	}
	return errs
}

// unmerged tells whether a role lacks what its profile gives, because its type is not known. Nothing can be
// said of its template then.
func unmerged(spec *v1alpha1.InferenceServiceSpec, i int) bool {
	return spec.ProfileName != "" && !spec.Roles[i].ComponentType.Known()
}

// maxWorkloads limits the LeaderWorkerSets of a service before they are rendered. Crossplane
// takes a response of at most 4 MiB, and each LeaderWorkerSet takes at least 1 KiB of it.
const maxWorkloads = 4096

// checkReplicas refuses more replicas than any response could carry. Where no number of groups, or of replicas of the largest
// role, would do, it names all roles. The size of a response with fewer replicas is measured after rendering.
func (p *Plan) checkReplicas() field.ErrorList {
	clusters := max(1, len(scheduling.OutsideFleet(p.Service.Namespace, p.spec.Placement)))
	each, most := int64(0), p.Roles[0]
	for _, r := range p.Roles {
		each += int64(r.Most())
		if r.Most() > most.Most() {
			most = r
		}
	}
	groups, times := p.spec.Replicas, int64(clusters)*int64(p.groups)
	total := each * times
	if total <= maxWorkloads {
		return nil
	}
	path, value, fit := most.ReplicasPath(), any(most.Most()), maxWorkloads/times-(each-int64(most.Most()))
	if groups != nil {
		path, value, fit = field.NewPath("spec", "replicas"), any(*groups), maxWorkloads/(each*int64(clusters))
	}
	advice := fmt.Sprintf("must be at most %d", fit)
	if fit <= 0 {
		path, value = field.NewPath("spec", "roles"), any(fmt.Sprintf("%d replicas", each))
		advice = fmt.Sprintf("all roles together may have at most %d replicas", maxWorkloads/clusters)
	}
	return field.ErrorList{field.Invalid(path, value,
		fmt.Sprintf("would make %d LeaderWorkerSets in all, and fewer than %d fit into an answer of 4 MiB, Crossplane's limit: %s", total, maxWorkloads, advice))}
}

// planRoles plans the serving roles first, because the router depends on them.
func (p *Plan) planRoles(in *inputv1alpha1.Input, policy *tenantPolicy) field.ErrorList {
	var errs field.ErrorList
	spec, access := p.spec, newRouteAccess(p.Service, p.spec, in, policy, p.snapshot)
	pairs, load := hasPairs(spec), loadsOf(spec, p.Service)
	for i := range spec.Roles {
		if spec.Roles[i].ComponentType == v1alpha1.ComponentTypeRouter || unmerged(spec, i) {
			continue
		}
		r, warnings, more := planRole(i, spec.Roles[i], load, in, pairs)
		p.Warnings = append(p.Warnings, warnings...)
		errs = append(append(errs, more...), policy.checkRole(r)...)
		// What other roles need of one whose type is not known cannot be said: its error is enough.
		if r.Type.Known() {
			p.Roles = append(p.Roles, r)
		}
	}
	for i := range spec.Roles {
		if spec.Roles[i].ComponentType != v1alpha1.ComponentTypeRouter || p.Router != nil {
			continue
		}
		router, warnings, more := planRouter(i, spec.Roles[i], spec, in, p.Roles, access, p.snapshot.KnowsModels)
		p.Warnings = append(p.Warnings, warnings...)
		errs = append(append(errs, more...), checkRouter(rolePath(i), &spec.Roles[i])...)
		p.Router = router
	}
	return errs
}

// everyReplica is for layouts with all replicas.
func everyReplica(key.ReplicaID) bool { return true }

// layout returns the plan of one cluster: all groups, with those of their replicas for which in is true, and without gangs. Other
// replicas are not even made, for there may be a thousand clusters, and thousands of replicas.
func (p *Plan) layout(t scheduling.Target, in func(key.ReplicaID) bool) ClusterPlan {
	c := ClusterPlan{Target: t, Base: baseName(p.Service, t), Endpoint: p.endpoint()}
	c.Groups = make([]Group, p.groups)
	for i := range c.Groups {
		c.Groups[i] = p.group(&c, int32(i), in)
	}
	return c
}

// endpoint returns the Service of a service without a router.
func (p *Plan) endpoint() *Endpoint {
	if p.Router != nil {
		return nil
	}
	return p.endpointOfWorkers()
}

// keepEndpoints keeps the Service that a service had before it got a router. Its clients do not know the
// route so far.
func (p *Plan) keepEndpoints(running *RunningView) {
	for i := range p.Clusters {
		c := &p.Clusters[i]
		if p.Router == nil || !running.Observed(c.Key(key.Service)) {
			continue
		}
		if c.Endpoint = p.endpointOfWorkers(); c.Endpoint != nil {
			c.Endpoint.Former = true
		}
	}
}

// keepSelectors keeps a single-role selector until all workers of the other roles serve with the newest template: their old pods may
// listen on another port. If no pod of the role that it selects serves, the selector is not kept.
func (p *Plan) keepSelectors(running *RunningView) {
	for i := range p.Clusters {
		c := &p.Clusters[i]
		e := c.Endpoint
		if e == nil || e.Selector[naming.LabelRoleName] != "" {
			continue
		}
		alone := running.ServiceRole(c.Key(key.Service))
		answers, former := false, false
		for r := range c.Replicas() {
			s := running.Replica(r.Key)
			switch {
			case !s.MayServe():
			case r.Role.Name == alone:
				answers = answers || r.Role.Port == e.Port
			case r.Role.Type == v1alpha1.ComponentTypeWorker:
				former = former || !r.Updated || !s.Serving
			}
		}
		if answers && former {
			e.Selector[naming.LabelRoleName] = alone
		}
	}
}

// selectPods decides which pods the InferencePools select. A pool turns to workers once one of them serves in
// its cluster. Until then it goes on selecting the pods that answered whole requests before. Prefill and decode come beside workers
// once the endpoint picker picks them apart: the former one would send them whole requests.
func (p *Plan) selectPods(running *RunningView) {
	if p.Router == nil {
		return
	}
	newest := v1alpha1.ComponentType(p.Router.Selector[naming.LabelComponentType])
	for i := range p.Clusters {
		c := &p.Clusters[i]
		former, exists := running.PoolType(c.Key(key.InferencePool))
		turns := newest == "" || c.serves(newest, running)
		if newest == "" && p.Router.PicksApart && former == v1alpha1.ComponentTypeWorker {
			turns = running.PickerRuns(c.DeploymentKey(), p.Router.ConfigHash(c))
		}
		switch {
		case turns || !exists:
			c.PoolSelector = p.Router.Selector
		case former != "":
			c.PoolSelector = map[string]string{naming.LabelComponentType: string(former)}
		}
	}
}

// serves tells whether a replica of a type serves in a cluster.
func (c *ClusterPlan) serves(t v1alpha1.ComponentType, running *RunningView) bool {
	for r := range c.Replicas() {
		if r.Role.Type == t && running.Replica(r.Key).Serving {
			return true
		}
	}
	return false
}

// endpointOfWorkers returns a Service that selects the leaders of the workers. Prefill and decode pods get none, because they need a router between them. Roles
// of workers share the Service if they listen on the same port. Otherwise the Service selects
// the first role.
func (p *Plan) endpointOfWorkers() *Endpoint {
	var first *Role
	e := &Endpoint{Selector: map[string]string{naming.LabelComponentType: string(v1alpha1.ComponentTypeWorker)}}
	for _, r := range p.Roles {
		switch {
		case r.Type != v1alpha1.ComponentTypeWorker:
		case first == nil:
			first, e.Port, e.TLS = r, r.Port, r.TLS
		case r.Port != e.Port:
			e.Selector[naming.LabelRoleName] = first.Name
		}
	}
	if first == nil {
		return nil
	}
	return e
}

func (p *Plan) group(c *ClusterPlan, i int32, in func(key.ReplicaID) bool) Group {
	g := Group{Index: i}
	for _, r := range p.Roles {
		for j := range r.Replicas {
			if in(p.replicaID(i, r, j)) {
				g.Replicas = append(g.Replicas, p.replica(c, r, i, j))
			}
		}
	}
	return g
}

// replica returns one replica of a role, without a gang.
func (p *Plan) replica(c *ClusterPlan, r *Role, group, i int32) Replica {
	id := p.replicaID(group, r, i)
	return Replica{
		ID:    id,
		Key:   c.Key(key.LeaderWorkerSet, string(id)),
		Name:  workloadName(c.Base, p.Service, group, r.Name, i),
		Role:  r,
		Group: group,
		Index: i,
		Task:  taskName(r.Name, i),
		Nodes: r.Nodes,
	}
}

// replicaID identifies a replica in the service.
func (p *Plan) replicaID(group int32, r *Role, i int32) key.ReplicaID {
	if p.Service.Grouped {
		return key.ReplicaInGroup(group, r.Name, i)
	}
	return key.ReplicaOf(r.Name, i)
}

// podGroupKey is the key of a group's PodGroup.
func (c *ClusterPlan) podGroupKey(p *Plan, g *Group) key.Key {
	if p.Service.Grouped {
		return c.Key(key.PodGroup, key.Number(g.Index))
	}
	return c.Key(key.PodGroup)
}

// addGang gives a group of the cluster its PodGroup, for the replicas that the group has.
func (c *ClusterPlan) addGang(p *Plan, g *Group, gang gangPolicy) {
	g.PodGroup = gang.podGroup(c.podGroupKey(p, g), podGroupName(c.Base, p.Service, g.Index), c.GangQueue, p.Roles, g.Replicas)
	if g.PodGroup != nil {
		for j := range g.Replicas {
			g.Replicas[j].PodGroup = g.PodGroup.Name
		}
	}
}
