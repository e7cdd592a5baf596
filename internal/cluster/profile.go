package cluster

import (
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/profile"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
)

// profile adds the profile of the cluster, and the estimates.
func (r *rendering) profile(state *observedState, p *ledgerPlan) error {
	data, err := profile.Data(profiled(r.parsed, state, p))
	if err != nil {
		return err
	}
	estimates, err := profile.EstimatesData(estimated(state, p))
	if err != nil {
		return err
	}
	return errors.Join(
		r.addConfigMap(key.Profile, profile.Name(r.Name), profile.Label, data),
		r.addConfigMap(key.Estimates, profile.EstimatesName(r.Name), profile.EstimatesLabel, estimates),
	)
}

// addConfigMap adds a ConfigMap that services find by a label.
func (r *rendering) addConfigMap(k key.Key, name, label string, data map[string]string) error {
	labels := r.labels()
	labels[label] = profile.LabelValue
	o, err := kube.Encode(corev1.ConfigMap(name, r.input.Namespace).WithLabels(labels).WithData(data))
	if err != nil {
		return fmt.Errorf("cannot render ConfigMap %s: %w", name, err)
	}
	r.add(k, o)
	return nil
}

// profiled returns the cluster as services read it. All that changes whenever a service does is left
// out.
func profiled(c *parsed, state *observedState, p *ledgerPlan) *v1alpha1.InferenceCluster {
	is := schedulable(p)
	if is.Reason == reasonFull {
		is.Message = "its ledger is full" // The number of bytes would change with each service.
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

// estimated returns the pools with what is about free in them, and the estimates by the names of the pools.
func estimated(state *observedState, p *ledgerPlan) ([]v1alpha1.PoolStatus, map[string]capacity.Estimate) {
	var pools []v1alpha1.PoolStatus
	before, estimates := profile.Estimates(state.req.Observed(key.Estimates)), map[string]capacity.Estimate{}
	for i := range p.Free.Pools {
		pool := &p.Free.Pools[i]
		was, known := before[pool.Name]
		if state.unread[pool.Name] {
			pools = append(pools, poolStatus(&capacity.Pool{Name: pool.Name, Labels: pool.Labels}))
			if known {
				estimates[pool.Name] = was
			}
			continue
		}
		e := pool.Estimate()
		if known {
			e = e.Steady(was, pool.Empty())
		}
		estimates[pool.Name] = e
		pools = append(pools, poolStatus(&capacity.Pool{Name: pool.Name, Labels: pool.Labels, Free: e.Nodes(pool.Node())}))
	}
	return pools, estimates
}

// answers adds the answers to services. They are those of the ledger as it was read, and not as
// it will be: what the API server then refuses to write was granted to nobody. The
// resourceVersion keeps an older answer from being written over a newer one.
func (r *rendering) answers(state *observedState, p *ledgerPlan) error {
	// The others have not been answered, as far as they know. After a minute they ask other clusters.
	// A service that got something now is told both with the next call: a refusal alone would send
	// it to other clusters at once.
	refused := slices.DeleteFunc(slices.Clone(p.Pending[:min(len(p.Pending), maxPending)]), func(w reservation.Pending) bool { return w.Got })
	all := profile.Answers{Pending: pending(refused)}
	for i := range state.ledger.Services {
		all.Reservations = append(all.Reservations, reservationOf(&state.ledger.Services[i]))
	}
	for i, part := range all.Split() {
		k := key.Answers(i)
		if part == nil {
			continue
		}
		encoded, err := part.Encode()
		if err != nil {
			return err
		}
		m := corev1.ConfigMap(profile.PartName(r.Name, i), r.input.Namespace).WithLabels(r.labels()).WithBinaryData(map[string][]byte{profile.AnswersKey: encoded})
		if observed := state.req.Observed(k); observed.Exists() {
			m = m.WithResourceVersion(resourceVersion.Text(observed))
		}
		o, err := kube.Encode(m)
		if err != nil {
			return fmt.Errorf("cannot render %s: %w", k, err)
		}
		r.add(k, o)
	}
	return nil
}

// kept adds the profile, the estimates and the answers as they are, while the capacity requests are not known.
func (r *rendering) kept(state *observedState) error {
	keys := []key.Key{key.Profile, key.Estimates}
	for i := range profile.Parts {
		keys = append(keys, key.Answers(i))
	}
	for _, k := range keys {
		observed := state.req.Observed(k)
		if !observed.Exists() {
			continue
		}
		o, err := kube.Encode(map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": observed.Name(), "namespace": observed.Namespace(), "labels": labelsOf.In(observed)},
			"data":     profile.Texts(observed), "binaryData": profile.Binary(observed),
		})
		if err != nil {
			return fmt.Errorf("cannot render %s: %w", k, err)
		}
		r.objects = append(r.objects, kube.Object{Key: k, Resource: o})
	}
	return nil
}

var labelsOf = incoming.NewPath("metadata", "labels")

// told tells whether services can read that the cluster has its UID.
func told(req incoming.Request, clusterUID string) bool {
	p := peer{}
	_ = peerView.Read(profile.Cluster(req.Observed(key.Profile)), &p) // Fields of a wrong type count as absent.
	return p.Status.ClusterUID == clusterUID
}

// ofServices tells whether only services read an object. Nothing waits for these.
func ofServices(k key.Key) bool {
	return k == key.Profile || k == key.Estimates || k.Kind == key.Answers(0).Kind
}
