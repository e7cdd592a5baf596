package service

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

func FuzzBound(f *testing.F) {
	f.Add([]byte(`{"a":[1,true,null,"x",{"b":{}}],"":[[[[]]]]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		v := &structpb.Value{}
		if v.UnmarshalJSON(in) != nil {
			return
		}
		if size := proto.Size(v); bound(v) < size {
			t.Errorf("%s has %d bytes, and the bound is %d", in, size, bound(v))
		}
	})
}

// TestComingObjects proves that the size of an answer counts the Objects that may come later, and none
// that is rendered already.
func TestComingObjects(t *testing.T) {
	local, east := scheduling.Target{Namespace: "llm"}, scheduling.Target{Cluster: "east"}
	cases := map[string]struct {
		reason   string
		cluster  plan.ClusterPlan
		replicas []plan.Replica
		want     int
	}{
		"Local":    {reason: "Nothing comes later beside the XR.", cluster: plan.ClusterPlan{Target: local}, replicas: []plan.Replica{{PodsRead: 2}}},
		"Pods":     {reason: "Pods may fail in another cluster.", cluster: plan.ClusterPlan{Target: east}, replicas: []plan.Replica{{}}, want: 8 << 10},
		"Observed": {reason: "Some of them are observed.", cluster: plan.ClusterPlan{Target: east}, replicas: []plan.Replica{{PodsRead: 2}, {PodsRead: 1}}, want: 5 << 10},
		"Kueue":    {reason: "Each replica gets a Workload.", cluster: plan.ClusterPlan{Target: east, LocalQueue: "q"}, replicas: []plan.Replica{{}, {Workload: "w"}}, want: 9 << 10},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.cluster.Groups = []plan.Group{{Replicas: tc.replicas}}
			if got := laterObjects(&plan.Plan{Clusters: []plan.ClusterPlan{tc.cluster}}); got != tc.want {
				t.Errorf("%s want %d bytes, got %d", tc.reason, tc.want, got)
			}
		})
	}
}

// TestMaxRequestOf proves that the request of a service which moves may name each replica in two clusters.
func TestMaxRequestOf(t *testing.T) {
	for existing, want := range map[int]int{0: 393216, 1: 393472, 1500: 777216, 9000: 1032192} {
		if got := maxRequestOf(existing); got != want {
			t.Errorf("with %d replicas: got %d, want %d", existing, got, want)
		}
	}
}

// TestTooManyOfOne proves that the message names no number of groups, or of replicas, where none would fit.
func TestTooManyOfOne(t *testing.T) {
	of := []*plan.Role{{Name: "w", Replicas: 2}}
	for name, p := range map[string]*plan.Plan{
		"Group":   {Service: naming.Identity{Grouped: true}, Roles: of, Clusters: []plan.ClusterPlan{{Groups: make([]plan.Group, 1)}}},
		"Replica": {Roles: of},
	} {
		got := responseTooLarge(p, []roleSize{{bytes: composite.MaxResponse, replicas: 2}}, 2*composite.MaxResponse)
		if got.Field != "spec.roles" || got.BadValue != "2 replicas" || !strings.Contains(got.Detail, "3 times fewer replicas") {
			t.Errorf("%s: want 3 times fewer than 2 replicas in spec.roles, got %v", name, got)
		}
	}
}

// TestTooManyNowhere proves that an answer that is too large without any group is refused, too: what functions before this one want
// counts.
func TestTooManyNowhere(t *testing.T) {
	p := &plan.Plan{Service: naming.Identity{Grouped: true}, Roles: []*plan.Role{{Name: "w"}}}
	if got := responseTooLarge(p, []roleSize{{}}, 2*composite.MaxResponse); got.Field != "spec.replicas" || got.BadValue != 0 {
		t.Errorf("want 0 of spec.replicas to be refused, got %v", got)
	}
}

// TestUnreadableRequest proves that a service is refused whose capacity request no cluster would read.
func TestUnreadableRequest(t *testing.T) {
	for clusters, want := range map[int]string{
		1024: "",
		1025: "makes a capacity request that no cluster would read: invalid capacity request: there are 1025 clusters: at most 1024 are allowed. Use fewer replicas or fewer clusters, or simpler pods",
	} {
		req := reservation.CapacityRequest{Namespace: "ns", Name: "svc", UID: "uid", Clusters: map[string]reservation.ClusterRequest{}}
		for i := range clusters {
			name := fmt.Sprintf("c%d", i)
			req.Clusters[name] = reservation.ClusterRequest{Name: name, Namespace: "ns"}
		}
		text, err := reservation.EncodeRequest(&req)
		if err != nil {
			t.Fatal(err)
		}
		o, err := structpb.NewStruct(map[string]any{"data": map[string]any{reservation.RequestKey: text}})
		if err != nil {
			t.Fatal(err)
		}
		p := &plan.Plan{Schedule: &scheduling.Result{Request: &req}}
		errs := checkRequestSize(p, []kube.Object{{Key: key.CapacityRequest, Resource: o}})
		if got := fmt.Sprint(errs); (want == "") != (len(errs) == 0) || !strings.Contains(got, want) {
			t.Errorf("%d clusters: want %q, got %s", clusters, want, got)
		}
	}
}
