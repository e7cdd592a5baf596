package observe

import (
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/remote"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

var (
	configHash  = incoming.NewPath("metadata", "annotations", naming.AnnotationConfigHash)
	pickersHash = incoming.NewPath("metadata", "annotations", naming.AnnotationPickersHash)
	apartNoted  = incoming.NewPath("metadata", "annotations", naming.AnnotationPicksApart)
	apartTold   = remote.NewDesiredPath("metadata", "annotations", naming.AnnotationPicksApart)
)

// PickerConfig returns the hash of the endpoint picker's configuration in a ConfigMap as it was read last.
func (r *ObservedState) PickerConfig(k key.Key) string {
	found, _ := remote.Unwrap(r.composed(k))
	return configHash.Text(found)
}

// picksApart tells whether the endpoint picker of a cluster picks prefill and decode apart, by the ConfigMap that was read last.
func (r *ObservedState) picksApart(c *plan.ClusterPlan) bool {
	found, _ := remote.Unwrap(r.composed(c.ConfigKey()))
	return apartNoted.Text(found) != ""
}

// toldApart tells the same by the ConfigMap that was desired last. A cluster that is out of reach applies that as soon as it can, so
// refusing it later prevents nothing, and would keep the service from leaving the cluster.
func (r *ObservedState) toldApart(c *plan.ClusterPlan) bool {
	return apartTold.Text(r.composed(c.ConfigKey())) != ""
}

// PickerRuns tells whether the endpoint picker of a Deployment is available with a configuration of that hash, and all former
// ones are being deleted.
func (r *ObservedState) PickerRuns(k key.Key, hash string) bool {
	found, read := remote.Unwrap(r.composed(k))
	if !read.Readable() || read.Outdated || configHash.Text(found) != hash {
		return false
	}
	o := stateOf(found)
	_, _, unseen := generationObserved(o)
	_, _, updating := podsUpdated(o)
	status := &o.view.Status
	return !unseen && !updating && o.observedGeneration() > 0 && status.Replicas == status.UpdatedReplicas && status.AvailableReplicas > 0
}
