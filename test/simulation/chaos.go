package simulation

import "slices"

// An event is something that users, admins or the world do.
type event struct {
	name   string
	weight int
	happen func(w *World)
}

// events are the random events. Each can be left out by its name.
var events = []event{
	{"new-service", 14, func(w *World) {
		if len(w.services) >= 8 {
			return
		}
		if u := w.randomUser(); u != nil {
			w.create(u)
		}
	}},
	{"delete-service", 5, func(w *World) {
		if len(w.services) > 3 {
			w.remove(w.randomService())
		}
	}},
	{"scale", 8, func(w *World) {
		w.withService(func(u *user) {
			if u.sleeps() {
				w.scale(u, w.rand.IntN(maxScaled+1))
				return
			}
			if u.groups > 0 && w.rand.IntN(2) == 0 {
				u.groups = 1 + w.rand.IntN(3)
			} else {
				u.roles[w.rand.IntN(len(u.roles))].replicas = 1 + w.rand.IntN(4)
			}
			w.update(u, "scaled")
		})
	}},
	{"shrink", 2, func(w *World) {
		w.withService(func(u *user) {
			r := &u.roles[w.rand.IntN(len(u.roles))]
			if r.gpus > 1 {
				r.gpus /= 2
				w.resize(u, "shrunk")
			}
		})
	}},
	{"grow", 2, func(w *World) {
		w.withService(func(u *user) {
			r := &u.roles[w.rand.IntN(len(u.roles))]
			if r.gpus < 8 {
				r.gpus *= 2
				w.resize(u, "requests grown")
			}
		})
	}},
	{"node-count", 2, func(w *World) {
		w.withService(func(u *user) {
			r := &u.roles[w.rand.IntN(len(u.roles))]
			if r.gpus >= 4 {
				r.nodes = 1 + w.rand.IntN(3)
				w.resize(u, "nodeCount changed")
			}
		})
	}},
	{"image", 2, func(w *World) {
		w.withService(func(u *user) {
			u.image++
			w.update(u, "image changed")
		})
	}},
	{"surge", 1, func(w *World) {
		w.withService(func(u *user) {
			u.surge = w.rand.IntN(3)
			w.update(u, "maxSurge changed")
		})
	}},
	{"placement", 3, func(w *World) {
		w.withService(func(u *user) {
			w.randomPlacement(u)
			w.update(u, "placement changed")
		})
	}},
	{"policy", 1, func(w *World) {
		w.withService(func(u *user) {
			u.policy = []string{"Failover", "Spread", "Replicate"}[w.rand.IntN(3)]
			if u.sleeps() {
				u.policy = "Failover"
			}
			w.update(u, "policy changed")
		})
	}},
	{"router", 1, func(w *World) {
		w.withService(func(u *user) {
			u.router = !u.router || u.sleeps()
			w.update(u, "router changed")
		})
	}},
	{"stop-policy", 5, func(w *World) {
		r := w.randomCluster()
		if !r.abandoned {
			r.stopPolicy = []string{"", "", "Drain", "Hold"}[w.rand.IntN(4)]
			r.update("stop policy")
		}
	}},
	{"drain-and-change", 3, func(w *World) {
		// A service is scaled in, and maybe rolled out, while its replicas wait for room elsewhere.
		w.withService(func(u *user) {
			r, role := w.randomCluster(), &u.roles[w.rand.IntN(len(u.roles))]
			if r.abandoned || u.sleeps() {
				return
			}
			r.stopPolicy = "Drain"
			r.update("drained")
			role.replicas = 1 + w.rand.IntN(role.replicas)
			u.image += w.rand.IntN(2)
			w.update(u, "scaled in")
		})
	}},
	{"abandon", 1, func(w *World) {
		r := w.randomCluster()
		if !r.abandoned {
			r.stopPolicy, r.abandoned = "Abandon", true
			r.update("abandoned")
		}
	}},
	{"clean-up", 3, func(w *World) { w.randomCluster().cleanUp() }},
	{"label", 1, func(w *World) {
		r := w.randomCluster()
		r.region = []string{"r1", "r2"}[w.rand.IntN(2)]
		r.update("region " + r.region)
	}},
	{"reach", 7, func(w *World) {
		r := w.randomCluster()
		r.reach(!r.reachable || w.rand.IntN(2) == 0)
	}},
	{"pause", 4, func(w *World) {
		if w.rand.IntN(2) == 0 {
			w.pause(xrKey{clusterKind, name{"", w.randomCluster().name}}, w.rand.IntN(3) == 0)
			return
		}
		w.withService(func(u *user) { w.pause(xrKey{serviceKind, u.name}, w.rand.IntN(3) == 0) })
	}},
	{"restart-crossplane", 2, func(w *World) {
		w.trace(subject("Crossplane"), "restarts")
		w.crossplane.restart()
	}},
	{"restart-provider", 2, func(w *World) { w.provider.restart() }},
	{"lose-request", 3, func(w *World) { w.tamper(func(o *stored) { w.server.delete(o.kind, o.name) }, "deleted by hand") }},
	{"garble-request", 3, func(w *World) {
		w.tamper(func(o *stored) {
			w.server.edit(o.kind, o.name, func(d document) document {
				for k := range texts(d, "data") {
					d = withText(d, "?", "data", k)
				}
				return d
			})
		}, "garbled by hand")
	}},
	{"lose-nodes", 2, func(w *World) {
		if r := w.randomCluster(); len(r.nodes) > 1 {
			r.lose(1 + w.rand.IntN(len(r.nodes)-1))
			r.update("nodes are gone")
		}
	}},
	{"restore-nodes", 4, func(w *World) {
		if r := w.randomCluster(); len(r.nodes) < len(r.limit) {
			r.setNodes(len(r.limit))
			r.update("nodes are back")
			r.wakeWaiting()
		}
	}},
	{"wipe", 1, func(w *World) {
		r := w.randomCluster()
		w.trace(xrKey{clusterKind, name{"", r.name}}, "has lost all objects")
		r.wipe()
	}},
	{"make-anew", 1, func(w *World) {
		r := w.randomCluster()
		w.trace(xrKey{clusterKind, name{"", r.name}}, "is made anew, as another one")
		r.uid = ""
		r.wipe()
		if w.rand.IntN(2) == 0 {
			r.confirm()
		}
	}},
	{"confirm", 3, func(w *World) { w.randomCluster().confirm() }},
}

// sleeperEvents happen besides where services stop while nobody uses them.
var sleeperEvents = []event{
	{"sleep", 12, func(w *World) { w.withSleeper(func(u *user) { w.scale(u, 0) }) }},
	{"wake", 12, func(w *World) { w.withSleeper(func(u *user) { w.scale(u, 1) }) }},
}

// chaos lets a random event happen.
func (w *World) chaos() {
	all := events
	if w.Sleepers {
		all = slices.Concat(all, sleeperEvents)
	}
	if w.Quotas {
		all = append(slices.Clone(all), quotaEvent)
	}
	if w.Kueue {
		all = slices.Concat(all, kueueEvents)
	}
	w.oneOf(all)
}

// oneOf lets one of some events happen.
func (w *World) oneOf(all []event) {
	sum := 0
	for _, e := range all {
		sum += e.weight
	}
	at := w.rand.IntN(sum)
	for _, e := range all {
		if at -= e.weight; at < 0 {
			if !w.Without[e.name] {
				e.happen(w)
			}
			return
		}
	}
}

func (w *World) randomCluster() *remote { return w.fleet[w.rand.IntN(len(w.fleet))] }

func (w *World) randomService() *user { return w.services[w.rand.IntN(len(w.services))] }

func (w *World) withService(do func(u *user)) {
	if len(w.services) > 0 {
		do(w.randomService())
	}
}

// pause sets or removes the annotation that pauses a composite resource.
func (w *World) pause(xr xrKey, paused bool) {
	w.trace(xr, "paused: %t", paused)
	w.server.edit(xr.kind, xr.name, func(d document) document {
		if paused {
			return withText(d, "true", "metadata", "annotations", annotationPaused)
		}
		if at(d, "metadata", "annotations", annotationPaused) == nil {
			return d
		}
		return with(d, nil, "metadata", "annotations", annotationPaused)
	})
}

// tamper changes a random ConfigMap that a service composed.
func (w *World) tamper(do func(*stored), why string) {
	w.withService(func(u *user) {
		xr := w.server.get(serviceKind, u.name)
		if xr == nil {
			return
		}
		for _, t := range sortedTasks(w.children[xr.uid]) {
			if t.kind == configMapKind {
				w.trace(xrKey{serviceKind, u.name}, "ConfigMap %s is %s", t.name, why)
				u.lost = true
				do(w.server.get(t.kind, t.name))
				return
			}
		}
	})
}

// reach connects or disconnects a cluster.
func (r *remote) reach(reachable bool) {
	if r.reachable == reachable {
		return
	}
	r.reachable = reachable
	r.w.trace(xrKey{clusterKind, name{"", r.name}}, "reachable: %t", reachable)
	r.w.provider.poll(r.name)
}

// cleanUp takes an abandoned cluster back, as docs/placement.md says: once no service has Objects for it, everything of the services
// is deleted there.
func (r *remote) cleanUp() {
	if !r.abandoned || len(r.w.told[r.name]) > 0 || r.hasObjects() {
		return
	}
	r.wipe()
	r.abandoned, r.stopPolicy = false, ""
	r.update("cleaned up")
}

// confirm says in the InferenceCluster which cluster it is.
func (r *remote) confirm() {
	if r.made > 0 && r.confirmed != r.uid {
		r.confirmed = r.uid
		r.update("is " + r.uid)
	}
}

// hasObjects tells that a service has Objects for the cluster.
func (r *remote) hasObjects() bool {
	return slices.ContainsFunc(r.w.server.list(objectKind), func(o *stored) bool {
		return text(o.body, "spec", "providerConfigRef", "name") == r.name && text(o.body, "spec", "forProvider", "manifest", "kind") == lwsKind.kind
	})
}
