package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	// KindInferenceModel is the kind of a namespaced XR and of a claim.
	KindInferenceModel = "InferenceModel"
	// KindClaimedModel is the kind of the cluster-scoped XR behind a claim.
	KindClaimedModel = "XInferenceModel"
)

// An InferenceModel is a model name that clients request of an InferenceService. Whoever owns the
// model writes it, and needs no rights on the service. It says which adapters or models of the
// service answer the requests for the name, and how important they are.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=inferencemodels,shortName=infmodel,categories=fusioninfer
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && self.metadata.name.size() <= 63",fieldPath=".metadata.name",message="the name must consist of at most 63 lower case letters, digits and '-', and start and end with a letter or digit: it becomes part of labels"
// +kubebuilder:printcolumn:name="SERVICE",type=string,JSONPath=`.spec.serviceName`,description="The InferenceService that answers."
// +kubebuilder:printcolumn:name="MODEL",type=string,JSONPath=`.status.modelName`,description="The name that clients request."
// +kubebuilder:printcolumn:name="ACCEPTED",type=string,JSONPath=`.status.conditions[?(@.type=='Accepted')].status`,description="Whether spec and Input are accepted, and the name is not taken."
// +kubebuilder:printcolumn:name="ANSWERED",type=string,JSONPath=`.status.conditions[?(@.type=='Answered')].reason`,description="Answered, or why requests for the name are not answered."
type InferenceModel struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says which service answers the requests, and how.
	Spec InferenceModelSpec `json:"spec"`

	// Status is the observed state of the model. Crossplane and the function write it.
	// +optional
	Status InferenceModelStatus `json:"status,omitempty"`
}

// An InferenceModelSpec says which service answers the requests for a model, and how.
// +kubebuilder:validation:XValidation:rule="self.serviceName == oldSelf.serviceName",fieldPath=".serviceName",message="cannot be changed: create another InferenceModel, and delete this one once the other is answered"
// +kubebuilder:validation:XValidation:rule="has(self.modelName) == has(oldSelf.modelName) && (!has(self.modelName) || self.modelName == oldSelf.modelName)",fieldPath=".modelName",message="cannot be changed: create another InferenceModel, and delete this one once the other is answered"
// +kubebuilder:validation:XValidation:rule="!has(self.priority) || !has(self.criticality)",message="must have at most one of priority and criticality"
// +kubebuilder:validation:XValidation:rule="!has(self.targets) || self.targets.size() == 0 || self.targets.exists(t, !has(t.weight) || t.weight > 0)",message="at least one target must have a weight above 0"
type InferenceModelSpec struct {
	// ServiceName is the InferenceService that answers the requests, in the same namespace. Its
	// router must know models: see docs/models.md. It cannot be changed.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	ServiceName string `json:"serviceName"`

	// ModelName is the name of the model, as clients write it in their requests. One
	// InferenceModel of a service has it: the one that had it first. It cannot be changed.
	// Defaults to the name of this object.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ModelName string `json:"modelName,omitempty"`

	// Priority of the requests for the model, in the range that the platform team allows. If
	// the pods cannot serve all requests, those of the lowest priority are refused first. A
	// request has this priority only if its header x-llm-d-inference-objective has the name in
	// status.objectiveName.
	// +optional
	Priority *int32 `json:"priority,omitempty"`

	// Criticality is the priority by name: Critical is 10, Standard is 0 and Sheddable is
	// -10.
	// +optional
	Criticality Criticality `json:"criticality,omitempty"`

	// Targets answer the requests for the model, in proportion to their weights. A target
	// is a LoRA adapter or a model, by the name that the engine has for it. Without
	// targets, the name of the model is the target.
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	Targets []OwnedTarget `json:"targets,omitempty"`
}

// An OwnedTarget answers requests for an InferenceModel.
type OwnedTarget struct {
	ModelTarget `json:",inline"`

	// Adapter is a LoRA adapter that is loaded into the service's adapterCache. The target gets
	// requests once it is loaded, and engines know it by the name in status.adapters. Without it,
	// the engines have to know the name of the target.
	// +optional
	Adapter *Adapter `json:"adapter,omitempty"`
}

// An Adapter says where a LoRA adapter comes from.
// +kubebuilder:validation:XValidation:rule="!self.uri.startsWith('s3://') || !has(self.revision)",fieldPath=".revision",message="must be left out: only an adapter of a hub, hf://, has revisions"
type Adapter struct {
	// URI says where the adapter is. With hf://{organization}/{name}, it is a repository of the
	// Hugging Face Hub. With s3://{bucket}/{prefix}, it is the objects of a bucket. It needs
	// adapter_config.json and the weights in the format of PEFT.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^(hf://([A-Za-z0-9][-A-Za-z0-9._]*/)?[A-Za-z0-9][-A-Za-z0-9._]*|s3://[a-z0-9][-a-z0-9.]*[a-z0-9](/[A-Za-z0-9_][-A-Za-z0-9._]*)*)$`
	URI string `json:"uri"`

	// Revision in the hub: a branch, a tag or a commit. Another revision is another adapter, which is
	// loaded beside the former one. What a branch gets later is never loaded, so name a commit.
	// Defaults to the hub's default branch.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][-A-Za-z0-9._/]*$`
	Revision string `json:"revision,omitempty"`
}

// Source returns where a valid adapter is.
func (a *Adapter) Source() ModelSource { return (&Model{URI: a.URI}).Source() }

// An InferenceModelStatus is the observed state of an InferenceModel.
type InferenceModelStatus struct {
	// ObservedGeneration is the generation of the spec that this status describes. It is
	// absent in a claim, whose generation differs from that of the XR behind it.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions of the model. Answered tells whether requests for the name are answered.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ModelName is the name that clients write in their requests.
	// +optional
	ModelName string `json:"modelName,omitempty"`

	// ObjectiveName is the name of the model's InferenceObjective. A request has the model's
	// priority if its header x-llm-d-inference-objective has this name. A model without a
	// priority has no objective. The name is also left out if it differs between clusters,
	// because the service is in namespaces of different names there.
	// +optional
	ObjectiveName string `json:"objectiveName,omitempty"`

	// Clusters are those in which the service has a pool, if it runs in others than that of
	// this object.
	// +optional
	// +listType=map
	// +listMapKey=name
	Clusters []ModelClusterStatus `json:"clusters,omitempty"`

	// Adapters are those of the targets.
	// +optional
	// +listType=map
	// +listMapKey=name
	Adapters []AdapterStatus `json:"adapters,omitempty"`
}

// An AdapterStatus is the state of the adapter of one target.
type AdapterStatus struct {
	// Name of the target.
	Name string `json:"name"`

	// Directory of the adapter in the service's adapterCache. It is the name that engines have for
	// the adapter, in their metrics and their list of models.
	Directory string `json:"directory"`

	// LoadedClusters is the number of clusters in which the adapter is loaded, of those in which the
	// service has a pool.
	LoadedClusters int32 `json:"loadedClusters"`
}

// A ModelClusterStatus says whether the service's pool in one cluster has the model.
type ModelClusterStatus struct {
	// Name of the cluster in the placement of the service.
	Name string `json:"name"`

	// Ready tells whether the pool there has the model.
	Ready bool `json:"ready"`

	// Message says why it does not.
	// +optional
	Message string `json:"message,omitempty"`
}

// DefaultModel sets the defaults of a model. The schema has none, for the reason that Default gives.
// The name is that of the model as its users know it.
func DefaultModel(s *InferenceModelSpec, name string) {
	if s.ModelName == "" {
		s.ModelName = name
	}
	for i := range s.Targets {
		if t := &s.Targets[i]; t.Weight == nil {
			t.Weight = ptr.To[int32](1)
		}
	}
}

// Served returns the model as a router of a service has its own.
func (s *InferenceModelSpec) Served() ServedModel {
	m := ServedModel{Name: s.ModelName, Priority: s.Priority, Criticality: s.Criticality}
	for _, t := range s.Targets {
		m.Targets = append(m.Targets, t.ModelTarget)
	}
	return m
}
