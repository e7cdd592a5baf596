package node

import (
	"context"
	"errors"
	"slices"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A container of a pod, from its first start to its last end.
type container struct {
	pod  *pod
	spec *corev1.Container
	// again tells whether it is started again after it has ended with a code.
	again func(code int32) bool

	// stopping is closed when it is not to be started again, and ended when it has ended for good.
	stopping, ended chan struct{}
	stopOnce        sync.Once
	// once is closed when it has started for the first time, as its startup probe says.
	once     chan struct{}
	onceOnce sync.Once

	// launching tells that it is run. The pod guards it.
	launching bool

	mu       sync.Mutex
	facts    containerFacts
	process  *process
	launched *launch
}

func newContainer(r *pod, spec *corev1.Container, again func(int32) bool, reason string) *container {
	return &container{
		pod: r, spec: spec, again: again,
		stopping: make(chan struct{}), ended: make(chan struct{}), once: make(chan struct{}),
		facts: containerFacts{name: spec.Name, image: spec.Image, state: waiting(reason, "")},
	}
}

// set changes what is said of the container.
func (c *container) set(f func(*containerFacts)) {
	c.mu.Lock()
	f(&c.facts)
	c.mu.Unlock()
	c.pod.touch()
}

func (c *container) current() containerFacts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.facts
}

func (c *container) stop() { c.stopOnce.Do(func() { close(c.stopping) }) }

// sleep waits. It tells whether to go on.
func (c *container) sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
	case <-c.stopping:
	case <-time.After(d):
		return true
	}
	return false
}

// run starts the container, and again when it has ended, until it is stopped. The end of the context
// kills it.
func (c *container) run(ctx context.Context) {
	defer close(c.ended)
	image, known := c.pod.Images[imageName(c.spec.Image)]
	if !known {
		c.missing(ctx)
		return
	}
	if wait := c.pod.pullTime(c.spec.Image, image); wait > 0 && !c.sleep(ctx, wait) {
		return
	}
	for crashes := 0; ; crashes++ {
		begun, code, reason, ok := c.runOnce(ctx, image)
		if !ok {
			return
		}
		end := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: code, Reason: reason, Message: c.pod.lastWords(c.spec), StartedAt: metav1.NewTime(begun), FinishedAt: metav1.Now(),
		}}
		c.set(func(f *containerFacts) { f.state, f.ready, f.started = end, false, false })
		c.pod.log(c.pod.spec, "container %s has ended: %s, exit code %d", c.spec.Name, reason, code)
		if !c.again(code) {
			return
		}
		if time.Since(begun) > 10*time.Minute/time.Duration(c.pod.Hasten) {
			crashes = 0
		}
		// A kubelet notices the end first, and starts the container after that.
		if !c.sleep(ctx, time.Second) {
			return
		}
		if wait := backOff(crashes, c.pod.Hasten); wait > 0 {
			c.set(func(f *containerFacts) { f.last, f.state = f.state, waiting("CrashLoopBackOff", "") })
			if !c.sleep(ctx, wait) {
				return
			}
		}
		c.set(func(f *containerFacts) {
			f.restarts++
			if f.state.Terminated != nil {
				f.last = f.state
			}
		})
	}
}

// backOff is how long a container waits that has crashed so often before.
func backOff(crashes, hasten int) time.Duration {
	if crashes == 0 {
		return 0
	}
	return min(10*time.Second<<min(crashes-1, 10), 5*time.Minute) / time.Duration(hasten)
}

// missing is the state of a container whose image cannot be pulled.
func (c *container) missing(ctx context.Context) {
	message := "the test bed has no image " + c.spec.Image
	c.set(func(f *containerFacts) { f.state = waiting("ErrImagePull", message) })
	if c.sleep(ctx, 5*time.Second) {
		c.set(func(f *containerFacts) { f.state = waiting("ImagePullBackOff", message) })
		c.sleep(ctx, time.Duration(1<<62))
	}
}

// runOnce starts the container and waits for its end. It is not ok if it was not started.
func (c *container) runOnce(ctx context.Context, image Image) (begun time.Time, code int32, reason string, ok bool) {
	l, ok := c.prepare(ctx, image)
	if !ok {
		return begun, 0, "", false
	}
	begun = time.Now()
	p, err := c.pod.start(c.pod.spec, c.spec.Name, l) //nolint:contextcheck // The process ends by a signal.
	if err != nil {
		c.pod.log(c.pod.spec, "container %s cannot start: %v", c.spec.Name, err)
		return begun, 128, "StartError", true
	}
	c.pod.log(c.pod.spec, "container %s runs at %s: %q", c.spec.Name, c.pod.ip, l.argv)
	c.mu.Lock()
	c.process, c.launched = p, l
	c.mu.Unlock()
	c.set(func(f *containerFacts) {
		f.state = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(begun)}}
	})
	alive, cancel := context.WithCancel(ctx)
	var probes sync.WaitGroup
	probes.Go(func() { c.probes(alive) })
	select {
	case <-p.exited:
	case <-ctx.Done():
		p.signal(syscall.SIGKILL)
		<-p.exited
	}
	cancel()
	probes.Wait()
	c.mu.Lock()
	c.process, c.launched = nil, nil
	c.mu.Unlock()
	if p.code == 0 {
		return begun, 0, "Completed", true
	}
	return begun, p.code, "Error", true
}

// prepare reads what the container needs, until all of it is there.
func (c *container) prepare(ctx context.Context, image Image) (*launch, bool) {
	stoppable, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-c.stopping:
			cancel()
		case <-stoppable.Done():
		}
	}()
	for {
		l, err := c.pod.prepare(stoppable, c.spec, image)
		if stoppable.Err() != nil {
			return nil, false
		}
		if err == nil {
			return l, true
		}
		reason := "CreateContainerConfigError"
		if errors.Is(err, errPull) {
			reason = "ErrImagePull"
		}
		c.set(func(f *containerFacts) { f.state = waiting(reason, err.Error()) })
		if !c.sleep(ctx, time.Second) {
			return nil, false
		}
	}
}

// probes runs the container's probes while it runs.
func (c *container) probes(ctx context.Context) {
	stoppable, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-c.stopping:
			cancel() // A container that is stopped is not ready, whatever it answers.
		case <-stoppable.Done():
		}
	}()
	if p := c.spec.StartupProbe; p != nil {
		hasten := min(c.pod.Hasten, max(int(p.PeriodSeconds), 1))
		v := newVerdict(p, false)
		v.failure *= int32(hasten) //nolint:gosec // A small number.
		started := false
		c.probe(stoppable, p, v, periodOf(p)/time.Duration(hasten), func(ok bool) bool {
			started = ok
			return true
		})
		if !started {
			if stoppable.Err() == nil {
				c.pod.log(c.pod.spec, "container %s did not start in time", c.spec.Name)
				c.end(ctx)
			}
			return
		}
	}
	c.onceOnce.Do(func() { close(c.once) })
	c.set(func(f *containerFacts) { f.started, f.ready = true, c.spec.ReadinessProbe == nil })
	var both sync.WaitGroup
	if p := c.spec.ReadinessProbe; p != nil {
		both.Go(func() {
			c.probe(stoppable, p, newVerdict(p, false), periodOf(p), func(ok bool) bool {
				if c.current().ready != ok {
					c.set(func(f *containerFacts) { f.ready = ok })
				}
				return false
			})
		})
	}
	if p := c.spec.LivenessProbe; p != nil {
		both.Go(func() {
			c.probe(stoppable, p, newVerdict(p, true), periodOf(p), func(ok bool) bool {
				if !ok {
					c.pod.log(c.pod.spec, "container %s is not alive", c.spec.Name)
					c.end(ctx)
				}
				return !ok
			})
		})
	}
	both.Wait()
}

// end ends the process that runs now, as a kubelet does when a probe says so. The container is started
// again.
func (c *container) end(ctx context.Context) {
	grace := int64(30)
	if g := c.pod.spec.Spec.TerminationGracePeriodSeconds; g != nil {
		grace = *g
	}
	for _, p := range []*corev1.Probe{c.spec.StartupProbe, c.spec.LivenessProbe} {
		if p != nil && p.TerminationGracePeriodSeconds != nil {
			grace = *p.TerminationGracePeriodSeconds
		}
	}
	over, cancel := context.WithTimeout(ctx, time.Duration(grace)*time.Second)
	defer cancel()
	c.quit(over)
}

// terminate ends the container for good: by its hook, by SIGTERM, and when it is over by force.
func (c *container) terminate(over context.Context) {
	c.stop()
	c.set(func(f *containerFacts) { f.ready = false })
	for {
		// It may just have been starting.
		c.quit(over)
		select {
		case <-c.ended:
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (c *container) quit(over context.Context) {
	c.mu.Lock()
	p := c.process
	c.mu.Unlock()
	if p == nil {
		return
	}
	if err := c.preStop(over, p); err != nil {
		c.pod.log(c.pod.spec, "container %s: preStop: %v", c.spec.Name, err)
	}
	p.signal(syscall.SIGTERM)
	if over.Err() != nil {
		// A kubelet leaves a little time even where the hook took all of it.
		var cancel context.CancelFunc
		over, cancel = context.WithTimeout(context.WithoutCancel(over), 2*time.Second)
		defer cancel()
	}
	select {
	case <-p.exited:
	case <-over.Done():
		c.pod.log(c.pod.spec, "container %s is killed", c.spec.Name)
		p.signal(syscall.SIGKILL)
		<-p.exited
	}
}

// preStop runs the hook, while the process runs.
func (c *container) preStop(over context.Context, p *process) error {
	if c.spec.Lifecycle == nil || c.spec.Lifecycle.PreStop == nil {
		return nil
	}
	h := c.spec.Lifecycle.PreStop
	ctx, cancel := context.WithCancel(over)
	defer cancel()
	go func() {
		select {
		case <-p.exited:
			cancel()
		case <-ctx.Done():
		}
	}()
	if h.Sleep != nil {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(h.Sleep.Seconds) * time.Second):
			return nil
		}
	}
	return c.handle(ctx, h.HTTPGet, h.Exec)
}

// policy is when the containers of a pod are started again.
func policy(p corev1.RestartPolicy) func(code int32) bool {
	return func(code int32) bool {
		return !slices.Contains([]corev1.RestartPolicy{corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure}, p) ||
			p == corev1.RestartPolicyOnFailure && code != 0
	}
}
