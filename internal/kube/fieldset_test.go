package kube

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type recursive struct {
	Name string      `json:"name"`
	Next *recursive  `json:"next"`
	More []recursive `json:"more"`
}

type inlined struct {
	A string `json:"a"`
}

func TestFieldsOf(t *testing.T) {
	cases := map[string]struct {
		reason string
		of     any
		want   FieldSet
	}{
		"Scalars":  {"A scalar has no fields below it.", struct{ A, B string }{}, FieldSet{"A": nil, "B": nil}},
		"Nested":   {"Pointers and lists have the fields of their elements.", struct{ P *[]inlined }{}, FieldSet{"P": {"a": nil}}},
		"Empty":    {"Of an object without fields, nothing but its existence is read.", struct{ P *struct{} }{}, FieldSet{"P": {}}},
		"Inlined":  {"The fields of an embedded struct belong to the outer one.", struct{ inlined }{}, FieldSet{"a": nil}},
		"Maps":     {"A map is read whole, because its keys are not known.", struct{ M map[string]inlined }{}, FieldSet{"M": nil}},
		"Any":      {"A value of any type is read whole.", struct{ A any }{}, FieldSet{"A": nil}},
		"Document": {"A Document is read whole.", struct{ D *Document }{}, FieldSet{"D": nil}},
		"Own": {"A type with its own JSON form is read whole.", struct {
			Q resource.Quantity
			T *metav1.Time
		}{}, FieldSet{"Q": nil, "T": nil}},
		"Skipped": {"Fields that encoding/json skips are not read.", struct {
			A string `json:"-"`
			b string
		}{}, FieldSet{}},
		"Recursive": {"A type that contains itself is read whole below the first level.", recursive{}, FieldSet{"name": nil, "next": nil, "more": nil}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, FieldsOf(reflect.TypeOf(tc.of))); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestUnion(t *testing.T) {
	a := FieldSet{"x": {"y": nil}, "all": nil, "a": {}}
	b := FieldAt([]string{"x", "z"}, nil).Union(FieldSet{"all": {"some": nil}, "b": nil})
	want := FieldSet{"x": {"y": nil, "z": nil}, "all": nil, "a": {}, "b": nil}
	if diff := cmp.Diff([]FieldSet{want, want}, []FieldSet{a.Union(b), b.Union(a)}); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if a.Union(nil) != nil || FieldSet(nil).Union(a) != nil {
		t.Error("the union with the set of all fields is not the set of all fields")
	}
	if diff := cmp.Diff(FieldSet{"x": {"y": nil}, "all": nil, "a": {}}, a); diff != "" {
		t.Errorf("Union changed its receiver: -want, +got:\n%s", diff)
	}
}
