package workload

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

var (
	probes   = []string{"livenessProbe", "readinessProbe", "startupProbe"}
	hooks    = []string{"postStart", "preStop"}
	handlers = []string{"httpGet", "tcpSocket", "grpc"}
)

// movePort replaces a port number in the engine's container: in its declaration, probes and
// hooks. Probes and hooks that use the port's name need no change. A command of one names the port in an address of the pod itself: the
// routing sidecar, which takes the port, answers before the engine does.
func movePort(engine *structpb.Struct, from, to int32) {
	ports := slices.Clone(kube.Elements(engine, "ports"))
	for i := range ports {
		for _, f := range []string{"containerPort", "hostPort"} {
			if port := objectAt(ports, i); isNumber(port.GetFields()[f], from) {
				ports[i] = structpb.NewStructValue(kube.With(port, number(to), f))
			}
		}
	}
	kube.SetList(engine, "ports", ports)
	names := namesOf(engine, from)
	for _, c := range checks(engine) {
		for _, h := range handlers {
			if isNumber(kube.Lookup(c.of, h, "port"), from) {
				engine.Fields = kube.With(engine, number(to), append(c.path, h, "port")...).GetFields()
			}
		}
		if words := kube.Elements(c.of.GetFields()["exec"].GetStructValue(), "command"); len(words) > 0 {
			engine.Fields = kube.With(engine, moveAddresses(words, names, to), append(c.path, "exec", "command")...).GetFields()
		}
	}
}

// An address of the pod itself, with a port: a number, or a variable as a shell or the kubelet writes it.
var address = regexp.MustCompile(`(\blocalhost|\b127\.0\.0\.1|\b0\.0\.0\.0|\[::1\]):(?:(\d+)\b|\$(\w+)|\$\{([^}]+)\}|\$\(([^)]+)\))`)

// namesOf returns what stands for a port behind an address: its number, and each variable of the container with that value, behind a dollar
// sign. Users may set many, with long names, so they are looked up. A pattern of them takes seconds to compile.
func namesOf(engine *structpb.Struct, port int32) map[string]bool {
	value := strconv.Itoa(int(port))
	all := map[string]bool{value: true}
	for _, e := range kube.Elements(engine, "env") {
		if v := e.GetStructValue().GetFields(); v["value"].GetStringValue() == value {
			all["$"+v["name"].GetStringValue()] = true
		}
	}
	return all
}

// moveAddresses replaces the port behind addresses of the pod itself, if it has one of the names.
func moveAddresses(words []*structpb.Value, names map[string]bool, to int32) *structpb.Value {
	moved := make([]*structpb.Value, len(words))
	for i, w := range words {
		if moved[i] = w; address.MatchString(w.GetStringValue()) {
			moved[i] = structpb.NewStringValue(address.ReplaceAllStringFunc(w.GetStringValue(), func(found string) string {
				parts := address.FindStringSubmatch(found)
				host, port := parts[1], cmp.Or(parts[2], "$"+strings.Join(parts[3:], ""))
				if !names[port] {
					return found
				}
				return fmt.Sprintf("%s:%d", host, to)
			}))
		}
	}
	return structpb.NewListValue(&structpb.ListValue{Values: moved})
}

// openPort declares a port of the engine's container, unless it is declared.
func openPort(engine *structpb.Struct, port int32) {
	ports := kube.Elements(engine, "ports")
	if !slices.ContainsFunc(ports, func(p *structpb.Value) bool {
		return isNumber(p.GetStructValue().GetFields()["containerPort"], port)
	}) {
		declared := &structpb.Struct{Fields: map[string]*structpb.Value{"containerPort": number(port)}}
		kube.SetList(engine, "ports", append(slices.Clip(ports), structpb.NewStructValue(declared)))
	}
}

// removeHTTP removes what a worker without an HTTP server cannot have: HTTP ports, and the probes
// and hooks that use them. A probe that never passes would restart the replica again and again.
func removeHTTP(engine *structpb.Struct, r *plan.Role) {
	all := checks(engine)
	http := httpPorts(engine, all, r)
	kube.SetList(engine, "ports", slices.DeleteFunc(slices.Clone(kube.Elements(engine, "ports")), func(p *structpb.Value) bool {
		port := p.GetStructValue().GetFields()
		return http.has(port["containerPort"]) || http.has(port["name"])
	}))
	for _, c := range all {
		if !usesHTTP(c.of, http) {
			continue
		}
		if len(c.path) == 1 {
			delete(engine.GetFields(), c.path[0])
			continue
		}
		// Hooks are below lifecycle, which is removed with the last of them.
		lifecycle := kube.CopyChild(engine, c.path[0])
		if delete(lifecycle.GetFields(), c.path[1]); len(lifecycle.GetFields()) == 0 {
			delete(engine.GetFields(), c.path[0])
		}
	}
}

// A portSet has numbers and names of ports.
type portSet []*structpb.Value

func (s portSet) has(v *structpb.Value) bool {
	if v == nil {
		return false
	}
	return slices.ContainsFunc(s, func(p *structpb.Value) bool {
		return p.GetNumberValue() == v.GetNumberValue() && p.GetStringValue() == v.GetStringValue()
	})
}

// httpPorts returns the ports that a headless engine does not open. These are the serving
// port, Ray's port, which only the leader opens, and every port that is named http or that an
// HTTP probe uses.
func httpPorts(engine *structpb.Struct, all []check, r *plan.Role) portSet {
	ports := portSet{number(r.Port), number(r.EnginePort)}
	if r.RayPort != 0 {
		ports = append(ports, number(r.RayPort))
	}
	for _, c := range all {
		if port := kube.Lookup(c.of, "httpGet", "port"); port != nil {
			ports = append(ports, port)
		}
	}
	for _, p := range kube.Elements(engine, "ports") {
		port := p.GetStructValue().GetFields()
		name := port["name"].GetStringValue()
		if name == "http" || strings.HasPrefix(name, "http-") || ports.has(port["containerPort"]) {
			ports = append(ports, port["containerPort"])
			if name != "" {
				ports = append(ports, port["name"])
			}
		}
	}
	return ports
}

// usesHTTP tells whether a probe or a hook needs an HTTP server: by its kind, by its port, or
// by the program that it runs.
func usesHTTP(check *structpb.Struct, http portSet) bool {
	if check.GetFields()["httpGet"] != nil {
		return true
	}
	for _, h := range handlers {
		if http.has(kube.Lookup(check, h, "port")) {
			return true
		}
	}
	return slices.ContainsFunc(kube.Elements(check.GetFields()["exec"].GetStructValue(), "command"), func(w *structpb.Value) bool {
		word := w.GetStringValue()
		return strings.Contains(word, "http://") || strings.Contains(word, "curl ") || word == "curl" || word == "wget"
	})
}

// A check is a probe or a hook, and its path in the container.
type check struct {
	of   *structpb.Struct
	path []string
}

func checks(engine *structpb.Struct) []check {
	var all []check
	find := func(names []string, below ...string) {
		for _, n := range names {
			path := append(slices.Clip(below), n)
			if c := kube.Lookup(engine, path...).GetStructValue(); c != nil {
				all = append(all, check{of: c, path: path})
			}
		}
	}
	find(probes)
	find(hooks, "lifecycle")
	return all
}
