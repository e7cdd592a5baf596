package kube

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"
)

// Lookup returns the value at a path of fields, or nil if there is none.
func Lookup(s *structpb.Struct, path ...string) *structpb.Value {
	if len(path) == 0 {
		return structpb.NewStructValue(s)
	}
	v := s.GetFields()[path[0]]
	for _, p := range path[1:] {
		v = v.GetStructValue().GetFields()[p]
	}
	return v
}

// Find returns the value at a path below a value, such as [0].template, or the last one on the way to it with
// what is left of the path.
func Find(v *structpb.Value, path string) (found *structpb.Value, rest string) {
	for path != "" {
		next, after := descend(v, path)
		if next == nil {
			return v, path
		}
		v, path = next, after
	}
	return v, ""
}

// descend follows the first step of a path. Of several fields that it may be, it is the longest: a key
// of a map may have dots.
func descend(v *structpb.Value, path string) (next *structpb.Value, rest string) {
	length := 0
	for name, e := range v.GetStructValue().GetFields() {
		for _, s := range []string{"." + name, "[" + name + "]"} {
			after, ok := strings.CutPrefix(path, s)
			if ok && len(s) > length && (after == "" || after[0] == '.' || after[0] == '[') {
				next, rest, length = e, after, len(s)
			}
		}
	}
	i := 0
	if n, err := fmt.Sscanf(path, "[%d]", &i); next == nil && n == 1 && err == nil && i >= 0 && i < len(v.GetListValue().GetValues()) {
		return v.GetListValue().GetValues()[i], path[strings.IndexByte(path, ']')+1:]
	}
	return next, rest
}
