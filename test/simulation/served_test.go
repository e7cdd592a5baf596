package simulation

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/service/require"
	"github.com/fusioninfer/function-inferenceservice/test/function"
)

// TestServed shows that the function in this process answers as the served one. That one has a clock of its own, so nothing happens
// here whose answer has a time.
func TestServed(t *testing.T) {
	served, inProcess := function.Start(t), InProcess()
	calls := 0
	both := func(request []byte, now time.Time) ([]byte, error) {
		answer, err := inProcess(request, now)
		if err != nil {
			return nil, err
		}
		want, err := served.Send(t.Context(), request)
		if err != nil {
			return nil, err
		}
		got := &fnv1.RunFunctionResponse{}
		if err := proto.Unmarshal(answer, got); err != nil {
			return nil, err
		}
		got.Meta.Ttl, want.Meta.Ttl = nil, nil
		// By the clock of the served function, no cluster has answered in time.
		for _, r := range []*fnv1.RunFunctionResponse{got, want} {
			maps.DeleteFunc(r.GetRequirements().GetResources(), func(name string, _ *fnv1.ResourceSelector) bool { return strings.HasPrefix(name, require.Cluster("")) })
		}
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
			t.Fatalf("-served, +in process:\n%s", diff)
		}
		calls++
		return answer, nil
	}
	w := New(Options{Seed: 2, Steps: 30, Without: map[string]bool{"reach": true, "start-timeout": true}}, both)
	if v := w.Run(); v != nil {
		t.Fatal(v)
	}
	if calls < 50 {
		t.Errorf("only %d calls were compared", calls)
	}
}

// TestRepeats shows that a seed decides everything that happens.
func TestRepeats(t *testing.T) {
	run := func() string {
		w := New(Options{Seed: 7, Steps: 60, Without: without(), Trace: true}, InProcess())
		_ = w.Run()
		return strings.Join(w.events, "\n")
	}
	if diff := cmp.Diff(run(), run()); diff != "" {
		t.Errorf("-first, +second:\n%s", diff)
	}
}
