package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

// A scaledRole is a role with scaling, and with how many replicas a plan counts it.
type scaledRole struct {
	Role string `json:"role"`
	// Before and After the change. Nobody knows it of a service that is refused.
	Before *int64 `json:"before,omitempty"`
	After  *int64 `json:"after,omitempty"`
	// AskedFor is what the InferenceRole asks for after the change, where that is another number.
	AskedFor *int64 `json:"askedFor,omitempty"`
}

// scaledRolesOf returns with how many replicas the roles with scaling count before and after a change. What an
// InferenceRole asks for is within limits then.
func scaledRolesOf(was, is object) []scaledRole {
	xr := is
	if xr.Object == nil {
		xr = was // The change deletes it.
	}
	var all []scaledRole
	for _, role := range scaledRoles(serviceSpec(xr)) {
		r := scaledRole{Role: role.Name}
		if n, counted := componentNumber(was, role.Name, "desiredReplicas"); counted {
			r.Before = &n
		}
		if n, counted := componentNumber(is, role.Name, "desiredReplicas"); counted {
			r.After = &n
		}
		reason, _, _ := unstructured.NestedString(is.Object, "status", "components", role.Name, "scaling", "reason")
		if n, asked := componentNumber(is, role.Name, "scaling", "requestedReplicas"); asked && reason != "" {
			r.AskedFor = &n
		}
		if r.Before != nil || r.After != nil {
			all = append(all, r)
		}
	}
	return all
}

// scaledText says for people with how many replicas roles count.
func scaledText(roles []scaledRole) string {
	parts := make([]string, 0, len(roles))
	for _, r := range roles {
		n := *cmp.Or(r.After, r.Before)
		text := fmt.Sprintf("%d %s", n, r.Role)
		if r.Before != nil && *r.Before != n {
			text = fmt.Sprintf("%d to %s", *r.Before, text)
		}
		if r.AskedFor != nil {
			text += fmt.Sprintf(" (%d asked for)", *r.AskedFor)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

// rolesOfNothing names the InferenceRoles among some objects whose service or role is in no file: no service reads what they ask for.
func rolesOfNothing(flag string, objects []object, files ...[]object) []string {
	services := slices.Concat(files...)
	services = slices.DeleteFunc(services, func(o object) bool { return !isService(o) || !isXRKind(o) })
	var warnings []string
	for _, o := range objects {
		if o.GetKind() != v1alpha1.KindInferenceRole || !readable(o) {
			continue
		}
		if why := ofNothing(o, services); why != "" {
			warnings = append(warnings, fmt.Sprintf("%s: %s counts for nothing: %s", flag, described(o), why))
		}
	}
	return warnings
}

// ofNothing says why none of some services reads an InferenceRole, or returns an empty string.
func ofNothing(target object, services []object) string {
	service, _, _ := unstructured.NestedString(target.Object, "spec", "serviceName")
	role, _, _ := unstructured.NestedString(target.Object, "spec", "roleName")
	why := fmt.Sprintf("InferenceService %s/%s is not in the files", target.GetNamespace(), service)
	if service == "" || role == "" {
		why = "no role with scaling of the services in the files has its name, which is that of the service, a hyphen and that of the role"
	}
	for _, xr := range services {
		name, namespace := serviceOf(xr)
		is := name == service && namespace == target.GetNamespace() && role != ""
		if is {
			why = fmt.Sprintf("InferenceService %s/%s has no role %s with scaling", namespace, name, role)
		}
		for _, r := range scaledRoles(serviceSpec(xr)) {
			id := scaleTargetOf(xr, r.Name)
			if id == identityOf(target) && scales(target, xr) {
				return ""
			}
			if is && r.Name == role {
				why = fmt.Sprintf("the one of role %s of InferenceService %s/%s is named %s", role, namespace, name, id.name)
			}
		}
	}
	return why
}
