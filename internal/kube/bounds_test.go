package kube

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestParseQuantity(t *testing.T) {
	cases := map[string]struct {
		reason string
		text   string
		want   string
		err    string
	}{
		"Plain":            {reason: "Spaces around a quantity are trimmed.", text: " 500m ", want: "500m"},
		"Exa":              {reason: "E alone is a suffix.", text: "2E", want: "2E"},
		"Exbi":             {reason: "Ei is a suffix.", text: "2Ei", want: "2Ei"},
		"Exponent":         {reason: "The largest allowed exponent is accepted.", text: "1e30", want: "1e30"},
		"NegativeExponent": {reason: "The smallest allowed exponent is accepted, and rounded up.", text: "1e-30", want: "1e-9"},
		"HugeExponent":     {reason: "The library would compute with 300 million digits.", text: "1e300000000", err: "its exponent must be a whole number from -30 to 30"},
		"LargeExponent":    {reason: "The library would take seconds.", text: "1E100000", err: "its exponent must be a whole number from -30 to 30"},
		"Tiny":             {reason: "A negative exponent is limited, too.", text: "1e-300000000", err: "its exponent must be a whole number from -30 to 30"},
		"Overflow":         {reason: "An exponent that does not fit into an int is refused.", text: "1e99999999999999999999", err: "its exponent must be a whole number from -30 to 30"},
		"Long":             {reason: "The length is limited, because digits cost as much as exponents.", text: strings.Repeat("9", 65), err: "it has 65 characters, and must have at most 64"},
		"None":             {reason: "For text that is not a quantity, the library's error is returned.", text: "x", err: resource.ErrFormatWrong.Error()},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			q, err := ParseQuantity(tc.text)
			if got := fmt.Sprint(err); err != nil && got != tc.err || err == nil && tc.err != "" {
				t.Errorf("%s got error %q, want %q", tc.reason, got, tc.err)
			}
			if err == nil && q.String() != tc.want {
				t.Errorf("%s got %s, want %s", tc.reason, q.String(), tc.want)
			}
		})
	}
}

// TestDecodeQuantities shows that the limits of ParseQuantity hold for numbers, too.
func TestDecodeQuantities(t *testing.T) {
	s := &structpb.Struct{Fields: map[string]*structpb.Value{
		"a": structpb.NewStringValue("1e300000000"),
		"b": structpb.NewNumberValue(1e300),
		"c": structpb.NewNumberValue(1.5),
		"d": structpb.NewNumberValue(1e22),
	}}
	into := struct {
		A, B, C, D resource.Quantity
	}{}
	wrapped := struct {
		A *resource.Quantity `json:"a"`
		B *resource.Quantity `json:"b"`
		C *resource.Quantity `json:"c"`
		D *resource.Quantity `json:"d"`
	}{&into.A, &into.B, &into.C, &into.D}
	errs := Decode(s, field.NewPath("x"), &wrapped)
	want := `[x.a: Invalid value: "1e300000000": must be a Quantity: its exponent must be a whole number from -30 to 30, x.b: Invalid value: 1e+300: must be a Quantity: its exponent must be a whole number from -30 to 30]`
	if diff := cmp.Diff(want, fmt.Sprint(errs.ToAggregate())); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if wrapped.C.String() != "1500m" || wrapped.D.String() != "10e21" {
		t.Errorf("got %s and %s", wrapped.C, wrapped.D)
	}
}

// TestDecodeProblems shows that the number of reported problems is limited.
func TestDecodeProblems(t *testing.T) {
	l := &structpb.ListValue{}
	for range 100_000 {
		l.Values = append(l.Values, structpb.NewStringValue(strings.Repeat("x", 100)))
	}
	s := &structpb.Struct{Fields: map[string]*structpb.Value{"numbers": structpb.NewListValue(l)}}
	errs := Decode(s, field.NewPath("x"), &struct {
		Numbers []int `json:"numbers"`
	}{})
	if len(errs) != MaxProblems+1 {
		t.Fatalf("got %d errors, want %d and one that counts the others", len(errs), MaxProblems)
	}
	if got, want := errs[MaxProblems].Error(), `x: Invalid value: "...": 99968 more values cannot be read`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestCheckBounds(t *testing.T) {
	list := func(n int, of *structpb.Value) *structpb.Value {
		l := &structpb.ListValue{}
		for range n {
			l.Values = append(l.Values, of)
		}
		return structpb.NewListValue(l)
	}
	deep := func(n int) *structpb.Value {
		v := structpb.NewNullValue()
		for range n {
			v = list(1, v)
		}
		return v
	}
	fields := func(n int) *structpb.Value {
		s := &structpb.Struct{Fields: map[string]*structpb.Value{}}
		for i := range n {
			s.Fields[fmt.Sprint("f", i)] = structpb.NewNullValue()
		}
		return structpb.NewStructValue(s)
	}
	null := structpb.NewNullValue()
	cases := map[string]struct {
		reason string
		v      *structpb.Value
		want   []string
	}{
		"List":     {reason: "A list may have 1000 elements.", v: list(1000, null)},
		"TooLong":  {reason: "A list may not have more than 1000 elements.", v: list(1001, null), want: []string{`spec.v: Invalid value: "1001 elements": must have at most 1000`}},
		"TooWide":  {reason: "An object may not have more than 1000 fields.", v: fields(1001), want: []string{`spec.v: Invalid value: "1001 fields": must have at most 1000`}},
		"Deep":     {reason: "Lists may be nested 64 deep.", v: deep(64)},
		"TooDeep":  {reason: "Lists may not be nested deeper than 64.", v: deep(5000), want: []string{"spec.v" + strings.Repeat("[0]", 64) + `: Invalid value: "...": must be nested at most 64 deep`}},
		"Many":     {reason: "The values of all lists together are limited.", v: list(60, list(1000, null)), want: []string{`spec: Invalid value: "more than 50000 values": must have at most 50000 values in all`}},
		"Problems": {reason: "The number of reported problems is limited.", v: list(900, list(1001, null)), want: nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := &structpb.Struct{Fields: map[string]*structpb.Value{"v": tc.v, "others": list(5000, null)}}
			var got []string
			for _, e := range CheckBounds(s, field.NewPath("spec"), "others") {
				got = append(got, e.Error())
			}
			if name == "Problems" {
				if len(got) != MaxProblems {
					t.Errorf("%s got %d problems, want %d", tc.reason, len(got), MaxProblems)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestEncodeStruct shows that a Struct inside an object is used without a copy.
func TestEncodeStruct(t *testing.T) {
	part := &structpb.Struct{}
	s, err := Encode(struct {
		Part *structpb.Struct `json:"part"`
	}{part})
	if err != nil {
		t.Fatal(err)
	}
	if s.GetFields()["part"].GetStructValue() != part {
		t.Error("the Struct was copied, through JSON")
	}
}

// TestCheckBoundsOfFields shows that the number of top-level fields is limited, too.
func TestCheckBoundsOfFields(t *testing.T) {
	s := &structpb.Struct{Fields: map[string]*structpb.Value{}}
	for i := range 1001 {
		s.Fields[fmt.Sprint("f", i)] = structpb.NewNullValue()
	}
	want := `input: Invalid value: "1001 fields": must have at most 1000`
	if got := fmt.Sprint(CheckBounds(s, field.NewPath("input")).ToAggregate()); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
