package service

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/test/fixture"
	"github.com/fusioninfer/function-inferenceservice/test/function"
)

// TestGrowthWaits shows that pods that run stay as they are until the cluster has reserved what
// they request now. Their LeaderWorkerSet keeps its template, so that one that is made anew has it too.
func TestGrowthWaits(t *testing.T) {
	fn := function.Start(t)
	// reserved is the cluster with a reservation for replicas of so many nodes.
	reserved := func(generation, nodes int) []string {
		return []string{fmt.Sprintf(`{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceCluster, metadata: {name: us-east}, spec: {providerConfigRef: {name: us-east}, pools: []},
	  status: {pools: [{name: p, nodeCount: 9, free: [{nodeCount: 9}]}], reservations: [{uid: me, namespace: team, name: chat, replicas: [{role: w, indexes: [0], generation: %d, nodes: %d}]}]}}`, generation, nodes)}
	}
	const w = "roles: [{name: w, componentType: worker, replicas: 1, multinode: {nodeCount: %d}, template: {spec: {containers: [{name: engine, image: %s, command: [vllm, serve, /m]}]}}}]\nplacement: {policy: Failover, clusterSelector: {}}"
	req := fixture.Request(t, fixture.Service(fmt.Sprintf(w, 2, "v1")), "")
	type state struct {
		Image, Nodes, Generation, Gang string
	}
	apply := func(spec string, clusters []string) state {
		t.Helper()
		req.Observed.Composite.Resource = kube.With(req.GetObserved().GetComposite().GetResource(), kube.Lookup(fixture.YAML(t, fixture.Service(spec)), "spec"), "spec")
		rsp, _ := fixture.Reconcile(t, fn, req, map[string][]string{"fleet": clusters})
		if got := fixture.Fatals(rsp); got != "" {
			t.Fatal(got)
		}
		fixture.Observe(req, rsp)
		for k, r := range req.GetObserved().GetResources() {
			req.Observed.Resources[k] = &fnv1.Resource{Resource: readyThere(t, r.GetResource())}
		}
		s := state{}
		manifest := func(key string) *fnv1.Resource { return rsp.GetDesired().GetResources()["cluster/us-east/"+key] }
		if o := manifest("leaderworkerset/w/0"); o != nil {
			spec := kube.Lookup(o.GetResource(), "spec", "forProvider", "manifest", "spec").GetStructValue()
			s.Nodes = fmt.Sprint(kube.Lookup(spec, "leaderWorkerTemplate", "size").GetNumberValue())
			s.Generation = kube.Lookup(o.GetResource(), "spec", "forProvider", "manifest", "metadata", "annotations", "fusioninfer.io/capacity-generation").GetStringValue()
			containers := kube.Lookup(spec, "leaderWorkerTemplate", "workerTemplate", "spec", "containers").GetListValue().GetValues()
			s.Image = containers[0].GetStructValue().GetFields()["image"].GetStringValue()
		}
		if o := manifest("podgroup"); o != nil {
			s.Gang = fmt.Sprint(kube.Lookup(o.GetResource(), "spec", "forProvider", "manifest", "spec", "minTaskMember", "w-0").GetNumberValue())
		}
		return s
	}
	steps := []struct {
		reason   string
		spec     string
		clusters []string
		want     state
	}{
		{"Nothing is reserved.", fmt.Sprintf(w, 2, "v1"), reserved(0, 2), state{}},
		{"It starts with what is reserved.", fmt.Sprintf(w, 2, "v1"), reserved(1, 2), state{Image: "v1", Nodes: "2", Generation: "1", Gang: "2"}},
		{"Another image needs no other capacity.", fmt.Sprintf(w, 2, "v2"), reserved(1, 2), state{Image: "v2", Nodes: "2", Generation: "1", Gang: "2"}},
		{"More nodes wait, and the gang counts those that run.", fmt.Sprintf(w, 3, "v2"), reserved(1, 2), state{Image: "v2", Nodes: "2", Generation: "1", Gang: "2"}},
		{"They wait as long as the cluster has not reserved them, and another image waits with them.", fmt.Sprintf(w, 3, "v3"), reserved(1, 2), state{Image: "v2", Nodes: "2", Generation: "1", Gang: "2"}},
		{"The replica is told with the reservation.", fmt.Sprintf(w, 3, "v3"), reserved(2, 3), state{Image: "v3", Nodes: "2", Gang: "2"}},
		{"Then they start.", fmt.Sprintf(w, 3, "v3"), reserved(2, 3), state{Image: "v3", Nodes: "3", Generation: "2", Gang: "3"}},
		{"The former number is a change as well.", fmt.Sprintf(w, 2, "v3"), reserved(2, 3), state{Image: "v3", Nodes: "3", Generation: "2", Gang: "3"}},
		{"It is told with the answer.", fmt.Sprintf(w, 2, "v3"), reserved(3, 2), state{Image: "v3", Nodes: "3", Gang: "3"}},
		{"It follows.", fmt.Sprintf(w, 2, "v3"), reserved(3, 2), state{Image: "v3", Nodes: "2", Generation: "3", Gang: "2"}},
		{"Nothing that runs changes because the cluster cannot be read.", fmt.Sprintf(w, 2, "v3"), nil, state{Image: "v3", Nodes: "2", Generation: "3", Gang: "2"}},
		{"A change waits then as well.", fmt.Sprintf(w, 3, "v3"), nil, state{Image: "v3", Nodes: "2", Generation: "3", Gang: "2"}},
		{"It goes on to wait.", fmt.Sprintf(w, 3, "v3"), nil, state{Image: "v3", Nodes: "2", Generation: "3", Gang: "2"}},
	}
	for i, s := range steps {
		if diff := cmp.Diff(s.want, apply(s.spec, s.clusters)); diff != "" {
			t.Fatalf("step %d: %s\n-want +got:\n%s", i, s.reason, diff)
		}
	}
}

// TestGrowthRollsOut shows a change that needs other capacity in the middle of a rollout. Until the
// capacity is reserved, no replica gets another template, and none is released. Afterwards one gets
// it after the other.
func TestGrowthRollsOut(t *testing.T) {
	fn := function.Start(t)
	reserved := func(generation int) []string {
		return []string{fmt.Sprintf(`{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceCluster, metadata: {name: us-east}, spec: {providerConfigRef: {name: us-east}, pools: []},
	  status: {pools: [{name: p, nodeCount: 9, free: [{nodeCount: 9}]}], reservations: [{uid: me, namespace: team, name: chat, replicas: [{role: w, indexes: [0, 1, 2], generation: %d, nodes: 1}]}]}}`, generation)}
	}
	const w = "roles: [{name: w, componentType: worker, replicas: 3, template: {spec: {containers: [{name: engine, image: %s, command: [vllm, serve, /m], resources: {requests: {cpu: %d}}}]}}}]\nplacement: {policy: Failover, clusterSelector: {}}"
	req := fixture.Request(t, fixture.Service(fmt.Sprintf(w, "v1", 1)), "")
	// apply returns the image of each replica, and whether it is behind the partition.
	apply := func(image string, cpu, generation int) []string {
		t.Helper()
		spec := fixture.YAML(t, fixture.Service(fmt.Sprintf(w, image, cpu)))
		req.Observed.Composite.Resource = kube.With(req.GetObserved().GetComposite().GetResource(), kube.Lookup(spec, "spec"), "spec")
		rsp, _ := fixture.Reconcile(t, fn, req, map[string][]string{"fleet": reserved(generation)})
		if got := fixture.Fatals(rsp); got != "" {
			t.Fatal(got)
		}
		fixture.Observe(req, rsp)
		for k, r := range req.GetObserved().GetResources() {
			req.Observed.Resources[k] = &fnv1.Resource{Resource: readyThere(t, r.GetResource())}
		}
		var all []string
		for i := range 3 {
			o := rsp.GetDesired().GetResources()[fmt.Sprintf("cluster/us-east/leaderworkerset/w/%d", i)]
			if o == nil {
				continue
			}
			spec := kube.Lookup(o.GetResource(), "spec", "forProvider", "manifest", "spec").GetStructValue()
			containers := kube.Lookup(spec, "leaderWorkerTemplate", "workerTemplate", "spec", "containers").GetListValue().GetValues()
			is := containers[0].GetStructValue().GetFields()["image"].GetStringValue()
			if kube.Lookup(spec, "rolloutStrategy", "rollingUpdateConfiguration", "partition").GetNumberValue() > 0 {
				is += " held"
			}
			all = append(all, is)
		}
		return all
	}
	steps := []struct {
		reason          string
		image           string
		cpu, generation int
		want            []string
	}{
		{"Nothing is reserved.", "v1", 1, 0, nil},
		{"All start.", "v1", 1, 1, []string{"v1", "v1", "v1"}},
		{"All are told of another image.", "v2", 1, 1, []string{"v2 held", "v2 held", "v2 held"}},
		{"One replica gets it.", "v2", 1, 1, []string{"v2 held", "v2 held", "v2"}},
		{"More CPU is not reserved: everything stays as it is.", "v3", 2, 1, []string{"v2 held", "v2 held", "v2 held"}},
		{"It goes on to wait.", "v3", 2, 1, []string{"v2 held", "v2 held", "v2 held"}},
		{"It is reserved: all are told.", "v3", 2, 2, []string{"v3 held", "v3 held", "v3 held"}},
		{"One replica gets it.", "v3", 2, 2, []string{"v3 held", "v3 held", "v3"}},
		{"The next follows.", "v3", 2, 2, []string{"v3 held", "v3", "v3"}},
		{"All have it.", "v3", 2, 2, []string{"v3", "v3", "v3"}},
	}
	for i, s := range steps {
		if diff := cmp.Diff(s.want, apply(s.image, s.cpu, s.generation)); diff != "" {
			t.Fatalf("step %d: %s\n-want +got:\n%s", i, s.reason, diff)
		}
	}
}

// TestFormerNodesHaveNoGeneration shows a service that needs one node less for each replica. The replica that waits for its turn keeps
// its former number of nodes. A LeaderWorkerSet that is made anew meanwhile has that number and the newest template, and is ready. So
// it must not say that it runs what the cluster has granted now: the cluster would give its second node away.
func TestFormerNodesHaveNoGeneration(t *testing.T) {
	fn := function.Start(t)
	const w = "roles: [{name: w, componentType: worker, replicas: 2, multinode: {nodeCount: %d}, template: {spec: {containers: [{name: engine, image: v1, command: [vllm, serve, /m]}]}}}]\nplacement: {policy: Failover, clusterSelector: {}}"
	req := fixture.Request(t, fixture.Service(fmt.Sprintf(w, 2)), "")
	// apply returns the number of nodes of each replica, and the generation that it was granted for.
	apply := func(nodes, generation int) []string {
		t.Helper()
		req.Observed.Composite.Resource = kube.With(req.GetObserved().GetComposite().GetResource(), kube.Lookup(fixture.YAML(t, fixture.Service(fmt.Sprintf(w, nodes))), "spec"), "spec")
		rsp, _ := fixture.Reconcile(t, fn, req, map[string][]string{"fleet": {fmt.Sprintf(`{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceCluster, metadata: {name: us-east}, spec: {providerConfigRef: {name: us-east}, pools: []},
		  status: {pools: [{name: p, nodeCount: 9, free: [{nodeCount: 9}]}], reservations: [{uid: me, namespace: team, name: chat, replicas: [{role: w, indexes: [0, 1], generation: %d, nodes: %d}]}]}}`, generation, nodes)}})
		if got := fixture.Fatals(rsp); got != "" {
			t.Fatal(got)
		}
		fixture.Observe(req, rsp)
		var all []string
		for i := range 2 {
			key := fmt.Sprintf("cluster/us-east/leaderworkerset/w/%d", i)
			o := rsp.GetDesired().GetResources()[key]
			if o == nil {
				continue
			}
			req.Observed.Resources[key] = &fnv1.Resource{Resource: readyThere(t, o.GetResource())}
			size := kube.Lookup(o.GetResource(), "spec", "forProvider", "manifest", "spec", "leaderWorkerTemplate", "size").GetNumberValue()
			all = append(all, fmt.Sprintf("%v of %q", size, kube.Lookup(o.GetResource(), "spec", "forProvider", "manifest", "metadata", "annotations", "fusioninfer.io/capacity-generation").GetStringValue()))
		}
		return all
	}
	apply(2, 0)
	if diff := cmp.Diff([]string{`2 of "1"`, `2 of "1"`}, apply(2, 1)); diff != "" {
		t.Fatalf("it starts with two nodes for each: -want +got:\n%s", diff)
	}
	apply(1, 1) // The cluster has not answered so far.
	apply(1, 2) // Both are told first.
	if diff := cmp.Diff([]string{`2 of ""`, `1 of "2"`}, apply(1, 2)); diff != "" {
		t.Errorf("one replica gets one node less, and the other waits: -want +got:\n%s", diff)
	}
}
