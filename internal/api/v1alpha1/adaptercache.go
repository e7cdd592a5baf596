package v1alpha1

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
)

// An AdapterCache is a claim for LoRA adapters, in each cluster that the service runs in. InferenceModels
// say which adapters are loaded into it.
// +kubebuilder:validation:XValidation:rule="self.size == oldSelf.size",fieldPath=".size",message="cannot be changed: the engines mount the claim; to grow it, change the PersistentVolumeClaim itself, in each cluster"
// +kubebuilder:validation:XValidation:rule="has(self.storageClassName) == has(oldSelf.storageClassName) && (!has(self.storageClassName) || self.storageClassName == oldSelf.storageClassName)",fieldPath=".storageClassName",message="cannot be changed: remove adapterCache, wait until the rollout is complete, and add it again; requests for adapters fail meanwhile"
// +kubebuilder:validation:XValidation:rule="(has(self.accessMode) ? self.accessMode : 'ReadWriteMany') == (has(oldSelf.accessMode) ? oldSelf.accessMode : 'ReadWriteMany')",fieldPath=".accessMode",message="cannot be changed: remove adapterCache, wait until the rollout is complete, and add it again; requests for adapters fail meanwhile"
type AdapterCache struct {
	// Size of the claim, at least 1Mi. It has to hold all adapters, and those that replace
	// them. It cannot be changed.
	Size resource.Quantity `json:"size"`

	// StorageClassName of the claim. The platform team says which ones are allowed. It cannot be
	// changed. Defaults to the platform team's class, else to the cluster's.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	StorageClassName string `json:"storageClassName,omitempty"`

	// AccessMode of the claim. With ReadWriteOnce, all pods of the service and the Jobs that load
	// adapters have to be on one node. It cannot be changed. Defaults to ReadWriteMany.
	// +optional
	// +kubebuilder:validation:Enum=ReadWriteMany;ReadWriteOnce
	AccessMode corev1.PersistentVolumeAccessMode `json:"accessMode,omitempty"`

	// TokenSecretRef is the key of a Secret with the token for gated adapters of a hub. Adapters
	// of all InferenceModels are loaded with it. The Secret has to be in the service's namespace,
	// in each cluster that the service runs in.
	// +optional
	TokenSecretRef *SecretKeyRef `json:"tokenSecretRef,omitempty"`

	// CredentialsSecretRef names a Secret with the keys AWS_ACCESS_KEY_ID and
	// AWS_SECRET_ACCESS_KEY, and AWS_SESSION_TOKEN if there is one. Adapters of all
	// InferenceModels are loaded with them. The Secret has to be in the service's namespace, in
	// each cluster that the service runs in. Without it, buckets are read without credentials.
	// +optional
	CredentialsSecretRef *SecretRef `json:"credentialsSecretRef,omitempty"`
}

// An AdapterCacheStatus says where the adapters of InferenceModels are loaded, and how. After adapterCache was
// removed, it has only the model, until no engine can serve adapters any more.
type AdapterCacheStatus struct {
	// ModelName is the model as the commands of the engines have it: a name in a hub, or a path. An
	// adapter has to have it as base_model_name_or_path.
	ModelName string `json:"modelName"`

	// ModelSource is the uri of spec.model, or that of its ModelCache. The tag and the digest of an
	// image are left out: like a revision, they keep adapters. Absent if it is not known.
	// +optional
	ModelSource string `json:"modelSource,omitempty"`

	// MaxRank is the highest rank of an adapter that all engines serve, by --max-lora-rank. An adapter
	// with a higher one is not loaded. During a rollout it is the lower one of the former rank and the
	// new one. Absent if the engines' commands do not say it.
	// +optional
	MaxRank int32 `json:"maxRank,omitempty"`

	// FormerMaxRank is the highest maxRank so far, if that is more than maxRank. Adapters of such a rank
	// may be loaded, and engines refuse requests for them.
	// +optional
	FormerMaxRank int32 `json:"formerMaxRank,omitempty"`

	// RunAsUser is the user of the Jobs that load adapters, as far as possible that of the engines.
	// Absent without spec.adapterCache: no adapter is loaded then.
	// +optional
	RunAsUser int64 `json:"runAsUser,omitempty"`

	// RunAsGroup is the group of these Jobs.
	// +optional
	RunAsGroup int64 `json:"runAsGroup,omitempty"`

	// FSGroup is the group of their volumes.
	// +optional
	FSGroup int64 `json:"fsGroup,omitempty"`

	// TokenSecretRef is the one of the spec.
	// +optional
	TokenSecretRef *SecretKeyRef `json:"tokenSecretRef,omitempty"`

	// CredentialsSecretRef is the one of the spec.
	// +optional
	CredentialsSecretRef *SecretRef `json:"credentialsSecretRef,omitempty"`

	// Clusters are those in which the claim is bound to a volume.
	// +optional
	// +listType=map
	// +listMapKey=name
	Clusters []AdapterClaimStatus `json:"clusters,omitempty"`
}

// An AdapterClaimStatus is the claim for adapters in one cluster.
type AdapterClaimStatus struct {
	// Name of the cluster of the placement. Empty for the cluster of the service.
	Name string `json:"name"`

	// ClaimName of the PersistentVolumeClaim.
	ClaimName string `json:"claimName"`

	// UID of the claim.
	UID string `json:"uid"`
}

// Mode returns the access mode of the claim, with the default.
func (c *AdapterCache) Mode() corev1.PersistentVolumeAccessMode {
	return cmp.Or(c.AccessMode, corev1.ReadWriteMany)
}

func validateAdapterCache(at *field.Path, c *AdapterCache) field.ErrorList {
	if c == nil {
		return nil
	}
	errs := check.Size(at.Child("size"), c.Size)
	errs = append(errs, check.Optional(at.Child("storageClassName"), c.StorageClassName, check.Name)...)
	if c.AccessMode != "" {
		errs = append(errs, check.OneOf(at.Child("accessMode"), c.AccessMode, corev1.ReadWriteMany, corev1.ReadWriteOnce)...)
	}
	errs = append(errs, validateSecretKey(at.Child("tokenSecretRef"), c.TokenSecretRef)...)
	if r := c.CredentialsSecretRef; r != nil {
		errs = append(errs, check.Name(at.Child("credentialsSecretRef", "name"), r.Name)...)
	}
	return errs
}
