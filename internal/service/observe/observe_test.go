package observe

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
	"github.com/fusioninfer/function-inferenceservice/internal/service/require"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

func TestPodGroup(t *testing.T) {
	counted := map[string]int32{"engine-0": 4, "engine-1": 4}
	cases := map[string]struct {
		reason string
		scene  func(s *scene)
		want   plan.PodGroupView
	}{
		"Absent": {reason: "Nothing is known of what does not exist.", scene: func(*scene) {}},
		"Local": {
			reason: "What the PodGroup counts is read from the PodGroup.",
			scene:  func(s *scene) { s.see(pgKey, podGroup("qwen", volcano.PodGroupRunning)) },
			want:   plan.PodGroupView{Observed: true, MinTaskMember: counted, Started: true},
		},
		"Remote": {
			reason: "The same in another cluster.",
			scene:  func(s *scene) { s.seeRemote(pgKey, podGroup("qwen", volcano.PodGroupRunning), synced("True", "")) },
			want:   plan.PodGroupView{Observed: true, MinTaskMember: counted, Started: true},
		},
		"Waiting": {
			reason: "A gang that waits for room has not started.",
			scene:  func(s *scene) { s.see(pgKey, podGroup("qwen", volcano.PodGroupInqueue)) },
			want:   plan.PodGroupView{Observed: true, MinTaskMember: counted},
		},
		"Partly": {
			reason: "Of a gang in phase Unknown some pods run.",
			scene:  func(s *scene) { s.see(pgKey, podGroup("qwen", volcano.PodGroupUnknown)) },
			want:   plan.PodGroupView{Observed: true, MinTaskMember: counted, Started: true},
		},
		"Unreadable": {
			reason: "A PodGroup that cannot be read exists; that it counts a new replica is not known.",
			scene: func(s *scene) {
				s.seeRemote(pgKey, podGroup("qwen", volcano.PodGroupRunning), synced("False", "no route to host"))
			},
			want: plan.PodGroupView{Observed: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			tc.scene(s)
			r := Read(s.request(), s.plan)
			if diff := cmp.Diff(tc.want, r.PodGroup(key.Parse(pgKey))); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// The same request gives the same Evaluation, in whatever order pods come.
func TestEvaluateIsDeterministic(t *testing.T) {
	evaluation := func(flip bool) string {
		pods := append(replicaPods(0, waits("CrashLoopBackOff")), replicaPods(1, waits("ErrImagePull"))...)
		waits("InvalidImageName")(pods[0])
		if flip {
			for i, j := 0, len(pods)-1; i < j; i, j = i+1, j-1 {
				pods[i], pods[j] = pods[j], pods[i]
			}
		}
		v := running(newScene(t)).pods(pods...).evaluate()
		reasons := make([]string, 0, len(v.objects))
		for _, o := range v.objects {
			reasons = append(reasons, fmt.Sprint(o.key, o.ready, o.reason, o.message))
		}
		s, err := kube.Encode(struct {
			Status     any                   `json:"status"`
			Conditions []composite.Condition `json:"conditions"`
			Objects    []string              `json:"objects"`
		}{v.Status, v.Conditions, reasons})
		if err != nil {
			t.Fatal(err)
		}
		return cmp.Diff(nil, kube.AsMap(s))
	}
	want := evaluation(false)
	for range 20 {
		if got := evaluation(true); got != want {
			t.Fatalf("-want, +got:\n%s", cmp.Diff(want, got))
		}
	}
}

// FuzzEvaluate puts any value at any path of observed objects. Evaluate never panics, never
// calls an object ready that is being deleted, always has a reason, and keeps its counts in
// their bounds.
func FuzzEvaluate(f *testing.F) {
	bases := []any{
		workload("qwen-engine-0"), workload("qwen-engine-0", progressing), podGroup("qwen", "Inqueue", gangCondition("Unschedulable", 1)),
		picker(), route(1, is("Accepted", "True", "Accepted", 1)), pool(is("Accepted", "True", "Accepted", 1)),
		ownGateway("10.0.0.1", nil, is("Programmed", "True", "Programmed", 1)),
		enginePod("engine", 0, 0), enginePod("engine", 0, 0, waits("CrashLoopBackOff")), enginePod("engine", 0, 0, initWaits("ErrImagePull")),
	}
	for i := range bases {
		for path, value := range map[string]string{
			"": `{}`, "metadata": `1`, "metadata.deletionTimestamp": `"2026-03-01T12:00:00Z"`, "metadata.generation": `1e300`, "metadata.creationTimestamp": `"yesterday"`,
			"metadata.labels": `["x"]`, "metadata.ownerReferences": `[{"controller":"yes"}]`,
			"spec.replicas": `-1`, "status": `[null]`, "status.conditions": `[null,1,{"type":1}]`, "status.conditions.0.status": `{}`,
			"status.readyReplicas": `1000000`, "status.parents.0.conditions.0.observedGeneration": `-5`,
			"status.containerStatuses.0.state": `{"waiting":null,"terminated":{"exitCode":"x"}}`, "status.addresses": `[{"value":":"}]`,
		} {
			f.Add(uint8(i), path, value, i%2 == 0)
		}
	}
	f.Fuzz(func(t *testing.T, base uint8, path, value string, remote bool) {
		v := &structpb.Value{}
		if v.UnmarshalJSON([]byte(value)) != nil || !utf8.ValidString(path) {
			t.Skip() // Crossplane sends neither.
		}
		o := put(structpb.NewStructValue(encode(t, bases[int(base)%len(bases)])), v, strings.Split(path, ".")).GetStructValue()
		if o == nil {
			t.Skip() // Crossplane observes objects only.
		}
		evaluateAnything(t, o, remote)
	})
}

// put replaces the value at a path of fields and list indices.
func put(in, v *structpb.Value, path []string) *structpb.Value {
	if len(path) == 0 || path[0] == "" {
		return v
	}
	if l := in.GetListValue().GetValues(); l != nil {
		if i, err := strconv.Atoi(path[0]); err == nil && i >= 0 && i < len(l) {
			l[i] = put(l[i], v, path[1:])
		}
		return in
	}
	return structpb.NewStructValue(kube.With(in.GetStructValue(), put(in.GetStructValue().GetFields()[path[0]], v, path[1:]), path[0]))
}

// evaluateAnything observes o in the place of everything.
func evaluateAnything(t *testing.T, o *structpb.Struct, remote bool) {
	t.Helper()
	var targets []scheduling.Target
	if remote {
		targets = append(targets, scheduling.Target{Cluster: "east", Namespace: "models"})
	}
	s := newScene(t, targets...).routed(plan.Router{HasRoute: true, HasGateway: true})
	d := &s.plan.Clusters[0]
	s.want(d.Target, d.Key("httproute").String(), route(1))
	s.want(d.Target, d.Key("gateway").String(), ownGateway("", nil))
	for _, w := range s.objects {
		if s.see(w.Key.String(), o); remote {
			s.seeRemote(w.Key.String(), o, synced("True", ""))
		}
		s.required[composite.Existing(w.Key)] = &fnv1.Resources{Items: []*fnv1.Resource{{Resource: o}, nil}}
	}
	s.required[require.Pods] = &fnv1.Resources{Items: []*fnv1.Resource{{Resource: o}, nil, {}}}
	v := s.evaluate()
	deleted := kube.Lookup(o, "metadata", "deletionTimestamp").GetStringValue() != ""
	for _, out := range v.objects {
		if out.ready && deleted {
			t.Errorf("%s is being deleted and ready", out.key)
		}
		if out.ready != v.Ready[out.key] || (!out.ready && (out.reason == "" || out.message == "")) {
			t.Errorf("not ready without a reason: %+v", out)
		}
	}
	for name, c := range v.Status.Components {
		if c.ReadyPods < 0 || c.ReadyPods > c.TotalPods || c.ReadyReplicas > c.DesiredReplicas {
			t.Errorf("%s: %+v", name, c)
		}
	}
	if _, err := kube.Encode(v.Status); err != nil {
		t.Error(err)
	}
	for _, c := range v.Conditions {
		if len(c.Message) > 2*text.MaxMessage || !utf8.ValidString(c.Message) {
			t.Errorf("%s: a message of %d bytes", c.Type, len(c.Message))
		}
	}
	s.observed = nil
	Read(s.request(), s.plan).Conflicts(s.objects)
}

func BenchmarkEvaluate(b *testing.B) {
	s := running(newScene(b)).pods(replicaPods(0)...)
	req := s.request()
	for b.Loop() {
		Read(req, s.plan).Evaluate(s.objects, nil)
	}
}
