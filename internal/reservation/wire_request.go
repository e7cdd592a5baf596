package reservation

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fusioninfer/function-inferenceservice/internal/key"
)

// A cluster reads the whole request of each service that asks it. So clusters of which a service
// requests the same are in one entry. Replicas have an entry each: a short text must not become a
// large request.

// clusterItself stands for the name of the cluster, where clusters differ in nothing else.
const clusterItself = "*"

// A wireRequest is a request as a ConfigMap has it.
type wireRequest struct {
	CapacityRequest

	// Clusters are in the order of their first names.
	Clusters []wireCluster `json:"clusters,omitempty"`
}

// A wireCluster is what is requested of each of some clusters.
type wireCluster struct {
	Names []string `json:"names"`
	ClusterRequest
}

// EncodeRequest encodes a request. The same request gives the same text.
func EncodeRequest(req *CapacityRequest) (string, error) {
	wire := wireRequest{CapacityRequest: *req}
	at := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(req.Clusters)) {
		c := req.Clusters[name].rename(name, clusterItself)
		same, err := json.Marshal(c)
		if err != nil {
			return "", fmt.Errorf("cannot encode the capacity request of %s/%s: %w", req.Namespace, req.Name, err)
		}
		i, known := at[string(same)]
		if !known {
			i = len(wire.Clusters)
			at[string(same)] = i
			wire.Clusters = append(wire.Clusters, wireCluster{ClusterRequest: c})
		}
		wire.Clusters[i].Names = append(wire.Clusters[i].Names, name)
	}
	b, err := json.Marshal(wire)
	if err != nil {
		return "", fmt.Errorf("cannot encode the capacity request of %s/%s: %w", req.Namespace, req.Name, err)
	}
	return string(b), nil
}

// rename returns the request with another name where it has one.
func (cr ClusterRequest) rename(from, to string) ClusterRequest {
	for _, field := range []*string{&cr.Name, &cr.ProviderConfig} {
		if *field == from {
			*field = to
		}
	}
	return cr
}

// DecodeRequest decodes and validates a request. Whoever may write a ConfigMap may write a
// request, and nothing else validates it. Clusters of which the same is requested share groups.
func DecodeRequest(text string) (*CapacityRequest, error) {
	if len(text) > maxRequestBytes {
		return nil, fmt.Errorf("cannot decode a capacity request of %d bytes: at most %d are allowed", len(text), maxRequestBytes)
	}
	wire := wireRequest{}
	if err := decodeJSON([]byte(text), &wire); err != nil {
		return nil, fmt.Errorf("cannot decode a capacity request: %w", err)
	}
	req := wire.CapacityRequest
	if err := req.check(); err != nil {
		return nil, fmt.Errorf("invalid capacity request: %w", err)
	}
	if err := req.normalize(); err != nil {
		return nil, fmt.Errorf("invalid capacity request: %w", err)
	}
	if err := req.addClusters(wire.Clusters); err != nil {
		return nil, fmt.Errorf("invalid capacity request: %w", err)
	}
	return &req, nil
}

// normalize leaves out what says nothing, and limits the rest.
func (req *CapacityRequest) normalize() error {
	for _, name := range slices.Sorted(maps.Keys(req.PodRequirements)) {
		r := req.PodRequirements[name]
		r.Normalize()
		if n := len(r.Key()); n > MaxPodRequirement {
			return fmt.Errorf("pod requirements %q have %d bytes of resources, labels and tolerations: at most %d are allowed", name, n, MaxPodRequirement)
		}
		req.PodRequirements[name] = r
	}
	// The service raises the epoch of what it reads back. Below 0 it would do so with each call, and no group would ever leave a cluster.
	maps.DeleteFunc(req.Homes, func(_ key.GroupID, h Home) bool { return h.Epoch <= 0 || h.Epoch >= maxGeneration })
	return nil
}

// addClusters adds what is requested of clusters. What several clusters share is checked once, so
// it takes time in proportion to the text.
func (req *CapacityRequest) addClusters(entries []wireCluster) error {
	requested := 0
	for i := range entries {
		e := &entries[i]
		replicas := Replicas(e.Groups)
		if err := req.checkCluster(e, replicas); err != nil {
			return err
		}
		if requested += len(e.Names) * len(replicas); requested > MaxRequested {
			return fmt.Errorf("there are more than %d replicas in all clusters", MaxRequested)
		}
		if req.Clusters == nil {
			req.Clusters = make(map[string]ClusterRequest, len(e.Names))
		}
		for _, name := range e.Names {
			if len(validation.IsDNS1123Label(name)) > 0 {
				return fmt.Errorf("%q is not the name of a cluster", name)
			}
			if _, twice := req.Clusters[name]; twice {
				return fmt.Errorf("there are two entries for cluster %q", name)
			}
			req.Clusters[name] = e.ClusterRequest.rename(clusterItself, name)
		}
		if len(req.Clusters) > MaxClusters {
			return fmt.Errorf("there are %d clusters: at most %d are allowed", len(req.Clusters), MaxClusters)
		}
	}
	return nil
}

func (req *CapacityRequest) checkCluster(e *wireCluster, replicas []ReplicaRequest) error {
	if len(e.Names) == 0 {
		return errors.New("there is an entry for no cluster")
	}
	if len(validation.IsDNS1123Label(e.Namespace)) > 0 {
		return fmt.Errorf("%q is not the name of a namespace", e.Namespace)
	}
	if n := max(len(replicas), len(e.Groups)); n > maxReplicas {
		return fmt.Errorf("there are %d replicas for cluster %q: at most %d are allowed", n, e.Names[0], maxReplicas)
	}
	if n := len(e.Running); n > maxRunning {
		return fmt.Errorf("there are %d running replicas in cluster %q: at most %d are allowed", n, e.Names[0], maxRunning)
	}
	return req.checkReplicas(replicas)
}
