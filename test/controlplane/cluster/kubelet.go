package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// A Kubelet does for all pods that are bound to a node what kubelets do, without
// any container: it says that they run and are ready, and lets them go when they are
// deleted.
type Kubelet struct {
	client kubernetes.Interface
	// bind binds what no scheduler looks after.
	bind string
}

// RunKubelet starts a kubelet that ends with the cluster. Pods are bound to the
// given node as they come, unless it is empty: then they wait for a scheduler.
func (c *Kubernetes) RunKubelet(bind string) error {
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	k := &Kubelet{client: client, bind: bind}
	c.begin(func(ctx context.Context) error {
		return every(ctx, func(ctx context.Context) error {
			// What conflicts, or is gone by now, is met again or not in the next round.
			if err := k.sync(ctx); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
				return fmt.Errorf("the kubelet fails: %w", err)
			}
			return nil
		})
	})
	return nil
}

// every does something again and again, until it fails or the context ends.
func every(ctx context.Context, f func(context.Context) error) error {
	for {
		if err := f(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pollEvery):
		}
	}
}

func (k *Kubelet) sync(ctx context.Context) error {
	pods, err := k.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		switch {
		case pod.DeletionTimestamp != nil:
			err = k.remove(ctx, pod)
		case pod.Spec.NodeName == "" && k.bind != "":
			err = k.client.CoreV1().Pods(pod.Namespace).Bind(ctx, &corev1.Binding{
				ObjectMeta: metav1.ObjectMeta{Name: pod.Name, UID: pod.UID},
				Target:     corev1.ObjectReference{Kind: "Node", Name: k.bind},
			}, metav1.CreateOptions{})
		case pod.Spec.NodeName != "" && pod.Status.Phase == corev1.PodPending:
			err = k.run(ctx, pod)
		}
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

func (k *Kubelet) remove(ctx context.Context, pod *corev1.Pod) error {
	now := int64(0)
	return k.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &now,
		Preconditions:      &metav1.Preconditions{UID: &pod.UID},
	})
}

func (k *Kubelet) run(ctx context.Context, pod *corev1.Pod) error {
	now := metav1.NewTime(time.Now())
	status := corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &now}
	for _, c := range []corev1.PodConditionType{corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: c, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	yes := true
	for _, c := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, Ready: true, Started: &yes,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		})
	}
	b, err := json.Marshal(struct {
		Status corev1.PodStatus `json:"status"`
	}{status})
	if err != nil {
		return err
	}
	_, err = k.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, b, metav1.PatchOptions{}, "status")
	return err
}
