package service

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/api/resource"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/test/fixture"
	"github.com/fusioninfer/function-inferenceservice/test/function"
)

// A forger changes the spec of its service, and writes its capacity request as it likes. The cluster
// follows the request.
type forger struct {
	t      *testing.T
	fn     fixture.Function
	rand   *rand.Rand
	req    *fnv1.RunFunctionRequest
	ledger reservation.Ledger
	// gpus that the spec wants, and that the pod runs with.
	gpus, runs int64
	// written are all requests so far.
	written []string
	log     []string
}

// TestForgedRequests shows that no pod starts or grows beyond what the cluster has reserved, whatever
// somebody writes into the capacity request.
func TestForgedRequests(t *testing.T) {
	fn := function.Start(t)
	started, grown := 0, 0
	for seed := range 60 {
		f := &forger{t: t, fn: fn, rand: rand.New(rand.NewPCG(uint64(seed), 1)), gpus: 1}
		f.req = fixture.Request(t, fixture.Service(f.spec()), "")
		for range 14 {
			if f.rand.IntN(2) == 0 {
				f.edit()
			}
			if f.rand.IntN(2) == 0 {
				f.forge()
			}
			if f.rand.IntN(3) > 0 {
				f.reserve()
			}
			before := f.runs
			f.call()
			granted := f.granted()
			f.log = append(f.log, fmt.Sprintf("wants %d, runs %d, granted %d", f.gpus, f.runs, granted))
			if f.runs > before && f.runs > granted {
				t.Fatalf("seed %d: the pod goes from %d to %d GPUs, and %d are reserved: %q", seed, before, f.runs, granted, f.log)
			}
			switch {
			case before == 0 && f.runs > 0:
				started++
			case f.runs > before:
				grown++
			}
		}
	}
	t.Logf("%d pods started and %d grew", started, grown)
	if started < 20 || grown < 10 {
		t.Errorf("%d pods started and %d grew: want many of each", started, grown)
	}
}

func (f *forger) spec() string {
	return fmt.Sprintf("roles: [{name: w, componentType: worker, replicas: 1, template: {spec: {containers: [{name: engine, image: v1, command: [vllm, serve, /m], resources: {limits: {nvidia.com/gpu: %d}}}]}}}]\nplacement: {policy: Failover, clusterSelector: {}}", f.gpus)
}

// edit changes the spec.
func (f *forger) edit() {
	f.gpus = 1 << f.rand.IntN(4)
	xr := f.req.GetObserved().GetComposite().GetResource()
	f.req.Observed.Composite.Resource = kube.With(xr, kube.Lookup(fixture.YAML(f.t, fixture.Service(f.spec())), "spec"), "spec")
}

func (f *forger) request() *reservation.CapacityRequest {
	o := f.req.GetObserved().GetResources()[key.CapacityRequest.String()]
	if o == nil {
		return nil
	}
	r, err := reservation.DecodeRequest(kube.Lookup(o.GetResource(), "data", reservation.RequestKey).GetStringValue())
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}

// forge writes a request: an earlier one, or one with other pods, generations or notes.
func (f *forger) forge() {
	r := f.request()
	if r == nil {
		return
	}
	at := r.Clusters["us-east"]
	text := ""
	switch f.rand.IntN(5) {
	case 0:
		text = f.written[f.rand.IntN(len(f.written))]
	case 1: // As if nothing had changed.
		f.resize(r, f.gpus)
	case 2:
		f.resize(r, 1)
		r.Generation = 1000
		for _, g := range at.Groups {
			for i := range g.Replicas {
				g.Replicas[i].Generation = 1000
			}
		}
	case 3:
		f.resize(r, 1<<f.rand.IntN(4))
		for _, g := range at.Groups {
			for i := range g.Replicas {
				g.Replicas[i].Held, g.Replicas[i].Generation = f.rand.IntN(2) == 0, 0
			}
		}
	case 4:
		r.Clusters = nil
	}
	if text == "" {
		var err error
		if text, err = reservation.EncodeRequest(r); err != nil {
			f.t.Fatal(err)
		}
	}
	f.log = append(f.log, "forged "+text)
	o := f.req.GetObserved().GetResources()[key.CapacityRequest.String()].GetResource()
	f.req.Observed.Resources[key.CapacityRequest.String()] = &fnv1.Resource{Resource: kube.With(o, structpb.NewStringValue(text), "data", reservation.RequestKey)}
}

// resize changes how many GPUs all pods of a request want.
func (f *forger) resize(r *reservation.CapacityRequest, gpus int64) {
	for _, name := range slices.Sorted(maps.Keys(r.PodRequirements)) {
		r.PodRequirements[name] = capacity.PodRequirements{Requests: capacity.Resources{"nvidia.com/gpu": gpus * 1000}}
	}
}

// reserve lets the cluster read the request.
func (f *forger) reserve() {
	r := f.request()
	if r == nil {
		return
	}
	pool := capacity.NewPool("p", nil, []capacity.NodeClass{{Count: 1, Free: capacity.Resources{"nvidia.com/gpu": 4000}}})
	f.ledger = reservation.Reserve(reservation.Input{Cluster: "us-east", Free: capacity.Free{Pools: []capacity.Pool{pool}}, Ledger: f.ledger, Requests: []reservation.CapacityRequest{*r}}).Ledger
}

// granted returns the GPUs that are reserved.
func (f *forger) granted() int64 {
	all := int64(0)
	for i := range f.ledger.Services {
		resources, _ := f.ledger.Services[i].Usage()
		all += resources["nvidia.com/gpu"] / 1000
	}
	return all
}

// call calls the function with the answer of the cluster, and applies what it wants.
func (f *forger) call() {
	c := v1alpha1.InferenceCluster{Status: v1alpha1.InferenceClusterStatus{}}
	for i := range f.ledger.Services {
		s := &f.ledger.Services[i]
		c.Status.Reservations = append(c.Status.Reservations, v1alpha1.Reservation{UID: s.UID, Namespace: s.Namespace, Name: s.Name, Replicas: scheduling.GrantsToStatus(s)})
	}
	reservations, err := json.Marshal(c.Status.Reservations)
	if err != nil {
		f.t.Fatal(err)
	}
	cluster := fmt.Sprintf(`{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceCluster, metadata: {name: us-east}, spec: {providerConfigRef: {name: us-east}, pools: []},
	  status: {pools: [{name: p, nodeCount: 1, capacity: {nvidia.com/gpu: 4}, free: [{nodeCount: 1, resources: {nvidia.com/gpu: 4}}]}], reservations: %s}}`, reservations)
	rsp, _ := fixture.Reconcile(f.t, f.fn, f.req, map[string][]string{"fleet": {cluster}})
	if got := fixture.Fatals(rsp); got != "" {
		f.t.Fatal(got)
	}
	maps.DeleteFunc(f.req.GetObserved().GetResources(), func(k string, _ *fnv1.Resource) bool { return rsp.GetDesired().GetResources()[k] == nil })
	fixture.Observe(f.req, rsp)
	for k, r := range f.req.GetObserved().GetResources() {
		f.req.Observed.Resources[k] = &fnv1.Resource{Resource: readyThere(f.t, r.GetResource())}
	}
	if o := rsp.GetDesired().GetResources()[key.CapacityRequest.String()]; o != nil {
		f.written = append(f.written, kube.Lookup(o.GetResource(), "data", reservation.RequestKey).GetStringValue())
	}
	o := rsp.GetDesired().GetResources()["cluster/us-east/leaderworkerset/w/0"]
	if o == nil {
		f.runs = 0
		return
	}
	template := kube.Lookup(o.GetResource(), "spec", "forProvider", "manifest", "spec", "leaderWorkerTemplate", "workerTemplate", "spec").GetStructValue()
	engine := template.GetFields()["containers"].GetListValue().GetValues()[0].GetStructValue()
	gpus := resource.MustParse(fmt.Sprint(kube.Lookup(engine, "resources", "limits", "nvidia.com/gpu").AsInterface()))
	f.runs = gpus.Value()
}
