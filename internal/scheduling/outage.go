package scheduling

import (
	"cmp"
	"time"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/sorting"
)

// outageWindow is how far apart clusters go out of reach in one outage. provider-kubernetes
// notices within 30 seconds that it cannot read a cluster, and Crossplane reconciles an
// InferenceCluster at least every ten minutes.
const outageWindow = 10 * time.Minute

// OutageCounts tells whether a cluster still counts as lost that is back from an outage. There may have been none.
func OutageCounts(last *v1alpha1.Outage, now time.Time) bool {
	return last != nil && now.Sub(last.Until.Time).Abs() < outageWindow
}

// outageAt tells whether most of the fleet went out of reach at about a time. Then the control
// plane, its network or its credentials are a more likely cause than all these clusters. Their
// services probably run, and a failover would start all of them a second time.
//
// Clusters that were out of reach before, and those that are abandoned, do not count.
//
// A cluster that came back from the same outage counts as lost for another window. Clusters come back one
// after the other, and the last ones would fail over once no more than half are still out of reach. One that
// was back before the others went was in no outage with them.
//
// InferenceClusters that share one real cluster count once, since they are lost together.
//
// Ends is when the first of those that came back no longer counts. It is zero if none has come back.
func outageAt(fleet map[string]*v1alpha1.InferenceCluster, since, now time.Time) (in bool, ends time.Time) {
	lost, all := map[string]bool{}, map[string]bool{}
	for name, c := range fleet {
		at, id := c.Status.UnreachableSince, cmp.Or(c.Status.ClusterUID, name)
		if c.Spec.StopPolicy == v1alpha1.StopAbandon || !at.IsZero() && since.Sub(at.Time) > outageWindow {
			continue
		}
		all[id] = true
		last := c.Status.LastOutage
		isLost := !at.IsZero() && at.Sub(since).Abs() <= outageWindow
		cameBack := OutageCounts(last, now) && last.Since.Sub(since).Abs() <= outageWindow && !last.Until.Time.Before(since)
		if isLost || cameBack {
			lost[id] = true
		}
		if !isLost && cameBack {
			ends = sorting.Earlier(ends, last.Until.Add(outageWindow))
		}
	}
	if in = len(lost) > 1 && 2*len(lost) > len(all); !in {
		return false, time.Time{}
	}
	return true, ends
}

// failoverAt is when a service may have to leave a cluster that is out of reach. It is zero while that is not known,
// because no cluster has come back from an outage of the fleet.
func (c *Candidate) failoverAt(after time.Duration) time.Time {
	due := c.Unreachable.Add(after)
	switch {
	case !c.InOutage:
	case c.OutageEnds.IsZero():
		return time.Time{}
	case due.Before(c.OutageEnds):
		return c.OutageEnds
	}
	return due
}
