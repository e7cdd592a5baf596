/*
Package observe judges a plan against reality: which composed resources are
ready, what became of each role, where clients reach the service, and what a user
should know when something is missing.

Every object is judged by its own API, wherever it lives. Judging is pure: the
same request gives the same verdict, so times are only ever copied from what was
observed.
*/
package observe

import (
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/placement"
	"github.com/fusioninfer/function-inferenceservice/internal/plan"
)

// A Reality is what a request shows of the world. It is read where it is asked
// for: observed objects are large, and most of them is of no interest.
type Reality struct {
	plan     *plan.Plan
	observed map[string]*fnv1.Resource
	required map[string]*fnv1.Resources
}

// Look takes what a request shows.
func Look(req *fnv1.RunFunctionRequest, p *plan.Plan) *Reality {
	return &Reality{
		plan:     p,
		observed: req.GetObserved().GetResources(),
		required: req.GetRequiredResources(),
	}
}

// Observed tells whether the composed resource of that key exists.
func (r *Reality) Observed(key string) bool { return r.observed[key].GetResource() != nil }

// Any tells whether anything of the service exists.
func (r *Reality) Any() bool { return len(r.observed) > 0 }

// PodGroup returns what is known of the PodGroup of that key. One in a cluster
// that cannot be read exists, and counts nothing as far as is known.
func (r *Reality) PodGroup(key string) plan.PodGroupView {
	if !r.Observed(key) {
		return plan.PodGroupView{}
	}
	v := plan.PodGroupView{Observed: true}
	remote, state := placement.Unwrap(r.observed[key].GetResource())
	if !state.Readable() {
		return v
	}
	pg := struct {
		Spec struct {
			MinTaskMember  map[string]int32 `json:"minTaskMember"`
			SubGroupPolicy []struct {
				Name         string `json:"name"`
				SubGroupSize int32  `json:"subGroupSize"`
			} `json:"subGroupPolicy"`
		} `json:"spec"`
	}{}
	_ = kube.Decode(remote, nil, &pg) // What cannot be decoded counts nothing.
	v.MinTaskMember = pg.Spec.MinTaskMember
	for _, s := range pg.Spec.SubGroupPolicy {
		if v.SubGroupSizes == nil {
			v.SubGroupSizes = map[string]int32{}
		}
		v.SubGroupSizes[s.Name] = s.SubGroupSize
	}
	return v
}
