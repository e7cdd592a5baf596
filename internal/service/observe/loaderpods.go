package observe

import (
	"cmp"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/loader"
)

// LoaderFailures returns what fails in pods that load adapters, by the names of their Jobs.
func LoaderFailures(pods []incoming.Object) map[string][]string {
	all := map[string][]string{}
	for _, o := range pods {
		p := podView.In(o)
		failure := p.failure()
		for i := range p.Status.ContainerStatuses {
			failure = cmp.Or(p.Status.ContainerStatuses[i].noAdapter(), failure, p.Status.ContainerStatuses[i].failedBefore())
		}
		if job := p.Metadata.Labels[batchv1.JobNameLabel]; failure != "" && job != "" {
			all[job] = append(all[job], fmt.Sprintf("pod %s: %s", p.Metadata.Name, failure))
		}
	}
	// The order of the pods is any.
	for _, failures := range all {
		slices.Sort(failures)
	}
	return all
}

// noAdapter returns the last word of a loader that has found no adapter, or nothing. Any pod could have the labels of
// a loader, so no other text is told.
func (c *containerStatus) noAdapter() string {
	for _, t := range []*terminated{c.State.Terminated, c.LastState.Terminated} {
		if t != nil && c.Name == loader.ContainerName && t.ExitCode == loader.NoAdapter && loader.IsReason(t.Message) {
			return t.Message
		}
	}
	return ""
}

// failedBefore returns why a container ended that was started again and runs, or nothing.
func (c *containerStatus) failedBefore() string {
	t := c.LastState.Terminated
	if t == nil || t.failure() == "" || c.State.Terminated != nil {
		return ""
	}
	return fmt.Sprintf("container %s: %s", c.Name, t.failure())
}
