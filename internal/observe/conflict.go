package observe

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/placement"
	"github.com/fusioninfer/function-inferenceservice/internal/plan"
	"github.com/fusioninfer/function-inferenceservice/internal/require"
)

// Conflicts are the desired objects whose names are taken. Crossplane would adopt
// one that nobody controls, and delete it with the service; at one that somebody
// else controls it would stop half-way.
func (r *Reality) Conflicts(objects []kube.Object) field.ErrorList {
	var errs field.ErrorList
	for _, o := range objects {
		errs = append(errs, r.neighbours(o)...)
		if r.Observed(o.Key) {
			errs = append(errs, r.remoteConflict(o)...)
			continue
		}
		for _, e := range r.required[require.Existing(o.Key)].GetItems() {
			if err := r.conflict(o, e.GetResource()); err != nil {
				errs = append(errs, err)
			}
		}
		for _, e := range r.required[require.Headless(o.Key)].GetItems() {
			if err := r.headlessConflict(o, e.GetResource()); err != nil {
				errs = append(errs, err)
			}
		}
	}
	return append(errs, r.regrouped()...)
}

// remoteConflict finds what can only be told once a remote object is observed:
// that it has a controller there, which provider-kubernetes never gives one, or
// that the Object carries another one than is wanted now. Crossplane would keep
// the Object under its name and let it carry the new one, and nobody would
// remember the old.
func (r *Reality) remoteConflict(o kube.Object) field.ErrorList {
	c := plan.ClusterOf(o.Key)
	if c == "" {
		return nil
	}
	at := field.NewPath("spec", "placement", "clusters").Key(c)
	observed := r.observed[o.Key].GetResource()
	if was := kube.Lookup(observed, "metadata", "name").GetStringValue(); was != "" && was != o.Name() {
		return field.ErrorList{field.Invalid(at, c,
			"runs with another namespace or providerConfigRef, and cannot move: give the cluster another name, which makes everything there anew and deletes what is here")}
	}
	remote, _ := placement.Unwrap(observed)
	if whose := controller(remote); whose != nil {
		return field.ErrorList{field.Invalid(at, c, fmt.Sprintf("%s %s there belongs to %s %q: %s", kube.Lookup(remote, "kind").GetStringValue(),
			kube.Lookup(remote, "metadata", "name").GetStringValue(), whose.Kind, whose.Name, "give this service another name, or delete what is there"))}
	}
	return nil
}

// headlessConflict finds a Service that has the name of the one that
// LeaderWorkerSet makes for its pods. It would be used as it is, and the pods
// would not find their leader.
func (r *Reality) headlessConflict(o kube.Object, existing *structpb.Struct) *field.Error {
	whose := controller(existing)
	if whose != nil && whose.Kind == o.Kind() && whose.Name == o.Name() {
		return nil
	}
	at, remedy := r.pathOf(o.Key)
	return field.Invalid(at, fmt.Sprintf("%s %s", o.Kind(), o.Name()),
		"needs a Service of its own name for its pods, and there is another one; "+remedy)
}

// neighbours finds LeaderWorkerSets of others of which one StatefulSet would have the
// name of one of an object's. LeaderWorkerSet would write both into one, and neither
// would ever be ready. Roles of one service that meet are refused by the API's validation.
func (r *Reality) neighbours(o kube.Object) field.ErrorList {
	var errs field.ErrorList
	refuse := func(other *structpb.Struct, why string) {
		at, remedy := r.pathOf(o.Key)
		errs = append(errs, field.Invalid(at, "LeaderWorkerSet "+nameOf(o.Resource), fmt.Sprintf(why, nameOf(other))+"; "+remedy))
	}
	for _, e := range r.required[require.Above(o.Key)].GetItems() {
		if other := e.GetResource(); r.foreign(other) && size(other) > 1 {
			refuse(other, "has the name of the workers' StatefulSet of LeaderWorkerSet %s")
		}
	}
	for _, e := range r.required[require.Below(o.Key)].GetItems() {
		if other := e.GetResource(); r.foreign(other) {
			refuse(other, "needs a StatefulSet for its workers that has the name of LeaderWorkerSet %s")
		}
	}
	return errs
}

// foreign tells what this service does not control.
func (r *Reality) foreign(o *structpb.Struct) bool {
	uid := ControllerUID(o)
	return uid == "" || uid != r.plan.Service.UID
}

// inside is what an object is about: itself, or what it carries to another cluster.
func inside(o *structpb.Struct) *structpb.Struct {
	if m := placement.Manifest(o); m != nil {
		return m
	}
	return o
}

func nameOf(o *structpb.Struct) string {
	return kube.Lookup(inside(o), "metadata", "name").GetStringValue()
}

// size is the number of pods in each group of a LeaderWorkerSet.
func size(o *structpb.Struct) float64 {
	return kube.Lookup(inside(o), "spec", "leaderWorkerTemplate", "size").GetNumberValue()
}

// regrouped finds a service whose spec.replicas was set or unset although its
// schema refuses that. Everything it runs would be renamed.
func (r *Reality) regrouped() field.ErrorList {
	parts := 2
	if r.plan.Service.Grouped {
		parts = 3
	}
	for key := range r.observed {
		_, local := plan.SplitKey(key)
		if strings.HasPrefix(local, "leaderworkerset/") && strings.Count(local, "/") != parts {
			return field.ErrorList{field.Forbidden(field.NewPath("spec", "replicas"),
				"cannot be set or unset on an existing service: that would rename, and so restart, everything it runs")}
		}
	}
	return nil
}

// annotationKey has the key of a composed resource.
const annotationKey = "crossplane.io/composition-resource-name"

// A controlled object says who controls it.
type controlled struct {
	Metadata struct {
		DeletionTimestamp string            `json:"deletionTimestamp"`
		Annotations       map[string]string `json:"annotations"`
		OwnerReferences   []owner           `json:"ownerReferences"`
	} `json:"metadata"`
}

type owner struct {
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
	Controller bool   `json:"controller"`
}

// controller is who controls an object, or nil.
func controller(o *structpb.Struct) *owner {
	c := controlled{}
	_ = kube.Decode(o, nil, &c) // An owner that cannot be read is none.
	for i := range c.Metadata.OwnerReferences {
		if c.Metadata.OwnerReferences[i].Controller {
			return &c.Metadata.OwnerReferences[i]
		}
	}
	return nil
}

// ControllerUID is the UID of who controls an object, or nothing.
func ControllerUID(o *structpb.Struct) string {
	if c := controller(o); c != nil {
		return c.UID
	}
	return ""
}

func (r *Reality) conflict(o kube.Object, existing *structpb.Struct) *field.Error {
	c := controlled{}
	_ = kube.Decode(existing, nil, &c) // What cannot be read is not there.
	whose := "to nobody"
	if w := controller(existing); w != nil {
		// Ours, and composed so recently that it is not among the observed ones. A
		// controller that had this kind before left no key: its objects carry the
		// same UID, and are not ours.
		if w.UID != "" && w.UID == r.plan.Service.UID && c.Metadata.Annotations[annotationKey] == o.Key {
			return nil
		}
		whose = fmt.Sprintf("to %s %q", w.Kind, w.Name)
	}
	at, remedy := r.pathOf(o.Key)
	if c.Metadata.DeletionTimestamp != "" {
		remedy = "it is being deleted, which this service waits for"
	}
	return field.Invalid(at, fmt.Sprintf("%s %s", o.Kind(), o.Name()),
		fmt.Sprintf("already exists and belongs %s; %s", whose, remedy))
}

// pathOf is the part of the spec that leads to an object's name, and what to do
// when the name is taken.
func (r *Reality) pathOf(key string) (*field.Path, string) {
	const or = ", or delete what is there"
	for i := range r.plan.Deployments {
		for j := range r.plan.Deployments[i].Groups {
			for k := range r.plan.Deployments[i].Groups[j].Replicas {
				if rep := &r.plan.Deployments[i].Groups[j].Replicas[k]; rep.Key == key {
					return rep.Role.Path().Child("name"), "give this role or this service another name" + or
				}
			}
		}
	}
	if c := plan.ClusterOf(key); c != "" {
		return field.NewPath("spec", "placement", "clusters").Key(c), "give this service another name" + or
	}
	return field.NewPath("metadata", "name"), "give this service another name" + or
}
