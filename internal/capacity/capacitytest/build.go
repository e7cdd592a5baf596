// Package capacitytest builds node classes, pools and pod requirements for tests of the
// packages that use capacity.
package capacitytest

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
)

// The resources that the builders count.
const (
	GPU = "nvidia.com/gpu"
	CPU = "cpu"
)

// Requirements returns those of a pod with some GPUs and CPUs, on the nodes of a pool if one is
// named.
func Requirements(gpus, cpus int64, pool ...string) *capacity.PodRequirements {
	r := &capacity.PodRequirements{Requests: capacity.Resources{}}
	if gpus > 0 {
		r.Requests[GPU] = 1000 * gpus
	}
	if cpus > 0 {
		r.Requests[CPU] = 1000 * cpus
	}
	if len(pool) > 0 {
		r.NodeSelector = map[string]string{"pool": pool[0]}
	}
	return r
}

// Pool returns a pool of some nodes, which have its name as the label "pool".
func Pool(name string, nodes ...capacity.NodeClass) capacity.Pool {
	return capacity.NewPool(name, map[string]string{"pool": name}, nodes)
}

// Nodes returns a class of count nodes with these GPUs and CPUs each.
func Nodes(count, gpus, cpus int64) capacity.NodeClass {
	return capacity.NodeClass{Count: count, Free: capacity.Resources{GPU: 1000 * gpus, CPU: 1000 * cpus}}
}

// Tainted returns the class with a taint for each of some teams, in their order: dedicated={team}:NoSchedule.
func Tainted(nodes capacity.NodeClass, teams ...string) capacity.NodeClass {
	for _, team := range teams {
		nodes.Taints = append(nodes.Taints, corev1.Taint{Key: "dedicated", Value: team, Effect: corev1.TaintEffectNoSchedule})
	}
	return nodes
}

// Tolerating returns the requirements of a pod that tolerates the taints for some teams, in their order.
func Tolerating(r *capacity.PodRequirements, teams ...string) *capacity.PodRequirements {
	tolerates := *r
	for _, team := range teams {
		tolerates.Tolerations = append(tolerates.Tolerations, corev1.Toleration{Key: "dedicated", Operator: corev1.TolerationOpEqual, Value: team, Effect: corev1.TaintEffectNoSchedule})
	}
	return &tolerates
}

// Conserved fails the test unless exactly the pod sets were taken from the free capacity, and
// no node has less than nothing left.
func Conserved(t testing.TB, before, after capacity.Free, podSets []capacity.PodSet) {
	t.Helper()
	want := capacity.Resources{}
	for _, podSet := range podSets {
		want.Add(podSet.Requirements.Requests, podSet.Count)
	}
	got := capacity.Resources{}
	for i := range after.Pools {
		had, _ := sum(t, before.Pools[i])
		has, count := sum(t, after.Pools[i])
		if count != before.Pools[i].NodeCount {
			t.Fatalf("pool %d has %d nodes, of %d", i, count, before.Pools[i].NodeCount)
		}
		for name := range had {
			got[name] += had[name] - has[name]
		}
	}
	for _, name := range []string{GPU, CPU} {
		if got[name] != want[name] {
			t.Fatalf("%d of %s were taken, and %d were requested: %s", got[name], name, want[name], Text(podSets))
		}
	}
}

// sum returns what is free in a pool, and how many nodes it has. It fails the test for less
// than nothing.
func sum(t testing.TB, pool capacity.Pool) (capacity.Resources, int64) {
	t.Helper()
	total, count := capacity.Resources{}, int64(0)
	for _, n := range pool.Free {
		count += n.Count
		for name, free := range n.Free {
			if free < 0 || n.Count < 0 {
				t.Fatalf("overcommitted: %v", pool)
			}
			total[name] += free * n.Count
		}
	}
	return total, count
}

// Text lists pod sets for a message.
func Text(podSets []capacity.PodSet) string {
	all := make([]string, 0, len(podSets))
	for _, podSet := range podSets {
		all = append(all, fmt.Sprintf("%d x %s", podSet.Count, podSet.Requirements.Key()))
	}
	return strings.Join(all, "; ")
}
