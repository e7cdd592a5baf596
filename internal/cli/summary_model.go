package cli

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// writeModel writes in which pools a model is, with which priority and targets.
func writeModel(b *strings.Builder, r *rendered) {
	name, _, _ := unstructured.NestedString(r.xr.Object, "status", "modelName")
	fmt.Fprintf(b, "\n  Model\t%s\n", name)
	if objective, _, _ := unstructured.NestedString(r.xr.Object, "status", "objectiveName"); objective != "" {
		fmt.Fprintf(b, "  Objective\t%s\n", objective)
	}
	first := true
	for _, o := range r.composed {
		cluster, _, inner := unwrap(o)
		rules, is, _ := unstructured.NestedSlice(inner.Object, "spec", "rules")
		if !is {
			continue
		}
		if first {
			fmt.Fprintln(b, "\n  POOL\tCLUSTER\tTARGETS")
			first = false
		}
		pool, _, _ := unstructured.NestedString(inner.Object, "spec", "poolRef", "name")
		fmt.Fprintf(b, "  %s\t%s\t%s\n", pool, text.Cluster(cluster), targetsOf(rules))
	}
}

// targetsOf lists the targets of a rewrite with their weights.
func targetsOf(rules []any) string {
	var all []string
	for _, r := range rules {
		rule, _ := r.(map[string]any)
		targets, _, _ := unstructured.NestedSlice(rule, "targets")
		for _, t := range targets {
			target, _ := t.(map[string]any)
			name, _, _ := unstructured.NestedString(target, "modelRewrite")
			all = append(all, fmt.Sprintf("%s (%v)", name, target["weight"]))
		}
	}
	return strings.Join(all, ", ")
}
