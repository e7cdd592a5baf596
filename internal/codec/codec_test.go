package codec

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

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
		"carried":  map[string]any{"metadata": map[string]any{"name": "m", "uid": "u"}, "spec": map[string]any{"rules": []any{map[string]any{"name": "a", "more": 1.0}}}},
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
	req := &fnv1.RunFunctionRequest{
		Meta:     &fnv1.RequestMeta{Tag: "t", Capabilities: []fnv1.Capability{1}},
		Observed: &fnv1.State{Composite: &fnv1.Resource{Resource: object1(t)}, Resources: map[string]*fnv1.Resource{"a": res(), "b": {}}},
		Desired:  &fnv1.State{Composite: res(), Resources: map[string]*fnv1.Resource{"a": res()}},
		Input:    object1(t),
		Context:  object1(t),
		Credentials: map[string]*fnv1.Credentials{
			"c": {Source: &fnv1.Credentials_CredentialData{CredentialData: &fnv1.CredentialData{Data: map[string][]byte{"x": {2}}}}},
		},
		RequiredResources: map[string]*fnv1.Resources{"pods": {Items: []*fnv1.Resource{res(), res()}}, "none": {}},
		RequiredSchemas:   map[string]*fnv1.Schema{"here": {OpenapiV3: &structpb.Struct{}}, "gone": {}},
	}
	b, err := proto.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	got := &fnv1.RunFunctionRequest{}
	if err := new(decoder).request(string(b), got); err != nil { // Its field sets are nil: all fields.
		t.Fatalf("the codec leaves a request of Crossplane's to the protobuf module: %v", err)
	}
	if diff := cmp.Diff(req, got, protocmp.Transform()); diff != "" {
		t.Errorf("the codec differs from the protobuf module: -want, +got:\n%s", diff)
	}
}

// some returns a decoder that keeps some fields.
func some() *decoder {
	object := kube.FieldSet{
		"metadata": {"name": nil, "annotations": {"key": nil}},
		"spec":     {"rules": {"name": nil}, "gone": nil},
		"status":   nil,
	}
	object["carried"] = object
	return &decoder{object: object, composite: kube.FieldSet{"spec": nil}}
}

// TestUnmarshalSkips shows that the codec skips fields of observed and required objects that
// nobody reads, and no others.
func TestUnmarshalSkips(t *testing.T) {
	d := some()
	parse := func(y string) *fnv1.Resource {
		o := map[string]any{}
		if err := yaml.Unmarshal([]byte(y), &o); err != nil {
			t.Fatal(err)
		}
		s, err := structpb.NewStruct(o)
		if err != nil {
			t.Fatal(err)
		}
		return &fnv1.Resource{Resource: s}
	}
	const (
		whole = `
metadata: {name: n, managedFields: [{a: b}], annotations: {key: v, other: w}}
spec: {rules: [{name: a, more: b}, 1, [{name: c, more: d}], {}], template: {spec: {}}}
status: {conditions: [{type: T}]}
carried: {metadata: {name: m, uid: u}, carried: {kind: K, status: 1}}
data: {a: b}
`
		read = `
metadata: {name: n, annotations: {key: v}}
spec: {rules: [{name: a}, 1, [{name: c}], {}]}
status: {conditions: [{type: T}]}
carried: {metadata: {name: m}, carried: {status: 1}}
`
	)
	all := func(composite, object string) *fnv1.RunFunctionRequest {
		return &fnv1.RunFunctionRequest{
			Observed:          &fnv1.State{Composite: parse(composite), Resources: map[string]*fnv1.Resource{"a": parse(object)}},
			Desired:           &fnv1.State{Composite: parse(whole), Resources: map[string]*fnv1.Resource{"a": parse(whole)}},
			Input:             parse(whole).GetResource(),
			Context:           parse(whole).GetResource(),
			RequiredResources: map[string]*fnv1.Resources{"r": {Items: []*fnv1.Resource{parse(object), parse(object)}}},
		}
	}
	b, err := proto.Marshal(all("{spec: {a: [b]}, status: {c: d}}", whole))
	if err != nil {
		t.Fatal(err)
	}
	got := &fnv1.RunFunctionRequest{}
	if err := d.request(string(b), got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(all("{spec: {a: [b]}}", read), got, protocmp.Transform()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// marshal encodes a response as the server does.
func marshal(rsp *fnv1.RunFunctionResponse) ([]byte, error) {
	parts, err := codec{}.Marshal(rsp)
	if err != nil {
		return nil, err
	}
	return parts.Materialize(), nil
}

// arrives checks that the protobuf module decodes what the codec encoded to the same response.
// It returns the encoded response.
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

// TestEveryFieldIsWritten fails if a newer SDK has fields that the writer does not know. It
// would leave them out silently.
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
			t.Errorf("%s has %d fields, and the writer knows %d: write the new ones, and correct this test", d.FullName(), got, fields)
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
	b := arrives(t, rsp, "the protobuf module decodes another response")
	again, _ := marshal(rsp)
	if string(again) != string(b) {
		t.Error("the same response has different bytes the second time")
	}
}

func TestMarshalOldRequirements(t *testing.T) {
	rsp := &fnv1.RunFunctionResponse{Requirements: &fnv1.Requirements{
		ExtraResources: map[string]*fnv1.ResourceSelector{"a": {Kind: "K"}},
		Resources:      map[string]*fnv1.ResourceSelector{"b": {Kind: "K"}},
	}}
	arrives(t, rsp, "the deprecated field is lost")
}

func TestMarshalRefusesWhatProtobufRefuses(t *testing.T) {
	rsp := &fnv1.RunFunctionResponse{Desired: &fnv1.State{Resources: map[string]*fnv1.Resource{
		"a": {Resource: &structpb.Struct{Fields: map[string]*structpb.Value{"x": structpb.NewStringValue("\xff")}}},
	}}}
	if _, err := marshal(rsp); err == nil {
		t.Error("the codec encoded a string that is not UTF-8, which Crossplane cannot decode")
	}
}

// FuzzUnmarshal compares the codec with the protobuf module: except for skipped fields, both
// decode a request to the same value.
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
		d := some()
		if d.request(string(b), got) != nil {
			return
		}
		if err := proto.Unmarshal(b, want); err != nil {
			if got.Observed == nil && got.RequiredResources == nil {
				t.Fatalf("the codec accepts what the protobuf module refuses: %v", err)
			}
			return // The codec does not validate what it skips.
		}
		cut(want.GetObserved().GetComposite().GetResource(), d.composite)
		for _, r := range want.GetObserved().GetResources() {
			cut(r.GetResource(), d.object)
		}
		for _, rs := range want.GetRequiredResources() {
			for _, r := range rs.GetItems() {
				cut(r.GetResource(), d.object)
			}
		}
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
	})
}

// cut deletes the fields of a Struct that are not in keep.
func cut(s *structpb.Struct, keep kube.FieldSet) {
	for name, v := range s.GetFields() {
		below, ok := keep.Below(name)
		if !ok {
			delete(s.GetFields(), name)
			continue
		}
		cutValue(v, below)
	}
}

func cutValue(v *structpb.Value, keep kube.FieldSet) {
	cut(v.GetStructValue(), keep)
	for _, e := range v.GetListValue().GetValues() {
		cutValue(e, keep)
	}
}
