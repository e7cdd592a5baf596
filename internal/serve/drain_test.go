package serve

import (
	"context"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/codec"
)

// A slow function answers once it may.
type slow struct {
	fnv1.UnimplementedFunctionRunnerServiceServer
	called, may chan struct{}
}

func (s *slow) RunFunction(context.Context, *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	close(s.called)
	<-s.may
	return &fnv1.RunFunctionResponse{}, nil
}

// TestDrain proves that a call is answered that was received before the process was told to end.
func TestDrain(t *testing.T) {
	codec.Register()
	fn := &slow{called: make(chan struct{}), may: make(chan struct{})}
	server, err := newServer(fn, Options{Insecure: true, MaxRecvMessageSize: 1 << 20, Memory: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	served, answered := make(chan error, 1), make(chan error, 1)
	go func() { served <- serve(ctx, server, l) }()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	go func() {
		_, err := fnv1.NewFunctionRunnerServiceClient(conn).RunFunction(t.Context(), &fnv1.RunFunctionRequest{})
		answered <- err
	}()
	select {
	case <-fn.called:
	case err := <-answered:
		t.Fatalf("the function is not called: %v", err)
	}
	end()
	close(fn.may)
	if err := <-answered; err != nil {
		t.Errorf("the call was cut off: %v", err)
	}
	if err := <-served; err != nil {
		t.Errorf("it ends with %v", err)
	}
}
