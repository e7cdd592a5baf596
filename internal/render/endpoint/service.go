// Package endpoint renders the Service of a service that has no router.
package endpoint

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	apply "k8s.io/client-go/applyconfigurations/core/v1"
	lws "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/plan"
)

// Render returns the Service on the leaders of all workers. It cannot meet the
// headless Services that LeaderWorkerSet makes: those are named after the
// LeaderWorkerSets, which carry a role and an index as well.
func Render(d *plan.Deployment) (kube.Object, error) {
	pods := map[string]string{plan.LabelService: d.Base, lws.WorkerIndexLabelKey: "0"}
	for k, v := range d.Endpoint.Selector {
		pods[k] = v
	}
	s, err := kube.Encode(apply.Service(d.Base, d.Target.Namespace).
		WithLabels(map[string]string{plan.LabelService: d.Base}).
		WithSpec(apply.ServiceSpec().
			WithType(corev1.ServiceTypeClusterIP).
			WithSelector(pods).
			WithPorts(apply.ServicePort().
				WithName("http").
				WithPort(d.Endpoint.Port).
				WithProtocol(corev1.ProtocolTCP).
				WithTargetPort(intstr.FromInt32(d.Endpoint.Port)))))
	if err != nil {
		return kube.Object{}, fmt.Errorf("cannot render Service %q: %w", d.Base, err)
	}
	return kube.Object{Key: d.Key("service"), Resource: s}, nil
}
