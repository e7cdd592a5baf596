package v1alpha1

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// Limits of quotas. The markers below repeat them for the schema.
const (
	MaxQuotas          = 256
	MaxQuotaNamespaces = 64
	MaxQuotaResources  = 16
	// MaxResourceName is the limit of a name with a prefix, such as nvidia.com/gpu.
	MaxResourceName = 317
)

// A Quota limits what each of some namespaces may reserve in a cluster, and says how early its
// services are served.
type Quota struct {
	// Namespaces of the services, as names or patterns with '*'. Each namespace has the whole
	// quota for itself.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9*]([-a-z0-9*]*[a-z0-9*])?$`
	// +listType=atomic
	Namespaces []string `json:"namespaces"`

	// Priority of the services. The highest is served first, and the oldest service first among
	// equals. Defaults to 0.
	// +optional
	Priority int32 `json:"priority,omitempty"`

	// Resources that are limited. Others are not.
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	Resources []ResourceQuota `json:"resources,omitempty"`
}

// A ResourceQuota limits how much of a resource a namespace may reserve, in the words of Kueue.
type ResourceQuota struct {
	// Name of the resource as pods request it, such as nvidia.com/gpu, without the requests. or limits. of
	// a ResourceQuota. The name pods stands for the number of pods.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.matches('/|^(cpu|memory|ephemeral-storage|pods)$|^(hugepages|attachable-volumes)-') && !self.startsWith('requests.') && !self.startsWith('limits.')",message="must be a resource that nodes have: cpu, memory, ephemeral-storage, pods, hugepages-{size}, or a device with its domain, such as nvidia.com/gpu"
	Name string `json:"name"`

	// NominalQuota is the amount that the namespace may reserve before others borrow.
	NominalQuota *resource.Quantity `json:"nominalQuota"`

	// BorrowingLimit is how much more it may reserve if that is free. With 0 it never borrows.
	// Without a limit it may borrow all that is free.
	// +optional
	BorrowingLimit *resource.Quantity `json:"borrowingLimit,omitempty"`
}

func validateQuotas(path *field.Path, all []Quota) field.ErrorList {
	quotas, errs := check.Capped(path, all, MaxQuotas)
	for i := range quotas {
		errs = append(errs, validateQuota(path.Index(i), &quotas[i])...)
	}
	return errs
}

func validateQuota(path *field.Path, q *Quota) field.ErrorList {
	var errs field.ErrorList
	if len(q.Namespaces) == 0 {
		errs = append(errs, field.Required(path.Child("namespaces"), "must list namespaces, or patterns such as research-*"))
	}
	namespaces, more := check.Capped(path.Child("namespaces"), q.Namespaces, MaxQuotaNamespaces)
	errs = append(errs, more...)
	for i, pattern := range namespaces {
		if len(check.Label(path, strings.ReplaceAll(pattern, "*", "x"))) > 0 {
			errs = append(errs, field.Invalid(path.Child("namespaces").Index(i), text.Value(pattern), "must be a name of lower case letters, digits and '-', in which '*' stands for any text"))
		}
	}
	resources, more := check.Capped(path.Child("resources"), q.Resources, MaxQuotaResources)
	errs = append(errs, more...)
	names := unique{}
	for i := range resources {
		at := path.Child("resources").Index(i)
		errs = append(errs, validateResourceQuota(at, &resources[i])...)
		errs = append(errs, names.check(at.Child("name"), resources[i].Name)...)
	}
	return errs
}

func validateResourceQuota(path *field.Path, r *ResourceQuota) field.ErrorList {
	if r.Name == "" {
		return field.ErrorList{field.Required(path.Child("name"), "must be the name of a resource, such as nvidia.com/gpu")}
	}
	errs := check.ResourceName(path.Child("name"), r.Name)
	nominal := path.Child("nominalQuota")
	if r.NominalQuota == nil {
		errs = append(errs, field.Required(nominal, "must be an amount, which may be 0"))
	} else {
		errs = append(errs, notNegative(nominal, *r.NominalQuota)...)
	}
	if r.BorrowingLimit != nil {
		errs = append(errs, notNegative(path.Child("borrowingLimit"), *r.BorrowingLimit)...)
	}
	return errs
}

func notNegative(path *field.Path, q resource.Quantity) field.ErrorList {
	if q.Sign() >= 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, text.Value(q.String()), "must not be negative")}
}
