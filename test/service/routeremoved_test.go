package service

import (
	"strings"
	"testing"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/test/fixture"
	"github.com/fusioninfer/function-inferenceservice/test/function"
)

// TestRouteRemoved takes away the gateways by which the clients of a service come.
func TestRouteRemoved(t *testing.T) {
	const (
		with    = `{apiVersion: fn.fusioninfer.io/v1alpha1, kind: Input, gateway: {parentRefs: [{name: shared}]}}`
		without = `{apiVersion: fn.fusioninfer.io/v1alpha1, kind: Input}`
		own     = "- {name: r, componentType: router, httproute: {parentRefs: [{name: mine}]}}\n"
		none    = "- {name: r, componentType: router}\n"
		refused = "spec.roles[0].httproute.parentRefs: Required value: must go on naming a gateway, unless the router has a gateway of its own or gateway.parentRefs of the Composition's input names one: clients come to the control plane's cluster by the HTTPRoute. To remove that, remove the router, or set the replicas of all roles to 0 first"
	)
	workers := func(replicas int, image string) string { return roleOf("w", "worker", replicas, image) }
	scaled := strings.Replace(workers(2, "v1"), "replicas: 2", "scaling: {minReplicas: 0, maxReplicas: 4}", 1)
	for name, tc := range map[string]struct{ before, input, after, newInput, want string }{
		"ByThePlatform":     {none + workers(2, "v1"), with, none + workers(2, "v1"), without, refused},
		"ByTheTenant":       {own + workers(2, "v1"), without, none + workers(2, "v1"), without, refused},
		"Scaled":            {none + scaled, with, none + scaled, without, refused + ", in place of scaling"},
		"ScaledIsStopped":   {none + scaled, with, none + workers(0, "v1"), without, ""},
		"AnotherOne":        {none + workers(2, "v1"), with, own + workers(2, "v1"), without, ""},
		"ThePlatforms":      {own + workers(2, "v1"), with, none + workers(2, "v1"), with, ""},
		"WithTheRouter":     {none + workers(2, "v1"), with, workers(2, "v1"), without, ""},
		"NoReplicas":        {none + workers(0, "v1"), with, none + workers(0, "v1"), without, ""},
		"AllHaveCrashed":    {none + workers(2, broken), with, none + workers(2, broken), without, refused},
		"HadNone":           {none + workers(2, "v1"), without, none + workers(2, "v1"), without, ""},
		"StoppedAtTheSame":  {none + workers(2, "v1"), with, none + workers(0, "v1"), without, ""},
		"StaysAndOtherEdit": {none + workers(2, "v1"), with, none + workers(2, "v2"), with, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "roles:\n"+tc.before)
			w.req.Input = fixture.YAML(t, tc.input)
			w.rollOut("roles:\n" + tc.before)
			w.edit("roles:\n" + tc.after)
			w.req.Input = fixture.YAML(t, tc.newInput)
			if got := fixture.Fatals(w.fn.Run(t, w.req)); !strings.HasSuffix(got, tc.want) || tc.want == "" && got != "" {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestFleetRouteRemoved takes away the fleet's gateways.
func TestFleetRouteRemoved(t *testing.T) {
	const refused = "fleet.parentRefs: Required value: must go on naming a gateway: clients come by the fleet route. To remove that, remove the router, or set the replicas of all roles to 0 first"
	fn := function.Start(t)
	req := drained(t, fn, "[]")
	fleet := kube.Lookup(req.GetInput(), "fleet").GetStructValue()
	delete(fleet.GetFields(), "parentRefs")
	if got := fixture.Fatals(fn.Run(t, req)); !strings.HasSuffix(got, refused) {
		t.Errorf("got %q, want %q", got, refused)
	}
}
