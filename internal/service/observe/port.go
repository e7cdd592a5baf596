package observe

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/remote"
)

// A portField is where an object has the port on which all of its pods are asked. In an Object it is the
// manifest's, as it was desired last.
type portField struct {
	list, carried incoming.Path
	name          string
}

// portFields by the kind of the object, as its key has it.
var portFields = map[string]portField{
	key.InferencePool: {
		list:    incoming.NewPath("spec", "targetPorts"),
		carried: incoming.NewPath("spec", "forProvider", "manifest", "spec", "targetPorts"),
		name:    "number",
	},
	key.Service: {
		list:    incoming.NewPath("spec", "ports"),
		carried: incoming.NewPath("spec", "forProvider", "manifest", "spec", "ports"),
		name:    "targetPort",
	},
}

// of returns the port that an object has, or 0.
func (f portField) of(o incoming.Object) int32 {
	in := f.list.In(o)
	if remote.IsObject(o) {
		in = f.carried.In(o)
	}
	ports := in.GetListValue().GetValues()
	if len(ports) == 0 {
		return 0
	}
	return int32(ports[0].GetStructValue().GetFields()[f.name].GetNumberValue())
}

// portChanged finds pods that would get no more requests. They serve with a former template, and so on
// its port. All pods are asked on one port, which would be another one from now on.
func (r *ObservedState) portChanged(objects []kube.Object) field.ErrorList {
	for _, o := range objects {
		f, has := portFields[o.Key.Kind]
		if !has || o.Key.Name != "" {
			continue
		}
		was, is := f.of(r.req.Observed(o.Key)), f.of(incoming.ObjectOf(o.Resource))
		if was == 0 || was == is {
			continue
		}
		for c, replica := range r.plan.Replicas() {
			if c.Target.Cluster == o.Key.Cluster && !replica.Updated && r.mayServe(replica.Key) {
				return field.ErrorList{field.Forbidden(replica.Role.Path(), fmt.Sprintf(
					"must answer on port %d, and not on %d, while pods of its former template serve: requests are sent to one port of all pods. To change it, set replicas to 0 first", was, is))}
			}
		}
	}
	return nil
}
