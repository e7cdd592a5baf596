package simulation

import (
	"bytes"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/cluster"
	"github.com/fusioninfer/function-inferenceservice/internal/codec"
	"github.com/fusioninfer/function-inferenceservice/internal/composite"
	"github.com/fusioninfer/function-inferenceservice/internal/service"
)

// A Function answers an encoded request with an encoded response at a time.
type Function func(request []byte, now time.Time) ([]byte, error)

// InProcess calls the function in this process, through its codec. Its steps are those of RunFunction in the root package, which
// a command's package keeps to itself. TestServed compares the answers with those of the served function.
func InProcess() Function {
	register()
	wire := encoding.GetCodecV2("proto")
	return func(request []byte, now time.Time) ([]byte, error) {
		req := &fnv1.RunFunctionRequest{}
		if err := wire.Unmarshal(mem.BufferSlice{mem.SliceBuffer(request)}, req); err != nil {
			return nil, fmt.Errorf("cannot decode a request: %w", err)
		}
		call := composite.NewCall(req, now)
		if err := compose(call); err != nil {
			call.Refuse(err)
		}
		answer, err := wire.Marshal(call.Response)
		if err != nil {
			return nil, fmt.Errorf("cannot encode a response: %w", err)
		}
		return answer.Materialize(), nil
	}
}

// register registers the codec, once for all functions.
var register = sync.OnceFunc(codec.Register)

func compose(call *composite.Call) error {
	type resource interface {
		Parse() error
		Observe() error
		Plan() error
		Render() error
		Require() error
		Respond() error
	}
	var r resource
	if call.Kind() == cluster.Kind {
		r = cluster.New(call)
	} else {
		r = service.New(call)
	}
	for _, step := range []func() error{r.Parse, r.Observe, r.Plan, r.Render, r.Require, r.Respond} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// run calls the function as Crossplane's client does.
func (w *World) run(xr xrKey, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	sent, err := proto.MarshalOptions{Deterministic: true}.Marshal(req)
	if err != nil {
		return nil, fmt.Errorf("cannot encode a request: %w", err)
	}
	received, err := w.function(sent, w.now)
	w.Cost.add(xr, len(sent), len(received))
	if err != nil {
		return nil, err
	}
	if last := w.answers[xr]; bytes.Equal(received, last.encoded) {
		return last.decoded, nil
	}
	rsp := &fnv1.RunFunctionResponse{}
	if err := proto.Unmarshal(received, rsp); err != nil {
		return nil, fmt.Errorf("cannot decode a response: %w", err)
	}
	w.answers[xr] = answer{received, rsp}
	return rsp, nil
}

// An answer of the function, which nobody changes.
type answer struct {
	encoded []byte
	decoded *fnv1.RunFunctionResponse
}
