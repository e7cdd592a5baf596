package hostile

import (
	"strconv"
	"strings"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
)

// cached is a Case of a service that names a ModelCache with this status, which whoever may write it has made.
func cached(name string, spec, status any) Case {
	return Case{Name: "cache: " + name, Make: func() *fnv1.RunFunctionRequest {
		req := about("InferenceService", object{"name": "chat", "namespace": "team-a", "uid": "2a2a2a2a-0000-4000-8000-000000000004", "generation": 1}, object{
			"model":     object{"cacheRef": object{"name": "qwen"}},
			"placement": object{"policy": "Spread", "clusterSelector": object{}},
			"roles":     list{object{"name": "w", "componentType": "worker", "template": object{"spec": object{"containers": list{object{"name": "vllm", "image": "vllm"}}}}}},
		})
		req.RequiredResources = map[string]*fnv1.Resources{"model-cache": resources(list{object{
			"apiVersion": "fusioninfer.io/v1alpha1", "kind": "ModelCache", "metadata": object{"name": "qwen", "namespace": "team-a", "uid": "of-qwen"}, "spec": spec, "status": status,
		}})}
		return req
	}}
}

// ofCaches are cases of ModelCaches, and of services that name one.
func ofCaches() []Case {
	many, names := make(list, 8_000), make(list, 8_000)
	for i := range many {
		names[i] = "c" + strconv.Itoa(i)
		many[i] = object{"cluster": "c" + strconv.Itoa(i), "claimName": "qwen", "weights": "w", "state": "Ready", "message": strings.Repeat("x", 64)}
	}
	known := func(caches any) object {
		return object{"modelName": "qwen", "claimName": "qwen", "directory": "qwen", "caches": caches}
	}
	spec := object{"uri": "hf://a/b", "size": "1Gi"}
	self := func(name string, of object) Case {
		return Case{Name: "cache: " + name, Make: func() *fnv1.RunFunctionRequest {
			return about("ModelCache", object{"name": "qwen", "namespace": "team-a", "uid": "2a2a2a2a-0000-4000-8000-000000000005", "generation": 1}, of)
		}}
	}
	return []Case{
		cached("8,000 clusters in the status", spec, known(many)),
		cached("8,000 clusters in the spec", object{"clusters": names}, known(list{})),
		cached("a status of wrong types", 1, object{"modelName": list{}, "claimName": 1, "caches": object{}}),
		cached("a directory of slashes", spec, object{"modelName": "m", "claimName": "c", "directory": strings.Repeat("/", 1<<20)}),
		cached("a command in the name of the model", spec, object{"modelName": "--trust-remote-code", "claimName": "c", "directory": "d"}),
		self("8,000 clusters", object{"uri": "hf://a/b", "size": "1Gi", "clusters": names}),
		self("8,000 tolerations", object{"uri": "hf://a/b", "size": "1Gi", "tolerations": many}),
		self("wrong types", object{"uri": 1, "size": object{}, "clusters": "x", "clusterSelector": list{}}),
		self("a URI of a megabyte", object{"uri": "hf://" + strings.Repeat("a", 1<<20), "size": "1Gi"}),
		self("a size without end", object{"uri": "hf://a/b", "size": strings.Repeat("9", 1<<16)}),
	}
}
