package service

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/test/fixture"
	"github.com/fusioninfer/function-inferenceservice/test/function"
)

const monitored = `{apiVersion: fn.fusioninfer.io/v1alpha1, kind: Input, missingKinds: Skip, podObservationLimit: 0, monitoring: {podMonitors: {}}}`

// TestPodMonitorMissing proves that PodMonitors are left out until the operator's definition exists, and that
// everything else is there meanwhile.
func TestPodMonitorMissing(t *testing.T) {
	const monitors, lws, pg = "kind/podmonitors.monitoring.coreos.com", "kind/leaderworkersets.leaderworkerset.x-k8s.io", "kind/podgroups.scheduling.volcano.sh"
	fn := function.Start(t)
	req := fixture.Request(t, fixture.Service(fixture.TwoNodes), monitored)
	req.RequiredResources = map[string]*fnv1.Resources{monitors: {}, lws: fixture.Definition(t, "v1", ""), pg: fixture.Definition(t, "v1beta1", "")}
	rsp := fn.Run(t, req)
	without := []string{"leaderworkerset/w/0", "leaderworkerset/w/1", "poddisruptionbudget/role/w", "podgroup", "service"}
	if diff := cmp.Diff(without, fixture.Keys(rsp.GetDesired().GetResources())); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if got := fixture.Condition(rsp, "KindsAvailable"); got != "FALSE KindMissing" {
		t.Errorf("KindsAvailable is %q", got)
	}
	req.RequiredResources[monitors] = fixture.Definition(t, "v1", "")
	rsp = fn.Run(t, req)
	if rsp.GetDesired().GetResources()["podmonitor/role/w"] == nil || fixture.Condition(rsp, "KindsAvailable") != "TRUE AllAvailable" {
		t.Errorf("with the kind: KindsAvailable is %q, and these are rendered: %v", fixture.Condition(rsp, "KindsAvailable"), fixture.Keys(rsp.GetDesired().GetResources()))
	}
}

// TestPodMonitorElsewhere proves that PodMonitors are where the pods are, in each cluster of a placement.
func TestPodMonitorElsewhere(t *testing.T) {
	fn := function.Start(t)
	spec := fixture.TwoNodes + "placement: {clusters: [{name: east, providerConfigRef: {name: east}}, {name: west, namespace: shared, providerConfigRef: {name: west}}]}"
	rsp, _ := fixture.Reconcile(t, fn, fixture.Request(t, fixture.Service(spec), `{apiVersion: fn.fusioninfer.io/v1alpha1, kind: Input, podObservationLimit: 0, monitoring: {podMonitors: {}}, allowedProviderConfigs: [{name: east, namespaces: ["*"]}, {name: west, namespaces: ["*"]}]}`), nil)
	got := map[string]string{}
	for _, k := range []string{"cluster/east/podmonitor/role/w", "cluster/west/podmonitor/role/w"} {
		in := kube.Lookup(rsp.GetDesired().GetResources()[k].GetResource(), "spec", "forProvider", "manifest", "metadata", "namespace")
		got[k] = in.GetStringValue()
	}
	if diff := cmp.Diff(map[string]string{"cluster/east/podmonitor/role/w": "team", "cluster/west/podmonitor/role/w": "shared"}, got); diff != "" {
		t.Errorf("-want, +got:\n%s\nall: %v\n%s", diff, fixture.Keys(rsp.GetDesired().GetResources()), fixture.Fatals(rsp))
	}
}
