package controlplane

import (
	"os"
	"path/filepath"
	"testing"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/xcrd"
	xrdv1 "github.com/crossplane/crossplane/apis/v2/apiextensions/v1"
)

// definitionsOf returns the definitions that Crossplane makes of an XRD: that of the
// XR, and that of the claim where it has one.
func definitionsOf(t *testing.T, flavour string) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for _, file := range []string{"definition.yaml", "model-definition.yaml", "cache-definition.yaml", "role-definition.yaml"} {
		all = append(all, definitionsIn(t, flavour, file)...)
	}
	return all
}

func definitionsIn(t *testing.T, flavour, file string) []*unstructured.Unstructured {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root(t), "package", flavour, file))
	if err != nil {
		t.Fatal(err)
	}
	xrd := &xrdv1.CompositeResourceDefinition{}
	if err := yaml.UnmarshalStrict(b, xrd); err != nil {
		t.Fatal(err)
	}
	makers := []func(*xrdv1.CompositeResourceDefinition) (*extv1.CustomResourceDefinition, error){xcrd.ForCompositeResource}
	if xrd.OffersClaim() {
		makers = append(makers, xcrd.ForCompositeResourceClaim)
	}
	var all []*unstructured.Unstructured
	for _, f := range makers {
		crd, err := f(xrd)
		if err != nil {
			t.Fatal(err)
		}
		// Its owner would be the XRD, which is not here.
		crd.OwnerReferences = nil
		crd.APIVersion, crd.Kind = extv1.SchemeGroupVersion.String(), "CustomResourceDefinition"
		m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
		if err != nil {
			t.Fatal(err)
		}
		o := &unstructured.Unstructured{Object: m}
		unstructured.RemoveNestedField(o.Object, "status")
		all = append(all, o)
	}
	return all
}
