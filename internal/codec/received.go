package codec

import (
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
)

// A Received is a message that is not decoded yet. A server decodes it once there is enough
// memory for the result.
type Received struct{ text string }

// Len returns the length of the encoded message in bytes.
func (r *Received) Len() int { return len(r.text) }

// Decode decodes the message into v, and releases the encoded message.
func (r *Received) Decode(v any) error {
	text := r.text
	r.text = ""
	if err := decode(text, v); err != nil {
		return status.Errorf(codes.Internal, "cannot decode the request: %v", err)
	}
	return nil
}

func decode(text string, v any) error {
	if req, ok := v.(*fnv1.RunFunctionRequest); ok {
		return unmarshal(text, req)
	}
	return encoding.GetCodecV2(name).Unmarshal(mem.BufferSlice{mem.SliceBuffer(text)}, v)
}

// Copy returns a copy of a request as this codec decodes it: without the fields that nobody
// in this binary reads.
func Copy(req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionRequest, error) {
	b, err := proto.Marshal(req)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the request: %w", err)
	}
	got := &fnv1.RunFunctionRequest{}
	if err := unmarshal(string(b), got); err != nil {
		return nil, fmt.Errorf("cannot decode the request: %w", err)
	}
	return got, nil
}

// encoded is a response that is encoded already.
type encoded struct{ mem.BufferSlice }

// Encode encodes a response ahead of gRPC, which sends the result unchanged.
func Encode(v any) (any, error) {
	b, err := encoding.GetCodecV2(name).Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the response: %w", err)
	}
	return encoded{b}, nil
}

// gather copies a message into one string. All decoded strings are substrings of it.
func gather(data mem.BufferSlice) string {
	var text strings.Builder
	text.Grow(data.Len())
	for _, part := range data {
		_, _ = text.Write(part.ReadOnlyData()) // Never fails.
	}
	return text.String()
}
