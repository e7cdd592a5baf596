package service

import (
	"fmt"
	"strings"
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/test/fixture"
	"github.com/fusioninfer/function-inferenceservice/test/function"
)

func TestSomebodyElsesObject(t *testing.T) {
	fn := function.Start(t)
	const lws = `
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: chat-w-0, namespace: team%s}
`
	cases := map[string]struct {
		reason string
		owner  string
		want   string
	}{
		"Mine":    {reason: "the service adopts its own object", owner: `, annotations: {crossplane.io/composition-resource-name: leaderworkerset/w/0}, ownerReferences: [{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceService, name: chat, uid: me, controller: true}]`},
		"Before":  {reason: "an earlier controller of this kind left objects with the same owner, which are refused", owner: `, ownerReferences: [{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceService, name: chat, uid: me, controller: true}]`, want: "chat-w-0"},
		"Another": {reason: "an object of another service is refused", owner: `, ownerReferences: [{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceService, name: chat-w, uid: other, controller: true}]`, want: "chat-w"},
		"Nobody":  {reason: "an object without an owner is refused: it would be taken over silently, and deleted with the service", want: "chat-w-0"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := fixture.Request(t, fixture.Service(fixture.TwoNodes), "")
			req.RequiredResources = map[string]*fnv1.Resources{"existing/leaderworkerset/w/0": {Items: []*fnv1.Resource{{Resource: fixture.YAML(t, fmt.Sprintf(lws, tc.owner))}}}}
			rsp := fn.Run(t, req)
			got := fixture.Fatals(rsp)
			if (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
				t.Errorf("%s: want Fatal with %q, got %q", tc.reason, tc.want, got)
			}
			accepted := "FALSE NameConflict"
			if tc.want == "" {
				accepted = "TRUE Accepted"
			}
			if got := fixture.Condition(rsp, "Accepted"); got != accepted {
				t.Errorf("%s: want Accepted %s, got %s", tc.reason, accepted, got)
			}
		})
	}
}

// TestHeadlessServiceTaken shows that an existing Service with the name of a LeaderWorkerSet is a
// conflict. LeaderWorkerSet would use it as its headless Service.
func TestHeadlessServiceTaken(t *testing.T) {
	fn := function.Start(t)
	for name, tc := range map[string]struct{ owner, want string }{
		"LeaderWorkerSets": {owner: `, ownerReferences: [{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, name: chat-w-0, uid: l, controller: true}]`},
		"Anothers":         {owner: `, ownerReferences: [{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceService, name: chat-w-0, uid: o, controller: true}]`, want: "needs a Service of its own name"},
	} {
		t.Run(name, func(t *testing.T) {
			req := fixture.Request(t, fixture.Service(fixture.TwoNodes), "")
			req.RequiredResources = map[string]*fnv1.Resources{"headless/leaderworkerset/w/0": {Items: []*fnv1.Resource{{Resource: fixture.YAML(t, `{apiVersion: v1, kind: Service, metadata: {name: chat-w-0`+tc.owner+`}}`)}}}}
			if got := fixture.Fatals(fn.Run(t, req)); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("want Fatal with %q, got %q", tc.want, got)
			}
		})
	}
}
