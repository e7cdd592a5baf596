package epp

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
)

// maxAllocated is how many bytes checking a configuration may allocate for each byte of it. Empty
// objects take most.
const maxAllocated = 500

// TestCheckAllocates shows that a configuration takes memory in proportion to its size, whatever
// its aliases and its errors are.
func TestCheckAllocates(t *testing.T) {
	const head = "apiVersion: " + APIVersionGAIE + "\nkind: EndpointPickerConfig\n"
	manyNames := &strings.Builder{}
	manyNames.WriteString(head + "plugins:\n")
	for i := range 99 {
		_, _ = fmt.Fprintf(manyNames, "- {type: queue-scorer, name: \"%03d%s\"}\n", i, strings.Repeat("a", 1000))
	}
	profiles := func(ref string, n, profiles int) string {
		b := &strings.Builder{}
		b.WriteString("schedulingProfiles:\n")
		for i := range profiles {
			_, _ = fmt.Fprintf(b, "- {name: p%d, plugins: [%s]}\n", i, strings.TrimSuffix(strings.Repeat(ref+",", n), ","))
		}
		return b.String()
	}
	cases := map[string]struct{ reason, config string }{
		"Text": {
			reason: "One long text that has many aliases is written out for none of them.",
			config: head + "a: &a " + strings.Repeat("x", 50_000) + "\nb: [" + strings.Repeat("*a,", 20_000) + "*a]\n",
		},
		"Keys": {
			reason: "So is a long key. Otherwise, each error about a key that is there twice would have it.",
			config: head + "? &a " + strings.Repeat("x", 900) + "\n: 1\nb:\n" + strings.Repeat("- {*a : 1, *a : 2}\n", 8_000),
		},
		"Lists": {
			reason: "Nor are lists of lists.",
			config: head + "a: &a [" + strings.Repeat("x,", 1000) + "x]\nb: [" + strings.Repeat("*a,", 20_000) + "*a]\n",
		},
		"MergeKeys": {
			reason: "Merge keys are aliases too.",
			config: head + "a: &a {k: " + strings.Repeat("x", 50_000) + "}\nb:\n" + strings.Repeat("- {<<: *a}\n", 8_000),
		},
		"MissingNames": {
			reason: "The names that a reference may have are not listed for each of many errors.",
			config: manyNames.String() + profiles("{}", 1000, 40),
		},
		"WrongNames": {
			reason: "Nor for each wrong name.",
			config: manyNames.String() + profiles("{pluginRef: x}", 1000, 9),
		},
		"Weights": {
			reason: "A long name is not repeated in each error about its references.",
			config: head + "plugins: [{type: max-score-picker}, {type: queue-scorer, name: &n " + strings.Repeat("n", 500) + "}]\n" +
				profiles("{pluginRef: max-score-picker},{pluginRef: *n}", 400, 4),
		},
		"Fields": {
			reason: "The known fields are not listed for each of many unknown ones.",
			config: head + "plugins: [" + strings.Repeat("{a: 1,b: 1,c: 1,d: 1,e: 1,f: 1,g: 1},", 999) + "{}]\n" + profiles("{a: 1,b: 1,c: 1,d: 1}", 1000, 7),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for d := range dialects {
				for _, own := range []bool{false, true} {
					var errs field.ErrorList
					got := allocated(func() { errs = checkTextFor(tc.config, d, own) })
					if want := uint64(maxAllocated * len(tc.config)); got > want {
						t.Errorf("%s\n%s, own image %t: a configuration of %d bytes takes %d bytes, want at most %d", tc.reason, d, own, len(tc.config), got, want)
					}
					if len(errs) == 0 || len(errs) > maxErrors+1 {
						t.Errorf("%s, own image %t: %d errors", d, own, len(errs))
					}
					for _, e := range errs {
						if n := len(e.Error()); n > 4<<10 {
							t.Errorf("an error has %d bytes: %.200s", n, e.Error())
						}
					}
				}
			}
		})
	}
}

// allocated returns how many bytes a function allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func checkTextFor(text string, d inputv1alpha1.Dialect, ownImage bool) field.ErrorList {
	c, errs := Parse(text, field.NewPath("config"))
	if len(errs) > 0 {
		return errs
	}
	_, errs = c.Check(d, ownImage)
	return errs
}
