package scheduling

import (
	"time"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

// outageWindow is how far apart clusters go out of reach in one outage. provider-kubernetes
// notices within 30 seconds that it cannot read a cluster, and Crossplane reconciles an
// InferenceCluster at least every ten minutes.
const outageWindow = 10 * time.Minute

// outageAt tells whether most of the fleet went out of reach at about a time. Then the control
// plane, its network or its credentials are a more likely cause than all these clusters. Their
// services probably run, and a failover would start all of them a second time.
//
// Clusters that were out of reach before, and those that are abandoned, do not count.
func outageAt(fleet map[string]*v1alpha1.InferenceCluster, since time.Time) bool {
	lost, all := 0, 0
	for _, c := range fleet {
		if c.Spec.StopPolicy == v1alpha1.StopAbandon {
			continue
		}
		at := c.Status.UnreachableSince
		switch {
		case at.IsZero():
			all++
		case at.Sub(since).Abs() <= outageWindow:
			lost, all = lost+1, all+1
		case at.After(since):
			all++
		}
	}
	return lost > 1 && 2*lost > all
}
