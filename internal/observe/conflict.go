package observe

import (
	"fmt"

	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/plan"
	"github.com/fusioninfer/function-inferenceservice/internal/require"
)

// Conflicts are the desired objects whose names are taken. Crossplane would adopt
// one that nobody controls, and delete it with the service; at one that somebody
// else controls it would stop half-way.
func (r *Reality) Conflicts(objects []kube.Object) field.ErrorList {
	var errs field.ErrorList
	for _, o := range objects {
		if r.Observed(o.Key) {
			continue
		}
		for _, e := range r.required[require.Existing(o.Key)].GetItems() {
			if err := r.conflict(o, e.GetResource()); err != nil {
				errs = append(errs, err)
			}
		}
	}
	return errs
}

// A controlled object says who controls it.
type controlled struct {
	Metadata struct {
		DeletionTimestamp string  `json:"deletionTimestamp"`
		OwnerReferences   []owner `json:"ownerReferences"`
	} `json:"metadata"`
}

type owner struct {
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
	Controller bool   `json:"controller"`
}

func (r *Reality) conflict(o kube.Object, existing *structpb.Struct) *field.Error {
	c := controlled{}
	_ = kube.Decode(existing, nil, &c) // An owner that cannot be read is none.
	whose := "to nobody"
	for _, w := range c.Metadata.OwnerReferences {
		if !w.Controller {
			continue
		}
		if w.UID != "" && w.UID == r.plan.Service.UID {
			// Ours, and composed so recently that it is not among the observed ones.
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
