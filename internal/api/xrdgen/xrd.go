package main

import (
	"encoding/json"
	"fmt"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	xrdv1 "github.com/crossplane/crossplane/apis/v2/apiextensions/v1"
	xrdv2 "github.com/crossplane/crossplane/apis/v2/apiextensions/v2"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

// schemaOf returns the schema of a kind for an XRD, without the fields that Crossplane adds.
func schemaOf(c *extv1.CustomResourceDefinition) (runtime.RawExtension, error) {
	s := c.Spec.Versions[0].Schema.OpenAPIV3Schema.DeepCopy()
	for _, p := range []string{"apiVersion", "kind", "metadata"} {
		delete(s.Properties, p)
	}
	delete(s.Properties["status"].Properties, "conditions")
	raw, err := json.Marshal(s)
	if err != nil {
		return runtime.RawExtension{}, fmt.Errorf("cannot encode the schema: %w", err)
	}
	return runtime.RawExtension{Raw: raw}, nil
}

// namespacedXRD returns the XRD for a kind as namespaced XRs.
func namespacedXRD(c *extv1.CustomResourceDefinition, schema runtime.RawExtension) *xrdv2.CompositeResourceDefinition {
	v := c.Spec.Versions[0]
	name := c.Spec.Names.Plural + "." + v1alpha1.Group
	xrd := &xrdv2.CompositeResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: xrdv2.SchemeGroupVersion.String(), Kind: xrdv2.CompositeResourceDefinitionKind},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: xrdv2.CompositeResourceDefinitionSpec{
			Group:                  v1alpha1.Group,
			Names:                  c.Spec.Names,
			Scope:                  xrdv2.CompositeResourceScopeNamespaced,
			EnforcedCompositionRef: &xrdv2.CompositionReference{Name: name},
			Versions: []xrdv2.CompositeResourceDefinitionVersion{{
				Name:                     v.Name,
				Referenceable:            true,
				Served:                   true,
				Schema:                   &xrdv2.CompositeResourceValidation{OpenAPIV3Schema: schema},
				AdditionalPrinterColumns: v.AdditionalPrinterColumns,
			}},
		},
	}
	if scale := v.Subresources.Scale; scale != nil {
		xrd.Spec.Versions[0].Subresources = &xrdv2.CompositeResourceDefinitionVersionSubresources{Scale: scale}
	}
	return xrd
}

// clusterXRD returns the XRD for InferenceClusters. Both Configurations have the same one:
// tenants do not create InferenceClusters, so there are no claims of them.
func clusterXRD(c *extv1.CustomResourceDefinition, schema runtime.RawExtension) *xrdv2.CompositeResourceDefinition {
	v := c.Spec.Versions[0]
	name := c.Spec.Names.Plural + "." + v1alpha1.Group
	return &xrdv2.CompositeResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: xrdv2.SchemeGroupVersion.String(), Kind: xrdv2.CompositeResourceDefinitionKind},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: xrdv2.CompositeResourceDefinitionSpec{
			Group:                  v1alpha1.Group,
			Names:                  c.Spec.Names,
			Scope:                  xrdv2.CompositeResourceScopeCluster,
			EnforcedCompositionRef: &xrdv2.CompositionReference{Name: name},
			Versions: []xrdv2.CompositeResourceDefinitionVersion{{
				Name:                     v.Name,
				Referenceable:            true,
				Served:                   true,
				Schema:                   &xrdv2.CompositeResourceValidation{OpenAPIV3Schema: schema},
				AdditionalPrinterColumns: v.AdditionalPrinterColumns,
			}},
		},
	}
}

// claimXRD returns the XRD for a kind as claims. The cluster-scoped XR behind a
// claim has the same schema and another name.
func claimXRD(c *extv1.CustomResourceDefinition, schema runtime.RawExtension) *xrdv1.CompositeResourceDefinition {
	v := c.Spec.Versions[0]
	names := claimedNames(c.Spec.Names)
	xrd := &xrdv1.CompositeResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: xrdv1.SchemeGroupVersion.String(), Kind: xrdv1.CompositeResourceDefinitionKind},
		ObjectMeta: metav1.ObjectMeta{Name: names.Plural + "." + v1alpha1.Group},
		Spec: xrdv1.CompositeResourceDefinitionSpec{
			Group:                  v1alpha1.Group,
			Names:                  names,
			ClaimNames:             &c.Spec.Names,
			Scope:                  ptr.To(xrdv1.CompositeResourceScopeLegacyCluster),
			EnforcedCompositionRef: &xrdv1.CompositionReference{Name: names.Plural + "." + v1alpha1.Group},
			// With Foreground, a claim is gone only after everything that it composed. Whoever
			// then deletes its namespace or the XRD leaves nothing behind.
			DefaultCompositeDeletePolicy: ptr.To(xpv2.CompositeDeleteForeground),
			Versions: []xrdv1.CompositeResourceDefinitionVersion{{
				Name:                     v.Name,
				Referenceable:            true,
				Served:                   true,
				Schema:                   &xrdv1.CompositeResourceValidation{OpenAPIV3Schema: schema},
				AdditionalPrinterColumns: v.AdditionalPrinterColumns,
			}},
		},
	}
	if scale := v.Subresources.Scale; scale != nil {
		xrd.Spec.Versions[0].Subresources = &xrdv1.CompositeResourceDefinitionVersionSubresources{Scale: scale}
	}
	return xrd
}

// claimedNames returns the names of the XR behind a claim: the claim's with a prefix x.
// Kubernetes does not serve a kind that shares a name, even a short name, with another kind of
// its group.
func claimedNames(claim extv1.CustomResourceDefinitionNames) extv1.CustomResourceDefinitionNames {
	names := extv1.CustomResourceDefinitionNames{
		Kind:       "X" + claim.Kind,
		ListKind:   "X" + claim.Kind + "List",
		Plural:     "x" + claim.Plural,
		Singular:   "x" + claim.Singular,
		Categories: claim.Categories,
	}
	for _, n := range claim.ShortNames {
		names.ShortNames = append(names.ShortNames, "x"+n)
	}
	return names
}
