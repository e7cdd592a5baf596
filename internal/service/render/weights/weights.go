// Package weights renders the claims that have weights, the Jobs that load these, and the claims for adapters.
package weights

import (
	"fmt"
	"math"

	"google.golang.org/protobuf/types/known/structpb"
	batchv1 "k8s.io/api/batch/v1"
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
	spec, err := jobSpec(p.Weights)
	if err != nil {
		return nil, fmt.Errorf("cannot render the Job that loads the model: %w", err)
	}
	return &Renderer{label: p.Service.Label(), spec: spec, hash: naming.Hash(kube.Text(spec))}, nil
}

// Hash of what the Jobs are made from. It is empty for a service without a cache.
func (r *Renderer) Hash() string { return r.hash }

// Render returns the claims and the Job of a cluster.
func (r *Renderer) Render(c *plan.ClusterPlan) ([]kube.Object, error) {
	var all []kube.Object
	for i := range c.Caches {
		o, err := r.claim(c, &c.Caches[i])
		if err != nil {
			return nil, fmt.Errorf("cannot render PersistentVolumeClaim %q: %w", c.Caches[i].ClaimName, err)
		}
		all = append(all, o)
	}
	if a := c.AdapterClaim; a != nil {
		o, err := r.claim(c, a)
		if err != nil {
			return nil, fmt.Errorf("cannot render PersistentVolumeClaim %q: %w", a.ClaimName, err)
		}
		all = append(all, o)
	}
	if r.spec == nil || c.Loading == nil || !c.Loading.Renders {
		return all, nil
	}
	o, err := kube.Encode(batch.Job(c.Loading.JobName, c.Target.Namespace).
		WithLabels(map[string]string{r.label: c.Base}))
	if err != nil {
		return nil, fmt.Errorf("cannot render Job %q: %w", c.Loading.JobName, err)
	}
	o.Fields["spec"] = structpb.NewStructValue(r.spec)
	return append(all, kube.Object{Key: c.Loading.Job, Resource: o}), nil
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

// The volumes of a loading Job.
const (
	volumeWeights = "weights"
	volumeHome    = "home"
)

// gracePeriod is how many seconds a loader has to end. Its shell passes no signal on, and files that are
// complete are kept in any case.
const gracePeriod = 5

// jobSpec is the spec of all loading Jobs. Its container starts again in the same pod for ever: a pod
// that stays shows why it fails, and a cause that goes away needs no repair. A pod that is replaced is
// gone before the next one writes.
func jobSpec(w *plan.Weights) (*structpb.Struct, error) {
	l := &w.Loader
	container := apply.Container().
		WithName("loader").
		WithImage(l.Image).
		WithCommand(l.Command...).
		WithVolumeMounts(
			apply.VolumeMount().WithName(volumeWeights).WithMountPath(plan.WeightsPath),
			apply.VolumeMount().WithName(volumeHome).WithMountPath("/tmp")).
		WithSecurityContext(apply.SecurityContext().
			WithAllowPrivilegeEscalation(false).
			WithCapabilities(apply.Capabilities().WithDrop("ALL")))
	if r := resources(&l.Resources); r != nil {
		container.WithResources(r)
	}
	pod := apply.PodSpec().
		WithRestartPolicy(corev1.RestartPolicyOnFailure).
		WithTerminationGracePeriodSeconds(gracePeriod).
		WithAutomountServiceAccountToken(false).
		WithEnableServiceLinks(false).
		WithSecurityContext(apply.PodSecurityContext().
			WithRunAsNonRoot(true).WithRunAsUser(l.User).WithRunAsGroup(l.Group).
			WithFSGroup(l.VolumeGroup).WithFSGroupChangePolicy(corev1.FSGroupChangeOnRootMismatch).
			WithSeccompProfile(apply.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))).
		WithVolumes(
			apply.Volume().WithName(volumeWeights).WithPersistentVolumeClaim(apply.PersistentVolumeClaimVolumeSource().WithClaimName(w.ClaimName)),
			apply.Volume().WithName(volumeHome).WithEmptyDir(apply.EmptyDirVolumeSource()))
	for _, s := range l.ImagePullSecrets {
		pod.WithImagePullSecrets(apply.LocalObjectReference().WithName(s))
	}
	if len(l.NodeSelector) > 0 {
		pod.WithNodeSelector(l.NodeSelector)
	}
	spec, err := kube.Encode(batch.JobSpec().
		WithBackoffLimit(math.MaxInt32).
		WithPodReplacementPolicy(batchv1.Failed))
	if err != nil {
		return nil, err
	}
	c, err := kube.Encode(container)
	if err != nil {
		return nil, err
	}
	for i := range l.Env {
		if err := kube.Append(c, "env", &l.Env[i]); err != nil {
			return nil, err
		}
	}
	p, err := kube.Encode(pod)
	if err != nil {
		return nil, err
	}
	p.Fields["containers"] = structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{structpb.NewStructValue(c)}})
	for i := range l.Tolerations {
		if err := kube.Append(p, "tolerations", &l.Tolerations[i]); err != nil {
			return nil, err
		}
	}
	if l.NodeAffinity != nil {
		a, err := kube.Encode(&corev1.Affinity{NodeAffinity: l.NodeAffinity})
		if err != nil {
			return nil, err
		}
		p.Fields["affinity"] = structpb.NewStructValue(a)
	}
	metadata, err := kube.Encode(map[string]any{"labels": map[string]any{naming.LabelModelLoader: w.LoaderName}})
	if err != nil {
		return nil, err
	}
	spec.Fields["template"] = structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{
		"metadata": structpb.NewStructValue(metadata), "spec": structpb.NewStructValue(p),
	}})
	return spec, nil
}

func resources(of *corev1.ResourceRequirements) *apply.ResourceRequirementsApplyConfiguration {
	r := apply.ResourceRequirements()
	if len(of.Limits) > 0 {
		r.WithLimits(of.Limits)
	}
	if len(of.Requests) > 0 {
		r.WithRequests(of.Requests)
	}
	if r.Limits == nil && r.Requests == nil {
		return nil
	}
	return r
}
