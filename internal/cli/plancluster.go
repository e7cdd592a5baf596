package cli

import (
	"cmp"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/cluster"
)

// A clusterChange is a cluster before and after a change.
type clusterChange struct {
	Name   string `json:"name"`
	Change string `json:"change,omitempty"`
	Before string `json:"freeBefore,omitempty"`
	After  string `json:"freeAfter,omitempty"`
	// Overcommitted says where more is reserved than the cluster has, after the change. Services stay there, and some of their
	// pods have no node.
	Overcommitted string `json:"overcommitted,omitempty"`
	// changed tells that it was not so before, and refused that the function refuses the cluster. short tells that the change
	// makes it overcommitted, or in other pools than before.
	changed, refused, short bool
}

func compareCluster(id identity, before, after settledFleet) clusterChange {
	was, existed := before.clusters[id]
	is, exists := after.clusters[id]
	c := clusterChange{Name: id.name, Before: free(was), After: free(is), Overcommitted: overcommitted(is)}
	c.short = c.Overcommitted != "" && cluster.WithoutAmounts(c.Overcommitted) != cluster.WithoutAmounts(overcommitted(was))
	var all []string
	switch {
	case !exists:
		all = append(all, "deleted")
	case !existed:
		all = append(all, "new")
	default:
		all = append(all, edits(was, is)...)
	}
	c.changed = len(all) > 0
	if c.refused = exists && after.refused[id] != ""; c.refused {
		all = append(all, "refused")
	}
	if exists && after.lost[configOfCluster(is)] {
		all = append(all, "out of reach")
		c.changed = c.changed || !before.lost[configOfCluster(is)]
	}
	c.Change = strings.Join(all, ", ")
	return c
}

// edits are what somebody has changed of a cluster. Services may select it by its labels.
func edits(was, is object) []string {
	policy := func(o object) string {
		p, _, _ := unstructured.NestedString(o.Object, "spec", "stopPolicy")
		return cmp.Or(p, string(v1alpha1.StopNone))
	}
	besides := func(o object) object {
		o = *o.DeepCopy()
		unstructured.RemoveNestedField(o.Object, "spec", "stopPolicy")
		return o
	}
	labels := func(o object) map[string]string {
		all := maps.Clone(o.GetLabels())
		maps.DeleteFunc(all, func(k, _ string) bool { return strings.HasPrefix(k, crossplanePrefix) })
		return all
	}
	var all []string
	if policy(was) != policy(is) {
		all = append(all, "stopPolicy "+policy(is))
	}
	if !sameSpec(besides(was), besides(is)) {
		all = append(all, "spec changed")
	}
	if !maps.Equal(labels(was), labels(is)) {
		all = append(all, "labels changed")
	}
	return all
}

// overcommitted returns the message of a cluster in which more is reserved than it has, or an empty string.
func overcommitted(o object) string {
	for _, c := range conditionsOf(o) {
		if c.Type == cluster.CapacityConsistent && c.Reason == cluster.ReasonOvercommitted {
			return c.Message
		}
	}
	return ""
}

// free is the line of a cluster's status with what is free.
func free(o object) string {
	s, _, _ := unstructured.NestedString(o.Object, "status", "summary")
	return s
}
