package scheduling_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling/schedulingtest"
)

// TestExtra proves that what a rollout runs beyond what is wanted needs capacity of its own, that only
// whole groups of it start, and that nothing else goes by it.
func TestExtra(t *testing.T) {
	type decided struct {
		State         v1alpha1.PlacementState
		Run, Partial  []key.ReplicaID
		Requested     []key.ReplicaID
		Pending       []key.ReplicaID
		RunsInRequest []key.ReplicaID
		// Pinned are the replicas whose pods go to one pool.
		Pinned []key.ReplicaID
	}
	one := reservation.ReplicaRequest{Name: "worker/0", Pods: map[string]int64{"worker/leader": 1}}
	two, three, nine := one, one, one
	nine.Name = "worker/9"
	two.Name, two.Required, three.Name, three.Required = "worker/1", true, "worker/2", true
	drained := func(c *v1alpha1.InferenceCluster) { c.Spec.StopPolicy = v1alpha1.StopDrain }
	all := []key.ReplicaID{"worker/0", "worker/1", "worker/2"}
	cases := map[string]struct {
		reason   string
		exist    []key.ReplicaID
		reserved []key.ReplicaID
		change   schedulingtest.Change
		further  []reservation.ReplicaRequest
		// later changes what is wanted and read after the capacity was requested.
		later func(*scheduling.Demand, *scheduling.Snapshot)
		want  decided
	}{
		"Waits": {
			reason: "It has no capacity so far, and the service is placed all the same.", exist: all[:1], reserved: all[:1],
			want: decided{State: v1alpha1.StatePlaced, Run: all[:1], Requested: all, RunsInRequest: all[:1]},
		},
		"Whole": {
			reason: "All of it is reserved.", exist: all[:1], reserved: all,
			want: decided{State: v1alpha1.StatePlaced, Run: all, Requested: all, RunsInRequest: all, Pinned: all[1:]},
		},
		"Part": {
			reason: "A part of it does not start.", exist: all[:1], reserved: all[:2],
			want: decided{State: v1alpha1.StatePlaced, Run: all[:1], Requested: all, RunsInRequest: all[:1]},
		},
		"PartRuns": {
			reason: "A part of it that exists stays.", exist: all[:2], reserved: all[:2],
			want: decided{State: v1alpha1.StatePlaced, Run: all[:2], Partial: all[1:2], Requested: all, RunsInRequest: all[:2]},
		},
		"Leaves": {
			reason: "It stays as long as the rest, and nothing is added.", exist: all[:2], reserved: all, change: drained,
			want: decided{State: v1alpha1.StateLeaving, Run: all[:2], Partial: all[1:2], Requested: all[:2], RunsInRequest: all[:2]},
		},
		"WantedFirst": {
			reason: "A wanted replica has no capacity so far.", exist: all[:1], reserved: all[:1], further: []reservation.ReplicaRequest{nine},
			want: decided{State: v1alpha1.StatePlaced, Run: all[:1], Requested: []key.ReplicaID{"worker/0", "worker/9"}, Pending: []key.ReplicaID{"worker/9"}, RunsInRequest: all[:1]},
		},
		"Unread": {
			reason: "Its capacity was requested, and no answer is read.", exist: all[:1], reserved: all[:1],
			later: func(_ *scheduling.Demand, s *scheduling.Snapshot) { s.Unanswered = map[string]bool{"east": true} },
			want:  decided{State: v1alpha1.StatePlaced, Run: all[:1], Requested: all, RunsInRequest: all[:1]},
		},
		"Changed": {
			reason: "What was reserved is for other pods, and nobody waits for those that are wanted now.", exist: all[:1], reserved: all,
			later: func(d *scheduling.Demand, _ *scheduling.Snapshot) { d.PodRequirements = gpus(2) },
			want:  decided{State: v1alpha1.StatePlaced, Run: all[:1], Requested: all, RunsInRequest: all[:1]},
		},
		"Absent": {
			reason: "The service does not run there.", reserved: nil,
			want: decided{State: v1alpha1.StatePending, Requested: all[:1], Pending: all[:1]},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			east := schedulingtest.Cluster("east", schedulingtest.Reserved(tc.reserved...))
			if tc.change != nil {
				tc.change(east)
			}
			for i := range east.Status.Reservations[0].Replicas {
				east.Status.Reservations[0].Replicas[i].Generation, east.Status.Reservations[0].Replicas[i].Pool = 1, "h100"
			}
			east.Status.Pools[0].NodeSelector = map[string]string{"gpu": "h100"}
			snapshot := schedulingtest.Snapshot(east)
			if len(tc.exist) > 0 {
				snapshot.States["east"] = schedulingtest.Existing(tc.exist...)
			}
			demand := &scheduling.Demand{
				ServiceID: schedulingtest.Service, Placement: placementIn("east"), PodRequirements: gpus(1),
				Groups: []reservation.ReplicaGroup{{Name: "0", Replicas: append([]reservation.ReplicaRequest{one}, tc.further...)}},
				Extra:  map[string][]reservation.ReplicaGroup{"east": {{Name: "worker/1", Replicas: []reservation.ReplicaRequest{two, three}}}},
			}
			snapshot.Request = scheduling.Schedule(demand, &snapshot).Request
			for i := range snapshot.Request.Clusters["east"].Groups {
				for j := range snapshot.Request.Clusters["east"].Groups[i].Replicas {
					snapshot.Request.Clusters["east"].Groups[i].Replicas[j].Generation = 1
				}
			}
			if tc.later != nil {
				tc.later(demand, &snapshot)
			}
			r := scheduling.Schedule(demand, &snapshot)
			if diff := cmp.Diff([]reservation.ReplicaRequest{two, three}, demand.Extra["east"][0].Replicas); diff != "" {
				t.Errorf("what is demanded has changed: -want, +got:\n%s", diff)
			}
			a, at := r.Assignments[0], r.Request.Clusters["east"]
			got := decided{State: a.State, Run: slices.Sorted(maps.Keys(a.Run)), Partial: slices.Sorted(maps.Keys(a.Partial)), Pending: a.Pending, RunsInRequest: at.Running, Pinned: slices.Sorted(maps.Keys(a.Pins))}
			for r := range a.Run {
				if note := a.Notes[r].PodsHash; !a.Held[r] && note != reservation.PodsHashes(demand.PodRequirements, oneWorker)["worker/0"] {
					t.Errorf("%s The object of %s notes %q.", tc.reason, r, note)
				}
			}
			for _, g := range at.Groups {
				if len(g.Replicas) == 0 {
					t.Errorf("%s Nothing is requested of group %s, which the request has.", tc.reason, g.Name)
				}
			}
			for _, r := range reservation.Replicas(at.Groups) {
				got.Requested = append(got.Requested, r.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestExtraNotWanted proves how long the pods of a rollout stay where nothing is wanted any more. The service has moved
// from east to west, and east has a replica of the rollout.
func TestExtraNotWanted(t *testing.T) {
	type decided struct {
		State           v1alpha1.PlacementState
		Reason, Message string
		Run             []key.ReplicaID
		Serves          bool
	}
	drain := func(s *scheduling.Snapshot) { s.Clusters["east"].Spec.StopPolicy = v1alpha1.StopDrain }
	const leaves = "no replica is wanted here any more, and the cluster is left once no gateway sends requests to it"
	extra := []key.ReplicaID{"worker/1"}
	cases := map[string]struct {
		reason  string
		exist   []key.ReplicaID
		noExtra bool
		noRoute bool
		// stopped tells that the user wants no group.
		stopped bool
		change  func(*scheduling.Snapshot)
		want    decided
	}{
		"Stays": {reason: "A gateway may send requests there, and west answers.", exist: extra, change: func(*scheduling.Snapshot) {}, want: decided{
			State: v1alpha1.StateLeaving, Reason: scheduling.ReasonNotNeeded, Message: leaves, Run: extra,
		}},
		"NoPicker": {reason: "Nothing else answers, because the endpoint picker in west does not run.", exist: extra, change: func(s *scheduling.Snapshot) {
			s.States["west"].RouterReady = false
		}, want: decided{State: v1alpha1.StateLeaving, Reason: scheduling.ReasonNotNeeded, Message: leaves, Run: extra, Serves: true}},
		"NotReady": {reason: "Nothing else answers, because nothing is ready in west.", exist: extra, change: func(s *scheduling.Snapshot) {
			s.States["west"].Ready = nil
		}, want: decided{State: v1alpha1.StateLeaving, Reason: scheduling.ReasonNotNeeded, Message: leaves, Run: extra, Serves: true}},
		"OtherForgotten": {reason: "What is ready in west gets no requests, because west is abandoned.", exist: extra, change: func(s *scheduling.Snapshot) {
			drain(s)
			s.Clusters["west"].Spec.StopPolicy = v1alpha1.StopAbandon
		}, want: decided{State: v1alpha1.StateLeaving, Reason: scheduling.ReasonNotNeeded, Message: leaves, Run: extra, Serves: true}},
		"NoRequests": {reason: "No gateway sends requests there.", exist: extra, change: func(s *scheduling.Snapshot) {
			s.MayReceiveTraffic = nil
		}, want: decided{State: v1alpha1.StateNotPlaced, Reason: scheduling.ReasonNotNeeded, Message: "it runs in west"}},
		"NoFleetRoute": {reason: "No route leads to all clusters, and west answers.", exist: extra, noRoute: true, change: func(*scheduling.Snapshot) {}, want: decided{
			State: v1alpha1.StateNotPlaced, Reason: scheduling.ReasonNotNeeded, Message: "it runs in west",
		}},
		"NoFleetRouteNotReady": {reason: "Nothing else answers, so what serves stays until something does.", exist: extra, noRoute: true, change: func(s *scheduling.Snapshot) {
			s.States["west"].Ready = nil
		}, want: decided{
			State: v1alpha1.StateLeaving, Reason: scheduling.ReasonNotNeeded, Run: extra, Serves: true,
			Message: "no replica is wanted here any more, and the cluster is left once another one answers",
		}},
		"NoFleetRouteStopped": {reason: "The user wants nothing, so nothing else ever answers.", exist: extra, noRoute: true, stopped: true, change: func(*scheduling.Snapshot) {}, want: decided{
			State: v1alpha1.StateNotPlaced, Reason: scheduling.ReasonNotNeeded, Message: "it runs in west",
		}},
		"Abandoned": {reason: "Its Objects are not orphaned so far: deleting them would delete what runs.", exist: extra, change: func(s *scheduling.Snapshot) {
			s.Clusters["east"].Spec.StopPolicy = v1alpha1.StopAbandon
		}, want: decided{State: v1alpha1.StateLeaving, Reason: scheduling.ReasonAbandoned, Message: "the cluster is abandoned", Run: extra}},
		"Forgotten": {reason: "Its Objects are orphaned.", exist: extra, change: func(s *scheduling.Snapshot) {
			s.Clusters["east"].Spec.StopPolicy = v1alpha1.StopAbandon
			s.States["east"].Orphaned = true
		}, want: decided{State: v1alpha1.StateNotPlaced, Reason: scheduling.ReasonAbandoned, Message: "the cluster is abandoned"}},
		"NoRollout": {reason: "Nothing is left there.", noExtra: true, change: func(*scheduling.Snapshot) {}, want: decided{
			State: v1alpha1.StateNotPlaced, Reason: scheduling.ReasonNotNeeded, Message: "it runs in west",
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			snapshot := schedulingtest.Snapshot(schedulingtest.Cluster("east"), schedulingtest.Cluster("west", schedulingtest.Reserved("worker/0")))
			snapshot.Request.Homes = map[key.GroupID]reservation.Home{"0": {Cluster: "west", Epoch: 2, Started: true}}
			snapshot.States["east"], snapshot.States["west"] = schedulingtest.Existing(tc.exist...), schedulingtest.Existing("worker/0")
			snapshot.States["west"].Notes = scheduling.Notes{"worker/0": {HomeEpoch: 2}}
			backend := naming.FleetBackend(schedulingtest.Service.Name, "east")
			snapshot.ReceivesTraffic[backend], snapshot.MayReceiveTraffic = true, map[string]bool{backend: true}
			snapshot.ReceivesTraffic[naming.FleetBackend(schedulingtest.Service.Name, "west")] = true
			tc.change(&snapshot)
			demand := &scheduling.Demand{
				ServiceID: schedulingtest.Service, Placement: inUS(v1alpha1.PlacementFailover), PodRequirements: gpus(8), Groups: oneWorker, HasRouter: true, HasFleetRoute: !tc.noRoute,
				Extra: map[string][]reservation.ReplicaGroup{"east": {{Name: "worker/1", Replicas: []reservation.ReplicaRequest{{Name: "worker/1", Pods: map[string]int64{"worker/leader": 1}}}}}},
			}
			if tc.stopped {
				demand.Groups = nil
			}
			if tc.noExtra {
				demand.Extra = nil
			}
			for _, a := range scheduling.Schedule(demand, &snapshot).Assignments {
				if a.Name != "east" {
					continue
				}
				got := decided{a.State, a.Reason, a.Message, slices.Sorted(maps.Keys(a.Run)), a.Serves}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
				}
			}
		})
	}
}

// TestExtraInTheWay proves that replicas that the service is scaled down by give their capacity to those that are wanted, once another
// cluster answers. Replica 0 is to move from east, which is drained, to west. West is full with replica 1, which nobody wants any more.
func TestExtraInTheWay(t *testing.T) {
	type decided struct {
		State  v1alpha1.PlacementState
		Run    []key.ReplicaID
		Serves bool
	}
	one := []key.ReplicaID{"worker/1"}
	cases := map[string]struct {
		reason  string
		noRoute bool
		// half tells that what is wanted has a second role, of which nothing is ready, and granted that it has room in west.
		half, granted bool
		change        func(*scheduling.Snapshot)
		want          decided
	}{
		"Receives": {reason: "Gateways may send requests there.", change: func(*scheduling.Snapshot) {}, want: decided{State: v1alpha1.StatePending, Run: one}},
		"GivesWay": {reason: "They do not any more.", change: func(s *scheduling.Snapshot) { s.MayReceiveTraffic = nil }, want: decided{State: v1alpha1.StatePending}},
		"NoRoute":  {reason: "No route leads to all clusters, and east answers.", noRoute: true, change: func(s *scheduling.Snapshot) { s.MayReceiveTraffic = nil }, want: decided{State: v1alpha1.StatePending}},
		"Alone": {reason: "Nothing is ready in east. What is ready in west serves.", change: func(s *scheduling.Snapshot) { s.States["east"].Ready = nil },
			want: decided{State: v1alpha1.StatePending, Run: one, Serves: true}},
		"AloneWithoutRequests": {reason: "It is to get requests.", change: func(s *scheduling.Snapshot) { s.States["east"].Ready, s.MayReceiveTraffic = nil, nil },
			want: decided{State: v1alpha1.StatePending, Run: one, Serves: true}},
		"Refused": {reason: "The gateways of east refuse the service, and those of west do not.", change: func(s *scheduling.Snapshot) {
			s.States["east"].HasRoute, s.States["east"].RouteRefused, s.MayReceiveTraffic = true, true, nil
		}, want: decided{State: v1alpha1.StatePending, Run: one, Serves: true}},
		"Half": {reason: "Decode without prefill answers nobody in east.", half: true, change: func(s *scheduling.Snapshot) {
			s.States["east"].Present["prefill/0"], s.MayReceiveTraffic = true, nil
		}, want: decided{State: v1alpha1.StatePending, Run: one, Serves: true}},
		"Granted": {reason: "What is wanted has room in west, and is not there yet.", granted: true, change: func(s *scheduling.Snapshot) { s.States["east"].Ready = nil },
			want: decided{State: v1alpha1.StatePlaced, Run: []key.ReplicaID{"worker/0", "worker/1"}, Serves: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			full := func(c *v1alpha1.InferenceCluster) { c.Status.Pools[0].Free = nil }
			drained := func(c *v1alpha1.InferenceCluster) { c.Spec.StopPolicy = v1alpha1.StopDrain }
			inWest := one
			if tc.granted {
				inWest = []key.ReplicaID{"worker/0", "worker/1"}
			}
			snapshot := schedulingtest.Snapshot(schedulingtest.Cluster("east", schedulingtest.Reserved("worker/0"), drained), schedulingtest.Cluster("west", schedulingtest.Reserved(inWest...), full))
			snapshot.Request.Homes = map[key.GroupID]reservation.Home{"worker/0": {Cluster: "east", Epoch: 2, Started: true}}
			snapshot.States["east"], snapshot.States["west"] = schedulingtest.Existing("worker/0"), schedulingtest.Existing("worker/1")
			snapshot.States["east"].Notes = scheduling.Notes{"worker/0": {HomeEpoch: 2}}
			snapshot.MayReceiveTraffic = map[string]bool{}
			for _, cluster := range []string{"east", "west"} {
				backend := naming.FleetBackend(schedulingtest.Service.Name, cluster)
				snapshot.ReceivesTraffic[backend], snapshot.MayReceiveTraffic[backend] = true, true
			}
			tc.change(&snapshot)
			wanted := []reservation.ReplicaGroup{{Name: "worker/0", Replicas: []reservation.ReplicaRequest{{Name: "worker/0", Pods: map[string]int64{"worker/leader": 1}}}}}
			if tc.half {
				wanted[0].Replicas = append(wanted[0].Replicas, reservation.ReplicaRequest{Name: "prefill/0", Pods: map[string]int64{"worker/leader": 1}})
			}
			demand := &scheduling.Demand{
				ServiceID: schedulingtest.Service, Placement: inUS(v1alpha1.PlacementSpread), PodRequirements: gpus(8), Groups: wanted, HasRouter: true, HasFleetRoute: !tc.noRoute,
				Extra: map[string][]reservation.ReplicaGroup{"west": {{Name: "worker/1", Replicas: []reservation.ReplicaRequest{{Name: "worker/1", Pods: map[string]int64{"worker/leader": 1}}}}}},
			}
			for _, a := range scheduling.Schedule(demand, &snapshot).Assignments {
				if a.Name != "west" {
					continue
				}
				got := decided{a.State, slices.Sorted(maps.Keys(a.Run)), a.Serves}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
				}
			}
		})
	}
}

func placementIn(cluster string) *v1alpha1.Placement {
	return &v1alpha1.Placement{Policy: v1alpha1.PlacementReplicate, Clusters: []v1alpha1.PlacementCluster{{Name: cluster, InferenceClusterRef: &v1alpha1.InferenceClusterRef{Name: cluster}}}}
}
