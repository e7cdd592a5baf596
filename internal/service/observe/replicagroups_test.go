package observe

import (
	"fmt"
	"slices"
	"testing"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
)

// A grouped service has a gang and a number of replicas for each group.
func TestEvaluateGroups(t *testing.T) {
	s := running(newScene(t))
	s.plan.Service.Grouped = true
	d := &s.plan.Clusters[0]
	second := d.Groups[0]
	second.Index = 1
	second.Replicas = slices.Clone(second.Replicas)
	for i := range second.Replicas {
		r := &second.Replicas[i]
		r.Group, r.Key = 1, key.Parse(fmt.Sprintf("leaderworkerset/1/engine/%d", i))
		s.want(d.Target, r.Key.String(), workload("qwen-1-engine"))
	}
	second.PodGroup = nil
	d.Groups = append(d.Groups, second)
	pod := enginePod("engine", 0, 0, waits("CrashLoopBackOff"))
	pod.Labels[naming.LabelGroupIndex] = "1"
	v := s.see(second.Replicas[0].Key.String(), workload("x", progressing)).pods(pod).evaluate()
	c := v.Status.Components["engine"]
	if c.DesiredReplicas != 4 || c.ReadyReplicas != 2 || c.ReadyPods != 8 || c.Phase != v1alpha1.ComponentPhaseFailed || v.Status.Replicas != 2 {
		t.Errorf("two groups: %+v, replicas %d", c, v.Status.Replicas)
	}
}
