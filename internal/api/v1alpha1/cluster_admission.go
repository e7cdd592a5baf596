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

// A Volcano is how Volcano schedules the gangs of a cluster.
type Volcano struct {
	// QueueName is the queue of gangs whose service names none, where the cluster's queues differ from those of
	// other clusters. The platform team creates it there. Defaults to the queue of the Input.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	QueueName string `json:"queueName,omitempty"`
}

// GangQueue returns the name of Volcano's queue for gangs whose service names none. It is empty where the cluster
// has no queue of its own.
func (s *InferenceClusterSpec) GangQueue() string {
	if s.Volcano == nil {
		return ""
	}
	return s.Volcano.QueueName
}

// validateAdmission checks what depends on the admission: who counts the capacity.
func validateAdmission(path *field.Path, s *InferenceClusterSpec) field.ErrorList {
	errs := check.OneOf(path.Child("admission"), s.Admission, AdmissionLedger, AdmissionKueue)
	if s.Admission != AdmissionKueue {
		if s.Kueue != nil {
			errs = append(errs, field.Forbidden(path.Child("kueue"), fmt.Sprintf("must be left out unless admission is %s", AdmissionKueue)))
		}
		if queue := s.GangQueue(); queue != "" {
			errs = append(errs, check.Name(path.Child("volcano", "queueName"), queue)...)
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
	if s.Volcano != nil {
		errs = append(errs, field.Forbidden(path.Child("volcano"), fmt.Sprintf("must be left out if admission is %s, because gangs are refused then", AdmissionKueue)))
	}
	if s.Kueue != nil {
		errs = append(errs, check.Label(path.Child("kueue", "localQueueName"), s.Kueue.LocalQueueName)...)
	}
	return errs
}
