package cli

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

// writeCluster says what of a cluster is reserved for whom, and who waits for what.
func writeCluster(b *strings.Builder, xr object) {
	st := v1alpha1.InferenceClusterStatus{}
	status, _, _ := unstructured.NestedMap(xr.Object, "status")
	delete(status, "conditions")
	if runtime.DefaultUnstructuredConverter.FromUnstructured(status, &st) != nil {
		return // It never fails for a status that the function wrote.
	}
	fmt.Fprintln(b, "\n  POOL\tNODES\tFREE, NODE BY NODE")
	for _, p := range st.Pools {
		var free []string
		for _, n := range p.Free {
			free = append(free, fmt.Sprintf("%d x (%s)%s", n.NodeCount, amounts(n.Resources), taintText(n.Taints)))
		}
		fmt.Fprintf(b, "  %s\t%d\t%s\n", p.Name, p.NodeCount, strings.Join(free, " + "))
	}
	if len(st.Reservations) > 0 {
		fmt.Fprintln(b, "\n  RESERVED FOR\tPODS\tRESOURCES\tREPLICAS")
	}
	for _, a := range st.Reservations {
		fmt.Fprintf(b, "  %s/%s\t%d\t%s\t%s\n", a.Namespace, a.Name, a.Pods, amounts(a.Resources), replicaText(a.Replicas))
	}
	if len(st.Pending) > 0 {
		fmt.Fprintln(b, "\n  PENDING\tREPLICAS\tWHY")
	}
	for _, w := range st.Pending {
		fmt.Fprintf(b, "  %s/%s\t%d\t%s\n", w.Namespace, w.Name, w.ReplicaCount, w.Message)
	}
	if st.Entrypoint != nil {
		fmt.Fprintf(b, "\n  Entrypoint\t%s\n", net.JoinHostPort(st.Entrypoint.Address.Value, strconv.Itoa(int(st.Entrypoint.Port))))
	}
}

// taintText lists the taints of nodes, if they have some.
func taintText(taints []v1alpha1.Taint) string {
	nodes := v1alpha1.NodeTaints(taints)
	all := make([]string, len(nodes))
	for i := range nodes {
		all[i] = nodes[i].ToString()
	}
	if len(all) == 0 {
		return ""
	}
	return " with " + strings.Join(all, ", ")
}

func amounts(list corev1.ResourceList) string {
	all := make([]string, 0, len(list))
	for _, name := range slices.Sorted(maps.Keys(list)) {
		q := list[name]
		all = append(all, q.String()+" "+string(name))
	}
	return strings.Join(all, ", ")
}
