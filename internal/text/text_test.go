package text

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TestJoinErrors proves that the problems of a spec fit into a response, however many they are.
func TestJoinErrors(t *testing.T) {
	var errs field.ErrorList
	for i := range 50_000 {
		errs = append(errs, field.Invalid(field.NewPath("spec").Index(i), strings.Repeat("x", 80), "must be shorter"))
	}
	got := Errors(append(errs[:1:1], errs...))
	if len(got) > MaxProblems+100 {
		t.Errorf("%d problems take %d bytes", len(errs), len(got))
	}
	if n := strings.Count(got, "must be shorter"); !strings.HasSuffix(got, fmt.Sprintf("; and %d more", len(errs)-n)) {
		t.Errorf("want %d more problems counted: ...%s", len(errs)-n, got[len(got)-50:])
	}
	if huge := Errors(field.ErrorList{field.Invalid(field.NewPath("a"), strings.Repeat("x", 1<<20), "x")}); len(huge) > MaxProblems+10 {
		t.Errorf("one problem takes %d bytes", len(huge))
	}
}

func TestCluster(t *testing.T) {
	got := []string{Cluster("us-east"), Cluster("")}
	if diff := cmp.Diff([]string{"us-east", "the control plane's cluster"}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestValue(t *testing.T) {
	cases := map[string]struct {
		reason string
		v      string
		want   string
	}{
		"Short": {
			reason: "A short value stays.",
			v:      strings.Repeat("x", 80),
			want:   strings.Repeat("x", 80),
		},
		"Long": {
			reason: "A long value would hide the problem.",
			v:      strings.Repeat("x", 1<<20),
			want:   strings.Repeat("x", 80) + "...",
		},
		"CutCharacter": {
			reason: "An error is a protobuf string, which has to be valid UTF-8.",
			v:      "x" + strings.Repeat("é", 80),
			want:   "x" + strings.Repeat("é", 39) + "...",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Value(tc.v)); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestSteady proves that two attempts that fail for the same reason have the same text.
func TestSteady(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"Port":   {"observe failed: read tcp 10.244.0.9:51234->10.0.0.1:6443: i/o timeout", "observe failed: read tcp 10.0.0.1:6443: i/o timeout"},
		"IPv6":   {"read udp [fd00::1]:4711->[fd00::a]:53: i/o timeout", "read udp [fd00::a]:53: i/o timeout"},
		"Expiry": {"x509: certificate has expired or is not yet valid: current time 2026-03-01T12:00:00Z is after 2026-02-01T12:00:00Z", "x509: certificate has expired or is not yet valid: current time is after 2026-02-01T12:00:00Z"},
		"Other":  {`Get "https://10.0.0.1:6443/api": dial tcp 10.0.0.1:6443: connect: connection refused`, `Get "https://10.0.0.1:6443/api": dial tcp 10.0.0.1:6443: connect: connection refused`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Steady(tc.text)); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}
