package service

import (
	"maps"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
	"github.com/fusioninfer/function-inferenceservice/test/fixture"
	"github.com/fusioninfer/function-inferenceservice/test/function"
)

// TestHomeComesBack shows that a service that moves to west and back to east keeps what serves in west
// until its Objects in east were written anew. A cache may still have the former ones, which were
// ready when they were deleted.
func TestHomeComesBack(t *testing.T) {
	fn := function.Start(t)
	req := fixture.Request(t, fixture.Service("replicas: 1\n"+fixture.TwoNodes+"placement: "+eastThenWest), "")
	former := map[string]*fnv1.Resource{}
	const east = "cluster/us-east/"
	steps := []struct {
		reason     string
		east, west string
		// stale tells that the cache has the former Objects in east.
		stale bool
		want  []string
	}{
		{"The service requests capacity.", memberOf("us-east", "None", 0), memberOf("us-west", "None", 0), false, nil},
		{"It starts in east.", memberOf("us-east", "None", 1), memberOf("us-west", "None", 0), false, []string{"us-east"}},
		{"East is drained.", memberOf("us-east", "Drain", 1), memberOf("us-west", "None", 0), false, []string{"us-east"}},
		{"It moves to west.", memberOf("us-east", "Drain", 1), memberOf("us-west", "None", 9), false, []string{"us-east", "us-west"}},
		{"It has left east.", memberOf("us-east", "Drain", 1), memberOf("us-west", "None", 9), false, []string{"us-west"}},
		{"West is drained, and the cache still has what was in east.", memberOf("us-east", "None", 9), memberOf("us-west", "Drain", 9), true, []string{"us-east", "us-west"}},
		{"That is no copy.", memberOf("us-east", "None", 9), memberOf("us-west", "Drain", 9), true, []string{"us-east", "us-west"}},
		{"It was written in east since, and is ready.", memberOf("us-east", "None", 9), memberOf("us-west", "Drain", 9), false, []string{"us-east"}},
	}
	for i, s := range steps {
		if s.stale {
			maps.Copy(req.GetObserved().GetResources(), former)
		}
		rsp, _ := fixture.Reconcile(t, fn, req, map[string][]string{"fleet": {s.east, s.west}})
		if got := fixture.Fatals(rsp); got != "" {
			t.Fatal(got)
		}
		if diff := cmp.Diff(s.want, remoteClusters(rsp)); diff != "" {
			t.Fatalf("step %d: %s\n-want +got:\n%s", i, s.reason, diff)
		}
		maps.DeleteFunc(req.GetObserved().GetResources(), func(k string, _ *fnv1.Resource) bool { return rsp.GetDesired().GetResources()[k] == nil })
		fixture.Observe(req, rsp)
		for k, r := range req.GetObserved().GetResources() {
			req.Observed.Resources[k] = &fnv1.Resource{Resource: readyThere(t, r.GetResource())}
			if i == 1 && strings.HasPrefix(k, east) {
				former[k] = proto.CloneOf(req.GetObserved().GetResources()[k])
			}
		}
		xr := proto.CloneOf(req.GetObserved().GetComposite().GetResource())
		req.Observed.Composite.Resource = kube.With(xr, kube.Lookup(rsp.GetDesired().GetComposite().GetResource(), "status"), "status")
	}
	if len(former) == 0 {
		t.Error("nothing was in east")
	}
}

// TestForgedHome shows that a service settles, and can still move, whatever number of homes somebody writes into its capacity request.
// A request that changes with each call has every cluster that it names called again and again.
func TestForgedHome(t *testing.T) {
	fn := function.Start(t)
	text := []string{"data", reservation.RequestKey}
	for name, epoch := range map[string]int64{"Negative": -3, "Last": math.MaxInt64, "BeforeTheLast": 1<<50 - 1} {
		t.Run(name, func(t *testing.T) {
			req := fixture.Request(t, fixture.Service("replicas: 1\n"+fixture.TwoNodes+"placement: "+eastThenWest), "")
			request := ""
			call := func(east, west string) *fnv1.RunFunctionResponse {
				rsp, _ := fixture.Reconcile(t, fn, req, map[string][]string{"fleet": {east, west}})
				if got := fixture.Fatals(rsp); got != "" {
					t.Fatal(got)
				}
				request = kube.Lookup(rsp.GetDesired().GetResources()[key.CapacityRequest.String()].GetResource(), text...).GetStringValue()
				maps.DeleteFunc(req.GetObserved().GetResources(), func(k string, _ *fnv1.Resource) bool { return rsp.GetDesired().GetResources()[k] == nil })
				fixture.Observe(req, rsp)
				for k, r := range req.GetObserved().GetResources() {
					req.Observed.Resources[k] = &fnv1.Resource{Resource: readyThere(t, r.GetResource())}
				}
				return rsp
			}
			east, west := memberOf("us-east", "None", 99), memberOf("us-west", "None", 99)
			call(memberOf("us-east", "None", 0), memberOf("us-west", "None", 0))
			for range 3 {
				call(memberOf("us-east", "None", 1), memberOf("us-west", "None", 0))
			}
			forged, err := reservation.DecodeRequest(request)
			if err != nil {
				t.Fatal(err)
			}
			forged.Homes["0"] = reservation.Home{Cluster: "us-north", Epoch: epoch}
			written, err := reservation.EncodeRequest(forged)
			if err != nil {
				t.Fatal(err)
			}
			o := req.GetObserved().GetResources()[key.CapacityRequest.String()].GetResource()
			req.Observed.Resources[key.CapacityRequest.String()] = &fnv1.Resource{Resource: kube.With(o, structpb.NewStringValue(written), text...)}
			for range 4 {
				call(east, west)
			}
			settled := request
			call(east, west)
			if diff := cmp.Diff(settled, request); diff != "" {
				t.Errorf("the request changes with each call\n-before +after:\n%s", diff)
			}
			var rsp *fnv1.RunFunctionResponse
			for range 6 {
				rsp = call(memberOf("us-east", "Drain", 99), west)
			}
			if diff := cmp.Diff([]string{"us-west"}, remoteClusters(rsp)); diff != "" {
				t.Errorf("the service does not leave a cluster that is drained\n-want +got:\n%s", diff)
			}
		})
	}
}
