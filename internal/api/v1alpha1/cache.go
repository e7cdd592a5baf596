package v1alpha1

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
)

// A Cache is a claim with the weights of a model, in each cluster that the service runs in. The
// function makes a claim for the service, or uses one that exists.
// +kubebuilder:validation:XValidation:rule="has(self.size) != has(self.claimName)",message="must have either size, for a claim of its own, or claimName"
// +kubebuilder:validation:XValidation:rule="!has(self.claimName) || !(has(self.storageClassName) || has(self.accessMode))",message="must have nothing beside claimName: the claim exists already"
type Cache struct {
	// Size of the claim, at least 1Mi. It has to hold all files of the model.
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`

	// StorageClassName of the claim. The platform team says which ones are allowed. Defaults to
	// the platform team's class, else to the cluster's.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	StorageClassName string `json:"storageClassName,omitempty"`

	// AccessMode of the claim. With ReadWriteOnce, all pods of the service have to be on one node.
	// Defaults to ReadWriteMany.
	// +optional
	// +kubebuilder:validation:Enum=ReadWriteMany;ReadWriteOnce
	AccessMode corev1.PersistentVolumeAccessMode `json:"accessMode,omitempty"`

	// ClaimName is a PersistentVolumeClaim of the service's namespace that exists in each cluster
	// that the service runs in. The weights are loaded into a directory of it. Services that name
	// the same claim and the same model share the directory.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	ClaimName string `json:"claimName,omitempty"`
}

// A SecretRef names a Secret in the service's namespace.
type SecretRef struct {
	// Name of the Secret.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`
}

// Mode returns the access mode of the claim, with the default.
func (c *Cache) Mode() corev1.PersistentVolumeAccessMode {
	return cmp.Or(c.AccessMode, corev1.ReadWriteMany)
}

// A ModelStatus says where the weights of a model are.
type ModelStatus struct {
	// Caches are the claims with weights. While a new revision is loaded, a cluster has two.
	// +optional
	// +listType=map
	// +listMapKey=cluster
	// +listMapKey=claimName
	// +listMapKey=weights
	Caches []CacheStatus `json:"caches,omitempty"`

	// Shared is the ModelCache whose weights the engines load, as it was known last.
	// +optional
	Shared *SharedCacheStatus `json:"shared,omitempty"`
}

// A SharedCacheStatus is the ModelCache whose weights the engines of a service load.
type SharedCacheStatus struct {
	// Name of the ModelCache.
	Name string `json:"name"`

	// ModelName is the name of its model.
	ModelName string `json:"modelName"`

	// ClaimName of the PersistentVolumeClaim with the weights.
	ClaimName string `json:"claimName"`

	// Directory of the weights in the claim.
	Directory string `json:"directory"`

	// Source is the uri of the ModelCache.
	// +optional
	Source string `json:"source,omitempty"`
}

// A CacheStatus is the state of the weights in one claim.
type CacheStatus struct {
	// Cluster of the placement. Empty for the cluster of the service.
	Cluster string `json:"cluster"`

	// ClaimName of the PersistentVolumeClaim.
	ClaimName string `json:"claimName"`

	// Weights is a hash of the model's source and revision, and of its cache.
	Weights string `json:"weights"`

	// State of the weights: Loading, Failed or Ready.
	State CacheState `json:"state"`

	// Message says why they are not there.
	// +optional
	Message string `json:"message,omitempty"`

	// ClaimUID is the UID of the claim that has the weights, or had them last.
	// +optional
	ClaimUID string `json:"claimUID,omitempty"`
}

// A CacheState is the state of weights in a claim. Later versions may have more states.
type CacheState string

// The states of weights in a claim.
const (
	// CacheLoading: a Job loads them, or waits for its turn.
	CacheLoading CacheState = "Loading"
	// CacheFailed: the Job has failed, and tries again.
	CacheFailed CacheState = "Failed"
	// CacheReady: they are complete.
	CacheReady CacheState = "Ready"
)

// validateCache validates the cache of a model, and the credentials by which it is loaded. What its source
// cannot have is an error only if the source is known.
func validateCache(at *field.Path, m *Model, known bool) field.ErrorList {
	var errs field.ErrorList
	bucket := strings.HasPrefix(m.URI, schemeBucket)
	if r := m.CredentialsSecretRef; r != nil {
		errs = append(errs, check.Name(at.Child("credentialsSecretRef", "name"), r.Name)...)
		if known && !bucket {
			errs = append(errs, field.Invalid(at.Child("credentialsSecretRef"), object, "must be left out: only a bucket, "+schemeBucket+", has credentials"))
		}
	}
	c := m.Cache
	at = at.Child("cache")
	switch {
	case c == nil && bucket:
		return append(errs, field.Required(at, "must be set for "+schemeBucket+": not every engine reads a bucket, so a Job loads it into a claim"))
	case c == nil:
		return errs
	case known && !bucket && !strings.HasPrefix(m.URI, schemeHub):
		return append(errs, field.Invalid(at, object, "must be left out: only a model of a hub or a bucket, hf:// or s3://, is loaded into a cache"))
	}
	if (c.Size == nil) == (c.ClaimName == "") {
		errs = append(errs, field.Invalid(at, object, "must have either size, for a claim of its own, or claimName"))
	}
	if c.Size != nil {
		errs = append(errs, check.Size(at.Child("size"), *c.Size)...)
	}
	for _, f := range []struct{ name, value string }{{"storageClassName", c.StorageClassName}, {"claimName", c.ClaimName}} {
		errs = append(errs, check.Optional(at.Child(f.name), f.value, check.Name)...)
	}
	if c.AccessMode != "" {
		errs = append(errs, check.OneOf(at.Child("accessMode"), c.AccessMode, corev1.ReadWriteMany, corev1.ReadWriteOnce)...)
	}
	if c.ClaimName != "" && (c.StorageClassName != "" || c.AccessMode != "") {
		errs = append(errs, field.Invalid(at, object, "must have nothing beside claimName: the claim exists already"))
	}
	return errs
}
