package plan

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/launch"
)

// A Role is a role that serves.
type Role struct {
	// Name and Type, as in the spec.
	Name string
	Type v1alpha1.ComponentType
	// Replicas in each group.
	Replicas int32
	// Nodes of a replica. Each node runs one pod.
	Nodes int32
	// Scheduler of the pods. Empty means the cluster's default.
	Scheduler string
	// Leader and Worker are the templates with what spec.model, spec.adapterCache, shutdown and tracing add, and with the
	// changes that rendering makes. If Nodes is 1, both are made from one template, and only Leader is used.
	Leader, Worker PodTemplate
	// Port that clients, the InferencePool and the Service use.
	Port int32
	// EnginePort that the engine listens on. With a routing sidecar it differs from Port.
	EnginePort int32
	// TLS tells that the engine serves HTTPS only.
	TLS bool
	// Recovery says what is recreated when a pod fails. RestartGrace is how long a failed replica may
	// take to serve again before the rest of its group is.
	Recovery     v1alpha1.RecoveryPolicy
	RestartGrace time.Duration
	// Sidecar that leaders get in front of the engine. It is nil without one.
	Sidecar *Sidecar
	// RayPort of the launcher Ray, else 0. It becomes a container port of the leader.
	RayPort int32
	// Metrics is where Prometheus scrapes the leaders. It is nil if they have no metrics there.
	Metrics *Metrics
	// PodLabels of the role's pods, in addition to those of the service.
	PodLabels map[string]string

	// Autoscaler of the role. It is nil if the service makes none.
	Autoscaler *Autoscaler

	// startup is how long an engine may take to load its model.
	startup time.Duration
	// scaling limits the replicas of a role whose InferenceRole says how many there are. Otherwise nil.
	scaling *v1alpha1.RoleScaling
	// path of the role in the spec, for errors that are found later.
	path *field.Path
	// model that the leader's engine loads, as its command has it. Empty if that is not known.
	model string
	// engine of the leaders.
	engine launch.Engine
	// names of models that the engines answer.
	names launch.Names
	// replicaResources are the requests of all pods of one replica. leaderRequests and
	// workerRequests are the requests of one pod.
	replicaResources, leaderRequests, workerRequests corev1.ResourceList
	// line is the command line of the leader's engine. It is nil unless the command, or an image that is known to start
	// vLLM, says which flags the engine gets.
	line *engineLine
	// noMetrics says why the engine serves no metrics, or is empty. surelyNone tells that no flag which is not seen may
	// change that.
	noMetrics  string
	surelyNone bool
}

// A PodTemplate is a template of the user and the changes that rendering makes to it.
type PodTemplate struct {
	// Document is the user's template with what spec.model, spec.adapterCache, shutdown and tracing add
	// to it. It is shared and must not be changed.
	Document *kube.Document
	// Spec is a typed, read-only view of Document's spec. It must not be rendered, because it lacks
	// fields that are newer than its Go type.
	Spec corev1.PodSpec
	// Labels and Annotations of Document's metadata, read-only.
	Labels, Annotations map[string]string
	// Engine is the index of the engine's container.
	Engine int
	// parsed is the command of the engine's container, and expanded the same as the kubelet expands it.
	parsed, expanded launch.Line
	// modelWord is the index of the word that spec.model put between the user's words of the engine's
	// command line, or 0.
	modelWord int
	// Command and Args of the engine's container. If nil, the user's are kept.
	Command, Args []string
	// Env is added to the user's variables of the engine's container.
	Env []corev1.EnvVar
	// Headless pods serve no HTTP, so their HTTP ports and probes are removed.
	Headless bool
	// SharedMemory adds a memory volume at /dev/shm.
	SharedMemory bool
	// Readiness adds a readiness probe and a startup probe, unless it is nil.
	Readiness *Probe
	// DrainSeconds that a pod which is deleted goes on as before, by a preStop hook. 0 adds none.
	DrainSeconds int32
	// Proxies are the indexes of containers beside the engine's that take its requests. They go on as long.
	Proxies []int
	// GraceSeconds until it is killed. 0 keeps the user's.
	GraceSeconds int32
}

// A Sidecar is the routing sidecar of a decode pod.
type Sidecar struct {
	Image     string
	Connector string
	Resources *corev1.ResourceRequirements
	// PoolOnly restricts prefill requests to pods of the service's pool.
	PoolOnly bool
	// BootstrapPort is where prefill offers its KV cache, with the connectors sglang and mooncake. 0 is the sidecar's default.
	BootstrapPort int32
	// ServiceAccount of the pods.
	ServiceAccount string
	// AsRoot tells that containers of the pods run as root by default.
	AsRoot bool
	// Tracing has the variables with which it sends traces. Nil sends none.
	Tracing []corev1.EnvVar
}

// A locatedTemplate is a template with its path in the spec.
type locatedTemplate struct {
	*PodTemplate

	path *field.Path
}

// templates returns the templates that the user wrote for the role, each once.
func (r *Role) templates() []locatedTemplate {
	all := []locatedTemplate{{&r.Worker, r.path.Child("template")}}
	if r.Leader.Document != r.Worker.Document {
		all = append(all, locatedTemplate{&r.Leader, r.path.Child("leaderTemplate")})
	}
	return all
}

// Path of the role in the spec.
func (r *Role) Path() *field.Path { return r.path }

// Most is the largest number of replicas that the role may have in each group, without those of a rollout.
func (r *Role) Most() int32 {
	if r.scaling != nil {
		return r.scaling.Max()
	}
	return r.Replicas
}

// ReplicasPath is the field that limits the replicas of the role.
func (r *Role) ReplicasPath() *field.Path {
	if r.scaling != nil {
		return r.path.Child("scaling", "maxReplicas")
	}
	return r.path.Child("replicas")
}

// rolePath is the path of a role in the spec.
func rolePath(i int) *field.Path { return field.NewPath("spec", "roles").Index(i) }
