package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// A quota is the one that a namespace has in a cluster, in GPUs.
type quota struct {
	priority, nominal int
	// borrowing is how much more than nominal it may have, or unlimited.
	borrowing int
}

// unlimited is an amount that is more than any cluster has.
const unlimited = 1 << 20

// limit is the number of GPUs that a namespace may have, with or without borrowing.
func (q quota) limit(borrow bool) int {
	if borrow {
		return q.nominal + q.borrowing
	}
	return q.nominal
}

func (q quota) String() string {
	return fmt.Sprintf("priority %d, %d+%d GPUs", q.priority, q.nominal, q.borrowing)
}

// setQuotas gives each namespace a random quota in a cluster.
func (r *remote) setQuotas() {
	if r.most == nil {
		r.most = map[string]int{}
	}
	r.quotas = map[string]quota{}
	for _, namespace := range []string{"team-a", "team-b"} {
		q := quota{r.w.rand.IntN(2), 4 * r.w.rand.IntN(6), []int{0, 8, unlimited}[r.w.rand.IntN(3)]}
		r.quotas[namespace], r.most[namespace] = q, max(r.most[namespace], q.limit(true))
	}
}

// quotasSpec are the quotas of the InferenceCluster.
func (r *remote) quotasSpec() []any {
	var all []any
	for _, namespace := range slices.Sorted(maps.Keys(r.quotas)) {
		q := r.quotas[namespace]
		gpus := fields{"name": "nvidia.com/gpu", "nominalQuota": strconv.Itoa(q.nominal)}
		if q.borrowing < unlimited {
			gpus["borrowingLimit"] = strconv.Itoa(q.borrowing)
		}
		all = append(all, fields{"namespaces": list(namespace), "priority": q.priority, "resources": list[any](gpus)})
	}
	return all
}

// quotaEvent happens where there are quotas.
var quotaEvent = event{"quotas", 4, func(w *World) {
	r := w.randomCluster()
	r.setQuotas()
	r.update(fmt.Sprintf("quotas %v", r.quotas))
}}

// checkQuota checks that what starts in a cluster is within the highest quota that its namespace ever had there. A lower one takes nothing
// away, and what is granted before may start later. Objects that are being deleted do not count, nor those whose service is gone.
func (w *World) checkQuota(o *stored, r *remote) {
	most, limited := r.most[o.name.namespace]
	if !limited {
		return
	}
	sum := 0
	for n, pods := range w.told[r.name] {
		if at := w.server.get(objectKind, n); n.namespace == o.name.namespace && at != nil && !w.lost(at) && w.alive[at.owner] {
			sum += gpusOf(pods)
		}
	}
	if sum > most {
		w.violate("within quota", w.about(r), "%s started in %s, where its namespace has %d GPUs then, and its quota allows %d: %s", o, r.name, sum, most, w.describe(r))
	}
}

// quotaAllows tells whether the quota of a namespace allows it some pods more in a cluster. The pods of one Object do not count.
func (w *World) quotaAllows(namespace string, r *remote, but name, more []pod, borrow bool) bool {
	q, limited := r.quotas[namespace]
	has := w.taken(r, func(n name) bool { return n != but && n.namespace == namespace })
	return !limited || gpusOf(has)+gpusOf(more) <= q.limit(borrow)
}

// quotaLeft returns how many GPUs more each namespace with a quota may have in a cluster.
func (w *World) quotaLeft(r *remote) map[string]int {
	left := map[string]int{}
	for namespace, q := range r.quotas {
		left[namespace] = q.limit(true)
	}
	for n, pods := range w.told[r.name] {
		if _, limited := left[n.namespace]; limited {
			left[n.namespace] -= gpusOf(pods)
		}
	}
	return left
}

// servedBefore tells whether a cluster may serve another service before u. What is within the nominal quotas comes first, then the highest
// priority, and then the oldest service.
func (w *World) servedBefore(other, u *user, r *remote, older bool) bool {
	if len(r.quotas) == 0 {
		return older
	}
	var waits []pod
	for _, p := range u.missing(w.placedIn(u)[r.name]) {
		waits = append(waits, p.pods()...)
	}
	if !w.quotaAllows(u.name.namespace, r, name{}, waits, false) {
		return true
	}
	mine, others := r.quotas[u.name.namespace].priority, r.quotas[other.name.namespace].priority
	return others > mine || others == mine && older
}
