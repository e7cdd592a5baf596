package scheduling_test

import (
	"testing"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/reservation"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling/schedulingtest"
)

// TestRoutedBeforeLeft proves that a cluster is not left for one that has the pods of a service, but
// whose gateway does not know the service so far.
func TestRoutedBeforeLeft(t *testing.T) {
	cases := map[string]struct {
		reason  string
		routed  bool
		refused bool
		// refusedHere tells that it is refused where it is as well.
		refusedHere bool
		stays       bool
		// change changes what is known besides.
		change func(*scheduling.Demand, *scheduling.Snapshot)
	}{
		"Routed":    {reason: "Its gateway leads to the pods.", routed: true},
		"NotRouted": {reason: "Its gateway answers 404.", stays: true},
		"Refused":   {reason: "Its gateway refuses the route.", routed: true, refused: true, stays: true},
		"NoPicker":  {reason: "Its endpoint picker does not run.", routed: true, stays: true, change: func(_ *scheduling.Demand, s *scheduling.Snapshot) { s.States["west"].RouterReady = false }},
		"NoRouter": {reason: "The service has no endpoint picker.", routed: true, change: func(d *scheduling.Demand, s *scheduling.Snapshot) {
			d.HasRouter, s.States["west"].RouterReady = false, false
		}},
		"OwnRoutes": {reason: "Without a fleet route, its endpoint picker suffices.", change: func(d *scheduling.Demand, _ *scheduling.Snapshot) { d.HasFleetRoute = false }},
		"NotSent":   {reason: "The fleet route sends nothing there so far.", routed: true, stays: true, change: func(_ *scheduling.Demand, s *scheduling.Snapshot) { clear(s.ReceivesTraffic) }},
		"NoEntrypoint": {reason: "It has no entrypoint any more.", routed: true, stays: true, change: func(_ *scheduling.Demand, s *scheduling.Snapshot) {
			s.Clusters["west"].Status.Entrypoint = nil
		}},
		"BothRefuse": {reason: "No request is answered here either.", routed: true, refused: true, refusedHere: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			east := schedulingtest.Cluster("east", schedulingtest.Reserved("worker/0"))
			west := schedulingtest.Cluster("west", schedulingtest.Reserved("worker/0"))
			east.Spec.StopPolicy = v1alpha1.StopDrain
			east.Status.Entrypoint, west.Status.Entrypoint = v1alpha1.IPEntrypoint("192.0.2.1", 80), v1alpha1.IPEntrypoint("192.0.2.2", 80)
			snapshot := schedulingtest.Snapshot(east, west)
			snapshot.States["east"], snapshot.States["west"] = schedulingtest.Existing("worker/0"), schedulingtest.Existing("worker/0")
			snapshot.States["west"].HasRoute, snapshot.States["west"].RouteRefused = tc.routed, tc.refused
			snapshot.States["east"].RouteRefused = tc.refusedHere
			snapshot.ReceivesTraffic[naming.FleetBackend(schedulingtest.Service.Name, "west")] = true
			placement := &v1alpha1.Placement{Policy: v1alpha1.PlacementReplicate}
			for _, name := range []string{"east", "west"} {
				placement.Clusters = append(placement.Clusters, placementIn(name).Clusters...)
			}
			demand := &scheduling.Demand{
				ServiceID: schedulingtest.Service, Placement: placement, PodRequirements: gpus(8), HasRouter: true, HasFleetRoute: true,
				Groups: []reservation.ReplicaGroup{{Name: "0", Replicas: oneWorker[0].Replicas}},
			}
			if tc.change != nil {
				tc.change(demand, &snapshot)
			}
			if got := scheduling.Schedule(demand, &snapshot).Assignments[0].Run["worker/0"]; got != tc.stays {
				t.Errorf("%s The former copy stays: got %t, want %t", tc.reason, got, tc.stays)
			}
		})
	}
}
