/*
Package codec is a protobuf codec for gRPC that is fast for a function's requests and
responses. Most of the cost of a call is protobuf. Observed objects have managedFields and
whole templates that nobody reads, and a response has the same template for each replica.

Decoding, the codec skips the fields of observed and required objects that nobody reads.
Package incoming knows which are read. Encoding, it encodes a template once that several
objects share.

The codec leaves unusual cases to the protobuf module. When it decodes, these are unknown
fields and fields that come twice. When it encodes, they are fields that are rarely set. It
also leaves all other messages to that module.
*/
package codec

import (
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // Registers the codec that this one replaces.
	"google.golang.org/grpc/mem"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
)

// name is the name of the codec that this one replaces.
const name = "proto"

// Register makes this the codec of the process. Call it before any use of gRPC, whose table of
// codecs has no lock.
func Register() {
	incoming.Fields() // Later declarations panic.
	encoding.RegisterCodecV2(codec{encoding.GetCodecV2(name)})
}

// A codec encodes and decodes a function's requests and responses, and leaves other messages
// to the codec that it wraps.
type codec struct {
	encoding.CodecV2
}

// Unmarshal decodes a message, except for a Received, which keeps the bytes.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	switch t := v.(type) {
	case *Received:
		t.text = gather(data)
		return nil
	case *fnv1.RunFunctionRequest:
		return unmarshal(gather(data), t)
	}
	return c.CodecV2.Unmarshal(data, v)
}

// Marshal encodes a message.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if e, ok := v.(encoded); ok {
		return e.BufferSlice, nil
	}
	rsp, ok := v.(*fnv1.RunFunctionResponse)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	w := newWriter()
	defer w.release()
	if err := w.response(rsp); err != nil {
		return nil, err
	}
	pool := mem.DefaultBufferPool()
	b := pool.Get(w.len())
	copy(*b, w.buf[w.at:])
	return mem.BufferSlice{mem.NewBuffer(b, pool)}, nil
}
