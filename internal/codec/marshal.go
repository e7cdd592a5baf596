package codec

import (
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
)

// Marshal writes an answer. Maps are written in the order of their keys, so the
// same answer gives the same bytes.
func Marshal(rsp *fnv1.RunFunctionResponse) ([]byte, error) {
	// The desired state is nearly all of an answer. The rest is left to protobuf.
	rest := &fnv1.RunFunctionResponse{
		Meta:         rsp.GetMeta(),
		Results:      rsp.GetResults(),
		Context:      rsp.GetContext(),
		Requirements: rsp.GetRequirements(),
		Conditions:   rsp.GetConditions(),
		Output:       rsp.GetOutput(),
	}
	head, err := proto.MarshalOptions{Deterministic: true}.Marshal(rest)
	if err != nil || rsp.GetDesired() == nil {
		return head, err
	}
	w := &writer{shared: map[*structpb.Value][]byte{}}
	if err := w.message(2, func() error { return w.state(rsp.GetDesired()) }); err != nil {
		return nil, err
	}
	w.bytes(head)
	return w.buf[w.at:], nil
}

// A writer writes from the end to the front: by the time that it comes to the
// length of a message, the message is there.
type writer struct {
	buf []byte
	at  int
	// shared has the bytes of values that may come again.
	shared map[*structpb.Value][]byte
}

func (w *writer) len() int { return len(w.buf) - w.at }

func (w *writer) room(n int) {
	if w.at >= n {
		return
	}
	grown := make([]byte, max(2*len(w.buf)+n, 16<<10))
	at := len(grown) - w.len()
	copy(grown[at:], w.buf[w.at:])
	w.buf, w.at = grown, at
}

func (w *writer) bytes(b []byte) {
	w.room(len(b))
	w.at -= len(b)
	copy(w.buf[w.at:], b)
}

func (w *writer) varint(v uint64) {
	n := protowire.SizeVarint(v)
	w.room(n)
	w.at -= n
	protowire.AppendVarint(w.buf[w.at:w.at], v)
}

func (w *writer) tag(num protowire.Number, t protowire.Type) { w.varint(protowire.EncodeTag(num, t)) }

func (w *writer) string(num protowire.Number, s string) error {
	if !utf8.ValidString(s) {
		return fmt.Errorf("the text %q is not UTF-8", s)
	}
	w.room(len(s))
	w.at -= len(s)
	copy(w.buf[w.at:], s)
	w.varint(uint64(len(s)))
	w.tag(num, protowire.BytesType)
	return nil
}

// message writes what content writes as a length-delimited field.
func (w *writer) message(num protowire.Number, content func() error) error {
	before := w.len()
	if err := content(); err != nil {
		return err
	}
	w.close(num, before)
	return nil
}

// close puts length and tag before what was written since.
func (w *writer) close(num protowire.Number, before int) {
	w.varint(uint64(w.len() - before)) //nolint:gosec // A length.
	w.tag(num, protowire.BytesType)
}

func (w *writer) state(s *fnv1.State) error {
	w.bytes(s.ProtoReflect().GetUnknown())
	for _, key := range descending(s.GetResources()) {
		before := w.len()
		if err := w.message(2, func() error { return w.resource(s.GetResources()[key]) }); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		if err := w.string(1, key); err != nil {
			return err
		}
		w.close(2, before)
	}
	if s.GetComposite() == nil {
		return nil
	}
	return w.message(1, func() error { return w.resource(s.GetComposite()) })
}

func (w *writer) resource(r *fnv1.Resource) error {
	if r == nil {
		return nil
	}
	if len(r.GetConnectionDetails()) > 0 || len(r.ProtoReflect().GetUnknown()) > 0 {
		b, err := proto.MarshalOptions{Deterministic: true}.Marshal(r)
		w.bytes(b)
		return err
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
	for _, key := range descending(s.GetFields()) {
		before := w.len()
		if err := w.field(key, s.GetFields()[key]); err != nil {
			return err
		}
		w.close(2, before)
		if err := w.string(1, key); err != nil {
			return err
		}
		w.close(1, before)
	}
	return nil
}

// field writes a Value. Pod specs and manifests are what objects have in common,
// so they are remembered.
func (w *writer) field(key string, v *structpb.Value) error {
	if key != "spec" && key != "manifest" {
		return w.value(v)
	}
	if b, ok := w.shared[v]; ok {
		w.bytes(b)
		return nil
	}
	before := w.len()
	if err := w.value(v); err != nil {
		return err
	}
	w.shared[v] = slices.Clone(w.buf[w.at : len(w.buf)-before])
	return nil
}

func (w *writer) value(v *structpb.Value) error {
	switch k := v.GetKind().(type) {
	case *structpb.Value_NullValue:
		w.varint(uint64(k.NullValue)) //nolint:gosec // An enum.
		w.tag(1, protowire.VarintType)
	case *structpb.Value_NumberValue:
		w.room(8)
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

// descending are the keys of a map, last first, since writing starts at the end.
func descending[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	slices.Reverse(keys)
	return keys
}
