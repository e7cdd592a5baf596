// Package scaling renders the scale targets of the roles that have scaling, and their autoscalers.
package scaling

import (
	"fmt"
	"strconv"

	lws "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

// Render returns the InferenceRoles of a service and their autoscalers, which are beside it wherever it
// runs. An autoscaler follows once its InferenceRole is observed: without one it has nothing to scale.
func Render(p *plan.Plan) ([]kube.Object, error) {
	var all []kube.Object
	for _, r := range p.ScaledRoles() {
		s := p.Scales[r.Name]
		current := map[string]any{"replicas": int64(s.Running), "selector": selector(p, r)}
		if l := p.InferenceRoleLimit(r); l != nil {
			current["limit"] = map[string]any{"reason": l.Reason, "message": l.Message}
		}
		spec := map[string]any{"serviceName": p.Service.Name, "roleName": r.Name, "current": current}
		metadata := map[string]any{
			"name": p.ScaleTargetName(r), "namespace": p.Service.Namespace,
			"labels": labels(p, r),
		}
		if s.Written != nil {
			spec["replicas"] = int64(*s.Written)
			metadata["annotations"] = map[string]any{naming.AnnotationStartReplicas: strconv.Itoa(int(*s.Written))}
			// The API server refuses it if somebody has scaled since it was read. Crossplane then calls again
			// (internal/controller/apiextensions/composite/reconciler.go of v2.4).
			if s.Version != "" {
				metadata["resourceVersion"] = s.Version
			}
		}
		target, err := kube.Render(key.ScaleTarget(r.Name), map[string]any{
			"apiVersion": v1alpha1.APIVersion,
			"kind":       v1alpha1.KindInferenceRole,
			"metadata":   metadata,
			"spec":       spec,
		})
		if err != nil {
			return nil, err
		}
		all = append(all, target)
		if r.Autoscaler == nil || !s.Autoscales {
			continue
		}
		o, err := Autoscaler(p, r)
		if err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	return all, nil
}

// selector selects the leader pods of a role. The HorizontalPodAutoscaler refuses pods that two of them
// select (pkg/controller/podautoscaler/horizontal.go of Kubernetes v1.36).
func selector(p *plan.Plan, r *plan.Role) string {
	return fmt.Sprintf("%s=%s,%s=%s,%s=0", naming.LabelService, p.Service.Name, naming.LabelRoleName, r.Name, lws.WorkerIndexLabelKey)
}
