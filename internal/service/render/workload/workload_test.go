package workload

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	lws "sigs.k8s.io/lws/api/leaderworkerset/v1"
	"sigs.k8s.io/yaml"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

var update = flag.Bool("update", false, "write the files in testdata")

func document(t testing.TB, text string) *kube.Document {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s := &structpb.Struct{}
	if err := protojson.Unmarshal(data, s); err != nil {
		t.Fatal(err)
	}
	return s
}

// pods returns a template in the form that the plan has.
func pods(t testing.TB, text string, change ...func(*plan.PodTemplate)) plan.PodTemplate {
	t.Helper()
	p := plan.PodTemplate{Document: document(t, text), SharedMemory: true}
	into := struct {
		Spec corev1.PodSpec `json:"spec"`
	}{}
	if errs := kube.Decode(p.Document, field.NewPath("template"), &into); len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	p.Spec = into.Spec
	for _, f := range change {
		f(&p)
	}
	return p
}

func runs(script string) func(*plan.PodTemplate) {
	return func(p *plan.PodTemplate) { p.Command, p.Args = []string{"/bin/sh", "-c"}, []string{script} }
}

// drains lets the engine and the container before it go on for a while.
func drains(p *plan.PodTemplate) { p.DrainSeconds, p.GraceSeconds, p.Proxies = 30, 60, []int{0} }

func headless(p *plan.PodTemplate) { p.Headless = true }

func nixl(p *plan.PodTemplate) {
	p.Env = []corev1.EnvVar{
		{Name: "VLLM_NIXL_SIDE_CHANNEL_HOST", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}},
		{Name: "VLLM_NIXL_SIDE_CHANNEL_PORT", Value: "5600"},
	}
}

func service(name string, roles ...*plan.Role) *plan.Plan {
	clusterPlan := plan.ClusterPlan{Target: scheduling.Target{Namespace: "default"}, Base: name, Groups: make([]plan.Group, 1)}
	for _, r := range roles {
		for i := range r.Replicas {
			clusterPlan.Groups[0].Replicas = append(clusterPlan.Groups[0].Replicas, replica(name, r, i))
		}
	}
	return &plan.Plan{Service: naming.Identity{Name: name, Namespace: "default"}, Roles: roles, Clusters: []plan.ClusterPlan{clusterPlan}}
}

func replica(service string, r *plan.Role, i int32) plan.Replica {
	task := r.Name + "-" + strconv.Itoa(int(i))
	rep := plan.Replica{Key: key.New("", key.LeaderWorkerSet, r.Name, strconv.Itoa(int(i))), Name: service + "-" + task, Role: r, Index: i, Task: task}
	if r.Scheduler == plan.SchedulerVolcano {
		rep.PodGroup = service
	}
	return rep
}

func render(t testing.TB, p *plan.Plan) []kube.Object {
	t.Helper()
	r, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	var all []kube.Object
	for i := range p.Clusters {
		for j := range p.Clusters[i].Groups {
			for k := range p.Clusters[i].Groups[j].Replicas {
				o, err := r.LeaderWorkerSet(&p.Clusters[i], &p.Clusters[i].Groups[j].Replicas[k])
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, o)
			}
		}
	}
	return all
}

func asYAML(t testing.TB, s *structpb.Struct) []byte {
	t.Helper()
	out, err := yaml.Marshal(kube.AsMap(s))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

const (
	head = "ray start --head --port=6379 && vllm serve --model deepseek-ai/DeepSeek-R1 --tensor-parallel-size 32 --distributed-executor-backend ray"
	join = "ray start --address=$LWS_LEADER_ADDRESS:6379 --block"
)

const qwen = `
spec:
  containers:
    - name: vllm
      image: vllm/vllm-openai:v0.11.0
      args: ["--model", "Qwen/Qwen3-8B"]
      ports:
        - containerPort: 8000
          name: http
      resources:
        limits:
          nvidia.com/gpu: "1"
`

const proxy = `
spec:
  containers:
    - {name: envoy, image: envoy, ports: [{containerPort: 8000}], lifecycle: {postStart: {exec: {command: [warm]}}}}
    - {name: vllm, image: vllm, args: [--uds=/s]}
    - {name: logs, image: fluent}
`

const deepseek = `
spec:
  containers:
    - name: vllm
      image: vllm/vllm-openai:v0.11.0
      args: ["--model", "deepseek-ai/DeepSeek-R1", "--tensor-parallel-size", "32"]
      ports:
        - containerPort: 8000
          name: http
      resources:
        limits:
          nvidia.com/gpu: "8"
`

// everything is a template that has all that an overlay touches.
const everything = `
metadata:
  creationTimestamp: null
  labels: {team: a, fusioninfer.io/service: somebody-else, fusioninfer.io/replica-index: "9"}
  annotations: {note: kept, volcano.sh/task-spec: not-mine}
spec:
  fieldOfTomorrow: {a: [1, 2.5, true]}
  schedulerName: mine
  terminationGracePeriodSeconds: 0
  volumes: [{name: shared-memory, emptyDir: {}}]
  initContainers: [{name: routing-sidecar, image: fetch}]
  containers:
  - {name: logs, image: fluent, ports: [{containerPort: 8000}], readinessProbe: {httpGet: {port: 8000}}}
  - name: vllm
    image: vllm
    alsoOfTomorrow: 1
    args: [a]
    env: [{name: HF_HOME, value: ""}]
    volumeMounts: [{name: shared-memory, mountPath: /models}]
    ports: [{containerPort: 8000, name: http, hostPort: 8000}, {containerPort: 9100, name: metrics}, {containerPort: 18515, name: rdma}]
    startupProbe: {httpGet: {port: http, path: /health}, failureThreshold: 100}
    readinessProbe: {httpGet: {port: 8000, path: /health}}
    livenessProbe: {tcpSocket: {port: 8000}}
    lifecycle: {preStop: {httpGet: {port: 8000, path: /drain}}, postStart: {exec: {command: [sh, -c, "until nc -z localhost:8000 || nc -z 127.0.0.1:80001 || nc -z [::1]:8000; do sleep 1; done"]}}}
    securityContext: null
`

func goldens(t testing.TB) map[string]struct {
	reason string
	plan   *plan.Plan
} {
	t.Helper()
	worker := func(name string, replicas, nodes int32, l, w plan.PodTemplate) *plan.Role {
		return &plan.Role{Name: name, Type: v1alpha1.ComponentTypeWorker, Replicas: replicas, Nodes: nodes, Leader: l, Worker: w, Port: 8000, EnginePort: 8000}
	}
	one := worker("inference", 1, 1, pods(t, qwen), plan.PodTemplate{})
	many := worker("inference", 2, 4, pods(t, deepseek, runs(head)), pods(t, deepseek, runs(join), headless))
	many.Scheduler, many.RayPort = plan.SchedulerVolcano, 6379
	prefill := worker("prefill", 1, 2, pods(t, deepseek, runs(head), nixl), pods(t, deepseek, runs(join), headless, nixl))
	prefill.Type, prefill.Scheduler, prefill.RayPort = v1alpha1.ComponentTypePrefiller, plan.SchedulerVolcano, 6379
	prefill.PodLabels = map[string]string{plan.LabelDisaggregatedRole: "prefill"}
	decode := worker("decode", 2, 4, pods(t, deepseek, runs(strings.Replace(head, "32", "32 --port 8200", 1)), nixl), pods(t, deepseek, runs(join), headless, nixl))
	decode.Type, decode.Scheduler, decode.RayPort, decode.EnginePort = v1alpha1.ComponentTypeDecoder, plan.SchedulerVolcano, 6379, 8200
	decode.PodLabels = map[string]string{plan.LabelDisaggregatedRole: "decode"}
	decode.Sidecar = &plan.Sidecar{Image: "sidecar:v1", Connector: "nixlv2", PoolOnly: true, ServiceAccount: "default"}
	second := func(p *plan.PodTemplate) { p.Engine = 1 }
	all := worker("all", 1, 2, pods(t, everything, second, runs("leader"), nixl), pods(t, everything, second, runs("worker"), headless, nixl))
	all.EnginePort, all.RayPort, all.Scheduler = 8200, 6379, plan.SchedulerVolcano
	all.Sidecar = &plan.Sidecar{Image: "sidecar:v1", Connector: "sglang", BootstrapPort: 9000, AsRoot: true, Resources: &corev1.ResourceRequirements{
		Requests: corev1.ResourceList{"cpu": resource.MustParse("100m")},
		Limits:   corev1.ResourceList{"memory": resource.MustParse("128Mi")},
	}}
	own := worker("own", 1, 2, pods(t, everything, second), pods(t, everything, second))
	proxied := worker("proxied", 1, 1, pods(t, proxy, second, drains), plan.PodTemplate{})
	leader := worker("leader", 1, 2, pods(t, "metadata: {labels: {who: leads}}"+qwen), pods(t, "metadata: {annotations: {who: works}}"+qwen))
	twoClusters := service("far", worker("inference", 1, 1, pods(t, qwen), plan.PodTemplate{}))
	twoClusters.Clusters = append(twoClusters.Clusters, twoClusters.Clusters[0])
	twoClusters.Clusters[1].Base, twoClusters.Clusters[1].Target.Namespace = "far-1a2b3c", "shared"
	grouped := service("qwen", worker("inference", 1, 1, pods(t, qwen), plan.PodTemplate{}))
	grouped.Service.Grouped = true
	grouped.Clusters[0].Groups[0].Replicas[0].Group = 3
	return map[string]struct {
		reason string
		plan   *plan.Plan
	}{
		"one-node":       {"A worker on one node: no leader template, no gang.", service("qwen-inference", one)},
		"multi-node":     {"Two replicas on four nodes each, with Ray.", service("deepseek-r1-inference", many)},
		"prefill-decode": {"Prefill and decode on several nodes. The sidecar receives the requests of decode leaders.", service("deepseek-r1-disagg", prefill, decode)},
		"everything":     {"Everything in the user's template stays, except what cannot work on a worker.", service("busy", all)},
		"own-commands":   {"With the launcher None nothing is removed from workers, and the template's scheduler stays.", service("own", own)},
		"own-leader":     {"A leader template of its own, with its own labels and annotations.", service("own", leader)},
		"proxy":          {"A proxy of the user's goes on as long as the engine.", service("own", proxied)},
		"two-clusters":   {"The same role in two clusters, under two names.", twoClusters},
		"grouped":        {"A service with spec.replicas labels its groups.", grouped},
	}
}

func TestLeaderWorkerSet(t *testing.T) {
	for name, tc := range goldens(t) {
		t.Run(name, func(t *testing.T) {
			var got []byte
			for _, o := range render(t, tc.plan) {
				got = append(append(got, "---\n"...), asYAML(t, o.Resource)...)
			}
			file := filepath.Join("testdata", name+".yaml")
			if *update {
				if err := os.WriteFile(file, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestStrict decodes what is rendered into LeaderWorkerSet's own type. Every field is known to
// the type, and none has a zero value that nobody set.
func TestStrict(t *testing.T) {
	for name, tc := range goldens(t) {
		for _, o := range render(t, tc.plan) {
			data, err := protojson.Marshal(o.Resource)
			if err != nil {
				t.Fatal(err)
			}
			doc := map[string]any{}
			if err := json.Unmarshal(data, &doc); err != nil {
				t.Fatal(err)
			}
			// Unknown fields of the test template that have to stay.
			for _, spec := range templateSpecs(doc) {
				delete(spec, "fieldOfTomorrow")
				for _, c := range spec["containers"].([]any) {
					delete(c.(map[string]any), "alsoOfTomorrow")
				}
			}
			data, err = json.Marshal(doc)
			if err != nil {
				t.Fatal(err)
			}
			d := json.NewDecoder(bytes.NewReader(data))
			d.DisallowUnknownFields()
			if err := d.Decode(&lws.LeaderWorkerSet{}); err != nil {
				t.Errorf("%s: %s: %v", name, o.Name(), err)
			}
			for _, never := range []string{"status", "creationTimestamp", "null", "rolloutStrategy", "startupPolicy"} {
				if bytes.Contains(data, []byte(`"`+never+`":`)) || bytes.Contains(data, []byte(":"+never)) {
					t.Errorf("%s: %s has %s: %s", name, o.Name(), never, data)
				}
			}
		}
	}
}

func templateSpecs(doc map[string]any) []map[string]any {
	var all []map[string]any
	for _, name := range []string{"leaderTemplate", "workerTemplate"} {
		if spec, ok, _ := unstructured.NestedFieldNoCopy(doc, "spec", "leaderWorkerTemplate", name, "spec"); ok {
			all = append(all, spec.(map[string]any))
		}
	}
	return all
}

func TestScaling(t *testing.T) {
	before := goldens(t)["multi-node"].plan
	after := goldens(t)["multi-node"].plan
	after.Roles[0].Replicas = 3
	after.Clusters[0].Groups[0].Replicas = append(after.Clusters[0].Groups[0].Replicas, replica("deepseek-r1-inference", after.Roles[0], 2))
	was, is := render(t, before), render(t, after)
	if len(was) != 2 || len(is) != 3 {
		t.Fatalf("want 2 and then 3 LeaderWorkerSets, got %d and %d", len(was), len(is))
	}
	for i := range was {
		if diff := cmp.Diff(was[i], is[i], protocmp.Transform()); diff != "" {
			t.Errorf("a third replica must not change the others: -before, +after:\n%s", diff)
		}
	}
	for _, name := range []string{"leaderTemplate", "workerTemplate"} {
		path := []string{"spec", "leaderWorkerTemplate", name, "spec"}
		if kube.Lookup(is[0].Resource, path...) != kube.Lookup(is[2].Resource, path...) {
			t.Errorf("the replicas must share the spec of %s", name)
		}
	}
}

func TestSpecHash(t *testing.T) {
	hash := func(change func(*plan.Plan)) string {
		p := goldens(t)["multi-node"].plan
		change(p)
		return kube.Lookup(render(t, p)[0].Resource, "metadata", "labels", naming.LabelSpecHash).GetStringValue()
	}
	same := hash(func(*plan.Plan) {})
	cases := map[string]struct {
		reason string
		change func(*plan.Plan)
		equal  bool
	}{
		"Nothing":   {"The same input gives the same hash.", func(*plan.Plan) {}, true},
		"Replicas":  {"The number of replicas changes no pod.", func(p *plan.Plan) { p.Roles[0].Replicas = 9 }, true},
		"Size":      {"The number of nodes changes a replica.", func(p *plan.Plan) { p.Roles[0].Nodes = 9 }, false},
		"Leader":    {"The leader's command.", func(p *plan.Plan) { p.Roles[0].Leader.Args = []string{"x"} }, false},
		"Worker":    {"The workers' command.", func(p *plan.Plan) { p.Roles[0].Worker.Args = []string{"x"} }, false},
		"Scheduler": {"The scheduler.", func(p *plan.Plan) { p.Roles[0].Scheduler = "x" }, false},
		"Labels":    {"The pods' labels.", func(p *plan.Plan) { p.Roles[0].PodLabels = map[string]string{"a": "b"} }, false},
		"Template":  {"The template's own metadata.", func(p *plan.Plan) { p.Roles[0].Leader.Document = document(t, "metadata: {labels: {a: b}}"+deepseek) }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := hash(tc.change); (got == same) != tc.equal {
				t.Errorf("%s: want equal %t, got %s and %s", tc.reason, tc.equal, same, got)
			}
		})
	}
}

// TestEngineType proves that the engine type that a template names stays, and that the function names it otherwise.
func TestEngineType(t *testing.T) {
	for name, tc := range map[string]struct{ reason, leader, worker, wantLeader, wantWorker string }{
		"None":      {reason: "The function's is on all pods.", wantLeader: "sglang", wantWorker: "sglang"},
		"Both":      {reason: "An engine of the user's own has metrics of its own.", leader: "mine", worker: "mine", wantLeader: "mine", wantWorker: "mine"},
		"OnlyOther": {reason: "Each template is asked.", worker: "mine", wantLeader: "sglang", wantWorker: "mine"},
	} {
		t.Run(name, func(t *testing.T) {
			template := func(own string) plan.PodTemplate {
				metadata := "metadata: {labels: {a: b}}"
				if own != "" {
					metadata = "metadata: {labels: {" + plan.LabelEngineType + ": " + own + "}}"
				}
				return pods(t, metadata+qwen)
			}
			r := &plan.Role{Name: "w", Type: v1alpha1.ComponentTypeWorker, Replicas: 1, Nodes: 2, Leader: template(tc.leader), Worker: template(tc.worker), Port: 8000, EnginePort: 8000}
			r.PodLabels = map[string]string{plan.LabelEngineType: "sglang"}
			of := func(template string) string {
				return kube.Lookup(render(t, service("s", r))[0].Resource, "spec", "leaderWorkerTemplate", template, "metadata", "labels", plan.LabelEngineType).GetStringValue()
			}
			if diff := cmp.Diff([]string{tc.wantLeader, tc.wantWorker}, []string{of("leaderTemplate"), of("workerTemplate")}); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestTemplateUntouched proves that rendering changes nothing in the plan, whose documents are
// shared with the request.
func TestTemplateUntouched(t *testing.T) {
	for name, tc := range goldens(t) {
		want := goldens(t)[name].plan
		first := render(t, tc.plan)
		if diff := cmp.Diff(want.Roles[0].Leader.Document, tc.plan.Roles[0].Leader.Document, protocmp.Transform()); diff != "" {
			t.Errorf("%s: the template was changed: -want, +got:\n%s", name, diff)
		}
		second := render(t, tc.plan)
		for i := range first {
			if !proto.Equal(first[i].Resource, second[i].Resource) {
				t.Errorf("%s: %s differs when it is rendered again", name, first[i].Name())
			}
		}
	}
}

// TestQueue proves that Kueue finds its queue on the LeaderWorkerSet, where only the plan puts it,
// and that pods do not change with it.
func TestQueue(t *testing.T) {
	cases := map[string]struct {
		reason string
		queue  string
		class  string
		kept   *string
		want   map[string]string
	}{
		"Ledger":   {reason: "Where the ledger admits, nothing is for Kueue.", class: "high", want: map[string]string{}},
		"Queue":    {reason: "The queue is that of the cluster.", queue: "default", want: map[string]string{"kueue.x-k8s.io/queue-name": "default"}},
		"Priority": {reason: "Kueue reads the priority class from the LeaderWorkerSet only.", queue: "default", class: "high", want: map[string]string{"kueue.x-k8s.io/queue-name": "default", "kueue.x-k8s.io/priority-class": "high"}},
		"Kept":     {reason: "A replica that has a class keeps it.", queue: "default", kept: ptr.To("high"), want: map[string]string{"kueue.x-k8s.io/queue-name": "default", "kueue.x-k8s.io/priority-class": "high"}},
		"KeptNone": {reason: "One that has none gets none.", queue: "default", class: "high", kept: ptr.To(""), want: map[string]string{"kueue.x-k8s.io/queue-name": "default"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := goldens(t)["one-node"].plan
			before := kube.AsMap(render(t, p)[0].Resource)
			p.Clusters[0].LocalQueue = tc.queue
			p.Clusters[0].Groups[0].Replicas[0].KeptPriorityClass = tc.kept
			if tc.class != "" {
				p.Roles[0].Leader.Labels = map[string]string{"kueue.x-k8s.io/priority-class": tc.class}
			}
			after := kube.AsMap(render(t, p)[0].Resource)
			got := map[string]string{}
			for k, v := range after["metadata"].(map[string]any)["labels"].(map[string]any) {
				if strings.HasPrefix(k, "kueue.x-k8s.io/") {
					got[k] = v.(string)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(before["spec"], after["spec"]); diff != "" {
				t.Errorf("the spec changes: -without, +with a queue:\n%s", diff)
			}
		})
	}
}

func TestUnknownRole(t *testing.T) {
	p := goldens(t)["one-node"].plan
	r, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.LeaderWorkerSet(&p.Clusters[0], &plan.Replica{Name: "x", Role: &plan.Role{}}); err == nil {
		t.Error("want an error for a role that is not in the plan")
	}
}

func BenchmarkReplicas(b *testing.B) {
	p := goldens(b)["prefill-decode"].plan
	decode := p.Roles[1]
	for range b.N {
		r, err := New(p)
		if err != nil {
			b.Fatal(err)
		}
		for i := range int32(300) {
			rep := plan.Replica{Name: "deepseek-r1-disagg-decode-0", Role: decode, Index: i, Task: "decode-0", PodGroup: "deepseek-r1-disagg"}
			if _, err := r.LeaderWorkerSet(&p.Clusters[0], &rep); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// TestRevisionOfPairs proves that the revision of roles that change together does not depend on the
// order in which the roles are listed. It is on their pods, so another one restarts them.
func TestRevisionOfPairs(t *testing.T) {
	p := goldens(t)["prefill-decode"].plan
	before, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(p.Roles)
	after, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before.Revisions(), after.Revisions()); diff != "" {
		t.Errorf("-before, +after:\n%s", diff)
	}
}
