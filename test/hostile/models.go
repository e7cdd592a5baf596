package hostile

import (
	"strconv"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/naming"
)

// model is a Case of an InferenceModel that holds its name, and of a service with a status. The case may change the
// request.
func model(name string, spec, status object, change func(req *fnv1.RunFunctionRequest)) Case {
	return Case{Name: "model: " + name, Make: func() *fnv1.RunFunctionRequest {
		all := object{"serviceName": "chat", "modelName": "m"}
		for k, v := range spec {
			all[k] = v
		}
		modelName, _ := all["modelName"].(string)
		req := about("InferenceModel", object{"name": "m", "namespace": "team-a", "uid": "2a2a2a2a-0000-4000-8000-000000000003", "generation": 1}, all)
		req.Observed.Resources = map[string]*fnv1.Resource{"configmap/model-name": {Resource: structOf(configMap("team-a", naming.ModelObject("chat-pool", modelName), "modelName", modelName))}}
		req.RequiredResources = map[string]*fnv1.Resources{
			"service": resources(list{object{"apiVersion": "fusioninfer.io/v1alpha1", "kind": "InferenceService", "metadata": object{"name": "chat", "namespace": "team-a", "uid": "of-chat"}, "status": status}}),
			"pool":    {},
			"pools":   {},
		}
		if change != nil {
			change(req)
		}
		return req
	}}
}

// ofModels are cases of InferenceModels, of which tenants may make many, and of services that belong to others.
func ofModels() []Case {
	names := func(n int) list {
		all := make(list, n)
		for i := range all {
			all[i] = "adapter-" + strconv.Itoa(i)
		}
		return all
	}
	served := func(n int) list {
		all := make(list, n)
		for i := range all {
			all[i] = object{"name": "model-" + strconv.Itoa(i)}
		}
		return all
	}
	targets := make(list, 1000)
	for i := range targets {
		targets[i] = object{"name": "t" + strconv.Itoa(i)}
	}
	return []Case{
		model("50,000 adapters in the status of its service", nil, object{"modelRouting": object{"adapterNames": names(50_000), "complete": true}}, nil),
		model("20,000 models in the status of its service", nil, object{"servedModels": served(20_000)}, nil),
		model("20,000 clusters in the status of its service", nil, object{"modelRouting": object{}, "clusters": served(20_000)}, nil),
		model("1,000 targets", object{"targets": targets}, nil, nil),
		model("a status of wrong types", nil, object{"modelRouting": "x", "clusters": object{}, "servedModels": 1, "conditions": list{1, list{}}}, nil),
		model("a name of slashes", object{"modelName": "///////"}, nil, nil),
		model("2,000 pools of others", nil, object{"modelRouting": object{}, "clusters": list{object{"name": "c", "state": "Placed"}}}, func(req *fnv1.RunFunctionRequest) {
			all := make(list, 2000)
			for i := range all {
				cluster := "c" + strconv.Itoa(i)
				all[i] = object{
					"apiVersion": "kubernetes.m.crossplane.io/v1alpha1", "kind": "Object",
					"metadata": object{"name": cluster, "namespace": "team-a", "annotations": object{"crossplane.io/composition-resource-name": "cluster/" + cluster + "/inferencepool"}},
					"spec":     object{"providerConfigRef": object{"name": cluster}, "forProvider": object{"manifest": object{"kind": "InferencePool", "metadata": object{"name": "chat-pool", "namespace": "team-a"}}}},
				}
			}
			req.RequiredResources["pools"] = resources(all)
		}),
	}
}
