/*
Package node does for pods what kubelets do, without containers: it runs the commands of their
containers as processes of this machine, at the address of the pod.

A container is the process of its own command, under its own shell, with its environment and its
volumes, which are directories. Images of containers are not pulled: a table says which program stands for an
image, see Image, and a container with another image waits with ErrImagePull. Images of volumes are pulled, and
so is the directory of a claim there as long as the claim, for all pods. What a pod says of itself is true:
init containers, probes, restarts with back-off, hooks, grace periods and exit codes are those of a
kubelet.

What differs from a kubelet:

  - Every pod has an address of 127.0.0.0/8. A process has to listen there, not at 0.0.0.0. Programs that
    cannot are given free ports, and their connections are passed on, see Image.Ports.
  - There is no DNS. LWS_LEADER_ADDRESS becomes the address of the leader when a container starts.
  - SIGTERM goes to all processes of a container. In a container only the first one gets it.
  - An init container that ends is run if its image is known, and taken as done otherwise.
  - A table may say how long it takes to pull an image. It is pulled once for all nodes.
  - Back-off is shorter and startup probes are more frequent by Options.Hasten. Probes have as long in
    total.
  - There are no limits of resources, no postStart hooks and no security contexts. All mounts are writable.
  - A termination message is what a container writes to its file. It is never taken from the log.
*/
package node

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// Options of an Agent.
type Options struct {
	Client kubernetes.Interface
	// Selectors of the pods to run, none of which matches a pod of another. Nobody else may run them.
	// Without any, all pods are run.
	Selectors []string
	// Dir has logs and volumes of the pods, in directories of their names.
	Dir string
	// Bin is a directory of programs that containers find first.
	Bin string
	// Prefix of the addresses of pods, such as 127.10. All addresses from 128.0 on have to be free.
	Prefix string
	// NodeIP is the address of all nodes.
	NodeIP string
	// Images are what the names of images stand for, without registry and tag.
	Images map[string]Image
	// Pull writes the files of an image into a directory, for a volume. Without it, no image can be pulled.
	Pull func(ctx context.Context, image, dir string) error
	// Env is added to the environment of all containers.
	Env []string
	// Hasten shortens back-off, and the time between two startup probes. It is 1 at least.
	Hasten int
	// Kubeconfig makes a file for a ServiceAccount.
	Kubeconfig func(ctx context.Context, namespace, serviceAccount string) (string, error)
	// Ports returns free ports.
	Ports func(n int) ([]int, error)
	// Start starts a command. The process has to end with this one.
	Start func(*exec.Cmd) error
}

// An Agent runs pods.
type Agent struct {
	Options

	pods      []corelisters.PodLister
	addresses *addresses
	// lifeline ends with this process, and is held by all others.
	lifeline *os.File

	mu      sync.Mutex
	running map[types.UID]*pod
	// pulled has when an image is there that takes long, by its reference.
	pulled map[string]time.Time
	// changed is closed when a pod changes, for those that wait for its address.
	changed chan struct{}
	group   sync.WaitGroup
}

// Run runs pods until the context ends, and then ends all of their processes.
func Run(ctx context.Context, o Options) error {
	a := &Agent{Options: o, addresses: newAddresses(o.Prefix), running: map[types.UID]*pod{}, pulled: map[string]time.Time{}, changed: make(chan struct{})}
	a.Hasten = max(a.Hasten, 1)
	end, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer end.Close()   //nolint:errcheck // Nothing is read here.
	defer write.Close() //nolint:errcheck // Nothing is written.
	a.lifeline = end
	var factories []informers.SharedInformerFactory
	if len(o.Selectors) == 0 {
		o.Selectors = []string{""}
	}
	for _, s := range o.Selectors {
		selector, err := labels.Parse(s)
		if err != nil {
			return err
		}
		f := informers.NewSharedInformerFactoryWithOptions(o.Client, 0, informers.WithTweakListOptions(func(l *metav1.ListOptions) {
			l.LabelSelector = selector.String()
		}))
		a.pods = append(a.pods, f.Core().V1().Pods().Lister())
		if _, err := f.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { a.saw(ctx, o) },
			UpdateFunc: func(_, o any) { a.saw(ctx, o) },
			DeleteFunc: a.gone,
		}); err != nil {
			return err
		}
		factories = append(factories, f)
	}
	for _, f := range factories {
		f.Start(ctx.Done())
	}
	<-ctx.Done()
	for _, f := range factories {
		f.Shutdown()
	}
	a.group.Wait()
	return nil
}

// saw starts a pod that is bound to a node, and tells it of its changes.
func (a *Agent) saw(ctx context.Context, o any) {
	p, ok := o.(*corev1.Pod)
	if !ok {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	close(a.changed)
	a.changed = make(chan struct{})
	r := a.running[p.UID]
	if r == nil {
		if p.Spec.NodeName == "" || ctx.Err() != nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			return
		}
		r = newPod(a, p)
		a.running[p.UID] = r
		defer a.group.Go(func() { r.run(ctx) })
	}
	r.update(p)
}

// gone ends a pod that is not there any more.
func (a *Agent) gone(o any) {
	if d, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = d.Obj
	}
	p, ok := o.(*corev1.Pod)
	if !ok {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if r := a.running[p.UID]; r != nil {
		r.remove()
		delete(a.running, p.UID)
	}
}

// addressOf waits for the address of a pod.
func (a *Agent) addressOf(ctx context.Context, namespace, name string) (string, error) {
	for {
		a.mu.Lock()
		changed := a.changed
		a.mu.Unlock()
		for _, pods := range a.pods {
			if p, err := pods.Pods(namespace).Get(name); err == nil && p.Status.PodIP != "" && p.DeletionTimestamp == nil {
				return p.Status.PodIP, nil
			}
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-changed:
		}
	}
}

// pullTime is how long it still takes until an image is there.
func (a *Agent) pullTime(reference string, image Image) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, begun := a.pulled[reference]; !begun {
		a.pulled[reference] = time.Now().Add(image.Pull)
	}
	return time.Until(a.pulled[reference])
}

// log writes a line about a pod into a file beside those of its containers.
func (a *Agent) log(p *corev1.Pod, format string, args ...any) {
	if err := os.MkdirAll(a.dir(p), 0o700); err != nil {
		return
	}
	f, err := os.OpenFile(filepath.Join(a.dir(p), "pod.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer f.Close() //nolint:errcheck // It is a log.
	_, _ = fmt.Fprintf(f, "%s %s "+format+"\n", append([]any{time.Now().Format(time.RFC3339Nano), p.UID}, args...)...)
}

// dir of a pod has its logs. Pods of the same name share it, one after the other.
func (a *Agent) dir(p *corev1.Pod) string { return filepath.Join(a.Dir, p.Namespace, p.Name) }
