package hostile_test

import (
	"strings"
	"testing"

	"github.com/fusioninfer/function-inferenceservice/test/function"
	"github.com/fusioninfer/function-inferenceservice/test/hostile"
)

// maxFatal is the largest size of a result's message, in bytes.
const maxFatal = 10 << 10

// TestHostile shows that the function responds to each hostile request, and without long messages. make bench measures what a
// response costs.
func TestHostile(t *testing.T) {
	fn := function.Start(t)
	cases := hostile.Cases()
	if len(cases) < 40 {
		t.Errorf("there are only %d cases", len(cases))
	}
	names := map[string]bool{}
	for _, c := range cases {
		if names[c.Name] {
			t.Errorf("two cases are called %q", c.Name)
		}
		names[c.Name] = true
		t.Run(c.Name, func(t *testing.T) {
			b, err := c.Wire()
			if err != nil {
				t.Fatal(err)
			}
			if len(b) > hostile.MaxSize {
				t.Errorf("the request has %d bytes, which no API server stores", len(b))
			}
			rsp, err := fn.Send(t.Context(), b)
			// Protobuf refuses text that is not UTF-8, and Crossplane sends none.
			if err != nil && strings.Contains(err.Error(), "cannot decode the request") && strings.Contains(err.Error(), "UTF-8") {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range rsp.GetResults() {
				if strings.Contains(r.GetMessage(), "internal error of the function") {
					t.Error(r.GetMessage())
				}
				if n := len(r.GetMessage()); n > maxFatal {
					t.Errorf("a result has %d bytes: %.200s", n, r.GetMessage())
				}
			}
		})
	}
}
