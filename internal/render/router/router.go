/*
Package router renders what stands between clients and the pods: the endpoint
picker and everything it needs to run, the InferencePool, the HTTPRoute and the
Gateway, and the objects of the models.
*/
package router

import (
	"fmt"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/plan"
)

// The ports of the endpoint picker, which are also the defaults of its flags.
const (
	portExtProc = 9002
	portHealth  = 9003
	portMetrics = 9090
)

// A rendering is the router in one place. Names are set on everything because
// the objects refer to each other by them.
type rendering struct {
	p *plan.Plan
	d *plan.Deployment
	r *plan.Router
}

// An object is something to encode, under its key.
type object struct {
	key string
	of  any
}

// Render returns the objects of the router in one place.
func Render(p *plan.Plan, d *plan.Deployment) ([]kube.Object, error) {
	r := &rendering{p: p, d: d, r: p.Router}
	objects := []object{
		{d.Key("serviceaccount", "epp"), r.serviceAccount()},
		{d.Key("role", "epp"), r.role()},
		{d.Key("rolebinding", "epp"), r.roleBinding()},
		{d.Key("configmap", "epp"), r.configMap()},
		{d.Key("deployment", "epp"), r.deployment()},
		{d.Key("service", "epp"), r.service()},
		{d.Key("inferencepool"), r.pool()},
	}
	if r.highlyAvailable() {
		objects = append(objects, object{d.Key("poddisruptionbudget", "epp"), r.disruptionBudget()})
	}
	if accounts := p.SidecarAccounts(); len(accounts) > 0 {
		objects = append(objects,
			object{d.Key("role", "sidecar"), r.sidecarRole()},
			object{d.Key("rolebinding", "sidecar"), r.sidecarRoleBinding(accounts)})
	}
	if r.r.DestinationRule {
		objects = append(objects, object{d.Key("destinationrule", "epp"), r.destinationRule()})
	}
	if r.r.HasGateway {
		objects = append(objects, object{d.Key("gateway"), r.gateway()})
	}
	if r.r.HasRoute {
		objects = append(objects, object{d.Key("httproute"), r.route()})
	}
	objects = append(objects, r.models()...)

	enc := &kube.Encoder{}
	labels, err := enc.Encode(map[string]string{plan.LabelService: d.Base})
	if err != nil {
		return nil, fmt.Errorf("cannot render the labels: %w", err)
	}
	shared := structpb.NewStructValue(labels)
	all := make([]kube.Object, 0, len(objects))
	for _, o := range objects {
		s, err := enc.Encode(o.of)
		if err != nil {
			return nil, fmt.Errorf("cannot render %q: %w", o.key, err)
		}
		all = append(all, kube.Object{Key: o.key, Resource: kube.With(s, shared, "metadata", "labels")})
	}
	return all, nil
}

// highlyAvailable tells whether there are endpoint pickers to take over.
func (r *rendering) highlyAvailable() bool { return r.r.Replicas > 1 }

// ownLabels are labels of the endpoint picker's pods that no other pod of a tenant has: the
// function sets them on every pod of a service, over what a template says. A pod that has the
// label app as well gets neither the gateways' requests nor the protection from drains.
func (r *rendering) ownLabels() map[string]string {
	labels := r.podLabels()
	labels[plan.LabelService] = r.d.Base
	labels[plan.LabelComponentType] = string(v1alpha1.ComponentTypeRouter)
	return labels
}

// podLabels are what the Deployment selects its pods by, which cannot be changed later.
func (r *rendering) podLabels() map[string]string {
	return map[string]string{"app": r.d.EPPName()}
}

// A meta is the metadata of objects that are rendered without a Go module of
// their project.
type meta struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

func (r *rendering) meta(name string) meta {
	return meta{Name: name, Namespace: r.d.Target.Namespace}
}
