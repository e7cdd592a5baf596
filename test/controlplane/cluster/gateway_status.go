package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

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
			switch text(b, "kind", "Service") {
			case pools.name:
				of = pools
				backends = append(backends, at)
			case hostnameKind:
				of, at = entries, w.entry(text(b, "name", ""))
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

// entry is the ServiceEntry of a host name, or the host name itself.
func (w snapshot) entry(host string) string {
	for at, o := range w[entries] {
		hosts, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "hosts")
		if slices.Contains(hosts, host) {
			return at
		}
	}
	return host
}

func (g *StandInGateway) gateway(ctx context.Context, o *unstructured.Unstructured, routes int64, at *listening) error {
	var listeners []any
	all, _, _ := unstructured.NestedSlice(o.Object, "spec", "listeners")
	for _, l := range objects(all) {
		accepted := state{"Accepted", "True", "Accepted", "Listener accepted"}
		programmed := state{"Programmed", "True", "Programmed", "Listener programmed"}
		switch err := at.failure(text(l, "name", "")); {
		case errors.Is(err, errProtocol):
			accepted = state{"Accepted", "False", "UnsupportedProtocol", err.Error()}
			programmed = state{"Programmed", "False", "Invalid", err.Error()}
		case err != nil:
			programmed = state{"Programmed", "False", "PortUnavailable", err.Error()}
		}
		listeners = append(listeners, map[string]any{
			"name": l["name"], "attachedRoutes": routes,
			"supportedKinds": []any{map[string]any{"group": gateways.Group, "kind": "HTTPRoute"}},
			"conditions": conditions(o, accepted, programmed,
				state{"ResolvedRefs", "True", "ResolvedRefs", "All references resolved"}),
		})
	}
	programmed := state{"Programmed", "True", "Programmed", "Listens at " + at.String()}
	if len(at.at) == 0 {
		programmed = state{"Programmed", "False", "Invalid", "Listens nowhere"}
	}
	return g.report(ctx, o, map[string]any{
		"addresses":  []any{map[string]any{"type": "IPAddress", "value": g.address(at.number)}},
		"listeners":  listeners,
		"conditions": conditions(o, state{"Accepted", "True", "Accepted", "Accepted by the stand-in"}, programmed),
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
