package simulation

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// A Figure is one that grows with the fleet, and what it is not to exceed, or to reach.
type Figure struct{ Name, Value, Bar string }

// Fleet measures what a fleet costs: reconciles are counted, sizes are those of encoded requests, and only one figure is a time.
func Fleet(fn Function, services, clusters int, progress func(string)) []Figure {
	progress(fmt.Sprintf("%d services on %d clusters", services, clusters))
	w := New(Options{Seed: 1}, fn)
	w.calm, w.forgets = true, true
	nodes := services/clusters + services/clusters/10 + 4
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

	progress("one replica of one service is scaled")
	w.Cost.reset()
	u := w.services[services/2]
	u.roles[0].replicas++
	w.update(u, "scaled")
	w.settle()
	scaled := w.Cost.Reconciles[serviceKind.kind] + w.Cost.Reconciles[clusterKind.kind]

	progress("a service on all clusters")
	w.Cost.reset()
	w.create(worker(services, "Replicate"))
	w.settle()
	serviceRequest := w.Cost.each[xrKey{serviceKind, w.services[services].name}].largest

	progress("a cluster with as many services")
	one := askCluster(fn, services)
	clusterRequest := one.Cost.Calls[clusterKind.kind].Largest

	progress("every shape changes, with twice as many services")
	two := askCluster(fn, 2*services)
	two.reconcileServices()
	shapes := two.changeShapes()

	progress("as many services as a cluster can hold")
	many := askCluster(fn, 10*services)
	held := many.sampleServed(50)

	return []Figure{
		{"reconciles after one replica of one service is scaled", strconv.Itoa(scaled), "6"},
		{"reconciles per service until the whole fleet is settled", fmt.Sprintf("%.1f", float64(settled)/float64(services)), "6"},
		{fmt.Sprintf("request of a service (Replicate on all %d)", clusters), bytes(serviceRequest), "150 KB"},
		{fmt.Sprintf("request of a cluster (%d services)", services), bytes(clusterRequest), "1 MB"},
		{fmt.Sprintf("one cluster's call after every shape changed, %d services", 2*services), fmt.Sprintf("%.2f s", shapes.Seconds()), "0.1 s"},
		{fmt.Sprintf("services that one cluster holds, of %d", 10*services), strconv.Itoa(held), strconv.Itoa(10 * services)},
	}
}

func bytes(n int) string {
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

// askCluster returns a world with one cluster, and services that all ask for it. Nobody is woken: each service is reconciled once, so
// that it asks, and then the cluster until it has answered.
func askCluster(fn Function, services int) *World {
	w := New(Options{Seed: 1}, fn)
	w.calm, w.forgets = true, true
	w.addCluster("c0", "r1", []nodePool{{"a", services, 8, false}}, false)
	w.settle()
	w.Cost.reset()
	for i := range services {
		w.create(worker(i, "Failover"))
	}
	w.reconcileServices()
	w.reconcileCluster()
	return w
}

// sampleServed returns how many services the cluster has granted what they asked for, by the answer that one in some gets.
func (w *World) sampleServed(oneIn int) int {
	w.catchUp()
	for i := 0; i < len(w.services); i += oneIn {
		_, _ = w.crossplane.reconcile(xrKey{serviceKind, w.services[i].name}) // A failure shows in the figure.
	}
	return len(w.told["c0"]) * oneIn
}

func (w *World) reconcileServices() {
	w.catchUp()
	for _, u := range w.services {
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

// changeShapes gives all pods another request, as an upgrade of the function may, and returns the time of the cluster's next call.
func (w *World) changeShapes() time.Duration {
	for _, u := range w.services {
		u.roles[0].cpus = 4
		w.update(u, "shape changed")
	}
	w.reconcileServices()
	w.Cost.reset()
	w.reconcileCluster()
	return w.Cost.Calls[clusterKind.kind].Longest
}
