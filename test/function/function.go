/*
Package function builds the composition function, serves it in a process of its own, and calls it over gRPC, as Crossplane does. Requests
of tests therefore go through the function's codec.
*/
package function

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/test/process"
)

// build builds the function once per test binary.
var build = sync.OnceValues(func() (string, error) { return process.Build(context.Background()) })

// A Client calls a served function. It receives up to 4 MiB, gRPC's own limit, as Crossplane's client does.
type Client struct {
	calls fnv1.FunctionRunnerServiceClient
	conn  *grpc.ClientConn
}

// Start builds the function and serves it until the test ends.
func Start(tb testing.TB) *Client {
	tb.Helper()
	built, err := build()
	if err != nil {
		tb.Fatal(err)
	}
	// go build gives the binary a new date each time. Go runs a test again that has started a file of the module with another
	// date, so what is started is outside of it. process.Build looks at what the function is made of.
	binary := filepath.Join(tb.TempDir(), filepath.Base(built))
	if err := os.Symlink(built, binary); err != nil {
		tb.Fatal(err)
	}
	log := &bytes.Buffer{}
	// The test's own context ends before its cleanup functions run.
	p, err := process.Start(context.WithoutCancel(tb.Context()), log, binary, "--metrics-address=")
	if err != nil {
		tb.Fatalf("%v\n%s", err, log)
	}
	conn, err := grpc.NewClient(p.Address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		p.Stop()
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = conn.Close() // The result does not matter.
		p.Stop()
		if tb.Failed() {
			tb.Logf("the function's log:\n%s", log)
		}
	})
	return &Client{calls: fnv1.NewFunctionRunnerServiceClient(conn), conn: conn}
}

// Command runs the binary with arguments in the working directory, as users do. It returns its output and its exit code.
func Command(tb testing.TB, args ...string) (out, errs string, code int) {
	tb.Helper()
	built, err := build()
	if err != nil {
		tb.Fatal(err)
	}
	o, e := &bytes.Buffer{}, &bytes.Buffer{}
	cmd := exec.CommandContext(tb.Context(), built, args...) //nolint:gosec // It is the binary that was built here.
	cmd.Stdout, cmd.Stderr = o, e
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		tb.Fatal(err)
	}
	return o.String(), e.String(), cmd.ProcessState.ExitCode()
}

// RunFunction calls the function.
func (c *Client) RunFunction(ctx context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	rsp, err := c.calls.RunFunction(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("cannot call the function: %w", err)
	}
	return rsp, nil
}

// Run calls the function, and fails the test if the call fails.
func (c *Client) Run(tb testing.TB, req *fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse {
	tb.Helper()
	rsp, err := c.RunFunction(tb.Context(), req)
	if err != nil {
		tb.Fatal(err)
	}
	return rsp
}

// Send calls the function with an encoded request, which may be invalid.
func (c *Client) Send(ctx context.Context, request []byte) (*fnv1.RunFunctionResponse, error) {
	rsp := &fnv1.RunFunctionResponse{}
	if err := c.conn.Invoke(ctx, fnv1.FunctionRunnerService_RunFunction_FullMethodName, request, rsp, grpc.ForceCodecV2(rawRequests{})); err != nil {
		return nil, fmt.Errorf("cannot call the function: %w", err)
	}
	return rsp, nil
}

// rawRequests is a codec that sends bytes without encoding them.
type rawRequests struct{}

// Name returns the name of the codec that decodes the request in the function.
func (rawRequests) Name() string { return "proto" }

// Marshal returns bytes unchanged.
func (rawRequests) Marshal(v any) (mem.BufferSlice, error) {
	b, ok := v.([]byte)
	if !ok {
		return nil, fmt.Errorf("cannot send a %T", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(b)}, nil
}

// Unmarshal decodes a response.
func (rawRequests) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(proto.Message)
	if !ok {
		return fmt.Errorf("cannot receive into a %T", v)
	}
	return proto.Unmarshal(data.Materialize(), m)
}
