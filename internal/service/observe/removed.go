package observe

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/remote"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// observedReplicas are the replicas that exist, by the keys of their LeaderWorkerSets.
func observedReplicas(req incoming.Request) iter.Seq2[key.Key, key.ReplicaID] {
	return func(yield func(key.Key, key.ReplicaID) bool) {
		for _, k := range req.ObservedKeys() {
			if id, is := k.ReplicaID(); is && !yield(k, id) {
				return
			}
		}
	}
}

// thatMayServe are the replicas that may serve and are not being deleted, by the keys of their LeaderWorkerSets.
func (r *ObservedState) thatMayServe() iter.Seq2[key.Key, key.ReplicaID] {
	return func(yield func(key.Key, key.ReplicaID) bool) {
		for k, id := range observedReplicas(r.req) {
			if r.mayServe(k, id) && !yield(k, id) {
				return
			}
		}
	}
}

// mayServe tells whether a replica may serve and is not being deleted.
func (r *ObservedState) mayServe(k key.Key, id key.ReplicaID) bool {
	_, _, _, ok := id.Parts()
	return ok && r.req.Observed(k).DeletionTimestamp() == "" && r.Replica(k).MayServe()
}

// servingRolesRemoved finds roles that were removed while they serve, and before every role that is
// left serves. All that they run would be deleted at once. A role that is renamed is such a one. What is
// being deleted already cannot be kept.
func (r *ObservedState) servingRolesRemoved() field.ErrorList {
	removed := r.removedRoles()
	if len(removed) == 0 {
		return nil
	}
	from := map[string]bool{}
	for _, in := range removed {
		maps.Copy(from, in)
	}
	waits := r.rolesNotReady(from)
	if len(waits) == 0 && r.stopsAnswering(from) {
		waits = []string{r.whatAnswers()}
	}
	if len(waits) == 0 {
		waits = r.poolsNotTurned(from)
	}
	if len(waits) == 0 {
		return nil
	}
	names := slices.Sorted(maps.Keys(removed))
	return field.ErrorList{field.Forbidden(field.NewPath("spec", "roles"), fmt.Sprintf(
		"must keep roles that serve requests until the others do. Removed: %s. Not ready: %s. To remove a role at once, %s",
		text.Names(names, maxNames), text.Names(waits, maxNames), r.stopFirst("its replicas", names...)))}
}

// removedRoles returns the roles that may serve and are in the spec no more, each with its clusters.
func (r *ObservedState) removedRoles() map[string]map[string]bool {
	removed := map[string]map[string]bool{}
	for k, id := range r.thatMayServe() {
		if r.plan.RoleOf(id) != nil {
			continue
		}
		_, role, _, _ := id.Parts()
		if removed[role] == nil {
			removed[role] = map[string]bool{}
		}
		removed[role][k.Cluster] = true
	}
	return removed
}

// typesChanged finds roles whose replicas may serve with another componentType. The schema compares a role with the one that the
// last edit had, which may have been refused because it lacked the role.
func (r *ObservedState) typesChanged() field.ErrorList {
	former := map[*plan.Role]v1alpha1.ComponentType{}
	for k, id := range r.thatMayServe() {
		if was, of := r.typeOf(k), r.plan.RoleOf(id); of != nil && former[of] == "" && was != of.Type {
			former[of] = was
		}
	}
	var errs field.ErrorList
	for _, of := range r.plan.Roles {
		if was := former[of]; was != "" {
			errs = append(errs, field.Invalid(of.Path().Child("componentType"), of.Type, fmt.Sprintf(
				"cannot be changed: its replicas run as %s. Add a role with another name", was)))
		}
	}
	return errs
}

// rolesNotReady returns the roles that do not serve anywhere, or not in one of some clusters although they
// are to run there. Requests that reach a cluster stay in it.
func (r *ObservedState) rolesNotReady(in map[string]bool) []string {
	type role struct{ cluster, name string }
	serves, anywhere, waits := map[role]bool{}, map[string]bool{}, map[string]bool{}
	for k, id := range observedReplicas(r.req) {
		if _, name, _, ok := id.Parts(); ok && !serves[role{k.Cluster, name}] && r.Replica(k).Serving {
			serves[role{k.Cluster, name}], anywhere[name] = true, true
		}
	}
	for _, of := range r.plan.Roles {
		if of.Replicas > 0 && !anywhere[of.Name] {
			waits[of.Name] = true
			continue
		}
		for i := range r.plan.Clusters {
			c := &r.plan.Clusters[i]
			name := c.Target.Cluster
			if in[name] && !c.Leaving && wants(c, of) && !serves[role{name, of.Name}] {
				waits[of.Name+" in "+text.Cluster(name)] = true
			}
		}
	}
	all := slices.Sorted(maps.Keys(waits))
	if len(all) == 0 {
		all = r.nothingLeft(slices.Sorted(maps.Keys(in)))
	}
	return all
}

// nothingLeft says what is missing in clusters where no role would get requests any more.
func (r *ObservedState) nothingLeft(in []string) []string {
	var all []string
	for _, name := range in {
		c := r.clusterOf(name)
		// In the fleet, requests come there until the fleet route has left it, as it does for replicas that go, or until clients have.
		// Outside the fleet, another cluster serves where this one is removed, too (servingClustersRemoved).
		if !r.staysIn(c) && (r.plan.FleetRoute != nil || r.plan.InFleet() || c != nil) {
			all = append(all, "any other role in "+text.Cluster(name))
		} else if r.noWayIn(c) {
			all = append(all, r.wayIn())
		}
	}
	return slices.Compact(all)
}

// clusterOf returns the plan of a cluster, or nil if it is none of the service's.
func (r *ObservedState) clusterOf(name string) *plan.ClusterPlan {
	for i := range r.plan.Clusters {
		if c := &r.plan.Clusters[i]; c.Target.Cluster == name {
			return c
		}
	}
	return nil
}

// noWayIn tells whether requests may come to removed workers of a cluster by a Service that goes, or that leads to no replica any more.
// Workers that the spec has may be stopped. Prefill and decode get none by it. With a router, clients that know the Service need not know the route.
func (r *ObservedState) noWayIn(c *plan.ClusterPlan) bool {
	if c == nil || !r.stays(c.Key(key.Service)) {
		return false
	}
	leads := func(of *plan.Role) bool { return of.Type == v1alpha1.ComponentTypeWorker && wants(c, of) }
	if c.Endpoint != nil && slices.ContainsFunc(r.plan.Roles, leads) {
		return false
	}
	return slices.ContainsFunc(r.req.ObservedOf(c.Target.Cluster, key.LeaderWorkerSet), func(k key.Key) bool {
		id, _ := k.ReplicaID()
		return r.plan.RoleOf(id) == nil && r.typeOf(k) == v1alpha1.ComponentTypeWorker && r.mayServe(k, id)
	})
}

// wayIn says what a service needs that has no way in.
func (r *ObservedState) wayIn() string {
	if r.plan.Router == nil {
		return "a role that gets requests without a router"
	}
	return "another role of workers that serves, because clients may still use the Service"
}

// stopsAnswering tells whether replicas may answer requests in one of some clusters, and those that are left there do not: prefill and
// decode may need each other, and an endpoint picker that picks them apart needs decode. Where the pool turns to others than
// before, each of these has to answer: the endpoint picker does not know which do.
func (r *ObservedState) stopsAnswering(in map[string]bool) bool {
	now := r.versionsIn(in)
	sendsWhole := r.plan.Router != nil && r.plan.Router.SendsWhole()
	for i := range r.plan.Clusters {
		c := &r.plan.Clusters[i]
		if c.Leaving || !in[c.Target.Cluster] {
			continue
		}
		answer, left, whole := plan.Versions.Any, plan.Versions.Any, plan.Versions.Whole
		if sendsWhole {
			answer = whole
		}
		if r.picksApart(c) {
			answer = func(v plan.Versions) bool { return v.Picked(false) }
			left = answer
		} else if former, exists := r.PoolType(c.Key(key.InferencePool)); exists && former != selectedType(c) {
			left, whole = plan.Versions.All, plan.Versions.AllWhole
		}
		stay := r.selected(c)
		if answer(now[c.Target.Cluster]) && (!left(stay) || sendsWhole && !whole(stay)) {
			return true
		}
	}
	return false
}

// versionsIn returns the versions that may serve in some clusters, by the cluster. What is being deleted may still answer, and counts.
func (r *ObservedState) versionsIn(in map[string]bool) map[string]plan.Versions {
	all := map[string]plan.Versions{}
	for name := range in {
		all[name] = plan.Versions{}
	}
	for k := range observedReplicas(r.req) {
		if in[k.Cluster] && r.Replica(k).MayServe() {
			all[k.Cluster].Add(r.typeOf(k), r.Replica(k).RunningRevision)
		}
	}
	return all
}

// whatAnswers says what a service needs in which nothing answers once some roles are removed.
func (r *ObservedState) whatAnswers() string {
	const others = "roles that answer without these, such as workers"
	if router := r.plan.Router; router != nil && router.SendsWhole() && r.plan.ChangesInPairs() {
		return others + ", or strategy: " + string(v1alpha1.StrategyPDDisaggregation) + " in the router, with which decode answers"
	}
	return others
}

// poolsNotTurned returns the InferencePools that select nothing that serves once some roles are removed, in some clusters that refuse a
// change of the pool. Where a cluster takes it, the pool turns to others when they go.
func (r *ObservedState) poolsNotTurned(in map[string]bool) []string {
	var all []string
	for i := range r.plan.Clusters {
		c := &r.plan.Clusters[i]
		if c.Leaving || !in[c.Target.Cluster] {
			continue
		}
		there, state := remote.Unwrap(r.composed(c.Key(key.InferencePool)))
		only := v1alpha1.ComponentType(poolTypeThere.Text(there))
		serves := func(replica *plan.Replica) bool {
			return replica.Role.Type == only && r.Replica(replica.Key).Serving
		}
		if state.Refused && only != "" && only != selectedType(c) && !slices.ContainsFunc(slices.Collect(c.Replicas()), serves) {
			all = append(all, "the InferencePool in "+text.Cluster(c.Target.Cluster)+", because the cluster does not take its newest spec")
		}
	}
	return all
}

// poolTypeThere is the type of role that an InferencePool selects in its cluster.
var poolTypeThere = incoming.NewPath("spec", "selector", "matchLabels", naming.LabelComponentType)

// selected are the replicas of a cluster that serve, and that its pool is to select. Until the endpoint picker is replaced, these
// may be the workers only.
func (r *ObservedState) selected(c *plan.ClusterPlan) plan.Versions {
	only, all := selectedType(c), plan.Versions{}
	for replica := range c.Replicas() {
		if state, t := r.Replica(replica.Key), replica.Role.Type; state.Serving && (only == "" || only == t) {
			all.Add(t, state.RunningRevision)
		}
	}
	return all
}

// selectedType is the type of role whose replicas the pool of a cluster is to select. Empty means all.
func selectedType(c *plan.ClusterPlan) v1alpha1.ComponentType {
	return v1alpha1.ComponentType(c.PoolSelector[naming.LabelComponentType])
}

var componentType = remote.NewDesiredPath("metadata", "labels", naming.LabelComponentType)

// typeOf returns the type of role of a replica, by the key of its LeaderWorkerSet.
func (r *ObservedState) typeOf(k key.Key) v1alpha1.ComponentType {
	return v1alpha1.ComponentType(componentType.Text(r.req.Observed(k)))
}

// staysIn tells whether a cluster is to run any replica.
func (r *ObservedState) staysIn(c *plan.ClusterPlan) bool {
	return c != nil && (c.Leaving || slices.ContainsFunc(r.plan.Roles, func(of *plan.Role) bool { return wants(c, of) }))
}

// wants tells whether a cluster is to run replicas of a role.
func wants(c *plan.ClusterPlan, of *plan.Role) bool {
	is := func(r *plan.Replica) bool { return r.Role == of }
	if slices.ContainsFunc(slices.Collect(c.Replicas()), is) || slices.ContainsFunc(slices.Collect(c.LeftOutReplicas()), is) {
		return true
	}
	return !c.Unschedulable && slices.ContainsFunc(c.Pending, func(r plan.Replica) bool { return r.Role == of })
}

// servingClustersRemoved finds clusters outside the fleet that were removed while the service serves
// there, and before it serves in a cluster that is left. All that it runs would be deleted at once. In
// the fleet, scheduling keeps a cluster until then.
func (r *ObservedState) servingClustersRemoved() field.ErrorList {
	if r.plan.Schedule != nil {
		return nil
	}
	waits := map[string]map[string]bool{}
	for i := range r.plan.Clusters {
		roles := map[string]bool{}
		for _, role := range r.plan.Roles {
			if role.Replicas > 0 {
				roles[role.Name] = true
			}
		}
		waits[r.plan.Clusters[i].Target.Cluster] = roles
	}
	removed := map[string]bool{}
	for k, id := range observedReplicas(r.req) {
		_, role, _, ok := id.Parts()
		if !ok {
			continue
		}
		roles, kept := waits[k.Cluster]
		switch {
		case kept && r.Replica(k).Serving:
			delete(roles, role)
		case !kept && r.req.Observed(k).DeletionTimestamp() == "" && r.Replica(k).MayServe():
			removed[text.Cluster(k.Cluster)] = true
		}
	}
	if len(removed) == 0 {
		return nil
	}
	var notReady []string
	for name, roles := range waits {
		if len(roles) == 0 {
			return nil
		}
		notReady = append(notReady, text.Cluster(name))
	}
	slices.Sort(notReady)
	return field.ErrorList{field.Forbidden(field.NewPath("spec", "placement", "clusters"), fmt.Sprintf(
		"must keep clusters that serve requests until another one does. Removed: %s. Not ready: %s. To move at once, %s",
		text.Names(slices.Sorted(maps.Keys(removed)), maxNames), text.Names(notReady, maxNames), r.stopFirst("the replicas of all roles", r.roleNames()...)))}
}
