package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

// rendered is what Crossplane would apply.
type rendered struct {
	xr       object
	composed []object
	// spec is that of a service.
	spec *v1alpha1.InferenceServiceSpec
	// planned is what is composed once the weights of the model are in their cache.
	planned []object
	// fleet has the clusters after a simulation.
	fleet []object
}

// compose does what Crossplane does with the response of the last function.
func compose(g *snapshot, rsp *fnv1.RunFunctionResponse) (*rendered, error) {
	out := &rendered{spec: serviceSpec(g.xr)}
	desired := rsp.GetDesired()
	var unready []string
	for _, key := range slices.Sorted(maps.Keys(desired.GetResources())) {
		r := desired.GetResources()[key]
		o := composed(g, key, object{Object: kube.AsMap(r.GetResource())})
		out.composed = append(out.composed, o)
		if r.GetReady() != fnv1.Ready_READY_TRUE {
			unready = append(unready, key)
		}
	}
	var err error
	out.xr, err = written(g.xr, desired.GetComposite(), out.composed)
	if err != nil {
		return nil, err
	}
	conditions(&out.xr, g.xr, rsp.GetConditions())
	setCondition(&out.xr, condition{Type: "Synced", Status: "True", Reason: "ReconcileSuccess"})
	setCondition(&out.xr, ready(desired.GetComposite().GetReady(), unready))
	return out, nil
}

// composed adds the metadata that Crossplane gives a composed resource.
func composed(g *snapshot, key string, o object) object {
	if was, ok := g.observed[key]; ok {
		o.SetName(was.GetName())
		o.SetNamespace(was.GetNamespace())
		o.SetGenerateName(was.GetGenerateName())
	}
	xr := g.xr
	prefix := xr.GetLabels()[labelComposite]
	if o.GetName() == "" && o.GetGenerateName() == "" {
		o.SetGenerateName(prefix + "-")
	}
	if xr.GetNamespace() != "" {
		o.SetNamespace(xr.GetNamespace())
	}
	o.SetAnnotations(with(o.GetAnnotations(), composite.AnnotationResourceName, key))
	o.SetLabels(with(o.GetLabels(), labelComposite, prefix))
	if name, namespace := xr.GetLabels()[v1alpha1.LabelClaimName], xr.GetLabels()[v1alpha1.LabelClaimNamespace]; name != "" && namespace != "" {
		o.SetLabels(with(with(o.GetLabels(), v1alpha1.LabelClaimName, name), v1alpha1.LabelClaimNamespace, namespace))
	}
	o.SetOwnerReferences(append(o.GetOwnerReferences(), metav1.OwnerReference{
		APIVersion:         xr.GetAPIVersion(),
		Kind:               xr.GetKind(),
		Name:               xr.GetName(),
		UID:                xr.GetUID(),
		Controller:         ptr.To(true),
		BlockOwnerDeletion: ptr.To(true),
	}))
	return o
}

func with(m map[string]string, k, v string) map[string]string {
	m = maps.Clone(m)
	if m == nil {
		m = map[string]string{}
	}
	m[k] = v
	return m
}

// written returns the part of the XR that Crossplane writes: the references to what it
// composes, and the status.
func written(xr object, desired *fnv1.Resource, composed []object) (object, error) {
	o := object{Object: map[string]any{}}
	o.SetAPIVersion(xr.GetAPIVersion())
	o.SetKind(xr.GetKind())
	o.SetName(xr.GetName())
	o.SetNamespace(xr.GetNamespace())
	path := []string{"spec", "crossplane", "resourceRefs"}
	if claimed(xr) {
		path = []string{"spec", "resourceRefs"}
	}
	if err := unstructured.SetNestedSlice(o.Object, references(xr, composed), path...); err != nil {
		return object{}, fmt.Errorf("cannot list the composed resources: %w", err)
	}
	if status, ok := kube.AsMap(desired.GetResource())["status"].(map[string]any); ok {
		o.Object["status"] = status
	}
	for _, c := range conditionsOf(xr) {
		setCondition(&o, c)
	}
	return o, nil
}

// references returns the references to composed resources, in Crossplane's order.
func references(xr object, composed []object) []any {
	refs := make([]any, 0, len(composed))
	for _, o := range composed {
		ref := map[string]any{"apiVersion": o.GetAPIVersion(), "kind": o.GetKind()}
		if o.GetName() != "" {
			ref["name"] = o.GetName()
		}
		if xr.GetNamespace() == "" && o.GetNamespace() != "" {
			ref["namespace"] = o.GetNamespace()
		}
		refs = append(refs, ref)
	}
	slices.SortStableFunc(refs, func(a, b any) int { return strings.Compare(order(a), order(b)) })
	return refs
}

func order(ref any) string {
	b := &strings.Builder{}
	for _, f := range []string{"apiVersion", "kind", "name", "namespace"} {
		s, _, _ := unstructured.NestedString(ref.(map[string]any), f) //nolint:forcetypeassert // references makes nothing else.
		b.WriteString(s)
	}
	return b.String()
}

// A condition as Crossplane writes it.
type condition struct {
	Type               string `json:"type"`
	Status             string `json:"status"`
	LastTransitionTime string `json:"lastTransitionTime"`
	Reason             string `json:"reason"`
	Message            string `json:"message,omitempty"`
	ObservedGeneration int64  `json:"observedGeneration,omitempty"`
}

// conditionTime is the time of every condition, as in Crossplane's own render: the same
// files give the same output.
const conditionTime = "2024-01-01T00:00:00Z"

func conditionsOf(o object) []condition {
	status := struct {
		Conditions []condition `json:"conditions"`
	}{}
	s, _, err := unstructured.NestedMap(o.Object, "status")
	if err != nil || runtime.DefaultUnstructuredConverter.FromUnstructured(s, &status) != nil {
		return nil
	}
	return status.Conditions
}

// setCondition adds a condition, or replaces the one of its type.
func setCondition(o *object, c condition) {
	all := conditionsOf(*o)
	i := slices.IndexFunc(all, func(was condition) bool { return was.Type == c.Type })
	if i < 0 {
		i = len(all)
		all = append(all, condition{})
	}
	all[i] = c
	list := make([]any, 0, len(all))
	for _, c := range all {
		c.LastTransitionTime = conditionTime
		m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&c)
		if err != nil {
			continue // It never fails for strings and a number.
		}
		list = append(list, m)
	}
	status, _ := o.Object["status"].(map[string]any)
	status = maps.Clone(status)
	if status == nil {
		status = map[string]any{}
	}
	status["conditions"] = list
	o.Object["status"] = status
}

// conditions sets the function's conditions, and lists those that Crossplane copies to a
// claim. It skips Crossplane's own, as Crossplane does.
func conditions(o *object, xr object, all []*fnv1.Condition) {
	var claim []any
	for _, c := range all {
		if slices.Contains([]string{"Ready", "Synced", "Healthy", "UpToDate", "Responsive"}, c.GetType()) {
			continue
		}
		status := "Unknown"
		switch c.GetStatus() { //nolint:exhaustive // All others are Unknown.
		case fnv1.Status_STATUS_CONDITION_TRUE:
			status = "True"
		case fnv1.Status_STATUS_CONDITION_FALSE:
			status = "False"
		}
		setCondition(o, condition{Type: c.GetType(), Status: status, Reason: c.GetReason(), Message: c.GetMessage()})
		if c.GetTarget() == fnv1.Target_TARGET_COMPOSITE_AND_CLAIM {
			claim = append(claim, c.GetType())
		}
	}
	if claimed(xr) && len(claim) > 0 {
		_ = unstructured.SetNestedSlice(o.Object, claim, "status", "claimConditionTypes")
	}
}

func ready(desired fnv1.Ready, unready []string) condition {
	switch {
	case desired == fnv1.Ready_READY_TRUE, desired != fnv1.Ready_READY_FALSE && len(unready) == 0:
		return condition{Type: "Ready", Status: "True", Reason: "Available"}
	case desired == fnv1.Ready_READY_FALSE:
		return condition{Type: "Ready", Status: "False", Reason: "Creating"}
	}
	return condition{Type: "Ready", Status: "False", Reason: "Creating", Message: "Unready resources: " + some(unready)}
}

// some shortens a list of names as Crossplane does.
func some(names []string) string {
	const n = 3
	switch {
	case len(names) > n:
		return fmt.Sprintf("%s, and %d more", strings.Join(names[:n], ", "), len(names)-n)
	case len(names) == n:
		return fmt.Sprintf("%s, and %s", strings.Join(names[:n-1], ", "), names[n-1])
	}
	return strings.Join(names, ", ")
}
