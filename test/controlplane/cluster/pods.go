package cluster

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
)

// Running is the state of a container that serves.
func Running() corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(time.Now())}}
}

// Waiting is the state of a container that a kubelet does not start.
func Waiting(reason string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
}

// Ended is the state of a container that has ended and is not started again yet.
func Ended(reason string, code int32) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		Reason: reason, ExitCode: code, FinishedAt: metav1.NewTime(time.Now()),
	}}
}

// SetPod says of a pod what its kubelet would: the state of its first container,
// how often that was started again, and whether the pod is ready. KWOK has
// nothing to say about a pod any more once it runs, so this stays.
func (c *Kubernetes) SetPod(ctx context.Context, pod types.NamespacedName, is corev1.ContainerState, restarts int32, ready bool) error {
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	pods := client.CoreV1().Pods(pod.Namespace)
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		p, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for i := range p.Status.Conditions {
			t := &p.Status.Conditions[i]
			if t.Type == corev1.PodReady || t.Type == corev1.ContainersReady {
				t.Status, t.LastTransitionTime = status, metav1.NewTime(time.Now())
			}
		}
		for i := range p.Status.ContainerStatuses[:1] {
			s := &p.Status.ContainerStatuses[i]
			s.State, s.RestartCount, s.Ready = is, restarts, ready
		}
		_, err = pods.UpdateStatus(ctx, p, metav1.UpdateOptions{})
		return err
	})
}

// Cordon keeps new pods away from a node, or no longer. What runs there stays.
func (c *Kubernetes) Cordon(ctx context.Context, node string, away bool) error {
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	patch := []byte(`{"spec":{"unschedulable":false}}`)
	if away {
		patch = []byte(`{"spec":{"unschedulable":true}}`)
	}
	_, err = client.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// Taint gives a node these taints and no others, so that none takes all away.
func (c *Kubernetes) Taint(ctx context.Context, node string, taints ...corev1.Taint) error {
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		n, err := client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		n.Spec.Taints = taints
		_, err = client.CoreV1().Nodes().Update(ctx, n, metav1.UpdateOptions{})
		return err
	})
}
