// Package v1alpha1 has the types of the InferenceService, the InferenceRole, the InferenceCluster, the
// InferenceModel and the ModelCache, their defaults and their validation. internal/api/xrdgen generates the
// XRDs and docs/api.md from these types.
//
// +groupName=fusioninfer.io
package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

const (
	// Group of the API.
	Group = "fusioninfer.io"
	// Version of the API.
	Version = "v1alpha1"
	// APIVersion of the API.
	APIVersion = Group + "/" + Version
	// KindInferenceService is the kind of a namespaced XR and of a claim.
	KindInferenceService = "InferenceService"
	// KindClaimedService is the kind of the cluster-scoped XR behind a claim.
	KindClaimedService = "XInferenceService"
)

// An InferenceService serves one large language model. Its workers do all of the work, or
// are split into prefill and decode workers. Each replica runs on one node or on several.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:path=inferenceservices,shortName=infsvc,categories=fusioninfer
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",fieldPath=".metadata.name",message="the name must consist of lower case letters, digits and '-', start with a letter and end with a letter or digit: it becomes part of DNS names"
// +kubebuilder:printcolumn:name="ACCEPTED",type=string,JSONPath=`.status.conditions[?(@.type=='Accepted')].status`,description="Whether spec and Input are accepted. While they are not, Ready keeps its value."
// +kubebuilder:printcolumn:name="SUMMARY",type=string,JSONPath=`.status.summary`,description="Ready and desired replicas of each role except the router. A question mark stands for those that cannot be read."
// +kubebuilder:printcolumn:name="UPDATED",type=string,JSONPath=`.status.rollout.summary`,description="Replicas that have the newest template, and desired replicas, of all roles except the router."
// +kubebuilder:printcolumn:name="PLACED",type=string,JSONPath=`.status.conditions[?(@.type=='Placed')].status`,description="Whether the clusters of the fleet have reserved capacity for the whole service. True outside of a fleet."
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=`.status.url`,description="Where clients reach the service."
type InferenceService struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state of the service.
	Spec InferenceServiceSpec `json:"spec"`

	// Status is the observed state of the service. Crossplane and the function write it.
	// +optional
	Status InferenceServiceStatus `json:"status,omitempty"`
}

// An InferenceServiceSpec is the desired state of an InferenceService.
// +kubebuilder:validation:XValidation:rule="has(self.profileName) || self.roles.all(r, r.componentType == 'router' || has(r.template))",fieldPath=".roles",message="a worker, prefiller or decoder must have a template, unless profileName names a profile that has one"
// +kubebuilder:validation:XValidation:rule="has(self.replicas) == has(oldSelf.replicas)",fieldPath=".replicas",message="cannot be added to an existing service or removed from it: that would rename, and so restart, everything that it runs"
// +kubebuilder:validation:XValidation:rule="self.roles.filter(r, r.componentType == 'router').size() <= 1",fieldPath=".roles",message="must have at most one role of componentType router"
// +kubebuilder:validation:XValidation:rule="self.roles.exists(r, r.componentType != 'router')",fieldPath=".roles",message="must have at least one role of componentType worker, prefiller or decoder"
// +kubebuilder:validation:XValidation:rule="!self.roles.exists(r, has(r.strategy) && r.strategy == 'pd-disaggregation') || (self.roles.exists(r, r.componentType == 'prefiller') && self.roles.exists(r, r.componentType == 'decoder'))",fieldPath=".roles",message="strategy pd-disaggregation needs a role of componentType prefiller and one of componentType decoder"
// +kubebuilder:validation:XValidation:rule="!has(self.schedulingStrategy) || !has(self.schedulingStrategy.gang) || !has(self.schedulingStrategy.gang.minRoleReplicas) || self.schedulingStrategy.gang.minRoleReplicas.all(n, self.roles.exists(r, r.name == n && r.componentType != 'router'))",fieldPath=".schedulingStrategy.gang.minRoleReplicas",message="each key must be the name of a worker, prefiller or decoder in roles"
// +kubebuilder:validation:XValidation:rule="!has(self.schedulingStrategy) || !has(self.schedulingStrategy.schedulerName) || self.schedulingStrategy.schedulerName == 'volcano' || !has(self.schedulingStrategy.gang) || !has(self.schedulingStrategy.gang.mode) || self.schedulingStrategy.gang.mode == 'None' || !(self.roles.exists(r, has(r.multinode) && r.multinode.nodeCount > 1) || (self.roles.exists(r, r.componentType == 'prefiller') && self.roles.exists(r, r.componentType == 'decoder')))",fieldPath=".schedulingStrategy.schedulerName",message="must be volcano if pods start as a gang; for another scheduler, set gang.mode to None"
// +kubebuilder:validation:XValidation:rule="!has(self.replicas) || !self.roles.exists(r, has(r.scaling))",fieldPath=".roles",message="must have no scaling with replicas: such a service scales by whole groups"
// +kubebuilder:validation:XValidation:rule="!has(self.scaling) || !has(self.scaling.ratio) || (self.roles.filter(r, r.componentType == 'prefiller').size() == 1 && self.roles.filter(r, r.componentType == 'decoder').size() == 1 && self.roles.all(r, has(r.scaling) || (r.componentType != 'prefiller' && r.componentType != 'decoder')))",fieldPath=".scaling.ratio",message="must be left out unless the service has one prefiller and one decoder, both with scaling"
type InferenceServiceSpec struct {
	// ProfileName is one of the serving profiles that the platform team has set in the Input. The
	// profile has, for each componentType, what roles of that type are unless the service says
	// otherwise: their pod template, launcher, lifecycle, strategy and endpointPicker. A field
	// that the service sets wins. Templates are merged as Kubernetes merges them: containers,
	// variables and volumes by name, args by flag. A container with command has only its own
	// args. A null in a template leaves out what the profile has there.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	ProfileName string `json:"profileName,omitempty"`

	// Roles are the parts of the service. Each has a unique name, and a componentType that
	// says what it does.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=name
	Roles []Role `json:"roles"`

	// Model is what the engines of all roles load. The function gives it to vLLM and SGLang by
	// their flags, so the templates name none. Without it, the templates say what is loaded.
	// +optional
	Model *Model `json:"model,omitempty"`

	// AdapterCache is a claim for LoRA adapters that InferenceModels name. The engines mount it,
	// and load an adapter when the first request asks for it. All engines have to be vLLM. Adding
	// or removing it is a change of the pods, which spec.rollout paces.
	// +optional
	AdapterCache *AdapterCache `json:"adapterCache,omitempty"`

	// Replicas is the number of groups. Each group has all replicas of all roles except the
	// router, and a gang of its own. If replicas is not set, the service is one group, and
	// its objects are named {service}-{role}-{replica}. If it is set, they are named
	// {service}-{group}-{role}-{replica}. The number may change, but the field cannot be
	// set or unset on an existing service. The scale subresource changes it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=500
	Replicas *int32 `json:"replicas,omitempty"`

	// Scaling says how roles with scaling scale together.
	// +optional
	Scaling *ServiceScaling `json:"scaling,omitempty"`

	// SchedulingStrategy says which scheduler schedules the pods, and which pods it
	// schedules together.
	// +optional
	SchedulingStrategy *SchedulingStrategy `json:"schedulingStrategy,omitempty"`

	// Rollout says how a change of pods reaches the replicas that run. By default one unit after
	// the other gets it.
	// +optional
	Rollout *Rollout `json:"rollout,omitempty"`

	// Placement says which clusters the service runs in. Without it, the service runs in
	// the cluster and the namespace of this object.
	// +optional
	Placement *Placement `json:"placement,omitempty"`
}
