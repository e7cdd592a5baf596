package service

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
)

// TestPoolNarrows shows that workers beside prefill and decode get the requests once one of them serves.
// The others answer them until then.
func TestPoolNarrows(t *testing.T) {
	roles := func(strategy, worker string) string {
		spec := "roles:\n- {name: r, componentType: router, strategy: " + strategy + "}\n" +
			"- {name: p, componentType: prefiller, template: {spec: {containers: [{name: engine, image: v1, command: [vllm, serve, /m]}]}}}\n" +
			"- {name: d, componentType: decoder, template: {spec: {containers: [{name: engine, image: v1, command: [vllm, serve, /m]}]}}}\n"
		if worker != "" {
			spec += fmt.Sprintf("- {name: w, componentType: worker, template: {spec: {containers: [{name: engine, image: %s, command: [vllm, serve, /m]}]}}}\n", worker)
		}
		return spec
	}
	const all, workers = "", "worker"
	w := newWorld(t, roles("queue-size", ""))
	for _, step := range []struct{ reason, spec, want string }{
		{"Prefill and decode answer whole requests.", roles("queue-size", ""), all},
		{"The worker does not serve so far.", roles("queue-size", broken), all},
		{"It serves now.", roles("queue-size", "v1"), workers},
		{"It failed after that, and the pool is not for the others any more.", roles("queue-size", broken), workers},
		{"All pods are in the pool of prefill and decode.", roles("pd-disaggregation", broken), all},
		{"Another strategy came before the worker serves.", roles("queue-size", broken), all},
	} {
		_, rsp := w.rollOut(step.spec)
		pool := rsp.GetDesired().GetResources()["inferencepool"].GetResource()
		got := kube.Lookup(pool, "spec", "selector", "matchLabels", naming.LabelComponentType).GetStringValue()
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s\n-want, +got:\n%s", step.reason, diff)
		}
	}
}
