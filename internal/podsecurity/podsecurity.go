/*
Package podsecurity holds pod templates against the Pod Security Standards, by
Kubernetes' own checks (k8s.io/pod-security-admission/policy), which are those of the
admission controller. A template that breaks them is refused before anything of it is
applied.

The checks see the fields that the Kubernetes version of that library has. What is younger
is left to the admission controller of the cluster.
*/
package podsecurity

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/fusioninfer/function-inferenceservice/input/v1beta1"
)

// maxContainers is how many containers are looked at one by one for the path of a
// violation. A pod has a few.
const maxContainers = 64

// maxDetail is how much of the library's words is repeated, in bytes: they list every
// container and every value.
const maxDetail = 512

// evaluator has the checks of all standards and versions.
var evaluator = sync.OnceValues(func() (policy.Evaluator, error) { return policy.NewEvaluator(policy.DefaultChecks(), nil) })

// A Checker holds pod templates against one standard.
type Checker struct {
	checks  policy.Evaluator
	level   api.LevelVersion
	allowed []corev1.Capability
}

// New returns the checker of a standard with its defaults. It fails where the input's
// validation has refused the standard.
func New(s *v1beta1.PodSecurity) (*Checker, error) {
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
	return &Checker{checks: checks, level: api.LevelVersion{Level: level, Version: version}, allowed: s.AllowedCapabilities}, nil
}

// Check returns what a pod template breaks, in the library's words: at the container that
// breaks it, else at the pod's spec.
func (c *Checker) Check(at *field.Path, metadata *metav1.ObjectMeta, spec *corev1.PodSpec) field.ErrorList {
	if c.level.Level == api.LevelPrivileged {
		return nil
	}
	spec = c.withoutAllowed(spec)
	whole := c.checks.EvaluatePod(c.level, metadata, spec)
	if policy.AggregateCheckResults(whole).Allowed {
		return nil
	}
	pod := spec.DeepCopy()
	pod.InitContainers, pod.Containers = nil, nil
	ofPod := c.checks.EvaluatePod(c.level, metadata, pod)
	// A check may ask of a pod without containers what it does not ask of the whole.
	for i := range ofPod {
		ofPod[i].Allowed = ofPod[i].Allowed || whole[i].Allowed
	}
	errs := c.report(at.Child("spec"), ofPod, nil)
	// What is only the pod's was reported, and would be looked at with every container.
	pod.Volumes = nil
	if pod.SecurityContext != nil {
		pod.SecurityContext.Sysctls = nil
	}
	for _, list := range []struct {
		name       string
		containers []corev1.Container
		into       *[]corev1.Container
	}{
		{"initContainers", spec.InitContainers, &pod.InitContainers},
		{"containers", spec.Containers, &pod.Containers},
	} {
		for i := range list.containers[:min(len(list.containers), maxContainers)] {
			*list.into = list.containers[i : i+1]
			errs = append(errs, c.report(at.Child("spec", list.name).Index(i), c.checks.EvaluatePod(c.level, metadata, pod), ofPod)...)
		}
		*list.into = nil
	}
	if len(errs) == 0 {
		// It takes several containers, or one beyond those that were looked at.
		errs = c.report(at.Child("spec"), whole, nil)
	}
	return errs
}

// report returns an error for each check that failed, but for those that failed in the same
// way before.
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
		if len(detail) > maxDetail {
			detail = strings.ToValidUTF8(detail[:maxDetail], "") + "..."
		}
		errs = append(errs, field.Forbidden(at, fmt.Sprintf("violates PodSecurity %q: %s; the platform team sets the standard (podSecurity in the Composition's input)", c.level.String(), detail)))
	}
	return errs
}

// withoutAllowed returns a spec without the capabilities that are allowed although the
// standard does not allow them.
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
