package v1alpha1

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// KindModelCache is the kind of a namespaced XR and of a claim.
	KindModelCache = "ModelCache"
	// KindClaimedCache is the kind of the cluster-scoped XR behind a claim.
	KindClaimedCache = "XModelCache"
)

// A ModelCache is the weights of a model in a claim, which several InferenceServices of its namespace
// share. A Job loads them once in each cluster. They are there before any service that names the
// ModelCache, and stay when a service goes.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=modelcaches,shortName=modelcache,categories=fusioninfer
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$') && self.metadata.name.size() <= 63",fieldPath=".metadata.name",message="the name must be at most 63 lower case letters, digits and '-', start with a letter and end with a letter or digit: it becomes part of names"
// +kubebuilder:printcolumn:name="MODEL",type=string,JSONPath=`.status.modelName`,description="The name of the model."
// +kubebuilder:printcolumn:name="CLAIM",type=string,JSONPath=`.status.claimName`,description="The PersistentVolumeClaim, in each cluster."
// +kubebuilder:printcolumn:name="ACCEPTED",type=string,JSONPath=`.status.conditions[?(@.type=='Accepted')].status`,description="Whether spec and Input are accepted."
// +kubebuilder:printcolumn:name="LOADED",type=string,JSONPath=`.status.conditions[?(@.type=='ModelReady')].reason`,description="Loaded, or why the weights are not there."
type ModelCache struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says which weights are loaded, and where.
	Spec ModelCacheSpec `json:"spec"`

	// Status is the observed state of the cache. Crossplane and the function write it.
	// +optional
	Status ModelCacheStatus `json:"status,omitempty"`
}

// A ModelCacheSpec says which weights are loaded, and where. What the weights are cannot be changed:
// services that serve with them would lose them. Another revision is another ModelCache.
// +kubebuilder:validation:XValidation:rule="self.uri == oldSelf.uri",fieldPath=".uri",message="cannot be changed: make another ModelCache, and name it in the services"
// +kubebuilder:validation:XValidation:rule="has(self.revision) == has(oldSelf.revision) && (!has(self.revision) || self.revision == oldSelf.revision)",fieldPath=".revision",message="cannot be changed: make another ModelCache, and name it in the services"
// +kubebuilder:validation:XValidation:rule="self.size == oldSelf.size",fieldPath=".size",message="cannot be changed: make another ModelCache, and name it in the services"
// +kubebuilder:validation:XValidation:rule="has(self.storageClassName) == has(oldSelf.storageClassName) && (!has(self.storageClassName) || self.storageClassName == oldSelf.storageClassName)",fieldPath=".storageClassName",message="cannot be changed: make another ModelCache, and name it in the services"
// +kubebuilder:validation:XValidation:rule="(has(self.accessMode) ? self.accessMode : 'ReadWriteMany') == (has(oldSelf.accessMode) ? oldSelf.accessMode : 'ReadWriteMany')",fieldPath=".accessMode",message="cannot be changed: make another ModelCache, and name it in the services"
// +kubebuilder:validation:XValidation:rule="!self.uri.startsWith('s3://') || !has(self.revision)",fieldPath=".revision",message="must be left out: only a model of a hub, hf://, has revisions"
// +kubebuilder:validation:XValidation:rule="!self.uri.startsWith('s3://') || !has(self.tokenSecretRef)",fieldPath=".tokenSecretRef",message="must be left out: only a model of a hub, hf://, needs a token"
// +kubebuilder:validation:XValidation:rule="!self.uri.startsWith('hf://') || !has(self.credentialsSecretRef)",fieldPath=".credentialsSecretRef",message="must be left out: only a bucket, s3://, has credentials"
// +kubebuilder:validation:XValidation:rule="!has(self.clusters) || !has(self.clusterSelector)",message="must have at most one of clusters and clusterSelector"
// +kubebuilder:validation:XValidation:rule="!has(self.loadPolicy) || has(self.clusters) || has(self.clusterSelector)",fieldPath=".loadPolicy",message="must be left out without clusters and clusterSelector"
type ModelCacheSpec struct {
	// URI says where the weights come from: hf://{organization}/{name} is a model of the Hugging
	// Face Hub, and s3://{bucket}/{prefix} are the objects of a bucket. It cannot be changed.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^(hf://([A-Za-z0-9][-A-Za-z0-9._]*/)?[A-Za-z0-9][-A-Za-z0-9._]*|s3://[a-z0-9][-a-z0-9.]*[a-z0-9](/[A-Za-z0-9_][-A-Za-z0-9._]*)*)$`
	URI string `json:"uri"`

	// Revision of a model of a hub: a branch, a tag or a commit. It cannot be changed. Defaults to
	// the hub's default branch.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][-A-Za-z0-9._/]*$`
	Revision string `json:"revision,omitempty"`

	// TokenSecretRef is the key of a Secret with the token for a gated model of a hub. The Secret
	// has to be in this namespace, in each cluster of the cache.
	// +optional
	TokenSecretRef *SecretKeyRef `json:"tokenSecretRef,omitempty"`

	// CredentialsSecretRef names a Secret with the keys AWS_ACCESS_KEY_ID and
	// AWS_SECRET_ACCESS_KEY, and AWS_SESSION_TOKEN if there is one. The Secret has to be in this
	// namespace, in each cluster of the cache. Without it, the bucket is read without
	// credentials.
	// +optional
	CredentialsSecretRef *SecretRef `json:"credentialsSecretRef,omitempty"`

	// Size of the claim, at least 1Mi. It has to hold all files of the model. It cannot be
	// changed.
	Size resource.Quantity `json:"size"`

	// StorageClassName of the claim. The platform team says which ones are allowed. It cannot be
	// changed. Defaults to the platform team's class, else to the cluster's.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	StorageClassName string `json:"storageClassName,omitempty"`

	// AccessMode of the claim. With ReadWriteOnce, all pods that use it have to be on one node. It
	// cannot be changed. Defaults to ReadWriteMany.
	// +optional
	// +kubebuilder:validation:Enum=ReadWriteMany;ReadWriteOnce
	AccessMode corev1.PersistentVolumeAccessMode `json:"accessMode,omitempty"`

	// NodeSelector has labels of the nodes that the loading Job may run on. A storage class of one
	// zone needs it, so that the volume is where the engines are.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// Tolerations are taints of nodes that the loading Job may run on all the same.
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	Tolerations []CacheToleration `json:"tolerations,omitempty"`

	// Clusters are the names of the InferenceClusters in which the weights are loaded. Without
	// clusters and clusterSelector, they are loaded in the cluster of this object.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +listType=set
	Clusters []string `json:"clusters,omitempty"`

	// ClusterSelector selects InferenceClusters by their labels. An empty selector selects every
	// InferenceCluster that allows the namespace.
	// +optional
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`

	// LoadPolicy says in which of these clusters the weights are loaded. Everywhere loads them in
	// all, before any service exists. OnDemand loads them where a service that names this
	// ModelCache is placed. What is loaded stays. Defaults to Everywhere.
	// +optional
	LoadPolicy LoadPolicy `json:"loadPolicy,omitempty"`
}

// A LoadPolicy says in which of its clusters a ModelCache is loaded.
// +kubebuilder:validation:Enum=Everywhere;OnDemand
type LoadPolicy string

// The policies of loading.
const (
	// LoadEverywhere loads in all clusters.
	LoadEverywhere LoadPolicy = "Everywhere"
	// LoadOnDemand loads where a service that names the ModelCache is placed.
	LoadOnDemand LoadPolicy = "OnDemand"
)

// A CacheToleration is a taint that the loading Job tolerates, as in a pod.
type CacheToleration struct {
	// Key of the taint. Empty means all taints, with the operator Exists.
	// +optional
	// +kubebuilder:validation:MaxLength=317
	Key string `json:"key,omitempty"`

	// Operator is Exists, or Equal for taints with this value. Defaults to Equal.
	// +optional
	// +kubebuilder:validation:Enum=Exists;Equal
	Operator corev1.TolerationOperator `json:"operator,omitempty"`

	// Value of the taint, with the operator Equal.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Value string `json:"value,omitempty"`

	// Effect of the taint. Empty means all effects.
	// +optional
	// +kubebuilder:validation:Enum=NoSchedule;PreferNoSchedule;NoExecute
	Effect corev1.TaintEffect `json:"effect,omitempty"`
}

// A ModelCacheStatus is the observed state of a ModelCache.
type ModelCacheStatus struct {
	// ObservedGeneration is the generation of the spec that this status describes. It is
	// absent in a claim, whose generation differs from that of the XR behind it.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions of the cache. ModelReady tells whether the weights are loaded in all clusters.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ModelName is the name by which clients ask for the model, unless the service sets another
	// one.
	// +optional
	ModelName string `json:"modelName,omitempty"`

	// ClaimName is the PersistentVolumeClaim with the weights, in each cluster.
	// +optional
	ClaimName string `json:"claimName,omitempty"`

	// Directory of the weights in the claim.
	// +optional
	Directory string `json:"directory,omitempty"`

	// Caches are the states of the weights in the clusters.
	// +optional
	// +listType=map
	// +listMapKey=cluster
	Caches []CacheStatus `json:"caches,omitempty"`
}

// Of returns the model of a service with a cache of its own, which loads the same weights in the same way.
func (s *ModelCacheSpec) Of() *Model {
	return &Model{
		URI: s.URI, Revision: s.Revision, TokenSecretRef: s.TokenSecretRef, CredentialsSecretRef: s.CredentialsSecretRef,
		Cache: &Cache{Size: &s.Size, StorageClassName: s.StorageClassName, AccessMode: s.AccessMode},
	}
}

// Placement returns the clusters of a cache as the placement of a service. It is nil for the cluster of
// the object.
func (s *ModelCacheSpec) Placement() *Placement {
	if len(s.Clusters) == 0 && s.ClusterSelector == nil {
		return nil
	}
	p := &Placement{ClusterSelector: s.ClusterSelector, Policy: PlacementReplicate}
	for _, name := range s.Clusters {
		p.Clusters = append(p.Clusters, PlacementCluster{Name: name, InferenceClusterRef: &InferenceClusterRef{Name: name}})
	}
	defaultPlacement(p)
	return p
}

// URI of the weights as engines load them: a directory of a claim.
func (s *SharedCacheStatus) URI() string { return schemeClaim + s.ClaimName + "/" + s.Directory }

// Usable tells whether a status says where weights are. Nothing else than names gets into templates.
func (s *SharedCacheStatus) Usable() bool {
	uri := s.URI()
	return s.ClaimName != "" && s.Directory != "" && len(uri) <= maxURI && modelURI.MatchString(uri) && !strings.Contains(s.ClaimName, "/") &&
		len(s.ModelName) <= maxURI && sourceName.MatchString(s.ModelName) &&
		(s.Source == "" || len(s.Source) <= maxURI && modelURI.MatchString(s.Source))
}
