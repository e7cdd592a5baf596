package model

import (
	corev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
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
		objects, err := inPool(p, &state.pools[i], state.loadingIn(i), state.adapters)
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	return all, nil
}

// inPool returns the objects of the model for one pool. loading is nil without adapters.
func inPool(p *parsed, l *remote.PoolLocation, loading *loading, adapters []adapter) ([]kube.Object, error) {
	meta := kube.Metadata{Name: naming.ModelObject(l.Pool, p.spec.ModelName), Namespace: l.Target.Namespace, Labels: p.labels()}
	var all []kube.Object
	add := func(k key.Key, v any) error {
		o, err := encode(p, k, v)
		all = append(all, o)
		return err
	}
	if p.model.Priority != nil {
		if err := add(objectiveKey(l.Target.Cluster), p.model.Objective(meta, l.Pool)); err != nil {
			return nil, err
		}
	}
	m, serves := p.model, true
	if loading != nil {
		m, serves = loading.served(p, adapters)
		meta.Annotations = loading.annotations()
		for i := range loading.jobs {
			o, err := loading.jobs[i].render(p, l.Target.Namespace)
			if err != nil {
				return nil, err
			}
			all = append(all, o)
		}
	}
	if serves {
		if err := add(rewriteKey(l.Target.Cluster), m.Rewrite(meta, l.Pool)); err != nil {
			return nil, err
		}
	}
	if !l.Target.Remote() {
		return all, nil
	}
	return elsewhere(p, l, loading, all)
}

// elsewhere returns objects as Objects for another cluster, and what finds and observes the pods of Jobs there.
func elsewhere(p *parsed, l *remote.PoolLocation, loading *loading, objects []kube.Object) ([]kube.Object, error) {
	all := make([]kube.Object, 0, len(objects))
	for _, o := range objects {
		w, err := remote.Wrap(o, p.identity, l.Target, l.Abandoned)
		if err != nil {
			return nil, err
		}
		all = append(all, w)
	}
	if loading != nil && loading.findsPods {
		observed, err := loading.observed(p, l.Target)
		if err != nil {
			return nil, err
		}
		all = append(all, observed...)
	}
	for i := range all {
		all[i] = remote.WithLabels(all[i], p.labels())
		all[i].Resource = composite.Decorate(all[i].Resource, p.input.Labels, p.input.Annotations)
	}
	return all, nil
}

func encode(p *parsed, k key.Key, v any) (kube.Object, error) {
	o, err := kube.Render(k, v)
	o.Resource = composite.Decorate(o.Resource, p.input.Labels, p.input.Annotations)
	return o, err
}
