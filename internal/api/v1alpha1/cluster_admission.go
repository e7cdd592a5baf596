package v1alpha1

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
)

// An Admission says what decides when a service may start in a cluster.
// +kubebuilder:validation:Enum=Ledger;Kueue
type Admission string

// The kinds of admission.
const (
	// AdmissionLedger reserves the capacity of the cluster's pools.
	AdmissionLedger Admission = "Ledger"
	// AdmissionKueue leaves it to Kueue in the cluster.
	AdmissionKueue Admission = "Kueue"
)

// DefaultLocalQueue is the LocalQueue from which Kueue admits services by default.
const DefaultLocalQueue = "default"

// A Kueue is how Kueue admits the services of a cluster.
type Kueue struct {
	// LocalQueueName is the name of the LocalQueue of each tenant, in the namespace that the
	// tenant has in the cluster. The platform team creates it there. It cannot change.
	// Defaults to default.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	LocalQueueName string `json:"localQueueName,omitempty"`
}

// LocalQueue returns the name of the LocalQueue from which Kueue admits services. It is empty
// where Kueue admits none.
func (s *InferenceClusterSpec) LocalQueue() string {
	switch {
	case s.Admission != AdmissionKueue:
		return ""
	case s.Kueue == nil || s.Kueue.LocalQueueName == "":
		return DefaultLocalQueue
	}
	return s.Kueue.LocalQueueName
}

// validateAdmission checks what depends on the admission: who counts the capacity.
func validateAdmission(path *field.Path, s *InferenceClusterSpec) field.ErrorList {
	errs := check.OneOf(path.Child("admission"), s.Admission, AdmissionLedger, AdmissionKueue)
	if s.Admission != AdmissionKueue {
		if s.Kueue != nil {
			errs = append(errs, field.Forbidden(path.Child("kueue"), fmt.Sprintf("must be left out unless admission is %s", AdmissionKueue)))
		}
		errs = append(errs, validateQuotas(path.Child("quotas"), s.Quotas)...)
		return append(errs, validatePools(path.Child("pools"), s.Pools)...)
	}
	if s.Pools != nil {
		errs = append(errs, field.Forbidden(path.Child("pools"), fmt.Sprintf("must be left out if admission is %s: the quotas of the cluster's ClusterQueues count instead", AdmissionKueue)))
	}
	if s.Quotas != nil {
		errs = append(errs, field.Forbidden(path.Child("quotas"), fmt.Sprintf("must be left out if admission is %s: the quotas of the cluster's ClusterQueues count instead", AdmissionKueue)))
	}
	if s.Kueue != nil {
		errs = append(errs, check.Label(path.Child("kueue", "localQueueName"), s.Kueue.LocalQueueName)...)
	}
	return errs
}
