package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
)

// testFaults proves that what runs goes on running whatever fails: function,
// Crossplane, API server and etcd are killed, and the function is upgraded, each
// while services are created. In the end all are ready, no LeaderWorkerSet or pod
// was ever deleted, and none was changed after it was created.
func testFaults(t *testing.T, c *cluster.Cluster) {
	n := settle(t, c, "faults")
	w := watchOver(t, c, n.namespace)
	f := &faults{tenant: n, watch: w}

	f.during("the function is killed", 50, func() error {
		if killed := c.KillFunctions(); killed != 2 {
			return fmt.Errorf("%d processes were killed, want 2", killed)
		}
		return nil
	})
	f.during("core is restarted", 5, func() error {
		c.StopCore()
		return c.RunCore(t.Context())
	})
	f.during("the API server crashes", 5, func() error { return c.CrashAPIServer(t.Context()) })
	f.during("etcd crashes", 5, func() error { return c.CrashEtcd(t.Context()) })
	if err := c.PushPackages(second); err != nil {
		t.Fatal(err)
	}
	f.during("the function is upgraded", 10, func() error {
		_, err := c.Kubectl(t.Context(), "apply", "-f", at(t, "function.yaml", second))
		return err
	})
	healthy(t, c, "Function", function, second)
	called(t, c, second)

	// Every service is looked at once more by the function that is there in the end.
	kubectl(t, c, "annotate", "--namespace="+n.namespace, "inferenceservices.fusioninfer.io", "--all", "test.fusioninfer.io/round=1")
	f.allReady("at the end")
	// The watch may be behind.
	f.until("all LeaderWorkerSets and pods were seen", func(context.Context) error {
		if objects, _ := w.seen(); objects < 2*f.services {
			return fmt.Errorf("there were %d, want %d", objects, 2*f.services)
		}
		return nil
	})
	if objects, changes := w.seen(); len(changes) > 0 || objects != 2*f.services {
		t.Errorf("there were %d LeaderWorkerSets and pods, want %d; these were deleted or changed:\n%s",
			objects, 2*f.services, strings.Join(changes, "\n"))
	}
}

// faults are what befalls a tenant with more and more services.
type faults struct {
	*tenant

	watch    *watched
	services int
}

// during creates services, and lets something happen once some of them have a
// workload, and not yet all. Then it waits until all are ready.
func (f *faults) during(what string, services int, happens func() error) {
	f.Helper()
	before := f.services
	f.create(services / 2)
	f.until("some of the services have a workload", func(context.Context) error {
		if n := f.watch.workloads(); n <= before {
			return fmt.Errorf("there are %d of %d", n, before)
		}
		return nil
	})
	f.create(services - services/2)
	// Should all have one by now, because this process had to wait, there are more.
	for f.watch.workloads() >= f.services {
		f.create(services)
	}
	if err := happens(); err != nil {
		f.Fatalf("%s: %v", what, err)
	}
	f.allReady(what)
}

func (f *faults) create(services int) {
	f.Helper()
	worker := spec("", []rolePart{{name: "worker", kind: "worker", replicas: 1, nodes: 1}}, "")
	for range services {
		f.serve(fmt.Sprintf("llm-%d", f.services), worker)
		f.services++
	}
}

func (f *faults) allReady(when string) {
	f.Helper()
	f.until("all are ready after "+when, func(ctx context.Context) error {
		all, err := f.c.List(ctx, kindService, f.namespace)
		if err != nil {
			return err
		}
		if len(all) != f.services {
			return fmt.Errorf("there are %d services, want %d", len(all), f.services)
		}
		for i := range all {
			if err := conditions(&all[i], "Ready", "Synced", "Accepted", "WorkloadsReady"); err != nil {
				return fmt.Errorf("service %s: %w", all[i].GetName(), err)
			}
		}
		return nil
	})
}

// watched are the LeaderWorkerSets and pods of a namespace, and what became of
// them.
type watched struct {
	mu      sync.Mutex
	objects map[types.UID]string
	changes []string
}

// watchOver watches a namespace until the test ends, also while there is no API server:
// what was deleted meanwhile is missed when it is back.
func watchOver(t *testing.T, c *cluster.Cluster, namespace string) *watched {
	t.Helper()
	w := &watched{objects: map[types.UID]string{}}
	f := dynamicinformer.NewFilteredDynamicSharedInformerFactory(c.Client, 0, namespace, nil)
	for _, r := range []schema.GroupVersionResource{
		kindWorkload.GroupVersion().WithResource("leaderworkersets"),
		kindPod.GroupVersion().WithResource("pods"),
	} {
		if _, err := f.ForResource(r).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(v any) { w.changed(nil, v) },
			UpdateFunc: w.changed,
			DeleteFunc: func(v any) { w.changed(v, nil) },
		}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	f.Start(ctx.Done())
	f.WaitForCacheSync(ctx.Done())
	t.Cleanup(func() {
		stop()
		f.Shutdown()
	})
	return w
}

func (w *watched) changed(from, to any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if gone, ok := from.(cache.DeletedFinalStateUnknown); ok {
		from = gone.Obj
	}
	before, _ := from.(*unstructured.Unstructured)
	after, _ := to.(*unstructured.Unstructured)
	switch {
	case after == nil:
		w.changes = append(w.changes, fmt.Sprintf("%s %s was deleted", before.GetKind(), before.GetName()))
	case before == nil:
		w.objects[after.GetUID()] = after.GetKind()
	case before.GetUID() != after.GetUID():
		w.objects[after.GetUID()] = after.GetKind()
		w.changes = append(w.changes, fmt.Sprintf("%s %s is another", after.GetKind(), after.GetName()))
	// Kubernetes counts what changes in the spec of a pod, too, such as its node.
	case after.GetKind() == kindWorkload.Kind && before.GetGeneration() != after.GetGeneration():
		w.changes = append(w.changes, fmt.Sprintf("%s %s has generation %d after %d",
			after.GetKind(), after.GetName(), after.GetGeneration(), before.GetGeneration()))
	}
}

// workloads counts the LeaderWorkerSets.
func (w *watched) workloads() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, kind := range w.objects {
		if kind == kindWorkload.Kind {
			n++
		}
	}
	return n
}

// seen counts all objects, and tells what became of them.
func (w *watched) seen() (int, []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.objects), w.changes
}
