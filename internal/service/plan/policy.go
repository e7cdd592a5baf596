package plan

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/podsecurity"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// A tenantPolicy is what the platform team allows the service's namespace.
type tenantPolicy struct {
	inputv1alpha1.Policy

	namespace string
	security  *podsecurity.Checker
}

// errNoPodSecurity is an internal error: validation of the input should have refused the
// standard.
var errNoPodSecurity = errors.New("the Pod Security Standard cannot be used")

// newTenantPolicy returns the policy for the tenant of a service. If the standard cannot be used,
// security is nil and Build fails.
func newTenantPolicy(s naming.Identity, in *inputv1alpha1.Input) *tenantPolicy {
	p := &tenantPolicy{Policy: in.PolicyOf(s.Namespace), namespace: s.Namespace}
	if c, err := podsecurity.New(p.PodSecurity); err == nil {
		p.security = c
	}
	return p
}

// setBy names the setting of the Composition's input that an error is about.
func setBy(setting string) string { return " (" + setting + " in the Composition's input)" }

// checkRole checks the templates of a role. It skips a template without containers, which could
// not be read.
func (p *tenantPolicy) checkRole(r *Role) field.ErrorList {
	var errs field.ErrorList
	for _, t := range r.templates() {
		if len(t.Spec.Containers) > 0 {
			errs = append(errs, p.checkTemplate(t.path, t.PodTemplate)...)
		}
	}
	return errs
}

// checkTemplate refuses settings of a template that could harm other tenants.
func (p *tenantPolicy) checkTemplate(at *field.Path, t *PodTemplate) field.ErrorList {
	var errs field.ErrorList
	if p.security != nil {
		errs = p.security.Check(at, &metav1.ObjectMeta{Labels: t.Labels, Annotations: t.Annotations}, &t.Spec)
	}
	spec, metadata := at.Child("spec"), at.Child("metadata")
	errs = append(errs, checkServiceAccount(spec.Child("serviceAccountName"), t.Spec.ServiceAccountName)...)
	errs = append(errs, checkServiceAccount(spec.Child("serviceAccount"), t.Spec.DeprecatedServiceAccount)...)
	errs = append(errs, p.checkPriority(spec.Child("priorityClassName"), t.Spec.PriorityClassName, "")...)
	errs = append(errs, p.checkPriority(metadata.Child("labels").Key(naming.LabelKueuePriorityClass), t.Labels[naming.LabelKueuePriorityClass], "")...)
	errs = append(errs, p.checkVolumes(spec.Child("volumes"), t.Spec.Volumes)...)
	errs = append(errs, p.checkAntiAffinity(spec.Child("affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution"), &t.Spec)...)
	if t.Spec.Priority != nil {
		errs = append(errs, field.Forbidden(spec.Child("priority"), "must be left out: Kubernetes sets it from priorityClassName"))
	}
	// For pods without a PodGroup, Volcano creates one in this queue.
	const queue = schedulingv1beta1.QueueNameAnnotationKey
	errs = append(errs, p.checkQueue(metadata.Child("annotations").Key(queue), t.Annotations[queue], "")...)
	return append(errs, p.checkQueue(metadata.Child("labels").Key(queue), t.Labels[queue], "")...)
}

// checkAntiAffinity refuses required anti-affinity to pods of other namespaces. The scheduler
// applies it in both directions (pkg/scheduler/framework/plugins/interpodaffinity): it puts no
// pod onto the node, or into the zone, of a running pod that excludes it.
func (p *tenantPolicy) checkAntiAffinity(at *field.Path, spec *corev1.PodSpec) field.ErrorList {
	if spec.Affinity == nil || spec.Affinity.PodAntiAffinity == nil {
		return nil
	}
	var errs field.ErrorList
	for i, term := range spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
		const remedy = "must be left out: it would keep other tenants' pods off nodes; use preferredDuringSchedulingIgnoredDuringExecution instead"
		if term.NamespaceSelector != nil {
			errs = append(errs, field.Forbidden(at.Index(i).Child("namespaceSelector"), remedy))
		}
		if slices.ContainsFunc(term.Namespaces, func(n string) bool { return n != p.namespace }) {
			errs = append(errs, field.Forbidden(at.Index(i).Child("namespaces"), remedy))
		}
	}
	return errs
}

// checkServiceAccount keeps engines from using the ServiceAccount of an endpoint picker of any
// service in the namespace. It has permissions that an engine must not have.
func checkServiceAccount(at *field.Path, name string) field.ErrorList {
	if !strings.HasSuffix(name, eppSuffix) {
		return nil
	}
	return field.ErrorList{field.Invalid(at, text.Value(name), "must not end in "+eppSuffix+": such ServiceAccounts belong to endpoint pickers")}
}

// checkPriority refuses a priority class that is neither allowed nor the platform's default. Pods
// of a high priority evict those of other tenants.
func (p *tenantPolicy) checkPriority(at *field.Path, class, platform string) field.ErrorList {
	return p.checkName(at, class, platform, p.AllowedPriorityClassNames, "allowedPriorityClassNames")
}

// checkQueue refuses a queue that is neither allowed nor the platform's default. Pods in another
// tenant's queue use up that tenant's share.
func (p *tenantPolicy) checkQueue(at *field.Path, queue, platform string) field.ErrorList {
	return p.checkName(at, queue, platform, p.AllowedQueues, "allowedQueues")
}

// checkName refuses a name that the namespace may not use. None, and the platform's default, are always allowed.
func (p *tenantPolicy) checkName(at *field.Path, name, platform string, allowed []string, setting string) field.ErrorList {
	if name == "" || name == platform || inputv1alpha1.MatchesAny(allowed, name) {
		return nil
	}
	what := "must be left out"
	if platform != "" {
		what += fmt.Sprintf(" or be the platform's default %q", platform)
	}
	switch {
	case len(allowed) > 0:
		what += " or match one of " + listed(allowed)
	case platform != "":
		what += ": no other is allowed"
	default:
		what += ": none is allowed"
	}
	return field.ErrorList{field.Invalid(at, text.Value(name), what+" in namespace "+p.namespace+setBy(setting))}
}

// listed quotes the first 16 names of a list for an error.
func listed(names []string) string { return fmt.Sprintf("%q", names[:min(len(names), 16)]) }

// checkGang refuses a queue or priority class of the gang that is not allowed.
func (p *tenantPolicy) checkGang(s *v1alpha1.SchedulingStrategy, in *inputv1alpha1.Input) field.ErrorList {
	if s == nil {
		return nil
	}
	at := field.NewPath("spec", "schedulingStrategy")
	errs := p.checkQueue(at.Child("queueName"), s.QueueName, in.Defaults.SchedulingStrategy.QueueName)
	if s.Gang == nil {
		return errs
	}
	return append(errs, p.checkPriority(at.Child("gang", "priorityClassName"), s.Gang.PriorityClassName, in.Defaults.SchedulingStrategy.Gang.PriorityClassName)...)
}

// checkRouter refuses devices for endpoint pickers. They need none, and the ledgers of clusters do
// not count what they request.
func checkRouter(at *field.Path, role *v1alpha1.Role) field.ErrorList {
	if role.EndpointPicker == nil || role.EndpointPicker.Resources == nil {
		return nil
	}
	resources, at := role.EndpointPicker.Resources, at.Child("endpointPicker", "resources")
	var errs field.ErrorList
	for _, r := range []struct {
		name string
		list corev1.ResourceList
	}{{"limits", resources.Limits}, {"requests", resources.Requests}} {
		for _, name := range slices.Sorted(maps.Keys(r.list)) {
			if !slices.Contains(pickerResources, name) {
				errs = append(errs, field.Forbidden(at.Child(r.name).Key(text.Value(string(name))), fmt.Sprintf("must be left out: an endpoint picker may request only %q", pickerResources)))
			}
		}
	}
	if len(resources.Claims) > 0 {
		errs = append(errs, field.Forbidden(at.Child("claims"), "must be left out: an endpoint picker may request no devices"))
	}
	return errs
}

// pickerResources are the resources that an endpoint picker may request.
var pickerResources = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage}

// checkLimits refuses a service that is larger than the platform team allows. What a rollout may
// run beside it counts, too. Each cluster may have a copy of that size: if copies counted together, a
// cluster that joins the fleet could make a running service too large.
func (p *tenantPolicy) checkLimits(of *Plan) field.ErrorList {
	roles, router := of.Roles, of.Router
	var replicas, nodes, devices int64
	for _, r := range roles {
		n := int64(r.Most()) + int64(of.mostExtraOf(r))
		replicas = plus(replicas, n)
		nodes = plus(nodes, n*int64(r.Nodes))
		devices = plus(devices, times(n, r.devices()))
	}
	all := of.mostGroups()
	replicas, nodes, devices = times(replicas, all), times(nodes, all), times(devices, all)
	if router != nil {
		// All groups share the endpoint pickers.
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
	return field.ErrorList{field.Invalid(at, fmt.Sprintf("%d %s", n, what), fmt.Sprintf("must have at most %d %s%s", *limit, what, setBy("limits."+what)))}
}

// refuseClaims refuses claimed devices (DRA), because the template does not say how many there are.
func refuseClaims(roles []*Role) field.ErrorList {
	var errs field.ErrorList
	for _, r := range roles {
		for _, t := range r.templates() {
			if len(t.Spec.ResourceClaims) > 0 {
				errs = append(errs, field.Forbidden(t.path.Child("spec", "resourceClaims"), "must be left out where the platform team limits devices, because the devices of a claim cannot be counted: request them as resources"))
			}
		}
	}
	return errs
}

// devices is the number of devices that one replica requests.
func (r *Role) devices() int64 {
	n := int64(0)
	for name, q := range r.replicaResources {
		if capacity.IsDevice(name) {
			n = plus(n, count(q))
		}
	}
	return n
}

// count is a whole number, or the largest int64. Quantity.Value returns the lowest 64 bits of an amount beyond that.
func count(q resource.Quantity) int64 {
	if q.CmpInt64(math.MaxInt64) > 0 {
		return math.MaxInt64
	}
	return max(q.Value(), 0)
}

// plus and times return the largest int64 instead of overflowing. Both expect numbers of at least
// 0.
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
