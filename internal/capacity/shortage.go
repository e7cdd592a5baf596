package capacity

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A poolGroup is a set of pools, and the sum of what the pods request that may go to exactly
// these.
type poolGroup struct {
	pools []int
	want  Resources
}

// insufficient says of which resource the nodes together have too little. It returns nothing
// where the sums suffice.
func (f *Free) insufficient(podSets []PodSet) string {
	var groups []*poolGroup
	for _, podSet := range podSets {
		pools := f.poolsFor(podSet.Requirements)
		if len(f.Pools) == 0 {
			return "the cluster has no nodes, or they are not known yet"
		}
		if len(pools) == 0 {
			return "no pool has the labels " + labelText(podSet.Requirements.NodeSelector)
		}
		i := slices.IndexFunc(groups, func(g *poolGroup) bool { return slices.Equal(g.pools, pools) })
		if i < 0 {
			i = len(groups)
			groups = append(groups, &poolGroup{pools: pools, want: Resources{}})
		}
		groups[i].want.AddPods(podSet)
	}
	for _, g := range groups {
		for _, name := range sortedNames(g.want) {
			free, total, unlimited := f.sum(g.pools, name)
			if !unlimited && free < g.want[name] {
				return fmt.Sprintf("%s of %s %s free in %s, %s short", quantityText(free), quantityText(total), name, f.names(g.pools), quantityText(g.want[name]-free))
			}
		}
	}
	return ""
}

// poolsFor returns the indexes of the pools that the node selector of the pod selects.
func (f *Free) poolsFor(pod *PodRequirements) []int {
	var pools []int
	for i := range f.Pools {
		if f.Pools[i].matches(pod) {
			pools = append(pools, i)
		}
	}
	return pools
}

// sum adds up a resource over some pools. Unlimited tells that one of them has nodes that do
// not count it.
func (f *Free) sum(pools []int, name string) (free, total int64, unlimited bool) {
	for _, i := range pools {
		p := &f.Pools[i]
		total = saturated(total, p.Total[name], 1)
		for _, n := range p.Free {
			if n.Count > 0 && !Limits(n.Free, name) {
				unlimited = true
			}
			free = saturated(free, n.Free[name], n.Count)
		}
	}
	return free, total, unlimited
}

func (f *Free) names(pools []int) string {
	names := make([]string, 0, len(pools))
	for _, i := range pools {
		names = append(names, f.Pools[i].Name)
	}
	if len(names) == 1 {
		return "pool " + names[0]
	}
	return "pools " + strings.Join(names, ", ")
}

func labelText(labels map[string]string) string {
	all := make([]string, 0, len(labels))
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		all = append(all, k+"="+labels[k])
	}
	return strings.Join(all, ",")
}

// fragmentation says which pods fit onto no node although the sums suffice.
func (f *Free) fragmentation(short *PodSet, podSets []PodSet) string {
	if short == nil || len(podSets) == 0 {
		return "no way was found to fit the pods onto the nodes"
	}
	requests := make([]string, 0, len(short.Requirements.Requests))
	for _, name := range sortedNames(short.Requirements.Requests) {
		requests = append(requests, quantityText(short.Requirements.Requests[name])+" "+name)
	}
	pods := "1 pod does"
	if short.Count != 1 {
		pods = fmt.Sprintf("%d pods do", short.Count)
	}
	return fmt.Sprintf("%s not fit: no node has %s free, although the nodes together have enough", pods, strings.Join(requests, ", "))
}

// DeviceSummary returns one line with the free and the total amount of each device.
func (f *Free) DeviceSummary() string {
	names := Resources{}
	for i := range f.Pools {
		maps.Copy(names, f.Pools[i].Total)
	}
	all := make([]int, len(f.Pools))
	for i := range all {
		all[i] = i
	}
	var parts []string
	for _, name := range sortedNames(names) {
		if device(name) {
			free, total, _ := f.sum(all, name)
			parts = append(parts, fmt.Sprintf("%s/%s %s", quantityText(free), quantityText(total), name))
		}
	}
	return strings.Join(parts, ", ")
}
