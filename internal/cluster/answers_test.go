package cluster

import (
	"strings"
	"testing"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

// TestAtMost proves that the texts of pending requests are bounded, which their tenants choose for the most part.
func TestAtMost(t *testing.T) {
	requests := func(messages ...string) []v1alpha1.PendingRequest {
		var all []v1alpha1.PendingRequest
		for _, m := range messages {
			all = append(all, v1alpha1.PendingRequest{Namespace: "ns", Name: "svc", UID: "12345", Message: m})
		}
		return all
	}
	long := strings.Repeat("x", 100)
	cases := map[string]struct {
		reason string
		all    []v1alpha1.PendingRequest
		bytes  int
		want   int
	}{
		"All":   {reason: "They fit.", all: requests("", "", ""), bytes: 30, want: 3},
		"Names": {reason: "Names and UIDs count.", all: requests("", "", ""), bytes: 29, want: 2},
		"Equal": {reason: "An equal message takes next to nothing once it is compressed.", all: requests(long, long, long), bytes: 130, want: 3},
		"Other": {reason: "Another one does.", all: requests(long, long+"y", long), bytes: 219, want: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := len(atMost(tc.all, tc.bytes)); got != tc.want {
				t.Errorf("%s %d are left, want %d", tc.reason, got, tc.want)
			}
		})
	}
}
