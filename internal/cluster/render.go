package cluster

import (
	"errors"

	corev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/crossplane/crossplane/apis/v2/protection/v1beta1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/remote"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
)

// A manifest is what the manifest of an Object has: apiVersion, kind and metadata.
type manifest struct {
	APIVersion string        `json:"apiVersion"`
	Kind       string        `json:"kind"`
	Metadata   kube.Metadata `json:"metadata"`
	// Data is that of a ConfigMap.
	Data map[string]string `json:"data,omitempty"`
}

func named(apiVersion, kind, namespace, name string) *manifest {
	return &manifest{APIVersion: apiVersion, Kind: kind, Metadata: kube.Metadata{Name: name, Namespace: namespace}}
}

// A rendering collects what a cluster composes.
type rendering struct {
	*parsed

	objects []kube.Object
	// err has all errors. With one, the objects do not count.
	err error
}

// render returns what a cluster composes: its ledger, what services read, the Objects that observe
// it, and those of the namespaces that services need there.
func render(c *parsed, state *observedState, p *ledgerPlan) ([]kube.Object, error) {
	r := &rendering{parsed: c}
	r.configMaps(state, p)
	// Every cluster has this namespace.
	r.object(r.keys().Reachable(), named("v1", "Namespace", "", systemNamespace), remote.Watch)
	r.mark(state.identity.mark.own)
	if e := c.Spec.Entrypoint; e != nil && e.GatewayRef != nil {
		r.object(r.keys().Gateway(), named("gateway.networking.k8s.io/v1", "Gateway", e.GatewayRef.Namespace, e.GatewayRef.Name), remote.Observe)
	}
	// A collection finds the nodes of each pool.
	for _, pool := range r.observedPools() {
		k := r.keys().Nodes(pool.Name)
		r.add(r.builder.Nodes(k, r.name(k), r.labels(), pool.NodeSelector))
	}
	r.usage(p)
	for _, n := range r.namespaces(state, p) {
		m, policy := r.namespace(state, n)
		r.object(r.keys().Namespace(n), m, policy)
	}
	return r.objects, r.err
}

func (r *rendering) labels() map[string]string { return map[string]string{LabelCluster: r.Name} }

// add adds an object, with the platform team's labels and annotations.
func (r *rendering) add(o kube.Object, err error) {
	o.Resource = composite.Decorate(o.Resource, r.input.Labels, r.input.Annotations)
	r.objects, r.err = append(r.objects, o), errors.Join(r.err, err)
}

// configMaps adds the ledger, and what services read.
func (r *rendering) configMaps(state *observedState, p *ledgerPlan) {
	r.ledger(state, p)
	if !state.resolved {
		r.unchanged(state)
		return
	}
	r.profile(state, p)
	r.answers(state, p)
}

// ledger adds the ledger. The resourceVersion lets the API server refuse it if the ledger
// has changed since it was read.
func (r *rendering) ledger(state *observedState, p *ledgerPlan) {
	m := corev1.ConfigMap(ledgerName(r.Name), r.input.Namespace).
		WithLabels(r.labels()).
		WithBinaryData(map[string][]byte{reservation.LedgerKey: p.ledger})
	if state.ledger.exists {
		m = m.WithResourceVersion(state.ledger.resourceVersion)
	}
	r.add(kube.Render(key.Ledger, m))
}

// A usage is a ClusterUsage, without the status that its own type always writes.
type usage struct {
	manifest

	Spec v1beta1.ClusterUsageSpec `json:"spec"`
}

// usage has Crossplane refuse to delete a cluster with reservations until the services have
// left. That includes an abandoned cluster: services give up their Objects there only while
// they read that it is abandoned. Without the InferenceCluster they would keep the Objects,
// and a deleted service would wait for them forever.
func (r *rendering) usage(p *ledgerPlan) {
	if len(p.Services) == 0 {
		return
	}
	reason := "capacity of this cluster is reserved for services: set its stopPolicy to Drain, or to Abandon, so that they leave, and delete it when status.serviceCount is 0"
	u := usage{manifest: *named(v1beta1.SchemeGroupVersion.String(), v1beta1.ClusterUsageKind, "", ledgerName(r.Name))}
	u.Metadata.Labels = r.labels()
	u.Spec = v1beta1.ClusterUsageSpec{
		Of: v1beta1.Resource{
			APIVersion:  v1alpha1.APIVersion,
			Kind:        v1alpha1.KindInferenceCluster,
			ResourceRef: &v1beta1.ResourceRef{Name: r.Name},
		},
		Reason: &reason,
	}
	r.add(kube.Render(key.Usage, u))
}

func (r *rendering) object(k key.Key, m *manifest, policy remote.ManagementPolicy) {
	r.add(r.builder.Object(k, r.name(k), r.labels(), m, policy))
}

// namespaces returns the namespaces that services need. While the capacity requests are not
// known it returns those that exist.
func (r *rendering) namespaces(state *observedState, p *ledgerPlan) []string {
	if state.resolved {
		return p.namespaces
	}
	var all []string
	for _, k := range state.req.ObservedKeys() {
		if n, ok := r.keys().NamespaceOf(k); ok {
			all = append(all, n)
		}
	}
	return all
}
