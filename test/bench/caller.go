package main

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
)

// A caller calls one function. It sends and receives bytes, so the bench measures the function
// and gRPC rather than the caller's protobuf.
type caller struct {
	conn   *grpc.ClientConn
	method string
}

const maxMessage = 64 << 20

func dial(address, method string) (*caller, error) {
	conn, err := grpc.NewClient(address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(
			grpc.ForceCodecV2(bytesCodec{}),
			grpc.MaxCallRecvMsgSize(maxMessage),
			grpc.MaxCallSendMsgSize(maxMessage)))
	if err != nil {
		return nil, fmt.Errorf("cannot connect to %s: %w", address, err)
	}
	return &caller{conn: conn, method: method}, nil
}

func (c *caller) close() { _ = c.conn.Close() }

func (c *caller) call(ctx context.Context, request []byte) ([]byte, error) {
	var answer []byte
	if err := c.conn.Invoke(ctx, c.method, request, &answer); err != nil {
		return nil, fmt.Errorf("cannot call %s: %w", c.method, err)
	}
	return answer, nil
}

// A bytesCodec takes messages that are encoded already.
type bytesCodec struct{}

func (bytesCodec) Name() string { return "proto" }

func (bytesCodec) Marshal(v any) (mem.BufferSlice, error) {
	b, ok := v.([]byte)
	if !ok {
		return nil, fmt.Errorf("cannot send a %T", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(b)}, nil
}

func (bytesCodec) Unmarshal(data mem.BufferSlice, v any) error {
	b, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("cannot receive into a %T", v)
	}
	*b = data.Materialize()
	return nil
}
