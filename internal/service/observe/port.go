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

// A portField is where an object has the labels of the pods that get its requests, and the one port of all of
// them.
type portField struct {
	list, labels remote.DesiredPath
	name         string
}

// portFields by the kind of the object, as its key has it.
var portFields = map[string]portField{
	key.InferencePool: {
		list:   remote.NewDesiredPath("spec", "targetPorts"),
		labels: remote.NewDesiredPath("spec", "selector", "matchLabels"),
		name:   "number",
	},
	key.Service: {
		list:   remote.NewDesiredPath("spec", "ports"),
		labels: remote.NewDesiredPath("spec", "selector"),
		name:   "targetPort",
	},
}

// A destination is to which pods an object sends requests, and to which port of theirs. The port is 0 if it is not known. kind is the
// type of role, and role its name. Where one is empty, the object leads to all of them.
type destination struct {
	port       int32
	kind, role string
}

// destinationOf returns where an object sends requests.
func (f portField) destinationOf(o incoming.Object) destination {
	selected := f.labels.In(o).GetStructValue().GetFields()
	d := destination{kind: selected[naming.LabelComponentType].GetStringValue(), role: selected[naming.LabelRoleName].GetStringValue()}
	if ports := f.list.In(o).GetListValue().GetValues(); len(ports) > 0 {
		d.port = int32(ports[0].GetStructValue().GetFields()[f.name].GetNumberValue())
	}
	return d
}

// selects tells whether the pods of a role get the requests.
func (d destination) selects(r *plan.Role) bool {
	return (d.kind == "" || d.kind == string(r.Type)) && (d.role == "" || d.role == r.Name)
}

// podsLoseRequests finds pods that would get no more requests although they serve, because an InferencePool or a
// Service would select others, or another port.
func (r *ObservedState) podsLoseRequests(objects []kube.Object) field.ErrorList {
	for _, o := range objects {
		f, has := portFields[o.Key.Kind]
		if !has || o.Key.Name != "" {
			continue
		}
		was, is := f.destinationOf(r.composed(o.Key)), f.destinationOf(incoming.ObjectOf(o.Resource))
		var err *field.Error
		switch {
		case was.port == 0 || was == is:
		case was.port == is.port:
			err = r.deselected(o.Key, was, is)
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
func (r *ObservedState) portChanged(cluster string, was destination, is int32) *field.Error {
	for c, replica := range r.plan.Replicas() {
		if c.Target.Cluster != cluster || !was.selects(replica.Role) || !r.Replica(replica.Key).MayServe() {
			continue
		}
		if replica.Role.Port == was.port {
			return field.Forbidden(r.answersOn(is), fmt.Sprintf(
				"must answer on port %d, and not on %d, while role %s serves there: requests are sent to one port of all pods", was.port, is, replica.Role.Name))
		}
		if !replica.Updated {
			return r.formerServes(replica.Role, was.port, is)
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

// formerServes refuses another port of a role whose pods answer on the former one.
func (r *ObservedState) formerServes(role *plan.Role, was, is int32) *field.Error {
	return field.Forbidden(role.Path(), fmt.Sprintf(
		"must answer on port %d, and not on %d, while pods of its former template serve: requests are sent to one port of all pods. To change it, %s", was, is, r.stopFirst("replicas", role.Name)))
}

// deselected finds pods that would not be selected any more. A pool may select others that serve: it does so once they take over.
// A Service of all roles would lose what the pods did that it leaves out, whatever else serves. One of a single role may select
// another, too.
func (r *ObservedState) deselected(k key.Key, was, is destination) *field.Error {
	var lost *plan.Role
	for c, replica := range r.plan.Replicas() {
		role := replica.Role
		switch {
		case c.Target.Cluster != k.Cluster:
		case (k.Kind == key.InferencePool || was.role != "" && replica.Updated) && is.selects(role) && r.Replica(replica.Key).Serving:
			return nil
		case !was.selects(role) || is.selects(role) || !r.Replica(replica.Key).MayServe():
		case role.Port != was.port && replica.Updated:
			// It never answered on that port: the object is older than this role.
		case lost == nil || role.Port != was.port:
			lost = role
		}
	}
	switch {
	case lost == nil:
		return nil
	case lost.Port != was.port:
		return r.formerServes(lost, was.port, lost.Port)
	}
	return field.Forbidden(lost.Path(), "must go on getting the requests, because it serves: roles on several ports leave them to the first one. To change that, "+r.stopFirst("its replicas", lost.Name))
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
