package scheduling

import (
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
)

// ReplicasFromStatus reads replicas of a status.
func ReplicasFromStatus(list []v1alpha1.Replicas) []key.ReplicaID {
	var all []key.ReplicaID
	for _, r := range list {
		for _, i := range r.Indexes {
			if r.Group != nil {
				all = append(all, key.ReplicaInGroup(*r.Group, r.Role, i))
				continue
			}
			all = append(all, key.ReplicaOf(r.Role, i))
		}
	}
	return all
}

// ReplicasToStatus writes replicas for a status, those of one group and role together. It is the
// inverse of ReplicasFromStatus for replicas in that order.
func ReplicasToStatus(replicas []key.ReplicaID) []v1alpha1.Replicas {
	return GrantsToStatus(&reservation.Service{Grants: []reservation.Grant{{Replicas: replicas}}})
}

// GrantsToStatus writes the grants of a service for a status: the replicas of one group and role
// together, if they have the same generation, the same pods and the same pool.
func GrantsToStatus(s *reservation.Service) []v1alpha1.Replicas {
	type of struct {
		group      int32
		grouped    bool
		role       string
		generation int64
		nodes      int32
		pool       string
		podsHash   string
	}
	var all []v1alpha1.Replicas
	at, hash := map[of]int{}, s.Hasher()
	for _, grant := range s.Grants {
		nodes, podsHash := grant.Nodes(), hash(&grant)
		for _, r := range grant.Replicas {
			group, role, index, ok := r.Parts()
			if !ok {
				continue // No service has such a replica.
			}
			k := of{group, r.Grouped(), role, grant.Generation, nodes, grant.Pin.Name(), podsHash}
			i, known := at[k]
			if !known {
				i = len(all)
				at[k] = i
				one := v1alpha1.Replicas{Role: role, Generation: grant.Generation, Nodes: nodes, Pool: grant.Pin.Name(), PodsHash: podsHash}
				if k.grouped {
					one.Group = &group
				}
				all = append(all, one)
			}
			all[i].Indexes = append(all[i].Indexes, index)
		}
	}
	return all
}
