package kube

import (
	"fmt"
	"reflect"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// like shows the object that a text may stand for, of a type that refers to something by its name.
func like(v *structpb.Value, t reflect.Type) string {
	s, isText := v.GetKind().(*structpb.Value_StringValue)
	if _, named := infoOf(t).byName["name"]; !isText || !named || s.StringValue == "" {
		return ""
	}
	return fmt.Sprintf(" such as {name: %s}", text.Value(s.StringValue))
}
