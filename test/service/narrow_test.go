package service

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
)

// TestPoolNarrows shows that workers beside prefill and decode get the requests once one of them serves.
// The others answer them until then.
func TestPoolNarrows(t *testing.T) {
	roles := func(strategy string, more ...string) string {
		var spec strings.Builder
		spec.WriteString("roles:\n- {name: r, componentType: router, strategy: " + strategy + "}\n")
		for i := 0; i < len(more); i += 2 {
			spec.WriteString(roleOf(more[i], more[i], 1, more[i+1]))
		}
		return spec.String()
	}
	const all, workers, prefill, decode = "", "worker", "prefiller", "decoder"
	type step struct{ reason, spec, want string }
	cases := map[string][]step{
		"Both": {
			{"Prefill and decode answer whole requests.", roles("queue-size", prefill, "v1", decode, "v1"), all},
			{"The worker does not serve so far.", roles("queue-size", prefill, "v1", decode, "v1", workers, broken), all},
			{"It serves now.", roles("queue-size", prefill, "v1", decode, "v1", workers, "v1"), workers},
			{"It failed after that, and the pool is not for the others any more.", roles("queue-size", prefill, "v1", decode, "v1", workers, broken), workers},
			{"All pods are in the pool of prefill and decode.", roles("pd-disaggregation", prefill, "v1", decode, "v1", workers, broken), all},
			{"Another strategy came before the worker serves.", roles("queue-size", prefill, "v1", decode, "v1", workers, broken), all},
		},
		"DecodeAlone": {
			{"Decode answers whole requests.", roles("queue-size", decode, "v1"), decode},
			{"The worker does not serve so far.", roles("queue-size", decode, "v1", workers, broken), decode},
			{"It serves now.", roles("queue-size", decode, "v1", workers, "v1"), workers},
		},
		"PrefillAlone": {
			{"Prefill answers whole requests.", roles("queue-size", prefill, "v1"), prefill},
			{"The worker does not serve so far.", roles("queue-size", prefill, "v1", workers, broken), prefill},
			{"It serves now.", roles("queue-size", prefill, "v1", workers, "v1"), workers},
		},
		"DecodeOfBoth": {
			{"Prefill and decode answer whole requests.", roles("queue-size", prefill, "v1", decode, "v1"), all},
			{"Decode is left, and serves.", roles("queue-size", decode, "v1"), decode},
		},
	}
	for name, steps := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, steps[0].spec)
			for _, step := range steps {
				_, rsp := w.rollOut(step.spec)
				pool := rsp.GetDesired().GetResources()["inferencepool"].GetResource()
				got := kube.Lookup(pool, "spec", "selector", "matchLabels", naming.LabelComponentType).GetStringValue()
				if diff := cmp.Diff(step.want, got); diff != "" {
					t.Errorf("%s\n-want, +got:\n%s", step.reason, diff)
				}
			}
		})
	}
}
