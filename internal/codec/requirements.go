package codec

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
)

// requirements writes the requirements of a response: a selector or two for each object that
// is new.
func (w *writer) requirements(r *fnv1.Requirements) error {
	if len(r.GetExtraResources())+len(r.GetSchemas()) > 0 || len(r.ProtoReflect().GetUnknown()) > 0 { //nolint:staticcheck // Earlier functions in the pipeline may use the deprecated field.
		return w.message(r)
	}
	for name := range descending(w, r.GetResources()) {
		before := w.len()
		if err := w.selector(r.GetResources()[name]); err != nil {
			return err
		}
		if err := w.named(2, name, before); err != nil {
			return err
		}
	}
	return nil
}

// named writes the key of a map's entry before its value, and closes the entry.
func (w *writer) named(num protowire.Number, name string, before int) error {
	w.close(2, before)
	if err := w.string(1, name); err != nil {
		return err
	}
	w.close(num, before)
	return nil
}

// selector writes a selector by name. It leaves other selectors to the protobuf module.
func (w *writer) selector(s *fnv1.ResourceSelector) error {
	if _, byName := s.GetMatch().(*fnv1.ResourceSelector_MatchName); !byName || len(s.ProtoReflect().GetUnknown()) > 0 {
		return w.message(s)
	}
	if s.Namespace != nil {
		if err := w.string(5, s.GetNamespace()); err != nil {
			return err
		}
	}
	if err := w.string(3, s.GetMatchName()); err != nil {
		return err
	}
	for _, f := range []struct {
		num  protowire.Number
		text string
	}{{2, s.GetKind()}, {1, s.GetApiVersion()}} {
		if f.text == "" {
			continue
		}
		if err := w.string(f.num, f.text); err != nil {
			return err
		}
	}
	return nil
}

// message writes a message with the protobuf module.
func (w *writer) message(m proto.Message) error {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	w.bytes(b)
	return err
}
