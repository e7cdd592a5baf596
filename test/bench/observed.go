package main

import (
	"crypto/sha256"
	"fmt"
	"hash/fnv"
	"maps"
	"strings"
)

// The times that controllers left behind. They are fixed, so that the same
// workload has the same bytes in each run.
const (
	applied  = "2026-05-04T09:12:44Z"
	reported = "2026-05-04T09:21:07Z"
)

type object = map[string]any

// observed returns a desired object as an API server returns it once everything
// is ready: with defaults, metadata, status, and the managed fields of Crossplane
// and of the kind's own controller.
func observed(key string, desired, xr object) object {
	o := clone(desired)
	crossplane := manager(o, "apiextensions.crossplane.io/composed/"+digest(key), "Apply", "", applied)
	kind, _ := o["kind"].(string)
	complete(o, kind)
	meta := child(o, "metadata")
	name, _ := meta["name"].(string)
	meta["uid"] = uid(kind + name)
	meta["resourceVersion"] = "48211907"
	meta["creationTimestamp"] = applied
	if _, ok := o["spec"]; ok {
		meta["generation"] = 1
	}
	child(meta, "annotations")["crossplane.io/composition-resource-name"] = key
	child(meta, "labels")["crossplane.io/composite"] = lookup(xr, "metadata", "name")
	meta["ownerReferences"] = []any{object{
		"apiVersion": xr["apiVersion"], "kind": xr["kind"],
		"name": lookup(xr, "metadata", "name"), "uid": lookup(xr, "metadata", "uid"),
		"controller": true, "blockOwnerDeletion": true,
	}}
	managers := []any{crossplane}
	if status, ok := o["status"]; ok {
		c := object{"apiVersion": o["apiVersion"], "status": status}
		managers = append(managers, manager(c, controllers[kind], "Update", "status", reported))
	}
	meta["managedFields"] = managers
	return o
}

// controllers are who writes the status of a kind.
var controllers = map[string]string{
	"Deployment":      "kube-controller-manager",
	"Gateway":         "pilot-discovery",
	"HTTPRoute":       "pilot-discovery",
	"InferencePool":   "pilot-discovery",
	"LeaderWorkerSet": "manager",
	"Pod":             "kubelet",
	"PodGroup":        "vc-scheduler",
	"Service":         "kube-controller-manager",
}

// complete adds the defaults and the status that a kind gets.
func complete(o object, kind string) {
	spec := child(o, "spec")
	switch kind {
	case "LeaderWorkerSet":
		completeLeaderWorkerSet(o, spec)
	case "PodGroup":
		spec["queue"] = "default"
		o["status"] = object{
			"phase": "Running", "running": spec["minMember"],
			"conditions": []any{object{
				"type": "Scheduled", "status": "True", "reason": "tasks in gang are ready to be scheduled",
				"lastTransitionTime": applied, "transitionID": uid(kind),
			}},
		}
	case "Deployment":
		completeDeployment(o, spec)
	case "Service":
		maps.Copy(spec, object{
			"clusterIP": "10.96.114.201", "clusterIPs": []any{"10.96.114.201"}, "internalTrafficPolicy": "Cluster",
			"ipFamilies": []any{"IPv4"}, "ipFamilyPolicy": "SingleStack", "sessionAffinity": "None",
		})
		o["status"] = object{"loadBalancer": object{}}
	case "InferencePool":
		maps.Copy(child(spec, "endpointPickerRef"), object{"group": "", "kind": "Service"})
		o["status"] = object{"parents": []any{object{
			"parentRef":  object{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "deepseek-r1-gateway", "namespace": "default"},
			"conditions": []any{condition("Accepted", "True", "Accepted", "Referenced by an HTTPRoute"), condition("ResolvedRefs", "True", "ResolvedRefs", "Referenced ExtensionRef resolved successfully")},
		}}}
	case "HTTPRoute":
		completeRoute(o, spec)
	case "Gateway":
		completeGateway(o, spec)
	default:
		if len(spec) == 0 {
			delete(o, "spec")
		}
	}
}

func completeLeaderWorkerSet(o, spec object) {
	template := child(spec, "leaderWorkerTemplate")
	for _, t := range []string{"leaderTemplate", "workerTemplate"} {
		if pod, ok := template[t].(object); ok {
			defaultProtocols(child(pod, "spec"))
		}
	}
	maps.Copy(spec, object{
		"networkConfig": object{"subdomainPolicy": "Shared"},
		"rolloutStrategy": object{
			"type":                       "RollingUpdate",
			"rollingUpdateConfiguration": object{"maxSurge": 0, "maxUnavailable": 1, "partition": 0},
		},
		"startupPolicy": "LeaderCreated",
	})
	name, _ := lookup(o, "metadata", "name").(string)
	o["status"] = object{
		"replicas": 1, "readyReplicas": 1, "updatedReplicas": 1, "observedGeneration": 1,
		"hpaPodSelector": "leaderworkerset.sigs.k8s.io/name=" + name + ",leaderworkerset.sigs.k8s.io/worker-index=0",
		"conditions": []any{
			condition("Available", "True", "AllGroupsReady", "All replicas are ready"),
			condition("Progressing", "False", "GroupsProgressing", "Replicas are progressing"),
			condition("UpdateInProgress", "False", "GroupsUpdating", "Rolling Upgrade is in progress"),
		},
	}
}

func completeDeployment(o, spec object) {
	maps.Copy(spec, object{"progressDeadlineSeconds": 600, "revisionHistoryLimit": 10})
	defaultPod(child(spec, "template", "spec"))
	child(o, "metadata", "annotations")["deployment.kubernetes.io/revision"] = "1"
	n := spec["replicas"]
	o["status"] = object{
		"observedGeneration": 1, "replicas": n, "updatedReplicas": n, "readyReplicas": n, "availableReplicas": n,
		"conditions": []any{
			object{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable", "message": "Deployment has minimum availability.", "lastTransitionTime": reported, "lastUpdateTime": reported},
			object{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable", "message": "ReplicaSet \"deepseek-r1-epp-7c9f6d8b5\" has successfully progressed.", "lastTransitionTime": applied, "lastUpdateTime": reported},
		},
	}
}

func completeRoute(o, spec object) {
	refs, _ := spec["parentRefs"].([]any)
	parents := make([]any, 0, len(refs))
	for _, r := range refs {
		ref, _ := r.(object)
		maps.Copy(ref, object{"group": "gateway.networking.k8s.io", "kind": "Gateway"})
		parents = append(parents, object{
			"parentRef": clone(ref), "controllerName": "istio.io/gateway-controller",
			"conditions": []any{condition("Accepted", "True", "Accepted", "Route was valid"), condition("ResolvedRefs", "True", "ResolvedRefs", "All references resolved")},
		})
	}
	rules, _ := spec["rules"].([]any)
	for _, r := range rules {
		rule, _ := r.(object)
		rule["matches"] = []any{object{"path": object{"type": "PathPrefix", "value": "/"}}}
		backends, _ := rule["backendRefs"].([]any)
		for _, b := range backends {
			backend, _ := b.(object)
			backend["weight"] = 1
		}
	}
	o["status"] = object{"parents": parents}
}

func completeGateway(o, spec object) {
	listeners, _ := spec["listeners"].([]any)
	states := make([]any, 0, len(listeners))
	for _, l := range listeners {
		listener, _ := l.(object)
		listener["allowedRoutes"] = object{"namespaces": object{"from": "Same"}}
		states = append(states, object{
			"name": listener["name"], "attachedRoutes": 1,
			"supportedKinds": []any{object{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute"}, object{"group": "gateway.networking.k8s.io", "kind": "GRPCRoute"}},
			"conditions": []any{
				condition("Accepted", "True", "Accepted", "No errors found"), condition("Conflicted", "False", "NoConflicts", "No errors found"),
				condition("Programmed", "True", "Programmed", "No errors found"), condition("ResolvedRefs", "True", "ResolvedRefs", "No errors found"),
			},
		})
	}
	o["status"] = object{
		"addresses": []any{object{"type": "IPAddress", "value": "203.0.113.17"}},
		"conditions": []any{
			condition("Accepted", "True", "Accepted", "Resource accepted"),
			condition("Programmed", "True", "Programmed", "Resource programmed, assigned to service(s) deepseek-r1-gateway-istio.default.svc.cluster.local:80"),
		},
		"listeners": states,
	}
}

func condition(kind, status, reason, message string) object {
	return object{"type": kind, "status": status, "reason": reason, "message": message, "observedGeneration": 1, "lastTransitionTime": reported}
}

// defaultPod adds what the API server adds to a pod's spec.
func defaultPod(spec object) {
	addMissing(spec, object{
		"dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "schedulerName": "default-scheduler",
		"securityContext": object{}, "terminationGracePeriodSeconds": 30,
	})
	if name, ok := spec["serviceAccountName"]; ok {
		spec["serviceAccount"] = name
	}
	defaultProtocols(spec)
	for _, c := range containers(spec) {
		addMissing(c, object{
			"imagePullPolicy": "IfNotPresent", "resources": object{},
			"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
		})
		for _, name := range []string{"readinessProbe", "livenessProbe", "startupProbe"} {
			probe, ok := c[name].(object)
			if !ok {
				continue
			}
			addMissing(probe, object{"failureThreshold": 3, "periodSeconds": 10, "successThreshold": 1, "timeoutSeconds": 1})
			if get, ok := probe["httpGet"].(object); ok {
				addMissing(get, object{"scheme": "HTTP"})
			}
		}
		env, _ := c["env"].([]any)
		for _, e := range env {
			if ref, ok := lookup(e, "valueFrom", "fieldRef").(object); ok {
				addMissing(ref, object{"apiVersion": "v1"})
			}
		}
	}
	volumes, _ := spec["volumes"].([]any)
	for _, v := range volumes {
		if source, ok := lookup(v, "configMap").(object); ok {
			addMissing(source, object{"defaultMode": 420})
		}
	}
}

// defaultProtocols is the one default that the schema of LeaderWorkerSets has too.
func defaultProtocols(spec object) {
	for _, c := range containers(spec) {
		ports, _ := c["ports"].([]any)
		for _, p := range ports {
			port, _ := p.(object)
			addMissing(port, object{"protocol": "TCP"})
		}
	}
}

func containers(spec object) []object {
	var all []object
	for _, list := range []string{"initContainers", "containers"} {
		l, _ := spec[list].([]any)
		for _, e := range l {
			c, _ := e.(object)
			all = append(all, c)
		}
	}
	return all
}

func addMissing(o, extra object) {
	for k, v := range extra {
		if _, ok := o[k]; !ok {
			o[k] = v
		}
	}
}

// manager is an entry of managedFields.
func manager(o object, name, operation, subresource, at string) object {
	owned := object{}
	for k, v := range o {
		if k != "apiVersion" && k != "kind" {
			owned[k] = v
		}
	}
	if meta, ok := owned["metadata"].(object); ok {
		meta = maps.Clone(meta)
		delete(meta, "name")
		delete(meta, "namespace")
		owned["metadata"] = meta
	}
	m := object{
		"manager": name, "operation": operation, "apiVersion": o["apiVersion"], "time": at,
		"fieldsType": "FieldsV1", "fieldsV1": fields(owned),
	}
	if subresource != "" {
		m["subresource"] = subresource
	}
	return m
}

// mergeKeys tell the elements of a list apart, by the list's field. Other lists
// are owned as a whole.
var mergeKeys = map[string][]string{
	"conditions":      {"type"},
	"containers":      {"name"},
	"env":             {"name"},
	"initContainers":  {"name"},
	"listeners":       {"name"},
	"ownerReferences": {"uid"},
	"ports":           {"containerPort", "protocol"},
	"volumeMounts":    {"mountPath"},
	"volumes":         {"name"},
}

// fields is the FieldsV1 form of what an object sets.
func fields(v any) object {
	f := object{}
	o, _ := v.(object)
	for name, e := range o {
		switch t := e.(type) {
		case object:
			f["f:"+name] = fields(t)
		case []any:
			f["f:"+name] = elements(name, t)
		default:
			f["f:"+name] = object{}
		}
	}
	return f
}

func elements(list string, values []any) object {
	f := object{}
	keys, ok := mergeKeys[list]
	if !ok {
		return f
	}
	for _, v := range values {
		e, _ := v.(object)
		parts := make([]string, 0, len(keys))
		for _, k := range keys {
			if s, ok := e[k].(string); ok {
				parts = append(parts, fmt.Sprintf("%q:%q", k, s))
			} else if e[k] != nil {
				parts = append(parts, fmt.Sprintf("%q:%v", k, e[k]))
			}
		}
		own := fields(e)
		own["."] = object{}
		f["k:{"+strings.Join(parts, ",")+"}"] = own
	}
	return f
}

// child returns the object at a path, which it makes if it is missing.
func child(o object, path ...string) object {
	for _, p := range path {
		c, ok := o[p].(object)
		if !ok {
			c = object{}
			o[p] = c
		}
		o = c
	}
	return o
}

func lookup(v any, path ...string) any {
	for _, p := range path {
		o, _ := v.(object)
		v = o[p]
	}
	return v
}

func clone[T any](v T) T {
	c, _ := copyOf(v).(T)
	return c
}

func copyOf(v any) any {
	switch t := v.(type) {
	case object:
		c := make(object, len(t))
		for k, e := range t {
			c[k] = copyOf(e)
		}
		return c
	case []any:
		c := make([]any, len(t))
		for i, e := range t {
			c[i] = copyOf(e)
		}
		return c
	}
	return v
}

func digest(s string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(s))) }

func uid(s string) string {
	h := fnv.New128a()
	_, _ = h.Write([]byte(s))
	b := h.Sum(nil)
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:16])
}
