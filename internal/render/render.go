/*
Package render turns a plan into the objects that Crossplane applies. Each
package below it knows one family of external APIs; this one puts their objects
together, adds what the platform team wants on all of them, and hands them to the
place they belong to.
*/
package render

import (
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/placement"
	"github.com/fusioninfer/function-inferenceservice/internal/plan"
	"github.com/fusioninfer/function-inferenceservice/internal/render/endpoint"
	"github.com/fusioninfer/function-inferenceservice/internal/render/fleet"
	"github.com/fusioninfer/function-inferenceservice/internal/render/gang"
	"github.com/fusioninfer/function-inferenceservice/internal/render/network"
	"github.com/fusioninfer/function-inferenceservice/internal/render/router"
	"github.com/fusioninfer/function-inferenceservice/internal/render/workload"
)

// Render returns all objects of a plan.
func Render(p *plan.Plan) ([]kube.Object, error) {
	workloads, err := workload.New(p)
	if err != nil {
		return nil, err
	}
	all, err := fleet.Render(p)
	if err != nil {
		return nil, err
	}
	for i := range all {
		all[i].Resource = Decorate(all[i].Resource, p.Labels, p.Annotations)
	}
	for i := range p.Deployments {
		d := &p.Deployments[i]
		if d.Idle {
			continue
		}
		objects, err := deployment(p, d, workloads)
		if err != nil {
			return nil, err
		}
		for _, o := range objects {
			o.Resource = Decorate(o.Resource, p.Labels, p.Annotations)
			if d.Target.Remote() {
				if o, err = placement.Wrap(o, p.Service, d.Target, d.Abandoned); err != nil {
					return nil, err
				}
				o.Resource = Decorate(o.Resource, p.Labels, p.Annotations)
			}
			all = append(all, o)
		}
	}
	return all, nil
}

// deployment renders the service in one place, as objects of that place.
func deployment(p *plan.Plan, d *plan.Deployment, workloads *workload.Renderer) ([]kube.Object, error) {
	var all []kube.Object
	if p.Router != nil {
		objects, err := router.Render(p, d)
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	if p.Network != nil {
		o, err := network.Render(p, d)
		if err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	if d.Endpoint != nil {
		o, err := endpoint.Render(d)
		if err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	for i := range d.Groups {
		g := &d.Groups[i]
		if g.PodGroup != nil {
			o, err := gang.Render(d, g, p.Service.Grouped)
			if err != nil {
				return nil, err
			}
			all = append(all, o)
		}
		for j := range g.Replicas {
			o, err := workloads.LeaderWorkerSet(d, &g.Replicas[j])
			if err != nil {
				return nil, err
			}
			all = append(all, o)
		}
	}
	return all, nil
}

// Decorate adds the platform's labels and annotations. The function's own win.
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

// Without returns the objects that are not held.
func Without(objects []kube.Object, held []plan.Held) []kube.Object {
	if len(held) == 0 {
		return objects
	}
	keys := make(map[string]bool, len(held))
	for _, h := range held {
		keys[h.Key] = true
	}
	kept := make([]kube.Object, 0, len(objects))
	for _, o := range objects {
		if !keys[o.Key] {
			kept = append(kept, o)
		}
	}
	return kept
}
