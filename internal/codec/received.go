package codec

import (
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
)

// A Received is a message as it arrived. A server that receives one decodes it when it
// has room for what is in it.
type Received struct{ text string }

// Len is its length in bytes.
func (r *Received) Len() int { return len(r.text) }

// Decode reads the message into v, and keeps nothing of it.
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

// An encoded is an answer that needs nothing but to be sent.
type encoded struct{ mem.BufferSlice }

// Encode encodes an answer. Sent, it is what it would be without.
func Encode(v any) (any, error) {
	b, err := encoding.GetCodecV2(name).Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the answer: %w", err)
	}
	return encoded{b}, nil
}

// gather copies a message into one text, of which all strings will be parts.
func gather(data mem.BufferSlice) string {
	var text strings.Builder
	text.Grow(data.Len())
	for _, part := range data {
		_, _ = text.Write(part.ReadOnlyData()) // Never fails.
	}
	return text.String()
}
