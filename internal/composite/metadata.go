package composite

import (
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
)

// AnnotationResourceName is the annotation with the key of a composed resource.
const AnnotationResourceName = "crossplane.io/composition-resource-name"

var resourceName = incoming.NewPath("metadata", "annotations", AnnotationResourceName)

// KeyOf returns the key of an object that Crossplane composed, or an empty one.
func KeyOf(o incoming.Object) key.Key { return key.Parse(resourceName.Text(o)) }

// A controlled is the part of an object that says who controls it.
type controlled struct {
	Metadata struct {
		OwnerReferences []Owner `json:"ownerReferences"`
	} `json:"metadata"`
}

var controlledView = incoming.NewView[controlled]()

// An Owner is an owner reference of an object.
type Owner struct {
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
	Controller bool   `json:"controller"`
}

// Controller returns the owner that controls an object, or nil.
func Controller(o incoming.Object) *Owner {
	c := controlledView.In(o) // An owner that cannot be read does not count.
	for i := range c.Metadata.OwnerReferences {
		if c.Metadata.OwnerReferences[i].Controller {
			return &c.Metadata.OwnerReferences[i]
		}
	}
	return nil
}

// ControllerUID returns the UID of the owner that controls an object, or an empty one.
func ControllerUID(o incoming.Object) string {
	if c := Controller(o); c != nil {
		return c.UID
	}
	return ""
}
