package controlplane

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
)

// gpusPerNode of the machines that story 4 is about.
const gpusPerNode = 8

// TestGang lets Volcano's own scheduler place story 4 (a prefill replica of 2
// nodes and two decode replicas of 4) on fewer and fewer machines. TaskMember starts
// all or nothing; SubGroup starts one prefill and one decode replica, each
// whole, and never one without the other.
func TestGang(t *testing.T) {
	story := named(t, examples(t, false), "story-4-pd-multinode")
	c := startAll(t)
	if err := c.RunKubelet(""); err != nil {
		t.Fatal(err)
	}
	if err := c.RunVolcano(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := bound{prefill: []int{2}, decode: []int{4, 4}}
	one := bound{prefill: []int{2}, decode: []int{4, 0}}
	none := bound{prefill: []int{0}, decode: []int{0, 0}}
	cases := map[string]struct {
		reason string
		gpus   int
		want   map[string]bound
	}{
		"80": {
			reason: "There is room for everything.",
			gpus:   80,
			want:   map[string]bound{"TaskMember": all, "SubGroup": all},
		},
		"64": {
			reason: "There is room for one prefill and one decode replica, and for half of another.",
			gpus:   64,
			want:   map[string]bound{"TaskMember": none, "SubGroup": one},
		},
		"48": {
			reason: "There is room for exactly one prefill and one decode replica.",
			gpus:   48,
			want:   map[string]bound{"TaskMember": none, "SubGroup": one},
		},
		"32": {
			reason: "There is room for a decode replica, which is of no use alone.",
			gpus:   32,
			want:   map[string]bound{"TaskMember": none, "SubGroup": none},
		},
		"16": {
			reason: "There is room for a prefill replica, which is of no use alone.",
			gpus:   16,
			want:   map[string]bound{"TaskMember": none, "SubGroup": none},
		},
	}
	for name, tc := range cases {
		for mode, want := range tc.want {
			t.Run(name+"/"+mode, func(t *testing.T) {
				got := place(t, c, story, mode, tc.gpus/gpusPerNode, want)
				if diff := cmp.Diff(want, got, cmp.AllowUnexported(bound{})); diff != "" {
					t.Errorf("\n%s\n-want, +got pods that have a node:\n%s", tc.reason, diff)
				}
			})
		}
	}
}

// bound is how many pods of each replica have a node, most first: which of two
// replicas is placed does not matter.
type bound struct{ prefill, decode []int }

// place creates the service on so many nodes, waits until the scheduler has decided,
// and removes it.
func place(t *testing.T, c *cluster.Cluster, story *example, mode string, nodes int, want bound) bound {
	t.Helper()
	ctx := t.Context()
	removeNodes, err := c.AddNodes(ctx, nodes, gpusPerNode)
	if err != nil {
		t.Fatal(err)
	}
	e := &example{name: fmt.Sprintf("gang-%d-%s", nodes, strings.ToLower(mode)), xr: story.xr.DeepCopy()}
	if err := unstructured.SetNestedField(e.xr.Object, mode, "spec", "schedulingStrategy", "gang", "mode"); err != nil {
		t.Fatal(err)
	}
	s := newService(t, c, e)
	s.reconcileUntil(t, "all pods are there", func() bool { return len(podUIDs(t, s)) == 10 })
	rounds(t, c, e.namespace())
	if total(want) > 0 {
		// What is bound shows a moment after it was decided.
		s.reconcileUntil(t, "as many pods have a node as should have", func() bool { return total(placed(t, s)) >= total(want) })
		rounds(t, c, e.namespace())
	}
	got := placed(t, s)
	for _, o := range s.composed {
		if err := c.Delete(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Until(ctx, "the pods are gone", func(ctx context.Context) (bool, error) {
		pods, err := s.pods(ctx)
		return err == nil && len(pods) == 0, err
	}); err != nil {
		t.Fatal(err)
	}
	if err := removeNodes(ctx); err != nil {
		t.Fatal(err)
	}
	return got
}

// rounds waits until the scheduler has looked at everything that is there. It
// looks at all pods in each of its rounds, so a pod that is created now and always
// fits has a node only after a round in which it saw all the others.
func rounds(t *testing.T, c *cluster.Cluster, namespace string) {
	t.Helper()
	for i := range 2 {
		all, err := cluster.Documents([]byte(`
apiVersion: v1
kind: Pod
metadata:
  name: round-` + strconv.Itoa(i) + `
  namespace: ` + namespace + `
spec:
  schedulerName: volcano
  containers:
  - name: pause
    image: pause
`))
		if err != nil {
			t.Fatal(err)
		}
		pod, err := c.Create(t.Context(), all[0])
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Until(t.Context(), "the scheduler has gone round", func(ctx context.Context) (bool, error) {
			p, err := c.Get(ctx, pod)
			if err != nil {
				return false, err
			}
			return nodeOf(p) != "", nil
		}); err != nil {
			t.Fatal(err)
		}
		if err := c.Delete(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		if err := c.Gone(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
}

// placed counts the pods that have a node.
func placed(t *testing.T, s *service) bound {
	t.Helper()
	pods, err := s.pods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, p := range pods {
		if nodeOf(p) != "" {
			count[p.GetLabels()["leaderworkerset.sigs.k8s.io/name"]]++
		}
	}
	name := s.xr.GetName()
	b := bound{
		prefill: []int{count[name+"-prefill-0"]},
		decode:  []int{count[name+"-decode-0"], count[name+"-decode-1"]},
	}
	slices.Sort(b.decode)
	slices.Reverse(b.decode)
	return b
}

func nodeOf(pod *unstructured.Unstructured) string {
	n, _, _ := unstructured.NestedString(pod.Object, "spec", "nodeName")
	return n
}

func total(b bound) int {
	n := 0
	for _, replicas := range [][]int{b.prefill, b.decode} {
		for _, pods := range replicas {
			n += pods
		}
	}
	return n
}
