package cli

import (
	"maps"
	"strings"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

// A generated name has at most so many characters of the name that is given, and as many as generatedPart behind them
// (staging/src/k8s.io/apiserver/pkg/storage/names/generate.go of Kubernetes).
const (
	maxGivenName  = 58
	generatedPart = 5
)

// behindClaim returns the XR that Crossplane makes of a claim (internal/controller/apiextensions/claim/syncer_ssa.go of Crossplane v2).
// It has the claim's spec but for what only claims have, and a generated name. Labels and a reference name the claim.
func behindClaim(claim object, kind string) object {
	xr := *claim.DeepCopy()
	xr.SetKind(kind)
	xr.SetNamespace("")
	xr.SetUID("")
	given := claim.GetName() + "-"
	xr.SetGenerateName(given[:min(len(given), maxGivenName)])
	xr.SetName(generatedName(xr, claim, kind)[:len(xr.GetGenerateName())+generatedPart])
	xr.SetAnnotations(withoutReserved(claim.GetAnnotations()))
	labels := withoutReserved(claim.GetLabels())
	delete(labels, labelComposite) // Reading the claim has named it after itself.
	xr.SetLabels(with(with(labels, v1alpha1.LabelClaimName, claim.GetName()), v1alpha1.LabelClaimNamespace, claim.GetNamespace()))
	xr.SetFinalizers(nil)
	xr.SetOwnerReferences(nil)
	xr.SetGeneration(0)
	delete(xr.Object, "status")
	if spec, ok := xr.Object["spec"].(map[string]any); ok {
		for _, f := range []string{"compositeDeletePolicy", "resourceRef", "resourceRefs"} {
			delete(spec, f)
		}
		spec["claimRef"] = map[string]any{
			"apiVersion": claim.GetAPIVersion(), "kind": claim.GetKind(), "namespace": claim.GetNamespace(), "name": claim.GetName(),
		}
	}
	return asXR(xr)
}

// withoutReserved leaves out the labels or annotations of Kubernetes, such as that of kubectl apply.
func withoutReserved(all map[string]string) map[string]string {
	maps.DeleteFunc(all, func(key, _ string) bool {
		prefix, _, _ := strings.Cut(key, "/")
		return strings.HasSuffix(prefix, "kubernetes.io") || strings.HasSuffix(prefix, "k8s.io")
	})
	return all
}
