package kube

import (
	"slices"
	"strconv"
	"sync"

	"google.golang.org/protobuf/types/known/structpb"
)

// Canonical returns a text of Structs for hashes: it is equal for equal Structs and only for those. Its format must
// stay the same in all releases, because hashes of it are in the labels of live objects.
func Canonical(of ...*structpb.Struct) string {
	w := canonicalWriters.Get().(*canonicalWriter) //nolint:forcetypeassert // The pool has nothing else.
	defer w.release()
	for _, s := range of {
		w.object(s.GetFields())
	}
	return string(w.out)
}

func (w *canonicalWriter) release() {
	// The names are parts of the request's text, and would keep all of it alive.
	clear(w.names[:cap(w.names)])
	w.names, w.out = w.names[:0], w.out[:0]
	canonicalWriters.Put(w)
}

var canonicalWriters = sync.Pool{New: func() any { return new(canonicalWriter) }}

type canonicalWriter struct {
	out []byte
	// names is a stack: the sorted field names of each object that is being written, outermost
	// first.
	names []string
}

func (w *canonicalWriter) value(v *structpb.Value) {
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

// string writes a text after its length, so no text can be mistaken for what follows it.
func (w *canonicalWriter) string(s string) {
	w.out = strconv.AppendInt(w.out, int64(len(s)), 10)
	w.out = append(append(w.out, '"'), s...)
}

func (w *canonicalWriter) object(fields map[string]*structpb.Value) {
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
