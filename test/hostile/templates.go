package hostile

import (
	"fmt"
	"math"
	"strings"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
)

// limits returns the fields of a container with this CPU limit.
func limits(cpu any) object {
	return object{"resources": object{"limits": object{"cpu": cpu}}}
}

func quantities() []Case {
	return []Case{
		inContainer("quantity with a huge exponent", func() object { return limits("1e300000000") }),
		inContainer("quantity with a large exponent", func() object { return limits("1e100000") }),
		inContainer("quantity with a negative exponent", func() object { return limits("1e-300000000") }),
		inContainer("quantity with a million digits", func() object { return limits(text(1_400_000, "9")) }),
		inContainer("quantity with a million decimals", func() object { return limits("0." + text(1_400_000, "9")) }),
		inContainer("quantity that is a large number", func() object { return limits(math.MaxFloat64) }),
		inContainer("quantity that is no number", func() object { return limits(math.NaN()) }),
		inContainer("many quantities at the limit", func() object {
			return object{"resources": object{"limits": keys(900, "example.com/d", "123456789012345678e12"), "requests": keys(900, "example.com/d", "1e-30")}}
		}),
		inContainer("very many quantities", func() object {
			return object{"resources": object{"requests": keys(30_000, "example.com/d", "999999999999999999e18")}}
		}),
		inPod("quantities of sidecars, before many init containers", func() object {
			return object{"initContainers": repeat(980, func(i int) any {
				c := object{"name": fmt.Sprint("i", i), "image": "i"}
				if i < 16 {
					c["restartPolicy"], c["resources"] = "Always", object{"limits": keys(1000, fmt.Sprint("example.com/", i, "-"), "1")}
				}
				return c
			})}
		}),
		inPod("quantity of a volume", func() object {
			return object{"volumes": list{object{"name": "v", "emptyDir": object{"sizeLimit": "1e300000000"}}}}
		}),
		inPod("quantities of claims", func() object {
			return object{"volumes": repeat(500, func(i int) any {
				return object{"name": fmt.Sprint("v", i), "ephemeral": object{"volumeClaimTemplate": object{"spec": object{"resources": object{"requests": object{"storage": "1e99999"}}}}}}
			})}
		}),
		service("quantity of the router", func() list {
			return list{worker(nil), object{"name": "router", "componentType": "router", "endpointPicker": object{"resources": object{"limits": object{"cpu": "1e300000000"}}}}}
		}),
	}
}

func lists() []Case {
	return []Case{
		inContainer("list of nulls", func() object { return object{"args": repeat(300_000, same(nil))} }),
		inPod("containers that are null", func() object { return object{"containers": repeat(300_000, same(nil))} }),
		inPod("containers that are empty", func() object { return object{"containers": repeat(300_000, same(object{}))} }),
		inPod("containers by the thousand", func() object {
			return object{"containers": repeat(900, named("c", object{"image": "i"})), "initContainers": repeat(900, named("i", object{"image": "i"}))}
		}),
		service("annotations of containers, and containers, by the thousand", func() list {
			annotations := object{}
			for _, prefix := range []string{"container.apparmor.security.beta.kubernetes.io/", "container.seccomp.security.alpha.kubernetes.io/"} {
				for name, v := range keys(1000, prefix+"x", "x") {
					annotations[name] = v
				}
			}
			empty := repeat(60, same(object{}))
			return list{role("worker", object{"metadata": object{"annotations": annotations}, "spec": object{"containers": append(list{engine(nil)}, empty...), "initContainers": empty, "ephemeralContainers": empty}})}
		}),
		inPod("engines by the thousand", func() object { return object{"containers": repeat(20_000, named("vllm", object{"image": "vllm"}))} }),
		inContainer("variables that are numbers", func() object { return object{"env": repeat(120_000, same(1))} }),
		inContainer("variables without a name", func() object { return object{"env": repeat(200_000, same(object{}))} }),
		inContainer("variables of one name", func() object { return object{"env": repeat(70_000, same(object{"name": "A"}))} }),
		inContainer("variables", func() object { return object{"env": repeat(30_000, named("A", object{"value": "$(A0)"}))} }),
		inContainer("secrets", func() object {
			return object{"envFrom": repeat(25_000, func(i int) any { return object{"secretRef": object{"name": fmt.Sprint("s", i)}} })}
		}),
		inContainer("mounts", func() object {
			return object{"volumeMounts": repeat(20_000, func(i int) any {
				return object{"name": fmt.Sprint("v", i), "mountPath": fmt.Sprint("/v/../", i)}
			})}
		}),
		service("ports", func() list { return disaggregated(object{"ports": ports(8200, 53_000)}) }),
		service("ports of one number", func() list {
			return disaggregated(object{"ports": repeat(45_000, same(object{"containerPort": 8200}))})
		}),
		service("ports in many containers", func() list {
			decode := role("decoder", pod(nil))
			decode["template"] = object{"spec": object{"containers": repeat(60, func(i int) any {
				c := engine(object{"ports": ports(8200+700*i, 8200+700*(i+1))})
				if i > 0 {
					c["name"], c["args"] = fmt.Sprint("c", i), nil
				}
				return c
			})}}
			return decoding(decode)
		}),
		inPod("volumes with the name of ours", func() object {
			return object{"volumes": repeat(20_000, named("shared-memory-", object{"emptyDir": object{}}))}
		}),
		inPod("volumes of that name within the limit", func() object {
			return object{"volumes": append(list{object{"name": "shared-memory", "emptyDir": object{}}}, repeat(1000, named("shared-memory-", object{"emptyDir": object{}}))...)}
		}),
		inPod("sources of volumes", func() object {
			return object{"volumes": list{object{"name": "v", "projected": object{"sources": repeat(30_000, func(i int) any { return object{"secret": object{"name": fmt.Sprint("s", i)}} })}}}}
		}),
		inPod("tolerations", func() object { return object{"tolerations": repeat(40_000, same(object{"operator": "Exists"}))} }),
		inPod("pull secrets", func() object { return object{"imagePullSecrets": repeat(50_000, named("s", nil))} }),
		inPod("node labels", func() object { return object{"nodeSelector": keys(40_000, "example.com/label-", "v")} }),
		inPod("lists in lists", func() object {
			return object{"anything": repeat(500, same(repeat(300, same(repeat(1, same(nil))))))}
		}),
		service("labels of pods", func() list {
			t := pod(nil)
			t["metadata"] = object{"labels": keys(20_000, "example.com/label-", "v"), "annotations": keys(20_000, "example.com/Label ", "v")}
			return list{role("worker", t)}
		}),
	}
}

func ports(from, to int) list {
	return repeat(to-from+1, func(i int) any { return object{"containerPort": from + i} })
}

// disaggregated returns roles for prefill and decode. The decoder gets the routing sidecar.
func disaggregated(decoder object) list { return decoding(role("decoder", pod(decoder))) }

// decoding returns the roles of a service with this decoder.
func decoding(decode object) list {
	prefill := role("prefiller", pod(nil))
	prefill["name"] = "p"
	return list{prefill, decode, object{"name": "router", "componentType": "router", "strategy": "pd-disaggregation"}}
}

// multinode is a Case of a worker on two nodes, whose command the function rewrites.
func multinode(name string, container func() object) Case {
	return service(name, func() list {
		r := worker(container())
		r["multinode"] = object{"nodeCount": 2}
		return list{r}
	})
}

func script(s string) object { return object{"command": list{"sh", "-c"}, "args": list{s}} }

func texts() []Case {
	var all []Case
	for name, part := range map[string]string{
		"quotes": `'"`, "open quotes": `"`, "substitutions": "$(", "closed substitutions": "$(a)", "backticks": "`", "backslashes": `\`, "here documents": "cat <<A\n", "words": "a ", "separators": "a;", "pipes": "a|b&&",
		"assignments": "A=1 ", "variables": "${A:-${B}}", "comments": "#\n", "loops": "if a; then for b in c; do ", "engines": "vllm serve m;", "ray": "ray start --head;", "arguments": "--port 1 --port=1 ", "continuations": "a \\\n",
	} {
		all = append(all, multinode("script of "+name, func() object { return script("vllm serve m " + text(1_400_000, part)) }))
	}
	// Sorted by name, because the order of a map is random.
	for i := range all {
		for j := i; j > 0 && all[j].Name < all[j-1].Name; j-- {
			all[j], all[j-1] = all[j-1], all[j]
		}
	}
	return append(all,
		multinode("arguments with quotes", func() object { return object{"command": list{"vllm"}, "args": repeat(60_000, same(`--a "b' c"`))} }),
		multinode("arguments that are long", func() object { return object{"command": list{"vllm"}, "args": list{"serve", text(1_400_000, `"'`)}} }),
		inContainer("arguments that are mistyped", func() object { return object{"args": repeat(900, same("--port "+text(1_400, "'x' ")))} }),
		inContainer("arguments by the thousand", func() object { return object{"command": list{"vllm"}, "args": repeat(120_000, same("--port"))} }),
		inContainer("variables that expand", func() object {
			return object{"args": list{text(700_000, "$(A)")}, "env": list{object{"name": "A", "value": text(700_000, "$(A)")}}}
		}),
		service("ports in a script", func() list {
			return disaggregated(script("vllm serve m " + text(131_000, "--port=1 ")))
		}),
		service("scripts of many words", func() list {
			return repeat(10, func(i int) any {
				r := worker(script("vllm serve m " + text(131_000, "a ")))
				r["name"] = fmt.Sprint("r", i)
				return r
			})
		}),
		inContainer("references without an end", func() object { return object{"args": list{text(1_400_000, "$($$")}} }),
		inContainer("text that is no UTF-8", func() object { return object{"args": list{text(100_000, standIn)}} }),
		inContainer("image with a long name", func() object { return object{"image": text(1_400_000, "vllm/")} }),
		inContainer("container with a long name", func() object { return object{"name": text(1_400_000, "vllm-")} }),
		service("role with a long name", func() list { r := worker(nil); r["name"] = text(1_400_000, "a-"); return list{r} }),
		Case{Name: "service with a long name", Make: func() *fnv1.RunFunctionRequest {
			return about("InferenceService", object{"name": text(700_000, "a"), "namespace": text(700_000, "b")}, object{"roles": list{worker(nil)}})
		}},
		Case{Name: "labels of the service", Make: func() *fnv1.RunFunctionRequest {
			return about("InferenceService", object{"name": "hostile", "namespace": "team-a", "labels": keys(40_000, "example.com/label-", "v")}, object{"roles": list{worker(nil)}})
		}},
		service("types of every kind", func() list {
			return repeat(20_000, same(object{"name": 1, "componentType": list{}, "replicas": strings.Repeat("9", 10)}))
		}),
	)
}

func depths() []Case {
	var all []Case
	for _, n := range []int{90, 1000, 4900, 90_000} {
		all = append(all,
			inPod(fmt.Sprintf("lists %d deep", n), func() object { return object{"affinity": nested(n, true)} }),
			inPod(fmt.Sprintf("objects %d deep", n), func() object { return object{"anything": nested(n, false)} }),
		)
	}
	return append(all,
		withSpec("objects in the spec 4900 deep", func() object { return object{"roles": list{worker(nil)}, "anything": nested(4900, false)} }),
		service("route 4900 deep", func() list { return withRouter(object{"httproute": nested(4900, false)}) }),
		inContainer("numbers that are none", func() object {
			return object{"ports": list{object{"containerPort": math.Inf(1)}, object{"containerPort": math.NaN()}}, "anything": repeat(900, same(math.NaN()))}
		}),
		service("replicas that are no number", func() list { r := worker(nil); r["replicas"] = math.NaN(); return list{r} }),
		service("nodes that are infinite", func() list { r := worker(nil); r["multinode"] = object{"nodeCount": math.Inf(-1)}; return list{r} }),
	)
}
