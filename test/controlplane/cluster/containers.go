package cluster

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// The labels of the pods of Crossplane's packages.
const (
	packagePods  = "pkg.crossplane.io/revision"
	functionPods = "pkg.crossplane.io/function"
	providerPods = "pkg.crossplane.io/provider"
)

// Containers run the processes of functions and providers. KWOK says that their pods run; this
// makes it true: for each pod the program of its image is started, with the
// arguments of its container and its secrets, at the address of the pod. It is
// ended when the pod goes.
type Containers struct {
	c      *Cluster
	client kubernetes.Interface

	mu      sync.Mutex
	running map[types.UID]*container
}

type container struct {
	pod     *corev1.Pod
	process *process
	started time.Time
}

// runContainers runs the processes of packages until the cluster stops.
func (c *Cluster) runContainers() error {
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	k := &Containers{c: c, client: client, running: map[types.UID]*container{}}
	c.containers = k
	c.begin(func(ctx context.Context) error {
		said := ""
		err := every(ctx, containersEvery, func(ctx context.Context) error {
			// The image or a secret can come later. What stays wrong is in the log, once.
			if err := k.sync(ctx); err != nil && err.Error() != said && ctx.Err() == nil {
				said = err.Error()
				k.log("%v", err)
			}
			return nil
		})
		for _, r := range k.running {
			r.process.stop()
		}
		return err
	})
	return nil
}

// containersEvery is how often the processes are compared with the pods. Each comparison loads
// the API server.
const containersEvery = time.Second

// every calls a function repeatedly, until it fails or the context ends.
func every(ctx context.Context, pause time.Duration, f func(context.Context) error) error {
	for {
		if err := f(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

func (k *Containers) log(format string, args ...any) {
	f, err := os.OpenFile(filepath.Join(k.c.dir, "containers.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer f.Close() //nolint:errcheck // It is a log.
	_, _ = fmt.Fprintf(f, "%s "+format+"\n", append([]any{time.Now().Format(time.RFC3339Nano)}, args...)...)
}

func (k *Containers) sync(ctx context.Context) error {
	pods, err := k.client.CoreV1().Pods(crossplaneNamespace).List(ctx, metav1.ListOptions{LabelSelector: packagePods, ResourceVersion: "0"})
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	wanted := map[types.UID]*corev1.Pod{}
	for i := range pods.Items {
		if p := &pods.Items[i]; p.DeletionTimestamp == nil && p.Status.PodIP != "" && p.Status.Phase == corev1.PodRunning {
			wanted[p.UID] = p
		}
	}
	for uid, r := range k.running {
		if wanted[uid] == nil {
			k.log("pod %s goes", r.pod.Name)
			r.process.stop()
			delete(k.running, uid)
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(wanted)) {
		if err := k.keep(ctx, uid, wanted[uid]); err != nil {
			return fmt.Errorf("cannot run pod %s: %w", wanted[uid].Name, err)
		}
	}
	return nil
}

// keep makes sure that the process of a pod runs. One that ended is started again, as
// a kubelet does it, with a pause.
func (k *Containers) keep(ctx context.Context, uid types.UID, pod *corev1.Pod) error {
	if r := k.running[uid]; r != nil {
		select {
		case <-r.process.exited:
			if time.Since(r.started) < time.Second {
				return nil
			}
			k.log("pod %s has ended (%v) and is started again", pod.Name, r.process.err)
		default:
			return nil
		}
	}
	p, err := k.program(ctx, pod)
	if err != nil {
		return err
	}
	started, err := start(k.c.dir, p)
	if err != nil {
		return err
	}
	k.log("pod %s runs at %s", pod.Name, pod.Status.PodIP)
	k.running[uid] = &container{pod: pod, process: started, started: time.Now()}
	return nil
}

// mount writes the Secrets of a pod to directories, by the paths where its first container wants them.
func (k *Containers) mount(ctx context.Context, pod *corev1.Pod) (map[string]string, error) {
	mounted := map[string]string{}
	for _, m := range pod.Spec.Containers[0].VolumeMounts {
		i := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
		if i < 0 || pod.Spec.Volumes[i].Secret == nil {
			continue
		}
		s, err := k.client.CoreV1().Secrets(pod.Namespace).Get(ctx, pod.Spec.Volumes[i].Secret.SecretName, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		dir := filepath.Join(k.c.dir, "volumes", string(pod.UID), m.Name)
		if err := writeFiles(dir, s.Data); err != nil {
			return nil, err
		}
		mounted[m.MountPath] = dir
	}
	return mounted, nil
}

func (k *Containers) program(ctx context.Context, pod *corev1.Pod) (program, error) {
	of := pod.Spec.Containers[0]
	bin, err := pullProgram(ctx, of.Image, filepath.Join(k.c.dir, "images"))
	if err != nil {
		return program{}, err
	}
	mounted, err := k.mount(ctx, pod)
	if err != nil {
		return program{}, err
	}
	p := program{name: pod.Name, bin: bin}
	var known []string
	for _, e := range of.Env {
		if e.ValueFrom != nil {
			continue // Neither reads any of those.
		}
		// A value may name a variable before it.
		value := strings.NewReplacer(known...).Replace(e.Value)
		for at, dir := range mounted {
			if value == at || strings.HasPrefix(value, at+"/") {
				value = dir + strings.TrimPrefix(value, at)
			}
		}
		p.env = append(p.env, e.Name+"="+value)
		known = append(known, "$("+e.Name+")", value)
	}
	// All pods are on one machine, so each listens at its own address only.
	if pod.Labels[functionPods] != "" {
		p.args = append(slices.Clone(of.Args),
			"--address="+net.JoinHostPort(pod.Status.PodIP, "9443"),
			"--metrics-address="+net.JoinHostPort(pod.Status.PodIP, "8080"))
		return p, nil
	}
	kubeconfig, err := k.c.As(ctx, pod.Namespace, pod.Spec.ServiceAccountName)
	if err != nil {
		return program{}, err
	}
	// That of its webhook, which converts what nobody here asks for, has a port only.
	free, err := ports(1)
	if err != nil {
		return program{}, err
	}
	p.env = append(p.env, "KUBECONFIG="+kubeconfig)
	p.args = append(slices.Clone(of.Args),
		"--metrics-bind-address="+net.JoinHostPort(pod.Status.PodIP, "8080"),
		"--health-probe-bind-addr="+net.JoinHostPort(pod.Status.PodIP, providerHealthPort),
		"--webhook-port="+strconv.Itoa(free[0]))
	return p, nil
}
