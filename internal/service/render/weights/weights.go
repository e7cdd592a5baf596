// Package weights renders the claims that have weights, the Jobs that load these, and the claims for adapters.
package weights

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	batch "k8s.io/client-go/applyconfigurations/batch/v1"
	apply "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

// A Renderer renders the claims of one plan, and its loading Jobs, which are the same in all clusters.
type Renderer struct {
	// label has the name of the service or the ModelCache.
	label string
	// spec of the Jobs. Nil for a service without a cache of its own.
	spec *structpb.Struct
	hash string
}

// New renders what all loading Jobs have in common.
func New(p *plan.Plan) (*Renderer, error) {
	if p.Weights == nil {
		return &Renderer{label: p.Service.Label()}, nil
	}
	spec, err := p.Weights.Loader.JobSpec(p.Weights.LoaderName, p.Weights.ClaimName, plan.ModelsPath)
	if err != nil {
		return nil, fmt.Errorf("cannot render the Job that loads the model: %w", err)
	}
	return &Renderer{label: p.Service.Label(), spec: spec, hash: naming.Hash(kube.Canonical(spec))}, nil
}

// Hash of what the Jobs are made from. It is empty for a service without a cache.
func (r *Renderer) Hash() string { return r.hash }

// Render returns the claims and the Job of a cluster.
func (r *Renderer) Render(c *plan.ClusterPlan) ([]kube.Object, error) {
	var all []kube.Object
	claims := c.Caches
	if c.AdapterClaim != nil {
		claims = append(slices.Clone(claims), *c.AdapterClaim)
	}
	for i := range claims {
		o, err := r.claim(c, &claims[i])
		if err != nil {
			return nil, fmt.Errorf("cannot render PersistentVolumeClaim %q: %w", claims[i].ClaimName, err)
		}
		all = append(all, o)
	}
	if r.spec == nil || c.Loading == nil || !c.Loading.Renders {
		return all, nil
	}
	o, err := kube.Render(c.Loading.Job, batch.Job(c.Loading.JobName, c.Target.Namespace).
		WithLabels(map[string]string{r.label: c.Base}))
	if err != nil {
		return nil, err
	}
	o.Resource.Fields["spec"] = structpb.NewStructValue(r.spec)
	return append(all, o), nil
}

func (r *Renderer) claim(c *plan.ClusterPlan, cache *plan.Cache) (kube.Object, error) {
	size, err := resource.ParseQuantity(cache.Size)
	if err != nil {
		return kube.Object{}, err
	}
	spec := apply.PersistentVolumeClaimSpec().
		WithAccessModes(corev1.PersistentVolumeAccessMode(cache.AccessMode)).
		WithResources(apply.VolumeResourceRequirements().WithRequests(corev1.ResourceList{corev1.ResourceStorage: size}))
	if cache.StorageClassName != "" {
		spec.WithStorageClassName(cache.StorageClassName)
	}
	o, err := kube.Encode(apply.PersistentVolumeClaim(cache.ClaimName, c.Target.Namespace).
		WithLabels(map[string]string{r.label: c.Base}).
		WithSpec(spec))
	return kube.Object{Key: cache.Key, Resource: o}, err
}
