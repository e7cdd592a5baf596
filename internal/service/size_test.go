package service

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

func FuzzBound(f *testing.F) {
	f.Add([]byte(`{"a":[1,true,null,"x",{"b":{}}],"":[[[[]]]]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		v := &structpb.Value{}
		if v.UnmarshalJSON(in) != nil {
			return
		}
		if size := proto.Size(v); bound(v) < size {
			t.Errorf("%s has %d bytes, and the bound is %d", in, size, bound(v))
		}
	})
}
