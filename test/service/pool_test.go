package service

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/test/fixture"
	"github.com/fusioninfer/function-inferenceservice/test/function"
)

// A poolStep is a call about a service of which something exists, or not.
type poolStep struct {
	reason string
	// nodeSelector of the user's template.
	nodeSelector string
	// pool of the reservation, and pools of the cluster. Without pools, the cluster cannot be read.
	pool, pools string
	// want has the node selectors of the leader and of the workers, and the request's pool.
	want placedPods
}

type placedPods struct{ Leader, Worker, Request string }

// runPoolSteps runs the steps, one after the other, for a service of two nodes. Only the worker's
// template has the node selector of the user.
func runPoolSteps(t *testing.T, steps []poolStep) {
	t.Helper()
	fn := function.Start(t)
	const spec = "roles: [{name: w, componentType: worker, replicas: 1, multinode: {nodeCount: 2}, " +
		"leaderTemplate: {spec: {containers: [{name: engine, image: v1, command: [vllm, serve, /m]}]}}, " +
		"template: {spec: {%scontainers: [{name: engine, image: v1, command: [vllm, serve, /m]}]}}}]\nplacement: {policy: Failover, clusterSelector: {}}"
	req := fixture.Request(t, fixture.Service(fmt.Sprintf(spec, "")), "")
	// First it asks, and gets an answer to nothing that it asked.
	asks := steps[0]
	asks.reason, asks.want = "Nothing is reserved.", placedPods{}
	for i, s := range append([]poolStep{asks}, steps...) {
		selector := ""
		if s.nodeSelector != "" {
			selector = "nodeSelector: {" + s.nodeSelector + "}, "
		}
		req.Observed.Composite.Resource = kube.With(req.GetObserved().GetComposite().GetResource(), kube.Lookup(fixture.YAML(t, fixture.Service(fmt.Sprintf(spec, selector))), "spec"), "spec")
		var clusters []string
		if s.pools != "" {
			clusters = []string{fmt.Sprintf(`{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceCluster, metadata: {name: us-east}, spec: {providerConfigRef: {name: us-east}, pools: []},
	  status: {pools: [%s], reservations: [{uid: me, namespace: team, name: chat, replicas: [{role: w, indexes: [0], generation: %d, nodes: 2, pool: %q}]}]}}`, s.pools, min(i, 1)*9+i/8*i*100, s.pool)}
		}
		rsp, _ := fixture.Reconcile(t, fn, req, map[string][]string{"fleet": clusters})
		if got := fixture.Fatals(rsp); got != "" {
			t.Fatal(got)
		}
		fixture.Observe(req, rsp)
		for k, r := range req.GetObserved().GetResources() {
			req.Observed.Resources[k] = &fnv1.Resource{Resource: readyThere(t, r.GetResource())}
		}
		if diff := cmp.Diff(s.want, podsPlaced(rsp)); diff != "" {
			t.Fatalf("step %d: %s\n-want +got:\n%s", i, s.reason, diff)
		}
	}
}

func podsPlaced(rsp *fnv1.RunFunctionResponse) placedPods {
	desired := rsp.GetDesired().GetResources()
	p := placedPods{}
	if request := kube.Lookup(desired[key.CapacityRequest.String()].GetResource(), "data", "request").GetStringValue(); strings.Contains(request, `"pool":"`) {
		_, p.Request, _ = strings.Cut(request, `"pool":"`)
		p.Request, _, _ = strings.Cut(p.Request, `"`)
	}
	o := desired["cluster/us-east/leaderworkerset/w/0"]
	if o == nil {
		return p
	}
	lws := kube.Lookup(o.GetResource(), "spec", "forProvider", "manifest", "spec").GetStructValue()
	selector := func(template string) string {
		return labelsText(kube.Lookup(lws, "leaderWorkerTemplate", template, "spec", "nodeSelector").GetStructValue())
	}
	p.Leader, p.Worker = selector("leaderTemplate"), selector("workerTemplate")
	return p
}

func labelsText(s *structpb.Struct) string {
	var all []string
	for _, k := range []string{"disk", "gpu"} {
		if v := s.GetFields()[k].GetStringValue(); v != "" {
			all = append(all, k+"="+v)
		}
	}
	return strings.Join(all, ",")
}

// TestPoolIsPinned shows that new pods get the labels of the pool that was granted, beside the node
// selector of the user, and keep them.
func TestPoolIsPinned(t *testing.T) {
	const pools = "{name: a, nodeSelector: {gpu: a, disk: ssd}}, {name: b, nodeSelector: {gpu: b}}"
	pinned := placedPods{Leader: "disk=ssd,gpu=a", Worker: "disk=ssd,gpu=a", Request: "a"}
	waits := pinned
	waits.Request = ""
	runPoolSteps(t, []poolStep{
		{"It starts in the pool of the grant, and the request says so.", "disk: ssd", "a", pools, pinned},
		{"It goes on to run there.", "disk: ssd", "a", pools, pinned},
		{"Another pool of the grant changes nothing.", "disk: ssd", "b", pools, pinned},
		{"Nor does none.", "disk: ssd", "", pools, pinned},
		{"Other labels of the pool change nothing.", "disk: ssd", "a", "{name: a, nodeSelector: {gpu: other}}", pinned},
		{"Nor does a cluster that cannot be read.", "disk: ssd", "", "", pinned},
		{"A user who selects less waits for the cluster, and stays there.", "", "a", pools, pinned},
		{"A user who selects other nodes requests no pool, and the pods wait.", "gpu: b", "a", pools, waits},
		{"They leave the pool with the reservation, and get no other.", "gpu: b", "b", pools, placedPods{Worker: "gpu=b"}},
	})
}

// TestPoolOfWhatRunsBefore shows that pods that run without a pool are not pinned later.
func TestPoolOfWhatRunsBefore(t *testing.T) {
	const pools = "{name: a, nodeSelector: {gpu: a}}"
	runPoolSteps(t, []poolStep{
		{"A version before did not tell the pool.", "", "", pools, placedPods{}},
		{"This one does.", "", "a", pools, placedPods{}},
		{"It stays so.", "", "a", pools, placedPods{}},
	})
}

// TestPoolWithoutLabels shows that pods are not pinned to a pool that has no labels, or that is not
// known.
func TestPoolWithoutLabels(t *testing.T) {
	cases := map[string]string{
		"no labels":     "{name: a}",
		"unknown":       "{name: b, nodeSelector: {gpu: b}}",
		"invalid label": `{name: a, nodeSelector: {gpu: "a b"}}`,
	}
	for name, pools := range cases {
		t.Run(name, func(t *testing.T) {
			runPoolSteps(t, []poolStep{
				{name, "", "a", pools, placedPods{}},
			})
		})
	}
}
