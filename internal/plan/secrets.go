package plan

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// secrets are the names of the Secrets that the service's pods cannot do without. They
// are not carried to other clusters: an Object would have them in plain text.
func (p *Plan) secrets() []string {
	found := map[string]bool{}
	for _, r := range p.Roles {
		addSecrets(found, &r.Leader.Spec)
		addSecrets(found, &r.Worker.Spec)
	}
	if p.Router != nil {
		for _, s := range p.Router.Pod.ImagePullSecrets {
			found[s.Name] = true
		}
	}
	delete(found, "")
	return slices.Sorted(maps.Keys(found))
}

func addSecrets(found map[string]bool, spec *corev1.PodSpec) {
	for _, s := range spec.ImagePullSecrets {
		found[s.Name] = true
	}
	for i := range spec.Volumes {
		v := &spec.Volumes[i]
		if s := v.Secret; s != nil && !ptr.Deref(s.Optional, false) {
			found[s.SecretName] = true
		}
		if v.Projected == nil {
			continue
		}
		for _, source := range v.Projected.Sources {
			if s := source.Secret; s != nil && !ptr.Deref(s.Optional, false) {
				found[s.Name] = true
			}
		}
	}
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		for _, e := range c.EnvFrom {
			if s := e.SecretRef; s != nil && !ptr.Deref(s.Optional, false) {
				found[s.Name] = true
			}
		}
		for _, e := range c.Env {
			if e.ValueFrom == nil {
				continue
			}
			if s := e.ValueFrom.SecretKeyRef; s != nil && !ptr.Deref(s.Optional, false) {
				found[s.Name] = true
			}
		}
	}
}
