package composite

import (
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

// Decorate adds the platform team's labels and annotations. Those that the function sets stay.
func Decorate(s *structpb.Struct, labels, annotations map[string]string) *structpb.Struct {
	s = addMissing(s, labels, "labels")
	return addMissing(s, annotations, "annotations")
}

func addMissing(s *structpb.Struct, extra map[string]string, name string) *structpb.Struct {
	if len(extra) == 0 {
		return s
	}
	merged := &structpb.Struct{Fields: make(map[string]*structpb.Value, len(extra))}
	for k, v := range extra {
		merged.Fields[k] = structpb.NewStringValue(v)
	}
	for k, v := range kube.Lookup(s, "metadata", name).GetStructValue().GetFields() {
		merged.Fields[k] = v
	}
	return kube.With(s, structpb.NewStructValue(merged), "metadata", name)
}
