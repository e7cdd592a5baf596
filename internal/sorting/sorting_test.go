package sorting

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestInTurn shows in which order items of groups come. The first letter of an item is its group.
func TestInTurn(t *testing.T) {
	cases := map[string]struct {
		reason, items, want string
	}{
		"None":  {reason: "There are no items.", items: "", want: ""},
		"One":   {reason: "A group alone keeps its order.", items: "a1 a2 a3", want: "a1 a2 a3"},
		"Turns": {reason: "Second ones come after all first ones.", items: "a1 a2 a3 b1 c1 c2", want: "a1 b1 c1 a2 c2 a3"},
		"Order": {reason: "In a turn, the order stays.", items: "b1 a1 a2 b2", want: "b1 a1 a2 b2"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			items := strings.Fields(tc.items)
			var got []string
			for _, i := range InTurn(len(items), func(i int) string { return items[i][:1] }) {
				got = append(got, items[i])
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
