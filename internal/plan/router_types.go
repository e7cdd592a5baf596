package plan

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/fusioninfer/function-inferenceservice/input/v1beta1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

// A Router picks the pod for each request.
type Router struct {
	// Name of the role.
	Name string
	// Strategy in effect. Empty where the user wrote a configuration.
	Strategy v1alpha1.RoutingStrategy
	// Disaggregated tells that prefill and decode pods are picked apart.
	Disaggregated bool
	// Dialect of Config, and the API group of the objects for models.
	Dialect v1beta1.Dialect
	// Image of the endpoint picker.
	Image string
	// Config of the endpoint picker, as YAML.
	Config string
	// Replicas of the endpoint picker.
	Replicas int32
	// FailureMode of the pool.
	FailureMode v1alpha1.FailureMode
	// Pod has what the platform team set for the endpoint picker's pods.
	Pod EndpointPickerPod
	// Selector of the pool's pods, without the service's own label, which differs
	// from place to place, and without that of leaders.
	Selector map[string]string
	// Port of the pool.
	Port int32
	// Route is the spec of the HTTPRoute as the user wrote it, Parents what it is
	// attached to where it names none. Both empty: there is no route.
	Route   *kube.Document
	Parents []v1beta1.ParentRef
	// Hostnames of the HTTPRoute: its own, or the one that the platform team gives it.
	Hostnames []string
	// HasRoute and HasGateway tell which of them are rendered.
	HasRoute, HasGateway bool
	// Gateway is the spec of the Gateway as the user wrote it.
	Gateway *kube.Document
	// DestinationRule asks for Istio's DestinationRule.
	DestinationRule bool
	// Models in the order of the spec.
	Models []Model
}

// An EndpointPickerPod is what the endpoint picker's pods get.
type EndpointPickerPod struct {
	ImagePullPolicy  corev1.PullPolicy
	ImagePullSecrets []corev1.LocalObjectReference
	Tolerations      []corev1.Toleration
	NodeSelector     map[string]string
	Resources        *corev1.ResourceRequirements
}

// A Model is a name that clients ask for.
type Model struct {
	// Name as clients write it.
	Name string
	// Priority of its requests; nil renders no InferenceObjective.
	Priority *int32
	// Targets with a weight above 0.
	Targets []ModelTarget
}

// A ModelTarget is a name that the engine knows, with its share of the requests.
type ModelTarget struct {
	Name   string
	Weight int32
}

// A PodGroup starts the replicas of one group together.
type PodGroup struct {
	// Key in the composed resources.
	Key string
	// Name of the PodGroup.
	Name string
	// MinMember is the number of pods that have to fit at once.
	MinMember int32
	// MinTaskMember has the pods of each replica that has to fit, by its task.
	MinTaskMember map[string]int32
	// SubGroups of mode SubGroup.
	SubGroups []SubGroup
	// NetworkTopology, Queue and PriorityClassName, as in the spec.
	NetworkTopology   *v1alpha1.NetworkTopology
	Queue             string
	PriorityClassName string
	// MinResources is what those pods request.
	MinResources corev1.ResourceList
}

// A SubGroup is a role in a gang of mode SubGroup.
type SubGroup struct {
	// Role whose replicas are the subgroups.
	Role string
	// Size is the number of pods of a replica.
	Size int32
	// Min is the number of replicas that have to fit at once.
	Min int32
}
