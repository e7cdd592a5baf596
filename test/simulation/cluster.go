package simulation

import (
	"fmt"
	"strconv"
)

// A pool of a remote cluster.
type nodePool struct {
	name        string
	nodes, gpus int
	observed    bool
}

// addCluster adds a remote cluster, and its InferenceCluster.
func (w *World) addCluster(n, region string, pools []nodePool, gateway bool) {
	r := &remote{w: w, name: n, reachable: true, objects: map[task]*remoteObject{}, noted: map[task]bool{}, pools: pools, region: region, gateway: gateway}
	for _, p := range pools {
		for i := range p.nodes {
			r.limit = append(r.limit, &node{fmt.Sprintf("%s-%s-%d", n, p.name, i), map[string]string{"pool": p.name}, p.gpus})
		}
	}
	w.remotes[n], w.fleet = r, append(w.fleet, r)
	r.setNodes(len(r.limit))
	r.restore()
	if w.Quotas {
		r.setQuotas()
	}
	r.kueue = w.Kueue && (len(w.fleet) == 1 || w.rand.IntN(2) == 0)
	r.setKueueQuota()
	w.server.create(newDocument(fields{
		"apiVersion": clusterKind.apiVersion, "kind": clusterKind.kind,
		"metadata": fields{"name": n, "labels": fields{labelComposite: n, "region": region}},
		"spec":     r.spec(),
	}))
}

// restore makes what a cluster has by itself.
func (r *remote) restore() {
	system := r.apply(newDocument(fields{"apiVersion": "v1", "kind": "Namespace", "metadata": fields{"name": "kube-system"}}))
	if r.uid == "" {
		r.uid = system.uid
	}
	system.uid = r.uid
	r.apply(newDocument(fields{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": fields{"name": "extension-apiserver-authentication", "namespace": "kube-system"},
	}))
	r.apply(newDocument(fields{
		"apiVersion": gatewayKind.apiVersion, "kind": gatewayKind.kind, "metadata": fields{"name": "inference-gateway", "namespace": "gateway-system"},
	}))
	t := task{gatewayKind, name{"gateway-system", "inference-gateway"}}
	r.setStatus(t, r.objects[t], fields{"addresses": list[any](fields{"type": "IPAddress", "value": r.address()})})
	r.setNodes(len(r.nodes))
}

// address is the address of its entrypoint.
func (r *remote) address() string { return "10.1.0." + r.name[1:] }

// setNodes lets the cluster have the first nodes of its limit.
func (r *remote) setNodes(n int) {
	r.nodes = r.limit[:n]
	for i, node := range r.limit {
		t := task{nodeKind, name{"", node.name}}
		switch {
		case i >= n:
			delete(r.objects, t)
		case r.objects[t] == nil:
			labels := fields{}
			for k, v := range node.labels {
				labels[k] = v
			}
			o := r.apply(newDocument(fields{"apiVersion": "v1", "kind": "Node", "metadata": fields{"name": node.name, "labels": labels}}))
			r.setStatus(t, o, fields{
				"allocatable": fields{"nvidia.com/gpu": strconv.Itoa(node.gpus), "cpu": "100", "memory": "1000Gi", "pods": "110"},
				"conditions":  list[any](fields{"type": "Ready", "status": "True"}),
			})
		}
	}
	for k := range r.w.server.tables {
		if k != collectionKind {
			continue
		}
		for _, o := range r.w.server.list(k) {
			if text(o.body, "spec", "providerConfigRef", "name") == r.name {
				r.w.provider.note(k, o.name)
			}
		}
	}
}

// spec is the spec of the InferenceCluster.
func (r *remote) spec() fields {
	var pools []any
	for _, p := range r.pools {
		f := fields{"name": p.name, "nodeSelector": fields{"pool": p.name}}
		if !p.observed {
			n := 0
			for _, node := range r.nodes {
				if node.labels["pool"] == p.name {
					n++
				}
			}
			f["nodeCount"], f["allocatable"] = n, fields{"nvidia.com/gpu": strconv.Itoa(p.gpus), "cpu": "100"}
		}
		pools = append(pools, f)
	}
	spec := fields{"providerConfigRef": fields{"name": r.name}, "pools": pools}
	if r.kueue {
		delete(spec, "pools")
		spec["admission"] = "Kueue"
	}
	if len(r.quotas) > 0 {
		spec["quotas"] = r.quotasSpec()
	}
	if r.confirmed != "" {
		spec["clusterUID"] = r.confirmed
	}
	if r.stopPolicy != "" {
		spec["stopPolicy"] = r.stopPolicy
	}
	if r.gateway {
		spec["entrypoint"] = fields{"gatewayRef": fields{"name": "inference-gateway", "namespace": "gateway-system"}}
	} else {
		spec["entrypoint"] = fields{"address": fields{"type": "IPAddress", "value": r.address()}}
	}
	return spec
}

// update writes the spec of the InferenceCluster.
func (r *remote) update(why string) {
	key := xrKey{clusterKind, name{"", r.name}}
	r.w.trace(key, "%s: %d nodes, stopPolicy %q", why, len(r.nodes), r.stopPolicy)
	r.w.server.edit(key.kind, key.name, func(d document) document {
		spec := newDocument(r.spec())
		if v := at(d, "spec", "crossplane"); v != nil {
			spec = with(spec, v, "crossplane")
		}
		d = withText(d, r.region, "metadata", "labels", "region")
		return with(d, value(spec), "spec")
	})
}

// randomFleet adds some clusters.
func (w *World) randomFleet() {
	w.selects = w.rand.IntN(3) == 0
	for i := range 2 + w.rand.IntN(3) {
		pools := []nodePool{{"a", 2 + w.rand.IntN(4), 8, w.rand.IntN(2) == 0}}
		if w.rand.IntN(3) == 0 {
			pools = append(pools, nodePool{"b", 1 + w.rand.IntN(3), 4, w.rand.IntN(2) == 0})
		}
		w.addCluster("c"+strconv.Itoa(i), "r"+strconv.Itoa(1+min(i, w.rand.IntN(2))), pools, w.rand.IntN(2) == 0)
	}
}
