package kube

import (
	"slices"
	"strconv"

	"google.golang.org/protobuf/types/known/structpb"
)

// The documents of a request are shared and must not change. So whoever edits one copies the objects on the way to
// the edit (Copy, CopyChild), and nothing else. The functions below change only the object that they are given.

// CopyChild replaces the object in a field by a shallow copy, and returns the copy, which the caller may change. It
// adds an empty object if there is none.
func CopyChild(of *structpb.Struct, field string) *structpb.Struct {
	c := Copy(of.GetFields()[field].GetStructValue())
	of.Fields[field] = structpb.NewStructValue(c)
	return c
}

// Elements returns the list in a field, or nil. It is shared.
func Elements(of *structpb.Struct, field string) []*structpb.Value {
	return of.GetFields()[field].GetListValue().GetValues()
}

// SetList sets the list in a field. It removes the field if the list is empty.
func SetList(of *structpb.Struct, field string, list []*structpb.Value) {
	if len(list) == 0 {
		delete(of.GetFields(), field)
		return
	}
	of.Fields[field] = structpb.NewListValue(&structpb.ListValue{Values: list})
}

// SetTexts sets a list of texts in a field. It removes the field if there are none.
func SetTexts(of *structpb.Struct, field string, texts []string) {
	list := make([]*structpb.Value, len(texts))
	for i, t := range texts {
		list[i] = structpb.NewStringValue(t)
	}
	SetList(of, field, list)
}

// Append appends an element to the list in a field. It fails if the element cannot be encoded.
func Append(of *structpb.Struct, field string, element any) error {
	v, err := EncodeValue(element)
	if err != nil {
		return err
	}
	SetList(of, field, append(slices.Clip(Elements(of, field)), v))
	return nil
}

// FreeName returns a name that none of the elements of a list has: the one that is wanted, or with a
// number behind it.
func FreeName(want string, elements []*structpb.Value) string {
	taken := make(map[string]bool, len(elements))
	for _, e := range elements {
		taken[e.GetStructValue().GetFields()["name"].GetStringValue()] = true
	}
	name := want
	for i := 2; taken[name]; i++ {
		name = want + "-" + strconv.Itoa(i)
	}
	return name
}
