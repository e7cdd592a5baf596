package kube

import (
	"fmt"
	"reflect"

	"google.golang.org/protobuf/types/known/structpb"
)

// constants are encoded parts of objects that are the same in all of them. They
// are filled before main starts, and only read from then on.
var constants = map[constant]*structpb.Value{}

// A constant is told by what it is and where. A list of other length, or the
// first field of a struct, may be at the same place.
type constant struct {
	at     uintptr
	of     reflect.Type
	length int
}

// kept keeps the constants, so that nothing else ever is where they are.
var kept []any

// Constant returns part, which is encoded now instead of each time that the
// encoder meets it. It is for variables of packages alone: part is never freed,
// and nobody may change it.
func Constant[T any](part *T) *T {
	keep(part)
	return part
}

// ConstantList is Constant for a list that is not empty.
func ConstantList[T any](part ...T) []T {
	keep(part)
	return part
}

func keep(part any) {
	v, err := EncodeValue(part)
	if err != nil {
		panic(fmt.Sprintf("%T is no constant: %v", part, err)) // At start, in every test.
	}
	constants[identify(reflect.ValueOf(part))] = v
	kept = append(kept, part)
}

func identify(part reflect.Value) constant {
	c := constant{at: part.Pointer(), of: part.Type()}
	if part.Kind() == reflect.Slice {
		c.length = part.Len()
	}
	return c
}

// known returns what is encoded already.
func known(part reflect.Value) (*structpb.Value, bool) {
	v, ok := constants[identify(part)]
	return v, ok
}
