package workload

import (
	"slices"
	"strings"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/plan"
)

var (
	probes   = []string{"livenessProbe", "readinessProbe", "startupProbe"}
	hooks    = []string{"postStart", "preStop"}
	handlers = []string{"httpGet", "tcpSocket", "grpc"}
)

// movePort makes everything in the engine's container that is about one port be
// about another: its declaration, probes and hooks. What goes by the port's name
// follows by itself.
func movePort(engine kube.Document, from, to int32) {
	replace := func(d kube.Document, field string) {
		if d[field] == int64(from) {
			d[field] = int64(to)
		}
	}
	for _, p := range elements(engine, "ports") {
		if port, ok := p.(kube.Document); ok {
			replace(port, "containerPort")
			replace(port, "hostPort")
		}
	}
	for _, on := range checks(engine) {
		for _, h := range handlers {
			if handler, ok := on.check[h].(kube.Document); ok {
				replace(handler, "port")
			}
		}
	}
}

// openPort declares a port of the engine's container, unless it is.
func openPort(engine kube.Document, number int32) {
	ports := elements(engine, "ports")
	if !slices.ContainsFunc(ports, func(p any) bool {
		port, _ := p.(kube.Document)
		return port["containerPort"] == int64(number)
	}) {
		engine["ports"] = append(ports, kube.Document{"containerPort": int64(number)})
	}
}

// silence takes away what a worker without an HTTP server cannot have: its HTTP
// ports, and every probe and hook that asks there. A probe that can never pass
// would restart the whole replica for ever.
func silence(engine kube.Document, r *plan.Role) {
	http := httpPorts(engine, r)
	set(engine, "ports", slices.DeleteFunc(elements(engine, "ports"), func(p any) bool {
		port, _ := p.(kube.Document)
		return slices.Contains(http, port["containerPort"]) || port["name"] != nil && slices.Contains(http, port["name"])
	}))
	for _, on := range checks(engine) {
		if asksHTTP(on.check, http) {
			delete(on.parent, on.name)
		}
	}
	if l, ok := engine["lifecycle"].(kube.Document); ok && len(l) == 0 {
		delete(engine, "lifecycle")
	}
}

// httpPorts returns the numbers and names of the ports that a headless engine
// does not open: the serving port, Ray's, which is the leader's, and every port
// that is called http or is asked by HTTP.
func httpPorts(engine kube.Document, r *plan.Role) []any {
	ports := []any{int64(r.Port), int64(r.EnginePort)}
	if r.RayPort != 0 {
		ports = append(ports, int64(r.RayPort))
	}
	for _, on := range checks(engine) {
		if get, ok := on.check["httpGet"].(kube.Document); ok && get["port"] != nil {
			ports = append(ports, get["port"])
		}
	}
	for _, p := range elements(engine, "ports") {
		port, _ := p.(kube.Document)
		name, _ := port["name"].(string)
		if name == "http" || strings.HasPrefix(name, "http-") || slices.Contains(ports, port["containerPort"]) {
			ports = append(ports, port["containerPort"], any(name))
		}
	}
	return ports
}

// asksHTTP tells whether a probe or a hook talks to an HTTP server: itself, by
// its port, or by a program.
func asksHTTP(check kube.Document, http []any) bool {
	if check["httpGet"] != nil {
		return true
	}
	for _, h := range handlers {
		if handler, ok := check[h].(kube.Document); ok && slices.Contains(http, handler["port"]) {
			return true
		}
	}
	exec, _ := check["exec"].(kube.Document)
	return slices.ContainsFunc(elements(exec, "command"), func(w any) bool {
		word, _ := w.(string)
		return strings.Contains(word, "http://") || strings.Contains(word, "curl ") || word == "curl" || word == "wget"
	})
}

// A check is a probe or a hook, and where it is.
type check struct {
	parent kube.Document
	name   string
	check  kube.Document
}

func checks(engine kube.Document) []check {
	var all []check
	find := func(parent kube.Document, names []string) {
		for _, n := range names {
			if c, ok := parent[n].(kube.Document); ok {
				all = append(all, check{parent: parent, name: n, check: c})
			}
		}
	}
	find(engine, probes)
	lifecycle, _ := engine["lifecycle"].(kube.Document)
	find(lifecycle, hooks)
	return all
}

// set sets a list, and leaves an empty one out.
func set(d kube.Document, field string, l []any) {
	if len(l) == 0 {
		delete(d, field)
		return
	}
	d[field] = l
}
