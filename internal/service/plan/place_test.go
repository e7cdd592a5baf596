package plan

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/naming"
	"github.com/fusioninfer/function-inferenceservice/internal/rollout"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
)

// place plans a service of which no rollout is on its way.
func place(s naming.Identity, spec *v1alpha1.InferenceServiceSpec, in *inputv1alpha1.Input, snapshot scheduling.Snapshot, errs field.ErrorList) (*Plan, field.ErrorList) {
	p, errs := Build(s, spec, in, snapshot, errs)
	if len(errs) > 0 {
		return nil, errs
	}
	running := &RunningView{
		Replica:  func(key.Key) rollout.State { return rollout.State{} },
		PoolType: func(key.Key) (v1alpha1.ComponentType, bool) { return "", false },
	}
	if errs := p.Place(running); len(errs) > 0 {
		return nil, errs
	}
	return p, nil
}
