package node

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// A pod that runs.
type pod struct {
	*Agent

	// spec is the pod as it was seen first: its containers do not change.
	spec  *corev1.Pod
	ip    string
	since time.Time

	inits, main []*container
	sidecars    map[string]bool

	// deleted is closed when the pod is to go, and removed when it is gone.
	deleted, removed chan struct{}
	// force ends what is left of the grace period.
	force context.CancelFunc
	// dirty has an element while the status has to be written.
	dirty chan struct{}
	// pulling is held while the image of a volume is pulled.
	pulling sync.Mutex

	mu          sync.Mutex
	latest      *corev1.Pod
	initialized bool
	isDeleted   bool
	over        bool
	killer      *time.Timer
	deadline    time.Time
}

func newPod(a *Agent, p *corev1.Pod) *pod {
	r := &pod{
		Agent: a, spec: p, latest: p, ip: a.addresses.take(), since: time.Now(),
		deleted: make(chan struct{}), removed: make(chan struct{}), dirty: make(chan struct{}, 1), sidecars: map[string]bool{},
	}
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		var again func(int32) bool
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			r.sidecars[c.Name] = true
			again = func(int32) bool { return true }
		} else {
			again = func(code int32) bool { return code != 0 && p.Spec.RestartPolicy != corev1.RestartPolicyNever }
		}
		r.inits = append(r.inits, newContainer(r, c, again, "PodInitializing"))
	}
	for i := range p.Spec.Containers {
		reason := "ContainerCreating"
		if len(r.inits) > 0 {
			reason = "PodInitializing"
		}
		r.main = append(r.main, newContainer(r, &p.Spec.Containers[i], policy(p.Spec.RestartPolicy), reason))
	}
	return r
}

// volumes is the directory of the pod's volumes.
func (r *pod) volumes() string {
	return filepath.Join(r.Dir, "volumes", string(r.spec.UID))
}

// withAddress is the pod with the address that it may not say it has yet.
func (r *pod) withAddress() *corev1.Pod {
	p := r.spec.DeepCopy()
	p.Status.PodIP = r.ip
	return p
}

// touch has the status written.
func (r *pod) touch() {
	select {
	case r.dirty <- struct{}{}:
	default:
	}
}

// update tells the pod how it is now.
func (r *pod) update(p *corev1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.latest = p
	if len(p.Spec.ReadinessGates) > 0 {
		r.touch()
	}
	if p.DeletionTimestamp == nil {
		return
	}
	grace := time.Duration(0)
	if g := p.DeletionGracePeriodSeconds; g != nil {
		grace = time.Duration(*g) * time.Second
	}
	if !r.isDeleted {
		r.isDeleted = true
		close(r.deleted)
	}
	// Whoever deletes it once more may shorten the time, but not extend it.
	if end := time.Now().Add(grace); r.killer == nil || end.Before(r.deadline) && grace < time.Until(r.deadline) {
		r.deadline = end
		if r.killer != nil {
			r.killer.Stop()
		}
		r.killer = time.AfterFunc(grace, func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.force != nil {
				r.force()
			}
		})
	}
}

// remove ends the pod at once: it is gone.
func (r *pod) remove() { close(r.removed) }

// run runs the pod until it has been deleted, or the context ends.
func (r *pod) run(ctx context.Context) {
	defer func() {
		r.addresses.give(r.ip)
		_ = os.RemoveAll(r.volumes())
	}()
	// All processes are killed at the end of life.
	life, kill := context.WithCancel(ctx)
	defer kill()
	over, force := context.WithCancel(life)
	defer force()
	r.mu.Lock()
	r.force = force
	late := r.isDeleted && time.Now().After(r.deadline)
	r.mu.Unlock()
	if late {
		force()
	}
	go func() {
		select {
		case <-r.removed:
			kill()
		case <-life.Done():
		}
	}()
	var writer sync.WaitGroup
	writing, stopWriting := context.WithCancel(life)
	writer.Go(func() { r.write(writing) })
	r.touch()
	var all sync.WaitGroup
	all.Go(func() { r.launchAll(life, &all) })
	ended := make(chan struct{})
	go func() { all.Wait(); close(ended) }()
	select {
	case <-ended: // Its containers are not started again. It stays until it is deleted.
		r.finish()
		select {
		case <-r.deleted:
		case <-life.Done():
		}
	case <-r.deleted:
		r.touch()
		r.terminate(over)
		<-ended
	case <-life.Done():
		<-ended
	}
	stopWriting()
	writer.Wait()
	if life.Err() == nil {
		r.finish()
		// Its end is seen here, too, and is no reason to stop half way.
		r.report(ctx)
		r.discard(ctx)
	}
}

// finish says that no container runs any more, or ever will.
func (r *pod) finish() {
	r.mu.Lock()
	r.over = true
	r.mu.Unlock()
	r.touch()
}

// launchAll starts the containers, init containers one after the other. It returns when all have been
// started that will be.
func (r *pod) launchAll(ctx context.Context, all *sync.WaitGroup) {
	for _, c := range r.inits {
		sidecar := r.sidecars[c.spec.Name]
		if !sidecar && !r.knows(c.spec) {
			// Whatever it does, nothing here needs it.
			c.set(func(f *containerFacts) {
				f.state = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", FinishedAt: metav1.Now()}}
			})
			continue
		}
		if !r.launch(ctx, c, all) {
			return
		}
		next := c.ended
		if sidecar {
			next = c.once
		}
		select {
		case <-next:
		case <-c.stopping:
			return
		case <-ctx.Done():
			return
		}
		if t := c.current().state.Terminated; !sidecar && t != nil && t.ExitCode != 0 {
			return
		}
	}
	r.mu.Lock()
	r.initialized = true
	r.mu.Unlock()
	for _, c := range r.main {
		r.launch(ctx, c, all)
	}
	all.Go(func() { r.endSidecars(ctx) })
	r.touch()
}

// endSidecars ends the sidecars once all other containers have ended for good, as a kubelet does. Until then the pod
// goes on.
func (r *pod) endSidecars(ctx context.Context) {
	for _, c := range r.main {
		select {
		case <-c.ended:
		case <-r.deleted: // All are ended then.
			return
		case <-ctx.Done():
			return
		}
	}
	grace := time.Duration(corev1.DefaultTerminationGracePeriodSeconds) * time.Second
	if g := r.spec.Spec.TerminationGracePeriodSeconds; g != nil {
		grace = time.Duration(*g) * time.Second
	}
	over, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	for _, c := range slices.Backward(r.inits) {
		if r.sidecars[c.spec.Name] {
			c.terminate(over)
		}
	}
}

// launch starts a container, unless the pod is to go.
func (r *pod) launch(ctx context.Context, c *container, all *sync.WaitGroup) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isDeleted {
		return false
	}
	c.launching = true
	all.Go(func() { c.run(ctx) })
	return true
}

func (r *pod) knows(c *corev1.Container) bool {
	_, ok := r.Images[imageName(c.Image)]
	return ok
}

// terminate ends all containers, sidecars after the others, by force when it is over.
func (r *pod) terminate(over context.Context) {
	r.mu.Lock()
	var first, then []*container
	for _, c := range slices.Concat(r.main, r.inits) {
		switch {
		case !c.launching:
		case r.sidecars[c.spec.Name]:
			then = append(then, c)
		default:
			first = append(first, c)
		}
	}
	r.mu.Unlock()
	var all sync.WaitGroup
	for _, c := range first {
		all.Go(func() { c.terminate(over) })
	}
	all.Wait()
	for _, c := range slices.Backward(then) {
		c.terminate(over)
	}
}

// status is what there is to say of the pod now.
func (r *pod) status() corev1.PodStatus {
	r.mu.Lock()
	p := r.latest
	f := podFacts{
		ip: r.ip, nodeIP: r.NodeIP, since: r.since, sidecars: r.sidecars,
		initialized: r.initialized, deleted: r.isDeleted, over: r.over,
	}
	r.mu.Unlock()
	for _, c := range r.inits {
		f.inits = append(f.inits, c.current())
	}
	for _, c := range r.main {
		f.main = append(f.main, c.current())
	}
	return statusOf(p, f, time.Now())
}

// write writes the status whenever it changes.
func (r *pod) write(ctx context.Context) {
	var before corev1.PodStatus
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.dirty:
		}
		s := r.status()
		if equality.Semantic.DeepEqual(before, s) {
			continue
		}
		if err := r.patch(ctx, s); err == nil {
			before = s
		} else if !apierrors.IsNotFound(err) && ctx.Err() == nil {
			r.log(r.spec, "cannot write its status: %v", err)
			time.Sleep(200 * time.Millisecond)
			r.touch()
		}
	}
}

// report writes the last status. Nobody could read it after the pod was discarded.
func (r *pod) report(ctx context.Context) {
	r.insist(ctx, "write its status", func() error { return r.patch(ctx, r.status()) })
}

// insist tries something until it is done, or the pod has gone and there may be another one of its name.
func (r *pod) insist(ctx context.Context, what string, do func() error) {
	for ctx.Err() == nil {
		err := do()
		if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return
		}
		r.log(r.spec, "cannot %s: %v", what, err)
		time.Sleep(200 * time.Millisecond)
	}
}

// patch writes what this agent knows, and nothing that others do.
func (r *pod) patch(ctx context.Context, s corev1.PodStatus) error {
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&s)
	if err != nil {
		return err
	}
	conditions, _ := status["conditions"].([]any)
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["reason"] == nil {
			c["reason"] = nil // It may have had one.
		}
	}
	b, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": r.spec.UID}, "status": status})
	if err != nil {
		return err
	}
	// The end of the pod is no reason to stop half way.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	_, err = r.Client.CoreV1().Pods(r.spec.Namespace).Patch(ctx, r.spec.Name, types.StrategicMergePatchType, b, metav1.PatchOptions{}, "status")
	return err
}

// discard removes the object of a pod whose containers have ended.
func (r *pod) discard(ctx context.Context) {
	now := int64(0)
	r.insist(ctx, "remove it", func() error {
		return r.Client.CoreV1().Pods(r.spec.Namespace).Delete(ctx, r.spec.Name, metav1.DeleteOptions{
			GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &r.spec.UID},
		})
	})
}
