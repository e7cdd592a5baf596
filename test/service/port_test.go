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
		lost    = "spec.roles[1]: Forbidden: must go on getting the requests, because it serves: roles on several ports leave them to the first one. To change that, set its replicas to 0 first"
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
			refused: lost, serving: []string{"v/0", "v/1"},
		},
		"FirstServes": {
			reason: "So would it be while the first role serves, and most replicas would get no more requests.", before: worker("w", "v1", 1, 8000) + worker("v", "v1", 3, 8000),
			steps:   []string{worker("w", "v1", 1, 8000) + worker("v", "v1", 3, 8000) + worker("u", "v1", 1, 9000)},
			refused: lost, serving: []string{"v/0", "v/1", "v/2", "w/0"},
		},
		"OfSecondRole": {
			reason: "The former template of that role serves.", before: worker("w", "v1", 1, 8000) + worker("v", "v1", 3, 8000),
			steps:   []string{worker("w", "v1", 1, 8000) + worker("v", "v1", 3, 9000)},
			refused: fmt.Sprintf(refused, 1), serving: []string{"v/0", "v/1", "v/2", "w/0"},
		},
		"OfThirdRole": {
			reason: "The role whose port changes is named, and not one that loses its requests by it.", before: worker("w", "v1", 1, 8000) + worker("v", "v1", 1, 8000) + worker("u", "v1", 1, 8000),
			steps:   []string{worker("w", "v1", 1, 8000) + worker("v", "v1", 1, 8000) + worker("u", "v1", 1, 9000)},
			refused: fmt.Sprintf(refused, 2), serving: []string{"u/0", "v/0", "w/0"},
		},
		"SecondRoleNotServing": {
			reason: "No pod of that role answers.", before: worker("w", "v1", 1, 8000) + worker("v", broken, 1, 8000),
			steps:   []string{worker("w", "v1", 1, 8000) + worker("v", "v1", 1, 9000)},
			serving: []string{"v/0", "w/0"},
		},
		"SecondRoleScaledToZeroBefore": {
			reason: "The user has stopped that role before.", before: worker("w", "v1", 1, 8000) + worker("v", "v1", 2, 8000),
			steps:   []string{worker("w", "v1", 1, 8000) + worker("v", "v1", 0, 8000), worker("w", "v1", 1, 8000) + worker("v", "v1", 2, 9000)},
			serving: []string{"v/0", "v/1", "w/0"},
		},
		"AnotherFirst": {
			reason: "The Service of one role turns to another one that serves.", before: worker("w", "v1", 1, 8000) + worker("v", "v1", 1, 8000) + worker("u", "v1", 1, 9000),
			steps:   []string{worker("v", "v1", 1, 8000) + worker("w", "v1", 1, 8000) + worker("u", "v1", 1, 9000)},
			serving: []string{"u/0", "v/0", "w/0"},
		},
		"AnotherFirstOtherPort": {
			reason: "Nor to one whose pods answer on another port for now.", before: worker("w", "v1", 1, 8000) + worker("v", "v1", 1, 9000),
			steps:   []string{worker("v", "v1", 1, 8000) + worker("w", "v1", 1, 9000)},
			refused: fmt.Sprintf(refused, 1), serving: []string{"v/0", "w/0"},
		},
		"AnotherFirstBroken": {
			reason: "But not to one that does not.", before: worker("w", "v1", 1, 8000) + worker("v", broken, 1, 8000) + worker("u", "v1", 1, 9000),
			steps:   []string{worker("v", broken, 1, 8000) + worker("w", "v1", 1, 8000) + worker("u", "v1", 1, 9000)},
			refused: lost, serving: []string{"u/0", "w/0"},
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

// TestPortJoins shows that a Service of one role turns to another one, whose port becomes the same, only once no pod listens on the former
// port.
func TestPortJoins(t *testing.T) {
	worker := func(name, image string, port int) string {
		return strings.Replace(roleOf(name, "worker", 2, image), "/m]", fmt.Sprintf("/m, --port=%d]", port), 1)
	}
	w := newWorld(t, "roles:\n"+worker("w", "v1", 8000)+worker("v", "v1", 9000))
	w.rollOut("roles:\n" + worker("w", "v1", 8000) + worker("v", "v1", 9000))
	selected := func() string {
		s := w.req.GetObserved().GetResources()["service"].GetResource()
		return s.GetFields()["spec"].GetStructValue().GetFields()["selector"].GetStructValue().GetFields()["fusioninfer.io/role-name"].GetStringValue()
	}
	w.edit("roles:\n" + worker("w", "v1", 8000) + worker("v", "v2", 8000))
	got := []string{selected()}
	for range 20 {
		w.step()
		if s := selected(); s != got[len(got)-1] {
			got = append(got, s)
			if diff := cmp.Diff("v2,v2,v1,v1", w.images()); diff != "" {
				t.Errorf("when it turns to both roles: -want, +got of the images of pods:\n%s", diff)
			}
		}
	}
	if diff := cmp.Diff([]string{"w", ""}, got); diff != "" {
		t.Errorf("-want, +got of the role that the Service selects:\n%s", diff)
	}
}

// TestPortAppliedApart shows that a role on another port is accepted whichever of its objects are there first.
func TestPortAppliedApart(t *testing.T) {
	worker := func(name string, port int) string {
		return strings.Replace(roleOf(name, "worker", 1, "v1"), "/m]", fmt.Sprintf("/m, --port=%d]", port), 1)
	}
	w := newWorld(t, "roles:\n"+worker("w", 8000))
	w.rollOut("roles:\n" + worker("w", 8000))
	former := w.req.GetObserved().GetResources()["service"]
	if former == nil {
		t.Fatalf("there is no Service: %v", fixture.Keys(w.req.GetObserved().GetResources()))
	}
	w.edit("roles:\n" + worker("w", 8000) + worker("v", 9000))
	for range 4 {
		w.step()
		w.req.Observed.Resources["service"] = former
	}
	if diff := cmp.Diff([]string{"v/0", "w/0"}, w.serving()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
