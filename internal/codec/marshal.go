package codec

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"slices"
	"sync"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
)

// A writer writes a message from its end to its front. It therefore knows the length of a
// nested message when it writes that length.
type writer struct {
	// buf has the message from at to its end.
	buf []byte
	at  int
	// shared has where values were written that may occur again.
	shared map[*structpb.Value]span
	// keys is a stack: the sorted keys of each map that is being written, outermost first.
	keys []string
}

// writers are the unused writers. Allocating their buffers would be most of the cost.
var writers = sync.Pool{New: func() any {
	return &writer{buf: make([]byte, minBuffer), shared: map[*structpb.Value]span{}}
}}

const (
	// minBuffer is the initial size of a buffer, in bytes. Most responses fit.
	minBuffer = 32 << 10
	// maxBuffer is the largest buffer that is kept for reuse, in bytes. Larger responses are
	// rare.
	maxBuffer = 1 << 20
)

func newWriter() *writer {
	w, _ := writers.Get().(*writer)
	w.at = len(w.buf)
	return w
}

func (w *writer) release() {
	// Otherwise an unused writer would keep parts of the response alive.
	clear(w.shared)
	clear(w.keys[:cap(w.keys)])
	w.keys = w.keys[:0]
	if len(w.buf) <= maxBuffer {
		writers.Put(w)
	}
}

// response writes a response. It writes maps in the order of their keys, so equal responses
// have equal bytes. It writes the desired state and the requirements, which are nearly all of
// a response, and leaves the rest to the protobuf module.
func (w *writer) response(rsp *fnv1.RunFunctionResponse) error {
	rest, err := proto.MarshalOptions{Deterministic: true}.Marshal(&fnv1.RunFunctionResponse{
		Meta:       rsp.GetMeta(),
		Results:    rsp.GetResults(),
		Context:    rsp.GetContext(),
		Conditions: rsp.GetConditions(),
		Output:     rsp.GetOutput(),
	})
	if err != nil {
		return err
	}
	if rsp.GetRequirements() != nil {
		before := w.len()
		if err := w.requirements(rsp.GetRequirements()); err != nil {
			return err
		}
		w.close(5, before)
	}
	if rsp.GetDesired() != nil {
		before := w.len()
		if err := w.state(rsp.GetDesired()); err != nil {
			return err
		}
		w.close(2, before)
	}
	w.bytes(rest)
	return nil
}

// A span is a part of the buffer. Both are distances from its end, since the buffer grows at
// its front.
type span struct{ begin, end int }

func (w *writer) len() int { return len(w.buf) - w.at }

// reserve makes space for n bytes before what was written.
func (w *writer) reserve(n int) {
	if w.at < n {
		w.grow(n)
	}
}

func (w *writer) grow(n int) {
	grown := make([]byte, 2*len(w.buf)+n)
	at := len(grown) - w.len()
	copy(grown[at:], w.buf[w.at:])
	w.buf, w.at = grown, at
}

func (w *writer) bytes(b []byte) {
	w.reserve(len(b))
	w.at -= len(b)
	copy(w.buf[w.at:], b)
}

func (w *writer) varint(v uint64) {
	w.reserve(binary.MaxVarintLen64)
	if v < 0x80 { // Nearly all values need one byte.
		w.at--
		w.buf[w.at] = byte(v)
		return
	}
	w.at -= protowire.SizeVarint(v)
	protowire.AppendVarint(w.buf[w.at:w.at], v)
}

func (w *writer) tag(num protowire.Number, t protowire.Type) { w.varint(protowire.EncodeTag(num, t)) }

func (w *writer) string(num protowire.Number, s string) error {
	if !utf8.ValidString(s) {
		return fmt.Errorf("the string %q is not UTF-8", s)
	}
	w.reserve(len(s))
	w.at -= len(s)
	copy(w.buf[w.at:], s)
	w.varint(uint64(len(s)))
	w.tag(num, protowire.BytesType)
	return nil
}

// close writes the length and the tag of a message before its content. The writer had written
// before bytes when the content began.
func (w *writer) close(num protowire.Number, before int) {
	w.varint(uint64(w.len() - before)) //nolint:gosec // A length.
	w.tag(num, protowire.BytesType)
}

func (w *writer) state(s *fnv1.State) error {
	w.bytes(s.ProtoReflect().GetUnknown())
	for key := range descending(w, s.GetResources()) {
		before := w.len()
		if err := w.resource(s.GetResources()[key]); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		if err := w.named(2, key, before); err != nil {
			return err
		}
	}
	if s.GetComposite() == nil {
		return nil
	}
	before := w.len()
	if err := w.resource(s.GetComposite()); err != nil {
		return err
	}
	w.close(1, before)
	return nil
}

func (w *writer) resource(r *fnv1.Resource) error {
	if r == nil {
		return nil
	}
	if len(r.GetConnectionDetails()) > 0 || len(r.ProtoReflect().GetUnknown()) > 0 {
		return w.message(r)
	}
	if r.GetReady() != 0 {
		w.varint(uint64(r.GetReady())) //nolint:gosec // An enum.
		w.tag(3, protowire.VarintType)
	}
	if r.GetResource() == nil {
		return nil
	}
	before := w.len()
	if err := w.object(r.GetResource()); err != nil {
		return err
	}
	w.close(1, before)
	return nil
}

func (w *writer) object(s *structpb.Struct) error {
	for key := range descending(w, s.GetFields()) {
		before := w.len()
		if err := w.field(key, s.GetFields()[key]); err != nil {
			return err
		}
		if err := w.named(1, key, before); err != nil {
			return err
		}
	}
	return nil
}

// field writes the value of a field. Objects share their pod specs and manifests, so it
// remembers where these were written, and copies the bytes the next time.
func (w *writer) field(key string, v *structpb.Value) error {
	if key != "spec" && key != "manifest" {
		return w.value(v)
	}
	if again, ok := w.shared[v]; ok {
		w.bytes(w.buf[len(w.buf)-again.begin : len(w.buf)-again.end])
		return nil
	}
	end := w.len()
	if err := w.value(v); err != nil {
		return err
	}
	w.shared[v] = span{begin: w.len(), end: end}
	return nil
}

func (w *writer) value(v *structpb.Value) error {
	switch k := v.GetKind().(type) {
	case *structpb.Value_NullValue:
		w.varint(uint64(k.NullValue)) //nolint:gosec // An enum.
		w.tag(1, protowire.VarintType)
	case *structpb.Value_NumberValue:
		w.reserve(8)
		w.at -= 8
		protowire.AppendFixed64(w.buf[w.at:w.at], math.Float64bits(k.NumberValue))
		w.tag(2, protowire.Fixed64Type)
	case *structpb.Value_StringValue:
		return w.string(3, k.StringValue)
	case *structpb.Value_BoolValue:
		n := uint64(0)
		if k.BoolValue {
			n = 1
		}
		w.varint(n)
		w.tag(4, protowire.VarintType)
	case *structpb.Value_StructValue:
		before := w.len()
		if err := w.object(k.StructValue); err != nil {
			return err
		}
		w.close(5, before)
	case *structpb.Value_ListValue:
		before := w.len()
		if err := w.list(k.ListValue); err != nil {
			return err
		}
		w.close(6, before)
	}
	return nil
}

func (w *writer) list(l *structpb.ListValue) error {
	for _, e := range slices.Backward(l.GetValues()) {
		before := w.len()
		if err := w.value(e); err != nil {
			return err
		}
		w.close(1, before)
	}
	return nil
}

// descending yields the keys of a map in descending order, since a writer starts at the end.
func descending[V any](w *writer, m map[string]V) iter.Seq[string] {
	return func(yield func(string) bool) {
		first := len(w.keys)
		for k := range m {
			w.keys = append(w.keys, k)
		}
		slices.Sort(w.keys[first:])
		for i := len(w.keys) - 1; i >= first && yield(w.keys[i]); i-- {
		}
		w.keys = w.keys[:first]
	}
}
