package simulation

import (
	"maps"
	"slices"
)

// An xrKey is a composite resource.
type xrKey struct {
	kind kindOf
	name name
}

func (k xrKey) String() string { return k.kind.kind + " " + k.name.String() }

// A reference is what a composite resource depends on: one object by name, or those of a kind with some labels.
type reference struct {
	kind      kindOf
	namespace string
	name      string
	labels    map[string]string
}

// A requirement is a reference that the function made, and its name.
type requirement struct {
	name string
	of   reference
}

// A tracker knows which composite resources depend on an object, as Crossplane's dependency.InMemoryTracker does. A reference by
// name is for one namespace. A reference by labels without a namespace is for all.
type tracker struct {
	refs     map[xrKey][]reference
	required map[xrKey][]requirement
	byName   map[kindOf]map[name]map[xrKey]bool
	byLabel  map[kindOf]map[xrKey][]reference
}

func newTracker() *tracker {
	return &tracker{
		refs: map[xrKey][]reference{}, required: map[xrKey][]requirement{},
		byName: map[kindOf]map[name]map[xrKey]bool{}, byLabel: map[kindOf]map[xrKey][]reference{},
	}
}

// track replaces what a composite resource depends on.
func (t *tracker) track(xr xrKey, composed []reference, required []requirement) {
	t.forget(xr)
	all := slices.Clone(composed)
	for _, r := range required {
		all = append(all, r.of)
	}
	for _, r := range all {
		if r.name == "" {
			if t.byLabel[r.kind] == nil {
				t.byLabel[r.kind] = map[xrKey][]reference{}
			}
			t.byLabel[r.kind][xr] = append(t.byLabel[r.kind][xr], r)
			continue
		}
		n := name{r.namespace, r.name}
		if t.byName[r.kind] == nil {
			t.byName[r.kind] = map[name]map[xrKey]bool{}
		}
		if t.byName[r.kind][n] == nil {
			t.byName[r.kind][n] = map[xrKey]bool{}
		}
		t.byName[r.kind][n][xr] = true
	}
	t.refs[xr], t.required[xr] = all, required
}

func (t *tracker) forget(xr xrKey) {
	for _, r := range t.refs[xr] {
		if r.name == "" {
			delete(t.byLabel[r.kind], xr)
			continue
		}
		n := name{r.namespace, r.name}
		delete(t.byName[r.kind][n], xr)
		if len(t.byName[r.kind][n]) == 0 {
			delete(t.byName[r.kind], n)
		}
	}
	delete(t.refs, xr)
	delete(t.required, xr)
}

// dependants returns the composite resources that depend on an object.
func (t *tracker) dependants(o *stored) map[xrKey]bool {
	all := maps.Clone(t.byName[o.kind][o.name])
	for xr, refs := range t.byLabel[o.kind] {
		if slices.ContainsFunc(refs, func(r reference) bool {
			return (r.namespace == "" || r.namespace == o.name.namespace) && o.has(r.labels)
		}) {
			if all == nil {
				all = map[xrKey]bool{}
			}
			all[xr] = true
		}
	}
	return all
}

// has tells whether an object has labels.
func (o *stored) has(labels map[string]string) bool {
	for k, v := range labels {
		if got, ok := o.labels[k]; !ok || got != v {
			return false
		}
	}
	return true
}
