package workload

import (
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/fusioninfer/function-inferenceservice/internal/capacity"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

// A pinKey identifies a template with the node selector that is added to it.
type pinKey struct {
	worker       *template
	nodeSelector string
}

// pinned returns what replicas have in common that are pinned to a pool.
func (r *Renderer) pinned(s roleParts, p *capacity.Pin) roleParts {
	k := pinKey{s.worker, p.Text()}
	if known, ok := r.pins[k]; ok {
		return known
	}
	s.worker = s.worker.pinned(p)
	if s.leader != nil {
		s.leader = s.leader.pinned(p)
	}
	r.pins[k] = s
	return s
}

// pinned returns a template with the labels of the pool's nodes in its node selector. A node has to
// match all of a pod's node selector and its node affinity, so this can only narrow what the user
// wrote. Terms of a required node affinity are alternatives to each other, and each of them would
// need the labels. No key has two values: the user's labels are among those of the pool, or the
// replica would not be there.
func (t *template) pinned(p *capacity.Pin) *template {
	spec := kube.Copy(t.spec.GetStructValue())
	selector := kube.CopyChild(spec, "nodeSelector").GetFields()
	for k, v := range p.NodeSelector {
		selector[k] = structpb.NewStringValue(v)
	}
	return &template{spec: structpb.NewStructValue(spec), metadata: t.metadata}
}

// notePin notes the pin of a replica's pods in the metadata of its LeaderWorkerSet, from which it is read. It
// is not in the metadata of the pods, which say it by their node selector. A former template that is put
// back has to have the pin again, or it would restart pods that were held meanwhile.
func notePin(metadata *structpb.Struct, replica *plan.Replica) {
	p := replica.Pin
	if replica.Held {
		p = replica.FormerPin
	}
	if p == nil {
		return
	}
	kube.CopyChild(metadata, "labels").Fields[naming.LabelPool] = structpb.NewStringValue(p.Pool)
	kube.CopyChild(metadata, "annotations").Fields[naming.AnnotationPoolNodeSelector] = structpb.NewStringValue(p.Text())
}
