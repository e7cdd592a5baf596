package capacity

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// A poolGroup is a set of pools, without the nodes from which the taints in barred keep pods. want is the
// sum of what the pods request that may go to exactly these nodes, and pod is one of them. gone is what
// others give back that may be in one of the pools.
type poolGroup struct {
	pools      []int
	barred     []string
	pod        *PodRequirements
	want, gone Resources
}

// maxTaints is how many taints a message names.
const maxTaints = 4

// Short says of which resource the nodes together have too little for some pods, once others
// have gone. It returns nothing where the sums suffice. The pods may still not fit onto single
// nodes.
func (f *Free) Short(podSets, gone []PodSet) string {
	groups, nowhere := f.groups(podSets)
	if nowhere != "" {
		return nowhere
	}
	for _, podSet := range gone {
		pools := f.poolsFor(podSet.Requirements)
		for _, g := range groups {
			if slices.ContainsFunc(pools, func(i int) bool { return slices.Contains(g.pools, i) }) {
				g.gone.AddPods(podSet)
			}
		}
	}
	for _, g := range groups {
		for _, name := range sortedNames(g.want) {
			free, total, unlimited := f.sum(g.pools, name, g.pod)
			if want := g.want[name] - g.gone[name]; !unlimited && free < want {
				return f.shortage(g, name, free, total, want)
			}
		}
	}
	return ""
}

// groups returns pods by the nodes that they may go to, or says why some of them may go to none.
func (f *Free) groups(podSets []PodSet) ([]*poolGroup, string) {
	var groups []*poolGroup
	parts := f.parts()
	for _, podSet := range podSets {
		pools := f.poolsFor(podSet.Requirements)
		if len(f.Pools) == 0 {
			return nil, "the cluster has no nodes, or they are not known yet"
		}
		if len(pools) == 0 {
			return nil, "no pool has the labels " + labels.Set(selectorOf(podSet.Requirements)).String()
		}
		barred, all := parts.barred(podSet.Requirements, pools)
		if all && !f.Pools[pools[0]].Estimated { // An estimate does not have the nodes that are full.
			return nil, "the nodes of " + f.names(pools) + " have taints that the pods do not tolerate: " + text.Names(barred, maxTaints)
		}
		i := slices.IndexFunc(groups, func(g *poolGroup) bool { return slices.Equal(g.pools, pools) && slices.Equal(g.barred, barred) })
		if i < 0 {
			i = len(groups)
			groups = append(groups, &poolGroup{pools: pools, barred: barred, pod: podSet.Requirements, want: Resources{}, gone: Resources{}})
		}
		groups[i].want.AddPods(podSet)
	}
	return groups, ""
}

// shortage says how much of a resource some pools lack, or that they have none at all.
func (f *Free) shortage(g *poolGroup, name string, free, total, want int64) string {
	switch {
	case total > 0 || f.Pools[g.pools[0]].Estimated:
		short := fmt.Sprintf("%s %s free in %s, %s short", f.amount(g.pools, free, total), name, f.names(g.pools), quantityText(want-free))
		if len(g.barred) > 0 {
			short += ", without the nodes that have taints that the pods do not tolerate: " + text.Names(g.barred, maxTaints)
		}
		return short
	case len(g.pools) > 1:
		return fmt.Sprintf("%s have no %s", f.names(g.pools), name)
	}
	return fmt.Sprintf("%s has no %s", f.names(g.pools), name)
}

// selectorOf returns the labels of the nodes that a pod goes to.
func selectorOf(r *PodRequirements) map[string]string {
	selector := map[string]string{}
	if r.Pin != nil {
		maps.Copy(selector, r.Pin.NodeSelector)
	}
	maps.Copy(selector, r.NodeSelector)
	return selector
}

// amount says how much of a resource is free in some pools.
func (f *Free) amount(pools []int, free, total int64) string {
	if f.Pools[pools[0]].Estimated {
		return "about " + quantityText(free)
	}
	return quantityText(free) + " of " + quantityText(total)
}

// sum adds up a resource over some pools. What is free on nodes with taints that a pod does not tolerate
// does not count, if there is a pod. Unlimited tells that one of the pools has nodes that do not count the
// resource.
func (f *Free) sum(pools []int, name string, pod *PodRequirements) (free, total int64, unlimited bool) {
	for _, i := range pools {
		p := &f.Pools[i]
		total = Saturated(total, p.Total[name], 1)
		for _, n := range p.Free {
			if pod != nil && !n.admits(pod) {
				continue
			}
			if _, named := n.Free[name]; n.Count > 0 && !named && slices.Contains(uncounted, name) {
				unlimited = true
			}
			free = Saturated(free, n.Free[name], n.Count)
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

// fragmentation says which pods fit onto no node although the sums suffice.
func fragmentation(short *PodSet) string {
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

// Devices returns how many devices of all kinds are free, and how many there are. The summary is one line with each kind.
func (f *Free) Devices() (summary string, free, total int64) {
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
		if IsDevice(name) {
			some, of, _ := f.sum(all, name, nil)
			free, total = Saturated(free, some/1000, 1), Saturated(total, of/1000, 1)
			parts = append(parts, fmt.Sprintf("%s/%s %s", quantityText(some), quantityText(of), name))
		}
	}
	return strings.Join(parts, ", "), free, total
}
