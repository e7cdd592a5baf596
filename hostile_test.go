package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/codec"
	"github.com/fusioninfer/function-inferenceservice/test/hostile"
)

const (
	// maxFatal is what the user reads.
	maxFatal = 10 << 10
	// maxAnswer is what Crossplane's client receives.
	maxAnswer = 4 << 20
)

// TestHostile answers each of the requests that are meant to stop the function. That it
// does so at all, and with how much, is tested here. What it costs, make bench says.
func TestHostile(t *testing.T) {
	codec.Register()
	wire := encoding.GetCodecV2("proto")
	cases := hostile.Cases()
	if len(cases) < 40 {
		t.Errorf("%d cases are few", len(cases))
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
			req := &fnv1.RunFunctionRequest{}
			if err := wire.Unmarshal(mem.BufferSlice{mem.SliceBuffer(b)}, req); err != nil {
				// Protobuf takes no other text than UTF-8, and Crossplane sends none.
				if !strings.Contains(err.Error(), "UTF-8") {
					t.Fatalf("it cannot be read: %v", err)
				}
				return
			}
			log := &defectLog{}
			rsp, err := (&Function{log: log, clock: stopped()}).RunFunction(t.Context(), req)
			if err != nil || log.text != "" {
				t.Fatalf("it is not answered: %v, %s", err, log.text)
			}
			answer, err := wire.Marshal(rsp)
			if err != nil {
				t.Fatalf("the answer cannot be sent: %v", err)
			}
			if n := answer.Len(); n > maxAnswer {
				t.Errorf("the answer has %d bytes, which do not arrive", n)
			}
			for _, r := range rsp.GetResults() {
				if n := len(r.GetMessage()); n > maxFatal {
					t.Errorf("a result has %d bytes: %.200s", n, r.GetMessage())
				}
			}
		})
	}
}

// TestCallEnds makes sure that nobody works on for a caller that has gone.
func TestCallEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, req := range exampleRequests(t) {
		rsp, err := (&Function{log: logging.NewNopLogger()}).RunFunction(ctx, req)
		if status.Code(err) != codes.Canceled || rsp != nil {
			t.Errorf("%s: got %v, %v, want that it was canceled", nameOf(req), rsp, errors.Unwrap(err))
		}
	}
}
