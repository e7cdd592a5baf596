package observe

import (
	"testing"

	"github.com/fusioninfer/function-inferenceservice/internal/incoming"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/test/fixture"
)

// TestQueueOfVolcano shows that the queue that Volcano gives a PodGroup without one is not taken for the service's.
func TestQueueOfVolcano(t *testing.T) {
	o := fixture.YAML(t, `
apiVersion: kubernetes.m.crossplane.io/v1alpha1
kind: Object
spec:
  providerConfigRef: {name: east}
  forProvider: {manifest: {apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, spec: {minMember: 2}}}
status:
  atProvider: {manifest: {apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, spec: {minMember: 2, queue: by-namespace}}}
  conditions: [{type: Synced, status: "True"}]
`)
	s := &scheduling.Snapshot{States: map[string]*scheduling.ClusterState{}}
	addObserved(s, key.Key{Cluster: "east", Kind: key.PodGroup}, incoming.ObjectOf(o), false)
	if got := s.States["east"].GangQueue; got != "" {
		t.Errorf("nobody has named a queue, and %q is read", got)
	}
}
