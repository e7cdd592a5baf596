package simulation

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// A Figure is one that grows with the fleet, and what it is not to exceed, or to reach.
type Figure struct{ Name, Value, Bar string }

// Fleet measures what a fleet costs: reconciles are counted, sizes are those of encoded requests, and only one figure is a time.
func Fleet(fn Function, services, clusters int, progress func(string)) []Figure {
	progress(fmt.Sprintf("%d services on %d clusters", services, clusters))
	w := New(Options{Seed: 1}, fn)
	w.calm, w.forgets = true, true
	nodes := services/clusters + services/clusters/10 + 6
	for i := range clusters {
		w.addCluster("c"+strconv.Itoa(i), "r1", []nodePool{{"a", nodes, 8, false}}, false)
	}
	w.settle()
	w.Cost.reset()
	for i := range services {
		w.create(worker(i, "Failover"))
	}
	w.settle()
	settled := w.Cost.Reconciles[serviceKind.kind]
	// Without time, services go on waiting for clusters that others have filled, and wake for each answer there.
	w.quiet()

	progress("one replica of one service is scaled")
	w.Cost.reset()
	u := w.services[services/2]
	u.roles[0].replicas++
	w.update(u, "scaled")
	w.settle()
	ofServices, ofClusters := w.Cost.Reconciles[serviceKind.kind], w.Cost.Reconciles[clusterKind.kind]

	progress("a service on all clusters")
	w.Cost.reset()
	everywhere := worker(services, "Replicate")
	everywhere.router = true
	everywhere.roles = []role{{name: "prefill", kind: "prefiller", replicas: 1, nodes: 1, gpus: 8}, {name: "decode", kind: "decoder", replicas: 2, nodes: 1, gpus: 8}}
	w.create(everywhere)
	w.settle()
	serviceRequest := w.Cost.each[xrKey{serviceKind, everywhere.name}].largest

	progress("a cluster among all, in which all services run")
	one := newAsked(fn, services, clusters)
	one.ask(services, "Replicate")
	clusterRequest := one.Cost.Calls[clusterKind.kind].Largest

	progress("every shape changes, with twice as many services")
	two := newAsked(fn, 2*services, 1)
	two.ask(2*services, "Failover")
	two.reconcileServices()
	shapes := two.changeShapes()

	progress("as many services as a cluster can hold")
	many := newAsked(fn, 10*services, 1)
	for range 20 {
		many.ask(services/2, "Failover")
	}
	held := many.sampleServed(50)

	return []Figure{
		{"reconciles after one replica of one service is scaled", fmt.Sprintf("%d: %d of services, %d of clusters", ofServices+ofClusters, ofServices, ofClusters), "6"},
		{"reconciles per service until the whole fleet is settled", fmt.Sprintf("%.1f", float64(settled)/float64(services)), "6"},
		{fmt.Sprintf("request of a service (Replicate on all %d)", clusters), size(serviceRequest), "150 KB"},
		{fmt.Sprintf("request of a cluster (%d services)", services), size(clusterRequest), "1 MB"},
		{fmt.Sprintf("CPU of one cluster's call after every shape changed, %d services", 2*services), fmt.Sprintf("%.2f s", shapes.Seconds()), "0.1 s"},
		{fmt.Sprintf("services that one cluster holds, of %d", 10*services), strconv.Itoa(held), strconv.Itoa(10 * services)},
	}
}

func size(n int) string {
	if n < 1_000_000 {
		return fmt.Sprintf("%.0f KB", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

// worker returns a service of workers that take a node each.
func worker(i int, policy string) *user {
	return &user{
		name: name{"team-" + strconv.Itoa(i%50), fmt.Sprintf("s%04d", i)}, policy: policy,
		roles: []role{{name: "worker", kind: "worker", replicas: 1, nodes: 1, gpus: 8}},
	}
}

// newAsked returns a world with clusters in which some services fit. Nobody is woken there.
func newAsked(fn Function, services, clusters int) *World {
	w := New(Options{Seed: 1}, fn)
	w.calm, w.forgets = true, true
	for i := range clusters {
		w.addCluster("c"+strconv.Itoa(i), "r1", []nodePool{{"a", services*15/32 + 2, 8, false}}, false)
	}
	w.settle()
	w.Cost.reset()
	return w
}

// ask has new services of several sizes ask for room. Each is reconciled once, and then the first cluster until it has answered.
func (w *World) ask(services int, policy string) {
	before := len(w.services)
	for i := range services {
		u := worker(before+i, policy)
		u.roles[0].gpus = 1 << (i % 4)
		w.create(u)
	}
	w.reconcile(w.services[before:])
	w.reconcileCluster()
}

// sampleServed returns how many services the cluster has granted what they asked for, by the answer that one in some gets.
func (w *World) sampleServed(oneIn int) int {
	var some []*user
	for i := 0; i < len(w.services); i += oneIn {
		some = append(some, w.services[i])
	}
	w.reconcile(some)
	return len(w.told["c0"]) * oneIn
}

func (w *World) reconcileServices() { w.reconcile(w.services) }

func (w *World) reconcile(services []*user) {
	w.catchUp()
	for _, u := range services {
		_, _ = w.crossplane.reconcile(xrKey{serviceKind, u.name}) // A failure shows in the figures.
	}
}

func (w *World) reconcileCluster() {
	for range 3 {
		w.catchUp()
		_, _ = w.crossplane.reconcile(xrKey{clusterKind, name{"", "c0"}})
	}
}

// catchUp shows all caches everything, and wakes nobody.
func (w *World) catchUp() {
	for _, k := range slices.Clone(w.server.kinds) {
		w.crossplane.cache.advance(k, w.crossplane.cache.behind(k))
		w.server.forget(k, w.readers(k)...)
	}
}

// changeShapes gives all pods another request, as an upgrade of the function may, and returns the CPU time of the cluster's next call. That
// call is made again some times, without the world: its heap is far larger than that of a function, and collecting garbage would cost as much.
func (w *World) changeShapes() time.Duration {
	for _, u := range w.services {
		u.roles[0].cpus = 4
		w.update(u, "shape changed")
	}
	w.reconcileServices()
	fn, now := w.function, w.now
	var first []byte
	w.function = func(request []byte, now time.Time) ([]byte, error) {
		if first == nil {
			first = request
		}
		return fn(request, now)
	}
	w.reconcileCluster()
	*w = World{}
	each := make([]time.Duration, 9)
	for i := range each {
		runtime.GC()
		before := cpuTime()
		_, _ = fn(first, now) // It was answered before.
		each[i] = cpuTime() - before
	}
	slices.Sort(each)
	return each[len(each)/2]
}

// cpuTime is what this process has used, in all of its threads.
func cpuTime() time.Duration {
	u := syscall.Rusage{}
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
