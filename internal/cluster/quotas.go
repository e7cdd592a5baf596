package cluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
)

// quotas returns the quota of each namespace that requests capacity or has some. The first entry
// that matches a namespace counts.
func quotas(all []v1alpha1.Quota, state *observedState) map[string]reservation.Quota {
	if len(all) == 0 {
		return nil
	}
	namespaces := map[string]bool{}
	for i := range state.requests {
		namespaces[state.requests[i].Namespace] = true
	}
	for i := range state.ledger.Services {
		namespaces[state.ledger.Services[i].Namespace] = true
	}
	found := map[string]reservation.Quota{}
	for namespace := range namespaces {
		if i := slices.IndexFunc(all, func(q v1alpha1.Quota) bool { return inputv1alpha1.MatchesAny(q.Namespaces, namespace) }); i >= 0 {
			found[namespace] = quota(&all[i])
		}
	}
	return found
}

func quota(q *v1alpha1.Quota) reservation.Quota {
	nominal, borrowing := corev1.ResourceList{}, corev1.ResourceList{}
	for _, r := range q.Resources {
		if r.NominalQuota != nil {
			nominal[corev1.ResourceName(r.Name)] = *r.NominalQuota
		}
		if r.BorrowingLimit != nil {
			borrowing[corev1.ResourceName(r.Name)] = *r.BorrowingLimit
		}
	}
	return reservation.Quota{Priority: q.Priority, Nominal: capacity.ResourcesOf(nominal), Borrowing: capacity.ResourcesOf(borrowing)}
}
