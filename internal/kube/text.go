package kube

import (
	"slices"
	"strconv"
	"sync"

	"google.golang.org/protobuf/types/known/structpb"
)

// Text returns a text of Structs that is the same for the same Structs, in all
// releases, and differs for any others. It is for hashes, not for people.
func Text(of ...*structpb.Struct) string {
	w := textWriters.Get().(*textWriter) //nolint:forcetypeassert // Nothing else is in it.
	defer w.release()
	for _, s := range of {
		w.object(s.GetFields())
	}
	return string(w.out)
}

func (w *textWriter) release() {
	// The names are parts of the request, which must not be kept alive.
	clear(w.names[:cap(w.names)])
	w.names, w.out = w.names[:0], w.out[:0]
	textWriters.Put(w)
}

var textWriters = sync.Pool{New: func() any { return new(textWriter) }}

type textWriter struct {
	out []byte
	// names of the objects that are being written, each one's after those of the
	// one around it.
	names []string
}

func (w *textWriter) value(v *structpb.Value) {
	switch t := v.GetKind().(type) {
	case *structpb.Value_StringValue:
		w.string(t.StringValue)
	case *structpb.Value_NumberValue:
		w.out = strconv.AppendFloat(w.out, t.NumberValue, 'g', -1, 64)
	case *structpb.Value_BoolValue:
		w.out = strconv.AppendBool(w.out, t.BoolValue)
	case *structpb.Value_StructValue:
		w.object(t.StructValue.GetFields())
	case *structpb.Value_ListValue:
		w.out = append(w.out, '[')
		for _, e := range t.ListValue.GetValues() {
			w.value(e)
			w.out = append(w.out, ',')
		}
		w.out = append(w.out, ']')
	default:
		w.out = append(w.out, "null"...)
	}
}

// string writes a text after its length, so that nothing in it can be taken for
// what follows.
func (w *textWriter) string(s string) {
	w.out = strconv.AppendInt(w.out, int64(len(s)), 10)
	w.out = append(append(w.out, '"'), s...)
}

func (w *textWriter) object(fields map[string]*structpb.Value) {
	from := len(w.names)
	for name := range fields {
		w.names = append(w.names, name)
	}
	to := len(w.names)
	slices.Sort(w.names[from:to])
	w.out = append(w.out, '{')
	for i := from; i < to; i++ {
		w.string(w.names[i])
		w.value(fields[w.names[i]])
		w.out = append(w.out, ',')
	}
	w.out = append(w.out, '}')
	w.names = w.names[:from]
}
