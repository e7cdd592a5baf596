package cli

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/service/observe"
)

// scaleTargets has each role with scaling observe its InferenceRole, if there is one.
func (s *simulation) scaleTargets() {
	for id := range s.xrs {
		xr, _ := s.store.get(id)
		for _, role := range scaledRoles(serviceSpec(xr)) {
			target := scaleTargetOf(xr, role.Name)
			if found, exists := s.store.get(target); exists && scales(found, xr) {
				s.store.own(id, key.ScaleTarget(role.Name).String(), target)
			}
		}
	}
}

// saidTargets returns InferenceRoles that the files lack, for the roles of which the status of a service says
// what their InferenceRoles ask for.
func saidTargets(all []object) []object {
	there := map[identity]bool{}
	for _, o := range all {
		there[identityOf(o)] = true
	}
	var more []object
	for _, xr := range all {
		for _, role := range scaledRoles(serviceSpec(xr)) {
			n, said := componentNumber(xr, role.Name, "scaling", "requestedReplicas")
			id := scaleTargetOf(xr, role.Name)
			if !said || there[id] {
				continue
			}
			spec := map[string]any{"replicas": n}
			// Some of the replicas may wait for capacity. Those that are ready do not.
			if ready, _ := componentNumber(xr, role.Name, "readyReplicas"); mayWait(xr) {
				spec["current"] = map[string]any{"replicas": ready}
			}
			o := object{Object: map[string]any{"spec": spec}}
			o.SetAPIVersion(v1alpha1.APIVersion)
			o.SetKind(id.kind)
			o.SetNamespace(id.namespace)
			o.SetName(id.name)
			more = append(more, o)
		}
	}
	return more
}

// mayWait tells whether a service may have other numbers of replicas than its InferenceRoles ask for, by its status. An
// autoscaler that does not scale changes nothing of these.
func mayWait(xr object) bool {
	return slices.ContainsFunc(conditionsOf(xr), func(c condition) bool {
		return c.Type == observe.Scaled && c.Status == "False" && c.Reason != observe.ReasonAutoscalerInactive
	})
}

// asked returns an InferenceRole that asks for no more replicas than exist, and whether it asked for more. A
// service that waits for more replicas keeps those that it has.
func asked(o object) (object, bool) {
	wanted, asks := number(o.Object, "spec", "replicas")
	current, known := number(o.Object, "spec", "current", "replicas")
	if !asks || !known || current >= wanted {
		return o, false
	}
	o = *o.DeepCopy()
	_ = unstructured.SetNestedField(o.Object, current, "spec", "replicas") // The spec is a map: it has the number.
	return o, true
}

// scaledRoles are the roles of a service that have scaling.
func scaledRoles(spec *v1alpha1.InferenceServiceSpec) []*v1alpha1.Role {
	var all []*v1alpha1.Role
	for i := range spec.Roles {
		if spec.Roles[i].Scaling != nil {
			all = append(all, &spec.Roles[i])
		}
	}
	return all
}

// serviceOf returns the name and the namespace of a service or of a cache as its users know them. For the XR behind a claim
// they are those of the claim.
func serviceOf(xr object) (name, namespace string) {
	claim := v1alpha1.ClaimReference{}
	claim.Name, _, _ = unstructured.NestedString(xr.Object, "spec", "claimRef", "name")
	claim.Namespace, _, _ = unstructured.NestedString(xr.Object, "spec", "claimRef", "namespace")
	return v1alpha1.Identity(xr.GetKind(), &metav1.ObjectMeta{Name: xr.GetName(), Namespace: xr.GetNamespace(), Labels: xr.GetLabels()}, claim)
}

// scaleTargetOf returns the identity of the InferenceRole of a role.
func scaleTargetOf(xr object, role string) identity {
	name, namespace := serviceOf(xr)
	return identity{v1alpha1.Group, v1alpha1.KindInferenceRole, namespace, name + "-" + role}
}

// scales tells whether an InferenceRole is one of a service. Those of two services can have the same name.
func scales(target, xr object) bool {
	name, _ := serviceOf(xr)
	of, _, _ := unstructured.NestedString(target.Object, "spec", "serviceName")
	return of == "" || of == name
}

// componentNumber is a number in the status of a role, and whether it is there.
func componentNumber(xr object, role string, path ...string) (n int64, is bool) {
	return number(xr.Object, append([]string{"status", "components", role}, path...)...)
}

// number is a number of an object, and whether it is there.
func number(o map[string]any, path ...string) (n int64, is bool) {
	value, _, _ := unstructured.NestedFieldNoCopy(o, path...)
	switch n := value.(type) {
	case int64:
		return n, true
	case float64:
		return int64(n), true
	}
	return 0, false
}

// keepReplicas keeps the number of an InferenceRole that the service does not write, because somebody else has
// set it. Server-side apply does so, too.
func keepReplicas(before, o object) {
	spec, _ := o.Object["spec"].(map[string]any)
	was, _, _ := unstructured.NestedFieldNoCopy(before.Object, "spec", "replicas")
	if _, written := spec["replicas"]; o.GetKind() == v1alpha1.KindInferenceRole && spec != nil && !written && was != nil {
		spec["replicas"] = was
	}
}

// onlyScales tells whether a composed resource is an InferenceRole or an autoscaler. It does not say where
// anything runs.
func onlyScales(o object) bool {
	kind := key.Parse(keyOf(o)).Kind
	return kind == key.InferenceRole || slices.Contains(key.AutoscalerKinds(), kind)
}
