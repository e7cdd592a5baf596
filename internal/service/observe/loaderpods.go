package observe

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/loader"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// LoaderFailures returns what fails in pods that load adapters, by the names of their Jobs. A container that
// has failed, and is started again, counts as failing until it has ended well.
func LoaderFailures(pods []incoming.Object) map[string][]string {
	all := map[string][]string{}
	for _, o := range pods {
		p := &pod{}
		_ = podView.Read(o, p) // Fields of a wrong type count as absent.
		failure := p.failure()
		for i := range p.Status.ContainerStatuses {
			c := &p.Status.ContainerStatuses[i]
			for _, t := range []*terminated{c.State.Terminated, c.LastState.Terminated} {
				if t == nil || t.failure() == "" || c.Name != loader.ContainerName {
					continue
				}
				if failure == "" {
					failure = fmt.Sprintf("container %s: %s", c.Name, t.failure())
				}
				// With this exit code, the message is the loader's own.
				if t.ExitCode == loader.NoAdapter && t.Message != "" {
					failure = text.Cut(text.OneLine(t.Message), maxLastWord)
				}
			}
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

// maxLastWord is the most bytes of a loader's last word.
const maxLastWord = 200
