package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
)

// The machines of a service that is there come and go, and what happens passes through
// everything: function, Crossplane, LeaderWorkerSet, Volcano, and back into the status
// of the service.

// gpusPerNode of the machines that story 4 is about.
const gpusPerNode = 8

// A gang is a service, and the machines that are there for it.
type gang struct {
	*tenant

	name  string
	nodes []string
	round int
}

// alone makes a gang whose pods go to its own machines only, where no others go.
func alone(t *testing.T, name string) *gang {
	t.Helper()
	t.Parallel()
	c := shared(t)
	g := &gang{name: strings.ToLower(name)}
	// Cleanups run backwards: the namespace goes before the machines do.
	t.Cleanup(func() {
		for _, n := range g.nodes {
			o := &unstructured.Unstructured{}
			o.SetGroupVersionKind(kindNode)
			o.SetName(n)
			if err := c.Delete(context.WithoutCancel(t.Context()), o); err != nil {
				t.Error(err)
			}
		}
	})
	g.tenant = settle(t, c, "gang-"+g.name)
	return g
}

// machineOf marks the machines of a gang, by a label and by a taint.
const machineOf = "test.fusioninfer.io/gang"

// machines adds machines until there are so many.
func (g *gang) machines(n int) {
	g.Helper()
	for len(g.nodes) < n {
		g.machine(fmt.Sprintf("%s-%d", g.name, len(g.nodes)))
	}
}

func (g *gang) machine(name string) {
	g.Helper()
	all, err := cluster.Documents([]byte(`
apiVersion: v1
kind: Node
metadata:
  name: ` + name + `
  labels:
    kubernetes.io/hostname: ` + name + `
    ` + machineOf + `: ` + g.name + `
spec:
  taints:
  - {key: ` + machineOf + `, value: ` + g.name + `, effect: NoSchedule}
status:
  capacity: &has
    cpu: "128"
    memory: 1Ti
    pods: "110"
    nvidia.com/gpu: "` + strconv.Itoa(gpusPerNode) + `"
  allocatable: *has
`))
	if err != nil {
		g.Fatal(err)
	}
	if _, err := g.c.Create(g.Context(), all[0]); err != nil {
		g.Fatal(err)
	}
	g.nodes = append(g.nodes, name)
}

// lose loses a machine with all that is on it.
func (g *gang) lose(name string) {
	g.Helper()
	kubectl(g.T, g.c, "taint", "node", name, "broken=:NoExecute")
	g.until("nothing is on "+name, func(context.Context) error {
		for _, p := range g.list(kindPod) {
			if nodeOf(&p) == name {
				return fmt.Errorf("pod %s still is", p.GetName())
			}
		}
		return nil
	})
	if err := g.c.Delete(g.Context(), g.named(kindNode, name)); err != nil {
		g.Fatal(err)
	}
	g.nodes = slices.DeleteFunc(g.nodes, func(n string) bool { return n == name })
}

// story4 serves story 4 with a gang of a mode.
func (g *gang) story4(mode string) {
	g.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(read(g.T, "example", "story-4-pd-multinode", "xr.yaml")), &o.Object); err != nil {
		g.Fatal(err)
	}
	if err := unstructured.SetNestedField(o.Object, mode, "spec", "schedulingStrategy", "gang", "mode"); err != nil {
		g.Fatal(err)
	}
	g.start(o.Object["spec"])
}

// start serves a service called llm, whose pods may go to the gang's machines, and
// nowhere else.
func (g *gang) start(spec any) {
	g.Helper()
	o := g.named(kindService, "llm")
	o.Object["spec"] = spec
	roles, _, _ := unstructured.NestedSlice(o.Object, "spec", "roles")
	for _, r := range roles {
		pod := podSpec(r.(map[string]any))
		pod["nodeSelector"] = map[string]any{machineOf: g.name}
		pod["tolerations"] = []any{map[string]any{"key": machineOf, "value": g.name, "effect": "NoSchedule"}}
	}
	if err := unstructured.SetNestedSlice(o.Object, roles, "spec", "roles"); err != nil {
		g.Fatal(err)
	}
	apply(g.T, g.c, o)
}

// startOf does so with a spec in YAML.
func (g *gang) startOf(text string) {
	g.Helper()
	o := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &o); err != nil {
		g.Fatal(err)
	}
	g.start(o["spec"])
}

// schedules waits until as many pods of each role and replica have a node as should have,
// and the scheduler then has gone round twice: what is expected has come, and nothing
// more. Most first: which of two replicas is scheduled does not matter.
//
// LeaderWorkerSet may make a replica that lost a machine anew more than once, one time for each
// pod of which it hears late. Then it is waited for again; more than expected is wrong at once.
func (g *gang) schedules(what string, pods int, want map[string][]int) {
	g.Helper()
	for {
		g.until(fmt.Sprintf("%s: there are %d pods, scheduled as %v", what, pods, want), func(context.Context) error {
			got, n := g.scheduled()
			if n != pods || !cmp.Equal(want, got) {
				return fmt.Errorf("of %d pods these have a node: %v", n, got)
			}
			return nil
		})
		g.rounds()
		got, n := g.scheduled()
		switch {
		case n == pods && cmp.Equal(want, got):
			return
		case n >= pods || exceeds(got, want):
			g.Fatalf("%s: of %d pods these have a node: %v; want %d pods, and %v", what, n, got, pods, want)
		}
	}
}

// exceeds tells whether a replica has more pods with a node than it should have.
func exceeds(got, want map[string][]int) bool {
	for role, counts := range got {
		for i, n := range counts {
			if i >= len(want[role]) || n > want[role][i] {
				return true
			}
		}
	}
	return false
}

// scheduled counts the pods that have a node, of each replica of each role, and all pods.
func (g *gang) scheduled() (map[string][]int, int) {
	g.Helper()
	count, all := map[[2]string]int{}, 0
	for _, p := range g.list(kindPod) {
		l := p.GetLabels()
		role := l["fusioninfer.io/role-name"]
		if role == "" || p.GetDeletionTimestamp() != nil {
			continue
		}
		all++
		at := [2]string{role, l["fusioninfer.io/replica-index"]}
		count[at] += 0
		if nodeOf(&p) != "" {
			count[at]++
		}
	}
	got := map[string][]int{}
	for at, n := range count {
		got[at[0]] = append(got[at[0]], n)
	}
	for _, l := range got {
		slices.Sort(l)
		slices.Reverse(l)
	}
	return got, all
}

// rounds waits until the scheduler has looked twice at everything that is there. It
// looks at all pods in each of its rounds, so a pod that is created now and always
// fits has a node only after a round in which it saw all the others.
func (g *gang) rounds() {
	g.Helper()
	for range 2 {
		g.round++
		all, err := cluster.Documents([]byte(`
apiVersion: v1
kind: Pod
metadata:
  name: round-` + strconv.Itoa(g.round) + `
  namespace: ` + g.namespace + `
spec:
  schedulerName: volcano
  containers:
  - name: pause
    image: pause
`))
		if err != nil {
			g.Fatal(err)
		}
		if _, err := g.c.Create(g.Context(), all[0]); err != nil {
			g.Fatal(err)
		}
		g.until("the scheduler has gone round", func(ctx context.Context) error {
			p, err := g.c.Get(ctx, all[0])
			if err == nil && nodeOf(p) == "" {
				err = fmt.Errorf("pod %s has no node", p.GetName())
			}
			return err
		})
		if err := g.c.Delete(g.Context(), all[0]); err != nil {
			g.Fatal(err)
		}
		if err := g.c.Gone(g.Context(), all[0]); err != nil {
			g.Fatal(err)
		}
	}
}

// says waits until the status of the service says so of its gang and its
// roles.
func (g *gang) says(gangScheduled string, components map[string]string) {
	g.Helper()
	g.until("the service says what became of it", func(ctx context.Context) error {
		o, err := g.c.Get(ctx, g.named(kindService, "llm"))
		if err != nil {
			return err
		}
		got := map[string]string{}
		all, _, _ := unstructured.NestedMap(o.Object, "status", "components")
		for name, v := range all {
			m, _ := v.(map[string]any)
			got[name] = fmt.Sprint(m["phase"], " ", m["readyReplicas"], "/", m["desiredReplicas"], " ", m["readyPods"], "/", m["totalPods"])
		}
		if diff := cmp.Diff(components, got); diff != "" {
			return fmt.Errorf("components: -want, +got:\n%s", diff)
		}
		if c := conditionOf(o, "GangScheduled"); c["status"] != gangScheduled {
			return fmt.Errorf("GangScheduled is %v, want %s", c, gangScheduled)
		}
		return nil
	})
}

// TestMinimumFirst proves the seed's table of what is scheduled for story 4 on a service
// that is there, while machines come: exactly its rows, in the mode MinimumFirst. Then
// a machine is lost and comes back. A replica is never scheduled in part.
func TestMinimumFirst(t *testing.T) {
	g := alone(t, "MinimumFirst")
	g.machines(2)
	g.story4("MinimumFirst")
	none := map[string][]int{"prefill": {0}, "decode": {0, 0}}
	one := map[string][]int{"prefill": {2}, "decode": {4, 0}}
	all := map[string][]int{"prefill": {2}, "decode": {4, 4}}
	for _, row := range []struct {
		gpus int
		want map[string][]int
	}{
		{gpus: 16, want: none},
		{gpus: 32, want: none},
		{gpus: 48, want: one},
		{gpus: 64, want: one},
		{gpus: 80, want: all},
	} {
		g.machines(row.gpus / gpusPerNode)
		g.schedules(fmt.Sprintf("%d GPUs", row.gpus), 10, row.want)
		switch row.gpus {
		case 32:
			g.says("False", map[string]string{"prefill": "Deploying 0/1 0/2", "decode": "Deploying 0/2 0/8"})
		case 64:
			g.says("True", map[string]string{"prefill": "Running 1/1 2/2", "decode": "Deploying 1/2 4/8"})
		}
	}
	g.ready("llm")

	before := g.leaders()
	lost := g.on("fusioninfer.io/role-name", "decode")
	g.lose(lost.node)
	g.schedules("9 of 10 machines", 10, one)
	g.says("True", map[string]string{"prefill": "Running 1/1 2/2", "decode": "Deploying 1/2 4/8"})
	g.machine(lost.node)
	g.schedules("the machine is back", 10, all)
	g.ready("llm")
	after := g.leaders()
	for name, uid := range before {
		if restarted := after[name] != uid; restarted != (name == lost.replica) {
			t.Errorf("a machine of %s was lost: the leader of %s is another: %t", lost.replica, name, restarted)
		}
	}
}

// A seat is where a pod is.
type seat struct{ node, replica string }

// on is where one pod with a label is.
func (g *gang) on(label, value string) seat {
	g.Helper()
	for _, p := range g.list(kindPod) {
		if l := p.GetLabels(); l[label] == value {
			return seat{node: nodeOf(&p), replica: l["leaderworkerset.sigs.k8s.io/name"]}
		}
	}
	g.Fatalf("no pod has %s=%s", label, value)
	return seat{}
}

// leaders are the UIDs of the first pods of all replicas.
func (g *gang) leaders() map[string]string {
	g.Helper()
	all := map[string]string{}
	for _, p := range g.list(kindPod) {
		if l := p.GetLabels(); l["leaderworkerset.sigs.k8s.io/worker-index"] == "0" {
			all[l["leaderworkerset.sigs.k8s.io/name"]] = string(p.GetUID())
		}
	}
	return all
}

// TestAllOrNothing proves that a service in the mode AllOrNothing is all or nothing on as
// many machines, and starts when the last one comes.
func TestAllOrNothing(t *testing.T) {
	g := alone(t, "AllOrNothing")
	g.machines(2)
	g.story4("AllOrNothing")
	none := map[string][]int{"prefill": {0}, "decode": {0, 0}}
	for _, gpus := range []int{16, 32, 48, 64, 72} {
		g.machines(gpus / gpusPerNode)
		g.schedules(fmt.Sprintf("%d GPUs", gpus), 10, none)
	}
	g.says("False", map[string]string{"prefill": "Deploying 0/1 0/2", "decode": "Deploying 0/2 0/8"})
	g.machines(10)
	g.schedules("80 GPUs", 10, map[string][]int{"prefill": {2}, "decode": {4, 4}})
	g.ready("llm")
}

// TestMinRoleReplicas proves that as many replicas of each role as it says start
// together, and others follow one by one.
func TestMinRoleReplicas(t *testing.T) {
	g := alone(t, "MinRoleReplicas")
	g.machines(5)
	g.startOf(spec("", []rolePart{
		{name: "prefill", kind: "prefiller", replicas: 3, nodes: 1, gpus: gpusPerNode},
		{name: "decode", kind: "decoder", replicas: 2, nodes: 2, gpus: gpusPerNode},
	}, "  schedulingStrategy: {gang: {mode: MinimumFirst, minRoleReplicas: {prefill: 2, decode: 2}}}\n"))
	g.schedules("5 machines, where the minimum needs 6", 7, map[string][]int{"prefill": {0, 0, 0}, "decode": {0, 0}})
	g.machines(6)
	g.schedules("6 machines", 7, map[string][]int{"prefill": {1, 1, 0}, "decode": {2, 2}})
	g.says("True", map[string]string{"prefill": "Deploying 2/3 2/3", "decode": "Running 2/2 4/4"})
	g.machines(7)
	g.schedules("7 machines", 7, map[string][]int{"prefill": {1, 1, 1}, "decode": {2, 2}})
	g.ready("llm")
}

// TestNetworkTopology proves that a gang which may not spread further than a rack waits
// while no rack has enough capacity for all of it, though all racks together have, and then is
// in one rack.
func TestNetworkTopology(t *testing.T) {
	g := alone(t, "Topology")
	rack := map[string]string{}
	for _, r := range []string{"a", "b"} {
		var members []string
		for i := range 4 {
			name := fmt.Sprintf("topology-%s%d", r, i)
			rack[name] = r
			members = append(members, fmt.Sprintf("{type: Node, selector: {exactMatch: {name: %s}}}", name))
			if i < 3 {
				g.machine(name)
			}
		}
		g.hyperNode("topology-"+r, fmt.Sprintf("{tier: 1, members: [%s]}", strings.Join(members, ", ")))
	}
	g.hyperNode("topology", "{tier: 2, members: [{type: HyperNode, selector: {exactMatch: {name: topology-a}}}, "+
		"{type: HyperNode, selector: {exactMatch: {name: topology-b}}}]}")
	g.startOf(spec("", []rolePart{
		{name: "prefill", kind: "prefiller", replicas: 1, nodes: 2, gpus: gpusPerNode},
		{name: "decode", kind: "decoder", replicas: 1, nodes: 2, gpus: gpusPerNode},
	}, "  schedulingStrategy: {gang: {networkTopology: {mode: hard, highestTierAllowed: 1}}}\n"))
	g.schedules("2 racks of 3 machines each", 4, map[string][]int{"prefill": {0}, "decode": {0}})
	g.machine("topology-b3")
	g.schedules("a rack of 4 machines", 4, map[string][]int{"prefill": {2}, "decode": {2}})
	g.ready("llm")
	racks := map[string]int{}
	for _, p := range g.list(kindPod) {
		racks[rack[nodeOf(&p)]]++
	}
	if !maps.Equal(racks, map[string]int{"b": 4}) {
		t.Errorf("pods in each rack: %v, want 4 in b", racks)
	}
}

// hyperNode tells Volcano which machines are near each other, until the test ends.
func (g *gang) hyperNode(name, spec string) {
	g.Helper()
	o := g.named(kindHyperNode, name)
	o.SetNamespace("")
	if err := yaml.Unmarshal([]byte("spec: "+spec), &o.Object); err != nil {
		g.Fatal(err)
	}
	if _, err := g.c.Apply(g.Context(), o, "test"); err != nil {
		g.Fatal(err)
	}
	g.Cleanup(func() {
		if err := g.c.Delete(context.WithoutCancel(g.Context()), o); err != nil {
			g.Error(err)
		}
	})
}
