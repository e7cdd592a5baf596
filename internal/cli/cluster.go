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

// writeCluster says who has what of a cluster, and who waits for what.
func writeCluster(b *strings.Builder, xr object) {
	st := v1alpha1.InferenceClusterStatus{}
	status, _, _ := unstructured.NestedMap(xr.Object, "status")
	delete(status, "conditions")
	if runtime.DefaultUnstructuredConverter.FromUnstructured(status, &st) != nil {
		return // The function's own status always has a form.
	}
	fmt.Fprintln(b, "\n  POOL\tNODES\tFREE, NODE BY NODE")
	for _, p := range st.Pools {
		var free []string
		for _, n := range p.Free {
			free = append(free, fmt.Sprintf("%d x (%s)", n.Nodes, amounts(n.Resources)))
		}
		fmt.Fprintf(b, "  %s\t%d\t%s\n", p.Name, p.Nodes, strings.Join(free, " + "))
	}
	if len(st.Allocations) > 0 {
		fmt.Fprintln(b, "\n  GRANTED TO\tPODS\tRESOURCES\tREPLICAS")
	}
	for _, a := range st.Allocations {
		fmt.Fprintf(b, "  %s/%s\t%d\t%s\t%s\n", a.Namespace, a.Name, a.Pods, amounts(a.Resources), strings.Join(a.Replicas, " "))
	}
	if len(st.Waiting) > 0 {
		fmt.Fprintln(b, "\n  WAITING\tREPLICAS\tWHY")
	}
	for _, w := range st.Waiting {
		fmt.Fprintf(b, "  %s/%s\t%d\t%s\n", w.Namespace, w.Name, w.Replicas, w.Message)
	}
	if st.Gateway != nil {
		fmt.Fprintf(b, "\n  Gateway\t%s\n", net.JoinHostPort(st.Gateway.Address, strconv.Itoa(int(st.Gateway.Port))))
	}
}

func amounts(list corev1.ResourceList) string {
	all := make([]string, 0, len(list))
	for _, name := range slices.Sorted(maps.Keys(list)) {
		q := list[name]
		all = append(all, q.String()+" "+string(name))
	}
	return strings.Join(all, ", ")
}
