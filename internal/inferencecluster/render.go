package inferencecluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/crossplane/crossplane/apis/v2/protection/v1beta1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/fleet"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/placement"
	services "github.com/fusioninfer/function-inferenceservice/internal/render"
)

// A remote is what an Object carries to the cluster: what names an object there.
type remote struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name        string            `json:"name"`
		Namespace   string            `json:"namespace,omitempty"`
		Labels      map[string]string `json:"labels,omitempty"`
		Annotations map[string]string `json:"annotations,omitempty"`
	} `json:"metadata"`
}

func named(apiVersion, kind, namespace, name string) *remote {
	r := &remote{APIVersion: apiVersion, Kind: kind}
	r.Metadata.Name, r.Metadata.Namespace = name, namespace
	return r
}

// A rendering collects what a cluster composes.
type rendering struct {
	*cluster

	objects []kube.Object
}

// render returns what a cluster composes: its ledger, what observes it, and the
// namespaces that services need there.
func render(c *cluster, seen *reality, d *decision) ([]kube.Object, error) {
	r := &rendering{cluster: c}
	if err := r.ledger(seen, d); err != nil {
		return nil, err
	}
	// The one namespace that every cluster has.
	if err := r.object(reachable, named("v1", "Namespace", "", "kube-system"), placement.Watch); err != nil {
		return nil, err
	}
	if g := c.Spec.Gateway; g != nil && g.Name != "" {
		if err := r.object(gateway, named("gateway.networking.k8s.io/v1", "Gateway", g.Namespace, g.Name), placement.Observe); err != nil {
			return nil, err
		}
	}
	if err := r.pools(); err != nil {
		return nil, err
	}
	if err := r.usage(d); err != nil {
		return nil, err
	}
	for _, n := range r.namespaces(seen, d) {
		manifest, care := r.namespace(seen, n)
		if err := r.object(namespaces+n, manifest, care); err != nil {
			return nil, err
		}
	}
	return r.objects, nil
}

func (r *rendering) labels() map[string]string { return map[string]string{LabelCluster: r.Name} }

func (r *rendering) add(key string, o *structpb.Struct) {
	r.objects = append(r.objects, kube.Object{Key: key, Resource: services.Decorate(o, r.input.Labels, r.input.Annotations)})
}

// ledger is written only over the version that was read.
func (r *rendering) ledger(seen *reality, d *decision) error {
	m := corev1.ConfigMap(ledgerName(r.Name), r.input.Fleet.Namespace).
		WithLabels(r.labels()).
		WithData(map[string]string{fleet.GrantsKey: d.ledger})
	if seen.ledger.there {
		m = m.WithResourceVersion(seen.ledger.resourceVersion)
	}
	o, err := kube.Encode(m)
	if err != nil {
		return fmt.Errorf("cannot render the ledger: %w", err)
	}
	r.add(keyLedger, o)
	return nil
}

// A usage is a ClusterUsage, without the status that its own type always writes.
type usage struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
	Spec v1beta1.ClusterUsageSpec `json:"spec"`
}

// usage has Crossplane refuse to delete a cluster in which services have room: they go
// first. So it is with one that is declared dead, because services have to read that to
// give up their Objects there: without the InferenceCluster they would keep them, and
// hang on them when they are deleted.
func (r *rendering) usage(d *decision) error {
	if len(d.Grants) == 0 {
		return nil
	}
	reason := "services have room in this cluster: drain it first, or declare it dead, so that they leave, and delete it when status.services is 0"
	u := usage{APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: v1beta1.ClusterUsageKind}
	u.Metadata.Name, u.Metadata.Labels = usageName(r.Name), r.labels()
	u.Spec = v1beta1.ClusterUsageSpec{
		Of: v1beta1.Resource{
			APIVersion:  v1alpha1.Group + "/" + v1alpha1.Version,
			Kind:        v1alpha1.KindCluster,
			ResourceRef: &v1beta1.ResourceRef{Name: r.Name},
		},
		Reason: &reason,
	}
	o, err := kube.Encode(u)
	if err != nil {
		return fmt.Errorf("cannot render the usage: %w", err)
	}
	r.add(keyUsage, o)
	return nil
}

func (r *rendering) object(what string, manifest *remote, care placement.Care) error {
	key := r.key(what)
	o, err := r.carrier.Object(r.name(key), r.labels(), manifest, care)
	if err != nil {
		return fmt.Errorf("cannot render %s: %w", key, err)
	}
	r.add(key, o)
	return nil
}

// pools are collections of the nodes that are observed.
func (r *rendering) pools() error {
	for i := range r.Spec.Pools {
		p := &r.Spec.Pools[i]
		if p.Nodes != nil {
			continue
		}
		key := r.key(nodesOf(p.Name))
		o, err := r.carrier.Nodes(r.name(key), r.labels(), p.NodeSelector)
		if err != nil {
			return fmt.Errorf("cannot render %s: %w", key, err)
		}
		r.add(key, o)
	}
	return nil
}

// namespaces are those that are needed, or those that are there while nothing is known
// about who asks.
func (r *rendering) namespaces(seen *reality, d *decision) []string {
	if !d.kept {
		return d.namespaces
	}
	var all []string
	for _, key := range slices.Sorted(maps.Keys(seen.observed)) {
		if n, ok := strings.CutPrefix(key, r.key(namespaces)); ok {
			all = append(all, n)
		}
	}
	return all
}
