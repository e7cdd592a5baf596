package simulation

import "slices"

// hereKinds are those that controllers run in the control plane's own cluster.
var hereKinds = map[kindOf]bool{lwsKind: true, deploymentKind: true, podGroupKind: true, poolKind: true}

// runHere has services without a placement run in the control plane's own cluster, in which there are nodes enough.
func (w *World) runHere() {
	w.here = &remote{w: w, name: "here", reachable: true, objects: map[task]*remoteObject{}, noted: map[task]bool{}}
	for range 64 {
		w.here.limit = append(w.here.limit, &node{gpus: 8})
	}
	w.here.nodes = w.here.limit
	w.remotes[w.here.name], w.fleet = w.here, append(w.fleet, w.here)
	w.define("leaderworkersets.leaderworkerset.x-k8s.io", "v1")
	w.define("inferencepools.inference.networking.k8s.io", "v1")
	w.define("podgroups.scheduling.volcano.sh", "v1beta1")
}

// changedHere tells the controllers of the control plane's own cluster that an object has changed.
func (w *World) changedHere(c change) {
	o := c.either()
	switch {
	case w.here == nil || !hereKinds[o.kind]:
	case c.current == nil:
		w.here.delete(o.kind, o.name)
	case c.old == nil || c.old.generation != c.current.generation:
		w.here.apply(with(o.body, nil, "status"))
	}
}

// A renderedObject is what a service has in a cluster.
type renderedObject struct {
	// object is the Object that has the manifest, nil in the control plane's own cluster.
	object   *stored
	manifest document
	in       *remote
}

// rendered returns what a service has in all clusters, of some kinds.
func (w *World) rendered(xr *stored, kinds ...kindOf) []renderedObject {
	var all []renderedObject
	add := func(o renderedObject) {
		if k, _ := identify(o.manifest); slices.Contains(kinds, k) {
			all = append(all, o)
		}
	}
	for t := range w.children[xr.uid] {
		o := w.server.get(t.kind, t.name)
		if r := w.remotes[text(o.body, "spec", "providerConfigRef", "name")]; r != nil && t.kind == objectKind {
			add(renderedObject{o, object(o.body, "spec", "forProvider", "manifest"), r})
		}
	}
	if w.here == nil {
		return all
	}
	for _, o := range w.here.objects {
		for _, owner := range items(o.manifest, "metadata", "ownerReferences") {
			if text(owner, "uid") == xr.uid {
				add(renderedObject{nil, o.manifest, w.here})
			}
		}
	}
	return all
}
