package incoming

import (
	"fmt"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

// A Kind of objects in one version. A requirement for a missing kind fails the whole reconcile, so the
// definition of a kind is required first.
//
// The schema of a kind would also tell whether the cluster has the kind, at about the same
// size. But Crossplane (2.4) reads the list of schemas only when a definition changes, and
// often before the API server has updated the list. A kind that was just installed could then
// be missing for ever. After a kind was deleted, each call failed before the function was
// called. Crossplane watches definitions, and its own role lets it read them.
//
// The trade-off: Crossplane caches every definition, but only the schemas that are required
// (see docs/operations.md). And a kind of an aggregated API server has a schema, but no
// definition. No composed kind is one of these.
type Kind struct{ APIVersion, Name string }

// KindOf returns the kind of a rendered object.
func KindOf(o kube.Object) Kind { return Kind{APIVersion: o.APIVersion(), Name: o.Kind()} }

// Group of the kind. It is empty for Kubernetes' first kinds, such as Pod.
func (k Kind) Group() string {
	group, _, found := strings.Cut(k.APIVersion, "/")
	if !found {
		return ""
	}
	return group
}

// Definition is the name of the kind's definition. It begins with the plural of the kind.
func (k Kind) Definition() string {
	singular := strings.ToLower(k.Name)
	if stem, is := strings.CutSuffix(singular, "entry"); is {
		return stem + "entries." + k.Group()
	}
	return singular + "s." + k.Group()
}

// Requirement is the name of the requirement for the kind's definition.
func (k Kind) Requirement() string { return "kind/" + k.Definition() }

// Require requires the kind's definition.
func (k Kind) Require(into map[string]*fnv1.ResourceSelector) {
	into[k.Requirement()] = ByName("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", k.Definition())
}

// Available tells, by the kind's definition, whether objects can be created, and whether Crossplane has
// looked for the definition. One that is being deleted still serves its version, but takes no more objects.
func (k Kind) Available(req Request) (available, answered bool) {
	definitions, answered := req.Required(k.Requirement())
	if len(definitions) == 0 {
		return false, answered
	}
	crd := definitionView.In(definitions[0])
	return definitions[0].DeletionTimestamp() == "" && apimeta.IsStatusConditionTrue(crd.Status.Conditions, "Established") && crd.serves(k.APIVersion), answered
}

// Missing says that the kind is not available.
func (k Kind) Missing() string {
	return fmt.Sprintf("the cluster does not have the kind %s of %s", k.Name, k.APIVersion)
}

// A definition is the part of a CustomResourceDefinition that is read.
type definition struct {
	Spec struct {
		Versions []struct {
			Name   string `json:"name"`
			Served bool   `json:"served"`
		} `json:"versions"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

var definitionView = NewView[definition]()

func (d *definition) serves(apiVersion string) bool {
	_, version, _ := strings.Cut(apiVersion, "/")
	for _, v := range d.Spec.Versions {
		if v.Name == version {
			return v.Served
		}
	}
	return false
}
