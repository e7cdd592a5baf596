/*
Package podspec validates pod templates as the API server does, with its own
library. The definition of a LeaderWorkerSet knows the types of a template's fields
and little else. A template that no pod can be made from would be applied, and only
a StatefulSet's events would say why there are no pods.

The library is an internal package of Kubernetes. Others use it as well (Argo
Rollouts, Volcano). It takes 0.1 ms for a template.
*/
package podspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/core"
	defaults "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/capabilities"
)

// options are those of an API server whose feature gates are all on: a field that
// some cluster takes is not refused here. What the library tolerates only on
// objects that exist already (AllowInvalid...) is refused, as on creation.
var options = validation.PodValidationOptions{
	AllowContainerRestartPolicyRules:                    true,
	AllowEnvFilesValidation:                             true,
	AllowImageVolumeWithDigest:                          true,
	AllowMatchLabelKeysInPodTopologySpread:              true,
	AllowMatchLabelKeysInPodTopologySpreadSelectorMerge: true,
	AllowPodLifecycleSleepActionZeroValue:               true,
	AllowRelaxedDNSSearchValidation:                     true,
	AllowRelaxedEnvironmentVariableValidation:           true,
	AllowRestartAllContainers:                           true,
	AllowSidecarResizePolicy:                            true,
	AllowTaintTolerationComparisonOperators:             true,
	AllowUserNamespacesHostNetworkSupport:               true,
	InPlacePodLevelResourcesVerticalScalingEnabled:      true,
	PodLevelResourcesEnabled:                            true,
}

// maxSpread is more topologySpreadConstraints than anybody has. The library
// compares each with each.
const maxSpread = 100

// Validate says what keeps Kubernetes from making pods of a template. The template
// is as its author wrote it, and is not changed; path is where it is.
func Validate(template *corev1.PodTemplateSpec, path *field.Path) field.ErrorList {
	if n := len(template.Spec.TopologySpreadConstraints); n > maxSpread {
		return field.ErrorList{field.TooMany(path.Child("spec", "topologySpreadConstraints"), n, maxSpread)}
	}
	// Whether a cluster takes privileged containers is its policy, of which nothing is
	// known here. Only the first call has an effect.
	capabilities.Setup(true, 0)
	t := &corev1.PodTemplate{Template: *template.DeepCopy()}
	defaults.SetObjectDefaults_PodTemplate(t)
	errs := validate(&t.Template, path)
	if len(errs) == 0 && template.Spec.Resources != nil {
		// What the whole pod requests is a default of pods, and not of templates.
		pod := &corev1.Pod{ObjectMeta: t.Template.ObjectMeta, Spec: t.Template.Spec}
		defaults.SetObjectDefaults_Pod(pod)
		errs = validate(&corev1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}, path)
	}
	return readable(served(errs, &template.Spec, path.Child("spec")))
}

func validate(defaulted *corev1.PodTemplateSpec, path *field.Path) field.ErrorList {
	t := &core.PodTemplateSpec{}
	if err := defaults.Convert_v1_PodTemplateSpec_To_core_PodTemplateSpec(defaulted, t, nil); err != nil {
		return field.ErrorList{field.Invalid(path, "{...}", err.Error())}
	}
	// The library puts no metadata into the paths of a template's labels and annotations.
	errs := validation.ValidatePodTemplateSpec(t, path, options)
	errs = moved(errs, path.Child("labels"), path.Child("metadata", "labels"))
	errs = moved(errs, path.Child("annotations"), path.Child("metadata", "annotations"))
	errs = keyed(errs, path.Child("metadata", "labels"), t.Labels)
	return keyed(errs, path.Child("spec", "nodeSelector"), t.Spec.NodeSelector)
}

// served adds what a pod may have, and a StatefulSet's pod may not. LeaderWorkerSet
// makes its pods by StatefulSets.
func served(errs field.ErrorList, spec *corev1.PodSpec, path *field.Path) field.ErrorList {
	if p := spec.RestartPolicy; p != "" && p != corev1.RestartPolicyAlways {
		at := path.Child("restartPolicy")
		errs = without(errs, at)
		errs = append(errs, field.Invalid(at, p, "must be Always, or left out: the pods serve until they are deleted"))
	}
	if s := spec.ActiveDeadlineSeconds; s != nil {
		at := path.Child("activeDeadlineSeconds")
		errs = without(errs, at)
		errs = append(errs, field.Invalid(at, *s, "must be left out: the pods serve until they are deleted"))
	}
	if spec.NodeName != "" && len(spec.SchedulingGates) > 0 {
		errs = append(errs, field.Invalid(path.Child("nodeName"), spec.NodeName, "must be left out where there are schedulingGates: a pod with gates has no node yet"))
	}
	return errs
}
