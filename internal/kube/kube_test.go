package kube

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
			reason: "only what is set is sent, and an empty object that is set is kept",
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
		"Document": {
			reason: "documents keep what they have, with nulls and numbers of any kind",
			obj:    Document{"a": []any{int64(1), 1.5, "x", nil, true}, "b": Document{}, "c": Document{"d": "e"}},
			want:   `{a: [1, 1.5, x, null, true], b: {}, c: {d: e}}`,
		},
		"Shared": {
			reason: "what is encoded already is used as it is",
			obj:    Document{"a": structpb.NewStringValue("v"), "b": &structpb.Struct{Fields: map[string]*structpb.Value{"c": structpb.NewBoolValue(true)}}},
			want:   `{a: v, b: {c: true}}`,
		},
		"NilMapWithoutOmitempty": {
			reason: "a null would claim the field in server-side apply",
			obj: struct {
				M map[string]string `json:"m"`
				P *int              `json:"p"`
				N int               `json:"n"`
			}{},
			want: `{"n": 0}`,
		},
		"ZeroIsKeptThroughPointer": {
			reason: "a pointer says that zero is meant",
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
		"TooManyDigits": {reason: "digits are never lost in silence", obj: Document{"a": Document{"b": int64(1<<53 + 1)}}, want: "a: b: the number 9007199254740993"},
		"NotAnObject":   {reason: "a list is no object", obj: []any{}, want: "not an object"},
		"NoJSONForm":    {reason: "what has no form in JSON is named", obj: Document{"f": func() {}}, want: "f: a func() has no form in JSON"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := Encode(tc.obj); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: want error with %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
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
	Doc     Document                 `json:"doc,omitempty"`
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
	// Documents differ from encoding/json in one thing: whole numbers are int64.
	want.Doc["a"] = int64(1)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("decodes as encoding/json does: -want, +got:\n%s", diff)
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
		`spec.limits[cpu]: Invalid value: "lots": must be a Quantity: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'`,
		`spec.list[0].count: Invalid value: 1.5: must be a whole number`,
		`spec.list[1]: Invalid value: "x": must be an object`,
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
		t.Errorf("every problem is reported with its path: -want, +got:\n%s", diff)
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
		t.Error("what is not on the path must be shared")
	}
}

// FuzzDecode holds the decoder against encoding/json: what the one accepts
// without a complaint, the other reads as the same.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"name":"a","count":3,"list":[{"map":{"x":1}}],"doc":{"a":[1,null]}}`))
	f.Add([]byte(`{"port":"http","limits":{"cpu":"1"},"time":null,"any":{"b":2}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		s := &structpb.Struct{}
		if s.UnmarshalJSON(in) != nil {
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
		if string(g) != string(w) && !strings.EqualFold(string(g), string(w)) && !caseDiffers(s) {
			t.Errorf("-want %s\n+got  %s", w, g)
		}
	})
}

// caseDiffers tells input on which encoding/json, which matches names in any
// case, is meant to differ.
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
