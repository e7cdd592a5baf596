package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
)

// testTrafficInDrains drains the nodes of services one after the other, with their endpoint pickers. While
// the only picker starts on another node, FailOpen sends requests to any pod, and FailClose refuses them.
func testTrafficInDrains(t *testing.T, c *cluster.Cluster) {
	t.Run("Workers", func(t *testing.T) { testDrainsOfWorkers(t, c) })
	t.Run("Pairs", func(t *testing.T) { testDrainsOfPairs(t, c) })
	t.Run("Nodes", func(t *testing.T) { testDrainsOfNodes(t, c) })
}

func testDrainsOfWorkers(t *testing.T, c *cluster.Cluster) {
	ns := namespace(t, c)
	router := openPicker("drained.example.com")
	drained := inference(ns, "drained", briefly(engine("worker", "worker", 3, 1), 5), router)
	apply(t, c, drained)
	settled(t, c, drained)

	l := send(t, c, ns, "drained.example.com")
	l.while("drains of all nodes, FailOpen", func() {
		drainsAll(t, c, drained, map[string]int{"worker": 2}, roleAndReplica)
	})
	router["endpointPicker"] = map[string]any{"failureMode": "FailClose"}
	l.while("FailClose", func() {
		apply(t, c, drained)
		settled(t, c, drained)
	})
	l.refuses("a drain of the endpoint picker's node, FailClose", func() { drainsPicker(t, c, drained) })
	l.while("a drain of a node that the endpoint picker has left, FailClose", func() {
		node := nodeOfPicker(t, c, drained)
		if err := c.Cordon(t.Context(), node, true); err != nil {
			t.Fatal(err)
		}
		kubectl(t, c, "rollout", "restart", "--namespace="+ns, "deployment/drained-epp")
		kubectl(t, c, "rollout", "status", "--namespace="+ns, "deployment/drained-epp", "--timeout=5m")
		drains(t, c, drained, node)
		settled(t, c, drained)
	})
	l.refuses("a second endpoint picker", func() {
		router["replicas"] = int64(2)
		apply(t, c, drained)
		settled(t, c, drained)
	})
	l.refuses("a drain of the leading endpoint picker's node, FailClose", func() { drainsPicker(t, c, drained) })
}

func testDrainsOfPairs(t *testing.T, c *cluster.Cluster) {
	ns := namespace(t, c)
	router := openPicker("pairs.example.com")
	router["strategy"] = "pd-disaggregation"
	pairs := inference(ns, "pairs", briefly(engine("prefill", "prefiller", 1, 1), 5), briefly(engine("decode", "decoder", 1, 1), 5), router)
	pairs.Object["spec"].(map[string]any)["replicas"] = int64(2)
	apply(t, c, pairs)
	settled(t, c, pairs)

	send(t, c, ns, "pairs.example.com").while("drains of all nodes, FailOpen", func() {
		drainsAll(t, c, pairs, map[string]int{"prefill": 1, "decode": 1}, func(pod string) (role, replica string) {
			part := strings.Split(pod, "-")
			return part[2], part[1]
		})
	})
}

func testDrainsOfNodes(t *testing.T, c *cluster.Cluster) {
	ns := namespace(t, c)
	wide := inference(ns, "wide", briefly(engine("worker", "worker", 2, 2), ofSeveralNodes), openPicker("wide.example.com"))
	apply(t, c, wide)
	settled(t, c, wide)

	send(t, c, ns, "wide.example.com").while("drains of all nodes, FailOpen", func() {
		drainsAll(t, c, wide, map[string]int{"worker": 1}, roleAndReplica)
	})
}

var (
	nodeKind       = schema.GroupVersionKind{Version: "v1", Kind: "Node"}
	deploymentKind = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
)

// openPicker is a router whose requests go to any pod while its endpoint picker does not answer, as is the
// default of services whose pods can answer alone.
func openPicker(host string) map[string]any {
	router := picker(host)
	delete(router, "endpointPicker")
	return router
}

// roleAndReplica are the role and the replica of a pod, of a service without groups.
func roleAndReplica(pod string) (role, replica string) {
	part := strings.Split(pod, "-")
	return part[1], part[2]
}

// drainsAll drains each node in turn of the pods of a service, and checks that so many replicas of each role
// are ready at every moment.
func drainsAll(t *testing.T, c *cluster.Cluster, s *unstructured.Unstructured, least map[string]int, of func(pod string) (role, replica string)) {
	t.Helper()
	before, all := engineUIDs(t, c, s), len(list(t, c, podKind, s.GetNamespace()))
	pods := record(t, c, podKind, s.GetNamespace())
	had := map[string]bool{}
	for _, node := range list(t, c, nodeKind, "") {
		for _, p := range list(t, c, podKind, s.GetNamespace()) {
			on, _, _ := unstructured.NestedString(p.Object, "spec", "nodeName")
			if on != node.GetName() {
				continue
			}
			had["engines"] = had["engines"] || ofEngine(&p)
			had["pickers"] = had["pickers"] || !ofEngine(&p)
		}
		drains(t, c, s, node.GetName())
	}
	// The service may not say yet that the last pods were evicted.
	until(t, c, s.GetName()+" has all of its pods again", func(context.Context) (bool, error) {
		err := complete(t, c, s, len(before), all-len(before))
		return err == nil, err
	})
	settled(t, c, s)
	if !had["engines"] || !had["pickers"] {
		t.Errorf("the drained nodes had pods of %v, want engines and pickers", had)
	}
	after := engineUIDs(t, c, s)
	for name, uid := range before {
		if after[name] == uid {
			t.Errorf("pod %s was not evicted", name)
		}
	}
	for role, want := range least {
		n := fewestReady(t, pods, before, func(pod string) string {
			if r, replica := of(pod); r == role {
				return replica
			}
			return ""
		})
		if n != want {
			t.Errorf("drains: %d replicas of role %s were ready at one time, want %d", n, role, want)
		}
	}
}

// complete tells what a service lacks of so many engines and endpoint pickers, all of which stay. The engines have to be ready,
// and a picker has to answer.
func complete(t *testing.T, c *cluster.Cluster, s *unstructured.Unstructured, engines, pickers int) error {
	t.Helper()
	for _, o := range list(t, c, podKind, s.GetNamespace()) {
		switch {
		case o.GetDeletionTimestamp() != nil:
			return fmt.Errorf("pod %s is being deleted", o.GetName())
		case !ofEngine(&o):
			pickers--
		case !readyPod(&o):
			return fmt.Errorf("pod %s is not ready", o.GetName())
		default:
			engines--
		}
	}
	if engines != 0 || pickers != 0 {
		return fmt.Errorf("%d engines and %d endpoint pickers are missing", engines, pickers)
	}
	if len(answeringPickers(t, c, s)) == 0 {
		return errors.New("no endpoint picker is ready")
	}
	return nil
}

// answeringPickers are the pods of the endpoint pickers that answer and stay. Of several, only the leader answers.
func answeringPickers(t *testing.T, c *cluster.Cluster, s *unstructured.Unstructured) []unstructured.Unstructured {
	t.Helper()
	return slices.DeleteFunc(list(t, c, podKind, s.GetNamespace()), func(o unstructured.Unstructured) bool {
		return ofEngine(&o) || !readyPod(&o) || o.GetDeletionTimestamp() != nil
	})
}

// nodeOfPicker is the node of the endpoint picker that answers.
func nodeOfPicker(t *testing.T, c *cluster.Cluster, s *unstructured.Unstructured) string {
	t.Helper()
	all := answeringPickers(t, c, s)
	if len(all) == 0 {
		t.Fatal("no endpoint picker is ready")
	}
	return nodeOf(&all[0])
}

// drainsPicker drains the node of the endpoint picker that answers, until another one does.
func drainsPicker(t *testing.T, c *cluster.Cluster, s *unstructured.Unstructured) {
	t.Helper()
	former := sets.New[types.UID]()
	for _, o := range answeringPickers(t, c, s) {
		former.Insert(o.GetUID())
	}
	node := nodeOfPicker(t, c, s)
	if _, err := c.Kubectl(t.Context(), "drain", node, "--pod-selector=fusioninfer.io/service="+s.GetName()+",fusioninfer.io/component-type=router", "--timeout=5m"); err != nil {
		t.Fatal(err)
	}
	if err := c.Cordon(t.Context(), node, false); err != nil {
		t.Fatal(err)
	}
	// The service may still say of the former one that it is ready.
	until(t, c, "another endpoint picker is ready", func(context.Context) (bool, error) {
		all := answeringPickers(t, c, s)
		return slices.ContainsFunc(all, func(o unstructured.Unstructured) bool { return !former.Has(o.GetUID()) }),
			fmt.Errorf("%d are ready, and those before had the UIDs %v", len(all), sets.List(former))
	})
	settled(t, c, s)
}

// drains takes all pods of a service off a node, and lets pods there again.
func drains(t *testing.T, c *cluster.Cluster, s *unstructured.Unstructured, node string) {
	t.Helper()
	if _, err := c.Kubectl(t.Context(), "drain", node, "--pod-selector=fusioninfer.io/service="+s.GetName(), "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=5m"); err != nil {
		t.Fatal(err)
	}
	if err := c.Cordon(t.Context(), node, false); err != nil {
		t.Fatal(err)
	}
}

// mostRefused is how many requests may be refused while no endpoint picker answers: those of a minute. Another
// one starts or leads within seconds, unless a machine is slow.
const mostRefused = int(time.Minute / sendEvery)

// refuses checks that requests fail during a change because no endpoint picker answers, and for no other
// reason. None is cut.
func (l *caller) refuses(what string, change func()) {
	l.t.Helper()
	got := l.during(what, change)
	if n := got.Failed(); n == 0 || n > mostRefused {
		l.t.Errorf("%s, %s: %d of %d requests are refused, want some, and %d at most", l.host, what, n, got.Sent, mostRefused)
	}
	for why, n := range got.Wrong {
		if !strings.Contains(why, "endpoint picker") {
			l.t.Errorf("%s, %s: %d requests: %s", l.host, what, n, why)
		}
	}
}
