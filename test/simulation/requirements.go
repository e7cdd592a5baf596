package simulation

import (
	"errors"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
)

// runFunction calls the function until its requirements are stable. The first call has what was required in the last reconcile.
func (r *reconcile) runFunction() error {
	req := &fnv1.RunFunctionRequest{
		Meta:              &fnv1.RequestMeta{Tag: "tag"},
		Input:             r.w.input(r.key.kind),
		Observed:          &fnv1.State{Composite: r.xr.resource(), Resources: map[string]*fnv1.Resource{}},
		Desired:           &fnv1.State{},
		Context:           &structpb.Struct{},
		RequiredResources: map[string]*fnv1.Resources{},
	}
	for key, o := range r.observed {
		req.Observed.Resources[key] = o.resource()
	}
	seeded := map[string][]*stored{}
	for _, q := range r.tracker.required[r.key] {
		seeded[q.name] = r.fetch(q.of)
		req.RequiredResources[q.name] = resources(seeded[q.name])
	}
	sent := seeded
	var before *fnv1.Requirements
	for i := range maxIterations + 1 {
		rsp, err := r.w.run(r.key, req)
		if err != nil {
			return err
		}
		r.rsp = rsp
		if isFatal(rsp) || proto.Equal(before, rsp.GetRequirements()) {
			return nil
		}
		before = rsp.GetRequirements()
		r.required = nil
		next := map[string][]*stored{}
		for n, objects := range seeded {
			next[n] = objects
		}
		for n, s := range before.GetResources() {
			ref := referenceOf(s)
			r.required = append(r.required, requirement{n, ref})
			next[n] = r.fetch(ref)
		}
		if i == 0 && same(sent, next) {
			return nil
		}
		sent, req.RequiredResources = next, map[string]*fnv1.Resources{}
		for n, objects := range next {
			req.RequiredResources[n] = resources(objects)
		}
	}
	return errors.New("requirements did not stabilize")
}

func isFatal(rsp *fnv1.RunFunctionResponse) bool {
	return slices.ContainsFunc(rsp.GetResults(), func(r *fnv1.Result) bool { return r.GetSeverity() == fnv1.Severity_SEVERITY_FATAL })
}

func same(a, b map[string][]*stored) bool {
	if len(a) != len(b) {
		return false
	}
	for n, objects := range a {
		other, ok := b[n]
		if !ok || !slices.Equal(objects, other) {
			return false
		}
	}
	return true
}

// resources returns what a requirement found. One that found nothing has no value, but an entry.
func resources(found []*stored) *fnv1.Resources {
	all := &fnv1.Resources{}
	for _, o := range found {
		all.Items = append(all.Items, o.resource())
	}
	return all
}

func referenceOf(s *fnv1.ResourceSelector) reference {
	return reference{kindOf{s.GetApiVersion(), s.GetKind()}, s.GetNamespace(), s.GetMatchName(), s.GetMatchLabels().GetLabels()}
}

// fetch returns what a reference finds in the cache.
func (c *crossplane) fetch(ref reference) []*stored {
	if ref.name != "" {
		if o := c.cache.get(ref.kind, name{ref.namespace, ref.name}); o != nil {
			return []*stored{o}
		}
		return nil
	}
	var all []*stored
	for _, o := range c.cache.view(ref.kind).objects {
		if (ref.namespace == "" || o.name.namespace == ref.namespace) && o.has(ref.labels) {
			all = append(all, o)
		}
	}
	slices.SortFunc(all, func(a, b *stored) int { return compareNames(a.name, b.name) })
	return all
}
