package v1alpha1

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// ValidateCache returns all errors that show in a ModelCache alone, as Validate does for a service.
func ValidateCache(xr *ModelCache, claim ClaimReference) field.ErrorList {
	spec, s := field.NewPath("spec"), &xr.Spec
	name, tenant := Identity(xr.Kind, &xr.ObjectMeta, claim)
	errs := validateIdentity(name, tenant)
	// The fields of the source and of the claim have the same rules and the same names as in a service.
	if !strings.HasPrefix(s.URI, schemeHub) && !strings.HasPrefix(s.URI, schemeBucket) {
		return append(errs, field.Invalid(spec.Child("uri"), text.Value(s.URI), "must be hf://{organization}/{name} or s3://{bucket}/{prefix}"))
	}
	for _, e := range validateModel(spec, s.Of()) {
		e.Field = strings.Replace(e.Field, "spec.cache", "spec", 1)
		errs = append(errs, e)
	}
	errs = append(errs, validateCacheNodes(spec, s)...)
	return append(errs, validateCacheClusters(spec, s)...)
}

// validateCacheNodes checks where the loading Job may run.
func validateCacheNodes(spec *field.Path, s *ModelCacheSpec) field.ErrorList {
	var errs field.ErrorList
	if n := len(s.NodeSelector); n > maxNodeLabels {
		errs = append(errs, field.TooMany(spec.Child("nodeSelector"), n, maxNodeLabels))
	} else {
		errs = append(errs, check.Labels(spec.Child("nodeSelector"), s.NodeSelector)...)
	}
	tolerations, more := check.Capped(spec.Child("tolerations"), s.Tolerations, maxTolerations)
	errs = append(errs, more...)
	for i, t := range tolerations {
		at := spec.Child("tolerations").Index(i)
		errs = append(errs, check.OneOf(at.Child("operator"), t.Operator, corev1.TolerationOpExists, corev1.TolerationOpEqual)...)
		errs = append(errs, check.OneOf(at.Child("effect"), t.Effect, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)...)
		switch {
		case t.Key != "" && len(validation.IsQualifiedName(t.Key)) > 0:
			errs = append(errs, field.Invalid(at.Child("key"), text.Value(t.Key), "must be the key of a taint"))
		case t.Key == "" && t.Operator != corev1.TolerationOpExists:
			errs = append(errs, field.Invalid(at.Child("operator"), t.Operator, "must be Exists without a key"))
		}
		switch {
		case t.Value != "" && t.Operator == corev1.TolerationOpExists:
			errs = append(errs, field.Invalid(at.Child("value"), text.Value(t.Value), "must be left out with the operator Exists"))
		case len(validation.IsValidLabelValue(t.Value)) > 0:
			errs = append(errs, field.Invalid(at.Child("value"), text.Value(t.Value), "must be the value of a taint"))
		}
	}
	return errs
}

// validateCacheClusters checks in which clusters the weights are loaded.
func validateCacheClusters(spec *field.Path, s *ModelCacheSpec) field.ErrorList {
	clusters, errs := check.Capped(spec.Child("clusters"), s.Clusters, MaxClusters)
	names := unique{}
	for i, name := range clusters {
		at := spec.Child("clusters").Index(i)
		errs = append(errs, check.Label(at, name)...)
		errs = append(errs, names.check(at, name)...)
	}
	errs = append(errs, check.OneOf(spec.Child("loadPolicy"), s.LoadPolicy, LoadEverywhere, LoadOnDemand)...)
	if s.LoadPolicy != "" && s.Placement() == nil {
		errs = append(errs, field.Forbidden(spec.Child("loadPolicy"), "must be left out without clusters and clusterSelector"))
	}
	if s.ClusterSelector == nil {
		return errs
	}
	if len(s.Clusters) > 0 {
		errs = append(errs, field.Forbidden(spec.Child("clusterSelector"), "must be left out if clusters is set"))
	}
	return append(errs, check.Selector(spec.Child("clusterSelector"), s.ClusterSelector)...)
}

// Limits of where a loading Job may run.
const (
	maxNodeLabels  = 16
	maxTolerations = 16
)

// validateCacheRef checks a model whose weights are in a ModelCache: nothing else says where they are.
func validateCacheRef(at *field.Path, m *Model) field.ErrorList {
	ref := at.Child("cacheRef")
	errs := check.Label(ref.Child("name"), m.CacheRef.Name)
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"uri", m.URI != ""}, {"revision", m.Revision != ""}, {"path", m.Path != ""}, {"cache", m.Cache != nil},
		{"tokenSecretRef", m.TokenSecretRef != nil}, {"credentialsSecretRef", m.CredentialsSecretRef != nil},
	} {
		if f.set {
			errs = append(errs, field.Forbidden(at.Child(f.name), "must be left out with cacheRef: the ModelCache says where the weights come from"))
		}
	}
	if m.Name != "" {
		errs = append(errs, check.Length(at.Child("name"), m.Name, MaxName)...)
		errs = append(errs, matches(at.Child("name"), m.Name, modelName, nameRule)...)
	}
	return errs
}
