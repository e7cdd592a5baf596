package cluster

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// AddNodes adds ready nodes with GPUs that nobody is behind, and returns how to
// remove them.
func (c *Kubernetes) AddNodes(ctx context.Context, n int, gpus int64) (remove func(context.Context) error, err error) {
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return nil, err
	}
	nodes := client.CoreV1().Nodes()
	for i := range n {
		if err := addNode(ctx, client, "node-"+strconv.Itoa(i), gpus); err != nil {
			return nil, fmt.Errorf("cannot add a node: %w", err)
		}
	}
	return func(ctx context.Context) error {
		return nodes.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	}, nil
}

func addNode(ctx context.Context, client kubernetes.Interface, name string, gpus int64) error {
	nodes := client.CoreV1().Nodes()
	if _, err := nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name:   name,
		Labels: map[string]string{corev1.LabelHostname: name},
	}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	// The API server taints new nodes, until a controller finds them ready.
	if _, err := nodes.Patch(ctx, name, types.MergePatchType, []byte(`{"spec":{"taints":null}}`), metav1.PatchOptions{}); err != nil {
		return err
	}
	has := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("128"),
		corev1.ResourceMemory: resource.MustParse("1Ti"),
		corev1.ResourcePods:   resource.MustParse("110"),
		"nvidia.com/gpu":      *resource.NewQuantity(gpus, resource.DecimalSI),
	}
	_, err := nodes.UpdateStatus(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.NodeStatus{
			Capacity: has, Allocatable: has,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}, metav1.UpdateOptions{})
	return err
}
