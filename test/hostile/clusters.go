package hostile

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
)

// ledger is a ConfigMap with a compressed ledger.
func ledger(text string) object {
	b := &bytes.Buffer{}
	z := gzip.NewWriter(b)
	_, _ = z.Write([]byte(text)) // A buffer takes everything.
	_ = z.Close()
	o := configMap("crossplane-system", "inferencecluster-c", "", "")
	delete(o, "data")
	o["binaryData"] = object{"ledger": base64.StdEncoding.EncodeToString(b.Bytes())}
	return o
}

// cluster is a Case of an InferenceCluster whose requirements are resolved. The case may change
// the request.
func cluster(name string, spec object, change func(req *fnv1.RunFunctionRequest)) Case {
	return Case{Name: "cluster: " + name, Make: func() *fnv1.RunFunctionRequest {
		all := object{"providerConfigRef": object{"name": "c"}, "pools": list{object{"name": "p", "nodeCount": 100, "allocatable": object{"cpu": "64", "nvidia.com/gpu": "8"}}}}
		for k, v := range spec {
			all[k] = v
		}
		req := about("InferenceCluster", object{"name": "c", "uid": "2a2a2a2a-0000-4000-8000-000000000002", "generation": 1}, all)
		req.Observed.Resources = map[string]*fnv1.Resource{
			"ledger": {Resource: structOf(ledger("{}"))},
			"clusterobject/reachable": {Resource: structOf(object{
				"apiVersion": "kubernetes.crossplane.io/v1alpha2", "kind": "Object", "metadata": object{"name": "reachable"},
				"status": object{"conditions": list{object{"type": "Synced", "status": "True"}}, "atProvider": object{"manifest": object{"kind": "Namespace"}}},
			})},
		}
		req.Observed.Resources["object/reachable"] = req.GetObserved().GetResources()["clusterobject/reachable"]
		req.RequiredResources = map[string]*fnv1.Resources{"capacity-requests": {}}
		if change != nil {
			change(req)
		}
		return req
	}}
}

func configMap(namespace, name, key, text string) object {
	return object{
		"apiVersion": "v1", "kind": "ConfigMap", "data": object{key: text},
		"metadata": object{"name": name, "namespace": namespace, "resourceVersion": "1", "ownerReferences": list{object{"uid": uidOf(name), "controller": true}}},
	}
}

func uidOf(name string) string { return "uid-of-" + name }

// requesting is a Case of a cluster with one capacity request, which has this text.
func requesting(name string, text func() string) Case {
	return cluster("capacity request with "+name, nil, func(req *fnv1.RunFunctionRequest) {
		req.RequiredResources["capacity-requests"] = resources(list{configMap("team-a", "s", "request", text())})
	})
}

// capacityRequest is the text of a capacity request.
func capacityRequest(name, requirements, groups, more string) string {
	return fmt.Sprintf(`{"uid":%q,"namespace":"team-a","name":%q,"created":"2026-03-01T12:00:00Z","generation":1,"podRequirements":{%s},"clusters":[{"names":["c"],"namespace":"team-a","groups":[%s]%s}]}`, uidOf(name), name, requirements, groups, more)
}

const requirement = `"s":{"requests":{"nvidia.com/gpu":1000}}`

// joined returns n texts, separated by commas.
func joined(n int, of func(i int) string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = of(i)
	}
	return strings.Join(all, ",")
}

func group(i int) string {
	return fmt.Sprintf(`{"name":"u%d","replicas":[{"name":"a/%d","pods":{"s":1},"generation":1}]}`, i, i)
}

func clusters() []Case {
	node := func(i int, allocatable object) object {
		return object{
			"apiVersion": "kubernetes.crossplane.io/v1alpha2", "kind": "Object", "metadata": object{"name": fmt.Sprint("n", i)},
			"status": object{"conditions": list{object{"type": "Synced", "status": "True"}}, "atProvider": object{"manifest": object{
				"kind": "Node", "metadata": object{"name": fmt.Sprint("n", i), "labels": object{"a": "b"}},
				"status": object{"allocatable": allocatable, "conditions": list{object{"type": "Ready", "status": "True"}}},
			}}},
		}
	}
	observed := object{"pools": list{object{"name": "p", "nodeSelector": object{"a": "b"}}}}
	nodes := func(name string, items func() list) Case {
		return cluster("nodes "+name, observed, func(req *fnv1.RunFunctionRequest) {
			collection := object{
				"apiVersion": "kubernetes.crossplane.io/v1alpha1", "kind": "ObservedObjectCollection", "metadata": object{"name": "p"},
				"status": object{"membershipLabel": object{"a": "b"}, "conditions": list{object{"type": "Synced", "status": "True"}, object{"type": "Ready", "status": "True"}}},
			}
			for _, key := range []string{"object/nodes/p", "clusterobject/nodes/p"} {
				req.Observed.Resources[key] = &fnv1.Resource{Resource: structOf(collection)}
			}
			req.RequiredResources["nodes/p"] = resources(items())
			req.RequiredResources["capacity-requests"] = resources(list{configMap("team-a", "s", "request", capacityRequest("s", requirement, joined(500, group), ""))})
		})
	}
	return []Case{
		requesting("a million replica groups", func() string {
			return capacityRequest("s", requirement, joined(400_000, func(int) string { return "{}" }), "")
		}),
		requesting("replica groups", func() string { return capacityRequest("s", requirement, joined(19_000, group), "") }),
		requesting("replica groups, all or nothing", func() string { return capacityRequest("s", requirement, joined(19_000, group), `,"allOrNothing":true`) }),
		requesting("replicas of a group", func() string {
			return capacityRequest("s", requirement, `{"name":"u","replicas":[`+joined(25_000, func(i int) string { return fmt.Sprintf(`{"name":"a/%d","pods":{"s":1}}`, i) })+`]}`, "")
		}),
		requesting("running replicas", func() string {
			return capacityRequest("s", requirement, joined(9_000, group), `,"running":[`+joined(60_000, func(i int) string { return fmt.Sprintf(`"a/%d"`, i) })+`]`)
		}),
		requesting("pod requirements", func() string {
			return capacityRequest("s", joined(15_000, func(i int) string { return fmt.Sprintf(`"s%d":{"requests":{"nvidia.com/gpu":%d}}`, i, i) }), `{"name":"u","replicas":[{"name":"a/0","pods":{"s1":1}}]}`, "")
		}),
		requesting("pod requirements for each group", func() string {
			return capacityRequest("s", joined(7_000, func(i int) string { return fmt.Sprintf(`"s%d":{"requests":{"cpu":%d}}`, i, i) }),
				joined(7_000, func(i int) string {
					return fmt.Sprintf(`{"name":"u%d","replicas":[{"name":"a/%d","pods":{"s%d":1}}]}`, i, i, i)
				}), "")
		}),
		requesting("all pod requirements in one replica", func() string {
			return capacityRequest("s", joined(15_000, func(i int) string { return fmt.Sprintf(`"s%d":{"requests":{"cpu":%d}}`, i, i) }),
				`{"name":"u","replicas":[{"name":"a/0","pods":{`+joined(15_000, func(i int) string { return fmt.Sprintf(`"s%d":1`, i) })+`}}]}`, "")
		}),
		requesting("requirements with many labels in each replica", func() string {
			return capacityRequest("s", joined(128, func(i int) string {
				return fmt.Sprintf(`"%d":{"requests":{"cpu":1},"nodeSelector":{"k":"%d",%s}}`, i, i, joined(255, func(i int) string { return fmt.Sprintf(`"k%d":"v"`, i) }))
			}), joined(3000, func(i int) string {
				return fmt.Sprintf(`{"name":"u%d","replicas":[{"name":"a/%d","pods":{%s}}]}`, i, i, joined(4, func(j int) string { return fmt.Sprintf(`"%d":1`, (i+32*j)%128) }))
			}), "")
		}),
		requesting("all requirements in each replica", func() string {
			return capacityRequest("s", joined(128, func(i int) string {
				return fmt.Sprintf(`"%d":{"requests":{"cpu":%d}}`, i, i)
			}), joined(840, func(i int) string {
				return fmt.Sprintf(`{"name":"u%d","replicas":[{"name":"a/%d","pods":{%s}}]}`, i, i, joined(128, func(j int) string { return fmt.Sprintf(`"%d":1`, j) }))
			}), "")
		}),
		requesting("labels of nodes", func() string {
			return capacityRequest("s", `"s":{"requests":{"cpu":1},"nodeSelector":{`+joined(40_000, func(i int) string { return fmt.Sprintf(`"k%d":"v"`, i) })+`}}`, group(0), "")
		}),
		requesting("huge numbers", func() string {
			return capacityRequest("s", `"s":{"requests":{"cpu":9223372036854775807}}`, joined(1000, group), "")
		}),
		requesting("a number with a huge exponent", func() string { return capacityRequest("s", `"s":{"requests":{"cpu":1e300000000}}`, group(0), "") }),
		requesting("clusters", func() string {
			return `{"uid":"u","namespace":"team-a","name":"s","clusters":{` + joined(30_000, func(i int) string { return fmt.Sprintf(`"c%d":{"namespace":"team-a"}`, i) }) + `}}`
		}),
		requesting("entries of clusters", func() string {
			return `{"uid":"u","namespace":"team-a","name":"s","clusters":[` + joined(30_000, func(i int) string { return fmt.Sprintf(`{"names":["c%d"],"namespace":"team-a"}`, i) }) + `]}`
		}),
		cluster("capacity requests of many clusters", nil, func(req *fnv1.RunFunctionRequest) {
			names := joined(1000, func(i int) string { return fmt.Sprintf(`"c%d"`, i) })
			req.RequiredResources["capacity-requests"] = resources(repeat(170, func(i int) any {
				name := fmt.Sprint("s", i)
				return configMap("team-a", name, "request", fmt.Sprintf(`{"uid":%q,"namespace":"team-a","name":%q,"podRequirements":{%s},"clusters":[{"names":["c",%s],"namespace":"team-a","groups":[%s]}]}`,
					uidOf(name), name, requirement, names, joined(16, group)))
			}))
		}),
		requesting("lists in lists", func() string { return `{"uid":` + text(700_000, "[") + text(700_000, "]") + `}` }),
		requesting("objects in objects", func() string { return text(1_400_000, `{"a":`) }),
		requesting("a long name", func() string { return capacityRequest(text(700_000, "x"), requirement, group(0), "") }),
		cluster("capacity requests", nil, func(req *fnv1.RunFunctionRequest) {
			req.RequiredResources["capacity-requests"] = resources(repeat(2800, func(i int) any {
				name := fmt.Sprint("s", i)
				return configMap("team-a", name, "request", capacityRequest(name, requirement, group(0), ""))
			}))
		}),
		cluster("capacity requests that cannot be read", nil, func(req *fnv1.RunFunctionRequest) {
			req.RequiredResources["capacity-requests"] = resources(repeat(6000, func(i int) any { return configMap("team-a", fmt.Sprint("s", i), "request", "{") }))
		}),
		cluster("ledger that is full", nil, func(req *fnv1.RunFunctionRequest) {
			services := `{"services":[` + joined(5000, func(i int) string {
				return fmt.Sprintf(`{"uid":"u%d","namespace":"team-a","name":"s%d","shapes":[{"requests":{"cpu":1000}}],"grants":[{"pods":[1],"replicas":["a/0","a/1"]}]}`, i, i)
			}) + `]}`
			req.Observed.Resources["ledger"] = &fnv1.Resource{Resource: structOf(ledger(services))}
			req.RequiredResources["capacity-requests"] = resources(repeat(800, func(i int) any {
				name := fmt.Sprint("s", i)
				return configMap("team-a", name, "request", capacityRequest(name, requirement, group(0), ""))
			}))
		}),
		cluster("capacity request whose packing searches all ways", object{"pools": repeat(12, func(i int) any {
			return object{"name": fmt.Sprint("p", i), "nodeCount": 1, "allocatable": object{"nvidia.com/gpu": strconv.Itoa(80 + i)}}
		})}, func(req *fnv1.RunFunctionRequest) {
			req.RequiredResources["capacity-requests"] = resources(list{configMap("team-a", "s", "request", capacityRequest("s", `"s":{"requests":{"nvidia.com/gpu":60000}},"t":{"requests":{"nvidia.com/gpu":1}}`, joined(4000, func(i int) string {
				return fmt.Sprintf(`{"name":"u%d","replicas":[{"name":"a/%d","pods":{"s":%d,"t":%d}}]}`, i, i, 13+i/1000, i%1000)
			}), ""))})
		}),
		cluster("pods that have changed", object{"pools": list{object{"name": "p", "nodeCount": 5000, "allocatable": object{"cpu": "64", "nvidia.com/gpu": "8"}}}}, func(req *fnv1.RunFunctionRequest) {
			services := `{"services":[` + joined(2000, func(i int) string {
				return fmt.Sprintf(`{"uid":"uid-of-s%d","namespace":"team-a","name":"s%d","shapes":[{"requests":{"cpu":%d}}],"grants":[{"pods":[1],"replicas":["a/0"]}]}`, i, i, 2000+i)
			}) + `]}`
			req.Observed.Resources["ledger"] = &fnv1.Resource{Resource: structOf(ledger(services))}
			req.RequiredResources["capacity-requests"] = resources(repeat(2000, func(i int) any {
				name := fmt.Sprint("s", i)
				return configMap("team-a", name, "request", capacityRequest(name, fmt.Sprintf(`"s":{"requests":{"cpu":%d}}`, 3000+i), group(0), ""))
			}))
		}),
		cluster("pods that have changed, and do not fit", object{"pools": list{object{"name": "p", "nodeCount": 60, "allocatable": object{"cpu": "64", "nvidia.com/gpu": "8"}}}}, func(req *fnv1.RunFunctionRequest) {
			services := `{"services":[` + joined(2000, func(i int) string {
				return fmt.Sprintf(`{"uid":"uid-of-s%d","namespace":"team-a","name":"s%d","shapes":[{"requests":{"cpu":%d}}],"grants":[{"pods":[1],"replicas":["a/0"]}]}`, i, i, 1000+i)
			}) + `]}`
			req.Observed.Resources["ledger"] = &fnv1.Resource{Resource: structOf(ledger(services))}
			req.RequiredResources["capacity-requests"] = resources(repeat(2000, func(i int) any {
				name := fmt.Sprint("s", i)
				return configMap("team-a", name, "request", capacityRequest(name, fmt.Sprintf(`"s":{"requests":{"cpu":%d}}`, 3000+i), group(0), ""))
			}))
		}),
		cluster("ledger with one reservation of many replicas", nil, func(req *fnv1.RunFunctionRequest) {
			services := `{"services":[{"uid":"u","namespace":"team-a","name":"s","shapes":[{"requests":{"cpu":1}}],"grants":[{"pods":[1],"replicas":[` + joined(60_000, func(i int) string { return fmt.Sprintf(`"a/%d"`, i) }) + `]}]}]}`
			req.Observed.Resources["ledger"] = &fnv1.Resource{Resource: structOf(ledger(services))}
		}),
		cluster("ledger that is compressed a thousand times", nil, func(req *fnv1.RunFunctionRequest) {
			req.Observed.Resources["ledger"] = &fnv1.Resource{Resource: structOf(ledger(text(64<<20, " ")))}
		}),
		nodes("of one kind", func() list {
			return repeat(3500, func(i int) any { return node(i, object{"nvidia.com/gpu": "8"}) })
		}),
		nodes("that are all different", func() list {
			return repeat(2800, func(i int) any { return node(i, object{"nvidia.com/gpu": strconv.Itoa(8 + i), "cpu": strconv.Itoa(i)}) })
		}),
		nodes("with odd quantities", func() list {
			return repeat(2500, func(i int) any {
				return node(i, object{"cpu": []string{"1e300000000", "1e100000", "-1", "0." + text(80, "1"), "NaN", "9e99"}[i%6]})
			})
		}),
		nodes("with many resources", func() list {
			return repeat(30, func(i int) any { return node(i, keys(1000, "example.com/d", strconv.Itoa(i))) })
		}),
		cluster("pools", object{"pools": repeat(15_000, named("p", object{"nodeCount": 1, "allocatable": object{"cpu": "1"}}))}, nil),
		cluster("resources of a pool", object{"pools": list{object{"name": "p", "nodeCount": 5000, "allocatable": keys(30_000, "example.com/d", "9e18")}}}, nil),
		cluster("pool with a huge quantity", object{"pools": list{object{"name": "p", "nodeCount": 5000, "allocatable": object{"cpu": "1e300000000"}}}}, nil),
		cluster("stop message", object{"stopPolicy": "Drain", "stopMessage": strings.Repeat("x", 1_000_000)}, nil),
	}
}

func inputs() []Case {
	with := func(name string, input func() object) Case {
		return Case{Name: "input: " + name, Make: func() *fnv1.RunFunctionRequest {
			req := request(object{"roles": withRouter(nil)})
			all := openInput()
			for k, v := range input() {
				all[k] = v
			}
			req.Input = structOf(all)
			return req
		}}
	}
	return []Case{
		with("quantity", func() object {
			return object{"sidecar": object{"resources": object{"limits": object{"cpu": "1e300000000"}}}}
		}),
		with("labels", func() object { return object{"labels": keys(40_000, "Label ", "v")} }),
		with("nulls", func() object { return object{"policies": repeat(300_000, same(nil))} }),
	}
}
