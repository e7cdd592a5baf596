package simulation

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
)

const (
	// maxIterations is how often Crossplane calls a function again whose requirements change.
	maxIterations = 5
	// minBackoff and maxBackoff bound the time until a failed reconcile is repeated.
	minBackoff, maxBackoff = time.Second, 30 * time.Second
	// maxStale is how much older the caches of a new process may be.
	maxStale = 20 * time.Second
	// finalizer is that of composite resources.
	finalizer = "composite.apiextensions.crossplane.io"

	annotationName   = "crossplane.io/composition-resource-name"
	annotationPaused = "crossplane.io/paused"
	labelComposite   = "crossplane.io/composite"
)

// Crossplane is a model of Crossplane's controllers of composite resources: reconciler.go and composition_functions.go of v2.4.2.
type crossplane struct {
	w       *World
	cache   *cache
	tracker *tracker
	// queue has the composite resources to reconcile, in the order in which they were woken.
	queue  []xrKey
	queued map[xrKey]bool
	// wakeAt is when a composite resource is woken by a time to live or a back-off.
	wakeAt   map[xrKey]time.Time
	failures map[xrKey]int
}

func newCrossplane(w *World) *crossplane {
	return &crossplane{w: w, cache: newCache(w.server), tracker: newTracker(), queued: map[xrKey]bool{}, wakeAt: map[xrKey]time.Time{}, failures: map[xrKey]int{}}
}

func (c *crossplane) wake(xr xrKey) {
	if !c.queued[xr] {
		c.queued[xr] = true
		c.queue = append(c.queue, xr)
	}
}

// wakeAfter wakes a composite resource after some time, or before if it is already to be woken then.
func (c *crossplane) wakeAfter(xr xrKey, d time.Duration) {
	if at := c.w.now.Add(d); c.wakeAt[xr].IsZero() || at.Before(c.wakeAt[xr]) {
		c.wakeAt[xr] = at
	}
}

// tick wakes those whose time has come.
func (c *crossplane) tick() {
	var due []xrKey
	for xr, at := range c.wakeAt {
		if !at.After(c.w.now) {
			due = append(due, xr)
		}
	}
	slices.SortFunc(due, compareXRs)
	for _, xr := range due {
		delete(c.wakeAt, xr)
		c.w.Cost.Timed++
		c.wake(xr)
	}
}

func compareXRs(a, b xrKey) int {
	return cmp.Or(cmp.Compare(a.kind.kind, b.kind.kind), compareNames(a.name, b.name))
}

// observe shows the cache the next changes of a kind, and wakes who depends on them.
func (c *crossplane) observe(k kindOf, n int) {
	for _, ch := range c.cache.advance(k, n) {
		if k == serviceKind || k == clusterKind {
			c.wake(xrKey{k, ch.either().name})
		}
		woken := map[xrKey]bool{}
		for _, o := range []*stored{ch.old, ch.current} {
			if o != nil {
				for xr := range c.tracker.dependants(o) {
					woken[xr] = true
				}
			}
		}
		all := make([]xrKey, 0, len(woken))
		for xr := range woken {
			all = append(all, xr)
		}
		slices.SortFunc(all, compareXRs)
		for _, xr := range all {
			c.wake(xr)
		}
	}
}

// restart starts a new process. Its caches may be older than those of the process before.
func (c *crossplane) restart() {
	before := c.cache
	c.cache, c.tracker = newCache(c.w.server), newTracker()
	c.queue, c.queued, c.wakeAt, c.failures = nil, map[xrKey]bool{}, map[xrKey]time.Time{}, map[xrKey]int{}
	for _, k := range c.w.server.kinds {
		c.observe(k, before.since(k, c.w.rand.IntN(20), maxStale, c.w.now))
	}
	for _, k := range []kindOf{serviceKind, clusterKind} {
		for _, o := range sorted(c.cache.view(k).objects) {
			c.wake(xrKey{k, o.name})
		}
	}
}

// next reconciles a random composite resource of the queue.
func (c *crossplane) next() bool {
	if len(c.queue) == 0 {
		return false
	}
	i := c.w.rand.IntN(len(c.queue))
	xr := c.queue[i]
	c.queue = slices.Delete(c.queue, i, i+1)
	delete(c.queued, xr)
	ttl, err := c.reconcile(xr)
	if err != nil {
		n := c.failures[xr]
		c.failures[xr]++
		c.wakeAfter(xr, min(minBackoff<<min(n, 5), maxBackoff))
		return true
	}
	delete(c.failures, xr)
	if ttl > 0 {
		c.wakeAfter(xr, ttl)
	}
	return true
}

// A reconcile is one reconcile of a composite resource.
type reconcile struct {
	*crossplane

	key      xrKey
	xr       *stored
	observed map[string]*stored
	rsp      *fnv1.RunFunctionResponse
	required []requirement
	desired  []desired
}

// A desired object has the key that the function gave it.
type desired struct {
	key   string
	body  document
	ready bool
}

func (c *crossplane) reconcile(key xrKey) (time.Duration, error) {
	r := &reconcile{crossplane: c, key: key, xr: c.cache.get(key.kind, key.name)}
	switch {
	case r.xr == nil:
		c.tracker.forget(key)
		return 0, nil
	case text(r.xr.body, "metadata", "annotations", annotationPaused) == "true":
		return 0, nil
	case r.xr.deleting:
		if o := c.w.server.get(key.kind, key.name); o != nil && o.version != r.xr.version {
			return 0, errConflict
		}
		c.w.server.setFinalizer(key.kind, key.name, finalizer, false)
		c.tracker.forget(key)
		return 0, nil
	}
	c.w.Cost.reconciled(key)
	return r.compose()
}

func (r *reconcile) compose() (time.Duration, error) {
	if !slices.Contains(r.xr.finalizers, finalizer) {
		if o := r.w.server.get(r.key.kind, r.key.name); o == nil || o.version != r.xr.version {
			return 0, errConflict
		}
		r.w.server.setFinalizer(r.key.kind, r.key.name, finalizer, true)
		r.xr = r.w.server.get(r.key.kind, r.key.name)
	}
	if err := r.observeComposed(); err != nil {
		return 0, err
	}
	if err := r.runFunction(); err != nil {
		r.fail(err)
		return 0, err
	}
	for _, result := range r.rsp.GetResults() {
		if result.GetSeverity() == fnv1.Severity_SEVERITY_FATAL {
			err := errors.New(result.GetMessage())
			r.w.trace(r.key, "fatal: %s", result.GetMessage())
			r.w.fatal(r.key, result.GetMessage())
			r.fail(err)
			return 0, err
		}
	}
	r.desire()
	r.w.beforeApply(r)
	err := r.applyAll()
	r.w.afterApply(r)
	if err != nil {
		r.w.trace(r.key, "stopped: %v", err)
		if !errors.Is(err, errConflict) {
			r.rsp = nil
			r.fail(err)
		}
		return 0, err
	}
	r.writeStatus()
	r.trackAll()
	return r.rsp.GetMeta().GetTtl().AsDuration(), nil
}

// observeComposed reads the objects that the composite resource references, past the cache if the cache does not have them.
func (r *reconcile) observeComposed() error {
	r.observed = map[string]*stored{}
	for _, ref := range items(r.xr.body, "spec", "crossplane", "resourceRefs") {
		k, n := kindOf{text(ref, "apiVersion"), text(ref, "kind")}, name{cmp.Or(r.key.name.namespace, text(ref, "namespace")), text(ref, "name")}
		o := r.cache.get(k, n)
		if o == nil {
			o = r.w.server.get(k, n)
		}
		if o == nil || o.owner != "" && o.owner != r.xr.uid {
			continue
		}
		key := text(o.body, "metadata", "annotations", annotationName)
		if key == "" {
			return fmt.Errorf("%s has no resource name", o)
		}
		r.observed[key] = o
	}
	return nil
}

// desire makes the desired objects: observed ones keep their names, and the composite resource owns all.
func (r *reconcile) desire() {
	for key, d := range r.rsp.GetDesired().GetResources() {
		body := d.GetResource()
		if o := r.observed[key]; o != nil {
			body = withText(body, o.name.name, "metadata", "name")
			if o.name.namespace != "" {
				body = withText(body, o.name.namespace, "metadata", "namespace")
			}
		}
		if ns := r.key.name.namespace; ns != "" {
			body = withText(body, ns, "metadata", "namespace")
		}
		body = withText(body, key, "metadata", "annotations", annotationName)
		body = withText(body, r.key.name.name, "metadata", "labels", labelComposite)
		body = with(body, value(list[any](fields{
			"apiVersion": r.key.kind.apiVersion, "kind": r.key.kind.kind, "name": r.key.name.name, "uid": r.xr.uid, "controller": true, "blockOwnerDeletion": true,
		})), "metadata", "ownerReferences")
		r.desired = append(r.desired, desired{key, body, d.GetReady() == fnv1.Ready_READY_TRUE})
	}
	slices.SortFunc(r.desired, func(a, b desired) int { return cmp.Compare(a.key, b.key) })
}

// applyAll deletes what is not desired any more, and then applies what is, both in random order. It stops at the first failure.
func (r *reconcile) applyAll() error {
	if err := r.collectGarbage(); err != nil {
		return err
	}
	var refs []any
	for _, d := range r.desired {
		k, n := identify(d.body)
		ref := fields{"apiVersion": k.apiVersion, "kind": k.kind, "name": n.name}
		if r.key.name.namespace == "" && n.namespace != "" {
			ref["namespace"] = n.namespace
		}
		refs = append(refs, ref)
	}
	if r.w.server.get(r.key.kind, r.key.name) == nil {
		return errNotFound
	}
	r.w.server.edit(r.key.kind, r.key.name, func(d document) document { return with(d, value(refs), "spec", "crossplane", "resourceRefs") })
	for _, i := range r.w.rand.Perm(len(r.desired)) {
		if err := r.w.inject(r.key); err != nil {
			return err
		}
		if err := r.w.server.apply(r.desired[i].body, r.xr.uid); err != nil {
			return fmt.Errorf("cannot apply %s: %w", r.desired[i].key, err)
		}
	}
	return nil
}

func (r *reconcile) collectGarbage() error {
	var old []string
	for key := range r.observed {
		if !slices.ContainsFunc(r.desired, func(d desired) bool { return d.key == key }) {
			old = append(old, key)
		}
	}
	slices.Sort(old)
	for _, i := range r.w.rand.Perm(len(old)) {
		o := r.observed[old[i]]
		if o.owner == "" {
			continue
		}
		if err := r.w.inject(r.key); err != nil {
			return err
		}
		// Crossplane first removes labels, as an update of what it has read.
		current := r.w.server.get(o.kind, o.name)
		switch {
		case current == nil || current.uid != o.uid:
			continue
		case current.version != o.version:
			return errConflict
		}
		r.w.server.edit(o.kind, o.name, func(d document) document { return with(d, nil, "metadata", "labels", labelComposite) })
		r.w.server.delete(o.kind, o.name)
	}
	return nil
}

// trackAll records what the composite resource depends on.
func (r *reconcile) trackAll() {
	composed := make([]reference, 0, len(r.desired))
	for _, d := range r.desired {
		k, n := identify(d.body)
		composed = append(composed, reference{kind: k, namespace: n.namespace, name: n.name})
	}
	slices.SortFunc(r.required, func(a, b requirement) int { return cmp.Compare(a.name, b.name) })
	r.tracker.track(r.key, composed, r.required)
}
