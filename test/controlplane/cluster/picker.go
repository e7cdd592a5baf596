package cluster

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
)

// A Picker is the process of an endpoint picker.
type Picker struct {
	// GRPC, Health and Metrics are where it listens.
	GRPC, Health, Metrics string
	// Liveness and Readiness are the services that its probes ask for.
	Liveness, Readiness string

	c       *Kubernetes
	process *process
}

// Stop ends the process.
func (p *Picker) Stop() { p.c.end(p.process) }

// Failed adds the end of its log to what went wrong.
func (p *Picker) Failed(why string) error { return p.process.failed(why) }

// RunPicker runs the endpoint picker of a Deployment, whose pods KWOK only simulates. It has the
// arguments, environment, configuration and ServiceAccount of its container. Two things differ
// from a pod. Its ConfigMap is in another directory, which its arguments name. All pods share one
// machine, so it gets free ports in place of its default ones.
func (c *Kubernetes) RunPicker(ctx context.Context, namespace, deployment string) (*Picker, error) {
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return nil, err
	}
	d, err := client.AppsV1().Deployments(namespace).Get(ctx, deployment, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	pod, err := onlyPod(ctx, client, d)
	if err != nil {
		return nil, err
	}
	of := pod.Spec.Containers[0]
	mounted, err := c.mountConfig(ctx, client, pod)
	if err != nil {
		return nil, err
	}
	env, err := downward(pod, of.Env)
	if err != nil {
		return nil, err
	}
	kubeconfig, err := c.As(ctx, namespace, pod.Spec.ServiceAccountName)
	if err != nil {
		return nil, err
	}
	free, err := ports(3)
	if err != nil {
		return nil, err
	}
	p := program{name: "epp-" + namespace + "-" + pod.Name, env: append(env, "KUBECONFIG="+kubeconfig)}
	for _, a := range of.Args {
		for at, dir := range mounted {
			a = strings.Replace(a, "="+at+"/", "="+dir+"/", 1)
		}
		p.args = append(p.args, a)
	}
	p.args = append(p.args, "--grpc-port="+strconv.Itoa(free[0]), "--grpc-health-port="+strconv.Itoa(free[1]), "--metrics-port="+strconv.Itoa(free[2]))
	bin, err := programs("epp")
	if err != nil {
		return nil, err
	}
	p.bin = filepath.Join(bin, "epp")
	started, err := c.run(p)
	if err != nil {
		return nil, err
	}
	// It says that it is healthy before it listens for requests: first it makes a
	// certificate, which takes many seconds where others keep the machine busy.
	if err := started.waitFor(ctx, "listening", tlsListening(free[0])); err != nil {
		return nil, err
	}
	return &Picker{
		GRPC: address(free[0]), Health: address(free[1]), Metrics: address(free[2]),
		Liveness: probed(of.LivenessProbe), Readiness: probed(of.ReadinessProbe),
		c: c, process: started,
	}, nil
}

func onlyPod(ctx context.Context, client kubernetes.Interface, d *appsv1.Deployment) (*corev1.Pod, error) {
	pods, err := client.CoreV1().Pods(d.Namespace).List(ctx, metav1.ListOptions{LabelSelector: labels.FormatLabels(d.Spec.Selector.MatchLabels)})
	if err != nil {
		return nil, err
	}
	if len(pods.Items) != 1 || len(pods.Items[0].Spec.Containers) != 1 {
		return nil, fmt.Errorf("the Deployment %s has %d pods, want one with one container", d.Name, len(pods.Items))
	}
	return &pods.Items[0], nil
}

// mountConfig writes the ConfigMaps of a pod to directories, by the paths where its
// first container wants them.
func (c *Kubernetes) mountConfig(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod) (map[string]string, error) {
	mounted := map[string]string{}
	for _, m := range pod.Spec.Containers[0].VolumeMounts {
		i := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
		if i < 0 || pod.Spec.Volumes[i].ConfigMap == nil {
			continue // Such as the token of its ServiceAccount.
		}
		config, err := client.CoreV1().ConfigMaps(pod.Namespace).Get(ctx, pod.Spec.Volumes[i].ConfigMap.Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		dir := filepath.Join(c.dir, "volumes", string(pod.UID), m.Name)
		if err := writeFiles(dir, config.Data); err != nil {
			return nil, err
		}
		mounted[m.MountPath] = dir
	}
	return mounted, nil
}

// downward is an environment with the fields of the pod that it asks for.
func downward(pod *corev1.Pod, of []corev1.EnvVar) ([]string, error) {
	fields := map[string]string{"metadata.name": pod.Name, "metadata.namespace": pod.Namespace, "status.podIP": pod.Status.PodIP}
	var env []string
	for _, e := range of {
		value := e.Value
		if e.ValueFrom != nil {
			if e.ValueFrom.FieldRef == nil || fields[e.ValueFrom.FieldRef.FieldPath] == "" {
				return nil, fmt.Errorf("nobody here knows the value of %s of pod %s", e.Name, pod.Name)
			}
			value = fields[e.ValueFrom.FieldRef.FieldPath]
		}
		env = append(env, e.Name+"="+value)
	}
	return env, nil
}

// probed is the service that a gRPC probe asks for.
func probed(p *corev1.Probe) string {
	if p == nil || p.GRPC == nil || p.GRPC.Service == nil {
		return ""
	}
	return *p.GRPC.Service
}
