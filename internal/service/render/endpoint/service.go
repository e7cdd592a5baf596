// Package endpoint renders the Service that selects the workers of an InferenceService without a router. It stays when the
// service gets a router later.
package endpoint

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	apply "k8s.io/client-go/applyconfigurations/core/v1"
	lws "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

// Render returns the Service that selects the leaders of all workers. Its name differs from
// those of the headless Services that LeaderWorkerSet makes, because these also have a role and
// an index.
func Render(cluster *plan.ClusterPlan) (kube.Object, error) {
	pods := map[string]string{naming.LabelService: cluster.Base, lws.WorkerIndexLabelKey: "0"}
	for k, v := range cluster.Endpoint.Selector {
		pods[k] = v
	}
	return kube.Render(cluster.Key(key.Service), apply.Service(cluster.Base, cluster.Target.Namespace).
		WithLabels(map[string]string{naming.LabelService: cluster.Base}).
		WithSpec(apply.ServiceSpec().
			WithType(corev1.ServiceTypeClusterIP).
			WithSelector(pods).
			WithPorts(apply.ServicePort().
				WithName("http").
				WithPort(cluster.Endpoint.Port).
				WithProtocol(corev1.ProtocolTCP).
				WithTargetPort(intstr.FromInt32(cluster.Endpoint.Port)))))
}
