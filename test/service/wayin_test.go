package service

import (
	"strings"
	"testing"

	"github.com/fusioninfer/function-inferenceservice/test/fixture"
)

// TestWayIn removes a role of workers that gets the requests by the Service, while other roles serve that
// would get none.
func TestWayIn(t *testing.T) {
	workers := roleOf("a", "worker", 2, "v1")
	pairs := roleOf("p", "prefiller", 2, "v1") + roleOf("d", "decoder", 2, "v1")
	other := strings.Replace(roleOf("b", "worker", 2, "v1"), "serve, /m]", "serve, /m, --port=9000]", 1)
	router := "- {name: r, componentType: router}\n"
	one := func(roles string) []string { return []string{roles} }
	// stays has the Service stay for its clients when the router comes.
	stays := func(roles string) []string { return []string{roles, router + roles} }
	cases := map[string]struct {
		// before are the roles that serve, one after the other.
		before []string
		after  string
		want   string
	}{
		"PairsWithoutRouter": {
			one(workers + pairs), pairs,
			"spec.roles: Forbidden: must keep roles that serve requests until the others do. Removed: a. Not ready: a role that gets requests without a router. To remove a role at once, set its replicas to 0 first",
		},
		"OtherPort": {
			one(workers + other), other,
			"spec.roles: Forbidden: must keep role a, which serves: requests are sent to its port 8000, and the roles that are left answer on 9000. To remove it, set its replicas to 0 first",
		},
		"PairsInPlaceOfService": {
			stays(workers + pairs), router + pairs,
			"spec.roles: Forbidden: must keep roles that serve requests until the others do. Removed: a. Not ready: another role of workers that serves, because clients may still use the Service. To remove a role at once, set its replicas to 0 first",
		},
		"StoppedWorkersOfService": {
			stays(workers + roleOf("b", "worker", 0, "v1") + pairs), router + roleOf("b", "worker", 0, "v1") + pairs,
			"spec.roles: Forbidden: must keep roles that serve requests until the others do. Removed: a. Not ready: another role of workers that serves, because clients may still use the Service. To remove a role at once, set its replicas to 0 first",
		},
		"PairsBesideStoppedWorkers": {
			one(workers + roleOf("b", "worker", 0, "v1") + pairs), roleOf("b", "worker", 0, "v1") + pairs,
			"spec.roles: Forbidden: must keep roles that serve requests until the others do. Removed: a. Not ready: a role that gets requests without a router. To remove a role at once, set its replicas to 0 first",
		},
		"WorkersStop":         {one(workers + pairs + roleOf("e", "decoder", 2, "v1")), roleOf("a", "worker", 0, "v1") + pairs, ""},
		"WorkersOfService":    {stays(workers + roleOf("b", "worker", 2, "v1")), router + roleOf("b", "worker", 2, "v1"), ""},
		"DecodeBesideService": {stays(workers + pairs + roleOf("e", "decoder", 2, "v1")), router + workers + pairs, ""},
		"PairsBehindRouter":   {one(router + workers + pairs), router + pairs, ""},
		"SamePort":            {one(workers + roleOf("b", "worker", 2, "v1")), roleOf("b", "worker", 2, "v1"), ""},
		"Pairs":               {one(pairs + roleOf("e", "decoder", 2, "v1")), pairs, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "roles:\n"+tc.before[0])
			for _, roles := range tc.before {
				w.rollOut("roles:\n" + roles)
			}
			w.edit("roles:\n" + tc.after)
			if got := fixture.Fatals(w.fn.Run(t, w.req)); got != tc.want && !strings.HasSuffix(got, tc.want) || tc.want == "" && got != "" {
				t.Fatalf("refused for %q, want %q", got, tc.want)
			}
			if tc.want == "" {
				return
			}
			// The remedy that the message names.
			w.rollOut("roles:\n" + strings.Replace(tc.before[len(tc.before)-1], "name: a, componentType: worker, replicas: 2", "name: a, componentType: worker, replicas: 0", 1))
			w.edit("roles:\n" + tc.after)
			if got := fixture.Fatals(w.fn.Run(t, w.req)); got != "" {
				t.Errorf("refused without replicas that serve: %s", got)
			}
		})
	}
}

// TestServiceStaysWithoutReplicas stops and starts a service whose clients know its Service, and not yet its route.
func TestServiceStaysWithoutReplicas(t *testing.T) {
	const workers = "- {name: w, componentType: worker, template: {spec: {containers: [{name: engine, image: v1, command: [vllm, serve, /m]}]}}}\n"
	const router = "- {name: r, componentType: router}\n"
	for name, tc := range map[string]struct{ serves, stopped string }{
		"Role":   {"roles:\n" + workers, "roles:\n" + strings.Replace(workers, "worker,", "worker, replicas: 0,", 1)},
		"Groups": {"replicas: 2\nroles:\n" + workers, "replicas: 0\nroles:\n" + workers},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.serves)
			w.rollOut(tc.serves)
			for _, spec := range []string{tc.serves + router, tc.stopped + router} {
				if _, rsp := w.rollOut(spec); rsp.GetDesired().GetResources()["service"] == nil {
					t.Errorf("the Service is gone with\n%s", spec)
				}
			}
		})
	}
}
