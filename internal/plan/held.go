package plan

import "fmt"

// A Held is an object that is wanted and, for now, left out of the desired
// state. Only what is not observed is ever held: leaving an observed object out
// would delete it.
type Held struct {
	// Key of the object.
	Key string
	// Reason it is held, in one word.
	Reason string
	// Message that says what it waits for.
	Message string
}

// The reasons to hold an object.
const (
	// HeldForGang waits until the scheduler's PodGroup counts the replica.
	HeldForGang = "WaitingForGang"
	// HeldForKind waits until the cluster has the kind.
	HeldForKind = "KindMissing"
)

// A PodGroupView is what is known of a PodGroup that exists.
type PodGroupView struct {
	// Observed tells whether it exists at all.
	Observed bool
	// MinTaskMember as it is in the cluster.
	MinTaskMember map[string]int32
	// SubGroupSizes as they are in the cluster, by the role's name.
	SubGroupSizes map[string]int32
}

// HoldForGang returns the new replicas of a gang that exists but does not count
// them yet: their pods would be scheduled one by one. At first creation there is
// no PodGroup, and everything comes at once.
func (p *Plan) HoldForGang(view func(key string) PodGroupView, observed func(key string) bool) []Held {
	var held []Held
	for i := range p.Deployments {
		for j := range p.Deployments[i].Groups {
			g := &p.Deployments[i].Groups[j]
			if g.PodGroup == nil {
				continue
			}
			v := view(g.PodGroup.Key)
			if !v.Observed {
				continue
			}
			held = append(held, g.uncounted(v, observed)...)
		}
	}
	return held
}

func (g *Group) uncounted(v PodGroupView, observed func(key string) bool) []Held {
	var held []Held
	for k := range g.Replicas {
		r := &g.Replicas[k]
		if g.PodGroup.counts(r, v) || observed(r.Key) {
			continue
		}
		held = append(held, Held{
			Key:     r.Key,
			Reason:  HeldForGang,
			Message: fmt.Sprintf("LeaderWorkerSet %s waits until PodGroup %s counts task %s", r.Name, g.PodGroup.Name, r.Task),
		})
	}
	return held
}

// counts tells whether the PodGroup in the cluster asks for a replica what the
// wanted one does.
func (pg *PodGroup) counts(r *Replica, v PodGroupView) bool {
	for _, s := range pg.SubGroups {
		if s.Role == r.Role.Name {
			return v.SubGroupSizes[s.Role] == s.Size
		}
	}
	want, asked := pg.MinTaskMember[r.Task]
	return !asked || v.MinTaskMember[r.Task] == want
}
