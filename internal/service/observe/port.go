package observe

import (
	"fmt"
	"maps"
	"slices"

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

// An asked is which pods an object asks, and on which port. The port is 0 if it is not known. Without a kind
// it asks all types of roles, and without a role all roles.
type asked struct {
	port       int32
	kind, role string
}

// of returns what an object asks.
func (f portField) of(o incoming.Object) asked {
	in, labels := f.list.In(o), f.labels.In(o)
	if remote.IsObject(o) {
		in, labels = f.carried.In(o), f.carriedLabels.In(o)
	}
	selected := labels.GetStructValue().GetFields()
	a := asked{kind: selected[naming.LabelComponentType].GetStringValue(), role: selected[naming.LabelRoleName].GetStringValue()}
	if ports := in.GetListValue().GetValues(); len(ports) > 0 {
		a.port = int32(ports[0].GetStructValue().GetFields()[f.name].GetNumberValue())
	}
	return a
}

// selects tells whether the pods of a role are asked.
func (a asked) selects(r *plan.Role) bool {
	return (a.kind == "" || a.kind == string(r.Type)) && (a.role == "" || a.role == r.Name)
}

// requestsTurn finds pods that would get no more requests although they serve. All pods are asked on one
// port.
func (r *ObservedState) requestsTurn(objects []kube.Object) field.ErrorList {
	for _, o := range objects {
		f, has := portFields[o.Key.Kind]
		if !has || o.Key.Name != "" {
			continue
		}
		was, is := f.of(r.req.Observed(o.Key)), f.of(incoming.ObjectOf(o.Resource))
		var err *field.Error
		switch {
		case was.port == 0 || was == is:
		case was.port == is.port:
			err = r.unasked(o.Key.Cluster, was, is)
		default:
			err = r.portChanged(o.Key.Cluster, was, is.port)
		}
		if err != nil {
			return field.ErrorList{err}
		}
	}
	return nil
}

// portChanged finds pods that serve on the former port: with a former template, or because it is another
// role that has the new one.
func (r *ObservedState) portChanged(cluster string, was asked, is int32) *field.Error {
	for c, replica := range r.plan.Replicas() {
		if c.Target.Cluster != cluster || !was.selects(replica.Role) || !r.mayServe(replica.Key) {
			continue
		}
		if replica.Role.Port == was.port {
			return field.Forbidden(r.answersOn(is), fmt.Sprintf(
				"must answer on port %d, and not on %d, while role %s serves there: requests are sent to one port of all pods", was.port, is, replica.Role.Name))
		}
		if !replica.Updated {
			return field.Forbidden(replica.Role.Path(), fmt.Sprintf(
				"must answer on port %d, and not on %d, while pods of its former template serve: requests are sent to one port of all pods. To change it, %s", was.port, is, r.stopFirst("replicas", replica.Role.Name)))
		}
	}
	removed := r.removedRoles()
	for _, role := range slices.Sorted(maps.Keys(removed)) {
		if removed[role][cluster] && (was.role == "" || was.role == role) {
			return field.Forbidden(field.NewPath("spec", "roles"), fmt.Sprintf(
				"must keep role %s, which serves: requests are sent to its port %d, and the roles that are left answer on %d. To remove it, %s", role, was.port, is, r.stopFirst("its replicas", role)))
		}
	}
	return nil
}

// unasked finds pods that would be asked no more, while none of those that are still asked serves.
func (r *ObservedState) unasked(cluster string, was, is asked) *field.Error {
	var lost *plan.Role
	for c, replica := range r.plan.Replicas() {
		switch {
		case c.Target.Cluster != cluster:
		case is.selects(replica.Role) && r.Replica(replica.Key).Serving:
			return nil
		case lost == nil && was.selects(replica.Role) && !is.selects(replica.Role) && r.mayServe(replica.Key):
			lost = replica.Role
		}
	}
	if lost == nil {
		return nil
	}
	return field.Forbidden(lost.Path(), "must go on getting the requests, because it serves: roles on several ports leave them to the first one, which does not serve")
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
