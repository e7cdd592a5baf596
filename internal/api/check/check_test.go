package check

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TestLength shows that lengths are counted in characters, as in a schema.
func TestLength(t *testing.T) {
	path := field.NewPath("a")
	if errs := Length(path, strings.Repeat("é", 5), 5); len(errs) > 0 {
		t.Errorf("five characters: %v", errs.ToAggregate())
	}
	if errs := Length(path, strings.Repeat("é", 6), 5); len(errs) != 1 {
		t.Errorf("want one error about six characters, got %v", errs.ToAggregate())
	}
}

// TestOneOf shows that the error names the value that is probably meant.
func TestOneOf(t *testing.T) {
	path := field.NewPath("a")
	cases := map[string]struct{ reason, v, want string }{
		"None":  {reason: "A value that is not set is no error."},
		"Valid": {reason: "A valid value is none either.", v: "decoder"},
		"Near":  {reason: "A misspelt value is near to one.", v: "decode", want: `a: Unsupported value: "decode": supported values: "prefiller", "decoder" (did you mean "decoder"?)`},
		"Case":  {reason: "So is one of another case.", v: "Prefiller", want: `a: Unsupported value: "Prefiller": supported values: "prefiller", "decoder" (did you mean "prefiller"?)`},
		"Far":   {reason: "Nothing is near to this.", v: "gpu", want: `a: Unsupported value: "gpu": supported values: "prefiller", "decoder"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := OneOf(path, tc.v, "prefiller", "decoder").ToAggregate(); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestSelector shows that each mistake of a selector has its own path, and that the order of errors does not depend on the map's.
func TestSelector(t *testing.T) {
	s := &metav1.LabelSelector{
		MatchLabels: map[string]string{"region": "us", "b b": "x", "a a": "y", "tier": "-"},
		MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "zone", Operator: "in", Values: []string{"a", "b b"}},
			{Key: "-", Operator: metav1.LabelSelectorOpIn},
			{Key: "gpu", Operator: metav1.LabelSelectorOpExists, Values: []string{"true"}},
			{Key: "gpu"},
			{Operator: metav1.LabelSelectorOpExists},
			{Key: "gpu", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"a100"}},
		},
	}
	const name = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
	const value = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
	want := []string{
		`s.matchLabels[a a]: Invalid value: "a a": ` + name,
		`s.matchLabels[b b]: Invalid value: "b b": ` + name,
		`s.matchLabels[tier]: Invalid value: "-": ` + value,
		`s.matchExpressions[0].operator: Unsupported value: "in": supported values: "In", "NotIn", "Exists", "DoesNotExist" (did you mean "In"?)`,
		`s.matchExpressions[0].values[1]: Invalid value: "b b": ` + value,
		`s.matchExpressions[1].key: Invalid value: "-": ` + name,
		`s.matchExpressions[1].values: Required value: operator In needs at least one`,
		`s.matchExpressions[2].values: Forbidden: must be left out: operator Exists has none`,
		`s.matchExpressions[3].operator: Required value: must be In, NotIn, Exists or DoesNotExist`,
		`s.matchExpressions[4].key: Required value: must be the key of a label`,
	}
	var got []string
	for _, err := range Selector(field.NewPath("s"), s) {
		got = append(got, err.Error())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// FuzzSelector compares what is valid with what Kubernetes can select by.
func FuzzSelector(f *testing.F) {
	f.Add("a", "b", "zone", "In", "us", true)
	f.Add("a b", "", "zone", "Exists", "", false)
	f.Add("", "b", "", "", "", true)
	f.Fuzz(func(t *testing.T, k, v, key, operator, value string, has bool) {
		r := metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOperator(operator)}
		if has {
			r.Values = []string{value}
		}
		s := &metav1.LabelSelector{MatchLabels: map[string]string{k: v}, MatchExpressions: []metav1.LabelSelectorRequirement{r}}
		_, err := metav1.LabelSelectorAsSelector(s)
		if errs := Selector(field.NewPath("s"), s); (err == nil) != (len(errs) == 0) {
			t.Errorf("%v: want an error like %v, got %v", s, err, errs)
		}
	})
}

// TestSize shows that a unit that cannot be meant is an error, which asks for the one that is.
func TestSize(t *testing.T) {
	path := field.NewPath("a")
	cases := map[string]struct{ reason, size, want string }{
		"Large":    {reason: "A model has some gigabytes.", size: "40Gi"},
		"Least":    {reason: "This is the least size.", size: "1Mi"},
		"None":     {reason: "No claim has no size.", size: "0", want: `a: Invalid value: "0": must be more than 0`},
		"Negative": {reason: "Nor is one less than none.", size: "-40Gi", want: `a: Invalid value: "-40Gi": must be more than 0`},
		"Milli": {
			reason: "m stands for thousandths.", size: "40m",
			want: `a: Invalid value: "40m": must be at least 1Mi, and m stands for thousandths of a byte: did you mean 40M or 40Mi?`,
		},
		"Bytes": {
			reason: "A number alone stands for bytes.", size: "40",
			want: `a: Invalid value: "40": must be at least 1Mi, and a number alone stands for bytes: did you mean 40Mi or 40Gi?`,
		},
		"Kilo": {reason: "Too little is said with its limit.", size: "40Ki", want: `a: Invalid value: "40Ki": must be at least 1Mi`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := Size(path, resource.MustParse(tc.size)).ToAggregate(); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestNames(t *testing.T) {
	path := field.NewPath("a")
	cases := map[string]struct {
		reason string
		got    field.ErrorList
		want   string
	}{
		"Label":       {reason: "A label may have 63 characters.", got: Label(path, strings.Repeat("x", 63))},
		"LongLabel":   {reason: "A label may not have 64 characters.", got: Label(path, strings.Repeat("x", 64)), want: "a: Too long: may not be more than 63 characters"},
		"DottedLabel": {reason: "A label may not have dots.", got: Label(path, "a.b"), want: `a: Invalid value: "a.b": must consist of lower case letters, digits and '-', and start and end with a letter or digit`},
		"Name":        {reason: "A name may have dots.", got: Name(path, "a.b")},
		"LongName":    {reason: "A name may not have more than 253 characters.", got: Name(path, strings.Repeat("x", 254)), want: "a: Too long: may not be more than 253 characters"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := tc.got.ToAggregate(); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
