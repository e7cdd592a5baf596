/*
Package podspec validates pod templates with the API server's own library. The CRD of
LeaderWorkerSet checks little more than the types of a template's fields. Kubernetes would
accept a template from which it cannot create pods, and only a StatefulSet's events would say
so.

The library, k8s.io/kubernetes/pkg/apis/core/validation, is not meant for other modules, but
Argo Rollouts and Volcano use it, too. It takes 0.1 ms for a template.

What is said of a HorizontalPodAutoscaler is validated in the same way.
*/
package podspec

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/core"
	defaults "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/capabilities"

	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// options are those of an API server with all feature gates enabled, because some cluster may
// have a gate enabled. Options that accept invalid fields of existing objects (AllowInvalid...)
// are off, as when an object is created.
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

// maxSpread is how many topologySpreadConstraints a template may have. The library compares
// each with each.
const maxSpread = 100

// maxAppArmor is how many annotations with AppArmor profiles of containers a template may have. The library
// compares each with each container.
const maxAppArmor = 128

// kubernetesVersion is the version of Kubernetes that the types of this module are of.
const kubernetesVersion = "1.36"

// UnknownField says what is known of a template's field that the types do not have.
const UnknownField = "Kubernetes " + kubernetesVersion + " has none of that name"

// Validate returns why Kubernetes could not create pods from a template at a path. The
// template need not be defaulted, and is not changed.
func Validate(template *corev1.PodTemplateSpec, path *field.Path) field.ErrorList {
	if n := len(template.Spec.TopologySpreadConstraints); n > maxSpread {
		return field.ErrorList{field.TooMany(path.Child("spec", "topologySpreadConstraints"), n, maxSpread)}
	}
	const profile = corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix
	if n := withPrefix(template.Annotations, profile); n > maxAppArmor {
		return field.ErrorList{field.TooMany(path.Child("metadata", "annotations").Key(profile+"*"), n, maxAppArmor)}
	}
	// Each cluster decides whether it allows privileged containers, so they are allowed here.
	// Only the first call has an effect.
	capabilities.Setup(true, 0)
	t := &corev1.PodTemplate{Template: *template.DeepCopy()}
	defaults.SetObjectDefaults_PodTemplate(t)
	errs := validate(&t.Template, path)
	if len(errs) == 0 && template.Spec.Resources != nil {
		// The API server defaults the requests of the whole pod in pods, but not in templates.
		pod := &corev1.Pod{ObjectMeta: t.Template.ObjectMeta, Spec: t.Template.Spec}
		defaults.SetObjectDefaults_Pod(pod)
		errs = validate(&corev1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}, path)
	}
	return readable(checkServing(errs, &template.Spec, path.Child("spec")))
}

// withPrefix counts the annotations whose keys have a prefix.
func withPrefix(annotations map[string]string, prefix string) int {
	n := 0
	for k := range annotations {
		if strings.HasPrefix(k, prefix) {
			n++
		}
	}
	return n
}

func validate(defaulted *corev1.PodTemplateSpec, path *field.Path) field.ErrorList {
	t := &core.PodTemplateSpec{}
	if err := defaults.Convert_v1_PodTemplateSpec_To_core_PodTemplateSpec(defaulted, t, nil); err != nil {
		return field.ErrorList{field.Invalid(path, "{...}", err.Error())}
	}
	// The library leaves metadata out of the paths of a template's labels and annotations.
	errs := validation.ValidatePodTemplateSpec(t, path, options)
	errs = moved(errs, path.Child("labels"), path.Child("metadata", "labels"))
	errs = moved(errs, path.Child("annotations"), path.Child("metadata", "annotations"))
	errs = keyed(errs, path.Child("metadata", "labels"), t.Labels)
	return keyed(errs, path.Child("spec", "nodeSelector"), t.Spec.NodeSelector)
}

// checkServing adds errors for fields that are valid in a pod, but not in the template of a
// StatefulSet. LeaderWorkerSet creates its pods by StatefulSets. It also adds errors for images that are
// valid in a template, but not in a pod.
func checkServing(errs field.ErrorList, spec *corev1.PodSpec, path *field.Path) field.ErrorList {
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
	errs = append(errs, checkImages(spec.InitContainers, path.Child("initContainers"))...)
	errs = append(errs, checkImages(spec.Containers, path.Child("containers"))...)
	if spec.NodeName != "" && len(spec.SchedulingGates) > 0 {
		errs = append(errs, field.Invalid(path.Child("nodeName"), spec.NodeName, "must be left out if there are schedulingGates: a pod with gates has no node yet"))
	}
	return errs
}

// checkImages refuses what Kubernetes allows in templates for compatibility, and not in pods
// (validateContainerOnlyForPod in pkg/apis/core/validation/validation.go).
func checkImages(containers []corev1.Container, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range containers {
		image := containers[i].Image
		if trimmed := strings.TrimSpace(image); trimmed != image {
			errs = append(errs, field.Invalid(path.Index(i).Child("image"), image, fmt.Sprintf("must not have spaces before or after it: write %q", text.Cut(trimmed, maxValue))))
		}
	}
	return errs
}
