/*
Package podsecurity checks pod templates against the Pod Security Standards. It uses the
checks of Kubernetes' admission controller (k8s.io/pod-security-admission/policy). A template
that violates them is refused before anything is applied.

The checks know the fields of that library's Kubernetes version. Newer fields are left to the
admission controller of the cluster.
*/
package podsecurity

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// maxDetail limits the library's message in an error, in bytes. It lists every container and
// every value.
const maxDetail = 512

// evaluator returns the checks of all standards and versions.
var evaluator = sync.OnceValues(func() (policy.Evaluator, error) { return policy.NewEvaluator(policy.DefaultChecks(), nil) })

// annotationInject only says whether Istio's injector adds a sidecar.
const annotationInject = "sidecar.istio.io/inject"

// ofInjector tells whether an annotation is one of Istio's, which its sidecar injector may read. It writes values of many into the text of the
// pod as they are: with a volume of the node, an image, or a container that runs as root (injection-template.yaml and kube-gateway.yaml in
// manifests/charts/istio-control/istio-discovery/files). The checks of the standards see the pod without that. Those of networking.istio.io are
// about Services and gateways.
func ofInjector(annotation string) bool {
	domain, _, _ := strings.Cut(annotation, "/")
	return (domain == "istio.io" || strings.HasSuffix(domain, ".istio.io")) && domain != "networking.istio.io" && annotation != annotationInject
}

// A Checker checks pod templates against one standard.
type Checker struct {
	checks      policy.Evaluator
	level       api.LevelVersion
	allowed     []corev1.Capability
	annotations []string
}

// New returns the Checker of a defaulted standard. It returns an error only for a standard
// that the validation of the input refuses.
func New(s *inputv1alpha1.PodSecurity) (*Checker, error) {
	level, err := api.ParseLevel(string(s.Enforce))
	if err != nil {
		return nil, fmt.Errorf("cannot use the Pod Security Standard: %w", err)
	}
	version, err := api.ParseVersion(s.EnforceVersion)
	if err != nil {
		return nil, fmt.Errorf("cannot use the version of the Pod Security Standard: %w", err)
	}
	checks, err := evaluator()
	if err != nil {
		return nil, fmt.Errorf("cannot load the Pod Security Standards: %w", err)
	}
	return &Checker{checks: checks, level: api.LevelVersion{Level: level, Version: version}, allowed: s.AllowedCapabilities, annotations: s.AllowedAnnotations}, nil
}

// Check returns the violations of a pod template in the library's words. The path is that of
// the container, or of the pod's spec if no single container violates the standard. It also returns the annotations
// that CheckAnnotations refuses. It checks each container by itself, so the caller limits their number.
func (c *Checker) Check(at *field.Path, metadata *metav1.ObjectMeta, spec *corev1.PodSpec) field.ErrorList {
	if c.level.Level == api.LevelPrivileged {
		return nil
	}
	errs := c.CheckAnnotations(at.Child("metadata", "annotations"), slices.Sorted(maps.Keys(metadata.Annotations)))
	return append(errs, c.checkPod(at, metadata, c.withoutAllowed(spec))...)
}

// CheckAnnotations returns an error for each annotation by which an injector may add to a pod what the standard refuses.
func (c *Checker) CheckAnnotations(at *field.Path, annotations []string) field.ErrorList {
	if c.level.Level == api.LevelPrivileged {
		return nil
	}
	var errs field.ErrorList
	for _, a := range annotations {
		if !ofInjector(a) || slices.Contains(c.annotations, a) {
			continue
		}
		errs = append(errs, field.Forbidden(at.Key(text.Value(a)), "must be left out, unless the platform team allows it: Istio's injector may add volumes of the node, images and rights to the pod by it (podSecurity.allowedAnnotations in the Composition's input)"))
	}
	return errs
}

func (c *Checker) checkPod(at *field.Path, metadata *metav1.ObjectMeta, spec *corev1.PodSpec) field.ErrorList {
	whole := c.checks.EvaluatePod(c.level, metadata, spec)
	if policy.AggregateCheckResults(whole).Allowed {
		return nil
	}
	// A check may require of a pod without containers what it does not require of the whole.
	evaluate := func(metadata *metav1.ObjectMeta, pod *corev1.PodSpec) []policy.CheckResult {
		results := c.checks.EvaluatePod(c.level, metadata, pod)
		for i := range results {
			results[i].Allowed = results[i].Allowed || whole[i].Allowed
		}
		return results
	}
	pod := spec.DeepCopy()
	pod.InitContainers, pod.Containers = nil, nil
	errs := c.report(at.Child("spec"), evaluate(metadata, pod), nil)
	// These were checked above, and would be checked again with every container.
	pod.Volumes, pod.EphemeralContainers = nil, nil
	if pod.SecurityContext != nil {
		pod.SecurityContext.Sysctls = nil
	}
	shared := evaluate(&metav1.ObjectMeta{}, pod)
	for _, list := range []struct {
		name       string
		containers []corev1.Container
		into       *[]corev1.Container
	}{
		{"initContainers", spec.InitContainers, &pod.InitContainers},
		{"containers", spec.Containers, &pod.Containers},
	} {
		for i := range list.containers {
			*list.into = list.containers[i : i+1]
			errs = append(errs, c.report(at.Child("spec", list.name).Index(i), c.checks.EvaluatePod(c.level, ofContainer(metadata, list.containers[i].Name), pod), shared)...)
		}
		*list.into = nil
	}
	if len(errs) == 0 {
		// Only several containers together violate it.
		errs = c.report(at.Child("spec"), whole, nil)
	}
	return errs
}

// ofContainer returns the metadata of a pod with only those annotations that the checks read for one of its containers. They read all
// annotations with AppArmor profiles for the pod.
func ofContainer(metadata *metav1.ObjectMeta, name string) *metav1.ObjectMeta {
	seccomp := corev1.SeccompContainerAnnotationKeyPrefix + name
	profile, is := metadata.Annotations[seccomp]
	if !is {
		return &metav1.ObjectMeta{}
	}
	return &metav1.ObjectMeta{Annotations: map[string]string{seccomp: profile}}
}

// report returns an error for each failed check, except for those that failed in the same way
// before.
func (c *Checker) report(at *field.Path, results, before []policy.CheckResult) field.ErrorList {
	var errs field.ErrorList
	for i, r := range results {
		if r.Allowed || i < len(before) && before[i] == r {
			continue
		}
		detail := r.ForbiddenReason
		if r.ForbiddenDetail != "" {
			detail += " (" + r.ForbiddenDetail + ")"
		}
		errs = append(errs, field.Forbidden(at, fmt.Sprintf("violates PodSecurity %q: %s; the platform team sets the standard (podSecurity in the Composition's input)", c.level.String(), text.Cut(detail, maxDetail))))
	}
	return errs
}

// withoutAllowed returns a spec without the capabilities that allowedCapabilities permits, so
// that the checks do not see them.
func (c *Checker) withoutAllowed(spec *corev1.PodSpec) *corev1.PodSpec {
	if len(c.allowed) == 0 {
		return spec
	}
	spec = spec.DeepCopy()
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			if s := containers[i].SecurityContext; s != nil && s.Capabilities != nil {
				s.Capabilities.Add = slices.DeleteFunc(s.Capabilities.Add, func(added corev1.Capability) bool { return slices.Contains(c.allowed, added) })
			}
		}
	}
	return spec
}
