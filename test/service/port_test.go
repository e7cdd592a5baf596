package service

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/test/fixture"
)

// TestPortChanges shows that an edit of the port cuts no replica off. All pods are asked on one port, and
// those that keep their template answer on the former one.
func TestPortChanges(t *testing.T) {
	worker := func(name, image string, replicas, port int) string {
		return fmt.Sprintf("- {name: %s, componentType: worker, replicas: %d, template: {spec: {containers: [{name: engine, image: %s, command: [vllm, serve, /m, --port=%d]}]}}}\n", name, replicas, image, port)
	}
	const (
		router  = "- {name: r, componentType: router}\n"
		queues  = "- {name: r, componentType: router, strategy: queue-size}\n"
		refused = "spec.roles[%d]: Forbidden: must answer on port 8000, and not on 9000, while pods of its former template serve: requests are sent to one port of all pods. To change it, set replicas to 0 first"
		other   = "spec.roles[%d]: Forbidden: must answer on port 8000, and not on 9000, while role %s serves there: requests are sent to one port of all pods"
	)
	pairs := strings.ReplaceAll(worker("p", "v1", 1, 8000), "worker", "prefiller") + strings.ReplaceAll(worker("d", "v1", 1, 8000), "worker", "decoder")
	cases := map[string]struct {
		reason string
		before string
		// steps are the roles one after the other, each for some calls.
		steps   []string
		refused string
		serving []string
	}{
		"Router": {
			reason: "The endpoint picker would name the new port of both pods.", before: router + worker("w", "v1", 2, 8000), steps: []string{router + worker("w", "v1", 2, 9000)},
			refused: fmt.Sprintf(refused, 1), serving: []string{"w/0", "w/1"},
		},
		"NoRouter": {
			reason: "The Service would send requests to the new port of both pods.", before: worker("w", "v1", 2, 8000), steps: []string{worker("w", "v1", 2, 9000)},
			refused: fmt.Sprintf(refused, 0), serving: []string{"w/0", "w/1"},
		},
		"ScaledToZeroBefore": {
			reason: "The user has stopped it before.", before: router + worker("w", "v1", 2, 8000), steps: []string{router + worker("w", "v1", 0, 8000), router + worker("w", "v1", 2, 9000)},
			serving: []string{"w/0", "w/1"},
		},
		"NotServing": {
			reason: "No pod answers on the former port.", before: router + worker("w", broken, 2, 8000), steps: []string{router + worker("w", "v1", 2, 9000)},
			serving: []string{"w/0", "w/1"},
		},
		"PutBefore": {
			reason: "The Service would be for the new role, which does not serve.", before: worker("w", "v1", 2, 8000), steps: []string{worker("v", "v1", 2, 9000) + worker("w", "v1", 2, 8000)},
			refused: fmt.Sprintf(other, 0, "w"), serving: []string{"w/0", "w/1"},
		},
		"PutBehind": {
			reason: "The Service stays for the first role.", before: worker("w", "v1", 1, 8000), steps: []string{worker("w", "v1", 1, 8000) + worker("v", "v1", 1, 9000)},
			serving: []string{"v/0", "w/0"},
		},
		"FirstIsStopped": {
			reason: "The Service would be for the first role only.", before: worker("w", "v1", 0, 8000) + worker("v", "v1", 2, 8000),
			steps:   []string{worker("w", "v1", 0, 8000) + worker("v", "v1", 2, 8000) + worker("u", "v1", 1, 9000)},
			refused: "spec.roles[1]: Forbidden: must go on getting the requests, because it serves: roles on several ports leave them to the first one, which does not serve", serving: []string{"v/0", "v/1"},
		},
		"FirstServes": {
			reason: "The Service is for the first role only.", before: worker("w", "v1", 1, 8000) + worker("v", "v1", 1, 8000),
			steps: []string{worker("w", "v1", 1, 8000) + worker("v", "v1", 1, 8000) + worker("u", "v1", 1, 9000)}, serving: []string{"u/0", "v/0", "w/0"},
		},
		"OtherOrder": {
			reason: "Clients of the Service use its port.", before: worker("w", "v1", 1, 8000) + worker("v", "v1", 1, 9000), steps: []string{worker("v", "v1", 1, 9000) + worker("w", "v1", 1, 8000)},
			refused: fmt.Sprintf(other, 0, "w"), serving: []string{"v/0", "w/0"},
		},
		"BesidePairs": {
			reason: "Prefill and decode answer until the worker serves.", before: queues + pairs, steps: []string{queues + pairs + worker("w", "v1", 1, 9000)},
			refused: fmt.Sprintf(other, 3, "p"), serving: []string{"d/0", "p/0"},
		},
		"BehindNoPool": {
			reason: "Prefill and decode get no requests, so their port does not matter.", before: queues + pairs + worker("w", "v1", 1, 8000),
			steps:   []string{queues + pairs + worker("w", "v1", 0, 8000), queues + pairs + worker("w", "v1", 1, 9000)},
			serving: []string{"d/0", "p/0", "w/0"},
		},
		"OfAnotherRole": {
			reason: "Clients of the Service use the port of the first role.", before: worker("w", "v1", 1, 8000) + worker("v", "v1", 1, 9000),
			steps:   []string{worker("v", "v1", 1, 9000)},
			refused: "spec.roles: Forbidden: must keep role w, which serves: requests are sent to its port 8000, and the roles that are left answer on 9000. To remove it, set its replicas to 0 first",
			serving: []string{"v/0", "w/0"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "roles:\n"+tc.before)
			w.rollOut("roles:\n" + tc.before)
			got := ""
			for _, spec := range tc.steps {
				w.edit("roles:\n" + spec)
				if got = fixture.Fatals(w.fn.Run(t, w.req)); got == "" {
					w.rollOut("roles:\n" + spec)
				}
			}
			if !strings.Contains(got, tc.refused) || got != "" && tc.refused == "" {
				t.Errorf("%s\ngot %q, want %q", tc.reason, got, tc.refused)
			}
			if diff := cmp.Diff(tc.serving, w.serving()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
