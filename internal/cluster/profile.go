package cluster

import (
	"errors"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/profile"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
	"github.com/fusioninfer/function-inferenceservice/internal/sorting"
)

// profile adds the profile of the cluster, and the estimates.
func (r *rendering) profile(state *observedState, p *ledgerPlan) {
	data, err := profile.Data(profiled(r.parsed, state, p))
	estimates, unencoded := profile.EstimatesData(estimated(state, p))
	r.err = errors.Join(r.err, err, unencoded)
	r.addConfigMap(key.Profile, profile.Name(r.Name), profile.Label, data)
	r.addConfigMap(key.Estimates, profile.EstimatesName(r.Name), profile.EstimatesLabel, estimates)
}

// addConfigMap adds a ConfigMap that services find by a label.
func (r *rendering) addConfigMap(k key.Key, name, label string, data map[string]string) {
	labels := r.labels()
	labels[label] = profile.LabelValue
	r.add(kube.Render(k, corev1.ConfigMap(name, r.input.Namespace).WithLabels(labels).WithData(data)))
}

// profiled returns the cluster as services read it. All that changes whenever a service does is left
// out.
func profiled(c *parsed, state *observedState, p *ledgerPlan) *v1alpha1.InferenceCluster {
	is := schedulable(p)
	switch {
	case is.Status == composite.True:
		is.Reason, is.Message = reasonSchedulable, "" // Whose share of the ledger is used up changes with each service.
	case is.Reason == reasonFull:
		is.Message = "its ledger is full" // The number of bytes does, too.
	}
	all := &v1alpha1.InferenceCluster{
		ObjectMeta: metav1.ObjectMeta{Name: c.Name, Labels: c.Labels},
		Spec: v1alpha1.InferenceClusterSpec{
			ProviderConfigRef: c.Spec.ProviderConfigRef, Admission: c.Spec.Admission, Kueue: c.Spec.Kueue, Volcano: c.Spec.Volcano,
			StopPolicy: c.Spec.StopPolicy, StopMessage: c.Spec.StopMessage, AllowedNamespaces: c.Spec.AllowedNamespaces,
		},
		Status: v1alpha1.InferenceClusterStatus{
			ClusterUID: state.identity.known, UnreachableSince: p.unreachableSince, LastOutage: p.lastOutage, Entrypoint: state.entrypoint,
			Conditions: []metav1.Condition{{Type: is.Type, Status: metav1.ConditionStatus(is.Status), Reason: is.Reason, Message: is.Message}},
		},
	}
	if created, err := time.Parse(time.RFC3339, c.created); err == nil {
		all.CreationTimestamp = metav1.Time{Time: created}
	}
	if len(p.Services) > 0 || len(state.ledger.Services) > 0 {
		all.Status.ServiceCount = 1 // Some: the number would change with each service.
	}
	if queue := c.Spec.LocalQueue(); queue != "" {
		all.Status.Summary = summaryOfKueue(queue)
	}
	for i := range p.Free.Pools {
		pool := &p.Free.Pools[i]
		all.Status.Pools = append(all.Status.Pools, poolStatus(&capacity.Pool{Name: pool.Name, Labels: pool.Labels}))
	}
	return all
}

// estimated returns the pools with what is about free in them, and the estimates by the names of the pools
// and the taints of their nodes.
func estimated(state *observedState, p *ledgerPlan) ([]v1alpha1.PoolStatus, map[string]capacity.Estimate) {
	var pools []v1alpha1.PoolStatus
	before, estimates := profile.Estimates(state.req.Observed(key.Estimates)), map[string]capacity.Estimate{}
	for i := range p.Free.Pools {
		pool := &p.Free.Pools[i]
		about := capacity.Pool{Name: pool.Name, Labels: pool.Labels}
		if state.unread[pool.Name] {
			for name, was := range before {
				if of, _, _ := strings.Cut(name, " "); of == pool.Name {
					estimates[name] = was
				}
			}
		} else {
			about.Free = steady(pool, before, estimates)
		}
		pools = append(pools, poolStatus(&about))
	}
	return pools, estimates
}

// steady returns what is about free in a pool, and adds the estimates that say so.
func steady(pool *capacity.Pool, before, estimates map[string]capacity.Estimate) []capacity.NodeClass {
	var free []capacity.NodeClass
	for _, part := range pool.ByTaints() {
		e := part.Estimate()
		if was, known := before[part.Name]; known || part.Name != pool.Name {
			e = e.Steady(was, part.Empty()) // One of tainted nodes that is left out was 0.
		}
		if part.Name != pool.Name && e == (capacity.Estimate{}) {
			continue // Nodes that are full, and get a taint, change nothing for anybody.
		}
		estimates[part.Name] = e
		if len(part.Free) > 0 {
			free = append(free, e.Nodes(part.Node(), part.Free[0].Taints)...)
		}
	}
	return free
}

// answers adds the answers to services. They are those of the ledger as it was read, and not as
// it will be: what the API server then refuses to write was granted to nobody. The
// resourceVersion keeps an older answer from being written over a newer one.
func (r *rendering) answers(state *observedState, p *ledgerPlan) {
	// A service that got something now is told both with the next call: a refusal alone would send
	// it to other clusters at once.
	refused := slices.DeleteFunc(slices.Clone(p.Pending), func(w reservation.Pending) bool { return w.Got })
	all := reservedAnswers(state.ledger.Services)
	all.Pending = pending(refused)
	for i, part := range all.Split() {
		k := key.Answers(i)
		if part == nil {
			continue
		}
		part.Pending = atMost(part.Pending, len(part.Pending), maxRefused, inAnswer)
		encoded, err := part.Encode()
		r.err = errors.Join(r.err, err)
		m := corev1.ConfigMap(profile.PartName(r.Name, i), r.input.Namespace).WithLabels(r.labels()).WithBinaryData(map[string][]byte{profile.AnswersKey: encoded})
		if observed := state.req.Observed(k); observed.Exists() {
			m = m.WithResourceVersion(resourceVersion.Text(observed))
		}
		r.add(kube.Render(k, m))
	}
}

// inAnswer returns how many bytes the texts of a pending request add to an answer. A message that was told before compresses.
func inAnswer(p *v1alpha1.PendingRequest, told bool) int {
	n := len(p.UID) + len(p.Namespace) + len(p.Name)
	if told {
		return n
	}
	return n + len(p.Message)
}

// atMost returns the most pending requests that have some bytes together, in their order. Namespaces take turns, so that none takes
// the place of others. One with a request that does not fit gets no further turn. Services whose requests are left out of the answers
// ask other clusters after a minute.
func atMost(all []v1alpha1.PendingRequest, most, bytes int, sizeOf func(p *v1alpha1.PendingRequest, told bool) int) []v1alpha1.PendingRequest {
	left, told, fit := map[string]bool{}, map[string]bool{}, make([]bool, len(all))
	for _, i := range sorting.InTurn(len(all), func(i int) string { return all[i].Namespace }) {
		p := &all[i]
		if left[p.Namespace] || most == 0 {
			continue
		}
		n := sizeOf(p, told[p.Message])
		if n > bytes {
			left[p.Namespace] = true
			continue
		}
		bytes -= n
		most--
		fit[i], told[p.Message] = true, true
	}
	var some []v1alpha1.PendingRequest
	for i := range all {
		if fit[i] {
			some = append(some, all[i])
		}
	}
	return some
}

// unchanged adds the profile, the estimates and the answers as they are, while the capacity requests are not known.
func (r *rendering) unchanged(state *observedState) {
	keys := []key.Key{key.Profile, key.Estimates}
	for i := range profile.Parts {
		keys = append(keys, key.Answers(i))
	}
	for _, k := range keys {
		observed := state.req.Observed(k)
		if !observed.Exists() {
			continue
		}
		o, err := kube.Render(k, map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": observed.Name(), "namespace": observed.Namespace(), "labels": labelsOf.In(observed)},
			"data":     profile.Texts(observed), "binaryData": profile.Binary(observed),
		})
		r.objects, r.err = append(r.objects, o), errors.Join(r.err, err)
	}
}

var labelsOf = incoming.NewPath("metadata", "labels")

// told tells whether services can read that the cluster has its UID.
func told(req incoming.Request, clusterUID string) bool {
	p := peerView.In(profile.Cluster(req.Observed(key.Profile)))
	return p.Status.ClusterUID == clusterUID
}

// ofServices tells whether only services read an object. Nothing waits for these.
func ofServices(k key.Key) bool {
	return k == key.Profile || k == key.Estimates || k.Kind == key.Answers(0).Kind
}
