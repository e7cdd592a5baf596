package service

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/test/fixture"
)

// TestRolesAreReplaced shows that an edit of the roles takes away nothing that serves before something
// else does.
func TestRolesAreReplaced(t *testing.T) {
	worker := func(name, image string, replicas int) string {
		return fmt.Sprintf("- {name: %s, componentType: worker, replicas: %d, template: {spec: {containers: [{name: engine, image: %s, command: [vllm, serve, /m]}]}}}\n", name, replicas, image)
	}
	const (
		prefill = "- {name: p, componentType: prefiller, template: {spec: {containers: [{name: engine, image: v1, command: [vllm, serve, /m]}]}}}\n"
		decode  = "- {name: d, componentType: decoder, template: {spec: {containers: [{name: engine, image: v1, command: [vllm, serve, /m]}]}}}\n"
	)
	before := worker("w", "v1", 2)
	cases := map[string]struct {
		reason string
		// steps are the specs one after the other, each for some calls.
		steps   []string
		refused string
		serving []string
	}{
		"Renamed": {
			reason: "Both replicas would go at once.", steps: []string{worker("new", "v1", 2)},
			refused: "spec.roles: Forbidden: must keep roles that serve requests until the others do. Removed: w. Not ready: new. To remove a role at once, set its replicas to 0 first",
			serving: []string{"w/0", "w/1"},
		},
		"Split": {
			reason: "So would they where prefill and decode take their place.", steps: []string{prefill + decode},
			refused: "spec.roles: Forbidden: must keep roles that serve requests until the others do. Removed: w. Not ready: d, p. To remove a role at once, set its replicas to 0 first",
			serving: []string{"w/0", "w/1"},
		},
		"OneAfterTheOther": {
			reason: "The new role serves when the former one goes.", steps: []string{before + worker("new", "v1", 2), worker("new", "v1", 2)},
			serving: []string{"new/0", "new/1"},
		},
		"Broken": {
			reason: "The new role does not serve.", steps: []string{before + worker("new", broken, 2), worker("new", broken, 2)},
			refused: "spec.roles: Forbidden: must keep roles that serve requests until the others do. Removed: w. Not ready: new. To remove a role at once, set its replicas to 0 first",
			serving: []string{"w/0", "w/1"},
		},
		"NoneLeft": {
			reason: "The user has stopped it before.", steps: []string{worker("w", "v1", 0), worker("new", "v1", 1)},
			serving: []string{"new/0"},
		},
		"NotServing": {
			reason: "It does not serve.", steps: []string{worker("w", broken, 2) + "rollout: {maxUnavailable: 2}", worker("new", "v1", 1)},
			serving: []string{"new/0"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "roles:\n"+before)
			w.rollOut("roles:\n" + before)
			refused := ""
			for _, spec := range tc.steps {
				w.edit("roles:\n" + spec)
				if refused = fixture.Fatals(w.fn.Run(t, w.req)); refused == "" {
					w.rollOut("roles:\n" + spec)
				}
			}
			if !strings.Contains(refused, tc.refused) || refused != "" && tc.refused == "" {
				t.Errorf("%s\ngot %q, want %q", tc.reason, refused, tc.refused)
			}
			if diff := cmp.Diff(tc.serving, w.serving()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
