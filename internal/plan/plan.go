/*
Package plan decides what an InferenceService needs: which replicas, with which
names and keys, which of them start together, which port answers, how the
router is configured. Everything is decided here, once; renderers and observers
read the Plan and never the InferenceService.

Planning is pure. It has no client and no clock, and the same input gives the
same Plan.
*/
package plan

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/input/v1beta1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

// A Plan is everything that was decided about one InferenceService.
type Plan struct {
	// Service is who the plan is for.
	Service Service
	// Roles that serve, in the order of the spec. The router is not one of them.
	Roles []*Role
	// Router, if the service has one.
	Router *Router
	// Deployments of the service: one beside the XR, or one in each cluster of
	// the placement.
	Deployments []Deployment
	// PodLimit is the number of pods up to which pods are read one by one.
	PodLimit int32
	// RequireKinds asks for the kinds that the cluster has.
	RequireKinds bool
	// Labels and Annotations that every object gets.
	Labels, Annotations map[string]string
	// Warnings about what is passed on although it will hardly work.
	Warnings []Warning
	// Fleet is what was decided about the clusters of the fleet. Nil where the service
	// is not placed in any.
	Fleet *Fleet
	// Hub is the one way to all clusters. Nil where there is none.
	Hub *Hub
	// Secrets that the pods need in each cluster of a placement.
	Secrets []string
	// Network says who reaches the engines' pods. Nil where a NetworkPolicy is not ours to
	// make.
	Network *v1beta1.NetworkPolicy
	// Held are replicas that wait for room.
	Held []Held
	// ReadsNamespace tells that a cluster of the fleet goes by the labels of the tenant's
	// namespace.
	ReadsNamespace bool
	// NamesConfigs tells that the placement names provider configurations, which have to be
	// compared with those of the fleet. Unchecked are the clusters that it names so, while
	// that is not possible.
	NamesConfigs bool
	Unchecked    map[string]bool
}

// A Service identifies the InferenceService.
type Service struct {
	// Name that users know: the claim's, or the XR's.
	Name string
	// Namespace of the tenant: the claim's, or the XR's.
	Namespace string
	// Generation of the spec.
	Generation int64
	// UID of the XR, which controls everything that is composed.
	UID string
	// Claimed tells a cluster-scoped XR behind a claim from a namespaced one.
	Claimed bool
	// Grouped tells whether spec.replicas is set, and so how objects are named.
	Grouped bool
}

// A Warning is about an input that is passed on as it is.
type Warning struct {
	// Path of the input.
	Path string
	// Message says what is wrong and how to write it.
	Message string
}

// A Deployment is the whole service in one place.
type Deployment struct {
	// Target is the place.
	Target Target
	// Base is the service's name in this place, and the value of the label
	// fusioninfer.io/service. See baseName for where it differs from Service.Name.
	Base string
	// Groups of replicas. A service without spec.replicas has one.
	Groups []Group
	// Endpoint asks for a Service on the leaders of the workers. Nil where there
	// is a router, or no worker.
	Endpoint *Endpoint
	// Waiting are the replicas that wait for room in the cluster.
	Waiting []Replica
	// Idle tells that nothing was granted so far, and so nothing is made there.
	Idle bool
	// Nowhere tells that it has what no cluster takes, which is in none.
	Nowhere bool
	// Leaving tells that what runs here goes once it runs elsewhere. It does not
	// count as asked for.
	Leaving bool
	// Abandoned tells that the cluster is dead: deleting its Objects must not wait
	// for it.
	Abandoned bool
}

// An Endpoint is the Service of a service without a router.
type Endpoint struct {
	// Port of the Service and of the pods.
	Port int32
	// Selector of the pods, without the service's own label and the leaders'.
	Selector map[string]string
}

// A Target is a place where a service runs.
type Target struct {
	// Cluster is the name in the placement. Empty beside the XR.
	Cluster string
	// Namespace of what is rendered, in that place.
	Namespace string
	// ProviderConfig reaches the cluster.
	ProviderConfig v1alpha1.ProviderConfigRef
}

// Remote tells whether the target is reached through provider-kubernetes.
func (t Target) Remote() bool { return t.Cluster != "" }

// A Group is one set of replicas of all roles that starts together.
type Group struct {
	// Index of the group; 0 where the service is not grouped.
	Index int32
	// Replicas of all roles, in the order of the spec.
	Replicas []Replica
	// PodGroup that starts them together, if there is a gang.
	PodGroup *PodGroup
}

// A Replica is one instance of a role: one LeaderWorkerSet.
type Replica struct {
	// Key in the composed resources.
	Key string
	// Name of the LeaderWorkerSet.
	Name string
	// Role it is an instance of.
	Role *Role
	// Group it belongs to.
	Group int32
	// Index of the replica in its role and group.
	Index int32
	// Task is the name of the replica in its gang: {role}-{index}.
	Task string
	// PodGroup is the name of its gang's PodGroup. Empty without a gang.
	PodGroup string
}

// A Role is a role that serves.
type Role struct {
	// Name and Type, as in the spec.
	Name string
	Type v1alpha1.ComponentType
	// Replicas in each group.
	Replicas int32
	// Nodes, and so pods, of a replica.
	Nodes int32
	// Scheduler of the pods. Empty is the cluster's default.
	Scheduler string
	// Leader and Worker are the two templates, as the user wrote them. Leader is
	// the only one where Nodes is 1.
	Leader, Worker PodTemplate
	// Port that clients, the pool and the Service use.
	Port int32
	// EnginePort that the engine listens on. It differs from Port where a
	// sidecar stands in front.
	EnginePort int32
	// Sidecar that stands in front of the engine on leaders, if any.
	Sidecar *Sidecar
	// RayPort of the launcher Ray, else 0. The leader has it as a container port.
	RayPort int32
	// PodLabels that the role's pods have besides those of the service.
	PodLabels map[string]string

	// path of the role in the spec, for problems that show later.
	path *field.Path
	// replicaResources is what all pods of one replica request, leaderRequests and
	// workerRequests what one pod does.
	replicaResources, leaderRequests, workerRequests corev1.ResourceList
}

// A PodTemplate is a template and what has to be done to it.
type PodTemplate struct {
	// Document as the user wrote it. It is shared and never changed.
	Document *kube.Document
	// Spec is the typed view of Document's spec, for reading only: it lacks fields
	// that are younger than its type.
	Spec corev1.PodSpec
	// Labels and Annotations of Document's metadata, for reading only.
	Labels, Annotations map[string]string
	// Engine is the index of the engine's container.
	Engine int
	// Command and Args that the engine's container gets. Nil leaves the user's.
	Command, Args []string
	// Env that the engine's container gets besides its own.
	Env []corev1.EnvVar
	// Headless pods serve no HTTP: their HTTP ports and probes are left out.
	Headless bool
	// SharedMemory adds a memory volume at /dev/shm.
	SharedMemory bool
}

// A Sidecar is the routing sidecar of a decode pod.
type Sidecar struct {
	Image     string
	Connector string
	Resources *corev1.ResourceRequirements
	// PoolOnly makes it send prefill requests to pods of the service's pool only.
	PoolOnly bool
	// ServiceAccount of the pods.
	ServiceAccount string
	// AsRoot tells that the pods' containers are root unless they say otherwise.
	AsRoot bool
}

// Pods is the number of pods of the whole service in one place.
func (d *Deployment) Pods() int32 {
	n := int32(0)
	for i := range d.Groups {
		for j := range d.Groups[i].Replicas {
			n += d.Groups[i].Replicas[j].Role.Nodes
		}
	}
	return n
}

// A locatedTemplate is a template, and where it is in the spec.
type locatedTemplate struct {
	*PodTemplate

	at *field.Path
}

// templates of the role as the user wrote them, each once.
func (r *Role) templates() []locatedTemplate {
	all := []locatedTemplate{{&r.Worker, r.path.Child("template")}}
	if r.Leader.Document != r.Worker.Document {
		all = append(all, locatedTemplate{&r.Leader, r.path.Child("leaderTemplate")})
	}
	return all
}

// SidecarAccounts are the service accounts of pods whose sidecar reads the pool, each once.
func (p *Plan) SidecarAccounts() []string {
	var all []string
	for _, r := range p.Roles {
		if s := r.Sidecar; s != nil && s.PoolOnly && !slices.Contains(all, s.ServiceAccount) {
			all = append(all, s.ServiceAccount)
		}
	}
	return all
}

// Path of the role in the spec.
func (r *Role) Path() *field.Path { return r.path }

// rolePath is the path of a role in the spec.
func rolePath(i int) *field.Path { return field.NewPath("spec", "roles").Index(i) }
