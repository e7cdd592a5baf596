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
	found, seen := map[string]reservation.Quota{}, map[string]bool{}
	add := func(namespace string) {
		if seen[namespace] {
			return
		}
		seen[namespace] = true
		i := slices.IndexFunc(all, func(q v1alpha1.Quota) bool { return inputv1alpha1.MatchesAny(q.Namespaces, namespace) })
		if i >= 0 {
			found[namespace] = quota(&all[i])
		}
	}
	for i := range state.requests {
		add(state.requests[i].Namespace)
	}
	for i := range state.ledger.Services {
		add(state.ledger.Services[i].Namespace)
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
