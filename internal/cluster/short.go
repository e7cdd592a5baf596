package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

const (
	nodesAreGone = "nodes are gone, tainted, cordoned or not Ready"
	// amounts is between where more is reserved than there is, and how much.
	amounts = ". Reserved: "
)

// WithoutAmounts returns the message of CapacityConsistent without the amounts that are reserved. It is the same while the same pools are short
// for the same causes.
func WithoutAmounts(message string) string {
	where, _, _ := strings.Cut(message, amounts)
	return where
}

// overcommitted says where more is reserved than there is, and why. Nobody but the author of the spec takes away nodes that are typed in.
func overcommitted(c *parsed, p *ledgerPlan) string {
	if p.Overcommitted {
		cause := "spec.pools has changed, such as nodeCount, allocatable or taints"
		if len(c.observedPools()) > 0 {
			cause = nodesAreGone + ", or spec.pools has changed"
		}
		return withAmounts("more is reserved than the cluster has, because "+cause+". Nothing new is reserved", p.shortOfAll())
	}
	var pools, short []string
	taken := p.takenByPool()
	for _, name := range p.ShortPools {
		cause := nodesAreGone
		if c.typesIn(name) {
			cause = "see its nodeCount, allocatable and taints in spec.pools"
		}
		pools = append(pools, fmt.Sprintf("%s (%s)", name, cause))
		for _, each := range shortOf(taken[name], p.totalOf(name)) {
			short = append(short, each+" in pool "+name)
		}
	}
	return withAmounts("more is reserved in these pools than they have. Nothing new is reserved there: "+text.List(pools), short)
}

func withAmounts(message string, short []string) string {
	if len(short) == 0 {
		return message
	}
	return message + amounts + text.List(short)
}

// typesIn tells whether the spec says how many nodes a pool has.
func (c *parsed) typesIn(pool string) bool {
	return slices.ContainsFunc(c.Spec.Pools, func(p v1alpha1.Pool) bool { return p.Name == pool && p.NodeCount != nil })
}

// takenByPool returns what is reserved in each pool, by its name. What may be in any pool is under an empty name.
func (p *ledgerPlan) takenByPool() map[string]capacity.Resources {
	taken := map[string]capacity.Resources{}
	for i := range p.Services {
		for j := range p.Services[i].Grants {
			g := &p.Services[i].Grants[j]
			pool := p.poolOf(g)
			if taken[pool] == nil {
				taken[pool] = capacity.Resources{}
			}
			taken[pool].Add(p.Services[i].UsageOf(g), 1)
		}
	}
	return taken
}

// totalOf returns what the pool of a name has.
func (p *ledgerPlan) totalOf(name string) capacity.Resources {
	total := capacity.Resources{}
	for i := range p.Free.Pools {
		if p.Free.Pools[i].Name == name {
			total.Add(p.Free.Pools[i].Total, 1)
		}
	}
	return total
}

// shortOfAll returns the devices of which more is reserved in the cluster than it has.
func (p *ledgerPlan) shortOfAll() []string {
	taken, total := capacity.Resources{}, capacity.Resources{}
	for i := range p.Services {
		all, _ := p.Services[i].Usage()
		taken.Add(all, 1)
	}
	for i := range p.Free.Pools {
		total.Add(p.Free.Pools[i].Total, 1)
	}
	return shortOf(taken, total)
}

// shortOf returns the devices of which more is reserved than there is. None is short if the nodes lack CPU or memory, have taints, or have
// room only between them.
func shortOf(taken, there capacity.Resources) []string {
	var short []string
	for _, name := range slices.Sorted(maps.Keys(taken)) {
		if capacity.IsDevice(name) && taken[name] > there[name] {
			has, of := capacity.Quantity(name, taken[name]), capacity.Quantity(name, there[name])
			short = append(short, fmt.Sprintf("%s of %s %s", has.String(), of.String(), name))
		}
	}
	return short
}

// poolOf returns the name of the pool that a grant is counted in, or nothing if it may be in any.
func (p *ledgerPlan) poolOf(g *reservation.Grant) string {
	if g.Pin == nil {
		return ""
	}
	return p.Free.PinnedTo(&capacity.PodRequirements{Pin: g.Pin})
}
