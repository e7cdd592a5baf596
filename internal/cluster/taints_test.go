package cluster

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
)

// TestTaints proves that a service gets capacity only on nodes whose taints its pods tolerate. A pin never changes, so pods
// that are pinned to other nodes would never start.
func TestTaints(t *testing.T) {
	const dedicated = "spec: {taints: [{key: dedicated, value: team-b, effect: NoSchedule}]},"
	const tolerates = `"requests":{"nvidia.com/gpu":8000},"tolerations":[{"key":"dedicated","operator":"Equal","value":"team-b"}]`
	const device = "spec: {taints: [{key: nvidia.com/gpu, value: present, effect: NoSchedule}]},"
	onlyCPU := strings.Replace(capacityRequest("u1", "team", 8, "u1"), `"requests":{"nvidia.com/gpu":8000}`, `"requests":{"cpu":8000}`, 1)
	nothing := strings.Replace(capacityRequest("u1", "team", 8, "u1"), `"requests":{"nvidia.com/gpu":8000}`, ``, 1)
	tolerating := strings.Replace(capacityRequest("u1", "team", 8, "u1"), `"requests":{"nvidia.com/gpu":8000}`, tolerates, 1)
	typed := func(taints string) string {
		return head + "spec: {providerConfigRef: {name: us-east}, pools: [{name: p, nodeCount: 1, nodeSelector: {a: b}, allocatable: {nvidia.com/gpu: 8}, taints: [" + taints + "]}, {name: q, nodeSelector: {c: d}}]}\n"
	}
	type outcome struct{ Pool, Waits string }
	cases := map[string]struct {
		reason  string
		xr      string
		p, q    string
		request string
		want    outcome
	}{
		"NoTaints":            {reason: "The first pool fits.", want: outcome{Pool: "p"}},
		"NotTolerated":        {reason: "The other pool takes it.", p: dedicated, want: outcome{Pool: "q"}},
		"Tolerated":           {reason: "Others may need the other pool.", q: dedicated, request: tolerating, want: outcome{Pool: "q"}},
		"NoPool":              {reason: "It waits, and may go to another cluster.", p: dedicated, q: dedicated, want: outcome{Waits: "the nodes of pools p, q have taints that the pods do not tolerate: dedicated=team-b:NoSchedule"}},
		"NoExecute":           {reason: "Such a taint keeps pods away, too.", p: strings.Replace(dedicated, "NoSchedule", "NoExecute", 1), want: outcome{Pool: "q"}},
		"Prefers":             {reason: "The node takes pods all the same.", p: strings.Replace(dedicated, "NoSchedule", "PreferNoSchedule", 1), want: outcome{Pool: "p"}},
		"Device":              {reason: "Pods that request the device tolerate its name.", p: device, want: outcome{Pool: "p"}},
		"DeviceOfOthers":      {reason: "A pod without the device does not tolerate its name.", p: device, request: onlyCPU, want: outcome{Pool: "q"}},
		"DeviceOfJob":         {reason: "The Job of a ModelCache requests nothing. It may also run on nodes that no pool lists.", p: device, q: device, request: nothing, want: outcome{Pool: "p"}},
		"DeviceEvicts":        {reason: "Kubernetes has no pod tolerate that.", p: strings.Replace(device, "NoSchedule", "NoExecute", 1), want: outcome{Pool: "q"}},
		"DevicesOnly":         {reason: "It waits, and may go to another cluster.", p: device, q: device, request: onlyCPU, want: outcome{Waits: "the nodes of pools p, q have taints that the pods do not tolerate: nvidia.com/gpu=present:NoSchedule"}},
		"Deleted":             {reason: "The autoscaler is about to delete the node.", p: "spec: {taints: [{key: ToBeDeletedByClusterAutoscaler, value: '1764350000', effect: NoSchedule}]},", want: outcome{Pool: "q"}},
		"DiskPressure":        {reason: "The node takes no pods for now.", p: "spec: {taints: [{key: node.kubernetes.io/disk-pressure, effect: NoSchedule, timeAdded: '2026-03-01T10:00:00Z'}]},", want: outcome{Pool: "q"}},
		"TypedIn":             {reason: "Nodes that are typed in have taints, too.", xr: typed("{key: dedicated, value: team-b, effect: NoSchedule}"), want: outcome{Pool: "q"}},
		"TypedDeviceOfOthers": {reason: "A pod without the device does not tolerate its name there either.", xr: typed("{key: nvidia.com/gpu, effect: NoSchedule}"), request: onlyCPU, want: outcome{Pool: "q"}},
		"TypedDevice":         {reason: "The same taints count as of observed nodes.", xr: typed("{key: nvidia.com/gpu, effect: NoSchedule}"), want: outcome{Pool: "p"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			observed := map[string]string{keyLedger: ledgerOf("{}"), "object/reachable": reached, "object/nodes/q": collection}
			required := map[string][]string{requests: {capacityRequest("u1", "team", 8, "u1")}, nodesOf("q"): {member("q", tc.q)}}
			if tc.request != "" {
				required[requests] = []string{tc.request}
			}
			if tc.xr == "" {
				tc.xr = withSelectors
				observed["object/nodes/p"], required[nodesOf("p")] = collection, []string{member("p", tc.p)}
			}
			rsp := run(t, request(t, tc.xr, observed, required))
			var ledger reservation.Ledger
			if err := json.Unmarshal([]byte(ledgerIn(rsp)), &ledger); err != nil {
				t.Fatal(err)
			}
			got := outcome{}
			for _, s := range ledger.Services {
				got.Pool = s.Grants[0].Pin.Name()
			}
			for _, w := range outcomeOf(rsp).waiting {
				got.Waits = strings.TrimPrefix(w, "s1: ")
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestTaintsAreTold proves that the status and the estimates have what is free by the taints of the nodes, and that the
// estimates stay as long as that is about right.
func TestTaintsAreTold(t *testing.T) {
	const xr = head + "spec: {providerConfigRef: {name: us-east}, pools: [{name: p, nodeSelector: {a: b}}]}\n"
	const dedicated = "spec: {taints: [{key: dedicated, value: team-b, effect: NoSchedule}]},"
	required := map[string][]string{requests: nil, nodesOf("p"): {member("a", ""), member("b", dedicated), member("c", dedicated), member("d", dedicated), member("e", dedicated)}}
	rsp := run(t, request(t, xr, map[string]string{keyLedger: ledgerOf("{}"), "object/reachable": reached, "object/nodes/p": collection}, required))
	var status v1alpha1.InferenceClusterStatus
	text, err := json.Marshal(kube.Lookup(rsp.GetDesired().GetComposite().GetResource(), "status").GetStructValue().AsMap())
	if err == nil {
		err = json.Unmarshal(text, &status)
	}
	if err != nil {
		t.Fatal(err)
	}
	estimates := kube.Lookup(rsp.GetDesired().GetResources()[keyEstimates].GetResource(), "data").GetStructValue()
	var pools []v1alpha1.PoolStatus
	if err := json.Unmarshal([]byte(estimates.GetFields()["pools"].GetStringValue()), &pools); err != nil {
		t.Fatal(err)
	}
	taints := []v1alpha1.Taint{{Key: "dedicated", Value: "team-b", Effect: "NoSchedule"}}
	type free struct {
		Nodes  int32
		Taints []v1alpha1.Taint
	}
	for name, all := range map[string][]v1alpha1.PoolStatus{"status": status.Pools, "estimates": pools} {
		var got []free
		for _, n := range all[0].Free {
			got = append(got, free{n.NodeCount, n.Taints})
		}
		if diff := cmp.Diff([]free{{1, nil}, {4, taints}}, got); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", name, diff)
		}
	}
	if diff := cmp.Diff(`{"p":[1,2,4,8],"p dedicated=team-b:NoSchedule":[4,8,16,32]}`, estimates.GetFields()["estimates"].GetStringValue()); diff != "" {
		t.Errorf("estimates: -want, +got:\n%s", diff)
	}
	// Half of one of four nodes is no reason to tell all services.
	again := textOf(t, rsp)
	required[requests] = []string{strings.Replace(capacityRequest("u1", "team", 4, "u1"), `"requests"`, `"tolerations":[{"operator":"Exists"}],"requests"`, 1)}
	rsp = run(t, request(t, xr, map[string]string{keyLedger: ledgerOf("{}"), "object/reachable": reached, "object/nodes/p": collection, keyEstimates: again}, required))
	if diff := cmp.Diff(again, textOf(t, rsp)); diff != "" {
		t.Errorf("the estimates change: -want, +got:\n%s", diff)
	}
	// While the nodes of the pool are not known, its estimates stay.
	delete(required, nodesOf("p"))
	rsp = run(t, request(t, xr, map[string]string{keyLedger: ledgerOf("{}"), "object/reachable": reached, "object/nodes/p": collection, keyEstimates: again}, required))
	if diff := cmp.Diff(estimates.GetFields()["estimates"].GetStringValue(), kube.Lookup(rsp.GetDesired().GetResources()[keyEstimates].GetResource(), "data", "estimates").GetStringValue()); diff != "" {
		t.Errorf("the estimates of a pool that is not known: -want, +got:\n%s", diff)
	}
}

// textOf returns the estimates in a response.
func textOf(t *testing.T, rsp *fnv1.RunFunctionResponse) string {
	t.Helper()
	text, err := json.Marshal(rsp.GetDesired().GetResources()[keyEstimates].GetResource().AsMap())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
