/*
Package codec is gRPC's protobuf codec, made fast for what Crossplane sends and
takes. Nearly all of a call's cost is protobuf: an observed object brings its
managedFields and its whole template, of which nothing is read, and the same
template goes out once for each replica.

Reading, it leaves out what nobody reads of observed objects. Writing, it encodes
a template that many objects share once. What is out of the ordinary it hands over
to the protobuf module: fields that it does not know or that come twice when it
reads, fields that are rarely set when it writes, and all other messages.
*/
package codec

import (
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // Registers the codec that this one replaces.
	"google.golang.org/grpc/mem"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
)

// name of the codec that this one replaces.
const name = "proto"

// Register makes this the codec of the process. Call it before anything of gRPC runs:
// its table of codecs has no lock.
func Register() {
	encoding.RegisterCodecV2(codec{encoding.GetCodecV2(name)})
}

// A codec serves requests and answers of functions itself, and leaves other
// messages to the one it wraps.
type codec struct {
	encoding.CodecV2
}

// Unmarshal reads a message.
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

// Marshal writes a message.
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
