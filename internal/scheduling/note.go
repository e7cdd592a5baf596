package scheduling

import (
	"maps"

	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
)

// A Note is what the service writes on the object of a replica, to read it back. Unlike its request,
// nobody who may only write ConfigMaps can change it.
type Note struct {
	// PodsHash is that of the pods that the replica was started with, or changed to. It is empty
	// outside of the fleet, and where an older version wrote the object last.
	PodsHash string
	// HomeEpoch is that of the group's home when the object was written last. It is 0 for the
	// first home, and under the policy Replicate.
	HomeEpoch int64
}

// Notes are those of some replicas.
type Notes map[key.ReplicaID]Note

// notes returns what is noted on the objects of the replicas that run in a cluster. A held replica
// keeps the hash of the pods that it has. What leaves keeps its note.
func (v *view) notes(m member, d *Decision, homes map[key.GroupID]reservation.Home) Notes {
	var before Notes
	if at := v.snapshot.States[m.target.Cluster]; at != nil {
		before = at.Notes
	}
	notes := Notes{}
	for _, g := range v.groups(m) {
		home := homes[g.Name]
		for _, r := range g.Replicas {
			if !d.Run[r.Name] {
				continue
			}
			note := before[r.Name]
			if _, held := d.Held[r.Name]; !held && m.inferenceCluster != "" {
				note.PodsHash = v.podsHashes[r.Name]
			} else if m.inferenceCluster == "" && !m.deselected {
				note.PodsHash = ""
			}
			if home.Cluster == m.target.Cluster {
				note.HomeEpoch = noted(home.Epoch)
			}
			if note != (Note{}) {
				notes[r.Name] = note
			}
		}
	}
	return notes
}

// noted returns an epoch as it is noted. No object is left from before the first home.
func noted(epoch int64) int64 {
	if epoch <= 1 {
		return 0
	}
	return epoch
}

// updating returns the replicas of a cluster that do not count as copies, although they may be
// ready: those that are being updated, and those whose objects were not written since the group has
// its home there. A cache may still show an object from the last time that the group had its home
// there, which was deleted since.
func (v *view) updating(cluster string, at *ClusterState) map[key.ReplicaID]bool {
	all := map[key.ReplicaID]bool{}
	maps.Copy(all, at.Updating)
	for _, g := range v.demand.Groups {
		home := v.last.Homes[g.Name]
		if home.Epoch == 0 || home.Cluster != cluster {
			continue
		}
		for _, r := range g.Replicas {
			if !at.Present[r.Name] || at.Notes[r.Name].HomeEpoch == noted(home.Epoch) {
				continue
			}
			all[r.Name] = true
		}
	}
	return all
}
