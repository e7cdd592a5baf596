package hostile

import (
	"fmt"
	"strconv"
	"strings"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/profile"
	"github.com/fusioninfer/function-inferenceservice/internal/service/require"
)

func withRouter(more object) list {
	router := object{"name": "router", "componentType": "router", "strategy": "prefix-cache"}
	for k, v := range more {
		router[k] = v
	}
	return list{worker(nil), router}
}

// config is a Case of a router with an endpoint picker configuration.
func config(name string, text func() string) Case {
	return service("configuration "+name, func() list {
		return withRouter(object{"strategy": "", "endpointPickerConfig": text()})
	})
}

const pickerHead = "apiVersion: inference.networking.x-k8s.io/v1alpha1\nkind: EndpointPickerConfig\n"

// maxConfig is the largest configuration that the schema accepts, in bytes.
const maxConfig = 262_000

// fits repeats a part after a head, up to maxConfig.
func fits(head, part string) string { return head + text(maxConfig-len(head), part) }

func routers() []Case {
	bomb := &strings.Builder{}
	bomb.WriteString(pickerHead + "a0: &a0 [x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i < 12; i++ {
		_, _ = fmt.Fprintf(bomb, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 9), ","))
	}
	return []Case{
		config("with aliases of aliases", bomb.String),
		config("with one alias often", func() string {
			return fits(pickerHead+"a: &a ["+text(1000, "x,")+"x]\nb:\n", "- *a\n")
		}),
		config("with many aliases of a long text", func() string {
			return pickerHead + "a: &a " + text(100_000, "x") + "\nb: [" + text(50_000, "*a,") + "*a]\n"
		}),
		config("with many aliases of a long text of 4-byte characters", func() string {
			return pickerHead + "a: &a " + text(800_000, "\U0001F600") + "\nb: [" + text(50_000, "*a,") + "*a]\n"
		}),
		config("with many aliases of a long key", func() string {
			return fits(pickerHead+"? &a "+text(100_000, "x")+"\n: 1\nb:\n", "- {*a : 1, *a : 2}\n")
		}),
		config("with merge keys", func() string {
			return fits(pickerHead+"a: &a {k: "+text(100_000, "x")+"}\nb:\n", "- {<<: *a}\n")
		}),
		config("with an alias within itself", func() string { return fits(pickerHead+"a: &a\n", "- [*a]\n") }),
		config("with references to nothing and long names", func() string {
			b := &strings.Builder{}
			b.WriteString(pickerHead + "plugins:\n")
			for i := range 99 {
				_, _ = fmt.Fprintf(b, "- {type: queue-scorer, name: \"%03d%s\"}\n", i, text(1000, "a"))
			}
			b.WriteString("schedulingProfiles:\n")
			for i := range 45 {
				_, _ = fmt.Fprintf(b, "- {name: p%d, plugins: [%s{}]}\n", i, text(3*999, "{},"))
			}
			return b.String()
		}),
		config("with unknown parameters", func() string {
			b := &strings.Builder{}
			b.WriteString(strings.Replace(pickerHead, "inference.networking.x-k8s.io/v1alpha1", "llm-d.ai/v1alpha1", 1) + "plugins:\n")
			for range 900 {
				b.WriteString("- {type: max-score-picker, parameters: {")
				for i := range 40 {
					_, _ = fmt.Fprintf(b, "p%d: ,", i)
				}
				b.WriteString("}}\n")
			}
			return b.String()
		}),
		config("with lists in lists", func() string { return pickerHead + "plugins: " + text(9000, "[") }),
		config("with lists in lists, closed", func() string { return pickerHead + "plugins: " + text(9000, "[") + text(9000, "]") }),
		config("with objects in objects", func() string { return pickerHead + "plugins: " + text(120_000, "{a: ") }),
		config("with dashes", func() string { return pickerHead + "plugins:\n" + text(20_000, "- ") + "x" }),
		config("with plugins", func() string { return fits(pickerHead+"plugins:\n", "- type: x\n") }),
		config("with plugins that are null", func() string { return fits(pickerHead+"plugins:\n", "-\n") }),
		config("with plugins of one name", func() string { return fits(pickerHead+"plugins:\n", "- type: queue-scorer\n") }),
		config("with profiles", func() string {
			return fits(pickerHead+"plugins:\n- type: queue-scorer\nschedulingProfiles:\n", "- name: a\n  plugins:\n  - pluginRef: q\n")
		}),
		config("with unknown fields", func() string {
			b := &strings.Builder{}
			b.WriteString(pickerHead)
			for i := 0; b.Len() < maxConfig-20; i++ {
				_, _ = fmt.Fprintf(b, "f%d: 1\n", i)
			}
			return b.String()
		}),
		config("with one field often", func() string { return fits(pickerHead, "a: 1\n") }),
		config("with documents", func() string { return fits(pickerHead, "---\na: 1\n") }),
		config("with quantities", func() string {
			return pickerHead + "featureGates: [flowControl]\nflowControl:\n  maxBytes: 1e300000000\n  maxRequests: 1e100000\n"
		}),
		config("with a long number", func() string { return fits(pickerHead+"weight: 1", "9") }),
		config("with a long text", func() string { return fits(pickerHead+"a: |\n  ", "x") }),
		config("with quotes", func() string { return fits(pickerHead+`a: "`, `\x41`) }),
		config("with tags", func() string { return fits(pickerHead, "? !!binary a\n") }),
		config("above the limit", func() string { return pickerHead + "plugins:\n" + text(1_400_000, "- type: x\n") }),
		service("rules of the route", func() list {
			return withRouter(object{"httproute": object{"parentRefs": list{object{"name": "g"}}, "rules": repeat(60_000, same(object{}))}})
		}),
		service("rules of the route that are null", func() list {
			return withRouter(object{"httproute": object{"parentRefs": list{object{"name": "g"}}, "rules": repeat(300_000, same(nil))}})
		}),
		service("rules of the route within the limit", func() list {
			return withRouter(object{"httproute": object{"parentRefs": list{object{"name": "g"}}, "rules": repeat(900, func(int) any {
				return object{"matches": repeat(30, same(object{"path": object{"value": "/"}})), "timeouts": object{"request": "x"}}
			})}})
		}),
		service("matches of the route, each with mistakes", func() list {
			match := object{"headers": repeat(16, same(object{})), "queryParams": repeat(16, same(object{}))}
			return withRouter(object{"httproute": object{"parentRefs": list{object{"name": "g"}}, "rules": repeat(16, same(object{"matches": repeat(64, same(match))}))}})
		}),
		service("expressions of the route", func() list {
			ranges := "(?i)[" + text(4000, `B-\x{1e942}`) + "]"
			match := object{"headers": repeat(16, named("h", object{"type": "RegularExpression", "value": ranges}))}
			return withRouter(object{"httproute": object{"parentRefs": list{object{"name": "g"}}, "rules": list{object{"matches": repeat(20, same(match))}}}})
		}),
		service("expressions of the route, in ASCII", func() list {
			match := object{"headers": repeat(16, named("h", object{"type": "RegularExpression", "value": "(?i)[" + text(4000, "!-~") + "]"}))}
			return withRouter(object{"httproute": object{"parentRefs": list{object{"name": "g"}}, "rules": list{object{"matches": repeat(20, same(match))}}}})
		}),
		service("host names", func() list {
			return withRouter(object{"httproute": object{"parentRefs": list{object{"name": "g"}}, "hostnames": repeat(60_000, func(i int) any { return fmt.Sprintf("Host_%d", i) })}})
		}),
		service("parents of the route", func() list {
			return withRouter(object{"httproute": object{"parentRefs": repeat(40_000, named("g", nil))}})
		}),
		service("filters of the route", func() list {
			return withRouter(object{"httproute": object{"parentRefs": list{object{"name": "g"}}, "rules": list{object{"filters": repeat(30_000, same(object{"type": "RequestMirror"})), "backendRefs": repeat(20_000, named("b", nil))}}}})
		}),
		{Name: "rewrites and matches of the route, with adapters", Make: func() *fnv1.RunFunctionRequest {
			rewrite := object{"urlRewrite": object{"path": object{"replacePrefixMatch": "/"}}}
			rule := object{"matches": repeat(1000, same(object{})), "backendRefs": repeat(12, named("b", object{"filters": repeat(1000, same(rewrite))}))}
			return request(object{"adapterCache": object{"size": "20Gi"}, "roles": withRouter(object{"httproute": object{"parentRefs": list{object{"name": "g"}}, "rules": list{rule}}})})
		}},
		service("listeners", func() list {
			return withRouter(object{"gateway": object{"gatewayClassName": "istio", "listeners": repeat(20_000, func(i int) any {
				return object{"name": "Same", "port": 100_000 + i, "hostname": "x_y"}
			})}})
		}),
		service("models", func() list { return withRouter(object{"servedModels": repeat(40_000, named("m", nil))}) }),
		service("targets of models", func() list {
			return withRouter(object{"servedModels": list{object{"name": "m", "targets": repeat(30_000, named("t", object{"weight": -1}))}}})
		}),
		service("models at the limit", func() list {
			return withRouter(object{"servedModels": repeat(128, func(i int) any {
				return object{"name": fmt.Sprint("m", i), "targets": repeat(16, func(j int) any { return object{"name": text(250, "x") + strconv.Itoa(j)} })}
			})})
		}),
	}
}

func sizes() []Case {
	many := func(replicas, clusters int) func() object {
		return func() object {
			r := worker(nil)
			r["replicas"] = replicas
			return object{"roles": list{r}, "placement": object{"clusters": repeat(clusters, func(i int) any {
				return object{"name": fmt.Sprint("c", i), "providerConfigRef": object{"name": fmt.Sprint("c", i)}}
			})}}
		}
	}
	fleet := func(replicas, clusters int) func() object {
		return func() object {
			r := worker(nil)
			r["replicas"] = replicas
			return object{"roles": list{r}, "placement": object{"policy": "Spread", "clusters": repeat(clusters, func(i int) any {
				return object{"name": fmt.Sprint("c", i), "inferenceClusterRef": object{"name": fmt.Sprint("c", i)}}
			})}}
		}
	}
	return []Case{
		service("roles", func() list { return repeat(30_000, named("r", object{"componentType": "worker"})) }),
		service("roles that are null", func() list { return repeat(300_000, same(nil)) }),
		service("routers", func() list { return repeat(20_000, named("r", object{"componentType": "router"})) }),
		service("roles at the limit, with large templates", func() list {
			return repeat(32, func(i int) any {
				r := role("worker", object{"spec": object{"containers": repeat(60, func(j int) any {
					if j == 0 {
						return engine(nil)
					}
					return object{"name": fmt.Sprint("c", j), "image": "i", "args": repeat(100, same("a"))}
				})}})
				r["name"] = fmt.Sprint("r", i)
				return r
			})
		}),
		service("roles at the limit, with empty containers", func() list {
			return repeat(32, func(i int) any {
				r := role("worker", object{"spec": object{"containers": repeat(1000, same(object{})), "initContainers": repeat(1000, same(object{})), "ephemeralContainers": repeat(1000, same(object{})), "volumes": repeat(1000, same(object{}))}})
				r["name"], r["leaderTemplate"] = fmt.Sprint("r", i), r["template"]
				return r
			})
		}),
		service("replicas at the limit", func() list { r := worker(nil); r["replicas"] = 2000; return list{r} }),
		service("replicas with a large template", func() list {
			r := worker(object{"args": list{text(700_000, "x")}})
			r["replicas"] = 2000
			return list{r}
		}),
		withSpec("groups at the limit", func() object {
			return object{"replicas": 500, "roles": list{worker(nil)}}
		}),
		withSpec("groups of gangs", func() object {
			prefill, decode := role("prefiller", pod(nil)), role("decoder", pod(nil))
			prefill["name"], prefill["replicas"], decode["replicas"] = "p", 4, 4
			prefill["multinode"], decode["multinode"] = object{"nodeCount": 1024}, object{"nodeCount": 1024}
			return object{"replicas": 500, "roles": list{prefill, decode}}
		}),
		withSpec("replicas in clusters", many(128, 32)),
		withSpec("more replicas in clusters", many(2000, 32)),
		withSpec("replicas in the fleet", fleet(128, 32)),
		withSpec("more replicas in the fleet", fleet(2000, 32)),
		withSpec("clusters", many(1, 15_000)),
		withSpec("expressions of a selector", func() object {
			return object{"roles": list{worker(nil)}, "placement": object{"policy": "Spread", "clusterSelector": object{"matchExpressions": repeat(20_000, func(i int) any {
				return object{"key": fmt.Sprint("k", i), "operator": "In", "values": list{"a", "b"}}
			})}}}
		}),
		withSpec("values of a selector", func() object {
			return object{"roles": list{worker(nil)}, "placement": object{"policy": "Spread", "clusterSelector": object{"matchExpressions": list{object{"key": "k", "operator": "In", "values": repeat(100_000, func(i int) any { return fmt.Sprint("V ", i) })}}}}}
		}),
		withSpec("minimums of roles", func() object {
			return object{"roles": list{worker(nil)}, "schedulingStrategy": object{"gang": object{"minRoleReplicas": keys(50_000, "r", -1)}}}
		}),
	}
}

// observed is a Case of a service with these observed resources.
func observed(name string, resources func() map[string]object) Case {
	return Case{Name: name, Make: func() *fnv1.RunFunctionRequest {
		req := request(object{"roles": withRouter(nil)})
		req.Observed.Resources = map[string]*fnv1.Resource{}
		for key, o := range resources() {
			req.Observed.Resources[key] = &fnv1.Resource{Resource: structOf(o)}
		}
		return req
	}}
}

func required(name, requirement string, spec func() object, items func() list) Case {
	return Case{Name: name, Make: func() *fnv1.RunFunctionRequest {
		req := request(spec())
		req.RequiredResources = map[string]*fnv1.Resources{requirement: resources(items())}
		if requirement == require.Fleet {
			req.RequiredResources = fleet(items())
		}
		return req
	}}
}

// fleet is what a service reads of InferenceClusters.
func fleet(clusters list) map[string]*fnv1.Resources {
	all := map[string]*fnv1.Resources{require.Fleet: {}, require.Estimates: {}}
	for _, c := range clusters {
		told, err := profile.Offline("crossplane-system", valueOf(c).GetStructValue().AsMap())
		if err != nil {
			panic(err)
		}
		name := kube.Lookup(valueOf(c).GetStructValue(), "metadata", "name").GetStringValue()
		all[require.Answers(name)] = &fnv1.Resources{}
		for _, o := range told {
			s, to := valueOf(o).GetStructValue(), require.Answers(name)
			switch kube.Lookup(s, "metadata", "name").GetStringValue() {
			case profile.Name(name):
				to = require.Fleet
			case profile.EstimatesName(name):
				to = require.Estimates
			}
			all[to].Items = append(all[to].Items, &fnv1.Resource{Resource: s})
		}
	}
	return all
}

func resources(items list) *fnv1.Resources {
	all := &fnv1.Resources{}
	for _, i := range items {
		all.Items = append(all.Items, &fnv1.Resource{Resource: valueOf(i).GetStructValue()})
	}
	return all
}

func workload(i int, conditions list) object {
	return object{
		"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet",
		"metadata": object{"name": fmt.Sprint("hostile-a-", i), "namespace": "team-a"}, "status": object{"conditions": conditions},
	}
}

func observations() []Case {
	condition := func(i int) any {
		return object{"type": fmt.Sprint("T", i), "status": "False", "message": "m", "lastTransitionTime": "2026-03-01T12:00:00Z"}
	}
	container := named("c", object{"state": object{"waiting": object{"reason": "CrashLoopBackOff"}}})
	plain := func() object { return object{"roles": list{worker(nil)}} }
	return []Case{
		observed("observed resources", func() map[string]object {
			all := map[string]object{}
			for i := range 7000 {
				all[fmt.Sprint("leaderworkerset/a/", i)] = workload(i, nil)
			}
			return all
		}),
		observed("observed resources of unknown keys", func() map[string]object {
			all := map[string]object{}
			for i := range 6500 {
				all[fmt.Sprint("cluster/c", i, "/leaderworkerset/a/0")] = workload(i, nil)
			}
			return all
		}),
		observed("conditions of an observed resource", func() map[string]object {
			return map[string]object{"leaderworkerset/a/0": workload(0, repeat(14_000, condition))}
		}),
		observed("conditions that are null", func() map[string]object {
			return map[string]object{"leaderworkerset/a/0": workload(0, repeat(300_000, same(nil)))}
		}),
		observed("parents of an observed route", func() map[string]object {
			return map[string]object{"httproute": {
				"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": object{"name": "hostile", "namespace": "team-a"},
				"status": object{"parents": repeat(9_000, func(i int) any {
					return object{"parentRef": object{"name": strconv.Itoa(i)}, "conditions": list{condition(i)}}
				})},
			}}
		}),
		{Name: "subjects of an observed RoleBinding", Make: func() *fnv1.RunFunctionRequest {
			prefill, decode := role("prefiller", pod(nil)), role("decoder", pod(nil))
			prefill["name"], decode["name"] = "p", "d"
			req := request(object{"roles": list{prefill, decode, object{"name": "router", "componentType": "router", "strategy": "pd-disaggregation"}}})
			req.Observed.Resources = map[string]*fnv1.Resource{
				"leaderworkerset/p/0": {Resource: structOf(workload(0, nil))}, "leaderworkerset/d/0": {Resource: structOf(workload(1, nil))},
				"rolebinding/sidecar": {Resource: structOf(object{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": object{"name": "x", "namespace": "team-a"}, "subjects": repeat(20_000, func(i int) any {
					return object{"kind": "ServiceAccount", "name": fmt.Sprint("account-", i)}
				})})},
			}
			return req
		}},
		{Name: "endpoints of an observed PodMonitor", Make: func() *fnv1.RunFunctionRequest {
			input := openInput()
			input["monitoring"] = object{"podMonitors": object{}}
			req := request(plain())
			req.Input = structOf(input)
			req.Observed.Resources = map[string]*fnv1.Resource{
				"leaderworkerset/a/0": {Resource: structOf(workload(0, nil))},
				"podmonitor/role/a": {Resource: structOf(object{"apiVersion": "monitoring.coreos.com/v1", "kind": "PodMonitor", "metadata": object{"name": "x", "namespace": "team-a"}, "spec": object{"podMetricsEndpoints": repeat(8000, func(i int) any {
					return object{"relabelings": list{object{"sourceLabels": list{"__meta_kubernetes_pod_container_name"}, "regex": fmt.Sprint("c", i)}, object{"targetLabel": "__address__", "replacement": "$1:8000"}}}
				})}})},
			}
			return req
		}},
		{Name: "replicas of a long name that the last status had", Make: func() *fnv1.RunFunctionRequest {
			req := request(object{"roles": list{worker(nil)}, "placement": object{"policy": "Spread", "clusterSelector": object{}}})
			req.RequiredResources = map[string]*fnv1.Resources{require.Fleet: {}, require.Estimates: {}}
			req.GetObserved().GetComposite().GetResource().Fields["status"] = valueOf(object{"clusters": list{object{"name": "c", "state": "Placed", "assigned": list{object{"role": text(20_000, "x"), "indexes": repeat(50_000, func(i int) any { return i })}}}}})
			return req
		}},
		required("pods", "pods", plain, func() list {
			return repeat(2200, func(i int) any {
				return object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": fmt.Sprint("p", i), "labels": object{"fusioninfer.io/replica-index": "0", "fusioninfer.io/role-name": "a"}}, "status": object{"containerStatuses": repeat(3, container), "conditions": repeat(2, condition)}}
			})
		}),
		required("containers of a pod", "pods", plain, func() list {
			return list{object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": "p"}, "status": object{"containerStatuses": repeat(15_000, container)}}}
		}),
		required("clusters of the fleet", "fleet", func() object {
			return object{"roles": list{worker(nil)}, "placement": object{"policy": "Spread", "clusterSelector": object{}}}
		}, func() list {
			return repeat(1500, func(i int) any {
				return object{"apiVersion": "fusioninfer.io/v1alpha1", "kind": "InferenceCluster", "metadata": object{"name": fmt.Sprint("c", i)}, "spec": object{"providerConfigRef": object{"name": "c"}, "pools": list{object{"name": "p", "nodeCount": 1}}}, "status": object{"pools": list{object{"name": "p", "nodeCount": 5000, "capacity": object{"cpu": "1e100000"}, "free": list{object{"nodeCount": 1, "resources": object{"cpu": "1e300000000"}}}}}, "conditions": list{object{"type": "Schedulable", "status": "True"}}}}
			})
		}),
		required("replicas of many resources in many clusters", "fleet", func() object {
			r := worker(object{"resources": object{"limits": keys(60, "example.com/device-", "1")}})
			r["replicas"] = 2000
			return object{"roles": list{r}, "placement": object{"policy": "Spread", "clusterSelector": object{}}}
		}, func() list {
			return repeat(128, func(i int) any {
				pool := object{"name": "p", "nodeCount": 1000, "capacity": object{"cpu": "100"}}
				free := object{"name": "p", "nodeCount": 1000, "free": list{object{"nodeCount": 1000, "resources": object{"cpu": "100"}}}}
				return object{
					"apiVersion": "fusioninfer.io/v1alpha1", "kind": "InferenceCluster", "metadata": object{"name": fmt.Sprint("c", i)},
					"spec":   object{"providerConfigRef": object{"name": "c"}, "pools": list{pool}},
					"status": object{"pools": list{free}, "conditions": list{object{"type": "Schedulable", "status": "True"}}},
				}
			})
		}),
		{Name: "objects in many clusters", Make: func() *fnv1.RunFunctionRequest {
			r := worker(nil)
			r["replicas"] = 2000
			req := request(object{"roles": list{r}, "placement": object{"policy": "Spread", "clusterSelector": object{}}})
			req.Observed.Resources = map[string]*fnv1.Resource{}
			for i := range 6000 {
				req.Observed.Resources[fmt.Sprint("cluster/c", i, "/leaderworkerset/a/", i%2000)] = &fnv1.Resource{Resource: structOf(workload(i, nil))}
			}
			return req
		}},
		required("allocations of a cluster", "fleet", func() object {
			return object{"roles": list{worker(nil)}, "placement": object{"policy": "Spread", "clusterSelector": object{}}}
		}, func() list {
			return list{object{"apiVersion": "fusioninfer.io/v1alpha1", "kind": "InferenceCluster", "metadata": object{"name": "c"}, "status": object{"reservations": repeat(9_000, func(i int) any {
				return object{"uid": strconv.Itoa(i), "namespace": "n", "name": "n", "replicas": list{object{"role": "a", "indexes": list{0}}}, "pods": 1, "resources": object{"cpu": "1"}}
			})}}}
		}),
		required("replicas in a large fleet", require.Fleet, func() object {
			r := worker(nil)
			r["replicas"] = 2000
			return object{"roles": list{r}, "placement": object{"clusterSelector": object{}}}
		}, func() list {
			return repeat(200, func(i int) any {
				return object{"apiVersion": "fusioninfer.io/v1alpha1", "kind": "InferenceCluster", "metadata": object{"name": fmt.Sprint("c", i)}, "status": object{"pools": list{object{"name": "p"}}}}
			})
		}),
		{Name: "desired resources of another function", Make: func() *fnv1.RunFunctionRequest {
			req := request(plain())
			req.Desired = &fnv1.State{Resources: map[string]*fnv1.Resource{"theirs": {Resource: structOf(object{"list": repeat(300_000, same(nil))})}}}
			return req
		}},
		{Name: "claims with former weights", Make: func() *fnv1.RunFunctionRequest {
			const claims = 2000
			req := request(object{"roles": list{worker(object{"args": nil})}, "model": object{"uri": "hf://a/b", "cache": object{"size": "1Gi"}}})
			req.Observed.Resources = map[string]*fnv1.Resource{"leaderworkerset/a/0": {Resource: structOf(workload(0, nil))}}
			for i := range claims {
				name := fmt.Sprint("claim-", i)
				req.Observed.Resources[fmt.Sprintf("persistentvolumeclaim/%012d", i)] = &fnv1.Resource{Resource: structOf(object{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": object{"name": name, "namespace": "team-a", "uid": name}})}
			}
			req.GetObserved().GetComposite().GetResource().Fields["status"] = valueOf(object{"model": object{"caches": repeat(claims, func(i int) any {
				return object{"cluster": "", "claimName": fmt.Sprint("claim-", i), "weights": fmt.Sprintf("%012d", i), "state": "Ready", "claimUID": fmt.Sprint("claim-", i)}
			})}})
			return req
		}},
		{Name: "observed resources of many clusters", Make: func() *fnv1.RunFunctionRequest {
			req := request(object{"roles": list{worker(nil)}, "placement": object{"policy": "Spread", "clusterSelector": object{}}})
			req.RequiredResources = map[string]*fnv1.Resources{require.Fleet: {}, require.Estimates: {}}
			req.Observed.Resources = map[string]*fnv1.Resource{}
			for i := range 4000 {
				req.Observed.Resources[fmt.Sprint("cluster/c", i, "/leaderworkerset/a/0")] = &fnv1.Resource{Resource: structOf(workload(0, nil))}
			}
			return req
		}},
		{Name: "conditions of the service", Make: func() *fnv1.RunFunctionRequest {
			req := request(plain())
			req.GetObserved().GetComposite().GetResource().Fields["status"] = valueOf(object{"conditions": repeat(14_000, condition)})
			return req
		}},
	}
}
