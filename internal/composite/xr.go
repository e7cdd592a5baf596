package composite

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
)

// An XR is the part of a composite resource that is read. Its metadata is not metav1.ObjectMeta,
// because decoding managedFields costs more than all the rest.
type XR[Spec any] struct {
	metav1.TypeMeta

	Metadata struct {
		Name              string            `json:"name"`
		Namespace         string            `json:"namespace"`
		UID               string            `json:"uid"`
		Generation        int64             `json:"generation"`
		CreationTimestamp string            `json:"creationTimestamp"`
		Labels            map[string]string `json:"labels"`
	} `json:"metadata"`
	Spec Spec `json:"spec"`
	// Claim is the one field of Crossplane in the spec that is read.
	Claim v1alpha1.ClaimReference `json:"-"`
}

// A claimed composite resource is the part that names its claim.
type claimed struct {
	Spec struct {
		ClaimRef v1alpha1.ClaimReference `json:"claimRef"`
	} `json:"spec"`
}

var claimedView = incoming.NewCompositeView[claimed]()

// Read decodes a composite resource. It also returns the errors about fields that could not be read.
func Read[Spec any](v incoming.CompositeView[XR[Spec]], c incoming.Composite) (*XR[Spec], field.ErrorList) {
	x, of := &XR[Spec]{}, claimed{}
	unread := v.Read(c, x)
	for _, err := range claimedView.Read(c, &of) {
		if err.Field != "spec" { // It is told already.
			unread = append(unread, err)
		}
	}
	x.Claim = of.Spec.ClaimRef
	return x, unread
}

// ObjectMeta is the metadata that validation needs.
func (x *XR[Spec]) ObjectMeta() metav1.ObjectMeta {
	m := &x.Metadata
	return metav1.ObjectMeta{Name: m.Name, Namespace: m.Namespace, UID: types.UID(m.UID), Generation: m.Generation, Labels: m.Labels}
}

// Identity of the composite resource as its users know it.
func (x *XR[Spec]) Identity() naming.Identity {
	meta := x.ObjectMeta()
	name, namespace := v1alpha1.Identity(x.Kind, &meta, x.Claim)
	return naming.Identity{Name: name, Namespace: namespace, Generation: meta.Generation, UID: x.Metadata.UID, Claimed: v1alpha1.Claimed(x.Kind)}
}
