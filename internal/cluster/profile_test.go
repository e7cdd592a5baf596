package cluster

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity/capacitytest"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/profile"
)

// answered returns the answers in a response: services with what is reserved or pending.
func answered(t *testing.T, rsp *fnv1.RunFunctionResponse) []string {
	t.Helper()
	var all []string
	for i := range profile.Parts {
		r := rsp.GetDesired().GetResources()[key.Answers(i).String()]
		if r == nil {
			continue
		}
		a, err := profile.ReadAnswers(incoming.ObjectOf(r.GetResource()))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range a.Reservations {
			all = append(all, fmt.Sprintf("%s/%s has %s/%v generation %d", s.Namespace, s.Name, s.Replicas[0].Role, s.Replicas[0].Indexes, s.Replicas[0].Generation))
		}
		for _, p := range a.Pending {
			all = append(all, fmt.Sprintf("%s/%s waits: %s", p.Namespace, p.Name, p.Message))
		}
		if version := kube.Lookup(r.GetResource(), "metadata", "resourceVersion").GetStringValue(); version != "" {
			all = append(all, "over version "+version)
		}
	}
	return all
}

// TestAnswers shows that services read only what was in the ledger before.
func TestAnswers(t *testing.T) {
	const requested = "u1"
	part := func(version string) string {
		return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: clusteranswers-us-east-%d, namespace: crossplane-system, resourceVersion: '%s'}}", profile.PartOf(requested), version)
	}
	at := key.Answers(profile.PartOf(requested)).String()
	two := strings.Replace(capacityRequest(requested, "team", 5, requested), `{"name":"w/0","pods":{"w":1}}`, `{"name":"w/0","pods":{"w":1}},{"name":"w/1","pods":{"w":1}}`, 1)
	cases := map[string]struct {
		reason   string
		observed map[string]string
		gpus     int
		want     []string
		request  string
	}{
		"Part":    {reason: "A refusal of the rest would be read without what this call reserves.", observed: map[string]string{keyLedger: ledgerOf("{}")}, request: two},
		"New":     {reason: "What this call reserves may never be written.", observed: map[string]string{keyLedger: ledgerOf("{}")}, gpus: 8},
		"Written": {reason: "It was read back.", observed: map[string]string{keyLedger: ledgerOf(reserved)}, gpus: 8, want: []string{"team/s1 has w/[0] generation 0"}},
		"Over":    {reason: "An older answer is not written over a newer one.", observed: map[string]string{keyLedger: ledgerOf(reserved), at: part("9")}, gpus: 8, want: []string{"team/s1 has w/[0] generation 0", "over version 9"}},
		"Waits":   {reason: "Nothing is promised by that.", observed: map[string]string{keyLedger: ledgerOf("{}")}, gpus: 9, want: []string{"team/s1 waits: 8 of 8 nvidia.com/gpu free in pool p, 1 short"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.observed["object/reachable"] = reached
			if tc.request == "" {
				tc.request = capacityRequest(requested, "team", tc.gpus, requested)
			}
			rsp := run(t, request(t, typedIn, tc.observed, map[string][]string{requests: {tc.request}}))
			if diff := cmp.Diff(tc.want, answered(t, rsp)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestManyWait proves that each of many services that wait gets an answer, although the status has only the first ones.
func TestManyWait(t *testing.T) {
	const services = maxPending + 500
	var all []string
	for i := range services {
		uid := fmt.Sprintf("00000000-0000-4000-8000-%012d", i)
		all = append(all, capacityRequest(uid, "team", 9, uid))
	}
	rsp := run(t, request(t, typedIn, map[string]string{keyLedger: ledgerOf("{}"), "object/reachable": reached}, map[string][]string{requests: all}))
	if got := len(answered(t, rsp)); got != services {
		t.Errorf("%d of %d services got an answer", got, services)
	}
	status := kube.Lookup(rsp.GetDesired().GetComposite().GetResource(), "status").GetStructValue()
	if got := len(kube.Lookup(status, "pending").GetListValue().GetValues()); got != maxPending {
		t.Errorf("the status has %d of them, want %d", got, maxPending)
	}
}

// TestProfile shows what all services read of a cluster, and that it stays while services come and
// go.
func TestProfile(t *testing.T) {
	const xr = "apiVersion: fusioninfer.io/v1alpha1\nkind: InferenceCluster\nmetadata: {name: us-east, uid: me, generation: 3, creationTimestamp: '2026-01-01T00:00:00Z', labels: {region: us}, annotations: {not: told}}\n" +
		"spec: {providerConfigRef: {name: us-east}, stopMessage: why, allowedNamespaces: {from: All}, pools: [{name: p, nodeCount: 30, nodeSelector: {a: b}, allocatable: {nvidia.com/gpu: 8}}]}\n"
	observed := map[string]string{keyLedger: ledgerOf("{}"), "object/reachable": reached}
	free := "" // The pools of the last estimates.
	profiled := func(services int) string {
		t.Helper()
		var all []string
		for i := range services {
			all = append(all, capacityRequest(fmt.Sprintf("u%d", i), "team", 8, fmt.Sprintf("u%d", i)))
		}
		rsp := run(t, request(t, xr, observed, map[string][]string{requests: all}))
		r := rsp.GetDesired().GetResources()[keyProfile]
		if r.GetReady() != fnv1.Ready_READY_TRUE {
			t.Error("nothing waits for a profile, but the InferenceCluster is not ready without it")
		}
		text, err := json.Marshal(r.GetResource().AsMap())
		if err != nil {
			t.Fatal(err)
		}
		observed[keyProfile] = string(text)
		estimates := rsp.GetDesired().GetResources()[keyEstimates]
		if estimates.GetReady() != fnv1.Ready_READY_TRUE {
			t.Error("nothing waits for estimates, but the InferenceCluster is not ready without them")
		}
		if text, err = json.Marshal(estimates.GetResource().AsMap()); err != nil {
			t.Fatal(err)
		}
		observed[keyEstimates] = string(text)
		free = kube.Lookup(estimates.GetResource(), "data", "pools").GetStringValue()
		return kube.Lookup(r.GetResource(), "data", "inferencecluster").GetStringValue()
	}
	first := profiled(0)
	var got any
	if err := json.Unmarshal([]byte(first), &got); err != nil {
		t.Fatal(err)
	}
	status := got.(map[string]any)["status"].(map[string]any)
	if diff := cmp.Diff([]any{map[string]any{
		"name": "p", "nodeCount": 0.0, "nodeSelector": map[string]any{"a": "b"},
	}}, status["pools"]); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	all := `[{"name":"p","nodeCount":0,"nodeSelector":{"a":"b"},"free":[{"nodeCount":30,"resources":{"nvidia.com/gpu":"8"}}]}]`
	if diff := cmp.Diff(all, free); diff != "" {
		t.Errorf("estimates: -want, +got:\n%s", diff)
	}
	for _, want := range []string{`"labels":{"region":"us"}`, `"creationTimestamp":"2026-01-01T00:00:00Z"`, `"stopMessage":"why"`, `"type":"Schedulable"`, `"serviceCount":0`} {
		if !strings.Contains(first, want) {
			t.Errorf("the profile lacks %s:\n%s", want, first)
		}
	}
	second := profiled(1)
	if second == first {
		t.Error("the profile does not say that something is reserved")
	}
	some := free
	for _, services := range []int{5, 12, 19, 1} {
		if diff := cmp.Diff([]string{second, some}, []string{profiled(services), free}); diff != "" {
			t.Errorf("the profile or the estimates change with %d services:\n%s", services, diff)
		}
	}
	if diff := cmp.Diff(second, profiled(28)); diff != "" {
		t.Errorf("the profile changes, although nothing but what is free has changed:\n%s", diff)
	}
	if free == some {
		t.Error("the estimates stay although nearly nothing is free")
	}
}

// TestUnknownPool shows that services still read a pool whose nodes are not known for a moment, as when it
// is new. What is reserved there would start on any node otherwise, or be requested elsewhere.
func TestUnknownPool(t *testing.T) {
	observed := map[string]string{keyLedger: ledgerOf(reserved), "object/reachable": reached, "object/nodes/p": collection}
	observed[keyEstimates] = `{apiVersion: v1, kind: ConfigMap, metadata: {name: e}, data: {estimates: '{"p":[1,2,4,8]}'}}`
	rsp := run(t, request(t, withSelectors, observed, map[string][]string{requests: {capacityRequest("u1", "team", 8, "u1")}}))
	var got v1alpha1.InferenceCluster
	if err := json.Unmarshal([]byte(kube.Lookup(rsp.GetDesired().GetResources()[keyProfile].GetResource(), "data", "inferencecluster").GetStringValue()), &got); err != nil {
		t.Fatal(err)
	}
	want := []v1alpha1.PoolStatus{{Name: "p", NodeSelector: map[string]string{"a": "b"}}, {Name: "q", NodeSelector: map[string]string{"c": "d"}}}
	if diff := cmp.Diff(want, got.Status.Pools); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if kept := kube.Lookup(rsp.GetDesired().GetResources()[keyEstimates].GetResource(), "data", "estimates").GetStringValue(); kept != `{"p":[1,2,4,8]}` {
		t.Errorf("the estimates do not stay as they were: %s", kept)
	}
	if is := got.Status.Conditions; len(is) != 1 || is[0].Status != metav1.ConditionFalse {
		t.Errorf("nothing new may be reserved, but got %v", is)
	}
}

// TestToldIsKept shows that nothing that services read is deleted while the requests are not known.
func TestToldIsKept(t *testing.T) {
	observed := map[string]string{
		keyLedger: ledgerOf(reserved), "object/reachable": reached,
		keyProfile:   "{apiVersion: v1, kind: ConfigMap, metadata: {name: clusterprofile-us-east, namespace: crossplane-system, labels: {a: b}}, data: {inferencecluster: '{}'}}",
		keyEstimates: "{apiVersion: v1, kind: ConfigMap, metadata: {name: clusterestimates-us-east, namespace: crossplane-system, labels: {a: b}}, data: {pools: '[]', estimates: '{}'}}",
		"answers/3":  "{apiVersion: v1, kind: ConfigMap, metadata: {name: clusteranswers-us-east-3, namespace: crossplane-system, labels: {a: b}}, binaryData: {answers: AAAA}}",
	}
	rsp := run(t, request(t, typedIn, observed, nil))
	for k, field := range map[string]string{keyProfile: "data", keyEstimates: "data", "answers/3": "binaryData"} {
		got := rsp.GetDesired().GetResources()[k].GetResource().AsMap()
		want := doc(t, observed[k]).GetResource().AsMap()
		for _, f := range []string{"apiVersion", "kind", "metadata", field} {
			if diff := cmp.Diff(want[f], got[f]); diff != "" {
				t.Errorf("%s of %s: -want, +got:\n%s", f, k, diff)
			}
		}
	}
}

// TestSteadyTaints proves that the last free node does not change the estimates again and again, whether it has taints or not.
func TestSteadyTaints(t *testing.T) {
	cases := map[string]struct {
		reason string
		taint  func(capacity.NodeClass) capacity.NodeClass
		want   []bool
	}{
		"None":    {reason: "Two nodes have to be free first.", taint: func(c capacity.NodeClass) capacity.NodeClass { return c }, want: []bool{false, false, true, false}},
		"Tainted": {reason: "The same goes for nodes with taints.", taint: func(c capacity.NodeClass) capacity.NodeClass { return capacitytest.Tainted(c, "x") }, want: []bool{false, false, true, false}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var told []bool
			estimates := map[string]capacity.Estimate{}
			for _, full := range []int64{10, 9, 8, 10} {
				pool := capacitytest.Pool("gpu", tc.taint(capacitytest.Nodes(10, 8, 64)))
				free := capacity.Free{Pools: []capacity.Pool{pool}}
				free.ForceAllocate([]capacity.PodSet{{Requirements: capacitytest.Tolerating(capacitytest.Requirements(8, 64), "x"), Count: full}})
				next := map[string]capacity.Estimate{}
				told = append(told, len(steady(&free.Pools[0], estimates, next)) > 0)
				estimates = next
			}
			if diff := cmp.Diff(tc.want, told); diff != "" {
				t.Errorf("%s -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
