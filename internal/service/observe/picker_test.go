package observe

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

// TestEvaluatePickers is about the Deployment of the endpoint picker and its pods.
func TestEvaluatePickers(t *testing.T) {
	withRoute := plan.Router{Name: "router", HasRoute: true}
	accepted := is("Accepted", "True", "Accepted", 1)
	evaluateRouters(t, map[string]routerCase{
		"PickerFailsThoughReady": {
			reason: "An endpoint picker's failing pod is trouble before its Deployment notices.",
			router: withRoute,
			scene: func(s *scene) {
				s.want(scheduling.Target{}, routeKey, route(1))
				s.see(eppKey, picker()).see(poolKey, pool(accepted)).see(routeKey, route(1, accepted)).
					pods(enginePod("router", 0, 0, ended("OOMKilled", 137), func(p *corev1.Pod) {
						p.Name, p.Labels = "qwen-epp-abc", map[string]string{naming.LabelService: "qwen", naming.LabelComponentType: "router"}
					}))
			},
			want: routerWant{router: "False Failed: pod qwen-epp-abc: container vllm: OOMKilled (exit code 137)", route: "True Accepted", url: "http://qwen.example.com"},
		},
		"GatewayPodFails": {
			reason: "Istio copies the label of the service from its own Gateway to the gateway's pods. They are no endpoint pickers.",
			router: withRoute,
			scene: func(s *scene) {
				s.want(scheduling.Target{}, routeKey, route(1))
				s.see(eppKey, picker()).see(poolKey, pool(accepted)).see(routeKey, route(1, accepted)).
					pods(enginePod("router", 0, 0, waits("CrashLoopBackOff"), func(p *corev1.Pod) {
						p.Name, p.Labels = "qwen-gateway-istio-abc", map[string]string{naming.LabelService: "qwen"}
					}))
			},
			want: routerWant{router: "True AllReady", route: "True Accepted", url: "http://qwen.example.com", stable: true},
		},
		"PickerStuck": {
			reason: "A Deployment that has given up is shown with its reason.",
			router: plan.Router{Name: "router"},
			scene:  func(s *scene) { s.see(eppKey, picker(stuckPicker)).see(poolKey, pool()) },
			want: routerWant{
				router:   "False Failed: Deployment qwen-epp: ProgressDeadlineExceeded: ReplicaSet has timed out progressing.",
				route:    "False NoRoute: no gateway leads to the pool: the router's httproute names no parent, it has no gateway of its own, and the platform sets no default parent",
				notReady: []string{eppKey},
			},
		},
		"PickerUpdating": {
			reason: "A Deployment is ready with its newest pods only.",
			router: plan.Router{Name: "router"},
			scene:  func(s *scene) { s.see(eppKey, picker(updatingPicker)).see(poolKey, pool()) },
			want: routerWant{
				router:   "False Updating: Deployment qwen-epp: 0 of 1 pods are up to date",
				route:    "False NoRoute: no gateway leads to the pool: the router's httproute names no parent, it has no gateway of its own, and the platform sets no default parent",
				notReady: []string{eppKey},
			},
		},
		"PickerPending": {
			reason: "The Deployment does not say that its pod waits for a node.",
			router: plan.Router{Name: "router"},
			scene: func(s *scene) {
				d := picker()
				d.Status.AvailableReplicas = 0
				s.see(eppKey, d).see(poolKey, pool()).pods(enginePod("router", 0, 0, unscheduled, func(p *corev1.Pod) {
					p.Name, p.Labels = "qwen-epp-abc", map[string]string{naming.LabelService: "qwen", naming.LabelComponentType: "router"}
				}))
			},
			want: routerWant{
				router:   "False NotReady: Deployment qwen-epp: 0 of 1 pods are available, 1 cannot be scheduled (the pods' events say why)",
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
					p.Name, p.Labels = "qwen-epp-abc", map[string]string{naming.LabelService: "qwen", naming.LabelComponentType: "router"}
				}))
			},
			want: routerWant{
				router:   "False Failed: pod qwen-epp-abc: container vllm: CrashLoopBackOff",
				route:    "False NoRoute: no gateway leads to the pool: the router's httproute names no parent, it has no gateway of its own, and the platform sets no default parent",
				notReady: []string{eppKey},
			},
		},
	})
}

// TestPickersOutdated proves that endpoint pickers are not ready in the call that changes them.
func TestPickersOutdated(t *testing.T) {
	hashed := func(hash string) edit[appsv1.Deployment] {
		return func(d *appsv1.Deployment) {
			if hash != "" {
				d.Annotations = map[string]string{naming.AnnotationPickersHash: hash}
			}
		}
	}
	cases := map[string]struct {
		reason       string
		desired, has string
		want         string
	}{
		"Changed":  {reason: "Its status is of the pickers before.", desired: "b", has: "a", want: "False Updating: Deployment qwen-epp: is being updated"},
		"Same":     {reason: "Nothing changes.", desired: "b", has: "b", want: "True AllReady"},
		"Upgraded": {reason: "It gets the hash by this response, and its pickers stay.", desired: "b", want: "True AllReady"},
	}
	for name, tc := range cases {
		for where, target := range map[string]scheduling.Target{"Here": {Namespace: namespace}, "Elsewhere": {Cluster: "east", Namespace: namespace, ProviderConfig: v1alpha1.ProviderConfigRef{Name: "east"}}} {
			t.Run(name+where, func(t *testing.T) {
				s := newScene(t, target).routed(plan.Router{Name: "router"})
				c := s.plan.Clusters[0]
				s.drop(c.DeploymentKey().String())
				s.want(target, c.DeploymentKey().String(), picker(hashed(tc.desired)))
				deployment, p := c.DeploymentKey().String(), c.Key(key.InferencePool).String()
				if target.Remote() {
					s.seeRemote(deployment, picker(hashed(tc.has)), synced("True", "")).seeRemote(p, pool(), synced("True", ""))
				} else {
					s.see(deployment, picker(hashed(tc.has))).see(p, pool())
				}
				if diff := cmp.Diff(tc.want, strings.Replace(conditionLine(s.evaluate(), RouterReady), "cluster east: ", "", 1)); diff != "" {
					t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
				}
			})
		}
	}
}

// Deployments whose status is of an older generation are not ready either.
func TestEvaluatePickerStale(t *testing.T) {
	s := running(newScene(t)).routed(plan.Router{Name: "router"}).
		see("deployment/epp", picker(func(d *appsv1.Deployment) { d.Generation = 2 })).see("inferencepool", pool())
	if got, want := conditionLine(s.evaluate(), RouterReady), "Unknown GenerationNotObserved: Deployment qwen-epp: its status is of generation 1, not 2"; got != want {
		t.Errorf("want %q, got %q", want, got)
	}
}

// TestEvaluateNothingMade proves that what is missing is not ready, and that what nothing needs is not missing.
func TestEvaluateNothingMade(t *testing.T) {
	cases := map[string]struct {
		reason   string
		pending  bool
		hasRoute bool
		want     map[string]string
	}{
		"NotNeeded": {
			reason: "No replicas are wanted.", hasRoute: true,
			want: map[string]string{RouterReady: "True ScaledToZero", RouteReady: "True ScaledToZero"},
		},
		"NotPlaced": {
			reason: "No cluster takes the replicas, so there is nothing that a gateway could have accepted.", pending: true, hasRoute: true,
			want: map[string]string{
				RouterReady: "False NotCreated: it is made where the service is placed",
				RouteReady:  "False NotCreated: it is made where the service is placed",
			},
		},
		"NoRoute": {
			reason: "A route that the service does not have comes nowhere.", pending: true,
			want: map[string]string{
				RouterReady: "False NotCreated: it is made where the service is placed",
				RouteReady:  "False NoRoute: no gateway leads to the pool: the router's httproute names no parent, it has no gateway of its own, and the platform sets no default parent",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.plan.Router = &plan.Router{HasRoute: tc.hasRoute}
			c := &s.plan.Clusters[0]
			if tc.pending {
				c.Pending = c.Groups[0].Replicas
			}
			c.Groups, s.objects = nil, nil
			v := s.evaluate()
			got := map[string]string{RouterReady: conditionLine(v, RouterReady), RouteReady: conditionLine(v, RouteReady)}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// A router without replicas picks no pods, whatever its Deployment says of its no pods.
// Where the whole service is scaled to zero it is not missing.
func TestEvaluateRouterScaledToZero(t *testing.T) {
	none := picker(func(d *appsv1.Deployment) { d.Spec.Replicas, d.Status.Replicas = ptr.To[int32](0), 0 })
	s := running(newScene(t)).routed(plan.Router{Name: "router"}).see("deployment/epp", none).see("inferencepool", pool())
	for i := range s.objects {
		if s.objects[i].Key.String() == "deployment/epp" {
			s.objects[i].Resource = encode(t, none)
		}
	}
	v := s.evaluate()
	if got, want := conditionLine(v, RouterReady), "False ScaledToZero: Deployment qwen-epp: has no replicas, so nothing picks pods for requests: set replicas of the router to 1 or more"; got != want {
		t.Errorf("want %q, got %q", want, got)
	}
	if v.Ready[key.Parse("deployment/epp")] {
		t.Error("the service is ready, and nothing answers")
	}
	s.plan.Clusters[0].Groups = nil
	if got, want := conditionLine(s.evaluate(), RouterReady), "True AllReady"; got != want {
		t.Errorf("with the whole service at zero: want %q, got %q", want, got)
	}
}
