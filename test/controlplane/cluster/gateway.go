package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
)

// A StandInGateway stands in for a gateway's controller. No traffic passes; it writes
// the status that a conformant one writes on Gateways, HTTPRoutes and
// InferencePools, whatever the class of the Gateway.
type StandInGateway struct {
	c *Kubernetes
	// address that all Gateways are given.
	address string
}

// standIn is the name of the controller and of its fields' manager.
const standIn = "fusioninfer.io/stand-in-gateway"

// A kind and where it is served.
type kind struct {
	schema.GroupVersionResource
	name string
}

var (
	gateways = kind{schema.GroupVersionResource{Group: "gateway.networking.k8s.io", Version: "v1", Resource: "gateways"}, "Gateway"}
	routes   = kind{schema.GroupVersionResource{Group: "gateway.networking.k8s.io", Version: "v1", Resource: "httproutes"}, "HTTPRoute"}
	pools    = kind{schema.GroupVersionResource{Group: "inference.networking.k8s.io", Version: "v1", Resource: "inferencepools"}, "InferencePool"}
	services = kind{schema.GroupVersionResource{Version: "v1", Resource: "services"}, "Service"}
)

// RunStandInGateway starts a stand-in for a gateway's controller. Its kinds have
// to be installed.
func (c *Kubernetes) RunStandInGateway(address string) {
	g := &StandInGateway{c: c, address: address}
	c.begin(func(ctx context.Context) error {
		f := dynamicinformer.NewDynamicSharedInformerFactory(c.Client, 0)
		changed := make(chan struct{}, 1)
		touch := func() {
			select {
			case changed <- struct{}{}:
			default:
			}
		}
		seen := map[kind]cache.GenericLister{}
		for _, k := range []kind{gateways, routes, pools, services} {
			i := f.ForResource(k.GroupVersionResource)
			if _, err := i.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
				AddFunc:    func(any) { touch() },
				UpdateFunc: func(any, any) { touch() },
				DeleteFunc: func(any) { touch() },
			}); err != nil {
				return err
			}
			seen[k] = i.Lister()
		}
		f.Start(ctx.Done())
		f.WaitForCacheSync(ctx.Done())
		return every(ctx, pollEvery, func(ctx context.Context) error {
			select {
			case <-changed:
			case <-ctx.Done():
				return nil
			}
			// What is gone or has changed by now is met again or not in the next round; a
			// test may take away the kinds, or the API server.
			if err := g.sync(ctx, seen); err != nil {
				touch()
			}
			return nil
		})
	})
}

// A snapshot has the objects of each kind, by name.
type snapshot map[kind]map[string]*unstructured.Unstructured

func (g *StandInGateway) sync(ctx context.Context, seen map[kind]cache.GenericLister) error {
	w := snapshot{}
	for k, lister := range seen {
		all, err := lister.List(labels.Everything())
		if err != nil {
			return err
		}
		w[k] = map[string]*unstructured.Unstructured{}
		for _, v := range all {
			if o, ok := v.(*unstructured.Unstructured); ok {
				w[k][o.GetNamespace()+"/"+o.GetName()] = o
			}
		}
	}
	// The Gateways that lead to each pool, and the routes of each Gateway.
	leading, attached := map[string][]map[string]any{}, map[string]int64{}
	for _, name := range slices.Sorted(maps.Keys(w[routes])) {
		if err := g.route(ctx, w, w[routes][name], leading, attached); err != nil {
			return err
		}
	}
	for name, o := range w[gateways] {
		if err := g.gateway(ctx, o, attached[name]); err != nil {
			return err
		}
	}
	for name, o := range w[pools] {
		if err := g.pool(ctx, w, o, leading[name]); err != nil {
			return err
		}
	}
	return nil
}

// route reports for each Gateway that a route names and that exists: no controller
// speaks for one that does not.
func (g *StandInGateway) route(ctx context.Context, w snapshot, o *unstructured.Unstructured, leading map[string][]map[string]any, attached map[string]int64) error {
	var backends []string
	missing := ""
	rules, _, _ := unstructured.NestedSlice(o.Object, "spec", "rules")
	for _, r := range objects(rules) {
		refs, _, _ := unstructured.NestedSlice(r, "backendRefs")
		for _, b := range objects(refs) {
			of, at := services, text(b, "namespace", o.GetNamespace())+"/"+text(b, "name", "")
			if text(b, "kind", "Service") == pools.name {
				of = pools
				backends = append(backends, at)
			}
			if w[of][at] == nil {
				missing = of.name + " " + at
			}
		}
	}
	resolved := state{"ResolvedRefs", "True", "ResolvedRefs", "All references resolved"}
	if missing != "" {
		resolved = state{"ResolvedRefs", "False", "BackendNotFound", missing + " does not exist"}
	}
	var parents []any
	refs, _, _ := unstructured.NestedSlice(o.Object, "spec", "parentRefs")
	for _, ref := range objects(refs) {
		at := text(ref, "namespace", o.GetNamespace()) + "/" + text(ref, "name", "")
		if text(ref, "kind", gateways.name) != gateways.name || w[gateways][at] == nil {
			continue
		}
		attached[at]++
		for _, b := range backends {
			leading[b] = append(leading[b], map[string]any{
				"group": gateways.Group, "kind": gateways.name,
				"namespace": w[gateways][at].GetNamespace(), "name": w[gateways][at].GetName(),
			})
		}
		parents = append(parents, parent(o, ref, state{"Accepted", "True", "Accepted", "Route was valid"}, resolved))
	}
	return g.report(ctx, o, map[string]any{"parents": parents})
}

func (g *StandInGateway) gateway(ctx context.Context, o *unstructured.Unstructured, routes int64) error {
	var listeners []any
	all, _, _ := unstructured.NestedSlice(o.Object, "spec", "listeners")
	for _, l := range objects(all) {
		listeners = append(listeners, map[string]any{
			"name": l["name"], "attachedRoutes": routes,
			"supportedKinds": []any{map[string]any{"group": gateways.Group, "kind": "HTTPRoute"}},
			"conditions": conditions(o,
				state{"Accepted", "True", "Accepted", "Listener accepted"},
				state{"Programmed", "True", "Programmed", "Listener programmed"},
				state{"ResolvedRefs", "True", "ResolvedRefs", "All references resolved"}),
		})
	}
	return g.report(ctx, o, map[string]any{
		"addresses": []any{map[string]any{"type": "IPAddress", "value": g.address}},
		"listeners": listeners,
		"conditions": conditions(o,
			state{"Accepted", "True", "Accepted", "Accepted by the stand-in"},
			state{"Programmed", "True", "Programmed", "No traffic passes: this is a stand-in"}),
	})
}

// pool reports for each Gateway that leads to a pool.
func (g *StandInGateway) pool(ctx context.Context, w snapshot, o *unstructured.Unstructured, from []map[string]any) error {
	picker, _, _ := unstructured.NestedString(o.Object, "spec", "endpointPickerRef", "name")
	resolved := state{"ResolvedRefs", "True", "ResolvedRefs", "Endpoint picker resolved"}
	if at := o.GetNamespace() + "/" + picker; w[services][at] == nil {
		resolved = state{"ResolvedRefs", "False", "InvalidExtensionRef", "Service " + at + " does not exist"}
	}
	var parents []any
	seen := map[string]bool{}
	for _, ref := range from {
		if at := fmt.Sprint(ref); !seen[at] {
			seen[at] = true
			parents = append(parents, parent(o, ref, state{"Accepted", "True", "Accepted", "Referenced by an accepted HTTPRoute"}, resolved))
		}
	}
	return g.report(ctx, o, map[string]any{"parents": parents})
}

// A state is what a condition says.
type state struct{ of, status, reason, message string }

func parent(o *unstructured.Unstructured, ref map[string]any, all ...state) map[string]any {
	return map[string]any{"controllerName": standIn, "parentRef": ref, "conditions": conditions(o, all...)}
}

// conditions of a moment ago. When they began is set where they are written, if they
// are.
func conditions(o *unstructured.Unstructured, all ...state) []any {
	var c []any
	for _, s := range all {
		c = append(c, map[string]any{
			"type": s.of, "status": s.status, "reason": s.reason, "message": s.message,
			"observedGeneration": o.GetGeneration(), "lastTransitionTime": "",
		})
	}
	return c
}

// report writes a status unless it is as it was, apart from times.
func (g *StandInGateway) report(ctx context.Context, o *unstructured.Unstructured, status map[string]any) error {
	if says(o.Object["status"], status) {
		return nil
	}
	date(status, time.Now().UTC().Format(time.RFC3339))
	s := &unstructured.Unstructured{Object: map[string]any{"status": status}}
	s.SetGroupVersionKind(o.GroupVersionKind())
	s.SetNamespace(o.GetNamespace())
	s.SetName(o.GetName())
	// Only of the object that was looked at, and never one that is gone.
	s.SetUID(o.GetUID())
	if _, err := g.c.ApplyStatus(ctx, s, standIn); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return err
	}
	return nil
}

// says tells whether all that is wanted is there, whatever the times and whatever
// else there is, but with lists of the same length.
func says(got, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		m, _ := got.(map[string]any)
		for k, v := range want {
			if k != "lastTransitionTime" && !says(m[k], v) {
				return false
			}
		}
		return true
	case []any:
		l, _ := got.([]any)
		return len(l) == len(want) && !slices.ContainsFunc(want, func(v any) bool {
			return !slices.ContainsFunc(l, func(g any) bool { return says(g, v) })
		})
	}
	return got == want
}

func date(v any, now string) {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if k == "lastTransitionTime" {
				v[k] = now
			} else {
				date(e, now)
			}
		}
	case []any:
		for _, e := range v {
			date(e, now)
		}
	}
}

func objects(all []any) []map[string]any {
	var ms []map[string]any
	for _, v := range all {
		if m, ok := v.(map[string]any); ok {
			ms = append(ms, m)
		}
	}
	return ms
}

func text(m map[string]any, key, or string) string {
	if s, ok := m[key].(string); ok && s != "" {
		return s
	}
	return or
}
