package observe

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
	lws "sigs.k8s.io/lws/api/leaderworkerset/v1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/plan"
)

const (
	lws0   = "leaderworkerset/engine/0"
	lws1   = "leaderworkerset/engine/1"
	pgKey  = "podgroup"
	svcKey = "service"
)

// engine is the component of story 3.
func engine(phase v1alpha1.ComponentPhase, ready, pods int32, minute int) v1alpha1.ComponentStatus {
	c := v1alpha1.ComponentStatus{DesiredReplicas: 2, ReadyReplicas: ready, NodesPerReplica: 4, TotalPods: 8, ReadyPods: pods, Phase: phase}
	if minute >= 0 {
		c.LastUpdateTime = ptrTo(at(minute))
	}
	return c
}

// replicaPods are the four pods of a replica, the last of them edited.
func replicaPods(replica int, last ...edit[corev1.Pod]) []*corev1.Pod {
	var all []*corev1.Pod
	for i := range 3 {
		all = append(all, enginePod("engine", replica, i))
	}
	return append(all, enginePod("engine", replica, 3, last...))
}

// running is story 3 as observed when all of it is ready.
func running(s *scene) *scene {
	return s.see(svcKey, map[string]any{"kind": "Service"}).
		see(pgKey, podGroup("qwen", volcano.PodGroupRunning)).
		see(lws0, workload("qwen-engine-0")).
		see(lws1, workload("qwen-engine-1"))
}

// conditionLine is a condition in one line.
func conditionLine(v Verdict, name string) string {
	for _, c := range v.Conditions {
		if c.Type == name {
			return strings.TrimSuffix(fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message), ": ")
		}
	}
	return "absent"
}

func TestJudgeComponents(t *testing.T) {
	type want struct {
		component v1alpha1.ComponentStatus
		workloads string
		gang      string
		ready     []string
		settled   bool
	}
	cases := map[string]struct {
		reason string
		scene  func(s *scene)
		want   want
	}{
		"FirstReconcile": {
			reason: "Nothing exists: the component is Pending, with nothing to date it by.",
			scene:  func(*scene) {},
			want: want{
				component: engine(v1alpha1.ComponentPhasePending, 0, 0, -1),
				workloads: "False NotCreated: not created yet: Service qwen, LeaderWorkerSet qwen-engine-0, LeaderWorkerSet qwen-engine-1",
				gang:      "False NotCreated: PodGroup qwen: not created yet",
			},
		},
		"JustCreated": {
			reason: "An object without a status is on its way, not unknown.",
			scene: func(s *scene) {
				w := workload("qwen-engine-0")
				w.Status.ObservedGeneration, w.Status.Conditions, w.Status.ReadyReplicas = 0, nil, 0
				s.see(lws0, w)
			},
			want: want{
				component: engine(v1alpha1.ComponentPhaseDeploying, 0, 0, 0),
				workloads: "False NotCreated: not created yet: Service qwen, LeaderWorkerSet qwen-engine-1; LeaderWorkerSet qwen-engine-0: its controller has not reported on it yet",
				gang:      "False NotCreated: PodGroup qwen: not created yet",
			},
		},
		"PartlyReady": {
			reason: "Story 3 with one replica ready: desired 2, ready 1, nodes 4, total 8, ready pods 4, Deploying.",
			scene: func(s *scene) {
				running(s).see(lws1, workload("qwen-engine-1", progressing))
				s.see(pgKey, podGroup("qwen", volcano.PodGroupInqueue))
			},
			want: want{
				component: engine(v1alpha1.ComponentPhaseDeploying, 1, 4, 5),
				workloads: "False NotReady: LeaderWorkerSet qwen-engine-1: not all of its 4 pods are ready",
				gang:      "False NotScheduled: PodGroup qwen: is in phase Inqueue",
				ready:     []string{lws0, svcKey},
			},
		},
		"PartlyReadyWithPods": {
			reason: "Pods that are read count one by one; one that is going away does not.",
			scene: func(s *scene) {
				running(s).see(lws1, workload("qwen-engine-1", progressing)).pods(slices.Concat(
					replicaPods(0),
					[]*corev1.Pod{enginePod("engine", 1, 0), enginePod("engine", 1, 1, unready), enginePod("engine", 1, 2, terminating), enginePod("engine", 1, 3, unscheduled)},
				)...)
			},
			want: want{
				component: engine(v1alpha1.ComponentPhaseDeploying, 1, 5, 5),
				workloads: "False NotReady: LeaderWorkerSet qwen-engine-1: 1 of 4 pods are ready, 1 wait for room",
				gang:      "True Scheduled",
				ready:     []string{lws0, pgKey, svcKey},
			},
		},
		"Ready": {
			reason: "All is ready and quiet.",
			scene:  func(s *scene) { running(s).pods(slices.Concat(replicaPods(0), replicaPods(1))...) },
			want: want{
				component: engine(v1alpha1.ComponentPhaseRunning, 2, 8, 5),
				workloads: "True AllReady",
				gang:      "True Scheduled",
				ready:     []string{lws0, lws1, pgKey, svcKey},
				settled:   true,
			},
		},
		"PodsAreNewer": {
			reason: "The newest timestamp of what was observed dates the component.",
			scene: func(s *scene) {
				running(s).pods(replicaPods(0, func(p *corev1.Pod) { p.Status.Conditions[1].LastTransitionTime = at(8) })...)
			},
			want: want{
				component: engine(v1alpha1.ComponentPhaseRunning, 2, 8, 8),
				workloads: "True AllReady",
				gang:      "True Scheduled",
				ready:     []string{lws0, lws1, pgKey, svcKey},
				settled:   true,
			},
		},
		"NoPodsShown": {
			reason: "Where no pod of a ready replica is shown, the LeaderWorkerSet's word counts.",
			scene:  func(s *scene) { running(s).pods() },
			want: want{
				component: engine(v1alpha1.ComponentPhaseRunning, 2, 8, 5),
				workloads: "True AllReady",
				gang:      "True Scheduled",
				ready:     []string{lws0, lws1, pgKey, svcKey},
				settled:   true,
			},
		},
		"Failed": {
			reason: "A crashing container fails the component and is named, without its message, which may hold a secret.",
			scene: func(s *scene) {
				running(s).see(lws1, workload("qwen-engine-1", progressing)).
					pods(slices.Concat(replicaPods(0), replicaPods(1, waits("CrashLoopBackOff")))...)
			},
			want: want{
				component: engine(v1alpha1.ComponentPhaseFailed, 1, 7, 5),
				workloads: "False Failed: pod qwen-engine-1-0-3: container vllm: CrashLoopBackOff",
				gang:      "True Scheduled",
				ready:     []string{lws0, pgKey, svcKey},
			},
		},
		"FailedThoughReady": {
			reason: "A pod that fails before its LeaderWorkerSet notices is a failure all the same, and nothing is settled.",
			scene: func(s *scene) {
				running(s).pods(slices.Concat(replicaPods(0), replicaPods(1, ended("OOMKilled", 137)))...)
			},
			want: want{
				component: engine(v1alpha1.ComponentPhaseFailed, 2, 7, 5),
				workloads: "False Failed: pod qwen-engine-1-0-3: container vllm: OOMKilled (exit code 137)",
				gang:      "True Scheduled",
				ready:     []string{lws0, lws1, pgKey, svcKey},
			},
		},
		"Stale": {
			reason: "A status of an older generation says nothing about this one.",
			scene:  func(s *scene) { running(s).see(lws1, workload("qwen-engine-1", staleWorkload)) },
			want: want{
				component: engine(v1alpha1.ComponentPhaseUnknown, 1, 4, 5),
				workloads: "Unknown GenerationNotObserved: LeaderWorkerSet qwen-engine-1: its status is of generation 2, not 3",
				gang:      "True Scheduled",
				ready:     []string{lws0, pgKey, svcKey},
			},
		},
		"Outdated": {
			reason: "A LeaderWorkerSet that this answer changes is not ready, whatever it says of what it was.",
			scene: func(s *scene) {
				w := workload("qwen-engine-1")
				w.Labels[plan.LabelSpecHash] = "ffffffff"
				running(s).see(lws1, w)
			},
			want: want{
				component: engine(v1alpha1.ComponentPhaseDeploying, 1, 8, 5),
				workloads: "False Updating: LeaderWorkerSet qwen-engine-1: is being updated",
				gang:      "True Scheduled",
				ready:     []string{lws0, pgKey, svcKey},
			},
		},
		"AvailableWithTooFew": {
			reason: "Available is not believed where the counts say otherwise.",
			scene: func(s *scene) {
				running(s).see(lws1, workload("qwen-engine-1", func(w *lws.LeaderWorkerSet) { w.Status.ReadyReplicas = 0 }))
			},
			want: want{
				component: engine(v1alpha1.ComponentPhaseDeploying, 1, 4, 5),
				workloads: "False NotReady: LeaderWorkerSet qwen-engine-1: not all of its 4 pods are ready",
				gang:      "True Scheduled",
				ready:     []string{lws0, pgKey, svcKey},
			},
		},
		"RollingOut": {
			reason: "Pods of the old template do not count, ready or not.",
			scene: func(s *scene) {
				running(s).see(lws1, workload("qwen-engine-1", func(w *lws.LeaderWorkerSet) {
					w.Status.Conditions = append(w.Status.Conditions, is("UpdateInProgress", "True", "GroupsUpdating", 2))
				}))
			},
			want: want{
				component: engine(v1alpha1.ComponentPhaseDeploying, 1, 8, 5),
				workloads: "False Updating: LeaderWorkerSet qwen-engine-1: its pods are being updated",
				gang:      "True Scheduled",
				ready:     []string{lws0, pgKey, svcKey},
			},
		},
		"TooManyPods": {
			reason: "While a group is replaced there may be more pods than it has.",
			scene: func(s *scene) {
				running(s).pods(append(replicaPods(0), enginePod("engine", 0, 4))...)
			},
			want: want{
				component: engine(v1alpha1.ComponentPhaseRunning, 2, 8, 5),
				workloads: "True AllReady",
				gang:      "True Scheduled",
				ready:     []string{lws0, lws1, pgKey, svcKey},
				settled:   true,
			},
		},
		"GangDeleting": {
			reason: "A PodGroup that is going away is not ready, even where its replicas run.",
			scene: func(s *scene) {
				pg := podGroup("qwen", volcano.PodGroupRunning)
				pg.DeletionTimestamp = ptrTo(at(9))
				running(s).see(pgKey, pg)
			},
			want: want{
				component: engine(v1alpha1.ComponentPhaseRunning, 2, 8, 5),
				workloads: "True AllReady",
				gang:      "False Deleting: PodGroup qwen: is being deleted",
				ready:     []string{lws0, lws1, svcKey},
			},
		},
		"UnschedulableAgain": {
			reason: "A condition Scheduled that is no longer True silences nothing.",
			scene: func(s *scene) {
				was := gangCondition(volcano.PodGroupScheduled, 4)
				was.Status = corev1.ConditionFalse
				running(s).see(lws1, workload("qwen-engine-1", progressing)).
					see(pgKey, podGroup("qwen", volcano.PodGroupUnknown, gangCondition(volcano.PodGroupUnschedulableType, 3), was))
			},
			want: want{
				component: engine(v1alpha1.ComponentPhaseDeploying, 1, 4, 5),
				workloads: "False NotReady: LeaderWorkerSet qwen-engine-1: not all of its 4 pods are ready",
				gang:      "False Unschedulable: PodGroup qwen: NotEnoughResources: 8/8 tasks in gang unschedulable: 0/5 nodes are available",
				ready:     []string{lws0, svcKey},
			},
		},
		"Deleting": {
			reason: "An object that is going away is not ready.",
			scene:  func(s *scene) { running(s).see(lws1, workload("qwen-engine-1", deletedWorkload)) },
			want: want{
				component: engine(v1alpha1.ComponentPhaseDeploying, 1, 8, 5),
				workloads: "False Deleting: LeaderWorkerSet qwen-engine-1: is being deleted",
				gang:      "True Scheduled",
				ready:     []string{lws0, pgKey, svcKey},
			},
		},
		"Unschedulable": {
			reason: "Volcano's reason is shown, on one line.",
			scene: func(s *scene) {
				running(s).see(lws0, workload("qwen-engine-0", progressing)).see(lws1, workload("qwen-engine-1", progressing)).
					see(pgKey, podGroup("qwen", volcano.PodGroupInqueue, gangCondition(volcano.PodGroupUnschedulableType, 3)))
			},
			want: want{
				component: engine(v1alpha1.ComponentPhaseDeploying, 0, 0, 1),
				workloads: "False NotReady: not all of its 4 pods are ready: LeaderWorkerSet qwen-engine-0, LeaderWorkerSet qwen-engine-1",
				gang:      "False Unschedulable: PodGroup qwen: NotEnoughResources: 8/8 tasks in gang unschedulable: 0/5 nodes are available",
				ready:     []string{svcKey},
			},
		},
		"UnschedulableBefore": {
			reason: "Volcano leaves Unschedulable True when it has scheduled the gang; the younger condition counts.",
			scene: func(s *scene) {
				running(s).see(lws1, workload("qwen-engine-1", progressing)).
					see(pgKey, podGroup("qwen", volcano.PodGroupInqueue, gangCondition(volcano.PodGroupUnschedulableType, 3), gangCondition(volcano.PodGroupScheduled, 4)))
			},
			want: want{
				component: engine(v1alpha1.ComponentPhaseDeploying, 1, 4, 5),
				workloads: "False NotReady: LeaderWorkerSet qwen-engine-1: not all of its 4 pods are ready",
				gang:      "False NotScheduled: PodGroup qwen: is in phase Inqueue",
				ready:     []string{lws0, svcKey},
			},
		},
		"GangServed": {
			reason: "A PodGroup does not hold a service back whose replicas all run.",
			scene: func(s *scene) {
				running(s).see(pgKey, podGroup("qwen", volcano.PodGroupUnknown, gangCondition(volcano.PodGroupUnschedulableType, 3)))
			},
			want: want{
				component: engine(v1alpha1.ComponentPhaseRunning, 2, 8, 5),
				workloads: "True AllReady",
				gang:      "True Scheduled",
				ready:     []string{lws0, lws1, pgKey, svcKey},
				settled:   true,
			},
		},
		"Held": {
			reason: "A replica that is held counts as desired and keeps the service from settling.",
			scene: func(s *scene) {
				running(s).hold(plan.Held{Key: lws1, Reason: plan.HeldForGang, Message: "LeaderWorkerSet qwen-engine-1 waits until PodGroup qwen counts task engine-1"})
				delete(s.observed, lws1)
			},
			want: want{
				component: engine(v1alpha1.ComponentPhaseDeploying, 1, 4, 5),
				workloads: "False WaitingForGang: LeaderWorkerSet qwen-engine-1 waits until PodGroup qwen counts task engine-1",
				gang:      "True Scheduled",
				ready:     []string{lws0, pgKey, svcKey},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := story3(t)
			tc.scene(s)
			v := s.judge()
			got := want{
				component: v.Status.Components["engine"],
				workloads: conditionLine(v, WorkloadsReady),
				gang:      conditionLine(v, GangScheduled),
				ready:     readyKeys(v),
				settled:   v.Settled,
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func readyKeys(v Verdict) []string {
	var keys []string
	for k, ready := range v.Ready {
		if ready {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

// A service recovers: the failure and the doubt go when their cause goes.
func TestJudgeRecovers(t *testing.T) {
	s := running(story3(t)).pods(slices.Concat(replicaPods(0), replicaPods(1, waits("ImagePullBackOff")))...)
	if got := s.judge().Status.Components["engine"].Phase; got != v1alpha1.ComponentPhaseFailed {
		t.Fatalf("phase with a failing pod: %s", got)
	}
	s.pods(slices.Concat(replicaPods(0), replicaPods(1))...).see(lws1, workload("qwen-engine-1", staleWorkload))
	if got := s.judge().Status.Components["engine"].Phase; got != v1alpha1.ComponentPhaseUnknown {
		t.Fatalf("phase with a stale status: %s", got)
	}
	v := s.see(lws1, workload("qwen-engine-1")).judge()
	if got := v.Status.Components["engine"].Phase; got != v1alpha1.ComponentPhaseRunning || !v.Settled {
		t.Fatalf("phase after all of it: %s, settled %t", got, v.Settled)
	}
}

func TestPodFailure(t *testing.T) {
	cases := map[string]struct {
		reason string
		edit   edit[corev1.Pod]
		want   string
	}{
		"Ready":             {reason: "A ready pod has no failure.", edit: func(*corev1.Pod) {}},
		"Starting":          {reason: "A pod that is being made has none.", edit: waits("ContainerCreating")},
		"CrashLoop":         {edit: waits("CrashLoopBackOff"), want: "pod p: container vllm: CrashLoopBackOff"},
		"ImagePull":         {edit: waits("ImagePullBackOff"), want: "pod p: container vllm: ImagePullBackOff"},
		"ErrImagePull":      {edit: waits("ErrImagePull"), want: "pod p: container vllm: ErrImagePull"},
		"InvalidImage":      {edit: waits("InvalidImageName"), want: "pod p: container vllm: InvalidImageName"},
		"ConfigError":       {edit: waits("CreateContainerConfigError"), want: "pod p: container vllm: CreateContainerConfigError"},
		"CreateError":       {edit: waits("CreateContainerError"), want: "pod p: container vllm: CreateContainerError"},
		"RunError":          {edit: waits("RunContainerError"), want: "pod p: container vllm: RunContainerError"},
		"InitContainer":     {reason: "Sidecars and other init containers fail as well.", edit: initWaits("CrashLoopBackOff"), want: "pod p: container routing-sidecar: CrashLoopBackOff"},
		"Ended":             {edit: ended("Error", 1), want: "pod p: container vllm: Error (exit code 1)"},
		"Done":              {reason: "Ending without an error is no failure.", edit: ended("Completed", 0)},
		"Evicted":           {edit: func(p *corev1.Pod) { p.Status.Phase, p.Status.Reason = corev1.PodFailed, "Evicted" }, want: "pod p: Evicted"},
		"FailedWithoutWord": {reason: "Only one word is passed on as a reason.", edit: func(p *corev1.Pod) { p.Status.Phase, p.Status.Reason = corev1.PodFailed, "token=s3cret" }, want: "pod p: Failed"},
		"Terminating":       {reason: "A pod that is going away cannot fail any more.", edit: func(p *corev1.Pod) { waits("CrashLoopBackOff")(p); terminating(p) }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := running(story3(t)).pods(enginePod("engine", 0, 0, tc.edit, func(p *corev1.Pod) { p.Name = "p" }))
			var got string
			if f := s.judgeFailures(); len(f) > 0 {
				got = strings.Join(f, "|")
			}
			if got != tc.want {
				t.Errorf("%s\nwant %q\n got %q", tc.reason, tc.want, got)
			}
		})
	}
}

func (s *scene) judgeFailures() []string {
	index := Look(s.request(), s.plan).pods()
	return index.of(s.plan.Service, &s.plan.Deployments[0].Groups[0].Replicas[0]).failures
}

func TestJudgeRouter(t *testing.T) {
	const (
		eppKey   = "deployment/epp"
		poolKey  = "inferencepool"
		routeKey = "httproute"
		gwKey    = "gateway"
	)
	withRoute := plan.Router{Name: "router", HasRoute: true}
	withGateway := plan.Router{Name: "router", HasRoute: true, HasGateway: true}
	accepted := is("Accepted", "True", "Accepted", 1)
	resolved := is("ResolvedRefs", "True", "ResolvedRefs", 1)
	tls := []gateway.Listener{
		{Name: "http", Port: 80, Protocol: gateway.HTTPProtocolType},
		{Name: "https", Port: 443, Protocol: gateway.HTTPSProtocolType},
	}

	type want struct {
		router, route string
		notReady      []string
		url           string
		settled       bool
	}
	cases := map[string]struct {
		reason string
		router plan.Router
		scene  func(s *scene)
		want   want
	}{
		"NoRoute": {
			reason: "A pool without a route waits for nobody.",
			router: plan.Router{Name: "router"},
			scene:  func(s *scene) { s.see(eppKey, picker()).see(poolKey, pool()) },
			want: want{
				router:  "True AllReady",
				route:   "False NoRoute: no gateway leads to the pool: the router's httproute names no parent, it has no gateway of its own, and the platform sets no default parent",
				settled: true,
			},
		},
		"NotReported": {
			reason: "Without a gateway's word the service is ready, and the condition says what is missing.",
			router: withRoute,
			scene: func(s *scene) {
				s.want(plan.Target{}, routeKey, route(1))
				s.see(eppKey, picker()).see(poolKey, pool()).see(routeKey, route(1))
			},
			want: want{
				router:  "True AllReady",
				route:   "Unknown RouteNotReported: no gateway has reported on it: InferencePool qwen-pool, HTTPRoute qwen-httproute",
				url:     "http://qwen.example.com",
				settled: true,
			},
		},
		"Accepted": {
			reason: "What a gateway takes is ready.",
			router: withRoute,
			scene: func(s *scene) {
				s.want(plan.Target{}, routeKey, route(1))
				s.see(eppKey, picker()).see(poolKey, pool(accepted, resolved)).see(routeKey, route(1, accepted, resolved))
			},
			want: want{router: "True AllReady", route: "True Accepted", url: "http://qwen.example.com", settled: true},
		},
		"Refused": {
			reason: "What a gateway refuses is not ready, and its reason is shown.",
			router: withRoute,
			scene: func(s *scene) {
				s.want(plan.Target{}, routeKey, route(1))
				s.see(eppKey, picker()).see(poolKey, pool(accepted)).see(routeKey, route(1, is("Accepted", "False", "NotAllowedByListeners", 1)))
			},
			want: want{
				router:   "True AllReady",
				route:    "False NotAccepted: HTTPRoute qwen-httproute: NotAllowedByListeners: said NotAllowedByListeners",
				notReady: []string{routeKey}, url: "http://qwen.example.com",
			},
		},
		"RefusedBefore": {
			reason: "What a gateway said of an older generation counts for nothing.",
			router: withRoute,
			scene: func(s *scene) {
				s.want(plan.Target{}, routeKey, route(2))
				s.see(eppKey, picker()).see(poolKey, pool(accepted)).see(routeKey, route(2, is("Accepted", "False", "NotAllowedByListeners", 1)))
			},
			want: want{
				router: "True AllReady",
				route:  "Unknown RouteNotReported: HTTPRoute qwen-httproute: no gateway has reported on it",
				url:    "http://qwen.example.com", settled: true,
			},
		},
		"AcceptedWithoutGeneration": {
			reason: "Controllers that leave the generation out are believed.",
			router: withRoute,
			scene: func(s *scene) {
				s.want(plan.Target{}, routeKey, route(2))
				s.see(eppKey, picker()).see(poolKey, pool(accepted)).see(routeKey, route(2, is("Accepted", "True", "Accepted", 0)))
			},
			want: want{router: "True AllReady", route: "True Accepted", url: "http://qwen.example.com", settled: true},
		},
		"PickerFailsThoughReady": {
			reason: "An endpoint picker's failing pod is trouble before its Deployment notices.",
			router: withRoute,
			scene: func(s *scene) {
				s.want(plan.Target{}, routeKey, route(1))
				s.see(eppKey, picker()).see(poolKey, pool(accepted)).see(routeKey, route(1, accepted)).
					pods(enginePod("router", 0, 0, ended("OOMKilled", 137), func(p *corev1.Pod) { p.Name, p.Labels = "qwen-epp-abc", nil }))
			},
			want: want{router: "False Failed: pod qwen-epp-abc: container vllm: OOMKilled (exit code 137)", route: "True Accepted", url: "http://qwen.example.com"},
		},
		"NotResolved": {
			reason: "A pool whose endpoint picker is not found does not work.",
			router: withRoute,
			scene: func(s *scene) {
				s.want(plan.Target{}, routeKey, route(1))
				s.see(eppKey, picker()).see(poolKey, pool(accepted, is("ResolvedRefs", "False", "InvalidExtensionRef", 1))).see(routeKey, route(1, accepted, resolved))
			},
			want: want{
				router:   "True AllReady",
				route:    "False RefsNotResolved: InferencePool qwen-pool: InvalidExtensionRef: said InvalidExtensionRef",
				notReady: []string{poolKey}, url: "http://qwen.example.com",
			},
		},
		"GatewayWithAddress": {
			reason: "Our own gateway's TLS listener makes the URL, with its address where the route has no host.",
			router: withGateway,
			scene: func(s *scene) {
				r := route(1)
				r.Spec.Hostnames = nil
				r.Spec.ParentRefs = []gateway.ParentReference{{Name: "qwen-gateway"}}
				s.want(plan.Target{}, routeKey, r)
				s.want(plan.Target{}, gwKey, ownGateway("", tls))
				s.see(eppKey, picker()).see(poolKey, pool(accepted)).see(routeKey, route(1, accepted)).
					see(gwKey, ownGateway("2001:db8::1", tls, accepted, is("Programmed", "True", "Programmed", 1)))
			},
			want: want{router: "True AllReady", route: "True Accepted", url: "https://[2001:db8::1]", settled: true},
		},
		"GatewayPending": {
			reason: "The API server writes a Gateway's first conditions; they are nobody's word.",
			router: withGateway,
			scene: func(s *scene) {
				s.want(plan.Target{}, routeKey, route(1))
				s.want(plan.Target{}, gwKey, ownGateway("", tls))
				s.see(eppKey, picker()).see(poolKey, pool(accepted)).see(routeKey, route(1, accepted)).
					see(gwKey, ownGateway("", tls, is("Accepted", "Unknown", "Pending", 0), is("Programmed", "Unknown", "Pending", 0)))
			},
			want: want{
				router: "True AllReady",
				route:  "Unknown GatewayNotReported: Gateway qwen-gateway: no gateway controller has reported on it",
				url:    "http://qwen.example.com", settled: true,
			},
		},
		"GatewayNotProgrammed": {
			reason: "A gateway that takes no traffic is not ready.",
			router: withGateway,
			scene: func(s *scene) {
				s.want(plan.Target{}, routeKey, route(1))
				s.want(plan.Target{}, gwKey, ownGateway("", tls))
				s.see(eppKey, picker()).see(poolKey, pool(accepted)).see(routeKey, route(1, accepted)).
					see(gwKey, ownGateway("", tls, accepted, is("Programmed", "False", "AddressNotAssigned", 1)))
			},
			want: want{
				router:   "True AllReady",
				route:    "False NotProgrammed: Gateway qwen-gateway: AddressNotAssigned: said AddressNotAssigned",
				notReady: []string{gwKey}, url: "http://qwen.example.com",
			},
		},
		"PickerStuck": {
			reason: "A Deployment that has given up is shown with its reason.",
			router: plan.Router{Name: "router"},
			scene:  func(s *scene) { s.see(eppKey, picker(stuckPicker)).see(poolKey, pool()) },
			want: want{
				router:   "False Failed: Deployment qwen-epp: ProgressDeadlineExceeded: ReplicaSet has timed out progressing.",
				route:    "False NoRoute: no gateway leads to the pool: the router's httproute names no parent, it has no gateway of its own, and the platform sets no default parent",
				notReady: []string{eppKey},
			},
		},
		"PickerUpdating": {
			reason: "A Deployment is ready with its newest pods only.",
			router: plan.Router{Name: "router"},
			scene:  func(s *scene) { s.see(eppKey, picker(updatingPicker)).see(poolKey, pool()) },
			want: want{
				router:   "False Updating: Deployment qwen-epp: 0 of 1 pods are up to date",
				route:    "False NoRoute: no gateway leads to the pool: the router's httproute names no parent, it has no gateway of its own, and the platform sets no default parent",
				notReady: []string{eppKey},
			},
		},
		"PickerCrashes": {
			reason: "The endpoint picker's failing pod is named, and is no engine's failure.",
			router: plan.Router{Name: "router"},
			scene: func(s *scene) {
				d := picker()
				d.Status.AvailableReplicas = 0
				s.see(eppKey, d).see(poolKey, pool()).pods(enginePod("router", 0, 0, waits("CrashLoopBackOff"), func(p *corev1.Pod) {
					p.Name, p.Labels = "qwen-epp-abc", map[string]string{plan.LabelService: "qwen", plan.LabelComponentType: "router"}
				}))
			},
			want: want{
				router:   "False Failed: pod qwen-epp-abc: container vllm: CrashLoopBackOff",
				route:    "False NoRoute: no gateway leads to the pool: the router's httproute names no parent, it has no gateway of its own, and the platform sets no default parent",
				notReady: []string{eppKey},
			},
		},
		"KindMissing": {
			reason: "A route that the cluster has no kind for is held, and named.",
			router: withRoute,
			scene: func(s *scene) {
				s.see(eppKey, picker()).see(poolKey, pool(accepted)).
					hold(plan.Held{Key: routeKey, Reason: plan.HeldForKind, Message: "the cluster has no HTTPRoute of gateway.networking.k8s.io/v1"})
			},
			want: want{
				router: "True AllReady",
				route:  "False KindMissing: the cluster has no HTTPRoute of gateway.networking.k8s.io/v1",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := running(story3(t)).routed(tc.router)
			tc.scene(s)
			v := s.judge()
			var notReady []string
			for _, o := range v.Objects {
				if !o.Ready {
					notReady = append(notReady, o.Key)
				}
			}
			got := want{router: conditionLine(v, RouterReady), route: conditionLine(v, RouteReady), notReady: notReady, url: v.Status.URL, settled: v.Settled}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestJudgeClusters(t *testing.T) {
	config := v1alpha1.ProviderConfigRef{Kind: "ClusterProviderConfig", Name: "c"}
	east := plan.Target{Cluster: "east", Namespace: "models", ProviderConfig: config}
	west := plan.Target{Cluster: "west", Namespace: "models", ProviderConfig: config}
	const in = "cluster/west/"

	type want struct {
		total, west v1alpha1.ComponentStatus
		workloads   string
		roles, url  string
		settled     bool
	}
	double := func(phase v1alpha1.ComponentPhase, ready, pods int32) v1alpha1.ComponentStatus {
		return v1alpha1.ComponentStatus{DesiredReplicas: 4, ReadyReplicas: ready, NodesPerReplica: 4, TotalPods: 16, ReadyPods: pods, Phase: phase, LastUpdateTime: ptrTo(at(5))}
	}
	cases := map[string]struct {
		reason string
		west   func(s *scene)
		want   want
	}{
		"Ready": {
			reason: "Two clusters are judged like one, each and in sum. A Service in them is no URL here.",
			west:   func(*scene) {},
			want: want{
				total: double(v1alpha1.ComponentPhaseRunning, 4, 16), west: engine(v1alpha1.ComponentPhaseRunning, 2, 8, 5),
				workloads: "True AllReady", roles: "engine 4/4", settled: true,
			},
		},
		"NotThereYet": {
			reason: "An Object that has not reported is not created, as far as is known.",
			west: func(s *scene) {
				s.seeRemote(in+lws0, nil).seeRemote(in+lws1, nil)
			},
			want: want{
				total: double(v1alpha1.ComponentPhaseDeploying, 2, 8), west: engine(v1alpha1.ComponentPhasePending, 0, 0, -1),
				workloads: "False NotCreated: provider-kubernetes has not reported it yet: cluster west: LeaderWorkerSet qwen-engine-0, cluster west: LeaderWorkerSet qwen-engine-1",
				roles:     "engine 2/4",
			},
		},
		"Unreadable": {
			reason: "A cluster that does not answer is Unknown, whatever was read of it before.",
			west: func(s *scene) {
				s.seeRemote(in+lws1, workload("qwen-engine-1"), synced("False", "observe failed: cannot get object: dial tcp: no route to host"))
			},
			want: want{
				total: double(v1alpha1.ComponentPhaseUnknown, 3, 12), west: engine(v1alpha1.ComponentPhaseUnknown, 1, 4, 5),
				workloads: "Unknown CannotBeRead: cluster west: LeaderWorkerSet qwen-engine-1: provider-kubernetes cannot reach or change it: observe failed: cannot get object: dial tcp: no route to host",
				roles:     "engine 3/4",
			},
		},
		"Stale": {
			reason: "A remote status can be stale as well.",
			west:   func(s *scene) { s.seeRemote(in+lws1, workload("qwen-engine-1", staleWorkload), synced("True", "")) },
			want: want{
				total: double(v1alpha1.ComponentPhaseUnknown, 3, 12), west: engine(v1alpha1.ComponentPhaseUnknown, 1, 4, 5),
				workloads: "Unknown GenerationNotObserved: cluster west: LeaderWorkerSet qwen-engine-1: its status is of generation 2, not 3",
				roles:     "engine 3/4",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := story3(t, east, west)
			for _, c := range []string{"cluster/east/", in} {
				ok := synced("True", "")
				s.seeRemote(c+svcKey, map[string]any{"kind": "Service"}, ok).
					seeRemote(c+pgKey, podGroup("qwen", volcano.PodGroupRunning), ok).
					seeRemote(c+lws0, workload("qwen-engine-0"), ok).
					seeRemote(c+lws1, workload("qwen-engine-1"), ok)
			}
			tc.west(s)
			v := s.judge()
			got := want{
				total: v.Status.Components["engine"], west: v.Status.Clusters[1].Components["engine"],
				workloads: conditionLine(v, WorkloadsReady), roles: v.Status.Roles, url: v.Status.URL, settled: v.Settled,
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if got, want := v.Status.Clusters[1].URL, "http://qwen.models.svc:8000"; got != want {
				t.Errorf("the cluster's own URL: want %q, got %q", want, got)
			}
		})
	}
}

func TestJudgeStatus(t *testing.T) {
	v := running(story3(t)).judge()
	want := v1alpha1.InferenceServiceStatus{
		ObservedGeneration: 7,
		Components:         map[string]v1alpha1.ComponentStatus{"engine": engine(v1alpha1.ComponentPhaseRunning, 2, 8, 5)},
		URL:                "http://qwen.team-a.svc:8000",
		Replicas:           1,
		Selector:           "fusioninfer.io/service=qwen,fusioninfer.io/component-type notin (router)",
		Roles:              "engine 2/2",
	}
	if diff := cmp.Diff(want, v.Status); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	// kubectl scale and autoscalers read the selector like this, and fail if they cannot.
	if _, err := metav1.ParseToLabelSelector(v.Status.Selector); err != nil {
		t.Errorf("the scale subresource cannot be read: %v", err)
	}
}

func TestJudgeNothingDesired(t *testing.T) {
	s := story3(t)
	s.plan.Roles[0].Replicas = 0
	s.plan.Deployments[0].Groups = nil
	for _, k := range []string{pgKey, lws0, lws1} {
		s.drop(k)
	}
	v := s.see(svcKey, map[string]any{"kind": "Service"}).judge()
	want := v1alpha1.ComponentStatus{NodesPerReplica: 4, Phase: v1alpha1.ComponentPhaseRunning}
	if diff := cmp.Diff(want, v.Status.Components["engine"]); diff != "" {
		t.Errorf("a role that is scaled to 0 runs\n-want, +got:\n%s", diff)
	}
	if !v.Settled || conditionLine(v, GangScheduled) != "True NoGang" {
		t.Errorf("settled %t, gang %q", v.Settled, conditionLine(v, GangScheduled))
	}
}

// A grouped service has a gang and a number of replicas for each group.
func TestJudgeGroups(t *testing.T) {
	s := running(story3(t))
	s.plan.Service.Grouped = true
	d := &s.plan.Deployments[0]
	second := d.Groups[0]
	second.Index = 1
	second.Replicas = slices.Clone(second.Replicas)
	for i := range second.Replicas {
		r := &second.Replicas[i]
		r.Group, r.Key = 1, fmt.Sprintf("leaderworkerset/1/engine/%d", i)
		s.want(d.Target, r.Key, workload("qwen-1-engine"))
	}
	second.PodGroup = nil
	d.Groups = append(d.Groups, second)
	pod := enginePod("engine", 0, 0, waits("CrashLoopBackOff"))
	pod.Labels[plan.LabelGroupIndex] = "1"
	v := s.see(second.Replicas[0].Key, workload("x", progressing)).pods(pod).judge()
	c := v.Status.Components["engine"]
	if c.DesiredReplicas != 4 || c.ReadyReplicas != 2 || c.ReadyPods != 8 || c.Phase != v1alpha1.ComponentPhaseFailed || v.Status.Replicas != 2 {
		t.Errorf("two groups: %+v, replicas %d", c, v.Status.Replicas)
	}
}

func TestJudgeKinds(t *testing.T) {
	s := story3(t)
	if got, want := conditionLine(s.judge(), KindsAvailable), "Unknown NotChecked: the Composition's input does not set requireKinds"; got != want {
		t.Errorf("unchecked: want %q, got %q", want, got)
	}
	if got := conditionLine(running(s).judge(), KindsAvailable); got != "True AllAvailable" {
		t.Errorf("what exists has a kind: got %q", got)
	}
	for _, k := range []string{lws0, lws1} {
		s.hold(plan.Held{Key: k, Reason: plan.HeldForKind, Message: "the cluster has no LeaderWorkerSet of leaderworkerset.x-k8s.io/v1"})
	}
	v := s.judge()
	if got, want := conditionLine(v, KindsAvailable), "False KindMissing: the cluster has no LeaderWorkerSet of leaderworkerset.x-k8s.io/v1"; got != want || !v.Held {
		t.Errorf("missing: want %q, got %q, held %t", want, got, v.Held)
	}
}

func TestJudgeWarnings(t *testing.T) {
	s := running(story3(t))
	s.plan.Warnings = []plan.Warning{{Path: "spec.roles[0].template", Message: "quote it"}}
	if got, want := conditionLine(s.judge(), NoWarnings), "False Suspicious: spec.roles[0].template: quote it"; got != want {
		t.Errorf("want %q, got %q", want, got)
	}
}

// Deployments whose status is of an older generation are not ready either.
func TestDeploymentStale(t *testing.T) {
	s := running(story3(t)).routed(plan.Router{Name: "router"}).
		see("deployment/epp", picker(func(d *appsv1.Deployment) { d.Generation = 2 })).see("inferencepool", pool())
	if got, want := conditionLine(s.judge(), RouterReady), "Unknown GenerationNotObserved: Deployment qwen-epp: its status is of generation 1, not 2"; got != want {
		t.Errorf("want %q, got %q", want, got)
	}
}

// What leaves its only cluster still serves and counts, also where more of it is wanted that no
// cluster takes.
func TestJudgeLeavesForNowhere(t *testing.T) {
	s := running(story3(t))
	s.plan.Deployments[0].Leaving = true
	more := s.plan.Deployments[0].Groups[0].Replicas[0]
	more.Index, more.Key = 2, "leaderworkerset/engine/2"
	s.plan.Deployments = append(s.plan.Deployments, plan.Deployment{Waiting: []plan.Replica{more}, Idle: true, Nowhere: true})
	if got, want := s.judge().Status.Roles, "engine 2/3"; got != want {
		t.Errorf("its roles are %q, want %q", got, want)
	}
}

// A router that nothing needs yet is not missing.
func TestJudgeRouterOfNothing(t *testing.T) {
	s := story3(t)
	s.plan.Router = &plan.Router{}
	s.plan.Deployments[0].Groups = nil
	s.objects = nil
	if got, want := conditionLine(s.judge(), RouterReady), "True ScaledToZero"; got != want {
		t.Errorf("with no replicas it is %q, want %q", got, want)
	}
	s = story3(t)
	s.plan.Router = &plan.Router{}
	d := &s.plan.Deployments[0]
	d.Waiting, d.Groups = d.Groups[0].Replicas, nil
	s.objects = nil
	if got, want := conditionLine(s.judge(), RouterReady), "False NotCreated: it is made where the service is placed"; got != want {
		t.Errorf("with replicas that no cluster takes it is %q, want %q", got, want)
	}
}

// A router without replicas picks no pods, whatever its Deployment says of its no pods.
// Where the whole service is scaled to zero it is not missing.
func TestJudgeRouterOfZero(t *testing.T) {
	none := picker(func(d *appsv1.Deployment) { d.Spec.Replicas, d.Status.Replicas = ptr.To[int32](0), 0 })
	s := running(story3(t)).routed(plan.Router{Name: "router"}).see("deployment/epp", none).see("inferencepool", pool())
	for i := range s.objects {
		if s.objects[i].Key == "deployment/epp" {
			s.objects[i].Resource = encode(t, none)
		}
	}
	v := s.judge()
	if got, want := conditionLine(v, RouterReady), "False ScaledToZero: Deployment qwen-epp: has no replicas, so nothing picks pods for requests: set replicas of the router to 1 or more"; got != want {
		t.Errorf("want %q, got %q", want, got)
	}
	if v.Ready["deployment/epp"] {
		t.Error("the service is ready, and nothing answers")
	}
	s.plan.Deployments[0].Groups = nil
	if got, want := conditionLine(s.judge(), RouterReady), "True AllReady"; got != want {
		t.Errorf("with the whole service at zero: want %q, got %q", want, got)
	}
}
