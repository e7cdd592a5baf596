package plan

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

// TestCheckListsEnds makes sure that problems are collected up to a number, always the
// same ones.
func TestCheckListsEnds(t *testing.T) {
	elements := &structpb.ListValue{}
	for range 60_000 {
		elements.Values = append(elements.Values, structpb.NewNullValue())
	}
	doc := structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{
		"a": structpb.NewListValue(elements), "b": structpb.NewListValue(elements), "c": structpb.NewListValue(elements),
	}})
	errs := checkLists(doc, field.NewPath("t"))
	if len(errs) != kube.MaxProblems {
		t.Errorf("%d problems were collected, want %d", len(errs), kube.MaxProblems)
	}
	for _, e := range errs {
		if !strings.HasPrefix(e.Field, "t.a[") {
			t.Fatalf("%s is not among the first problems", e.Field)
		}
	}
}

func TestFreePort(t *testing.T) {
	spec := &corev1.PodSpec{Containers: []corev1.Container{{}}}
	for n := int32(movedPort); n < 65_000; n++ {
		spec.Containers[0].Ports = append(spec.Containers[0].Ports, corev1.ContainerPort{ContainerPort: n})
	}
	if got := freePort(spec, 65_000); got != 65_001 {
		t.Errorf("got port %d, want 65001", got)
	}
	if got := freePort(&corev1.PodSpec{}, 8000); got != movedPort {
		t.Errorf("got port %d, want %d", got, movedPort)
	}
}
