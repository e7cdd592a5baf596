package loader

import (
	"math"

	"google.golang.org/protobuf/types/known/structpb"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	batch "k8s.io/client-go/applyconfigurations/batch/v1"
	apply "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
)

// The volumes of a loading Job.
const (
	volumeClaim = "weights"
	volumeHome  = "home"
)

// The names of the containers of a loading Job: the one that loads, and the sidecar that tells how much is loaded.
const (
	ContainerName = "loader"
	ProgressName  = "progress"
)

// gracePeriod is how many seconds a loader has to end. Its shell passes no signal on, and files that are
// complete are kept in any case.
const gracePeriod = 5

// JobSpec returns the spec of a Job that mounts a claim. The name is the label of its pods. Its container starts again in the same pod for ever: a pod
// that stays shows why it fails, and a cause that goes away needs no repair. A pod that is replaced is
// gone before the next one writes.
func (l *Loader) JobSpec(name, claimName, mountPath string) (*structpb.Struct, error) {
	container := apply.Container().
		WithName(ContainerName).
		WithImage(l.Image).
		WithCommand(l.Command...).
		WithVolumeMounts(
			apply.VolumeMount().WithName(volumeClaim).WithMountPath(mountPath),
			apply.VolumeMount().WithName(volumeHome).WithMountPath(home)).
		WithSecurityContext(noPrivileges())
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
			apply.Volume().WithName(volumeClaim).WithPersistentVolumeClaim(apply.PersistentVolumeClaimVolumeSource().WithClaimName(claimName)),
			apply.Volume().WithName(volumeHome).WithEmptyDir(apply.EmptyDirVolumeSource()))
	if len(l.Progress) > 0 {
		pod.WithInitContainers(l.progress(mountPath))
	}
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
	metadata, err := kube.Encode(map[string]any{"labels": map[string]any{naming.LabelModelLoader: name}})
	if err != nil {
		return nil, err
	}
	spec.Fields["template"] = structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{
		"metadata": structpb.NewStructValue(metadata), "spec": structpb.NewStructValue(p),
	}})
	return spec, nil
}

func noPrivileges() *apply.SecurityContextApplyConfiguration {
	return apply.SecurityContext().
		WithAllowPrivilegeEscalation(false).
		WithCapabilities(apply.Capabilities().WithDrop("ALL"))
}

// progress is the sidecar that tells how much is loaded. It reads the claim, and has no credentials.
func (l *Loader) progress(mountPath string) *apply.ContainerApplyConfiguration {
	c := apply.Container().
		WithName(ProgressName).
		WithImage(l.Image).
		WithRestartPolicy(corev1.ContainerRestartPolicyAlways).
		WithCommand(l.Progress...).
		WithVolumeMounts(
			apply.VolumeMount().WithName(volumeClaim).WithMountPath(mountPath).WithReadOnly(true),
			apply.VolumeMount().WithName(volumeHome).WithMountPath(home)).
		WithSecurityContext(noPrivileges())
	if r := resources(&corev1.ResourceRequirements{Limits: little(l.Resources.Limits), Requests: little(l.Resources.Requests)}); r != nil {
		c.WithResources(r)
	}
	return c
}

// little is what a shell needs of the resources that are set for the loader: a ResourceQuota asks for the
// same ones of all containers.
func little(of corev1.ResourceList) corev1.ResourceList {
	all := corev1.ResourceList{}
	for name, enough := range map[corev1.ResourceName]string{corev1.ResourceCPU: "50m", corev1.ResourceMemory: "64Mi", corev1.ResourceEphemeralStorage: "16Mi"} {
		if q, ok := of[name]; ok {
			all[name] = q
			if n := resource.MustParse(enough); n.Cmp(q) < 0 {
				all[name] = n
			}
		}
	}
	return all
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
