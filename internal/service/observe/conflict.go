package observe

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/remote"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
	"github.com/fusioninfer/function-inferenceservice/internal/service/require"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// Conflicts are about desired objects whose names other objects have.
type Conflicts struct {
	// Refused are those that let nothing be applied.
	Refused field.ErrorList
	// Deferred are the objects of the replicas that the plan leaves out.
	Deferred []plan.Deferred
	// Spared are objects without which the service runs as well, and Warnings tell of them.
	Spared   []plan.Deferred
	Warnings []plan.Warning
}

// Conflicts returns the desired objects whose names other objects have. Crossplane would
// adopt an object without a controller, and delete it with the service. If an object has
// another controller, Crossplane would stop after it has applied only some of the objects.
//
// A service that runs goes on without what scaling adds, so that no scaling makes it invalid.
func (r *ObservedState) Conflicts(objects []kube.Object) Conflicts {
	all, groups, texts := Conflicts{}, r.leftOut(), map[*plan.Group][]string{}
	for _, o := range objects {
		errs, group := r.conflictsOf(o), groups[o.Key]
		switch {
		case group != nil:
			for _, err := range errs {
				texts[group] = append(texts[group], err.Error())
			}
		case len(errs) > 0 && plan.IsSpared(o.Key) && r.runs() && r.Observed(o.Key):
			// It stays. Without it, provider-kubernetes would delete what belongs to somebody else, and the next call would make it again.
			for _, err := range errs {
				all.Warnings = append(all.Warnings, plan.Warning{Path: err.Field, Message: err.Detail})
			}
		case len(errs) > 0 && plan.IsSpared(o.Key) && r.runs():
			all.Spared = append(all.Spared, plan.Deferred{Key: o.Key})
			for _, err := range errs {
				all.Warnings = append(all.Warnings, plan.Warning{Path: err.Field, Message: fmt.Sprintf("%v is left out. It %s", err.BadValue, err.Detail)})
			}
		default:
			all.Refused = append(all.Refused, errs...)
		}
	}
	for _, o := range objects {
		if group := groups[o.Key]; group != nil {
			all.Deferred = append(all.Deferred, plan.Deferred{Key: o.Key, Reason: plan.DeferredForName, Message: text.Join(texts[group], text.MaxMessage)})
		}
	}
	return all
}

// Taken tells whether somebody else has the name of a LeaderWorkerSet or PodGroup that does not exist, while the service runs. Before
// that, nothing is lost if the service is refused.
func (r *ObservedState) Taken(k key.Key, name string) bool {
	o := kube.With(&structpb.Struct{}, structpb.NewStringValue(name), "metadata", "name")
	o = kube.With(o, structpb.NewStringValue("LeaderWorkerSet"), "kind") // Only the Services of these need it.
	return len(r.conflictsOf(kube.Object{Key: k, Resource: o})) > 0 && r.runs()
}

// leftOut returns the groups of the replicas that the plan leaves out, by the keys of their objects.
func (r *ObservedState) leftOut() map[key.Key]*plan.Group {
	all := map[key.Key]*plan.Group{}
	for i := range r.plan.Clusters {
		for j := range r.plan.Clusters[i].LeftOut {
			g := &r.plan.Clusters[i].LeftOut[j]
			if g.PodGroup != nil {
				all[g.PodGroup.Key] = g
			}
			for k := range g.Replicas {
				all[g.Replicas[k].Key] = g
			}
		}
	}
	return all
}

// conflictsOf returns why a desired object cannot have its name.
func (r *ObservedState) conflictsOf(o kube.Object) field.ErrorList {
	errs := r.nameConflicts(o)
	if r.Observed(o.Key) {
		return append(errs, r.remoteConflict(o)...)
	}
	errs = append(errs, r.ownWorkers(o)...)
	existing, _ := r.req.Required(composite.Existing(o.Key))
	for _, e := range existing {
		if err := r.conflict(o, e); err != nil {
			errs = append(errs, err)
		}
	}
	services, _ := r.req.Required(require.Headless(o.Key))
	for _, e := range services {
		if err := r.headlessConflict(o, e); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// ForbiddenChanges returns changes of the spec that what runs forbids. The schema refuses some of them
// too, but an XR may come without validation by it.
func (r *ObservedState) ForbiddenChanges(objects []kube.Object) field.ErrorList {
	var errs field.ErrorList
	for _, o := range objects {
		if c := o.Key.Cluster; c != "" && r.moved(o) {
			errs = append(errs, field.Invalid(field.NewPath("spec", "placement", "clusters").Key(c), c,
				"runs with another namespace or providerConfigRef, and cannot move: add a cluster with another name, and remove this one once the other serves"))
		}
	}
	if grouping := r.groupingChanged(); len(grouping) > 0 {
		return append(errs, grouping...)
	}
	errs = append(errs, r.servingClustersRemoved()...)
	errs = append(errs, r.servingRolesRemoved()...)
	errs = append(errs, r.typesChanged()...)
	errs = append(errs, r.routesRemoved()...)
	errs = append(errs, r.wholeRequestsEnd()...)
	errs = append(errs, r.wholeRequestsBegin()...)
	errs = append(errs, r.forgetsModels()...)
	errs = append(errs, r.adapterCacheChanged()...)
	errs = append(errs, r.plan.RefuseFullRoute()...)
	return append(errs, r.podsLoseRequests(objects)...)
}

// moved tells whether an observed Object is for another remote object than the desired one.
// Crossplane would keep the Object and replace its manifest, and the old remote object would
// stay forever.
func (r *ObservedState) moved(o kube.Object) bool {
	was := r.req.Observed(o.Key).Name()
	return was != "" && was != o.Name()
}

// remoteConflict finds a remote object that has a controller in its cluster.
// provider-kubernetes sets none, so another controller owns the object. This shows only once
// the object is observed.
func (r *ObservedState) remoteConflict(o kube.Object) field.ErrorList {
	c := o.Key.Cluster
	if c == "" || o.Key.OnlyObserved() || r.moved(o) {
		return nil
	}
	at := field.NewPath("spec", "placement", "clusters").Key(c)
	found, _ := remote.Unwrap(r.req.Observed(o.Key))
	if whose := composite.Controller(found); whose != nil {
		return field.ErrorList{field.Invalid(at, c, fmt.Sprintf("%s %s there belongs to %s %q: %s",
			found.Kind(), found.Name(), whose.Kind, whose.Name, r.remedy("this service", found)))}
	}
	return nil
}

// headlessConflict finds a Service with the name of the one that LeaderWorkerSet creates for
// its pods. LeaderWorkerSet would use it as it is, and workers would not resolve their
// leader.
func (r *ObservedState) headlessConflict(o kube.Object, existing incoming.Object) *field.Error {
	whose := composite.Controller(existing)
	if whose != nil && whose.Kind == o.Kind() && whose.Name == o.Name() {
		return nil
	}
	at, renamed := r.pathOf(o.Key)
	return field.Invalid(at, fmt.Sprintf("%s %s", o.Kind(), o.Name()),
		"needs a Service of its own name for its pods, and another Service has that name; "+r.remedy(renamed, existing))
}

// nameConflicts finds LeaderWorkerSets of others that need a StatefulSet with the same name
// as one of ours. LeaderWorkerSet would write both into one StatefulSet, and neither would
// ever be ready. Validation of the API refuses such names within one service.
func (r *ObservedState) nameConflicts(o kube.Object) field.ErrorList {
	var errs field.ErrorList
	refuse := func(other incoming.Object, why string) {
		at, renamed := r.pathOf(o.Key)
		errs = append(errs, field.Invalid(at, "LeaderWorkerSet "+nameInside(o), fmt.Sprintf(why, neighbourView.In(other).Metadata.Name)+"; "+r.remedy(renamed, other)))
	}
	owners, _ := r.req.Required(require.WorkersOwner(o.Key))
	for _, e := range owners {
		if r.notControlledByService(e) && neighbourView.In(e).Spec.LeaderWorkerTemplate.Size > 1 {
			refuse(e, "has the name of the workers' StatefulSet of LeaderWorkerSet %s")
		}
	}
	named, _ := r.req.Required(require.WorkersName(o.Key))
	for _, e := range named {
		if r.notControlledByService(e) {
			refuse(e, "needs a StatefulSet for its workers that has the name of LeaderWorkerSet %s")
		}
	}
	return errs
}

// ownWorkers finds a LeaderWorkerSet of the service whose workers still have the name of one to be made. Validation goes by the number of
// nodes that the spec has now, and a rollout gives it to the LeaderWorkerSet later.
func (r *ObservedState) ownWorkers(o kube.Object) field.ErrorList {
	owner := (&plan.Replica{Name: nameInside(o)}).WorkersOwner()
	if o.Key.Kind != key.LeaderWorkerSet || owner == "" || !r.withWorkers()[setName{o.Key.Cluster, owner}] {
		return nil
	}
	at, _ := r.pathOf(o.Key)
	return field.ErrorList{field.Invalid(at, "LeaderWorkerSet "+nameInside(o),
		fmt.Sprintf("has the name of the workers' StatefulSet of LeaderWorkerSet %s; it is made once that one runs on one node", owner))}
}

// A setName is the name of a LeaderWorkerSet in a cluster.
type setName struct{ cluster, name string }

// setsWithWorkers returns the observed LeaderWorkerSets with more than one node.
func setsWithWorkers(req incoming.Request) map[setName]bool {
	all := map[setName]bool{}
	for k := range observedReplicas(req) {
		if own := neighbourView.In(req.Observed(k)); own.Spec.LeaderWorkerTemplate.Size > 1 {
			all[setName{k.Cluster, own.Metadata.Name}] = true
		}
	}
	return all
}

// notControlledByService tells whether this service does not control an object.
func (r *ObservedState) notControlledByService(o incoming.Object) bool {
	uid := composite.ControllerUID(o)
	return uid == "" || uid != r.plan.Service.UID
}

// composedAs tells whether an owner composed an object under a key. Objects of a controller that had this kind before
// Crossplane have the same UID and no key.
func composedAs(owner string, k key.Key, o incoming.Object) bool {
	return owner != "" && composite.ControllerUID(o) == owner && composite.KeyOf(o) == k
}

// nameInside is the name of a desired object, or of the object in its manifest.
func nameInside(o kube.Object) string {
	if m := remote.Manifest(o.Resource); m != nil {
		o.Resource = m
	}
	return o.Name()
}

// A neighbour is the part of a LeaderWorkerSet from which the names of its StatefulSets
// follow. It has workers if the size of its groups is more than 1.
type neighbour struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		LeaderWorkerTemplate struct {
			Size int32 `json:"size"`
		} `json:"leaderWorkerTemplate"`
	} `json:"spec"`
}

var neighbourView = remote.NewDesiredView[neighbour]()

// groupingChanged finds a service whose spec.replicas was set or unset after it was created.
// That would rename everything that it runs.
func (r *ObservedState) groupingChanged() field.ErrorList {
	for _, replica := range observedReplicas(r.req) {
		if replica.Grouped() != r.plan.Service.Grouped {
			return field.ErrorList{field.Forbidden(field.NewPath("spec", "replicas"),
				"cannot be added to an existing service or removed from it: that would rename, and so restart, everything that it runs")}
		}
	}
	return nil
}

func (r *ObservedState) conflict(o kube.Object, existing incoming.Object) *field.Error {
	if composedAs(r.plan.Service.UID, o.Key, existing) {
		return nil // The service has just composed this object, and it is not observed yet.
	}
	whose := "to nobody"
	if w := composite.Controller(existing); w != nil {
		whose = fmt.Sprintf("to %s %q", w.Kind, w.Name)
	}
	at, renamed := r.pathOf(o.Key)
	remedy := r.remedy(renamed, existing)
	if existing.DeletionTimestamp() != "" {
		remedy = "it is being deleted, which this service waits for"
	}
	return field.Invalid(at, fmt.Sprintf("%s %s", o.Kind(), o.Name()),
		fmt.Sprintf("already exists and belongs %s; %s", whose, remedy))
}

// remedy says how users resolve a conflict with an object that exists. What belongs to another service or cache may serve, and would be
// made again.
func (r *ObservedState) remedy(renamed string, existing incoming.Object) string {
	others := []string{v1alpha1.KindInferenceService, v1alpha1.KindClaimedService, v1alpha1.KindModelCache, v1alpha1.KindClaimedCache}
	rename := "give " + renamed + " another name"
	if c := composite.Controller(existing); c != nil && slices.Contains(others, c.Kind) && r.notControlledByService(existing) {
		return rename
	}
	return rename + ", or delete what is there"
}

// pathOf returns the field from which the name of an object follows, and what has to be renamed for another one.
func (r *ObservedState) pathOf(k key.Key) (*field.Path, string) {
	if id, is := k.ReplicaID(); is {
		if role := r.plan.RoleOf(id); role != nil {
			return role.Path().Child("name"), "this role or this service"
		}
	}
	for _, role := range r.plan.ScaledRoles() {
		if k == key.ScaleTarget(role.Name) || slices.ContainsFunc(key.AutoscalerKinds(), func(kind string) bool { return k == key.Autoscaler(kind, role.Name) }) {
			return role.Path().Child("scaling"), "this role"
		}
	}
	switch c := k.Cluster; {
	case r.plan.Service.OfCache:
		return field.NewPath("metadata", "name"), "this ModelCache"
	case c != "":
		return field.NewPath("spec", "placement", "clusters").Key(c), "this service"
	}
	return field.NewPath("metadata", "name"), "this service"
}
