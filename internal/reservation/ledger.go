package reservation

import (
	"math"
	"time"

	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
)

// A Ledger is what a cluster has granted. It can be counted without any request.
type Ledger struct {
	// Services with grants, in the order of their first grants.
	Services []Service `json:"services,omitempty"`
	// Waiting are the first services that wait, in the order in which they are served.
	Waiting []Waiting `json:"waiting,omitempty"`
}

// A Service is what a cluster has granted to one service.
type Service struct {
	ServiceID

	// MissingSince is when the service's request was first missing, or when it first lacked replicas
	// that were started. It is later if workloads of these were seen since then. It is zero while the
	// request has all of them.
	MissingSince time.Time `json:"missingSince,omitzero"`
	// Shapes of the pods. Grants refer to them by their indexes.
	Shapes []capacity.PodRequirements `json:"shapes,omitempty"`
	Grants []Grant                    `json:"grants"`
}

// A Grant is what is kept for each of some replicas with equal pods.
type Grant struct {
	// Generation of the request that it answers.
	Generation int64 `json:"generation,omitempty"`
	// Pods is the number of pods of each shape, for one replica. A ledger that was made again
	// from the status has none. Then the pods are those that are requested.
	Pods []int64 `json:"pods,omitempty"`
	// Requested are those of the generation alone, if Pods has others from before too.
	Requested []int64 `json:"requested,omitempty"`
	// Pin of all these pods to one pool. Nil if they are counted in any pool.
	Pin *capacity.Pin `json:"pin,omitempty"`
	// Started tells that the service has said that it runs the replicas.
	Started bool `json:"started,omitempty"`
	// Leaving tells that the request lacked the replicas when the ledger was written.
	Leaving  bool            `json:"leaving,omitempty"`
	Replicas []key.ReplicaID `json:"replicas"`
}

// Nodes returns how many pods the grant has for one replica, which the API calls its nodes.
func (g *Grant) Nodes() int32 {
	var n int64
	for _, count := range g.Pods {
		n += count
	}
	return int32(min(n, math.MaxInt32))
}

// A Waiting is a service that waits for room, and since when it got nothing as large as what it waits for
// first. The time is that of the cluster's clock, so no tenant can choose it.
type Waiting struct {
	ServiceID

	Since time.Time `json:"since"`
}

// podSets returns the pods of all grants.
func (s *Service) podSets() []capacity.PodSet {
	counts := make([]int64, len(s.Shapes))
	for _, g := range s.Grants {
		for i, n := range g.Pods {
			counts[i] += n * int64(len(g.Replicas))
		}
	}
	all := make([]capacity.PodSet, 0, len(counts))
	for i, n := range counts {
		all = append(all, capacity.PodSet{Requirements: &s.Shapes[i], Count: n})
	}
	return all
}

// Usage returns what the grants take, in resources and in pods.
func (s *Service) Usage() (capacity.Resources, int64) { return capacity.Sum(s.podSets()) }

// UsageOf returns the resources that one of the grants takes.
func (s *Service) UsageOf(g *Grant) capacity.Resources {
	all := capacity.Resources{}
	for i, n := range g.Pods {
		all.Add(s.Shapes[i].Requests, capacity.Saturated(0, n, int64(len(g.Replicas))))
	}
	return all
}
