package plan

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// secrets returns the names of the Secrets that the service's pods require. They are not copied to
// other clusters, because an Object would contain them in plain text.
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
	if p.Weights != nil {
		for _, s := range p.Weights.secrets() {
			found[s] = true
		}
	}
	if p.Adapters != nil {
		for _, s := range p.Adapters.secrets() {
			found[s] = true
		}
	}
	delete(found, "")
	return slices.Sorted(maps.Keys(found))
}

func addSecrets(found map[string]bool, spec *corev1.PodSpec) {
	add := func(name string, optional *bool) {
		if !ptr.Deref(optional, false) {
			found[name] = true
		}
	}
	for _, s := range spec.ImagePullSecrets {
		add(s.Name, nil)
	}
	for i := range spec.Volumes {
		volumeSecrets(&spec.Volumes[i], add)
	}
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		for _, e := range c.EnvFrom {
			if e.SecretRef != nil {
				add(e.SecretRef.Name, e.SecretRef.Optional)
			}
		}
		for _, e := range c.Env {
			if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
				add(e.ValueFrom.SecretKeyRef.Name, e.ValueFrom.SecretKeyRef.Optional)
			}
		}
	}
}

func volumeSecrets(v *corev1.Volume, add func(name string, optional *bool)) {
	if v.Secret != nil {
		add(v.Secret.SecretName, v.Secret.Optional)
	}
	if v.Projected != nil {
		for _, source := range v.Projected.Sources {
			if source.Secret != nil {
				add(source.Secret.Name, source.Secret.Optional)
			}
		}
	}
	if v.AzureFile != nil {
		add(v.AzureFile.SecretName, nil)
	}
	if ref := storageSecret(v); ref != nil {
		add(ref.Name, nil)
	}
}

// storageSecret returns the Secret by which the kubelet mounts a volume of a storage system, if it needs one.
func storageSecret(v *corev1.Volume) *corev1.LocalObjectReference {
	switch {
	case v.CSI != nil:
		return v.CSI.NodePublishSecretRef
	case v.CephFS != nil:
		return v.CephFS.SecretRef
	case v.RBD != nil:
		return v.RBD.SecretRef
	case v.ISCSI != nil:
		return v.ISCSI.SecretRef
	case v.FlexVolume != nil:
		return v.FlexVolume.SecretRef
	case v.ScaleIO != nil:
		return v.ScaleIO.SecretRef
	case v.StorageOS != nil:
		return v.StorageOS.SecretRef
	}
	return nil
}
