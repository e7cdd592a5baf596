package router

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	inference "sigs.k8s.io/gateway-api-inference-extension/api/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/modelroute"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

var update = flag.Bool("update", false, "write the rendered objects into testdata")

func example() *plan.Plan {
	return &plan.Plan{
		Service: naming.Identity{Name: "my-service", Namespace: "default"},
		Router: &plan.Router{
			Name:        "gateway",
			Strategy:    v1alpha1.StrategyPrefixCache,
			Dialect:     inputv1alpha1.DialectGAIE,
			Image:       inputv1alpha1.DefaultImageGAIE,
			Config:      "kind: EndpointPickerConfig\n",
			Replicas:    1,
			FailureMode: v1alpha1.FailClose,
			Port:        8000,
			HasRoute:    true,
			Route: document(map[string]any{
				"parentRefs": []any{map[string]any{"name": "my-gateway", "namespace": "gateway-system"}},
				"hostnames":  []any{"api.example.com"},
			}),
			Pod: plan.EndpointPickerPod{
				ImagePullPolicy: corev1.PullIfNotPresent,
				Resources: &corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m")},
					Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("4Gi")},
				},
			},
		},
		Clusters: []plan.ClusterPlan{{Base: "my-service", Target: scheduling.Target{Namespace: "default"}, PoolSelector: map[string]string{naming.LabelComponentType: "worker"}}},
	}
}

// everything sets all that the example does not.
func everything() *plan.Plan {
	p := example()
	p.Labels = map[string]string{"team": "llm", "app": "not-this"}
	p.Annotations = map[string]string{"cost-center": "7"}
	priority, none, seconds := int32(10), int32(0), int64(30)
	r := p.Router
	r.Dialect, r.Image, r.Disaggregated = inputv1alpha1.DialectLLMD, inputv1alpha1.DefaultImageLLMD, true
	p.Clusters[0].PoolSelector = nil
	r.Replicas, r.FailureMode, r.DestinationRule, r.HasGateway = 2, v1alpha1.FailOpen, true, true
	r.Gateway = document(map[string]any{
		"gatewayClassName": "istio",
		"listeners":        []any{map[string]any{"name": "http", "port": int64(80), "protocol": "HTTP", "hostname": nil}},
	})
	r.Route = document(map[string]any{"hostnames": []any{"llm.example.com"}, "useDefaultGateways": nil})
	r.Pod.NodeSelector = map[string]string{"pool": "cpu"}
	r.Pod.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
	r.Pod.Tolerations = []corev1.Toleration{{Key: "cpu", Operator: corev1.TolerationOpEqual, Value: "only", Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds}, {Operator: corev1.TolerationOpExists}}
	r.Models = []modelroute.Model{
		{Name: "org/Chat:v1", Priority: &priority, Targets: []modelroute.Target{{Name: "base", Weight: 90}, {Name: "lora-1", Weight: 10}}},
		{Name: "batch", Priority: &none, Targets: []modelroute.Target{{Name: "batch", Weight: 1}}},
		{Name: "plain", Targets: []modelroute.Target{{Name: "plain", Weight: 1}}},
	}
	return p
}

func TestRender(t *testing.T) {
	cases := map[string]struct {
		reason string
		p      *plan.Plan
	}{
		"example":    {"The first example of the design documents.", example()},
		"everything": {"Several endpoint pickers of llm-d, a Gateway, models, Istio, and every setting of a platform team.", everything()},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects, err := Render(tc.p, &tc.p.Clusters[0])
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			for _, o := range objects {
				j := marshal(t, o)
				y, err := yaml.JSONToYAML(j)
				if err != nil {
					t.Fatal(err)
				}
				got.WriteString("# " + o.Key.String() + "\n" + string(y) + "---\n")
				typed(t, o, j)
			}
			golden := filepath.Join("testdata", name+".yaml")
			if *update {
				if err := os.WriteFile(golden, got.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("%s\nRender(): -golden, +got (go test -update writes it):\n%s", tc.reason, diff)
			}
			if s := got.String(); strings.Contains(s, "null") || strings.Contains(s, "status:") || strings.Contains(s, "creationTimestamp") {
				t.Error("an object has a null, a status or a creationTimestamp")
			}
		})
	}
}

// typed decodes an object strictly into the type of its own project. test/epp does so with
// InferenceObjective and InferenceModelRewrite.
func typed(t *testing.T, o kube.Object, j []byte) {
	t.Helper()
	types := map[string]any{
		"ServiceAccount":      &corev1.ServiceAccount{},
		"Role":                &rbacv1.Role{},
		"RoleBinding":         &rbacv1.RoleBinding{},
		"ConfigMap":           &corev1.ConfigMap{},
		"Deployment":          &appsv1.Deployment{},
		"Service":             &corev1.Service{},
		"PodDisruptionBudget": &policyv1.PodDisruptionBudget{},
		"InferencePool":       &inference.InferencePool{},
		"HTTPRoute":           &gatewayv1.HTTPRoute{},
		"Gateway":             &gatewayv1.Gateway{},
	}
	into, ok := types[o.Kind()]
	if !ok {
		switch o.Kind() {
		case "InferenceObjective", "InferenceModelRewrite", "DestinationRule":
			return
		}
		t.Fatalf("%s: no type to decode a %s", o.Key, o.Kind())
	}
	if err := yaml.UnmarshalStrict(j, into); err != nil {
		t.Errorf("%s: %v", o.Key, err)
	}
}

func TestRoute(t *testing.T) {
	pool := map[string]any{"group": "inference.networking.k8s.io", "kind": "InferencePool", "name": "my-service-pool"}
	unlimited := map[string]any{"request": "0s"}
	cases := map[string]struct {
		reason string
		change func(p *plan.Plan)
		want   map[string]any
	}{
		"ServiceOfTheDesign": {
			reason: "The prefill/decode example names a Service {service}-pool, which means the pool.",
			change: func(p *plan.Plan) {
				p.Router.Route.Fields["rules"] = encode([]any{map[string]any{
					"matches":     []any{map[string]any{"path": map[string]any{"type": "PathPrefix", "value": "/"}}},
					"backendRefs": []any{map[string]any{"name": "my-service-pool", "kind": "Service", "port": int64(8000), "weight": int64(3)}},
				}})
			},
			want: map[string]any{"rules": []any{map[string]any{
				"matches":     []any{map[string]any{"path": map[string]any{"type": "PathPrefix", "value": "/"}}},
				"backendRefs": []any{map[string]any{"group": pool["group"], "kind": pool["kind"], "name": pool["name"], "weight": int64(3)}},
				"timeouts":    unlimited,
			}}},
		},
		"RulesAreKept": {
			reason: "Matches, filters, timeouts, unknown fields and other backends stay as they are.",
			change: func(p *plan.Plan) {
				p.Router.Route.Fields["rules"] = encode([]any{
					map[string]any{"name": "chat", "younger": "field", "timeouts": map[string]any{"request": "600s"}, "filters": []any{map[string]any{"type": "RequestHeaderModifier"}}},
					map[string]any{"backendRefs": []any{map[string]any{"name": "docs", "port": int64(80)}}},
					map[string]any{"filters": []any{map[string]any{"type": "RequestRedirect"}}},
					map[string]any{"timeouts": map[string]any{}},
				})
			},
			want: map[string]any{"rules": []any{
				map[string]any{"name": "chat", "younger": "field", "timeouts": map[string]any{"request": "600s"}, "filters": []any{map[string]any{"type": "RequestHeaderModifier"}}, "backendRefs": []any{pool}},
				map[string]any{"backendRefs": []any{map[string]any{"name": "docs", "port": int64(80)}}},
				map[string]any{"filters": []any{map[string]any{"type": "RequestRedirect"}}},
				map[string]any{"timeouts": map[string]any{}, "backendRefs": []any{pool}},
			}},
		},
		"PoolOfAnotherNamespace": {
			reason: "A backend with the pool's name in another namespace is not the pool.",
			change: func(p *plan.Plan) {
				p.Router.Route.Fields["rules"] = encode([]any{map[string]any{"backendRefs": []any{map[string]any{"name": "my-service-pool", "namespace": "other"}}}})
			},
			want: map[string]any{"rules": []any{map[string]any{"backendRefs": []any{map[string]any{"name": "my-service-pool", "namespace": "other"}}}}},
		},
		"PoolInASharedNamespace": {
			reason: "If the pool's name has a hash, users still write the name without it.",
			change: func(p *plan.Plan) {
				p.Clusters[0].Base = "my-service-abc123"
				p.Router.Route.Fields["rules"] = encode([]any{map[string]any{"backendRefs": []any{map[string]any{"name": "my-service-pool"}}}})
			},
			want: map[string]any{"rules": []any{map[string]any{
				"backendRefs": []any{map[string]any{"group": pool["group"], "kind": pool["kind"], "name": "my-service-abc123-pool"}},
				"timeouts":    unlimited,
			}}},
		},
		"ClosedPaths": {
			reason: "Paths that are not passed on have a rule without a backend.",
			change: func(p *plan.Plan) { p.Router.ClosedPaths = []string{"/x"} },
			want: map[string]any{"rules": []any{
				map[string]any{"backendRefs": []any{pool}, "timeouts": unlimited},
				map[string]any{"matches": []any{map[string]any{"path": map[string]any{"type": "Exact", "value": "/x"}}}},
			}},
		},
		"ParentsOfThePlatform": {
			reason: "A route that names no gateway gets the platform team's.",
			change: func(p *plan.Plan) {
				delete(p.Router.Route.Fields, "parentRefs")
				p.Router.Parents = []inputv1alpha1.ParentRef{{Name: "shared", Namespace: "infra"}}
			},
			want: map[string]any{
				"parentRefs": []any{map[string]any{"name": "shared", "namespace": "infra"}},
				"rules":      []any{map[string]any{"backendRefs": []any{pool}, "timeouts": unlimited}},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := example()
			tc.change(p)
			before := marshalDoc(t, kube.AsMap(p.Router.Route))
			objects, err := Render(p, &p.Clusters[0])
			if err != nil {
				t.Fatal(err)
			}
			var got map[string]any
			for _, o := range objects {
				if o.Kind() == "HTTPRoute" {
					got = kube.AsMap(kube.Lookup(o.Resource, "spec").GetStructValue())
				}
			}
			delete(got, "hostnames")
			if _, ours := tc.want["parentRefs"]; !ours {
				delete(got, "parentRefs")
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nHTTPRoute's spec: -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(before, marshalDoc(t, kube.AsMap(p.Router.Route))); diff != "" {
				t.Errorf("the user's document was changed:\n%s", diff)
			}
		})
	}
}

// TestConfigHash proves that a new configuration changes the pods, which restarts the endpoint
// picker.
func TestConfigHash(t *testing.T) {
	hash := func(config string) string {
		p := example()
		p.Router.Config = config
		objects, err := Render(p, &p.Clusters[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			if o.Kind() == "Deployment" {
				return kube.Lookup(o.Resource, "spec", "template", "metadata", "annotations", naming.AnnotationConfigHash).GetStringValue()
			}
		}
		return ""
	}
	if a, b := hash("a"), hash("b"); a == "" || a == b {
		t.Errorf("configurations a and b have the hashes %q and %q", a, b)
	}
}

// TestPickersHash proves that the hash of a Deployment changes with everything that changes its pods, or their number.
func TestPickersHash(t *testing.T) {
	hash := func(t *testing.T, edit func(*plan.Plan)) string {
		t.Helper()
		p := example()
		edit(p)
		objects, err := Render(p, &p.Clusters[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			if o.Kind() == "Deployment" {
				if noted := kube.Lookup(o.Resource, "spec", "template", "metadata", "annotations", naming.AnnotationPickersHash); noted != nil {
					t.Errorf("the pods have the hash, too: %v", noted)
				}
				return kube.Lookup(o.Resource, "metadata", "annotations", naming.AnnotationPickersHash).GetStringValue()
			}
		}
		return ""
	}
	same := hash(t, func(*plan.Plan) {})
	cases := map[string]struct {
		reason string
		edit   func(*plan.Plan)
		stays  bool
	}{
		"Nothing":   {reason: "The same Deployment has the same hash.", edit: func(*plan.Plan) {}, stays: true},
		"Route":     {reason: "The route is another object.", edit: func(p *plan.Plan) { p.Router.HasRoute = false }, stays: true},
		"Image":     {reason: "Its pods get another image.", edit: func(p *plan.Plan) { p.Router.Image += "-next" }},
		"Replicas":  {reason: "It gets another number of them.", edit: func(p *plan.Plan) { p.Router.Replicas = 2 }},
		"Resources": {reason: "They get other resources.", edit: func(p *plan.Plan) { p.Router.Pod.Resources = &corev1.ResourceRequirements{} }},
		"Labels":    {reason: "They get the labels of the Input.", edit: func(p *plan.Plan) { p.Labels = map[string]string{"team": "a"} }},
		"Config":    {reason: "They read another configuration.", edit: func(p *plan.Plan) { p.Router.Config += "# next" }},
		"Paused":    {reason: "They wait.", edit: func(p *plan.Plan) { p.Clusters[0].PickerPaused = true }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := hash(t, tc.edit); same == "" || (got == same) != tc.stays {
				t.Errorf("%s\nbefore %q, then %q", tc.reason, same, got)
			}
		})
	}
}

// TestRightsStay proves that an endpoint picker keeps its rights while one of another dialect, or fewer of them, replace it.
func TestRightsStay(t *testing.T) {
	rules := func(dialect inputv1alpha1.Dialect, replicas int32) any {
		p := example()
		p.Router.Dialect, p.Router.Replicas = dialect, replicas
		objects, err := Render(p, &p.Clusters[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			if o.Kind() == "Role" {
				return kube.AsMap(o.Resource)["rules"]
			}
		}
		return nil
	}
	want := rules(inputv1alpha1.DialectLLMD, 3)
	for _, dialect := range []inputv1alpha1.Dialect{inputv1alpha1.DialectLLMD, inputv1alpha1.DialectGAIE} {
		if diff := cmp.Diff(want, rules(dialect, 1)); diff != "" || want == nil {
			t.Errorf("with one replica of %s: -three of LLMD, +got:\n%s", dialect, diff)
		}
	}
}

// TestSelectors proves that the pool does not select the endpoint picker's pods.
func TestSelectors(t *testing.T) {
	p := everything()
	objects, err := Render(p, &p.Clusters[0])
	if err != nil {
		t.Fatal(err)
	}
	var pods, pool map[string]any
	for _, o := range objects {
		switch o.Kind() {
		case "Deployment":
			pods = kube.AsMap(kube.Lookup(o.Resource, "spec", "template", "metadata", "labels").GetStructValue())
		case "InferencePool":
			pool = kube.AsMap(kube.Lookup(o.Resource, "spec", "selector", "matchLabels").GetStructValue())
		}
	}
	if len(pods) == 0 || len(pool) == 0 {
		t.Fatalf("pods %v, pool %v", pods, pool)
	}
	for k, v := range pool {
		if pods[k] != v {
			return
		}
	}
	t.Errorf("the pool %v selects the endpoint picker's pods %v", pool, pods)
}

func marshal(t *testing.T, o kube.Object) []byte {
	t.Helper()
	j, err := o.Resource.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// encode converts a value to the form that requests have.
func encode(v any) *structpb.Value {
	e, err := kube.EncodeValue(v)
	if err != nil {
		panic(err)
	}
	return e
}

func document(d map[string]any) *kube.Document { return encode(d).GetStructValue() }

func marshalDoc(t *testing.T, d map[string]any) string {
	t.Helper()
	y, err := yaml.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return string(y)
}

// BenchmarkRender renders all objects of a router.
func BenchmarkRender(b *testing.B) {
	p := example()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Render(p, &p.Clusters[0]); err != nil {
			b.Fatal(err)
		}
	}
}

// TestEndsAtOnce shows that an endpoint picker is told not to go on after SIGTERM where the plan says so.
func TestEndsAtOnce(t *testing.T) {
	for _, ends := range []bool{false, true} {
		r := &rendering{cluster: &plan.ClusterPlan{}, router: &plan.Router{EndsAtOnce: ends}}
		if got := slices.Contains(r.args(), "--drain-timeout=0s"); got != ends {
			t.Errorf("EndsAtOnce is %t, and the arguments have the flag: %t", ends, got)
		}
	}
}
