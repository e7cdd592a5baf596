package simulation

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/test/function"
)

// TestServed shows that the function in this process answers as the served one. That one has a clock of its own, so the function in
// this process answers at that time, too. The times in an answer are whole seconds, of just before or just after the served one.
func TestServed(t *testing.T) {
	served, inProcess := function.Start(t), InProcess()
	calls := 0
	both := func(request []byte, now time.Time) ([]byte, error) {
		before, err := answerAt(inProcess, request, time.Now())
		if err != nil {
			return nil, err
		}
		want, err := served.Send(t.Context(), request)
		if err != nil {
			return nil, err
		}
		after, err := answerAt(inProcess, request, time.Now())
		if err != nil {
			return nil, err
		}
		before.Meta.Ttl, after.Meta.Ttl, want.Meta.Ttl = nil, nil, nil
		if diff := cmp.Diff(want, after, protocmp.Transform()); diff != "" && !proto.Equal(want, before) {
			t.Fatalf("-served, +in process:\n%s", diff)
		}
		calls++
		return inProcess(request, now)
	}
	w := New(Options{Seed: 1, Steps: 30}, both)
	if v := w.Run(); v != nil {
		t.Fatal(v)
	}
	if calls < 50 {
		t.Errorf("only %d calls were compared", calls)
	}
}

func answerAt(fn Function, request []byte, now time.Time) (*fnv1.RunFunctionResponse, error) {
	answer, err := fn(request, now)
	if err != nil {
		return nil, err
	}
	rsp := &fnv1.RunFunctionResponse{}
	return rsp, proto.Unmarshal(answer, rsp)
}

// TestRepeats shows that a seed decides everything that happens.
func TestRepeats(t *testing.T) {
	run := func() string {
		w := New(Options{Seed: 7, Steps: 60, Trace: true}, InProcess())
		_ = w.Run()
		return strings.Join(w.events, "\n")
	}
	if diff := cmp.Diff(run(), run()); diff != "" {
		t.Errorf("-first, +second:\n%s", diff)
	}
}
