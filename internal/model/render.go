package model

import (
	"fmt"

	corev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/modelroute"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/remote"
)

// render returns the name lock, and what the pools get once it is held.
func render(p *parsed, state *observedState) ([]kube.Object, error) {
	lock := corev1.ConfigMap(p.lockName(), p.identity.Namespace).
		WithLabels(p.labels()).
		WithData(map[string]string{"serviceName": p.spec.ServiceName, "modelName": p.spec.ModelName})
	o, err := encode(p, lockKey, lock)
	if err != nil {
		return nil, err
	}
	all := []kube.Object{o}
	for i := range state.pools {
		objects, err := inPool(p, &state.pools[i])
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	return all, nil
}

// inPool returns the objects of the model for one pool.
func inPool(p *parsed, l *remote.PoolLocation) ([]kube.Object, error) {
	meta := modelroute.Meta{Name: naming.ModelObject(l.Pool, p.spec.ModelName), Namespace: l.Target.Namespace, Labels: p.labels()}
	values := map[key.Key]any{rewriteKey(l.Target.Cluster): p.model.Rewrite(meta, l.Pool)}
	if p.model.Priority != nil {
		values[objectiveKey(l.Target.Cluster)] = p.model.Objective(meta, l.Pool)
	}
	var all []kube.Object
	for _, k := range []key.Key{objectiveKey(l.Target.Cluster), rewriteKey(l.Target.Cluster)} {
		v, is := values[k]
		if !is {
			continue
		}
		o, err := encode(p, k, v)
		if err != nil {
			return nil, err
		}
		if l.Target.Remote() {
			if o, err = remote.Wrap(o, p.identity, l.Target, l.Abandoned); err != nil {
				return nil, err
			}
			o = remote.WithLabels(o, p.labels())
			o.Resource = composite.Decorate(o.Resource, p.input.Labels, p.input.Annotations)
		}
		all = append(all, o)
	}
	return all, nil
}

func encode(p *parsed, k key.Key, v any) (kube.Object, error) {
	s, err := kube.Encode(v)
	if err != nil {
		return kube.Object{}, fmt.Errorf("cannot render %s: %w", k, err)
	}
	return kube.Object{Key: k, Resource: composite.Decorate(s, p.input.Labels, p.input.Annotations)}, nil
}
