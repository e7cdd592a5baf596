package simulation

import (
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/structpb"
)

var (
	objectKind     = kindOf{"kubernetes.m.crossplane.io/v1alpha1", "Object"}
	collectionKind = kindOf{"kubernetes.m.crossplane.io/v1alpha1", "ObservedObjectCollection"}
)

const (
	providerFinalizer = "finalizer.managedresource.crossplane.io"
	memberLabel       = "kubernetes.crossplane.io/owned-by-collection"
)

// A provider is a model of provider-kubernetes with watches. It reads Objects from a cache of its own.
type provider struct {
	w     *World
	cache *cache
	// dirty are the Objects and collections to look at, in the order in which they were noted.
	dirty []task
	noted map[task]bool
}

// A task is an object that a controller has to look at.
type task struct {
	kind kindOf
	name name
}

func newProvider(w *World) *provider {
	return &provider{w: w, cache: newCache(w.server), noted: map[task]bool{}}
}

func (p *provider) note(k kindOf, n name) {
	if t := (task{k, n}); !p.noted[t] {
		p.noted[t] = true
		p.dirty = append(p.dirty, t)
	}
}

func (p *provider) observe(k kindOf, n int) {
	for _, ch := range p.cache.advance(k, n) {
		p.note(k, ch.either().name)
	}
}

// restart starts a new process. It looks at everything again.
func (p *provider) restart() {
	before := p.cache
	p.cache, p.dirty, p.noted = newCache(p.w.server), nil, map[task]bool{}
	for _, k := range []kindOf{objectKind, collectionKind} {
		p.observe(k, before.since(k, p.w.rand.IntN(20), maxStale, p.w.now))
	}
}

// poll looks at all objects of a cluster, as the provider does from time to time.
func (p *provider) poll(cluster string) {
	for _, k := range []kindOf{objectKind, collectionKind} {
		for _, o := range sorted(p.cache.view(k).objects) {
			if text(o.body, "spec", "providerConfigRef", "name") == cluster {
				p.note(k, o.name)
			}
		}
	}
}

// next looks at a random object.
func (p *provider) next() bool {
	if len(p.dirty) == 0 {
		return false
	}
	i := p.w.rand.IntN(len(p.dirty))
	t := p.dirty[i]
	p.dirty = slices.Delete(p.dirty, i, i+1)
	delete(p.noted, t)
	o := p.cache.get(t.kind, t.name)
	// The provider's writes are updates of what it has read, so they fail while its cache is old.
	if current := p.w.server.get(t.kind, t.name); o == nil || current == nil || current.version != o.version {
		return true
	}
	cluster := p.w.remotes[text(o.body, "spec", "providerConfigRef", "name")]
	if cluster == nil {
		return true
	}
	if t.kind == collectionKind {
		p.collect(o, cluster)
		return true
	}
	p.reconcile(o, cluster)
	return true
}

// policies are the management policies of an Object.
type policies struct{ create, update, delete bool }

func policiesOf(o *stored) policies {
	var all []string
	for _, v := range at(o.body, "spec", "managementPolicies").GetListValue().GetValues() {
		all = append(all, v.GetStringValue())
	}
	may := func(policy string) bool {
		return len(all) == 0 || slices.Contains(all, "*") || slices.Contains(all, policy)
	}
	return policies{may("Create"), may("Update"), may("Delete")}
}

func (p *provider) reconcile(o *stored, cluster *remote) {
	may, manifest := policiesOf(o), object(o.body, "spec", "forProvider", "manifest")
	k, n := identify(manifest)
	if o.deleting {
		switch {
		case !may.delete:
			p.w.server.setFinalizer(o.kind, o.name, providerFinalizer, false)
		case !cluster.reachable:
			p.status(o, nil, unreachable)
		case cluster.objects[task{k, n}] != nil:
			cluster.delete(k, n)
			p.note(o.kind, o.name)
		default:
			p.w.server.setFinalizer(o.kind, o.name, providerFinalizer, false)
		}
		return
	}
	if may.delete && !slices.Contains(o.finalizers, providerFinalizer) {
		p.w.server.setFinalizer(o.kind, o.name, providerFinalizer, true)
		return
	}
	if !cluster.reachable {
		p.status(o, nil, unreachable)
		return
	}
	found := cluster.objects[task{k, n}]
	switch {
	case found == nil && !may.create:
		p.status(o, nil, condition{"Synced", "False", "ReconcileError", fmt.Sprintf("%s %s not found", k.kind, n)})
		return
	case found == nil || may.update && !found.as(manifest):
		found = cluster.apply(manifest)
	}
	p.status(o, found.body(), condition{"Synced", "True", "ReconcileSuccess", ""})
}

var unreachable = condition{"Synced", "False", "ReconcileError", "cannot connect to the cluster: i/o timeout"}

// status writes the status of an Object. Without a manifest it keeps the one before. The condition Synced tells which generation
// of the Object it is about (crossplane-runtime v2.4.0, pkg/conditions/manager.go).
func (p *provider) status(o *stored, manifest document, synced condition) {
	status := object(o.body, "status")
	if status == nil {
		status = &structpb.Struct{}
	}
	ready := condition{"Ready", "False", "Creating", ""}
	if manifest != nil {
		status = with(status, structpb.NewStructValue(manifest), "atProvider", "manifest")
		if text(o.body, "spec", "readiness", "policy") == "SuccessfulCreate" {
			ready = condition{"Ready", "True", "Available", ""}
		}
	}
	conditions := conditionsOf(status, p.w.now, synced, ready)
	for _, c := range conditions {
		if c, ok := c.(fields); ok && c["type"] == synced.kind {
			c["observedGeneration"] = o.generation
		}
	}
	status = with(status, value(conditions), "conditions")
	p.w.server.setStatus(o.kind, o.name, status)
}

// collect makes an Object for each node that a collection selects.
func (p *provider) collect(o *stored, cluster *remote) {
	if o.deleting {
		return
	}
	status := object(o.body, "status")
	if status == nil {
		status = &structpb.Struct{}
	}
	if !cluster.reachable {
		p.w.server.setStatus(o.kind, o.name, with(status, value(conditionsOf(status, p.w.now, unreachable)), "conditions"))
		return
	}
	selector, want := texts(o.body, "spec", "observeObjects", "selector", "matchLabels"), map[name]bool{}
	for _, node := range cluster.nodes {
		if !node.has(selector) {
			continue
		}
		n := name{o.name.namespace, o.name.name + "-" + node.name}
		want[n] = true
		labels := fields{memberLabel: o.name.name}
		for k, v := range texts(o.body, "spec", "objectTemplate", "metadata", "labels") {
			labels[k] = v
		}
		member := newDocument(fields{
			"apiVersion": objectKind.apiVersion, "kind": objectKind.kind,
			"metadata": fields{"name": n.name, "namespace": n.namespace, "labels": labels, "ownerReferences": list[any](fields{
				"apiVersion": o.kind.apiVersion, "kind": o.kind.kind, "name": o.name.name, "uid": o.uid, "controller": true,
			})},
			"spec": fields{
				"forProvider":        fields{"manifest": fields{"apiVersion": "v1", "kind": "Node", "metadata": fields{"name": node.name}}},
				"managementPolicies": list("Observe"), "providerConfigRef": at(o.body, "spec", "providerConfigRef").AsInterface(),
				"readiness": fields{"policy": "SuccessfulCreate"},
			},
		})
		if err := p.w.server.apply(member, o.uid); err != nil {
			panic(err) // Nobody else makes Objects with these names.
		}
	}
	for _, m := range p.w.server.list(objectKind) {
		if m.labels[memberLabel] == o.name.name && m.owner == o.uid && !want[m.name] {
			p.w.server.delete(m.kind, m.name)
		}
	}
	status = with(status, value(fields{memberLabel: o.name.name}), "membershipLabel")
	status = with(status, value(conditionsOf(status, p.w.now, condition{"Synced", "True", "ReconcileSuccess", ""})), "conditions")
	p.w.server.setStatus(o.kind, o.name, status)
}

// pollEvery is how often everything is looked at while the simulation settles.
const pollEvery = 10 * time.Minute
