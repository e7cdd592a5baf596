package plan

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// checkVolumes refuses generic ephemeral volumes whose claims would get more than the claim of a cache, or a
// volume that exists, which may be somebody else's.
func (p *tenantPolicy) checkVolumes(at *field.Path, volumes []corev1.Volume) field.ErrorList {
	var errs field.ErrorList
	for i := range volumes {
		if e := volumes[i].Ephemeral; e != nil && e.VolumeClaimTemplate != nil {
			errs = append(errs, p.checkClaimTemplate(at.Index(i).Child("ephemeral", "volumeClaimTemplate"), e.VolumeClaimTemplate)...)
		}
	}
	return errs
}

func (p *tenantPolicy) checkClaimTemplate(at *field.Path, t *corev1.PersistentVolumeClaimTemplate) field.ErrorList {
	const remedy = "must be left out: a volume that exists may be somebody else's, so the claim gets a new one of its class"
	var errs field.ErrorList
	if class, set := t.Annotations[corev1.BetaStorageClassAnnotation]; set {
		errs = append(errs, field.Invalid(at.Child("metadata", "annotations").Key(corev1.BetaStorageClassAnnotation), text.Value(class), "must be left out: set spec.storageClassName"))
	}
	s, at := &t.Spec, at.Child("spec")
	errs = append(errs, p.checkClass(at.Child("storageClassName"), ptr.Deref(s.StorageClassName, ""))...)
	if s.StorageClassName != nil && *s.StorageClassName == "" {
		errs = append(errs, field.Invalid(at.Child("storageClassName"), "", "must be the name of a class, or be left out: without a class, the claim gets a volume that exists, which may be somebody else's"))
	}
	if size, set := s.Resources.Requests[corev1.ResourceStorage]; set {
		errs = append(errs, p.checkSize(at.Child("resources", "requests").Key(string(corev1.ResourceStorage)), &size)...)
	}
	if s.VolumeName != "" {
		errs = append(errs, field.Invalid(at.Child("volumeName"), text.Value(s.VolumeName), remedy))
	}
	if s.Selector != nil {
		errs = append(errs, field.Forbidden(at.Child("selector"), remedy))
	}
	if r := s.DataSourceRef; r != nil && ptr.Deref(r.Namespace, p.namespace) != p.namespace {
		errs = append(errs, field.Invalid(at.Child("dataSourceRef", "namespace"), text.Value(*r.Namespace), "must be "+p.namespace+", or be left out: what is in other namespaces may be somebody else's"))
	}
	return errs
}
