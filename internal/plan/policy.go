package plan

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/fusioninfer/function-inferenceservice/input/v1beta1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/podsecurity"
)

// labelKueuePriorityClass is the label by which Kueue takes the priority of pods from a
// WorkloadPriorityClass, which belongs to the whole cluster (kueue
// pkg/controller/constants/constants.go, WorkloadPriorityClassLabel).
const labelKueuePriorityClass = "kueue.x-k8s.io/priority-class"

// A tenantPolicy is what the platform team allows the service's namespace.
type tenantPolicy struct {
	v1beta1.Policy

	namespace string
	security  *podsecurity.Checker
}

// errNoPodSecurity is a Fatal for a standard that cannot be used and that the validation of the
// input has let pass.
var errNoPodSecurity = errors.New("the Pod Security Standard cannot be used")

// newTenantPolicy returns the policy for the tenant of a service. It has no checker where the
// standard cannot be used: nothing is planned then.
func newTenantPolicy(s Service, in *v1beta1.Input) *tenantPolicy {
	p := &tenantPolicy{Policy: in.PolicyOf(s.Namespace), namespace: s.Namespace}
	if c, err := podsecurity.New(p.PodSecurity); err == nil {
		p.security = c
	}
	return p
}

// setBy ends the errors about what the platform team decides, and names its setting.
func setBy(setting string) string { return " (" + setting + " in the Composition's input)" }

// checkRole refuses what the templates of a role may not have. One that could not be read has
// no containers.
func (p *tenantPolicy) checkRole(r *Role) field.ErrorList {
	var errs field.ErrorList
	for _, t := range r.templates() {
		if len(t.Spec.Containers) > 0 {
			errs = append(errs, p.checkTemplate(t.at, t.PodTemplate)...)
		}
	}
	return errs
}

// checkTemplate refuses what a template may not have. All of it concerns others than the
// tenant.
func (p *tenantPolicy) checkTemplate(at *field.Path, t *PodTemplate) field.ErrorList {
	var errs field.ErrorList
	if p.security != nil {
		errs = p.security.Check(at, &metav1.ObjectMeta{Labels: t.Labels, Annotations: t.Annotations}, &t.Spec)
	}
	spec, metadata := at.Child("spec"), at.Child("metadata")
	errs = append(errs, checkServiceAccount(spec.Child("serviceAccountName"), t.Spec.ServiceAccountName)...)
	errs = append(errs, checkServiceAccount(spec.Child("serviceAccount"), t.Spec.DeprecatedServiceAccount)...)
	errs = append(errs, p.checkPriority(spec.Child("priorityClassName"), t.Spec.PriorityClassName)...)
	errs = append(errs, p.checkPriority(metadata.Child("labels").Key(labelKueuePriorityClass), t.Labels[labelKueuePriorityClass])...)
	errs = append(errs, p.checkAntiAffinity(spec.Child("affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution"), &t.Spec)...)
	if t.Spec.Priority != nil {
		errs = append(errs, field.Forbidden(spec.Child("priority"), "must be left out: Kubernetes sets it from priorityClassName"))
	}
	// Volcano makes a PodGroup in this queue for pods that are in none.
	const queue = schedulingv1beta1.QueueNameAnnotationKey
	errs = append(errs, p.checkQueue(metadata.Child("annotations").Key(queue), t.Annotations[queue], "")...)
	return append(errs, p.checkQueue(metadata.Child("labels").Key(queue), t.Labels[queue], "")...)
}

// checkAntiAffinity refuses pods that keep those of other namespaces away. The scheduler takes
// required anti-affinity both ways (pkg/scheduler/framework/plugins/interpodaffinity): no pod
// that a running one excludes comes to its node, or to its whole zone.
func (p *tenantPolicy) checkAntiAffinity(at *field.Path, spec *corev1.PodSpec) field.ErrorList {
	if spec.Affinity == nil || spec.Affinity.PodAntiAffinity == nil {
		return nil
	}
	var errs field.ErrorList
	for i, term := range spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
		const remedy = "must be left out: it would keep other tenants' pods away from nodes; prefer it instead (preferredDuringSchedulingIgnoredDuringExecution)"
		if term.NamespaceSelector != nil {
			errs = append(errs, field.Forbidden(at.Index(i).Child("namespaceSelector"), remedy))
		}
		if slices.ContainsFunc(term.Namespaces, func(n string) bool { return n != p.namespace }) {
			errs = append(errs, field.Forbidden(at.Index(i).Child("namespaces"), remedy))
		}
	}
	return errs
}

// checkServiceAccount keeps engines from running as an endpoint picker, of this service or
// of another one in the namespace: it may read what an engine has no business with.
func checkServiceAccount(at *field.Path, name string) field.ErrorList {
	if !strings.HasSuffix(name, eppSuffix) {
		return nil
	}
	return field.ErrorList{field.Invalid(at, check.Shown(name), "must be another ServiceAccount: those that end in "+eppSuffix+" are endpoint pickers'")}
}

// checkPriority refuses a class that is not allowed. Pods of a high priority evict those of
// other tenants.
func (p *tenantPolicy) checkPriority(at *field.Path, class string) field.ErrorList {
	if class == "" || v1beta1.MatchesAny(p.AllowedPriorityClassNames, class) {
		return nil
	}
	return field.ErrorList{notAllowed(at, class, p.AllowedPriorityClassNames, "allowedPriorityClassNames")}
}

// checkQueue refuses a queue that is neither allowed nor the platform's own. What runs in
// another tenant's queue takes that tenant's share.
func (p *tenantPolicy) checkQueue(at *field.Path, queue, platform string) field.ErrorList {
	if queue == "" || queue == platform || v1beta1.MatchesAny(p.AllowedQueues, queue) {
		return nil
	}
	return field.ErrorList{notAllowed(at, queue, p.AllowedQueues, "allowedQueues")}
}

func notAllowed(at *field.Path, name string, allowed []string, setting string) *field.Error {
	what := "must be left out: the platform team allows none"
	if len(allowed) > 0 {
		what = fmt.Sprintf("must be left out, or one that the platform team allows: %q", allowed[:min(len(allowed), 16)])
	}
	return field.Invalid(at, check.Shown(name), what+setBy(setting))
}

// checkGang refuses the queue and the priority of a gang that are not allowed.
func (p *tenantPolicy) checkGang(s *v1alpha1.SchedulingStrategy, in *v1beta1.Input) field.ErrorList {
	if s == nil || s.Gang == nil {
		return nil
	}
	at := field.NewPath("spec", "schedulingStrategy", "gang")
	errs := p.checkQueue(at.Child("queue"), s.Gang.Queue, in.Scheduling.Queue)
	return append(errs, p.checkPriority(at.Child("priorityClassName"), s.Gang.PriorityClassName)...)
}

// checkRouter refuses devices for endpoint pickers. They use none, and no ledger of a cluster
// counts what they request.
func checkRouter(at *field.Path, role *v1alpha1.Role) field.ErrorList {
	if role.Resources == nil {
		return nil
	}
	var errs field.ErrorList
	for _, list := range []struct {
		name string
		of   corev1.ResourceList
	}{{"limits", role.Resources.Limits}, {"requests", role.Resources.Requests}} {
		for _, name := range slices.Sorted(maps.Keys(list.of)) {
			if !slices.Contains(pickerResources, name) {
				errs = append(errs, field.Forbidden(at.Child("resources", list.name).Key(check.Shown(string(name))), fmt.Sprintf("must be left out: an endpoint picker has only %q", pickerResources)))
			}
		}
	}
	if len(role.Resources.Claims) > 0 {
		errs = append(errs, field.Forbidden(at.Child("resources", "claims"), "must be left out: an endpoint picker has no devices"))
	}
	return errs
}

// pickerResources are what an endpoint picker may request.
var pickerResources = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage}

// checkLimits refuses a service that is larger than the platform team allows.
func (p *tenantPolicy) checkLimits(roles []*Role, router *Router, groups *int32) field.ErrorList {
	var replicas, nodes, devices int64
	for _, r := range roles {
		n := int64(r.Replicas)
		replicas = plus(replicas, n)
		nodes = plus(nodes, n*int64(r.Nodes))
		devices = plus(devices, times(n, r.devices()))
	}
	if groups != nil {
		replicas, nodes, devices = times(replicas, int64(*groups)), times(nodes, int64(*groups)), times(devices, int64(*groups))
	}
	if router != nil {
		// Endpoint pickers are there once for all groups.
		replicas, nodes = plus(replicas, int64(router.Replicas)), plus(nodes, int64(router.Replicas))
	}
	at := field.NewPath("spec", "roles")
	errs := checkLimit(at, "replicas", replicas, p.Limits.Replicas)
	errs = append(errs, checkLimit(at, "nodes", nodes, p.Limits.Nodes)...)
	errs = append(errs, checkLimit(at, "devices", devices, p.Limits.Devices)...)
	if p.Limits.Devices != nil {
		errs = append(errs, refuseClaims(roles)...)
	}
	return errs
}

func checkLimit(at *field.Path, what string, n int64, limit *int32) field.ErrorList {
	if limit == nil || n <= int64(*limit) {
		return nil
	}
	return field.ErrorList{field.Invalid(at, fmt.Sprintf("%d %s", n, what), fmt.Sprintf("the platform team allows a service %d %s at most%s", *limit, what, setBy("limits."+what)))}
}

// refuseClaims refuses devices that are claimed: how many there are is not in the template.
func refuseClaims(roles []*Role) field.ErrorList {
	var errs field.ErrorList
	for _, r := range roles {
		for _, t := range r.templates() {
			if len(t.Spec.ResourceClaims) > 0 {
				errs = append(errs, field.Forbidden(t.at.Child("spec", "resourceClaims"), "must be left out where the platform team limits devices, because the devices of a claim cannot be counted: request them as resources"))
			}
		}
	}
	return errs
}

// devices that one replica requests: resources of a vendor, of which there are few on a
// node.
func (r *Role) devices() int64 {
	n := int64(0)
	for name, q := range r.replicaResources {
		if isDevice(name) {
			n = plus(n, max(q.Value(), 0))
		}
	}
	return n
}

// isDevice tells the resources of a vendor, such as nvidia.com/gpu.
func isDevice(name corev1.ResourceName) bool { return strings.Contains(string(name), "/") }

// plus and times stay at the largest number instead of going beyond it. Neither takes
// numbers below 0.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func times(a, b int64) int64 {
	if b != 0 && a > math.MaxInt64/b {
		return math.MaxInt64
	}
	return a * b
}
