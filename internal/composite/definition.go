package composite

import (
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
)

// Definition selects the definition of a kind by its name.
func Definition(name string) *fnv1.ResourceSelector {
	return incoming.ByName("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", name)
}

// Available tells, by the definition of a kind, whether objects of a version can be created. A
// definition that is being deleted still serves its version, but takes no more objects.
func Available(definitions []incoming.Object, apiVersion string) bool {
	if len(definitions) == 0 {
		return false
	}
	crd := definitionView.In(definitions[0])
	return definitions[0].DeletionTimestamp() == "" && apimeta.IsStatusConditionTrue(crd.Status.Conditions, "Established") && crd.serves(apiVersion)
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

var definitionView = incoming.NewView[definition]()

func (d *definition) serves(apiVersion string) bool {
	_, version, _ := strings.Cut(apiVersion, "/")
	for _, v := range d.Spec.Versions {
		if v.Name == version {
			return v.Served
		}
	}
	return false
}
