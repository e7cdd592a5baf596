package main

import (
	"fmt"
	"maps"
	"strconv"
)

// pods returns the running pods of a LeaderWorkerSet, as the API server returns
// them.
func pods(lws object) []object {
	size, _ := lookup(lws, "spec", "leaderWorkerTemplate", "size").(float64)
	all := make([]object, 0, int(size))
	for i := range int(size) {
		all = append(all, pod(lws, i, int(size)))
	}
	return all
}

func pod(lws object, index, size int) object {
	name, _ := lookup(lws, "metadata", "name").(string)
	namespace := lookup(lws, "metadata", "namespace")
	template, ok := lookup(lws, "spec", "leaderWorkerTemplate", "leaderTemplate").(object)
	owner, podName := object{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": name, "uid": uid(name), "controller": true, "blockOwnerDeletion": true}, name+"-0"
	if index > 0 || !ok {
		template, _ = lookup(lws, "spec", "leaderWorkerTemplate", "workerTemplate").(object)
	}
	if index > 0 {
		podName = fmt.Sprintf("%s-0-%d", name, index)
		owner["name"] = name + "-0"
	}
	p := clone(template)
	p["apiVersion"], p["kind"] = "v1", "Pod"
	maps.Copy(child(p, "metadata", "labels"), object{
		"apps.kubernetes.io/pod-index": strconv.Itoa(index), "controller-revision-hash": name + "-6f4b9d7c8",
		"leaderworkerset.sigs.k8s.io/group-index": "0", "leaderworkerset.sigs.k8s.io/group-key": digest(name)[:40],
		"leaderworkerset.sigs.k8s.io/name": name, "leaderworkerset.sigs.k8s.io/worker-index": strconv.Itoa(index),
		"leaderworkerset.sigs.k8s.io/template-revision-hash": digest(name)[:10], "statefulset.kubernetes.io/pod-name": podName,
	})
	maps.Copy(child(p, "metadata", "annotations"), object{"leaderworkerset.sigs.k8s.io/size": strconv.Itoa(size)})
	spec := child(p, "spec")
	runOnNode(spec, podName, name, size, index)
	made := manager(p, "kube-controller-manager", "Update", "", applied)
	p["status"] = podStatus(spec, podName)
	told := manager(object{"apiVersion": "v1", "status": p["status"]}, "kubelet", "Update", "status", reported)
	maps.Copy(child(p, "metadata"), object{
		"name": podName, "namespace": namespace, "generateName": name + "-", "uid": uid(podName),
		"resourceVersion": "48211688", "creationTimestamp": applied, "generation": 1,
		"ownerReferences": []any{owner}, "managedFields": []any{made, told},
	})
	return p
}

// runOnNode adds what LeaderWorkerSet, the API server and the scheduler add.
func runOnNode(spec object, podName, name string, size, index int) {
	defaultPod(spec)
	leader := name + "-0." + name + ".default"
	for _, c := range containers(spec) {
		env, _ := c["env"].([]any)
		c["env"] = append([]any{
			object{"name": "LWS_LEADER_ADDRESS", "value": leader},
			object{"name": "LWS_GROUP_SIZE", "value": strconv.Itoa(size)},
			object{"name": "LWS_WORKER_INDEX", "value": strconv.Itoa(index)},
		}, env...)
		mounts, _ := c["volumeMounts"].([]any)
		c["volumeMounts"] = append(mounts, object{"mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "name": "kube-api-access-x7k2p", "readOnly": true})
	}
	volumes, _ := spec["volumes"].([]any)
	spec["volumes"] = append(volumes, object{"name": "kube-api-access-x7k2p", "projected": object{"defaultMode": 420, "sources": []any{
		object{"serviceAccountToken": object{"expirationSeconds": 3607, "path": "token"}},
		object{"configMap": object{"name": "kube-root-ca.crt", "items": []any{object{"key": "ca.crt", "path": "ca.crt"}}}},
		object{"downwardAPI": object{"items": []any{object{"path": "namespace", "fieldRef": object{"apiVersion": "v1", "fieldPath": "metadata.namespace"}}}}},
	}}})
	maps.Copy(spec, object{
		"enableServiceLinks": true, "hostname": podName, "subdomain": name, "nodeName": "gpu-node-" + digest(podName)[:5],
		"preemptionPolicy": "PreemptLowerPriority", "priority": 0, "serviceAccount": "default", "serviceAccountName": "default",
		"tolerations": []any{
			object{"effect": "NoExecute", "key": "node.kubernetes.io/not-ready", "operator": "Exists", "tolerationSeconds": 300},
			object{"effect": "NoExecute", "key": "node.kubernetes.io/unreachable", "operator": "Exists", "tolerationSeconds": 300},
		},
	})
}

func podStatus(spec object, podName string) object {
	conditions := make([]any, 0, 5)
	for _, t := range []string{"PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"} {
		conditions = append(conditions, object{"type": t, "status": "True", "lastProbeTime": nil, "lastTransitionTime": reported, "observedGeneration": 1})
	}
	s := object{
		"phase": "Running", "qosClass": "BestEffort", "startTime": applied, "observedGeneration": 1,
		"hostIP": "10.0.3.17", "hostIPs": []any{object{"ip": "10.0.3.17"}}, "podIP": "10.244.7.31", "podIPs": []any{object{"ip": "10.244.7.31"}},
		"conditions": conditions,
	}
	for _, list := range []string{"containers", "initContainers"} {
		l, _ := spec[list].([]any)
		states := make([]any, 0, len(l))
		for _, e := range l {
			states = append(states, object{
				"name": lookup(e, "name"), "image": lookup(e, "image"), "imageID": "docker.io/" + fmt.Sprint(lookup(e, "image")) + "@sha256:" + digest("image"),
				"containerID": "containerd://" + digest(podName), "ready": true, "started": true, "restartCount": 0, "lastState": object{},
				"state": object{"running": object{"startedAt": reported}}, "resources": lookup(e, "resources"),
			})
		}
		if len(states) > 0 {
			s[map[string]string{"containers": "containerStatuses", "initContainers": "initContainerStatuses"}[list]] = states
		}
	}
	return s
}
