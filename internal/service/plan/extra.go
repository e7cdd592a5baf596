package plan

import (
	"slices"

	"github.com/fusioninfer/function-inferenceservice/internal/key"
)

// An extraUnit is a unit beyond those that are wanted. Extra units are numbered from 0. A number below 0 stands for a group
// that is wanted, and has replicas beyond those of its roles.
type extraUnit struct {
	number int32
	// kept ones are more than the rollout asks for. They serve in the place of others.
	kept bool
	// exist has the replicas that exist of the extra units of the cluster.
	exist existingReplicas
}

// existingReplicas are some replicas that exist, by their groups and roles. All units of a cluster share them, because there may be
// thousands of both.
type existingReplicas struct {
	has     map[key.ReplicaID]bool
	indexes map[roleOfGroup][]int32
}

type roleOfGroup struct {
	group int32
	role  string
}

func existingOf(ids []key.ReplicaID) existingReplicas {
	e := existingReplicas{has: make(map[key.ReplicaID]bool, len(ids)), indexes: map[roleOfGroup][]int32{}}
	for _, id := range ids {
		group, role, index, _ := id.Parts()
		at := roleOfGroup{group, role}
		e.has[id], e.indexes[at] = true, append(e.indexes[at], index)
	}
	return e
}

// numbersOf returns the numbers of the extra units in which replicas are, by their kinds.
func (p *Plan) numbersOf(ids []key.ReplicaID) map[string][]int32 {
	all := map[string][]int32{}
	for _, id := range ids {
		if kind, number, is := p.extraNumber(id); is && !slices.Contains(all[kind], number) {
			all[kind] = append(all[kind], number)
		}
	}
	for _, numbers := range all {
		slices.Sort(numbers)
	}
	return all
}

// extraNumber returns the kind and the number of the extra unit in which a replica would be, if it is
// beyond those that are wanted.
func (p *Plan) extraNumber(id key.ReplicaID) (kind string, number int32, is bool) {
	r := p.RoleOf(id)
	if r == nil || id.Grouped() != p.Service.Grouped {
		return "", 0, false
	}
	group, _, index, _ := id.Parts()
	beyond := index - r.Replicas
	wanted := beyond < 0
	switch {
	case p.Service.Grouped:
		beyond = group - p.groups
		wanted = wanted && beyond < 0
	case p.InPair(r):
		beyond /= p.perPair(r)
	}
	if wanted || r.Replicas == 0 {
		return "", 0, false
	}
	return p.kind(r), beyond, true
}

// extraReplicas returns the replicas of some units beyond those of a cluster, by their kinds.
func (p *Plan) extraReplicas(c *ClusterPlan, units map[string][]extraUnit) []Replica {
	var all []Replica
	for _, kind := range p.kinds() {
		for _, u := range units[kind] {
			for _, r := range p.replicasOf(c, kind, u) {
				// Nothing is added to a unit that goes.
				if r.Kept = u.kept; !u.kept || u.exist.has[r.ID] {
					all = append(all, r)
				}
			}
		}
	}
	return all
}

// replicasOf returns the replicas of an extra unit. In a group that is wanted they are those that exist.
func (p *Plan) replicasOf(c *ClusterPlan, kind string, u extraUnit) []Replica {
	var all []Replica
	for _, r := range p.Roles {
		if p.kind(r) != kind || r.Replicas == 0 {
			continue
		}
		add := func(group, index int32) {
			replica := p.replica(c, r, group, index)
			replica.Extra = true
			all = append(all, replica)
		}
		group, first, n := int32(0), r.Replicas+u.number, int32(1)
		switch {
		case p.Service.Grouped:
			group, first, n = p.groups+u.number, 0, r.Replicas
			if u.number < 0 {
				n = 0
			}
			// The role may have had more replicas before.
			for _, index := range u.exist.indexes[roleOfGroup{group, r.Name}] {
				if index >= n {
					add(group, index)
				}
			}
		case p.InPair(r):
			n = p.perPair(r)
			first = r.Replicas + u.number*n
		}
		for i := range n {
			add(group, first+i)
		}
	}
	return all
}

// addExtra adds extra replicas to their groups. Groups that do not exist are added.
func (c *ClusterPlan) addExtra(p *Plan, replicas []Replica) {
	at, grown := map[int32]int{}, map[int]bool{}
	for i := range c.Groups {
		at[c.Groups[i].Index] = i
	}
	for _, r := range replicas {
		i, known := at[r.Group]
		if !known {
			i = len(c.Groups)
			at[r.Group] = i
			c.Groups = append(c.Groups, Group{Index: r.Group})
		}
		c.Groups[i].Replicas, grown[i] = append(c.Groups[i].Replicas, r), true
	}
	for i := range grown {
		c.addGang(p, &c.Groups[i], p.gang)
	}
}

// mostExtraOf is how many replicas a rollout may run in each group beyond the most that a role may have. Scaling
// changes how many replicas of a role are in one unit with the other.
func (p *Plan) mostExtraOf(r *Role) int32 {
	switch {
	case p.Service.Grouped, r.Most() == 0:
		return 0
	case !p.InPair(r):
		return *p.Rollout.MaxSurge
	case p.scales():
		return *p.Rollout.MaxSurge * r.Most()
	}
	return *p.Rollout.MaxSurge * p.perPair(r)
}

// mostGroups is how many groups a rollout may run.
func (p *Plan) mostGroups() int64 {
	if p.Service.Grouped {
		return int64(p.groups) + int64(*p.Rollout.MaxSurge)
	}
	return int64(p.groups)
}
