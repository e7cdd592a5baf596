package v1alpha1

// A Criticality is a named priority.
// +kubebuilder:validation:Enum=Critical;Standard;Sheddable
type Criticality string

// The criticalities.
const (
	// CriticalityCritical is priority 10. Its requests are refused last.
	CriticalityCritical Criticality = "Critical"
	// CriticalityStandard is priority 0, which most requests have.
	CriticalityStandard Criticality = "Standard"
	// CriticalitySheddable is priority -10. Its requests are refused first.
	CriticalitySheddable Criticality = "Sheddable"
)

// A ServedModel is a model that clients may request.
// +kubebuilder:validation:XValidation:rule="!has(self.priority) || !has(self.criticality)",message="must have at most one of priority and criticality"
// +kubebuilder:validation:XValidation:rule="!has(self.targets) || self.targets.size() == 0 || self.targets.exists(t, !has(t.weight) || t.weight > 0)",message="at least one target must have a weight above 0"
type ServedModel struct {
	// Name of the model, as clients write it in their requests.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Priority of the requests for the model. If the pods cannot serve all requests, those
	// of the lowest priority are refused first. A request has this priority only if its
	// header x-llm-d-inference-objective has the name of the model's objective.
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
	Targets []ModelTarget `json:"targets,omitempty"`
}

// A ModelTarget is a model or a LoRA adapter as the engine knows it.
type ModelTarget struct {
	// Name of the adapter or model.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Weight is the target's share of the model's requests, relative to the other targets.
	// A target of weight 0 gets no requests. Defaults to 1.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Weight *int32 `json:"weight,omitempty"`
}
