package reservation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
)

// Capacity requests and reservations are in ConfigMaps. A service composes one with its
// request, and labels it for every cluster of which it requests capacity. A cluster composes
// one with its ledger.
const (
	// RequestKey is the key of the data of a request's ConfigMap.
	RequestKey = "request"
	// LedgerKey is the key of the binary data of a ledger's ConfigMap.
	LedgerKey = "ledger"
	// RequestLabelValue is the value of the labels of a request.
	RequestLabelValue = "true"
)

// RequestLabel is the label of the requests that a cluster reads.
func RequestLabel(cluster string) string { return requestLabels + cluster }

const requestLabels = "capacity-request.fusioninfer.io/"

// ClusterOfLabel returns the cluster that reads requests with a label, and whether one does.
func ClusterOfLabel(label string) (cluster string, is bool) {
	return strings.CutPrefix(label, requestLabels)
}

// maxPodSets limits the requirements of the pods of one replica. A LeaderWorkerSet has two, of a leader and of workers. Pods from before are in
// the grant, and never in the request. Later versions may write some more.
const maxPodSets = 4

// maxPods limits the pods of one replica, as the API limits its nodes.
const maxPods = 1 << 10

// maxGranted limits the pods that are granted to one replica, so that sums never overflow. A grant may cover pods from before, too.
const maxGranted = 1 << 20

// MaxTolerations limits the tolerations of one pod.
const MaxTolerations = 64

// MaxPodRequirement limits the bytes of the key of what one pod requires. Each grant of a service is hashed with those of its pods.
const MaxPodRequirement = 8 << 10

// MaxResources limits the resources that one pod requests.
const MaxResources = 64

// MaxLabels limits the labels by which one pod selects nodes.
const MaxLabels = 256

// Limits of a request. No valid service exceeds them, but whoever may write a ConfigMap may
// write anything into it.
const (
	maxRequestBytes    = 1 << 20
	maxIdentity        = 253
	maxCreated         = 64
	maxPodRequirements = 128
	// maxQualifiedName is the limit of the name of a resource, or of a label: a DNS name, a slash
	// and 63 characters.
	maxQualifiedName = 317
	maxReplicas      = 4096
	maxRunning       = 2 * maxReplicas
)

// MaxClusters limits the clusters of a request.
const MaxClusters = 1024

// MaxRequested limits the replicas that a service requests in all clusters. A short text may
// name many clusters, and each replica becomes an object in each of them.
const MaxRequested = 1 << 14

// maxReplicaName limits the name of a replica: a role's name and two numbers.
const maxReplicaName = 100

// maxGeneration is never reached. A status has numbers as float64, which represent it exactly.
const maxGeneration = 1 << 50

// check checks what is the same for all clusters.
func (req *CapacityRequest) check() error {
	for _, text := range []string{req.UID, req.Namespace, req.Name} {
		if len(text) > maxIdentity {
			return fmt.Errorf("the UID, namespace or name has %d characters: at most %d are allowed", len(text), maxIdentity)
		}
	}
	if len(req.Created) > maxCreated {
		return fmt.Errorf("the creation time has %d characters: at most %d are allowed", len(req.Created), maxCreated)
	}
	if req.UID == "" || req.Namespace == "" || req.Name == "" {
		return fmt.Errorf("the UID %q, namespace %q and name %q of the service are required", req.UID, req.Namespace, req.Name)
	}
	if req.Generation < 0 || req.Generation > maxGeneration {
		return fmt.Errorf("the generation is %d: it must be between 0 and %d", req.Generation, maxGeneration)
	}
	if len(req.PodRequirements) > maxPodRequirements {
		return fmt.Errorf("there are %d pod requirements: at most %d are allowed", len(req.PodRequirements), maxPodRequirements)
	}
	if err := req.checkLeft(); err != nil {
		return err
	}
	return checkPodRequirements(req.PodRequirements)
}

func (req *CapacityRequest) checkLeft() error {
	if n := len(req.Left); n > MaxClusters {
		return fmt.Errorf("replicas left %d clusters: at most %d are allowed", n, MaxClusters)
	}
	for _, name := range slices.Sorted(maps.Keys(req.Left)) {
		if len(validation.IsDNS1123Label(name)) > 0 {
			return fmt.Errorf("replicas left %q, which is not the name of a cluster", name)
		}
		if n := len(req.Left[name]); n > maxRunning {
			return fmt.Errorf("%d replicas left cluster %q: at most %d are allowed", n, name, maxRunning)
		}
	}
	return nil
}

func checkPodRequirements(requirements map[string]capacity.PodRequirements) error {
	for _, name := range slices.Sorted(maps.Keys(requirements)) {
		if n := len(requirements[name].NodeSelector); n > MaxLabels {
			return fmt.Errorf("pod requirements %q select nodes by %d labels: at most %d are allowed", name, n, MaxLabels)
		}
		for _, k := range slices.Sorted(maps.Keys(requirements[name].NodeSelector)) {
			if n := max(len(k), len(requirements[name].NodeSelector[k])); n > maxQualifiedName {
				return fmt.Errorf("pod requirements %q select nodes by a label of %d characters: at most %d are allowed", name, n, maxQualifiedName)
			}
		}
		if err := checkTolerations(requirements[name].Tolerations); err != nil {
			return fmt.Errorf("pod requirements %q %w", name, err)
		}
		if err := checkRequests(requirements[name].Requests); err != nil {
			return fmt.Errorf("pod requirements %q %w", name, err)
		}
	}
	return nil
}

func checkTolerations(tolerations []corev1.Toleration) error {
	if n := len(tolerations); n > MaxTolerations {
		return fmt.Errorf("have %d tolerations: at most %d are allowed", n, MaxTolerations)
	}
	for _, t := range tolerations {
		if n := max(len(t.Key), len(t.Operator), len(t.Value), len(t.Effect)); n > maxQualifiedName {
			return fmt.Errorf("have a toleration with a text of %d characters: at most %d are allowed", n, maxQualifiedName)
		}
	}
	return nil
}

func checkRequests(requests capacity.Resources) error {
	if len(requests) > MaxResources {
		return fmt.Errorf("have %d resources: at most %d are allowed", len(requests), MaxResources)
	}
	for _, resource := range slices.Sorted(maps.Keys(requests)) {
		if len(resource) > maxQualifiedName {
			return fmt.Errorf("have a resource whose name has %d characters: at most %d are allowed", len(resource), maxQualifiedName)
		}
		if requests[resource] < 0 {
			return fmt.Errorf("have a negative amount of %s", resource)
		}
	}
	return nil
}

func (req *CapacityRequest) checkReplicas(replicas []ReplicaRequest) error {
	known := map[key.ReplicaID]bool{}
	for _, r := range replicas {
		if r.Name == "" || known[r.Name] {
			return fmt.Errorf("the name %q of a replica is empty or not unique", r.Name)
		}
		if len(r.Name) > maxReplicaName {
			return fmt.Errorf("the name of a replica has %d characters: at most %d are allowed", len(r.Name), maxReplicaName)
		}
		if _, _, _, ok := r.Name.Parts(); !ok {
			return fmt.Errorf("%q is not the name of a replica: it must be {role}/{index} or {group}/{role}/{index}", r.Name)
		}
		if len(r.Pool) > maxIdentity {
			return fmt.Errorf("the pool of replica %q has %d characters: at most %d are allowed", r.Name, len(r.Pool), maxIdentity)
		}
		known[r.Name] = true
		if r.Generation < 0 || r.Generation > req.Generation {
			return fmt.Errorf("replica %q has the generation %d: it must be between 0 and %d, that of the request", r.Name, r.Generation, req.Generation)
		}
		if err := req.checkPods(&r); err != nil {
			return err
		}
	}
	return nil
}

func (req *CapacityRequest) checkPods(r *ReplicaRequest) error {
	if n := len(r.Pods); n > maxPodSets {
		return fmt.Errorf("replica %q has pods with %d requirements: at most %d are allowed", r.Name, n, maxPodSets)
	}
	pods := int64(0)
	for _, name := range slices.Sorted(maps.Keys(r.Pods)) {
		n := r.Pods[name]
		if _, ok := req.PodRequirements[name]; !ok {
			return fmt.Errorf("replica %q names the pod requirements %q, which podRequirements does not have", r.Name, name)
		}
		if n < 0 || n > maxPods {
			return fmt.Errorf("replica %q has %d pods with the requirements %q: it must be between 0 and %d", r.Name, n, name, maxPods)
		}
		pods += n
	}
	switch {
	case pods == 0: // It would get a reservation without capacity.
		return fmt.Errorf("replica %q has no pods", r.Name)
	case pods > maxPods:
		return fmt.Errorf("replica %q has %d pods: at most %d are allowed", r.Name, pods, maxPods)
	}
	return nil
}
