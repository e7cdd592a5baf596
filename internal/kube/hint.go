package kube

import (
	"fmt"
	"reflect"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// A shorthand is a type whose objects users may write as a text.
type shorthand interface {
	// LongFor returns the object that a text stands for, as YAML.
	LongFor(written string) string
}

// like returns an example for an error where a user wrote a text in place of an object of type t: the object that the
// text may stand for, if t is a shorthand or has a field name. Otherwise it returns nothing.
func like(v *structpb.Value, t reflect.Type) string {
	written := v.GetStringValue()
	if written == "" || written != text.Value(written) { // A text that errors cut is no valid value.
		return ""
	}
	if known, ok := reflect.Zero(t).Interface().(shorthand); ok {
		return " such as " + known.LongFor(written)
	}
	if _, named := infoOf(t).byName["name"]; named {
		return fmt.Sprintf(" such as {name: %s}", written)
	}
	return ""
}
