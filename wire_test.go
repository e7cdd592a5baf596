package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/codec"
	"github.com/fusioninfer/function-inferenceservice/internal/require"
)

// TestWire makes sure that the codec leaves out nothing that is read: over the
// wire the function answers as it does to the whole request, and its answer
// arrives as it is.
func TestWire(t *testing.T) {
	codec.Register()
	wire := encoding.GetCodecV2("proto")
	f := &Function{log: logging.NewNopLogger(), clock: stopped()}
	all := exampleRequests(t)
	for _, req := range all {
		// What it remembers of clusters is read only when they are gone.
		if len(req.GetRequiredResources()[require.Fleet].GetItems()) > 0 {
			gone, _ := proto.Clone(req).(*fnv1.RunFunctionRequest)
			gone.RequiredResources[require.Fleet] = &fnv1.Resources{}
			all = append(all, gone)
		}
	}
	for _, req := range all {
		t.Run(nameOf(req), func(t *testing.T) {
			want, err := f.RunFunction(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			b, err := proto.Marshal(req)
			if err != nil {
				t.Fatal(err)
			}
			read := &fnv1.RunFunctionRequest{}
			if err := wire.Unmarshal(mem.BufferSlice{mem.SliceBuffer(b)}, read); err != nil {
				t.Fatal(err)
			}
			rsp, err := f.RunFunction(t.Context(), read)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := wire.Marshal(rsp)
			if err != nil {
				t.Fatal(err)
			}
			got := &fnv1.RunFunctionResponse{}
			if err := proto.Unmarshal(answer.Materialize(), got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
				t.Errorf("-the whole request, +over the wire:\n%s", diff)
			}
		})
	}
}
