package simulation

import (
	"context"
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
		for tries := 1; ; tries++ {
			diff, took, err := compared(t.Context(), served, inProcess, request)
			if err != nil {
				return nil, err
			}
			if diff == "" {
				break
			}
			// On a busy machine, the second of the served one's answer may be neither that of before nor that of after.
			if took <= time.Second || tries == 5 {
				t.Fatalf("-served, +in process:\n%s", diff)
			}
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

// compared returns how the answer of the served function differs from those of the function in this process just before and just
// after it, if it equals neither. It also returns how long after the one the other is.
func compared(ctx context.Context, served *function.Client, inProcess Function, request []byte) (diff string, took time.Duration, err error) {
	begun := time.Now()
	before, err := answerAt(inProcess, request, begun)
	if err != nil {
		return "", 0, err
	}
	want, err := served.Send(ctx, request)
	if err != nil {
		return "", 0, err
	}
	ended := time.Now()
	after, err := answerAt(inProcess, request, ended)
	if err != nil {
		return "", 0, err
	}
	before.Meta.Ttl, after.Meta.Ttl, want.Meta.Ttl = nil, nil, nil
	if proto.Equal(want, before) {
		return "", 0, nil
	}
	return cmp.Diff(want, after, protocmp.Transform()), ended.Sub(begun), nil
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
