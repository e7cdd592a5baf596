package observe

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/structpb"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	pools "sigs.k8s.io/gateway-api-inference-extension/api/v1"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
	lws "sigs.k8s.io/lws/api/leaderworkerset/v1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming/incomingtest"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/remote"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
	"github.com/fusioninfer/function-inferenceservice/internal/service/require"
)

const (
	namespace = "team-a"
	ownUID    = "11111111-2222-3333-4444-555555555555"
	hash      = "0123abcd"
)

// at is a moment so many minutes into the test's day.
func at(minutes int) metav1.Time {
	return metav1.NewTime(time.Date(2026, 3, 1, 12, minutes, 0, 0, time.UTC))
}

func ptrTo(t metav1.Time) *metav1.Time { return &t }

// encode makes a Struct of a typed object, as an API server would show it.
func encode(tb testing.TB, o any) *structpb.Struct {
	tb.Helper()
	s, err := kube.Encode(o)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// meta of an observed object, with the managedFields that make up most of one.
func meta(name string, generation int64, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: namespace, Generation: generation, Labels: labels,
		CreationTimestamp: at(0),
		ManagedFields: []metav1.ManagedFieldsEntry{{
			Manager: "apiextensions.crossplane.io/composed", Operation: metav1.ManagedFieldsOperationApply,
			Time: ptrTo(at(0)), FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{}},"f:spec":{"f:replicas":{}},"f:status":{"f:conditions":{}}}`),
		}},
	}
}

type edit[T any] func(*T)

func apply[T any](o *T, edits []edit[T]) *T {
	for _, e := range edits {
		e(o)
	}
	return o
}

// A workload is an observed LeaderWorkerSet that is ready, until edited.
func workload(name string, edits ...edit[lws.LeaderWorkerSet]) *lws.LeaderWorkerSet {
	return apply(&lws.LeaderWorkerSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "leaderworkerset.x-k8s.io/v1", Kind: "LeaderWorkerSet"},
		ObjectMeta: meta(name, 2, map[string]string{naming.LabelSpecHash: hash}),
		Spec:       lws.LeaderWorkerSetSpec{Replicas: ptr.To[int32](1), LeaderWorkerTemplate: lws.LeaderWorkerTemplate{Size: ptr.To[int32](4)}},
		Status: lws.LeaderWorkerSetStatus{
			ObservedGeneration: 2, Replicas: 1, ReadyReplicas: 1, UpdatedReplicas: 1,
			Conditions: []metav1.Condition{
				{Type: "Progressing", Status: "False", Reason: "GroupsProgressing", LastTransitionTime: at(5), ObservedGeneration: 2},
				{Type: "Available", Status: "True", Reason: "AllGroupsReady", LastTransitionTime: at(5), ObservedGeneration: 2},
			},
		},
	}, edits)
}

func progressing(w *lws.LeaderWorkerSet) {
	w.Status.ReadyReplicas = 0
	w.Status.Conditions = []metav1.Condition{
		{Type: "Progressing", Status: "True", Reason: "GroupsProgressing", LastTransitionTime: at(1), ObservedGeneration: 2},
	}
}

func staleWorkload(w *lws.LeaderWorkerSet) { w.Generation = 3 }

func deletedWorkload(w *lws.LeaderWorkerSet) { w.DeletionTimestamp = ptrTo(at(9)) }

// enginePod is a pod of a replica that is ready, until edited.
func enginePod(role string, replica, index int, edits ...edit[corev1.Pod]) *corev1.Pod {
	name := fmt.Sprintf("qwen-%s-%d-0-%d", role, replica, index)
	m := meta(name, 0, map[string]string{
		naming.LabelService: "qwen", naming.LabelRoleName: role, naming.LabelComponentType: "worker",
		naming.LabelReplicaIndex: strconv.Itoa(replica),
	})
	m.CreationTimestamp = at(1)
	return apply(&corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: m,
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "vllm", Image: "vllm"}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning,
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: at(1)},
				{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: at(4)},
			},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "vllm", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(2)}}}},
		},
	}, edits)
}

func unready(p *corev1.Pod) { p.Status.Conditions[1].Status = corev1.ConditionFalse }

func unscheduled(p *corev1.Pod) {
	p.Status.Phase = corev1.PodPending
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", LastTransitionTime: at(1)}}
	p.Status.ContainerStatuses = nil
}

// waits makes the pod's container wait for a reason.
func waits(reason string) edit[corev1.Pod] {
	return func(p *corev1.Pod) {
		unready(p)
		p.Status.ContainerStatuses[0].Ready = false
		p.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
			Reason: reason, Message: "failed: HF_TOKEN=hf_secret is not allowed to pull",
		}}
	}
}

func initWaits(reason string) edit[corev1.Pod] {
	return func(p *corev1.Pod) {
		waits(reason)(p)
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "routing-sidecar", State: p.Status.ContainerStatuses[0].State}}
		p.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}
	}
}

func ended(reason string, code int32) edit[corev1.Pod] {
	return func(p *corev1.Pod) {
		unready(p)
		p.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: reason, ExitCode: code}}
	}
}

func terminating(p *corev1.Pod) { p.DeletionTimestamp = ptrTo(at(9)) }

func podGroup(name string, phase volcano.PodGroupPhase, conditions ...volcano.PodGroupCondition) *volcano.PodGroup {
	return &volcano.PodGroup{
		TypeMeta:   metav1.TypeMeta{APIVersion: "scheduling.volcano.sh/v1beta1", Kind: "PodGroup"},
		ObjectMeta: meta(name, 1, nil),
		Spec:       volcano.PodGroupSpec{MinMember: 8, MinTaskMember: map[string]int32{"engine-0": 4, "engine-1": 4}},
		Status:     volcano.PodGroupStatus{Phase: phase, Conditions: conditions},
	}
}

func gangCondition(kind volcano.PodGroupConditionType, minute int) volcano.PodGroupCondition {
	return volcano.PodGroupCondition{
		Type: kind, Status: corev1.ConditionTrue, Reason: "NotEnoughResources",
		Message: "8/8 tasks in gang unschedulable:\n  0/5 nodes are available", LastTransitionTime: at(minute),
	}
}

func picker(edits ...edit[appsv1.Deployment]) *appsv1.Deployment {
	return apply(&appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: meta("qwen-epp", 1, nil),
		Spec:       appsv1.DeploymentSpec{Replicas: ptr.To[int32](1)},
		Status: appsv1.DeploymentStatus{
			ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
			Conditions: []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable"},
				{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
			},
		},
	}, edits)
}

func stuckPicker(d *appsv1.Deployment) {
	d.Status.AvailableReplicas = 0
	d.Status.Conditions = []appsv1.DeploymentCondition{
		{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, Reason: "MinimumReplicasUnavailable"},
		{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded", Message: "ReplicaSet has timed out progressing."},
	}
}

func updatingPicker(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 0 }

// route is an observed HTTPRoute with the conditions of one gateway.
func route(generation int64, conditions ...metav1.Condition) *gateway.HTTPRoute {
	r := &gateway.HTTPRoute{
		TypeMeta:   metav1.TypeMeta{APIVersion: "gateway.networking.k8s.io/v1", Kind: "HTTPRoute"},
		ObjectMeta: meta("qwen-httproute", generation, nil),
		Spec:       gateway.HTTPRouteSpec{Hostnames: []gateway.Hostname{"*.example.com", "qwen.example.com"}},
	}
	r.Spec.ParentRefs = []gateway.ParentReference{{Name: "shared"}}
	if len(conditions) > 0 {
		r.Status.Parents = []gateway.RouteParentStatus{{ParentRef: r.Spec.ParentRefs[0], ControllerName: "example.com/gateway", Conditions: conditions}}
	}
	return r
}

func pool(conditions ...metav1.Condition) *pools.InferencePool {
	p := &pools.InferencePool{
		TypeMeta:   metav1.TypeMeta{APIVersion: "inference.networking.k8s.io/v1", Kind: "InferencePool"},
		ObjectMeta: meta("qwen-pool", 1, nil),
	}
	if len(conditions) > 0 {
		p.Status.Parents = []pools.ParentStatus{{ParentRef: pools.ParentReference{Name: "shared", Namespace: namespace}, Conditions: conditions}}
	}
	return p
}

func ownGateway(address string, listeners []gateway.Listener, conditions ...metav1.Condition) *gateway.Gateway {
	g := &gateway.Gateway{
		TypeMeta:   metav1.TypeMeta{APIVersion: "gateway.networking.k8s.io/v1", Kind: "Gateway"},
		ObjectMeta: meta("qwen-gateway", 1, nil),
		Spec:       gateway.GatewaySpec{GatewayClassName: "example", Listeners: listeners},
		Status:     gateway.GatewayStatus{Conditions: conditions},
	}
	if address != "" {
		g.Status.Addresses = []gateway.GatewayStatusAddress{{Value: address}}
	}
	return g
}

func is(kind string, s metav1.ConditionStatus, reason string, generation int64) metav1.Condition {
	return metav1.Condition{Type: kind, Status: s, Reason: reason, Message: "said " + reason, ObservedGeneration: generation, LastTransitionTime: at(3)}
}

// A scene is a plan with its desired objects and what is observed of them.
type scene struct {
	tb       testing.TB
	plan     *plan.Plan
	objects  []kube.Object
	deferred []plan.Deferred
	observed map[string]*fnv1.Resource
	required map[string]*fnv1.Resources
	// composite is the XR as the last call left it. It is nil at the first.
	composite *fnv1.Resource
}

// newScene plans one role of two replicas, each on four nodes. All of its pods start as one
// gang. Nothing is observed yet.
func newScene(tb testing.TB, targets ...scheduling.Target) *scene {
	tb.Helper()
	role := &plan.Role{Name: "engine", Type: v1alpha1.ComponentTypeWorker, Replicas: 2, Nodes: 4, Port: 8000}
	s := &scene{
		tb: tb,
		plan: &plan.Plan{
			Service:  naming.Identity{Name: "qwen", Namespace: namespace, Generation: 7, UID: ownUID},
			Roles:    []*plan.Role{role},
			PodLimit: 64,
		},
		observed: map[string]*fnv1.Resource{},
		required: map[string]*fnv1.Resources{},
	}
	if len(targets) == 0 {
		targets = []scheduling.Target{{Namespace: namespace}}
	}
	for _, target := range targets {
		d := plan.ClusterPlan{Target: target, Base: "qwen", Endpoint: &plan.Endpoint{Port: 8000}}
		g := plan.Group{PodGroup: &plan.PodGroup{Key: d.Key("podgroup"), Name: "qwen", MinTaskMember: map[string]int32{"engine-0": 4, "engine-1": 4}}}
		for i := range int32(2) {
			g.Replicas = append(g.Replicas, plan.Replica{
				Key: d.Key("leaderworkerset", "engine", strconv.Itoa(int(i))), Name: fmt.Sprintf("qwen-engine-%d", i), Role: role, Index: i, Nodes: role.Nodes,
			})
		}
		d.Groups = []plan.Group{g}
		s.plan.Clusters = append(s.plan.Clusters, d)
		s.want(target, d.Key("service").String(), &corev1.Service{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: metav1.ObjectMeta{Name: "qwen"}})
		s.want(target, d.Key("podgroup").String(), podGroup("qwen", ""))
		for _, r := range g.Replicas {
			s.want(target, r.Key.String(), workload(r.Name))
		}
	}
	return s
}

// routed puts a router in front of the scene's pods.
func (s *scene) routed(spec plan.Router) *scene {
	s.plan.Router = &spec
	for i := range s.plan.Clusters {
		d := &s.plan.Clusters[i]
		d.Endpoint = nil
		s.drop(d.Key("service").String())
		s.want(d.Target, d.Key("deployment", "epp").String(), picker())
		s.want(d.Target, d.Key("inferencepool").String(), pool())
	}
	return s
}

// want adds a desired object.
func (s *scene) want(target scheduling.Target, k string, o any) {
	s.tb.Helper()
	w := kube.Object{Key: key.Parse(k), Resource: encode(s.tb, o)}
	if target.Remote() {
		var err error
		if w, err = remote.Wrap(w, s.plan.Service, target, false); err != nil {
			s.tb.Fatal(err)
		}
	}
	s.objects = append(s.objects, w)
}

func (s *scene) drop(k string) {
	kept := s.objects[:0:0]
	for _, o := range s.objects {
		if o.Key.String() != k {
			kept = append(kept, o)
		}
	}
	s.objects = kept
}

// see adds an observed object.
func (s *scene) see(key string, o any) *scene {
	s.tb.Helper()
	s.observed[key] = &fnv1.Resource{Resource: encode(s.tb, o)}
	return s
}

// seeRemote adds an observed Object that carries one.
func (s *scene) seeRemote(key string, o any, conditions ...any) *scene {
	s.tb.Helper()
	status, spec := map[string]any{"conditions": conditions}, map[string]any{}
	if o != nil {
		status["atProvider"] = map[string]any{"manifest": encode(s.tb, o)}
		spec["forProvider"] = map[string]any{"manifest": encode(s.tb, o)}
	}
	return s.see(key, map[string]any{
		"apiVersion": "kubernetes.m.crossplane.io/v1alpha1", "kind": "Object",
		"metadata": map[string]any{"name": "x"}, "spec": spec, "status": status,
	})
}

func synced(status, message string) map[string]any {
	return map[string]any{"type": "Synced", "status": status, "reason": "Reconcile", "message": message}
}

// pods answers the requirement for pods. Without any the answer is that there is
// none.
func (s *scene) pods(all ...*corev1.Pod) *scene {
	s.tb.Helper()
	r := &fnv1.Resources{}
	for _, p := range all {
		r.Items = append(r.Items, &fnv1.Resource{Resource: encode(s.tb, p)})
	}
	s.required[require.Pods] = r
	return s
}

func (s *scene) deferObject(d plan.Deferred) *scene {
	s.deferred = append(s.deferred, d)
	s.drop(d.Key.String())
	return s
}

// evaluateNext evaluates as the call after one with that status does.
func (s *scene) evaluateNext(former v1alpha1.InferenceServiceStatus) evaluated {
	s.tb.Helper()
	s.composite = &fnv1.Resource{Resource: encode(s.tb, &v1alpha1.InferenceService{Status: former})}
	return s.evaluate()
}

func (s *scene) request() incoming.Request {
	s.tb.Helper()
	return incomingtest.Request(s.tb, &fnv1.RunFunctionRequest{Observed: &fnv1.State{Composite: s.composite, Resources: s.observed}, RequiredResources: s.required})
}

// evaluated is an Evaluation with the states of the objects.
type evaluated struct {
	Evaluation

	objects []*objectState
}

func (s *scene) evaluate() evaluated {
	state := Read(s.request(), s.plan)
	s.plan.Rollout.Rollout = (&v1alpha1.InferenceServiceSpec{}).RolloutOf()
	running := state.RunningView()
	running.Revision = map[string]string{"engine": hash}
	running.Weights = nil // Tests of weights plan the loading themselves.
	s.plan.RollOut(running)
	e := newEvaluator(state, s.objects, s.deferred)
	return evaluated{e.evaluation(), e.objects}
}

const (
	lws0   = "leaderworkerset/engine/0"
	lws1   = "leaderworkerset/engine/1"
	pgKey  = "podgroup"
	svcKey = "service"
)

// engine is the status of the role of newScene.
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

// running has all objects of the scene observed, and ready.
func running(s *scene) *scene {
	return s.see(svcKey, map[string]any{"kind": "Service"}).
		see(pgKey, podGroup("qwen", volcano.PodGroupRunning)).
		see(lws0, workload("qwen-engine-0")).
		see(lws1, workload("qwen-engine-1"))
}

// conditionLine writes a condition as one line.
func conditionLine(v evaluated, name string) string {
	for _, c := range v.Conditions {
		if c.Type == name {
			return strings.TrimSuffix(fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message), ": ")
		}
	}
	return "absent"
}
