package service

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/test/fixture"
)

// requested returns the generation of the capacity request.
func (w *world) requested() int64 {
	w.tb.Helper()
	type request struct {
		Clusters []struct {
			Groups []struct{ Replicas []struct{ Generation int64 } }
		}
	}
	all, newest := request{}, int64(0)
	o := w.req.GetObserved().GetResources()["configmap/capacity-request"]
	if o == nil {
		return 0
	}
	if err := json.Unmarshal([]byte(kube.Lookup(o.GetResource(), "data", "request").GetStringValue()), &all); err != nil {
		w.tb.Fatal(err)
	}
	for _, c := range all.Clusters {
		for _, g := range c.Groups {
			for _, r := range g.Replicas {
				newest = max(newest, r.Generation)
			}
		}
	}
	return newest
}

// stepThere calls the function once with the InferenceClusters of the fleet, and lets the controllers there
// follow.
func (w *world) stepThere(clusters ...string) {
	w.tb.Helper()
	rsp, _ := fixture.Reconcile(w.tb, w.fn, w.req, map[string][]string{"fleet": clusters})
	if got := fixture.Fatals(rsp); got != "" {
		w.tb.Fatal(got)
	}
	fixture.Observe(w.req, rsp)
	for k, r := range w.req.GetObserved().GetResources() {
		manifest := kube.Lookup(r.GetResource(), "spec", "forProvider", "manifest").GetStructValue()
		if manifest == nil {
			continue
		}
		there := &fnv1.RunFunctionRequest{Observed: &fnv1.State{Resources: map[string]*fnv1.Resource{"it": {Resource: manifest}}}}
		fixture.MakeReady(w.tb, there)
		is := there.GetObserved().GetResources()["it"].GetResource()
		if kube.Lookup(is, "kind").GetStringValue() == "LeaderWorkerSet" {
			is = w.follow(k, is)
		}
		synced := fixture.YAML(w.tb, `{all: [{type: Synced, status: "True"}, {type: Ready, status: "True"}]}`).GetFields()["all"]
		r.Resource = kube.With(kube.With(r.GetResource(), structpb.NewStructValue(is), "status", "atProvider", "manifest"), synced, "status", "conditions")
	}
}

// TestPinStays shows edits of the nodes that a service selects, while its pods are pinned to a pool. Whoever
// puts the former selection back restarts only what was changed.
func TestPinStays(t *testing.T) {
	const spec = `roles: [{name: w, componentType: worker, replicas: 4, template: {spec: {%s containers: [{name: engine, image: v1, command: [vllm, serve, /m], resources: {requests: {cpu: 1}}}]}}}]
placement: {policy: Failover, clusterSelector: {}}
`
	// An edit is followed by so many calls. The cluster reserves what is requested, or goes on as before.
	type edit struct {
		selector string
		reserves bool
		calls    int
	}
	other := "nodeSelector: {gpu: b},"
	cases := map[string]struct {
		reason string
		edits  []edit
		// fewest is the lowest number of replicas that served. pools are those to which they are pinned at last.
		fewest   int
		restarts map[string]int
		pools    []string
	}{
		"PutBackWhileWaiting": {
			reason: "The other nodes were never reserved: nothing restarts.",
			edits:  []edit{{other, false, 2}, {"", true, 12}}, fewest: 4, restarts: map[string]int{}, pools: []string{"p", "p", "p", "p"},
		},
		"PutBackAtOnce": {
			reason: "The cluster still has to reserve the former nodes: nothing restarts.",
			edits:  []edit{{other, false, 2}, {"", false, 2}, {"", true, 12}}, fewest: 4, restarts: map[string]int{}, pools: []string{"p", "p", "p", "p"},
		},
		"PutBackWhileReserved": {
			reason: "One replica was on its way to the other nodes.",
			edits:  []edit{{other, true, 3}, {"", true, 12}}, fewest: 3,
			restarts: map[string]int{"cluster/us-east/leaderworkerset/w/3": 2}, pools: []string{"p", "p", "p", ""},
		},
		"PutBackOfAnother": {
			reason: "It is the first selection that counts, and not one of those between.",
			edits:  []edit{{other, true, 3}, {"nodeSelector: {gpu: c},", false, 2}, {"", true, 12}}, fewest: 3,
			restarts: map[string]int{"cluster/us-east/leaderworkerset/w/3": 2}, pools: []string{"p", "p", "p", ""},
		},
		"Stays": {
			reason: "All replicas move to the other nodes, and lose the pin.",
			edits:  []edit{{other, true, 24}}, fewest: 3,
			restarts: map[string]int{
				"cluster/us-east/leaderworkerset/w/0": 1, "cluster/us-east/leaderworkerset/w/1": 1,
				"cluster/us-east/leaderworkerset/w/2": 1, "cluster/us-east/leaderworkerset/w/3": 1,
			},
			pools: []string{"", "", "", ""},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, fmt.Sprintf(spec, ""))
			granted, fewest := int64(0), 0
			run := func(e edit) {
				w.edit(fmt.Sprintf(spec, e.selector))
				for range e.calls {
					if e.reserves {
						granted = w.requested()
					}
					w.stepThere(fmt.Sprintf(`{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceCluster, metadata: {name: us-east}, spec: {providerConfigRef: {name: us-east}, pools: []},
  status: {pools: [{name: p, nodeCount: 9, nodeSelector: {gpu: a}, free: [{nodeCount: 9}]}],
    reservations: [{uid: me, namespace: team, name: chat, replicas: [{role: w, indexes: [0, 1, 2, 3], generation: %d, pool: p}]}]}}`, granted))
					fewest = min(fewest, len(w.serving()))
				}
			}
			run(edit{"", true, 6})
			fewest = len(w.serving())
			if fewest != 4 {
				t.Fatalf("only %d replicas serve at first", fewest)
			}
			for _, e := range tc.edits {
				run(e)
			}
			type outcome struct {
				Fewest   int
				Restarts map[string]int
				Pools    []string
			}
			got := outcome{Fewest: fewest, Restarts: w.restarts}
			for _, k := range fixture.Keys(w.sets) {
				manifest := kube.Lookup(w.req.GetObserved().GetResources()[k].GetResource(), "spec", "forProvider", "manifest").GetStructValue()
				pool := kube.Lookup(manifest, "metadata", "labels", "fusioninfer.io/pool").GetStringValue()
				selects := kube.Lookup(manifest, "spec", "leaderWorkerTemplate", "workerTemplate", "spec", "nodeSelector", "gpu").GetStringValue() == "a"
				if selects != (pool == "p") {
					t.Errorf("%s is pinned to the pool %q, and its pods select the nodes of p: %t", k, pool, selects)
				}
				got.Pools = append(got.Pools, pool)
			}
			if diff := cmp.Diff(outcome{tc.fewest, tc.restarts, tc.pools}, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
