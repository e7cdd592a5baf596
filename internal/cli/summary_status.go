package cli

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/service/observe"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// writeFleet writes which services run in each cluster, and which wait for capacity.
func writeFleet(b *strings.Builder, clusters []object) {
	if len(clusters) == 0 {
		return
	}
	fmt.Fprintln(b, "\nFleet")
	fmt.Fprintln(b, "  CLUSTER\tFREE\tSERVICE\tPODS\tREPLICAS")
	for _, o := range clusters {
		c := v1alpha1.InferenceCluster{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &c) != nil {
			continue // It never fails for a status that the function wrote.
		}
		fmt.Fprintf(b, "  %s\t%s\t\t\t\n", c.Name, c.Status.Summary)
		for _, a := range c.Status.Reservations {
			fmt.Fprintf(b, "  \t\t%s/%s\t%d\t%s\n", a.Namespace, a.Name, a.Pods, replicaText(a.Replicas))
		}
		for _, w := range c.Status.Pending {
			fmt.Fprintf(b, "  \t\t%s/%s\t\twaits: %s\n", w.Namespace, w.Name, w.Message)
		}
	}
}

// writePlacement writes which clusters the service runs in, and why it is not in the others.
func writePlacement(b *strings.Builder, xr object) {
	list, _, _ := unstructured.NestedSlice(xr.Object, "status", "clusters")
	for i, c := range list {
		m, _ := c.(map[string]any)
		field := func(f string) string { v, _, _ := unstructured.NestedString(m, f); return v }
		of := v1alpha1.ClusterStatus{}
		_ = runtime.DefaultUnstructuredConverter.FromUnstructured(m, &of) // The function wrote it.
		if i == 0 {
			fmt.Fprintln(b, "\nPlacement")
			fmt.Fprintln(b, "  CLUSTER\tSTATE\tASSIGNED\tWHY")
		}
		why := strings.Trim(field("reason")+": "+field("message"), ": ")
		fmt.Fprintf(b, "  %s\t%s\t%s\t%s\n", text.Cluster(field("name")), field("state"), replicaText(of.Assigned), why)
	}
}

// replicaText lists replicas as "group 0, group 1: 1 decode (2), 4 worker (0-3)": the number of
// replicas, the role and the indexes. A group alone is all of its replicas.
func replicaText(list []v1alpha1.Replicas) string {
	parts := make([]string, 0, len(list))
	for _, r := range list {
		var words []string
		if r.Group != nil {
			words = append(words, fmt.Sprintf("group %d", *r.Group))
		}
		switch {
		case len(r.Indexes) > 0:
			words = append(words, fmt.Sprintf("%d %s (%s)", len(r.Indexes), r.Role, ranges(r.Indexes)))
		case r.Role != "":
			words = append(words, r.Role)
		}
		parts = append(parts, strings.Join(words, ": "))
	}
	return strings.Join(parts, ", ")
}

// ranges lists numbers in ascending order as "0-3 7".
func ranges(sorted []int32) string {
	var parts []string
	for i := 0; i < len(sorted); {
		last := i
		for last+1 < len(sorted) && sorted[last+1] == sorted[last]+1 {
			last++
		}
		if last == i {
			parts = append(parts, strconv.Itoa(int(sorted[i])))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", sorted[i], sorted[last]))
		}
		i = last + 1
	}
	return strings.Join(parts, " ")
}

// writeWarnings writes what is probably a mistake. It is apart from what is not ready, which every new service has a list of.
func writeWarnings(b *strings.Builder, xr object) {
	for _, c := range conditionsOf(xr) {
		if !c.warns() {
			continue
		}
		fmt.Fprintln(b, "\nWarnings")
		for m := range strings.SplitSeq(c.Message, "; ") {
			fmt.Fprintf(b, "  %s\n", m)
		}
	}
}

// warns tells whether a condition has warnings.
func (c condition) warns() bool { return c.Type == observe.NoWarnings && c.Status == "False" }

// writeConditions writes the chosen conditions with their messages below a title.
func writeConditions(b *strings.Builder, title string, xr object, which func(condition) bool) {
	first := true
	for _, c := range conditionsOf(xr) {
		if !which(c) {
			continue
		}
		if first {
			fmt.Fprintln(b, "\n"+title)
			first = false
		}
		for i, m := range strings.Split(c.Message, "; ") {
			if i == 0 {
				fmt.Fprintf(b, "  %s\t%s\t%s\n", c.Type, c.Reason, m)
				continue
			}
			fmt.Fprintf(b, "  \t\t%s\n", m)
		}
	}
}
