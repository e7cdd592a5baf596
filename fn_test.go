package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/cli"
	"github.com/fusioninfer/function-inferenceservice/internal/codec"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/serve"
	"github.com/fusioninfer/function-inferenceservice/internal/service/require"
	"github.com/fusioninfer/function-inferenceservice/test/fixture"
	"github.com/fusioninfer/function-inferenceservice/test/hostile"
	"github.com/fusioninfer/function-inferenceservice/test/oracle"
)

// TestMain makes the function's codec that of the process, as main does.
func TestMain(m *testing.M) {
	codec.Register()
	os.Exit(m.Run())
}

// newFunction is a Function whose clock stands still, for tests that compare answers.
func newFunction(log logging.Logger) *Function {
	now := time.Now()
	return &Function{log: log, clock: func() time.Time { return now }}
}

// A wired Function is called in process, and reads and writes by its codec as if it were called over gRPC.
type wired struct{ *Function }

func (w wired) RunFunction(ctx context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	sent, err := proto.Marshal(req)
	if err != nil {
		return nil, err
	}
	codec := encoding.GetCodecV2("proto")
	received := &fnv1.RunFunctionRequest{}
	if err := codec.Unmarshal(mem.BufferSlice{mem.SliceBuffer(sent)}, received); err != nil {
		return nil, err
	}
	rsp, err := w.Function.RunFunction(ctx, received)
	if err != nil {
		return nil, err
	}
	answered, err := codec.Marshal(rsp)
	if err != nil {
		return nil, err
	}
	answer := &fnv1.RunFunctionResponse{}
	return answer, proto.Unmarshal(answered.Materialize(), answer)
}

func run(t *testing.T, req *fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse {
	t.Helper()
	rsp, err := wired{newFunction(logging.NewNopLogger())}.RunFunction(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return rsp
}

func TestRefusalKeepsEverything(t *testing.T) {
	req := fixture.Request(t, fixture.Service(strings.Replace(fixture.TwoNodes, "replicas: 2", "replicas: -1", 1)), "")
	req.Observed.Resources["leaderworkerset/w/0"] = &fnv1.Resource{Resource: fixture.YAML(t, `{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet}`)}
	rsp := run(t, req)
	if got := fixture.Fatals(rsp); !strings.Contains(got, "spec.roles[0].replicas: Invalid value: -1: must be from 0 to 2000") {
		t.Errorf("a Fatal names path, value and what would be right, got %q", got)
	}
	for name, want := range map[string]string{"Accepted": "FALSE InvalidSpec", "WorkloadsReady": "UNKNOWN NotEvaluated"} {
		if got := fixture.Condition(rsp, name); got != want {
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

// TestUnsupported proves that a composite resource of another API is refused, since its fields
// may have another meaning.
func TestUnsupported(t *testing.T) {
	cases := map[string]struct {
		reason           string
		apiVersion, kind string
		want             string
	}{
		"APIVersion": {reason: "Another version may have other fields.", apiVersion: "fusioninfer.io/v2", want: `apiVersion: Unsupported value: "fusioninfer.io/v2": supported values: "fusioninfer.io/v1alpha1"`},
		"Kind":       {reason: "Another kind has other fields.", kind: "InferencePool", want: `kind: Unsupported value: "InferencePool": supported values: "InferenceService", "XInferenceService"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := fixture.Request(t, fixture.Service(fixture.TwoNodes), "")
			xr := req.GetObserved().GetComposite().GetResource().GetFields()
			if tc.apiVersion != "" {
				xr["apiVersion"] = structpb.NewStringValue(tc.apiVersion)
			}
			if tc.kind != "" {
				xr["kind"] = structpb.NewStringValue(tc.kind)
			}
			if got := fixture.Fatals(run(t, req)); !strings.Contains(got, tc.want) {
				t.Errorf("%s\nwant %s\ngot  %s", tc.reason, tc.want, got)
			}
		})
	}
}

func TestAnswer(t *testing.T) {
	req := fixture.Request(t, fixture.Service(fixture.TwoNodes), "")
	other := &fnv1.Resource{Resource: fixture.YAML(t, `{apiVersion: v1, kind: ConfigMap}`), Ready: fnv1.Ready_READY_TRUE}
	req.Desired = &fnv1.State{
		Composite: &fnv1.Resource{Resource: fixture.YAML(t, `{status: {theirs: 1}}`)},
		Resources: map[string]*fnv1.Resource{"other": other},
	}
	rsp := run(t, req)
	want := []string{"leaderworkerset/w/0", "leaderworkerset/w/1", "other", "poddisruptionbudget/role/w", "podgroup", "service"}
	if diff := cmp.Diff(want, fixture.Keys(rsp.GetDesired().GetResources())); diff != "" {
		t.Errorf("what functions before this one want is passed on: -want, +got:\n%s", diff)
	}
	status := kube.Lookup(rsp.GetDesired().GetComposite().GetResource(), "status").GetStructValue().GetFields()
	if status["theirs"].GetNumberValue() != 1 || status["summary"].GetStringValue() != "w 0/2" {
		t.Errorf("the status is added to what is there: %v", status)
	}
	if got := rsp.GetMeta().GetTtl().AsDuration(); got != composite.Soon {
		t.Errorf("nothing is ready: want TTL %s, got %s", composite.Soon, got)
	}
	for key, r := range rsp.GetDesired().GetResources() {
		if r.GetReady() == fnv1.Ready_READY_UNSPECIFIED {
			t.Errorf("%s: readiness is not said", key)
		}
	}
}

func TestInternalError(t *testing.T) {
	call := composite.NewCall(&fnv1.RunFunctionRequest{}, time.Now())
	func() {
		defer func() { call.RefuseInternalError(logging.NewNopLogger(), recover()) }()
		panic("a test")
	}()
	if !strings.Contains(fixture.Fatals(call.Response), "internal error of the function: a test") {
		t.Errorf("a panic is a Fatal: %v", call.Response.GetResults())
	}
}

// TestErrorsAreLogged proves that the log has each error that no author of a spec can mend, once, and none of the others.
func TestErrorsAreLogged(t *testing.T) {
	const cluster = `
apiVersion: fusioninfer.io/v1alpha1
kind: InferenceCluster
metadata: {name: us-east, uid: me}
spec: {providerConfigRef: {name: us-east}, pools: [{name: p, nodeCount: 1, allocatable: {nvidia.com/gpu: 8}}]}`
	const ledgerOfAnother = `
apiVersion: v1
kind: ConfigMap
metadata:
  name: inferencecluster-us-east
  namespace: crossplane-system
  ownerReferences: [{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceCluster, name: us-east, uid: other, controller: true}]`
	cases := map[string]struct {
		reason string
		xr     string
		found  map[string]*fnv1.Resources
		want   [][]any
	}{
		"Ledger": {
			reason: "An operator has to delete the ConfigMap of somebody else.", xr: cluster,
			found: map[string]*fnv1.Resources{composite.Existing(key.Ledger): fixture.Resources(t, ledgerOfAnother)},
			want: [][]any{{"Cannot evaluate", "kind", "InferenceCluster", "namespace", "", "name", "us-east", "error",
				"ConfigMap inferencecluster-us-east in namespace crossplane-system has the name of the ledger and belongs to another object: delete it if its owner is gone for good"}},
		},
		"Refused": {reason: "The author of a spec reads its conditions.", xr: fixture.Service("{roles: []}")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := fixture.Request(t, tc.xr, "")
			req.RequiredResources = tc.found
			var lines [][]any
			fn := newFunction(logging.NewNopLogger())
			fn.answered = func(_ context.Context, c *composite.Call, _ error) { c.Log(recorder{lines: &lines}) }
			rsp, err := fn.RunFunction(t.Context(), req)
			if err != nil || !fixture.IsFatal(rsp) {
				t.Fatalf("want a Fatal, got %v, error %v", rsp, err)
			}
			lines = slices.DeleteFunc(lines, func(line []any) bool { return line[0] == "Decided" })
			if diff := cmp.Diff(tc.want, lines, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want +got:\n%s\nits Fatal: %s", tc.reason, diff, fixture.Fatals(rsp))
			}
		})
	}
}

// A recorder records what is logged.
type recorder struct {
	lines  *[][]any
	values []any
}

func (r recorder) Info(msg string, values ...any) {
	*r.lines = append(*r.lines, slices.Concat([]any{msg}, r.values, values))
}
func (r recorder) Debug(string, ...any) {}
func (r recorder) WithValues(values ...any) logging.Logger {
	return recorder{lines: r.lines, values: slices.Concat(r.values, values)}
}

// TestCallEnds makes sure that nobody works on for a caller that has gone.
func TestCallEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	fn := newFunction(logging.NewNopLogger())
	for _, req := range fixture.Examples(t, fn) {
		rsp, err := fn.RunFunction(ctx, req)
		if status.Code(err) != codes.Canceled || rsp != nil {
			t.Errorf("%s: got %v, %v, want that it was canceled", fixture.Name(req), rsp, errors.Unwrap(err))
		}
	}
}

// TestWire proves that the codec leaves out nothing that is read: the function answers a request over the wire as it answers the
// whole of it, and its answer arrives as it is.
func TestWire(t *testing.T) {
	fn := newFunction(logging.NewNopLogger())
	all := fixture.Examples(t, fn)
	for _, req := range all {
		// What it remembers of clusters is read only when they are gone.
		if len(req.GetRequiredResources()[require.Fleet].GetItems()) > 0 {
			gone := proto.CloneOf(req)
			gone.RequiredResources[require.Fleet] = &fnv1.Resources{}
			all = append(all, gone)
		}
	}
	for _, req := range all {
		t.Run(fixture.Name(req), func(t *testing.T) {
			want, err := fn.RunFunction(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			got, err := wired{fn}.RunFunction(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
				t.Errorf("-the whole request, +over the wire:\n%s", diff)
			}
		})
	}
}

func TestCommands(t *testing.T) {
	served := serving{Network: "tcp", Address: ":9443", MaxRecvMessageSize: 64, MetricsAddress: ":8080", HeapHeadroom: 6}
	told := cli.Profiles{Namespace: "crossplane-system"}
	type want struct {
		command string
		c       commands
	}
	cases := map[string]struct {
		reason string
		args   []string
		env    string
		want   want
	}{
		"NoArguments": {
			reason: "Without a command the function is served.",
			want:   want{command: "serve", c: commands{Serve: served, Render: cli.Render{Format: "yaml"}, Plan: cli.Plan{Format: "summary"}, Profiles: told}},
		},
		"Package": {
			reason: "Crossplane's package runtime gives the directory of certificates in the environment and no command.",
			args:   []string{"--debug"},
			env:    "/tls/server",
			want: want{command: "serve", c: commands{
				Debug:  true,
				Serve:  serving{Network: "tcp", Address: ":9443", TLSCertsDir: "/tls/server", MaxRecvMessageSize: 64, MetricsAddress: ":8080", HeapHeadroom: 6},
				Render: cli.Render{Format: "yaml"},
				Plan:   cli.Plan{Format: "summary"}, Profiles: told,
			}},
		},
		"Development": {
			reason: "All of serve's flags work without its name.",
			args:   []string{"-d", "--insecure", "--network=unix", "--address=/tmp/s", "--max-recv-message-size=8", "--metrics-address="},
			want: want{command: "serve", c: commands{
				Debug:  true,
				Serve:  serving{Network: "unix", Address: "/tmp/s", Insecure: true, MaxRecvMessageSize: 8, HeapHeadroom: 6},
				Render: cli.Render{Format: "yaml"},
				Plan:   cli.Plan{Format: "summary"}, Profiles: told,
			}},
		},
		"Render": {
			reason: "Render takes a file and what goes with it.",
			args:   []string{"render", "xr.yaml", "--input", "in.yaml", "--observed=a", "--observed=b,c", "--required=d", "--format=json"},
			want: want{command: "render <xr>", c: commands{
				Serve:  served,
				Render: cli.Render{XR: "xr.yaml", Input: "in.yaml", Observed: []string{"a", "b,c"}, Required: []string{"d"}, Format: "json"},
				Plan:   cli.Plan{Format: "summary"}, Profiles: told,
			}},
		},
		"Plan": {
			reason: "Plan takes the files of a fleet and what changes.",
			args:   []string{"plan", "a.yaml", "b.yaml", "--drain=east,west", "--lose", "north", "--delete=team/chat", "--change=a,b", "--input=i", "--detailed-exitcode"},
			want: want{command: "plan <fleet>", c: commands{
				Serve:  served,
				Render: cli.Render{Format: "yaml"},
				Plan: cli.Plan{
					Fleet: []string{"a.yaml", "b.yaml"}, Change: []string{"a,b"}, Drain: []string{"east", "west"}, Lose: []string{"north"},
					Delete: []string{"team/chat"}, Input: []string{"i"}, DetailedExitcode: true, Format: "summary",
				},
				Profiles: told,
			}},
		},
		"Profiles": {
			reason: "Profiles takes the files of a fleet.",
			args:   []string{"profiles", "a.yaml", "--namespace=n"},
			want: want{command: "profiles <fleet>", c: commands{
				Serve: served, Render: cli.Render{Format: "yaml"}, Plan: cli.Plan{Format: "summary"}, Profiles: cli.Profiles{Fleet: []string{"a.yaml"}, Namespace: "n"},
			}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TLS_SERVER_CERTS_DIR", tc.env)
			got := want{}
			k, err := kong.Must(&got.c).Parse(tc.args)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			got.command = k.Command()
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{}, commands{}, serving{})); diff != "" {
				t.Errorf("%s\nParse(%q): -want, +got:\n%s", tc.reason, tc.args, diff)
			}
		})
	}
}

func TestCommandsRefused(t *testing.T) {
	for name, args := range map[string][]string{
		"NoXR":                  {"render"},
		"InputTwice":            {"render", "xr.yaml", "--input=a", "--input=b"},
		"CompositionTwice":      {"render", "xr.yaml", "--composition=a", "--composition", "a"},
		"InputAndComposition":   {"render", "xr.yaml", "--input=a", "--composition=b"},
		"UnknownFormat":         {"render", "xr.yaml", "--format=xml"},
		"UnknownFlag":           {"--unsafe"},
		"FlagOfAnotherCommand":  {"render", "xr.yaml", "--insecure"},
		"MoreThanOneXR":         {"render", "a.yaml", "b.yaml"},
		"CommandThatIsNotThere": {"rendr", "a.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			if k, err := kong.Must(&commands{}).Parse(args); err == nil {
				t.Errorf("Parse(%q): got command %q, want an error", args, k.Command())
			}
		})
	}
}

// TestServe calls the function as Crossplane does.
func TestServe(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	c := &commands{}
	k, err := kong.Must(c).Parse([]string{"--insecure", "--network=unix", "--address=" + socket, "--metrics-address="})
	if err != nil {
		t.Fatal(err)
	}
	f := newFunction(logging.NewNopLogger())
	k.BindTo(f, (*fnv1.FunctionRunnerServiceServer)(nil))
	k.Bind(serve.NewMetrics())
	go func() { _ = k.Run() }() // Ends with the test binary: the SDK's server has no stop.

	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // Nothing depends on it.
	client := fnv1.NewFunctionRunnerServiceClient(conn)

	t.Run("Large", func(t *testing.T) {
		// It is larger than gRPC's own limit.
		req := &fnv1.RunFunctionRequest{Meta: &fnv1.RequestMeta{Tag: strings.Repeat("x", 5<<20)}}
		rsp, err := client.RunFunction(t.Context(), req, grpc.WaitForReady(true), grpc.MaxCallRecvMsgSize(8<<20))
		if err != nil {
			t.Fatal(err)
		}
		if rsp.GetMeta().GetTag() != req.GetMeta().GetTag() {
			t.Errorf("RunFunction: the answer does not carry the tag of the request")
		}
	})
	// Crossplane calls for many services at once. With the race detector this also proves that
	// what calls share may be shared.
	t.Run("Together", func(t *testing.T) {
		var callers sync.WaitGroup
		for _, req := range fixture.Examples(t, f) {
			want, err := f.RunFunction(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				callers.Go(func() {
					got, err := client.RunFunction(t.Context(), req)
					if err != nil {
						t.Errorf("%s: %v", fixture.Name(req), err)
					} else if !proto.Equal(want, got) {
						t.Errorf("%s: -called alone, +called together:\n%s", fixture.Name(req), cmp.Diff(want, got, protocmp.Transform()))
					}
				})
			}
		}
		callers.Wait()
	})
}

// BenchmarkFleet plans one service among 1,000 on 20 clusters, from the request to the
// answer.
func BenchmarkFleet(b *testing.B) {
	var clusters []*structpb.Struct
	for c := range 20 {
		var allocations []any
		for s := range 50 {
			allocations = append(allocations, map[string]any{
				"uid": fmt.Sprintf("00000000-0000-4000-8000-%06d%06d", c, s), "namespace": "team", "name": fmt.Sprintf("s%d", s),
				"replicas": []any{"prefill/0", "decode/0", "decode/1"}, "pods": 10, "resources": map[string]any{"nvidia.com/gpu": "80"},
			})
		}
		o, err := structpb.NewStruct(map[string]any{
			"apiVersion": "fusioninfer.io/v1alpha1", "kind": "InferenceCluster",
			"metadata": map[string]any{"name": fmt.Sprintf("c%02d", c), "labels": map[string]any{"region": "us"}},
			"spec":     map[string]any{"providerConfigRef": map[string]any{"name": "c"}},
			"status": map[string]any{
				"reservations": allocations,
				"pools": []any{map[string]any{
					"name": "h100", "nodeCount": 520, "capacity": map[string]any{"nvidia.com/gpu": "4160"},
					"free": []any{map[string]any{"nodeCount": 20, "resources": map[string]any{"nvidia.com/gpu": "8"}}, map[string]any{"nodeCount": 500, "resources": map[string]any{"nvidia.com/gpu": "0"}}},
				}},
			},
		})
		if err != nil {
			b.Fatal(err)
		}
		clusters = append(clusters, o)
	}
	xr := kube.Copy(fixture.Read(b, "example/story-4-pd-multinode/xr.yaml")[0])
	placement, err := structpb.NewStruct(map[string]any{"policy": "Failover", "clusterSelector": map[string]any{"matchLabels": map[string]any{"region": "us"}}})
	if err != nil {
		b.Fatal(err)
	}
	xr = kube.With(xr, structpb.NewStructValue(placement), "spec", "placement")
	req := &fnv1.RunFunctionRequest{
		Observed:          &fnv1.State{Composite: &fnv1.Resource{Resource: xr}},
		RequiredResources: fixture.Fleet(b, kube.Lookup(xr, "metadata", "uid").GetStringValue(), clusters...),
	}
	fn := newFunction(logging.NewNopLogger())
	for b.Loop() {
		rsp, err := fn.RunFunction(b.Context(), req)
		if err != nil || rsp.GetDesired().GetResources()[key.CapacityRequest.String()] == nil {
			b.Fatalf("no capacity request: %v %v", err, rsp.GetResults())
		}
	}
}

// FuzzMutatedExamples changes values of the examples in every wrong way. checkPromises then
// checks the answers.
func FuzzMutatedExamples(f *testing.F) {
	examples := fixture.Examples(f, newFunction(logging.NewNopLogger()))
	for i := range examples {
		f.Add(uint8(i), []byte{})
		for _, m := range [][]byte{{3, 0, 1}, {7, 0, 2, 9, 0, 5}, {20, 0, 9, 1, 0, 3, 40, 0, 11}} {
			f.Add(uint8(i), m)
		}
	}
	f.Fuzz(func(t *testing.T, example uint8, mutations []byte) {
		req := proto.CloneOf(examples[int(example)%len(examples)])
		for len(mutations) >= 3 {
			oracle.Mutate(req, int(mutations[0])|int(mutations[1])<<8, mutations[2])
			mutations = mutations[3:]
		}
		checkPromises(t, req)
	})
}

// maxSeed is the most bytes of a seed that is hostile.
const maxSeed = 8 << 10

// FuzzRequest takes requests of any shape.
func FuzzRequest(f *testing.F) {
	for _, r := range fixture.Examples(f, newFunction(logging.NewNopLogger())) {
		j, err := protojson.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(j)
	}
	for _, c := range hostile.Cases() {
		req := c.Make()
		// Those that are large are slow to change, and TestHostile has them. JSON is shorter, and takes long to write.
		if proto.Size(req) > 4*maxSeed {
			continue
		}
		// What JSON has no form for, such as numbers that are none, has none as a seed.
		if j, err := protojson.Marshal(req); err == nil && len(j) <= maxSeed {
			f.Add(j)
		}
	}
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"observed":{"composite":{"resource":{"spec":{"roles":[null,{},{"name":"","replicas":-1}]}}}}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		req := &fnv1.RunFunctionRequest{}
		if (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(in, req) != nil {
			return
		}
		checkPromises(t, req)
	})
}

// checkPromises is the oracle of the fuzzers.
func checkPromises(t *testing.T, req *fnv1.RunFunctionRequest) {
	t.Helper()
	before := proto.CloneOf(req)
	log := &errorLog{}
	fn := newFunction(log)
	rsp, err := fn.RunFunction(t.Context(), req)
	if err != nil {
		t.Fatalf("an error in place of an answer: %v", err)
	}
	if log.text != "" {
		t.Fatalf("a panic: %s", log.text)
	}
	if !proto.Equal(before, req) {
		t.Fatal("the request was changed")
	}
	again, err := wired{fn}.RunFunction(t.Context(), before)
	if err != nil {
		t.Fatalf("an error over the wire: %v", err)
	}
	if !proto.Equal(rsp, again) {
		t.Fatalf("the same request gave two answers: -in process, +over the wire:\n%s", cmp.Diff(rsp, again, protocmp.Transform()))
	}
	oracle.Check(t, req, rsp)
}

// An errorLog remembers what the function says of an internal error.
type errorLog struct{ text string }

func (l *errorLog) Info(msg string, keysAndValues ...any) {
	l.text += fmt.Sprintln(append([]any{msg}, keysAndValues...)...)
}
func (l *errorLog) Debug(string, ...any)             {}
func (l *errorLog) WithValues(...any) logging.Logger { return l }
