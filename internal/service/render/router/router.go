/*
Package router renders what is between clients and pods. That is the endpoint picker with all
that it needs to run, the InferencePool, the HTTPRoute, the Gateway, and the objects of the
models.
*/
package router

import (
	"fmt"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

// The ports of the endpoint picker, which are also the defaults of its flags.
const (
	portExtProc = 9002
	portHealth  = 9003
)

// A rendering is the router in one cluster. All objects have names, because they refer to each
// other by them.
type rendering struct {
	plan    *plan.Plan
	cluster *plan.ClusterPlan
	router  *plan.Router
}

// An object is what is encoded under a key.
type object struct {
	key   key.Key
	value any
}

// Render returns the objects of the router in one cluster.
func Render(p *plan.Plan, cluster *plan.ClusterPlan) ([]kube.Object, error) {
	r := &rendering{plan: p, cluster: cluster, router: p.Router}
	deployment, err := r.deployment()
	if err != nil {
		return nil, fmt.Errorf("cannot render the Deployment of the endpoint picker: %w", err)
	}
	objects := []object{
		{cluster.Key(key.ServiceAccount, "epp"), r.serviceAccount()},
		{cluster.Key(key.Role, "epp"), r.role()},
		{cluster.Key(key.RoleBinding, "epp"), r.roleBinding()},
		{cluster.ConfigKey(), r.configMap()},
		{cluster.DeploymentKey(), deployment},
		{cluster.Key(key.Service, "epp"), r.service()},
		{cluster.Key(key.InferencePool), r.pool()},
	}
	if r.highlyAvailable() {
		objects = append(objects, object{cluster.Key(key.PodDisruptionBudget, "epp"), r.disruptionBudget()})
	}
	if r.router.DestinationRule {
		objects = append(objects, object{cluster.Key(key.DestinationRule, "epp"), r.destinationRule()})
	}
	if r.router.HasGateway {
		objects = append(objects, object{cluster.Key(key.Gateway), r.gateway()})
	}
	if r.router.HasRoute {
		objects = append(objects, object{cluster.Key(key.HTTPRoute), r.route()})
	}
	return encodeAll(cluster, append(objects, r.models()...))
}

// encodeAll encodes objects of one cluster, with the label of the service.
func encodeAll(cluster *plan.ClusterPlan, objects []object) ([]kube.Object, error) {
	enc := &kube.Encoder{}
	labels, err := enc.Encode(map[string]string{naming.LabelService: cluster.Base})
	if err != nil {
		return nil, fmt.Errorf("cannot render the labels: %w", err)
	}
	shared := structpb.NewStructValue(labels)
	all := make([]kube.Object, 0, len(objects))
	for _, o := range objects {
		s, err := enc.Encode(o.value)
		if err != nil {
			return nil, fmt.Errorf("cannot render %q: %w", o.key, err)
		}
		all = append(all, kube.Object{Key: o.key, Resource: kube.With(s, shared, "metadata", "labels")})
	}
	return all, nil
}

// highlyAvailable tells whether there are several endpoint pickers, which elect a leader.
func (r *rendering) highlyAvailable() bool { return r.router.Replicas > 1 }

// ownLabels are labels that only the endpoint picker's pods have. The function sets them on
// every pod of a service, over those of a template. So a tenant's pod with the label app gets
// neither the gateways' requests nor the disruption budget.
func (r *rendering) ownLabels() map[string]string {
	labels := r.podLabels()
	labels[naming.LabelService] = r.cluster.Base
	labels[naming.LabelComponentType] = string(v1alpha1.ComponentTypeRouter)
	return labels
}

// podLabels are the Deployment's selector, which is immutable.
func (r *rendering) podLabels() map[string]string {
	return map[string]string{naming.LabelApp: r.cluster.EPPName()}
}

func (r *rendering) meta(name string) kube.Metadata {
	return kube.Metadata{Name: name, Namespace: r.cluster.Target.Namespace}
}
