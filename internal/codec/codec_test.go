package codec

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/utils/ptr"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

func object1(t testing.TB) *structpb.Struct {
	t.Helper()
	s, err := structpb.NewStruct(map[string]any{
		"apiVersion": "v1", "kind": "X", "n": 1.5, "b": true, "f": false, "z": nil, "l": []any{"a", 1.0, nil, []any{}, map[string]any{}},
		"metadata": map[string]any{"name": "ä", "labels": map[string]any{"": "empty"}, "generation": 3.0},
		"spec":     map[string]any{"replicas": 1.0, "deep": map[string]any{"deeper": map[string]any{}}},
		"status":   map[string]any{"conditions": []any{map[string]any{"type": "T"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestUnmarshal(t *testing.T) {
	res := func() *fnv1.Resource {
		return &fnv1.Resource{Resource: object1(t), Ready: fnv1.Ready_READY_TRUE, ConnectionDetails: map[string][]byte{"k": {1}}}
	}
	seen := func() *fnv1.Resource {
		return &fnv1.Resource{Resource: object2(t), Ready: fnv1.Ready_READY_TRUE, ConnectionDetails: map[string][]byte{"k": {1}}}
	}
	req := &fnv1.RunFunctionRequest{
		Meta:     &fnv1.RequestMeta{Tag: "t", Capabilities: []fnv1.Capability{1}},
		Observed: &fnv1.State{Composite: &fnv1.Resource{Resource: object3(t)}, Resources: map[string]*fnv1.Resource{"a": seen(), "b": {}}},
		Desired:  &fnv1.State{Composite: res(), Resources: map[string]*fnv1.Resource{"a": res()}},
		Input:    object1(t),
		Context:  object1(t),
		Credentials: map[string]*fnv1.Credentials{
			"c": {Source: &fnv1.Credentials_CredentialData{CredentialData: &fnv1.CredentialData{Data: map[string][]byte{"x": {2}}}}},
		},
		RequiredResources: map[string]*fnv1.Resources{"pods": {Items: []*fnv1.Resource{seen(), seen()}}, "none": {}},
		RequiredSchemas:   map[string]*fnv1.Schema{"here": {OpenapiV3: &structpb.Struct{}}, "gone": {}},
	}
	b, err := proto.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	got := &fnv1.RunFunctionRequest{}
	if err := new(decoder).request(string(b), got); err != nil {
		t.Fatalf("a request of Crossplane's is the common case: %v", err)
	}
	if diff := cmp.Diff(req, got, protocmp.Transform()); diff != "" {
		t.Errorf("reads what protobuf reads: -want, +got:\n%s", diff)
	}
}

// whole is an object of which only the fields of read are read.
func whole(t testing.TB, read *structpb.Struct) *structpb.Struct {
	t.Helper()
	big := structpb.NewStringValue(strings.Repeat("y", 100))
	s := proto.Clone(read).(*structpb.Struct)
	s.Fields["metadata"].GetStructValue().Fields["managedFields"] = big
	kube.Lookup(s, "metadata", "annotations").GetStructValue().Fields["kubectl.kubernetes.io/last-applied-configuration"] = big
	if l := kube.Lookup(s, "spec", "leaderWorkerTemplate").GetStructValue(); l != nil {
		l.Fields["workerTemplate"] = big
	}
	for _, v := range kube.Lookup(s, "spec", "versions").GetListValue().GetValues() {
		v.GetStructValue().Fields["schema"] = big
	}
	s.Fields["status"].GetStructValue().Fields["capacity"] = big
	if data := s.Fields["data"].GetStructValue(); data != nil {
		data.Fields["config.yaml"] = big
	}
	s.Fields["binaryData"] = big
	return s
}

func object2(t testing.TB) *structpb.Struct {
	t.Helper()
	s, err := structpb.NewStruct(map[string]any{
		"apiVersion": "v1", "kind": "X",
		"metadata": map[string]any{"name": "n", "annotations": map[string]any{"crossplane.io/composition-resource-name": "k"}, "labels": map[string]any{"l": "x"}, "ownerReferences": []any{map[string]any{"uid": "u"}}, "generation": 3.0, "deletionTimestamp": "d", "resourceVersion": "7"},
		"spec": map[string]any{
			"replicas": 1.0, "leaderWorkerTemplate": map[string]any{"size": 2.0},
			"forProvider": map[string]any{"manifest": map[string]any{
				"apiVersion": "v1", "kind": "X", "metadata": map[string]any{"name": "n"}, "spec": map[string]any{"leaderWorkerTemplate": map[string]any{"size": 2.0}},
			}},
			"minTaskMember": map[string]any{"a": 1.0}, "unschedulable": true,
			"versions": []any{map[string]any{"name": "v1", "served": true}},
		},
		"status": map[string]any{
			"phase": "Running", "conditions": []any{map[string]any{"type": "T"}},
			"allocatable": map[string]any{"cpu": "1"}, "membershipLabel": map[string]any{"a": "b"},
			"unreachableSince": "2026-03-01T11:00:00Z",
		},
		"data": map[string]any{"ask": "{}", "grants": "[]"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// object3 is an XR of which everything is read.
func object3(t testing.TB) *structpb.Struct {
	t.Helper()
	s := object2(t)
	s.Fields["spec"] = structpb.NewStructValue(object1(t))
	delete(s.Fields, "data")
	status, err := structpb.NewStruct(map[string]any{
		"conditions": []any{map[string]any{"type": "T"}},
		// Those of an InferenceCluster.
		"allocations": []any{map[string]any{"uid": "u"}}, "pools": []any{map[string]any{"name": "p"}}, "waiting": []any{}, "gateway": map[string]any{"port": 1.0},
		"free": "1/2 x", "nodes": 1.0, "services": 1.0, "unreachableSince": "2026-03-01T11:00:00Z",
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Fields["status"] = structpb.NewStructValue(status)
	return s
}

func TestUnmarshalLeavesOutWhatNobodyReads(t *testing.T) {
	read := object2(t)
	remote := proto.Clone(read).(*structpb.Struct)
	object := func(manifest *structpb.Struct) *structpb.Struct {
		o := proto.Clone(read).(*structpb.Struct)
		o.Fields["status"].GetStructValue().Fields["atProvider"] = structpb.NewStructValue(&structpb.Struct{
			Fields: map[string]*structpb.Value{"manifest": structpb.NewStructValue(manifest)},
		})
		return o
	}
	big := whole(t, object(whole(t, remote)))
	xr := whole(t, object3(t))
	xr.Fields["spec"] = object3(t).GetFields()["spec"] // The user's, and read as a whole.
	small := object(remote)
	req := &fnv1.RunFunctionRequest{
		Observed:          &fnv1.State{Composite: &fnv1.Resource{Resource: xr}, Resources: map[string]*fnv1.Resource{"a": {Resource: big}}},
		Desired:           &fnv1.State{Resources: map[string]*fnv1.Resource{"a": {Resource: big}}},
		RequiredResources: map[string]*fnv1.Resources{"r": {Items: []*fnv1.Resource{{Resource: big}}}},
	}
	want := proto.Clone(req).(*fnv1.RunFunctionRequest)
	want.Observed.Composite.Resource = object3(t)
	want.Observed.Resources["a"].Resource = small
	want.RequiredResources["r"].Items[0].Resource = small
	b, _ := proto.Marshal(req)
	got := &fnv1.RunFunctionRequest{}
	if err := unmarshal(string(b), got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("what is observed and required is cut; the desired state stays whole: -want, +got:\n%s", diff)
	}
}

// marshal writes an answer as the server does.
func marshal(rsp *fnv1.RunFunctionResponse) ([]byte, error) {
	parts, err := codec{}.Marshal(rsp)
	if err != nil {
		return nil, err
	}
	return parts.Materialize(), nil
}

// arrives checks that protobuf reads of what was written what was meant, and
// returns what was written.
func arrives(t *testing.T, rsp *fnv1.RunFunctionResponse, reason string) []byte {
	t.Helper()
	b, err := marshal(rsp)
	if err != nil {
		t.Fatal(err)
	}
	got := &fnv1.RunFunctionResponse{}
	if err := proto.Unmarshal(b, got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(rsp, got, protocmp.Transform()); diff != "" {
		t.Errorf("%s: -want, +got:\n%s", reason, diff)
	}
	return b
}

// TestEveryFieldIsWritten fails when a younger SDK has fields that the writer does
// not know: it would leave them out without a word.
func TestEveryFieldIsWritten(t *testing.T) {
	for m, fields := range map[proto.Message]int{
		&fnv1.RunFunctionResponse{}: 7,
		&fnv1.State{}:               2,
		&fnv1.Resource{}:            3,
		&fnv1.Requirements{}:        3,
		&fnv1.ResourceSelector{}:    5,
		&structpb.Struct{}:          1,
		&structpb.Value{}:           6,
		&structpb.ListValue{}:       1,
	} {
		d := m.ProtoReflect().Descriptor()
		if got := d.Fields().Len(); got != fields {
			t.Errorf("%s has %d fields, and the writer knows %d: write them, and correct this test", d.FullName(), got, fields)
		}
	}
}

func TestMarshal(t *testing.T) {
	spec := structpb.NewStructValue(object1(t))
	shared := func(name string) *structpb.Struct {
		return &structpb.Struct{Fields: map[string]*structpb.Value{"metadata": structpb.NewStringValue(name), "spec": spec}}
	}
	rsp := &fnv1.RunFunctionResponse{
		Meta: &fnv1.ResponseMeta{Tag: "t", Ttl: durationpb.New(1e9)},
		Desired: &fnv1.State{
			Composite: &fnv1.Resource{Resource: object1(t), Ready: fnv1.Ready_READY_FALSE},
			Resources: map[string]*fnv1.Resource{
				"a": {Resource: shared("a"), Ready: fnv1.Ready_READY_TRUE}, "b": {Resource: shared("b")}, "c": {}, "": {Resource: object1(t)},
				"d": {Resource: object1(t), ConnectionDetails: map[string][]byte{"k": {1}}},
			},
		},
		Results: []*fnv1.Result{{Severity: fnv1.Severity_SEVERITY_FATAL, Message: "m"}},
		Context: object1(t),
		Requirements: &fnv1.Requirements{
			Schemas: map[string]*fnv1.SchemaSelector{"s": {Kind: "K"}, "": {ApiVersion: "v1"}},
			Resources: map[string]*fnv1.ResourceSelector{
				"labels": {ApiVersion: "v1", Kind: "Pod", Match: &fnv1.ResourceSelector_MatchLabels{MatchLabels: &fnv1.MatchLabels{Labels: map[string]string{"a": "b", "c": ""}}}},
				"name":   {ApiVersion: "v1", Kind: "Pod", Match: &fnv1.ResourceSelector_MatchName{MatchName: "n"}, Namespace: ptr.To("ns")},
				"empty":  {Match: &fnv1.ResourceSelector_MatchName{}, Namespace: ptr.To("")},
				"":       {},
			},
		},
		Conditions: []*fnv1.Condition{{Type: "T"}},
		Output:     object1(t),
	}
	b := arrives(t, rsp, "protobuf reads what was written")
	again, _ := marshal(rsp)
	if string(again) != string(b) {
		t.Error("the same answer gives the same bytes")
	}
}

func TestMarshalOldRequirements(t *testing.T) {
	rsp := &fnv1.RunFunctionResponse{Requirements: &fnv1.Requirements{
		ExtraResources: map[string]*fnv1.ResourceSelector{"a": {Kind: "K"}},
		Resources:      map[string]*fnv1.ResourceSelector{"b": {Kind: "K"}},
	}}
	arrives(t, rsp, "the field that came before is kept")
}

func TestMarshalRefusesWhatProtobufRefuses(t *testing.T) {
	rsp := &fnv1.RunFunctionResponse{Desired: &fnv1.State{Resources: map[string]*fnv1.Resource{
		"a": {Resource: &structpb.Struct{Fields: map[string]*structpb.Value{"x": structpb.NewStringValue("\xff")}}},
	}}}
	if _, err := marshal(rsp); err == nil {
		t.Error("Crossplane could not read text that is not UTF-8")
	}
}

// FuzzUnmarshal holds the fast way against the protobuf module: what the one
// reads, the other reads too, but for what is left out.
func FuzzUnmarshal(f *testing.F) {
	for _, m := range []*fnv1.RunFunctionRequest{
		{},
		{Observed: &fnv1.State{Composite: &fnv1.Resource{Resource: object1(f)}, Resources: map[string]*fnv1.Resource{"a": {Resource: object1(f)}}}},
		{Input: object1(f), Meta: &fnv1.RequestMeta{Tag: "t"}, RequiredResources: map[string]*fnv1.Resources{"p": {Items: []*fnv1.Resource{{Resource: object1(f)}}}}},
	} {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, want := &fnv1.RunFunctionRequest{}, &fnv1.RunFunctionRequest{}
		if new(decoder).request(string(b), got) != nil {
			return
		}
		if err := proto.Unmarshal(b, want); err != nil {
			if got.Observed == nil && got.RequiredResources == nil {
				t.Fatalf("reads what protobuf refuses: %v", err)
			}
			return // What is left out is not looked at either.
		}
		cut(want.GetObserved().GetComposite().GetResource(), composite)
		for _, r := range want.GetObserved().GetResources() {
			cut(r.GetResource(), observed)
		}
		for _, rs := range want.GetRequiredResources() {
			for _, r := range rs.GetItems() {
				cut(r.GetResource(), observed)
			}
		}
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
	})
}

func cut(s *structpb.Struct, keep kept) {
	for name, v := range s.GetFields() {
		below, ok := keep.below(name)
		if !ok {
			delete(s.GetFields(), name)
			continue
		}
		cutValue(v, below)
	}
}

func cutValue(v *structpb.Value, keep kept) {
	cut(v.GetStructValue(), keep)
	for _, e := range v.GetListValue().GetValues() {
		cutValue(e, keep)
	}
}
