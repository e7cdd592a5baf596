package cluster

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
)

// A node is the part of a Node that is read.
type node struct {
	Metadata struct {
		Name              string            `json:"name"`
		Labels            map[string]string `json:"labels"`
		DeletionTimestamp string            `json:"deletionTimestamp"`
	} `json:"metadata"`
	Spec struct {
		Unschedulable bool             `json:"unschedulable"`
		Taints        []v1alpha1.Taint `json:"taints"`
	} `json:"spec"`
	Status struct {
		Allocatable corev1.ResourceList `json:"allocatable"`
		Conditions  []struct {
			Type   corev1.NodeConditionType `json:"type"`
			Status corev1.ConditionStatus   `json:"status"`
		} `json:"conditions"`
	} `json:"status"`
}

var nodeView = incoming.NewView[node]()

// class returns the class of the node alone.
func (n *node) class() capacity.NodeClass {
	return capacity.NodeClass{Count: 1, Free: capacity.NodeResources(n.Status.Allocatable), Taints: capacity.TaintsOf(v1alpha1.NodeTaints(n.Spec.Taints))}
}

// takesPods tells whether a scheduler assigns pods to the node.
func (n *node) takesPods() bool {
	if n.Spec.Unschedulable || n.Metadata.DeletionTimestamp != "" {
		return false
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
