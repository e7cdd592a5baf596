package observe

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/structpb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/incoming/incomingtest"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
)

// TestNamespaceBeforeItIsReported proves that the namespace of what exists is known before
// provider-kubernetes reports it. Otherwise the request would tell it, which a tenant may write.
func TestNamespaceBeforeItIsReported(t *testing.T) {
	s := &structpb.Struct{}
	if err := s.UnmarshalJSON([]byte(`{"apiVersion": "kubernetes.m.crossplane.io/v1alpha1", "kind": "Object", "spec": {"providerConfigRef": {"name": "east"}, "forProvider": {"manifest": {"kind": "LeaderWorkerSet", "metadata": {"namespace": "team"}}}}}`)); err != nil {
		t.Fatal(err)
	}
	inFleet := &v1alpha1.InferenceServiceSpec{Placement: &v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}}}
	w := Snapshot(incomingtest.Request(t, &fnv1.RunFunctionRequest{Observed: &fnv1.State{Resources: map[string]*fnv1.Resource{
		key.New("east", key.LeaderWorkerSet, "worker", "0").String(): {Resource: s},
	}}}), inFleet, time.Time{})
	if got := w.States["east"].Namespace; got != "team" {
		t.Errorf("the namespace is %q", got)
	}
}
