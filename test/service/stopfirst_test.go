package service

import (
	"strings"
	"testing"

	"github.com/fusioninfer/function-inferenceservice/test/fixture"
)

// TestStopFirst makes edits that are refused until a role is stopped, and follows what the messages advise. The InferenceRole has the
// number of a role with scaling, beside which the spec cannot have one.
func TestStopFirst(t *testing.T) {
	scaled := func(roles string) string {
		return strings.ReplaceAll(roles, "replicas: 2", "scaling: {minReplicas: 2, maxReplicas: 4, "+byQueue+"}")
	}
	stopped := func(roles string) string { return strings.ReplaceAll(roles, "replicas: 2", "replicas: 0") }
	onPort := func(roles string) string { return strings.ReplaceAll(roles, "serve, /m]", "serve, /m, --port=9000]") }
	const router, ratio = "- {name: r, componentType: router}\n", "scaling: {ratio: {prefill: 1, decode: 1}}\n"
	worker, other, prefill, decode := roleOf("w", "worker", 2, "v1"), roleOf("v", "worker", 1, "v1"), roleOf("p", "prefiller", 2, "v1"), roleOf("d", "decoder", 2, "v1")
	cases := map[string]struct{ before, after, remedy, advice string }{
		"Removed":       {worker, other, stopped(worker), "To remove a role at once, set its replicas to 0 first"},
		"RemovedScaled": {scaled(worker), other, stopped(worker), "To remove a role at once, set its replicas to 0 first, in place of scaling"},
		// The other role has scaling, and is not the one to stop.
		"RemovedBesideScaled": {worker, scaled(roleOf("x", "worker", 2, "v1")), stopped(worker), "set its replicas to 0 first"},
		"Port":                {worker, onPort(worker), stopped(worker), "To change it, set replicas to 0 first"},
		"PortScaled":          {scaled(worker), onPort(scaled(worker)), stopped(worker), "To change it, set replicas to 0 first, in place of scaling"},
		"PortInOneEdit":       {scaled(worker), onPort(scaled(worker)), onPort(stopped(worker)), "To change it, set replicas to 0 first, in place of scaling"},
		"PortOfRatio": {
			router + scaled(prefill+decode) + ratio, router + onPort(scaled(prefill+decode)) + ratio, router + stopped(prefill+decode),
			"To change it, set replicas to 0 first, in place of scaling, and leave out spec.scaling.ratio",
		},
		"PortOfRemoved":       {worker + onPort(other), onPort(other), stopped(worker) + onPort(other), "To remove it, set its replicas to 0 first"},
		"PortOfRemovedScaled": {scaled(worker) + onPort(other), onPort(other), stopped(worker) + onPort(other), "To remove it, set its replicas to 0 first, in place of scaling"},
		"Apart":               {router + prefill, router + prefill + decode, router + stopped(prefill) + decode, "Add a role of workers, or set replicas to 0 first. "},
		"ApartScaled":         {router + scaled(prefill), router + scaled(prefill) + decode, router + stopped(prefill) + decode, "Add a role of workers, or set replicas to 0 first, in place of scaling. "},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "roles:\n"+tc.before)
			w.rollOut("roles:\n" + tc.before)
			w.edit("roles:\n" + tc.after)
			if got := fixture.Fatals(w.fn.Run(t, w.req)); !strings.Contains(got+"\n", tc.advice) || strings.Contains(got, "scaling") != strings.Contains(tc.advice, "scaling") {
				t.Fatalf("got %q, want the advice %q", got, tc.advice)
			}
			w.rollOut("roles:\n" + tc.remedy) // No call on the way refuses it.
			w.rollOut("roles:\n" + tc.after)
		})
	}
}
