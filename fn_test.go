package main

import (
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/require"
	"github.com/fusioninfer/function-inferenceservice/internal/respond"
)

// service is a worker service as YAML, with the roles and what else its spec has.
func service(spec string) string {
	return `
apiVersion: fusioninfer.io/v1alpha1
kind: InferenceService
metadata: {name: chat, namespace: team, uid: me, generation: 3}
spec:
` + regexp.MustCompile(`(?m)^`).ReplaceAllString(strings.TrimSpace(spec), "  ")
}

const twoNodes = `
roles:
- name: w
  componentType: worker
  replicas: 2
  multinode: {nodeCount: 2}
  template: {spec: {containers: [{name: vllm, image: i, args: [--model, m]}]}}
`

func fromYAML(tb testing.TB, y string) *structpb.Struct {
	tb.Helper()
	j, err := yaml.YAMLToJSON([]byte(y))
	if err != nil {
		tb.Fatal(err)
	}
	s := &structpb.Struct{}
	if err := s.UnmarshalJSON(j); err != nil {
		tb.Fatal(err)
	}
	return s
}

func request(tb testing.TB, xr, input string) *fnv1.RunFunctionRequest {
	tb.Helper()
	req := &fnv1.RunFunctionRequest{
		Meta:     &fnv1.RequestMeta{Tag: "tag"},
		Observed: &fnv1.State{Composite: &fnv1.Resource{Resource: fromYAML(tb, xr)}, Resources: map[string]*fnv1.Resource{}},
	}
	if input != "" {
		req.Input = fromYAML(tb, input)
	}
	return req
}

// stopped is a clock for tests that compare answers.
func stopped() func() time.Time {
	now := time.Now()
	return func() time.Time { return now }
}

func run(tb testing.TB, req *fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse {
	tb.Helper()
	rsp, err := (&Function{log: logging.NewNopLogger()}).RunFunction(tb.Context(), req)
	if err != nil {
		tb.Fatal(err)
	}
	return rsp
}

// fatals are the messages of an answer's Fatal results.
func fatals(rsp *fnv1.RunFunctionResponse) string {
	var all []string
	for _, r := range rsp.GetResults() {
		if r.GetSeverity() == fnv1.Severity_SEVERITY_FATAL {
			all = append(all, r.GetMessage())
		}
	}
	return strings.Join(all, "\n")
}

// condition is "status reason" of an answer's condition.
func condition(rsp *fnv1.RunFunctionResponse, name string) string {
	for _, c := range rsp.GetConditions() {
		if c.GetType() == name {
			return strings.TrimPrefix(c.GetStatus().String(), "STATUS_CONDITION_") + " " + c.GetReason()
		}
	}
	return "not set"
}

// observe makes the desired objects of an answer the observed ones of a request,
// as Crossplane does.
func observeAll(req *fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse) {
	for key, r := range rsp.GetDesired().GetResources() {
		req.Observed.Resources[key] = &fnv1.Resource{Resource: r.GetResource()}
	}
}

func TestRefusalKeepsEverything(t *testing.T) {
	req := request(t, service(strings.Replace(twoNodes, "replicas: 2", "replicas: -1", 1)), "")
	req.Observed.Resources["leaderworkerset/w/0"] = &fnv1.Resource{Resource: fromYAML(t, `{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet}`)}
	rsp := run(t, req)
	if got := fatals(rsp); !strings.Contains(got, "spec.roles[0].replicas: Invalid value: -1: must be from 0 to 2000") {
		t.Errorf("a Fatal names path, value and what would be right, got %q", got)
	}
	for name, want := range map[string]string{"SpecValid": "FALSE", "WorkloadsReady": "UNKNOWN"} {
		if got := condition(rsp, name); !strings.HasPrefix(got, want) {
			t.Errorf("condition %s: want %s, got %s: a claim shows nothing else of a Fatal", name, want, got)
		}
	}
	for _, c := range rsp.GetConditions() {
		if c.GetTarget() != fnv1.Target_TARGET_COMPOSITE_AND_CLAIM {
			t.Errorf("condition %s does not reach the claim", c.GetType())
		}
	}
	if rsp.GetMeta().GetTag() != "tag" {
		t.Error("the tag has to be copied")
	}
}

func TestAnswer(t *testing.T) {
	req := request(t, service(twoNodes), "")
	other := &fnv1.Resource{Resource: fromYAML(t, `{apiVersion: v1, kind: ConfigMap}`), Ready: fnv1.Ready_READY_TRUE}
	req.Desired = &fnv1.State{
		Composite: &fnv1.Resource{Resource: fromYAML(t, `{status: {theirs: 1}}`)},
		Resources: map[string]*fnv1.Resource{"other": other},
	}
	rsp := run(t, req)
	want := []string{"leaderworkerset/w/0", "leaderworkerset/w/1", "other", "podgroup", "service"}
	if diff := cmp.Diff(want, sortedKeys(rsp.GetDesired().GetResources())); diff != "" {
		t.Errorf("what functions before this one want is passed on: -want, +got:\n%s", diff)
	}
	status := kube.Lookup(rsp.GetDesired().GetComposite().GetResource(), "status").GetStructValue().GetFields()
	if status["theirs"].GetNumberValue() != 1 || status["roles"].GetStringValue() != "w 0/2" {
		t.Errorf("the status is added to what is there: %v", status)
	}
	if got := rsp.GetMeta().GetTtl().AsDuration(); got != respond.Soon {
		t.Errorf("nothing is ready: want TTL %s, got %s", respond.Soon, got)
	}
	for key, r := range rsp.GetDesired().GetResources() {
		if r.GetReady() == fnv1.Ready_READY_UNSPECIFIED {
			t.Errorf("%s: readiness is not said", key)
		}
	}
}

// ready are the statuses of objects that are ready.
const (
	readyLWS      = `{observedGeneration: 1, replicas: 1, readyReplicas: 1, updatedReplicas: 1, conditions: [{type: Available, status: "True", lastTransitionTime: "2026-01-01T00:00:00Z"}]}`
	readyPodGroup = `{phase: Running}`
)

// makeReady gives each observed object the status of a ready one.
func makeReady(t *testing.T, req *fnv1.RunFunctionRequest) {
	t.Helper()
	for key, r := range req.GetObserved().GetResources() {
		status := ""
		switch kube.Lookup(r.GetResource(), "kind").GetStringValue() {
		case "LeaderWorkerSet":
			status = readyLWS
		case "PodGroup":
			status = readyPodGroup
		}
		s := kube.With(r.GetResource(), structpb.NewNumberValue(1), "metadata", "generation")
		if status != "" {
			s = kube.With(s, structpb.NewStructValue(fromYAML(t, status)), "status")
		}
		req.Observed.Resources[key] = &fnv1.Resource{Resource: s}
	}
}

func TestQuiet(t *testing.T) {
	req := request(t, service(twoNodes), "")
	observeAll(req, run(t, req))
	makeReady(t, req)
	rsp := run(t, req)
	if got := rsp.GetMeta().GetTtl().AsDuration(); got != respond.Later {
		t.Errorf("all is ready: want TTL %s, got %s", respond.Later, got)
	}
	for key, r := range rsp.GetDesired().GetResources() {
		if r.GetReady() != fnv1.Ready_READY_TRUE {
			t.Errorf("%s is not ready", key)
		}
	}
	if len(rsp.GetResults()) > 0 {
		t.Errorf("a quiet service has nothing to tell: %v", rsp.GetResults())
	}
}

func TestTransitions(t *testing.T) {
	req := request(t, service(twoNodes), "")
	observeAll(req, run(t, req))
	makeReady(t, req)
	withConditions := func(status string) *fnv1.RunFunctionRequest {
		r := proto.Clone(req).(*fnv1.RunFunctionRequest)
		r.Observed.Composite.Resource = kube.With(r.GetObserved().GetComposite().GetResource(),
			structpb.NewStructValue(fromYAML(t, `{conditions: [{type: WorkloadsReady, status: "`+status+`"}]}`)), "status")
		return r
	}
	if got := run(t, withConditions("True")).GetResults(); len(got) != 0 {
		t.Errorf("nothing changed, and yet: %v", got)
	}
	got := run(t, withConditions("False")).GetResults()
	if len(got) != 1 || got[0].GetSeverity() != fnv1.Severity_SEVERITY_NORMAL || !strings.Contains(got[0].GetMessage(), "WorkloadsReady is True") {
		t.Errorf("a condition that turned is an event: %v", got)
	}
}

// TestWarnings keeps warnings for what is wrong: that nothing can be said yet is
// no reason for one.
func TestWarnings(t *testing.T) {
	was := func(condition, status string) *fnv1.RunFunctionRequest {
		req := request(t, service(twoNodes), "")
		req.Observed.Composite.Resource = kube.With(req.GetObserved().GetComposite().GetResource(),
			structpb.NewStructValue(fromYAML(t, `{conditions: [{type: `+condition+`, status: "`+status+`"}]}`)), "status")
		return req
	}
	cases := map[string]struct {
		reason string
		req    *fnv1.RunFunctionRequest
		want   fnv1.Severity
	}{
		"Unknown": {"nobody can tell which kinds there are", was("KindsAvailable", "True"), fnv1.Severity_SEVERITY_NORMAL},
		"False":   {"the workloads are gone", was("WorkloadsReady", "True"), fnv1.Severity_SEVERITY_WARNING},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := run(t, tc.req).GetResults()
			if len(got) != 1 || got[0].GetSeverity() != tc.want {
				t.Errorf("%s: want one result of %s, got %v", tc.reason, tc.want, got)
			}
		})
	}
}

func TestRequireKinds(t *testing.T) {
	input := `{apiVersion: inferenceservice.fn.crossplane.io/v1beta1, kind: Input, requireKinds: true, podObservationLimit: 0}`
	const lws, pg = "kind/leaderworkersets.leaderworkerset.x-k8s.io", "kind/podgroups.scheduling.volcano.sh"
	req := request(t, service(twoNodes), input)
	rsp := run(t, req)
	if diff := cmp.Diff([]string{"existing/service", lws, pg}, sortedKeys(rsp.GetRequirements().GetResources())); diff != "" {
		t.Errorf("asks for the definitions of kinds that a cluster may lack, and by name only for kinds that are known to exist, since for others the whole call would fail: -want, +got:\n%s", diff)
	}
	want := &fnv1.ResourceSelector{
		ApiVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition",
		Match: &fnv1.ResourceSelector_MatchName{MatchName: "leaderworkersets.leaderworkerset.x-k8s.io"},
	}
	if diff := cmp.Diff(want, rsp.GetRequirements().GetResources()[lws], protocmp.Transform()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}

	req.RequiredResources = map[string]*fnv1.Resources{lws: {}, pg: definition(t, "v1beta1", "")}
	rsp = run(t, req)
	if diff := cmp.Diff([]string{"podgroup", "service"}, sortedKeys(rsp.GetDesired().GetResources())); diff != "" {
		t.Errorf("what the cluster lacks is left out: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"existing/podgroup", "existing/service", lws, pg}, sortedKeys(rsp.GetRequirements().GetResources())); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if got := condition(rsp, "KindsAvailable"); got != "FALSE KindMissing" {
		t.Errorf("the condition names it, got %q", got)
	}
	if rsp.GetDesired().GetComposite().GetReady() != fnv1.Ready_READY_FALSE || rsp.GetMeta().GetTtl().AsDuration() != respond.Soon {
		t.Error("a service that lacks something is not ready, and looked at again soon")
	}

	req.Observed.Resources["leaderworkerset/w/0"] = &fnv1.Resource{Resource: fromYAML(t, `{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet}`)}
	rsp = run(t, req)
	if rsp.GetDesired().GetResources()["leaderworkerset/w/0"] == nil {
		t.Error("what is observed is never left out")
	}
	if rsp.GetRequirements().GetResources()[lws] != nil {
		t.Error("a kind of which something is observed exists: its definition, the largest of all, is not asked for")
	}
}

// definition is that of a kind with one version. What differs from one that is
// served is in YAML.
func definition(t *testing.T, version, differs string) *fnv1.Resources {
	t.Helper()
	crd := fromYAML(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
spec: {versions: [{name: `+version+`, served: true}]}
status: {conditions: [{type: NamesAccepted, status: "True"}, {type: Established, status: "True"}]}
`)
	maps.Copy(crd.GetFields(), fromYAML(t, "{"+differs+"}").GetFields())
	return &fnv1.Resources{Items: []*fnv1.Resource{{Resource: crd}}}
}

// TestKindAvailable proves when a kind counts as one that the cluster has. Were it too
// early, an apply would stop half way.
func TestKindAvailable(t *testing.T) {
	cases := map[string]struct {
		reason  string
		differs string
		version string
		want    string
	}{
		"Served":         {reason: "it is there, and served", version: "v1", want: "TRUE AllAvailable"},
		"OtherVersion":   {reason: "objects of a version that nobody knows cannot be created", version: "v1beta1", want: "FALSE KindMissing"},
		"NotServed":      {reason: "nor of one that is not served any more", version: "v1", differs: `spec: {versions: [{name: v2, served: true}, {name: v1, served: false}]}`, want: "FALSE KindMissing"},
		"New":            {reason: "nothing is served in the first moment", version: "v1", differs: `status: {}`, want: "FALSE KindMissing"},
		"NotEstablished": {reason: "nor while another kind has its names", version: "v1", differs: `status: {conditions: [{type: NamesAccepted, status: "False"}, {type: Established, status: "False"}]}`, want: "FALSE KindMissing"},
		"Deleted":        {reason: "one that is being deleted takes nothing new", version: "v1", differs: `metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"}`, want: "FALSE KindMissing"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := request(t, service(twoNodes), `{requireKinds: true}`)
			req.RequiredResources = map[string]*fnv1.Resources{
				"kind/leaderworkersets.leaderworkerset.x-k8s.io": definition(t, tc.version, tc.differs),
				"kind/podgroups.scheduling.volcano.sh":           definition(t, "v1beta1", ""),
			}
			if got := condition(run(t, req), "KindsAvailable"); got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestSomebodyElsesObject(t *testing.T) {
	const lws = `
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: chat-w-0, namespace: team%s}
`
	cases := map[string]struct {
		reason string
		owner  string
		want   string
	}{
		"Mine":    {reason: "the service's own is taken up", owner: `, annotations: {crossplane.io/composition-resource-name: leaderworkerset/w/0}, ownerReferences: [{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceService, name: chat, uid: me, controller: true}]`},
		"Before":  {reason: "a controller that had this kind before left objects with the same owner", owner: `, ownerReferences: [{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceService, name: chat, uid: me, controller: true}]`, want: "chat-w-0"},
		"Another": {reason: "another service's is refused", owner: `, ownerReferences: [{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceService, name: chat-w, uid: other, controller: true}]`, want: "chat-w"},
		"Nobody":  {reason: "nobody's would be taken over in silence, and deleted with the service", want: "chat-w-0"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := request(t, service(twoNodes), "")
			req.RequiredResources = map[string]*fnv1.Resources{"existing/leaderworkerset/w/0": {Items: []*fnv1.Resource{{Resource: fromYAML(t, fmt.Sprintf(lws, tc.owner))}}}}
			got := fatals(run(t, req))
			if (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
				t.Errorf("%s: want Fatal with %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

// LeaderWorkerSet makes a headless Service of its own name, and takes one that is
// there for it.
func TestHeadlessServiceTaken(t *testing.T) {
	for name, tc := range map[string]struct{ owner, want string }{
		"LeaderWorkerSets": {owner: `, ownerReferences: [{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, name: chat-w-0, uid: l, controller: true}]`},
		"Anothers":         {owner: `, ownerReferences: [{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceService, name: chat-w-0, uid: o, controller: true}]`, want: "needs a Service of its own name"},
	} {
		t.Run(name, func(t *testing.T) {
			req := request(t, service(twoNodes), "")
			req.RequiredResources = map[string]*fnv1.Resources{"headless/leaderworkerset/w/0": {Items: []*fnv1.Resource{{Resource: fromYAML(t, `{apiVersion: v1, kind: Service, metadata: {name: chat-w-0`+tc.owner+`}}`)}}}}
			if got := fatals(run(t, req)); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("want Fatal with %q, got %q", tc.want, got)
			}
		})
	}
}

// A cluster of a placement cannot become another place: the Objects would go on
// under their names, and what they carried before would run on, owned by nobody.
func TestClusterCannotMove(t *testing.T) {
	in := func(namespace, config string) string {
		return service(twoNodes + "placement: {clusters: [{name: east, namespace: " + namespace + ", providerConfigRef: {name: " + config + "}}]}")
	}
	req := request(t, in("a", "one"), `{apiVersion: inferenceservice.fn.crossplane.io/v1beta1, kind: Input, allowedProviderConfigs: [{name: one, namespaces: ["*"]}, {name: two, namespaces: ["*"]}]}`)
	req.RequiredResources = map[string]*fnv1.Resources{require.Fleet: {}}
	observeAll(req, run(t, req))
	if got := fatals(run(t, req)); got != "" {
		t.Fatalf("nothing moved: %s", got)
	}
	for _, moved := range []string{in("b", "one"), in("a", "two")} {
		req.Observed.Composite.Resource = fromYAML(t, moved)
		if got := fatals(run(t, req)); !strings.Contains(got, `spec.placement.clusters[east]: Invalid value: "east": runs with another namespace or providerConfigRef`) {
			t.Errorf("want a Fatal, got %q", got)
		}
	}
}

func TestRegrouped(t *testing.T) {
	req := request(t, service(twoNodes), "")
	observeAll(req, run(t, req))
	req.Observed.Composite.Resource = fromYAML(t, service(twoNodes+"replicas: 1"))
	if got := fatals(run(t, req)); !strings.Contains(got, "spec.replicas: Forbidden") {
		t.Errorf("setting spec.replicas would rename everything, got %q", got)
	}
}

func TestTooLarge(t *testing.T) {
	big := func(replicas, bytes int) string {
		return service(fmt.Sprintf(`
roles:
- name: w
  componentType: worker
  replicas: %d
  template: {spec: {containers: [{name: vllm, image: i, args: [--model, m], env: [{name: X, value: "%s"}]}]}}
`, replicas, strings.Repeat("x", bytes)))
	}
	got := fatals(run(t, request(t, big(1900, 4000), "")))
	m := regexp.MustCompile(`spec\.roles\[0\]\.replicas: Invalid value: 1900: .*: at most (\d+) replicas of this role fit`).FindStringSubmatch(got)
	if m == nil {
		t.Fatalf("an answer above 4 MiB is refused with the number that fits, got %q", got)
	}
	fit, _ := strconv.Atoi(m[1])
	rsp := run(t, request(t, big(fit, 4000), ""))
	if got := fatals(rsp); got != "" {
		t.Errorf("%d replicas fit, it said: %s", fit, got)
	}
	if size := proto.Size(rsp); size > 4<<20 {
		t.Errorf("an answer of %d bytes is too large for Crossplane", size)
	}
	if got := fatals(run(t, request(t, big(fit+60, 4000), ""))); got == "" {
		t.Errorf("%d was far from the most that fits", fit)
	}
	if got := fatals(run(t, request(t, big(1, 3<<20), ""))); !strings.Contains(got, "spec.roles[0].template") {
		t.Errorf("an object that no cluster can store is refused, got %q", got)
	}
	if got := fatals(run(t, request(t, service(strings.Replace(twoNodes, "replicas: 2", "replicas: 2000", 1)+"replicas: 500"), ""))); !strings.Contains(got, "spec.replicas: Invalid value: 500") {
		t.Errorf("too many groups are refused before they are rendered, got %q", got)
	}
}

// TestTooLargeOfOthers counts what is not the user's: the platform's annotations are on
// every object, and what functions before this one want is a part of the answer.
func TestTooLargeOfOthers(t *testing.T) {
	small := service(`
roles:
- {name: w, componentType: worker, replicas: 200, template: {spec: {containers: [{name: vllm, image: i, args: [--model, m]}]}}}
`)
	annotated := request(t, small, `{annotations: {note: "`+strings.Repeat("x", 30_000)+`"}}`)
	if got := fatals(run(t, annotated)); !strings.Contains(got, "spec.roles[0].replicas: Invalid value: 200") {
		t.Errorf("annotations of 6 MB do not arrive, got %q", got)
	}
	pipeline := request(t, small, "")
	pipeline.Desired = &fnv1.State{Resources: map[string]*fnv1.Resource{
		"theirs": {Resource: fromYAML(t, `{apiVersion: v1, kind: ConfigMap, data: {a: "`+strings.Repeat("x", 4<<20)+`"}}`)},
	}}
	if got := fatals(run(t, pipeline)); got == "" {
		t.Error("an answer with 4 MiB of another function does not arrive")
	}
}

// A change of replicas touches no other replica.
func TestScaling(t *testing.T) {
	opts := proto.MarshalOptions{Deterministic: true}
	bytes := func(replicas int) map[string]string {
		out := map[string]string{}
		rsp := run(t, request(t, service(strings.Replace(twoNodes, "replicas: 2", fmt.Sprintf("replicas: %d", replicas), 1)), ""))
		for key, r := range rsp.GetDesired().GetResources() {
			b, err := opts.Marshal(r.GetResource())
			if err != nil {
				t.Fatal(err)
			}
			out[key] = string(b)
		}
		return out
	}
	two, three := bytes(2), bytes(3)
	for key, was := range two {
		if is := three[key]; (is == was) != (key != "podgroup") {
			t.Errorf("%s: the gang changes with the replicas, and nothing else does", key)
		}
	}
	if three["leaderworkerset/w/2"] == "" || two["leaderworkerset/w/2"] != "" {
		t.Error("the third replica comes and goes")
	}
}

// Crossplane calls again until the requirements are the same twice, five times
// at most.
func TestRequirementsSettle(t *testing.T) {
	for _, input := range []string{"", `{requireKinds: true}`} {
		req := request(t, service(twoNodes), input)
		var last *fnv1.Requirements
		for i := 0; ; i++ {
			rsp := run(t, req)
			if proto.Equal(last, rsp.GetRequirements()) {
				break
			}
			if i == 4 {
				t.Fatal("the requirements do not settle")
			}
			last = rsp.GetRequirements()
			req.RequiredResources = map[string]*fnv1.Resources{}
			for name := range last.GetResources() {
				req.RequiredResources[name] = &fnv1.Resources{}
				if strings.HasPrefix(name, "kind/") {
					req.RequiredResources[name] = definition(t, "v1", "")
				}
			}
		}
	}
}

func TestDefect(t *testing.T) {
	rsp := &fnv1.RunFunctionResponse{}
	func() {
		defer func() { respond.Defect(rsp, logging.NewNopLogger(), recover(), respond.Fail) }()
		panic("a test")
	}()
	if !strings.Contains(fatals(rsp), "a defect of the function: a test") {
		t.Errorf("a panic is a Fatal: %v", rsp.GetResults())
	}
}
