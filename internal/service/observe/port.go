package observe

import (
	"fmt"

	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/remote"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

// A portField is where an object has the port on which all of its pods are asked, and the labels of these
// pods. In an Object it is the manifest's, as it was desired last.
type portField struct {
	list, carried         incoming.Path
	labels, carriedLabels incoming.Path
	name                  string
}

// portFields by the kind of the object, as its key has it.
var portFields = map[string]portField{
	key.InferencePool: {
		list:          incoming.NewPath("spec", "targetPorts"),
		carried:       incoming.NewPath("spec", "forProvider", "manifest", "spec", "targetPorts"),
		labels:        incoming.NewPath("spec", "selector", "matchLabels"),
		carriedLabels: incoming.NewPath("spec", "forProvider", "manifest", "spec", "selector", "matchLabels"),
		name:          "number",
	},
	key.Service: {
		list:          incoming.NewPath("spec", "ports"),
		carried:       incoming.NewPath("spec", "forProvider", "manifest", "spec", "ports"),
		labels:        incoming.NewPath("spec", "selector"),
		carriedLabels: incoming.NewPath("spec", "forProvider", "manifest", "spec", "selector"),
		name:          "targetPort",
	},
}

// An asked is which pods an object asks, and on which port. The port is 0 if it is not known.
type asked struct {
	port   int32
	labels *structpb.Struct
}

// of returns what an object asks.
func (f portField) of(o incoming.Object) asked {
	in, labels := f.list.In(o), f.labels.In(o)
	if remote.IsObject(o) {
		in, labels = f.carried.In(o), f.carriedLabels.In(o)
	}
	a := asked{labels: labels.GetStructValue()}
	if ports := in.GetListValue().GetValues(); len(ports) > 0 {
		a.port = int32(ports[0].GetStructValue().GetFields()[f.name].GetNumberValue())
	}
	return a
}

// selects tells whether the pods of a role are asked.
func (a asked) selects(r *plan.Role) bool {
	for label, value := range map[string]string{naming.LabelComponentType: string(r.Type), naming.LabelRoleName: r.Name} {
		if want, has := a.labels.GetFields()[label]; has && want.GetStringValue() != value {
			return false
		}
	}
	return true
}

// portChanged finds pods that would get no more requests. They serve on the former port: with a former
// template, or because it is another role that has the new one. All pods are asked on one port.
func (r *ObservedState) portChanged(objects []kube.Object) field.ErrorList {
	for _, o := range objects {
		f, has := portFields[o.Key.Kind]
		if !has || o.Key.Name != "" {
			continue
		}
		was, is := f.of(r.req.Observed(o.Key)), f.of(incoming.ObjectOf(o.Resource)).port
		if was.port == 0 || was.port == is {
			continue
		}
		for c, replica := range r.plan.Replicas() {
			if c.Target.Cluster != o.Key.Cluster || !was.selects(replica.Role) || !r.mayServe(replica.Key) {
				continue
			}
			if replica.Role.Port == was.port {
				return field.ErrorList{field.Forbidden(r.answersOn(is), fmt.Sprintf(
					"must answer on port %d, and not on %d, while role %s serves there: requests are sent to one port of all pods", was.port, is, replica.Role.Name))}
			}
			if !replica.Updated {
				return field.ErrorList{field.Forbidden(replica.Role.Path(), fmt.Sprintf(
					"must answer on port %d, and not on %d, while pods of its former template serve: requests are sent to one port of all pods. To change it, set replicas to 0 first", was.port, is))}
			}
		}
	}
	return nil
}

// answersOn returns the path of the first role that answers on a port.
func (r *ObservedState) answersOn(port int32) *field.Path {
	for _, role := range r.plan.Roles {
		if role.Port == port {
			return role.Path()
		}
	}
	return field.NewPath("spec", "roles")
}
