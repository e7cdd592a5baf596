package plan

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	gateway "sigs.k8s.io/gateway-api/apis/v1"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/launch"
	"github.com/fusioninfer/function-inferenceservice/internal/modelroute"
)

// A Router picks the pod for each request.
type Router struct {
	// Name of the role.
	Name string
	// Strategy in effect. It is empty if the user wrote a configuration.
	Strategy v1alpha1.RoutingStrategy
	// Disaggregated tells that prefill and decode are to be picked separately: the service has both, and its strategy is
	// pd-disaggregation or not set. If the user wrote a configuration, that has to do it.
	Disaggregated bool
	// PicksApart tells that Config picks prefill and decode separately, be it ours or the user's.
	PicksApart bool
	// Dialect of Config, and the API group of the objects for models.
	Dialect inputv1alpha1.Dialect
	// KeepsDialect tells that the service uses no feature of the dialect, and had it before.
	KeepsDialect bool
	// Image of the endpoint picker.
	Image string
	// Config of the endpoint picker, as YAML.
	Config string
	// ScreensRevisions tells that Config is ours, and that prefill and decode of a request have to have
	// one revision.
	ScreensRevisions bool
	// ScreensBoth tells that a revision needs prefill pods, too.
	ScreensBoth bool
	// QueueTTL is how long a request waits in the endpoint picker while there are no pods. 0 means that it
	// is refused at once. Queues tells that the user's own configuration keeps it.
	QueueTTL time.Duration
	Queues   bool
	// Tracing has the variables with which the endpoint picker sends traces. Nil sends none.
	Tracing []corev1.EnvVar
	// EndsAtOnce tells that an endpoint picker that is deleted only finishes what it has begun. Of several, the next ones start once
	// all are gone.
	EndsAtOnce bool
	// Replicas of the endpoint picker.
	Replicas int32
	// FailureMode of the pool.
	FailureMode v1alpha1.FailureMode
	// Pod has what the platform team set for the endpoint picker's pods, and the service's own resources.
	Pod EndpointPickerPod
	// Selector of the pool's pods, without the labels that select the service, which differ
	// between clusters, and its leaders.
	Selector map[string]string
	// Port of the pool.
	Port int32
	// Route is the spec of the HTTPRoute as the user wrote it. Parents are the platform team's
	// gateways for a route that names none.
	Route   *kube.Document
	Parents []inputv1alpha1.ParentRef
	// Hostnames of the HTTPRoute: its own, or the one that the platform team gives it.
	Hostnames []string
	// ClosedPaths are those that no route passes on.
	ClosedPaths []string
	// HasRoute and HasGateway tell whether an HTTPRoute and a Gateway are rendered.
	HasRoute, HasGateway bool
	// Gateway is the spec of the Gateway as the user wrote it.
	Gateway *kube.Document
	// DestinationRule tells that Istio's DestinationRule is rendered.
	DestinationRule bool
	// Models in the order of the spec.
	Models []modelroute.Model
	// Names of models that the engines of the pool answer.
	Names launch.Names

	// path of the role.
	path *field.Path
	// rules of Route, as far as they can be read.
	rules []gateway.HTTPRouteRule
}

// Path of the role in the spec.
func (r *Router) Path() *field.Path { return r.path }

// SendsWhole tells whether the endpoint picker sends whole requests to each pod that it picks, by a strategy. A configuration of the user's
// may have plugins that are not known.
func (r *Router) SendsWhole() bool { return r.Strategy != "" && !r.PicksApart }

// An EndpointPickerPod is what the endpoint picker's pods get.
type EndpointPickerPod struct {
	ImagePullPolicy  corev1.PullPolicy
	ImagePullSecrets []corev1.LocalObjectReference
	Tolerations      []corev1.Toleration
	NodeSelector     map[string]string
	Resources        *corev1.ResourceRequirements
}
