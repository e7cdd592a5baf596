// Package schedulingtest builds clusters and snapshots for tests of scheduling and of packages
// that use it. All are about the service "svc" in namespace "ns" with the UID "uid".
package schedulingtest

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// Noon is the time of all snapshots.
var Noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Service is the service that all of them are about.
var Service = reservation.ServiceID{Namespace: "ns", Name: "svc", UID: "uid"}

// A Change is made to a cluster.
type Change = func(*v1alpha1.InferenceCluster)

// GPUs returns a list of resources with some GPUs.
func GPUs(n string) corev1.ResourceList {
	return corev1.ResourceList{"nvidia.com/gpu": resource.MustParse(n)}
}

// Cluster returns a cluster of the fleet in region us, with four free nodes of 8 GPUs and an
// entrypoint.
func Cluster(name string, changes ...Change) *v1alpha1.InferenceCluster {
	c := &v1alpha1.InferenceCluster{Spec: v1alpha1.InferenceClusterSpec{ProviderConfigRef: v1alpha1.ClusterScopedConfigRef{Name: name + "-config"}}}
	c.Name, c.Labels = name, map[string]string{"region": "us"}
	c.Status.Pools = []v1alpha1.PoolStatus{{
		Name: "h100", NodeCount: 4, Capacity: GPUs("32"),
		Free: []v1alpha1.FreeNodes{{NodeCount: 4, Resources: GPUs("8")}},
	}}
	c.Status.Entrypoint = v1alpha1.IPEntrypoint("10.0.0.1", 80)
	for _, change := range changes {
		change(c)
	}
	return c
}

// Reserved makes a cluster reserve capacity for some replicas of the service.
func Reserved(replicas ...key.ReplicaID) Change {
	return func(c *v1alpha1.InferenceCluster) {
		c.Status.Reservations = []v1alpha1.Reservation{{UID: Service.UID, Namespace: Service.Namespace, Name: Service.Name, Replicas: scheduling.ReplicasToStatus(replicas)}}
	}
}

// Schedulable sets whether a cluster reserves anything new.
func Schedulable(is metav1.ConditionStatus) Change {
	return func(c *v1alpha1.InferenceCluster) {
		c.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSchedulable, Status: is, Message: "it says why"}}
	}
}

// Snapshot returns a snapshot with some clusters. What they have reserved was requested.
func Snapshot(clusters ...*v1alpha1.InferenceCluster) scheduling.Snapshot {
	snapshot := scheduling.Snapshot{Now: Noon, Resolved: true, ConfigsResolved: true, Clusters: map[string]*v1alpha1.InferenceCluster{}, States: map[string]*scheduling.ClusterState{}, ReceivesTraffic: map[string]bool{}}
	for _, c := range clusters {
		snapshot.Clusters[c.Name] = c
		snapshot.Configs = append(snapshot.Configs, c.Spec.ProviderConfigRef.Name)
		for _, a := range c.Status.Reservations {
			var highest int64
			for _, r := range a.Replicas {
				highest = max(highest, r.Generation)
			}
			snapshot.Request = Requested(snapshot.Request, c.Name, highest, scheduling.ReplicasFromStatus(a.Replicas)...)
		}
	}
	return snapshot
}

// Existing returns a cluster where some replicas exist, and are ready like the router.
func Existing(replicas ...key.ReplicaID) *scheduling.ClusterState {
	s := &scheduling.ClusterState{Present: map[key.ReplicaID]bool{}, Ready: map[key.ReplicaID]bool{}, WasReady: map[key.ReplicaID]bool{}, RouterReady: true, RouterWasReady: true, HasRoute: true, HasPool: true}
	for _, r := range replicas {
		s.Present[r], s.Ready[r], s.WasReady[r] = true, true, true
	}
	return s
}

// Requested adds to a request, or to a new one, some replicas of a cluster, with a generation. Each
// has one pod with 8 GPUs.
func Requested(r *reservation.CapacityRequest, cluster string, generation int64, replicas ...key.ReplicaID) *reservation.CapacityRequest {
	if r == nil {
		r = RequestOf()
	}
	g := reservation.ReplicaGroup{Name: "0"}
	for _, name := range replicas {
		_, role, _, _ := name.Parts()
		r.PodRequirements[role+"/leader"] = capacity.PodRequirements{Requests: capacity.Resources{"nvidia.com/gpu": 8000}}
		g.Replicas = append(g.Replicas, reservation.ReplicaRequest{Name: name, Generation: generation, Pods: map[string]int64{role + "/leader": 1}})
	}
	r.Generation = max(r.Generation, generation)
	r.Clusters[cluster] = reservation.ClusterRequest{Name: cluster, Namespace: Service.Namespace, Groups: []reservation.ReplicaGroup{g}}
	return r
}

// RequestedAs returns a request for no replicas of a cluster that has another name in the
// service.
func RequestedAs(cluster, name string) *reservation.CapacityRequest {
	r := RequestOf()
	r.Clusters[cluster] = reservation.ClusterRequest{Name: name, Namespace: Service.Namespace, ProviderConfigKind: v1alpha1.KindClusterProviderConfig, ProviderConfig: "remembered"}
	return r
}

// RequestOf returns a request of no cluster.
func RequestOf() *reservation.CapacityRequest {
	return &reservation.CapacityRequest{UID: Service.UID, Namespace: Service.Namespace, Name: Service.Name, PodRequirements: map[string]capacity.PodRequirements{}, Clusters: map[string]reservation.ClusterRequest{}}
}
