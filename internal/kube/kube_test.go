package kube

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"
	"weak"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apply "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/yaml"
)

// mustStruct parses YAML into a Struct.
func mustStruct(t testing.TB, y string) *structpb.Struct {
	t.Helper()
	j, err := yaml.YAMLToJSON([]byte(y))
	if err != nil {
		t.Fatal(err)
	}
	s := &structpb.Struct{}
	if err := s.UnmarshalJSON(j); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestEncode(t *testing.T) {
	cases := map[string]struct {
		reason string
		obj    any
		want   string
	}{
		"ApplyConfiguration": {
			reason: "only fields that are set are encoded, including an empty object",
			obj: apply.Pod("a", "b").WithSpec(apply.PodSpec().
				WithVolumes(apply.Volume().WithName("shm").WithEmptyDir(apply.EmptyDirVolumeSource())).
				WithContainers(apply.Container().WithName("c").
					WithPorts(apply.ContainerPort().WithContainerPort(8000)).
					WithReadinessProbe(apply.Probe().WithHTTPGet(apply.HTTPGetAction().WithPort(intstr.FromString("http")))).
					WithResources(apply.ResourceRequirements().WithLimits(corev1.ResourceList{"cpu": resource.MustParse("1500m")})))),
			want: `
apiVersion: v1
kind: Pod
metadata: {name: a, namespace: b}
spec:
  volumes: [{name: shm, emptyDir: {}}]
  containers:
  - name: c
    ports: [{containerPort: 8000}]
    readinessProbe: {httpGet: {port: http}}
    resources: {limits: {cpu: 1500m}}`,
		},
		"Map": {
			reason: "maps keep all values, including nulls and whole and fractional numbers",
			obj:    map[string]any{"a": []any{int64(1), 1.5, "x", nil, true}, "b": map[string]any{}, "c": map[string]any{"d": "e"}},
			want:   `{a: [1, 1.5, x, null, true], b: {}, c: {d: e}}`,
		},
		"Shared": {
			reason: "a Value or Struct inside an object is used",
			obj:    map[string]any{"a": structpb.NewStringValue("v"), "b": &structpb.Struct{Fields: map[string]*structpb.Value{"c": structpb.NewBoolValue(true)}}},
			want:   `{a: v, b: {c: true}}`,
		},
		"NilMapWithoutOmitempty": {
			reason: "a null is left out: in server-side apply it would claim the field",
			obj: struct {
				M map[string]string `json:"m"`
				P *int              `json:"p"`
				N int               `json:"n"`
			}{},
			want: `{"n": 0}`,
		},
		"ZeroIsKeptThroughPointer": {
			reason: "a zero behind a pointer is set",
			obj: struct {
				P *int32 `json:"p,omitempty"`
			}{P: new(int32)},
			want: `{p: 0}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Encode(tc.obj)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(mustStruct(t, tc.want).AsMap(), got.AsMap()); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestEncodeErrors(t *testing.T) {
	cases := map[string]struct {
		reason string
		obj    any
		want   string
	}{
		"TooManyDigits": {reason: "a number that would lose digits is an error", obj: map[string]any{"a": map[string]any{"b": int64(1<<53 + 1)}}, want: "a: b: the number 9007199254740993"},
		"NotAnObject":   {reason: "a list is not an object", obj: []any{}, want: "not an object"},
		"NoJSONForm":    {reason: "the error has the path of a value without a JSON form", obj: map[string]any{"f": func() {}}, want: "f: a func() has no form in JSON"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := Encode(tc.obj); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: want error with %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

// TestNothingIsKept shows that an encoded object can be freed although others were encoded
// after it.
func TestNothingIsKept(t *testing.T) {
	const n = 100
	all := make([]weak.Pointer[structpb.Struct], n)
	for i := range all {
		s, err := Encode(apply.Pod("a", "b").WithSpec(apply.PodSpec().WithContainers(apply.Container().WithName("c").WithArgs("d", "e"))))
		if err != nil {
			t.Fatal(err)
		}
		Canonical(s)
		all[i] = weak.Make(s)
	}
	runtime.GC()
	kept := 0
	for _, w := range all {
		if w.Value() != nil {
			kept++
		}
	}
	if kept > 1 {
		t.Errorf("%d of %d objects are still in memory", kept, n)
	}
}

// TestMustEncode shows that an encoded value is used without a copy, and that MustEncode
// panics for a value that cannot be encoded.
func TestMustEncode(t *testing.T) {
	ports := MustEncode([]any{apply.ContainerPort().WithContainerPort(1), apply.ContainerPort().WithContainerPort(2)})
	encode := func(name string) *structpb.Struct {
		s, err := Encode(map[string]any{"name": name, "ports": ports})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	a, b := encode("a"), encode("b")
	want := mustStruct(t, `{name: a, ports: [{containerPort: 1}, {containerPort: 2}]}`)
	if diff := cmp.Diff(want, a, protocmp.Transform()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if a.GetFields()["ports"] != ports || b.GetFields()["ports"] != ports {
		t.Error("the ports were encoded a second time")
	}
	defer func() {
		if want, got := "cannot encode func(): a func() has no form in JSON", recover(); got != want {
			t.Errorf("want a panic with %q, got %v", want, got)
		}
	}()
	MustEncode(func() {})
}

type sample struct {
	metav1.TypeMeta `json:",inline"`

	Name    string                   `json:"name"`
	Count   *int32                   `json:"count,omitempty"`
	Ratio   float64                  `json:"ratio,omitempty"`
	On      bool                     `json:"on,omitempty"`
	List    []sample                 `json:"list,omitempty"`
	Map     map[string]int32         `json:"map,omitempty"`
	Limits  corev1.ResourceList      `json:"limits,omitempty"`
	Port    intstr.IntOrString       `json:"port,omitempty"`
	Time    *metav1.Time             `json:"time,omitempty"`
	Doc     *Document                `json:"doc,omitempty"`
	Mode    corev1.PullPolicy        `json:"mode,omitempty"`
	Pointer *struct{ A string }      `json:"pointer,omitempty"`
	Any     any                      `json:"any,omitempty"`
	Args    []string                 `json:"args,omitempty"`
	Refs    []corev1.ObjectReference `json:"refs,omitempty"`
}

func TestDecode(t *testing.T) {
	in := mustStruct(t, `
apiVersion: v1
kind: Sample
name: nn
count: 3
ratio: 0.5
"on": true
unknown: {deep: [1]}
list: [{name: a}, {name: b, count: null}]
map: {x: 1}
limits: {cpu: 4, memory: 1Gi}
port: http
time: "2026-01-02T03:04:05Z"
doc: {a: 1, b: [x, null], c: 1.5}
mode: Always
args: ["", "$(X)"]
`)
	var got, want sample
	if errs := Decode(in, nil, &got); len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	j, _ := in.MarshalJSON()
	if err := json.Unmarshal(j, &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("Decode differs from encoding/json: -want, +got:\n%s", diff)
	}
}

func TestDecodeErrors(t *testing.T) {
	in := mustStruct(t, `
name: 3
count: "two"
"on": "yes"
list: [{count: 1.5}, x, {count: 3000000000}]
map: {x: why}
limits: {cpu: lots}
args: text
doc: []
`)
	var got sample
	errs := Decode(in, field.NewPath("spec"), &got)
	want := []string{
		`spec.args: Invalid value: "text": must be a list`,
		`spec.count: Invalid value: "two": must be a whole number`,
		`spec.doc: Invalid value: "[...]": must be an object`,
		`spec.limits[cpu]: Invalid value: "lots": must be a number such as 8, 500m or 40Gi`,
		`spec.list[0].count: Invalid value: 1.5: must be a whole number`,
		`spec.list[1]: Invalid value: "x": must be an object such as {name: x}`,
		`spec.list[2].count: Invalid value: 3000000000: must be a whole number of at most 32 bits`,
		`spec.map[x]: Invalid value: "why": must be a whole number`,
		`spec.name: Invalid value: 3: must be a string`,
		`spec.on: Invalid value: "yes": must be true or false`,
	}
	text := make([]string, len(errs))
	for i := range errs {
		text[i] = errs[i].Error()
	}
	if diff := cmp.Diff(want, text); diff != "" {
		t.Errorf("want all problems with their paths: -want, +got:\n%s", diff)
	}
}

// TestDecodeMapLargeNumbers proves that a number which a Struct does not hold exactly is an error at its path, if it is one at
// all, and hides nothing beside it.
func TestDecodeMapLargeNumbers(t *testing.T) {
	got := struct {
		Name    string         `json:"name"`
		Count   int32          `json:"count"`
		Factor  float64        `json:"factor"`
		Content map[string]any `json:"content"`
	}{}
	errs := DecodeMap(map[string]any{"name": "a", "count": int64(maxExactInt + 1), "factor": int64(maxExactInt + 1), "content": map[string]any{"n": int64(maxExactInt + 1)}}, nil, &got)
	if diff := cmp.Diff("count: Invalid value: 9007199254740992: must be a whole number of at most 32 bits", errs.ToAggregate().Error()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if got.Name != "a" || got.Factor != maxExactInt || got.Content["n"] != int64(maxExactInt) {
		t.Errorf("the other values are %+v", got)
	}
}

// A value that cannot be read hides nothing beside it.
func TestDecodeUnknown(t *testing.T) {
	v := struct {
		Known   string
		Unknown Unknown `json:"-"`
	}{}
	errs := Decode(mustStruct(t, "{Known: a, c: 1, b: 2, none: null}"), nil, &v)
	if diff := cmp.Diff(Unknown{"b", "c"}, v.Unknown); len(errs) > 0 || diff != "" {
		t.Errorf("%v\n-want, +got:\n%s", errs, diff)
	}
}

func TestDecodeOtherValues(t *testing.T) {
	type limits struct {
		Name  string             `json:"name"`
		Count *int32             `json:"count"`
		Size  *resource.Quantity `json:"size"`
	}
	type sampled struct {
		Limits *limits `json:"limits"`
		Absent *limits `json:"absent"`
		Text   *string `json:"text"`
	}
	got := sampled{}
	errs := Decode(mustStruct(t, `{limits: {name: a, count: two, size: {}}, absent: x, text: {}}`), nil, &got)
	var paths []string
	for _, e := range errs {
		paths = append(paths, e.Field)
	}
	if diff := cmp.Diff([]string{"limits.count", "limits.size", "absent", "text"}, paths); diff != "" {
		t.Errorf("errors: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(sampled{Limits: &limits{Name: "a"}}, got); diff != "" {
		t.Errorf("an object has the values that can be read, and all else is absent: -want, +got:\n%s", diff)
	}
}

func TestWithSharesTheRest(t *testing.T) {
	before := mustStruct(t, `{metadata: {name: a}, spec: {x: 1}}`)
	after := With(before, structpb.NewStringValue("b"), "metadata", "labels", "l")
	want := mustStruct(t, `{metadata: {name: a, labels: {l: b}}, spec: {x: 1}}`)
	if diff := cmp.Diff(want.AsMap(), after.AsMap()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(mustStruct(t, `{metadata: {name: a}, spec: {x: 1}}`).AsMap(), before.AsMap()); diff != "" {
		t.Errorf("the original changed: -want, +got:\n%s", diff)
	}
	if after.GetFields()["spec"] != before.GetFields()["spec"] {
		t.Error("a value that is not on the path was copied")
	}
}

func TestDocumentsAreShared(t *testing.T) {
	in := mustStruct(t, `{doc: {a: 1}}`)
	var got sample
	if errs := Decode(in, nil, &got); len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	if got.Doc != in.GetFields()["doc"].GetStructValue() {
		t.Error("the document was copied")
	}
}

func TestWithoutNulls(t *testing.T) {
	cases := map[string]struct {
		reason   string
		in, want string
		same     bool
	}{
		"None":   {reason: "a Struct without nulls is returned without a copy", in: `{a: {b: [{c: 1}]}}`, want: `{a: {b: [{c: 1}]}}`, same: true},
		"Top":    {reason: "a field that is null is left out", in: `{a: null, b: 1}`, want: `{b: 1}`},
		"Below":  {reason: "fields that are null are left out at any depth, also inside lists", in: `{a: {b: null}, l: [[{c: null, d: 1}]]}`, want: `{a: {}, l: [[{d: 1}]]}`},
		"InList": {reason: "an element that is null is kept: leaving it out would move the others", in: `{l: [null, 1]}`, want: `{l: [null, 1]}`, same: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := mustStruct(t, tc.in)
			got := WithoutNulls(in)
			if diff := cmp.Diff(mustStruct(t, tc.want), got, protocmp.Transform()); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
			if (got == in) != tc.same {
				t.Errorf("%s: want the same Struct %t, got %t", tc.reason, tc.same, got == in)
			}
			if diff := cmp.Diff(mustStruct(t, tc.in), in, protocmp.Transform()); diff != "" {
				t.Errorf("the original changed: -want, +got:\n%s", diff)
			}
		})
	}
}

func TestCanonical(t *testing.T) {
	text := func(y string) string {
		return Canonical(mustStruct(t, y))
	}
	// Hashes of this text are in labels of live objects, so it must never change.
	const want = `{1"btrue,1"l[1,1.5,1e+21,null,],1"o{1"a2""x,1"z{},},}`
	if got := text(`{o: {z: {}, a: '"x'}, l: [1, 1.5, 1.0e+21, null], b: true}`); got != want {
		t.Errorf("want %s, got %s", want, got)
	}
	all := map[string]string{}
	for _, y := range []string{`{}`, `{a: null}`, `{a: []}`, `{a: {}}`, `{a: ""}`, `{a: "1"}`, `{a: 1}`, `{a: [1, 2]}`, `{a: ["1,2"]}`, `{a: [[1], 2]}`, `{a: [1, [2]]}`, `{a: "null"}`, `{a: true}`, `{a: "true"}`} {
		if other, ok := all[text(y)]; ok {
			t.Errorf("%s and %s have the same text %s", other, y, text(y))
		}
		all[text(y)] = y
	}
}

// FuzzDecode compares Decode with encoding/json: what Decode accepts without an error,
// encoding/json decodes to the same value.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"name":"a","count":3,"list":[{"map":{"x":1}}],"doc":{"a":[1,null]}}`))
	f.Add([]byte(`{"port":"http","limits":{"cpu":"1"},"time":null,"any":{"b":2}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		s := &structpb.Struct{}
		if s.UnmarshalJSON(in) != nil || caseDiffers(s) {
			return
		}
		var got, want sample
		if len(Decode(s, nil, &got)) > 0 {
			return
		}
		j, err := s.MarshalJSON()
		if err != nil {
			return
		}
		d := json.NewDecoder(strings.NewReader(string(j)))
		if err := d.Decode(&want); err != nil {
			t.Fatalf("encoding/json refuses %s: %v", j, err)
		}
		g, err := json.Marshal(got)
		if err != nil {
			return
		}
		w, _ := json.Marshal(want)
		if string(g) != string(w) && !strings.EqualFold(string(g), string(w)) {
			t.Errorf("-want %s\n+got  %s", w, g)
		}
	})
}

// caseDiffers reports whether a field has a name that encoding/json may match in another
// case, which Decode does not.
func caseDiffers(s *structpb.Struct) bool {
	for k, v := range s.GetFields() {
		if k != strings.ToLower(k) || k == "kind" || caseDiffers(v.GetStructValue()) {
			return true
		}
		for _, e := range v.GetListValue().GetValues() {
			if caseDiffers(e.GetStructValue()) {
				return true
			}
		}
	}
	return false
}
