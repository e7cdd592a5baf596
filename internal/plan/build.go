package plan

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/input/v1beta1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

// Build plans a service. The spec and the input are defaulted. Problems that
// were found before are passed in: the roles are still looked at, so that all
// problems are reported at once, but with any problem there is no plan.
func Build(s Service, spec *v1alpha1.InferenceServiceSpec, in *v1beta1.Input, w World, errs field.ErrorList) (*Plan, field.ErrorList) {
	p := &Plan{
		Service:      s,
		PodLimit:     *in.PodObservationLimit,
		RequireKinds: in.RequireKinds,
		Labels:       in.Labels,
		Annotations:  in.Annotations,
		Network:      in.NetworkPolicy,
	}
	policy := newTenantPolicy(s, in)
	errs = append(errs, p.planRoles(spec, in, policy, newRouteAccess(s, spec, in, policy, &w))...)
	gang, more := planGang(spec.SchedulingStrategy, in, p.Roles)
	more = append(more, policy.checkGang(spec.SchedulingStrategy, in)...)
	places := targets(s, spec.Placement)
	p.NamesConfigs, p.Unchecked = NamesConfigs(spec.Placement), unchecked(spec.Placement, &w)
	errs = append(errs, policy.checkConfigs(s, spec.Placement, &w)...)
	inFleet := InFleet(spec.Placement) || leavesFleet(&w)
	errs = append(errs, checkRoom(p.Roles, gang, inFleet)...)
	if errs = append(errs, more...); len(errs) == 0 {
		errs = append(tooMany(p.Roles, spec.Replicas, max(1, len(places))), policy.checkLimits(p.Roles, p.Router, spec.Replicas)...)
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
	if inFleet {
		f := fleetPlanner{p: p, spec: spec, placement: spec.Placement, gang: gang, world: w}
		if f.placement == nil {
			f.placement = &v1alpha1.Placement{Policy: v1alpha1.PlacementReplicate}
		}
		if errs := f.checkGrowth(); len(errs) > 0 {
			return nil, errs
		}
		f.place(in)
		return p, nil
	}
	for _, t := range places {
		d := p.lay(t, spec.Replicas)
		for i := range d.Groups {
			d.gather(p, &d.Groups[i], gang)
		}
		p.Deployments = append(p.Deployments, d)
	}
	return p, nil
}

// maxWorkloads is more LeaderWorkerSets than fit into an answer of 4 MiB, each of
// them taking a KiB at the very least. It keeps a mistyped number from being
// rendered before it is refused.
const maxWorkloads = 4096

// tooMany refuses more replicas than could ever be answered for. What is below
// is measured once it is rendered.
func tooMany(roles []*Role, groups *int32, places int) field.ErrorList {
	each, most := int64(0), roles[0]
	for _, r := range roles {
		each += int64(r.Replicas)
		if r.Replicas > most.Replicas {
			most = r
		}
	}
	times := int64(places)
	if groups != nil {
		times *= int64(*groups)
	}
	total := each * times
	if total <= maxWorkloads {
		return nil
	}
	const tail = "%d LeaderWorkerSets in all, and Crossplane takes an answer of 4 MiB, which is less than %d: at most %d fit"
	if groups != nil {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "replicas"), *groups,
			fmt.Sprintf(tail, total, maxWorkloads, maxWorkloads/(each*int64(places))))}
	}
	fit := max(0, maxWorkloads/times-(each-int64(most.Replicas)))
	return field.ErrorList{field.Invalid(most.path.Child("replicas"), most.Replicas, fmt.Sprintf(tail, total, maxWorkloads, fit))}
}

// planRoles plans what serves, and then the router, which has to know it.
func (p *Plan) planRoles(spec *v1alpha1.InferenceServiceSpec, in *v1beta1.Input, policy *tenantPolicy, access *routeAccess) field.ErrorList {
	var errs field.ErrorList
	pd := disaggregated(spec)
	for i := range spec.Roles {
		if spec.Roles[i].ComponentType == v1alpha1.ComponentTypeRouter {
			continue
		}
		r, warnings, more := planRole(i, spec.Roles[i], in, pd)
		p.Warnings = append(p.Warnings, warnings...)
		errs = append(errs, more...)
		if r != nil {
			errs = append(errs, policy.checkRole(r)...)
			p.Roles = append(p.Roles, r)
		}
	}
	for i := range spec.Roles {
		if spec.Roles[i].ComponentType != v1alpha1.ComponentTypeRouter || p.Router != nil {
			continue
		}
		router, warnings, more := planRouter(i, spec.Roles[i], spec, in, p.Roles, access)
		p.Warnings = append(p.Warnings, warnings...)
		errs = append(append(errs, more...), checkRouter(rolePath(i), &spec.Roles[i])...)
		p.Router = router
	}
	return errs
}

func targets(s Service, placement *v1alpha1.Placement) []Target {
	if placement == nil || len(placement.Clusters) == 0 {
		return []Target{{Namespace: s.Namespace}}
	}
	all := make([]Target, 0, len(placement.Clusters))
	for _, c := range placement.Clusters {
		if c.ProviderConfigRef == nil {
			continue
		}
		t := Target{Cluster: c.Name, Namespace: c.Namespace, ProviderConfig: *c.ProviderConfigRef}
		if t.Namespace == "" {
			t.Namespace = s.Namespace
		}
		all = append(all, t)
	}
	return all
}

// lay lists everything that may run in one place, without gangs.
func (p *Plan) lay(t Target, groups *int32) Deployment {
	d := Deployment{Target: t, Base: baseName(p.Service, t), Endpoint: p.endpoint()}
	n := int32(1)
	if groups != nil {
		n = *groups
	}
	d.Groups = make([]Group, n)
	for i := range n {
		d.Groups[i] = p.group(&d, i)
	}
	return d
}

// endpoint is where clients of a service without a router go: to the leaders of
// its workers. Prefill and decode pods need a router between them. Workers of
// several roles share the Service where they listen on one port; where they do
// not, it is the first role's.
func (p *Plan) endpoint() *Endpoint {
	if p.Router != nil {
		return nil
	}
	var first *Role
	e := &Endpoint{Selector: map[string]string{LabelComponentType: string(v1alpha1.ComponentTypeWorker)}}
	for _, r := range p.Roles {
		switch {
		case r.Type != v1alpha1.ComponentTypeWorker:
		case first == nil:
			first, e.Port = r, r.Port
		case r.Port != e.Port:
			e.Selector[LabelRoleName] = first.Name
		}
	}
	if first == nil {
		return nil
	}
	return e
}

func (p *Plan) group(d *Deployment, i int32) Group {
	g := Group{Index: i}
	for _, r := range p.Roles {
		for j := range r.Replicas {
			g.Replicas = append(g.Replicas, Replica{
				Key:   d.Key("leaderworkerset", scoped(p.Service, i, "/", r.Name, index(j))),
				Name:  workloadName(d.Base, p.Service, i, r.Name, j),
				Role:  r,
				Group: i,
				Index: j,
				Task:  taskName(r.Name, j),
			})
		}
	}
	return g
}

// gather makes the gang of a group, of the replicas that it has.
func (d *Deployment) gather(p *Plan, g *Group, gang gangPolicy) {
	key := d.Key("podgroup")
	if p.Service.Grouped {
		key = d.Key("podgroup", index(g.Index))
	}
	g.PodGroup = gang.podGroup(key, podGroupName(d.Base, p.Service, g.Index), p.Roles, g.Replicas)
	if g.PodGroup != nil {
		for j := range g.Replicas {
			g.Replicas[j].PodGroup = g.PodGroup.Name
		}
	}
}
