package model

import (
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/structpb"
	batchv1 "k8s.io/api/batch/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	batch "k8s.io/client-go/applyconfigurations/batch/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/remote"
)

// A job loads an adapter.
type job struct {
	adapter *adapter
	key     key.Key
	name    string
	done    bool
	// active tells that it has a pod that has not ended, and failedPods how many have failed, as far as is known.
	active     bool
	failedPods int32
}

// A jobStatus is the part of a loading Job that is read.
type jobStatus struct {
	Metadata struct {
		DeletionTimestamp string `json:"deletionTimestamp"`
	} `json:"metadata"`
	Status struct {
		Active      int32              `json:"active"`
		Ready       int32              `json:"ready"`
		Failed      int32              `json:"failed"`
		Terminating int32              `json:"terminating"`
		Conditions  []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

var jobView = incoming.NewView[jobStatus]()

const (
	// maxJobs is the most Jobs of a model at once, in all clusters that answer.
	maxJobs = 128
	// retryAfter is how long after it has failed for good a Job is recreated. Only somebody else can fail
	// it: its own container starts again for ever.
	retryAfter = 10 * time.Minute
)

// readJob reads how far a Job is. It tells whether it failed so long ago that it is left out once, and so recreated.
func (r *observedState) readJob(j *job, now time.Time) (failed bool) {
	found, state := remote.Unwrap(r.req.Observed(j.key))
	s := jobView.In(found)
	j.active, j.failedPods = s.Status.Active > 0, s.Status.Failed
	if !state.Readable() {
		return false
	}
	j.done = apimeta.IsStatusConditionTrue(s.Status.Conditions, string(batchv1.JobComplete)) && s.Metadata.DeletionTimestamp == ""
	c := apimeta.FindStatusCondition(s.Status.Conditions, string(batchv1.JobFailed))
	return c != nil && c.Status == metav1.ConditionTrue && !c.LastTransitionTime.IsZero() && now.Sub(c.LastTransitionTime.Time) > retryAfter
}

// limitJobs bounds the Jobs. None that exists goes for another. In a cluster that does not answer, they take
// nobody's place.
func (r *observedState) limitJobs() {
	n := 0
	for _, existing := range []bool{true, false} {
		for i := range r.loading {
			l := &r.loading[i]
			l.jobs = slices.DeleteFunc(l.jobs, func(j job) bool {
				observed := r.req.Observed(j.key)
				if observed.Exists() != existing {
					return false
				}
				if _, state := remote.Unwrap(observed); state.Reason == remote.CannotBeRead {
					return false
				}
				n++
				return !existing && n > maxJobs
			})
		}
	}
}

// render returns a Job for its namespace.
func (j *job) render(p *parsed, namespace string) (kube.Object, error) {
	o, err := encode(p, j.key, batch.Job(j.name, namespace).WithLabels(p.labels()))
	if err != nil {
		return o, err
	}
	o.Resource = kube.With(o.Resource, structpb.NewStructValue(j.adapter.spec), "spec")
	return o, nil
}
