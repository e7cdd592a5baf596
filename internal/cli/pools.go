package cli

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

// What a plan may get wrong of the observed nodes of a cluster and its pools.
const (
	nodesUnknown = "%s: the nodes of pool %s are observed, and its status does not have them, so nothing is placed there. Write nodeCount and allocatable into the file"
	taintsDiffer = "%s: the nodes of pool %s have different taints, and only those that all of them have count here"
	sizesDiffer  = "%s: the nodes of pool %s have different numbers of devices, and each counts with their average, so what fits here may differ. Write nodeCount and allocatable into the file"
)

// countNodes types in the nodes of pools whose nodes are observed, as the status has them:
// nothing can be observed here. It says what it does not know.
func countNodes(all []object) []string {
	var warnings []string
	for _, o := range all {
		if !ofCluster(o) {
			continue
		}
		doubted := map[string][]string{}
		pools, _, _ := unstructured.NestedSlice(o.Object, "spec", "pools")
		for _, p := range pools {
			pool, _ := p.(map[string]any)
			if _, counted := pool["nodeCount"]; counted || pool == nil {
				continue
			}
			name, _ := pool["name"].(string)
			for _, doubt := range countPool(o, name, pool) {
				doubted[doubt] = append(doubted[doubt], name)
			}
		}
		if len(pools) > 0 {
			_ = unstructured.SetNestedSlice(o.Object, pools, "spec", "pools") // They were read from there.
		}
		for _, doubt := range []string{nodesUnknown, taintsDiffer, sizesDiffer} {
			if names := doubted[doubt]; len(names) > 0 {
				warnings = append(warnings, fmt.Sprintf(doubt, o.GetName(), strings.Join(names, ", ")))
			}
		}
	}
	return warnings
}

// countPool sets nodeCount, allocatable and taints of a pool by the status of its cluster. It returns what a plan may get wrong
// of the nodes: a pool that is typed in has one kind of them.
func countPool(o object, name string, pool map[string]any) (doubts []string) {
	status := v1alpha1.InferenceClusterStatus{}
	m, _, _ := unstructured.NestedMap(o.Object, "status")
	delete(m, "conditions")
	if runtime.DefaultUnstructuredConverter.FromUnstructured(m, &status) != nil {
		return []string{nodesUnknown}
	}
	i := slices.IndexFunc(status.Pools, func(p v1alpha1.PoolStatus) bool { return p.Name == name })
	// A pool whose nodes were not known has none in the status.
	if i < 0 || status.Pools[i].NodeCount == 0 && conditionOf(o, v1alpha1.ConditionNodesObserved) == "Unknown" {
		return []string{nodesUnknown}
	}
	n := int64(status.Pools[i].NodeCount)
	each := map[string]any{}
	for r, q := range status.Pools[i].Capacity {
		// A node may have any name in its status. No pod can request those that are refused in a spec.
		if len(check.ResourceName(nil, string(r))) > 0 {
			continue
		}
		each[string(r)] = resource.NewMilliQuantity(q.MilliValue()/max(n, 1), q.Format).String()
	}
	pool["nodeCount"], pool["allocatable"] = n, each
	common, same := commonTaints(status.Pools[i].Free)
	if len(common) > 0 {
		pool["taints"] = common
	}
	if !same {
		doubts = append(doubts, taintsDiffer)
	}
	if !sameDevices(&status.Pools[i]) {
		doubts = append(doubts, sizesDiffer)
	}
	return doubts
}

// sameDevices tells whether all nodes of a pool may have the same devices: each has a whole number of them, and none has more
// free than the average.
func sameDevices(p *v1alpha1.PoolStatus) bool {
	n := int64(max(p.NodeCount, 1))
	for r, q := range p.Capacity {
		larger := func(free v1alpha1.FreeNodes) bool { left := free.Resources[r]; return left.Value()*n > q.Value() }
		if strings.Contains(string(r), "/") && (q.Value()%n != 0 || slices.ContainsFunc(p.Free, larger)) {
			return false
		}
	}
	return true
}

// commonTaints returns the taints that all of some nodes have, and whether they have no others.
func commonTaints(free []v1alpha1.FreeNodes) (common []any, same bool) {
	same = true
	for i := range free {
		same = same && slices.Equal(free[i].Taints, free[0].Taints)
	}
	if len(free) == 0 {
		return nil, true
	}
	for _, t := range free[0].Taints {
		if !slices.ContainsFunc(free, func(n v1alpha1.FreeNodes) bool { return !slices.Contains(n.Taints, t) }) {
			common = append(common, map[string]any{"key": t.Key, "value": t.Value, "effect": string(t.Effect)})
		}
	}
	return common, same
}
