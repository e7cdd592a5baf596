package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
)

// A plane is one control plane for all tests that leave it as it is.
type plane struct {
	once sync.Once
	c    *cluster.Cluster
	dir  string
	err  error
}

var common plane

// packages that all parts share need to be built once only.
var packages = flag.String("packages", "", "`directory` with the packages of versions that are built already")

// TestMain ends the shared control plane after the last test.
func TestMain(m *testing.M) {
	code := m.Run()
	if err := common.stop(code != 0); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// shared returns the control plane that tests share: the function and the
// namespaced API are installed, and there is room for everything at once. A test
// has a namespace of its own, see namespace, and touches nothing else.
func shared(t *testing.T) *cluster.Cluster {
	t.Helper()
	common.once.Do(func() { common.err = common.start(context.WithoutCancel(t.Context())) })
	if common.err != nil {
		t.Fatalf("there is no shared control plane: %v", common.err)
	}
	return common.c
}

func (p *plane) start(ctx context.Context) error {
	var err error
	if p.dir, err = os.MkdirTemp("", "controlplane-shared-"); err != nil {
		return err
	}
	// Few nodes with many GPUs: what is tested on it is not how pods are spread, and
	// each node costs a heartbeat.
	p.c, err = cluster.Up(ctx, cluster.Options{
		Dir: p.dir, Packages: *packages, Nodes: 24, GPUs: 64, NodesPerHyperNode: 12, CoreArgs: cluster.RecommendedCoreArgs,
	})
	if err != nil {
		return err
	}
	if err := p.c.Install(ctx, first); err != nil {
		return err
	}
	return nil
}

// stop ends the control plane. Where a test failed, its logs stay.
func (p *plane) stop(failed bool) error {
	if p.c == nil {
		return nil
	}
	err := p.c.Stop()
	if !failed && err == nil {
		return os.RemoveAll(p.dir)
	}
	cluster.KeepLogs(p.dir)
	fmt.Fprintf(os.Stderr, "the logs of the shared control plane are in %s\n", p.dir)
	return err
}

var namespaces atomic.Int64

// namespace makes a namespace for one test. Where the test fails, what is there by
// then is shown. Its services are removed after the test, which nobody waits for.
func namespace(t *testing.T, c *cluster.Cluster) string {
	t.Helper()
	name := strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(t.Name()), "-"), "-")
	name = fmt.Sprintf("%.50s-%d", name, namespaces.Add(1))
	if err := c.Namespace(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if t.Failed() {
			for _, what := range [][]string{
				{"inferenceservices,leaderworkersets,podgroups,deployments,pods,inferencepools,httproutes"},
				{"events", "--sort-by=.metadata.creationTimestamp"},
			} {
				out, err := c.Kubectl(ctx, append([]string{"get", "--namespace=" + name}, what...)...)
				t.Logf("in namespace %s (%v):\n%s", name, err, out)
			}
		}
		// The namespace stays. If it went, controllers would try for a while to make anew in it what goes first.
		services, err := c.List(ctx, kindService, name)
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return // Crossplane, or what it serves, is not there any more.
		}
		if err != nil {
			t.Error(err)
		}
		for i := range services {
			if err := c.Delete(ctx, &services[i]); err != nil {
				t.Error(err)
			}
		}
	})
	return name
}

// inference is an InferenceService with roles. They are not copied: a test changes
// one and applies the service again.
func inference(namespace, name string, roles ...map[string]any) *unstructured.Unstructured {
	o := service(name)
	o.SetNamespace(namespace)
	o.Object["spec"] = map[string]any{}
	setRoles(o, roles...)
	return o
}

func setRoles(o *unstructured.Unstructured, roles ...map[string]any) {
	all := make([]any, 0, len(roles))
	for _, r := range roles {
		all = append(all, r)
	}
	o.Object["spec"].(map[string]any)["roles"] = all
}

// engine is a role that serves, each replica on so many nodes.
func engine(name, componentType string, replicas, nodes int64) map[string]any {
	args := []any{"--model=Qwen/Qwen3-8B", fmt.Sprintf("--tensor-parallel-size=%d", nodes)}
	if componentType != "worker" {
		args = append(args, "--kv-transfer-config", `{"kv_connector":"NixlConnector","kv_role":"kv_both"}`)
	}
	r := map[string]any{
		"name": name, "componentType": componentType, "replicas": replicas,
		"template": map[string]any{"spec": map[string]any{
			"containers": []any{map[string]any{
				"name": "engine", "image": engineImage, "args": args,
				"ports":     []any{map[string]any{"name": "http", "containerPort": int64(8000)}},
				"resources": map[string]any{"limits": map[string]any{"nvidia.com/gpu": "1"}},
			}},
		}},
	}
	if nodes > 1 {
		r["multinode"] = map[string]any{"nodeCount": nodes}
	}
	return r
}

// withoutGPUs makes a role request none.
func withoutGPUs(role map[string]any) map[string]any {
	delete(podSpec(role)["containers"].([]any)[0].(map[string]any), "resources")
	return role
}

// podSpec is that of a role's template.
func podSpec(role map[string]any) map[string]any {
	return role["template"].(map[string]any)["spec"].(map[string]any)
}

// picker is a router with a Gateway of its own. A request fails if no endpoint picker answers.
func picker(host string) map[string]any {
	return map[string]any{
		"name": "router", "componentType": "router", "strategy": "prefix-cache",
		"gateway": map[string]any{
			"gatewayClassName": "stand-in",
			"listeners":        []any{map[string]any{"name": "http", "protocol": "HTTP", "port": int64(80)}},
		},
		"httproute":      map[string]any{"hostnames": []any{host}},
		"endpointPicker": map[string]any{"failureMode": "FailClose"},
	}
}

// apply applies a service, as a user does.
func apply(t *testing.T, c *cluster.Cluster, o *unstructured.Unstructured) {
	t.Helper()
	if _, err := c.Apply(t.Context(), o, "user"); err != nil {
		t.Fatalf("cannot apply %s: %v", o.GetName(), err)
	}
}

// settled waits until a service is ready as it was last applied, and returns it.
func settled(t *testing.T, c *cluster.Cluster, o *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	var s *unstructured.Unstructured
	until(t, c, o.GetName()+" is ready as it was last applied", lasting(func(ctx context.Context) (bool, error) {
		var err error
		if s, err = c.Get(ctx, o); err != nil {
			return false, err
		}
		if err := observed(s); err != nil {
			return false, err
		}
		err = errors.Join(warnings(s), conditions(s, "Ready", "Synced",
			"Accepted", "WorkloadsReady", "RolledOut", "GangScheduled", "RouterReady", "RouteReady", "KindsAvailable"))
		if done, _, _ := unstructured.NestedInt64(s.Object, "status", "rollout", "completedGeneration"); done != s.GetGeneration() {
			err = errors.Join(err, fmt.Errorf("generation %d is rolled out, not %d", done, s.GetGeneration()))
		}
		return err == nil, err
	}))
	return s
}

// lasting wants something to be so for longer than Crossplane takes from the first to
// the second of the two steps in which it writes a status. After an edit the first
// has the new generation, and the conditions may still be those of before: with a
// generation that Crossplane read when it had called the function already.
func lasting(done func(context.Context) (bool, error)) func(context.Context) (bool, error) {
	var since time.Time
	return func(ctx context.Context) (bool, error) {
		ok, err := done(ctx)
		switch {
		case !ok:
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		}
		return ok && time.Since(since) > 2*time.Second, err
	}
}

// observed tells whether a service's status is about its newest spec. Crossplane
// writes the conditions a moment after the rest, see lasting.
func observed(o *unstructured.Unstructured) error {
	if seen, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration"); seen != o.GetGeneration() {
		return fmt.Errorf("its status is of generation %d, not %d", seen, o.GetGeneration())
	}
	all, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, v := range all {
		m := v.(map[string]any)
		if seen, _, _ := unstructured.NestedInt64(m, "observedGeneration"); m["type"] == "Ready" && seen == o.GetGeneration() {
			return nil
		}
	}
	return fmt.Errorf("its condition Ready is not of generation %d", o.GetGeneration())
}

// components are what a service says of its roles: phase, ready and wanted replicas,
// ready and all pods. Routers are left out, because RouterReady is about them.
func components(o *unstructured.Unstructured) map[string]string {
	got := everyComponent(o)
	roles, _, _ := unstructured.NestedSlice(o.Object, "spec", "roles")
	for _, role := range roles {
		if role := role.(map[string]any); role["componentType"] == "router" {
			delete(got, fmt.Sprint(role["name"]))
		}
	}
	return got
}

func everyComponent(o *unstructured.Unstructured) map[string]string {
	got := map[string]string{}
	all, _, _ := unstructured.NestedMap(o.Object, "status", "components")
	for name, v := range all {
		m := v.(map[string]any)
		got[name] = fmt.Sprint(m["phase"], " ", m["readyReplicas"], "/", m["desiredReplicas"], " ", m["readyPods"], "/", m["totalPods"])
	}
	return got
}

// says waits until a service says something of its roles, and of whether their
// workloads are ready: status, reason and a part of the message. What is not ready is
// not Ready either.
func says(t *testing.T, c *cluster.Cluster, o *unstructured.Unstructured, want map[string]string, ready ...string) {
	t.Helper()
	if len(ready) == 0 {
		ready = []string{"True", "AllReady", ""}
	}
	until(t, c, fmt.Sprintf("%s says %v", o.GetName(), want), func(ctx context.Context) (bool, error) {
		s, err := c.Get(ctx, o)
		if err != nil {
			return false, err
		}
		if diff := cmp.Diff(want, components(s)); diff != "" {
			return false, fmt.Errorf("-want, +got:\n%s", diff)
		}
		status, reason, message := condition(s, "WorkloadsReady")
		if status != ready[0] || reason != ready[1] || !strings.Contains(message, ready[2]) {
			return false, fmt.Errorf("WorkloadsReady is %s (%s: %s), want %q", status, reason, message, ready)
		}
		if all, _, _ := condition(s, "Ready"); all != status {
			return false, fmt.Errorf("WorkloadsReady is %s, but Ready %s", status, all)
		}
		return true, nil
	})
}

// condition is one of an object's conditions: its status, reason and message.
func condition(o *unstructured.Unstructured, name string) (status, reason, message string) {
	all, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, v := range all {
		if m := v.(map[string]any); m["type"] == name {
			status, _ = m["status"].(string)
			reason, _ = m["reason"].(string)
			message, _ = m["message"].(string)
		}
	}
	return status, reason, message
}

var (
	podKind      = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	podGroupKind = schema.GroupVersionKind{Group: "scheduling.volcano.sh", Version: "v1beta1", Kind: "PodGroup"}
	lwsKind      = schema.GroupVersionKind{Group: "leaderworkerset.x-k8s.io", Version: "v1", Kind: "LeaderWorkerSet"}
)

// object of a kind, by its name.
func object(gvk schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(gvk)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// typed reads an object, and tells whether it is there.
func typed(t *testing.T, c *cluster.Cluster, gvk schema.GroupVersionKind, namespace, name string, into any) bool {
	t.Helper()
	o, err := c.Get(t.Context(), object(gvk, namespace, name))
	if apierrors.IsNotFound(err) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, into); err != nil {
		t.Fatal(err)
	}
	return true
}

// An api is that of the control plane or of a remote cluster.
type api interface {
	Get(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, error)
	List(ctx context.Context, gvk schema.GroupVersionKind, namespace string) ([]unstructured.Unstructured, error)
	Until(ctx context.Context, what string, done func(context.Context) (bool, error)) error
	Kubectl(ctx context.Context, args ...string) (string, error)
}

func list(t *testing.T, c api, gvk schema.GroupVersionKind, namespace string) []unstructured.Unstructured {
	t.Helper()
	all, err := c.List(t.Context(), gvk, namespace)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// parts are the objects that a service is composed of, as they are.
func parts(t *testing.T, c *cluster.Cluster, of *unstructured.Unstructured) []*unstructured.Unstructured {
	t.Helper()
	s, err := c.Get(t.Context(), of)
	if err != nil {
		t.Fatal(err)
	}
	refs, _, _ := unstructured.NestedSlice(s.Object, "spec", "crossplane", "resourceRefs")
	all := make([]*unstructured.Unstructured, 0, len(refs))
	for _, r := range refs {
		m := r.(map[string]any)
		gvk := schema.FromAPIVersionAndKind(m["apiVersion"].(string), m["kind"].(string))
		o, err := c.Get(t.Context(), object(gvk, of.GetNamespace(), m["name"].(string)))
		if err != nil {
			t.Fatalf("%s names a part that cannot be read: %v", of.GetName(), err)
		}
		all = append(all, o)
	}
	if len(all) == 0 {
		t.Fatalf("%s is composed of nothing", of.GetName())
	}
	return all
}

// title of an object.
func title(o *unstructured.Unstructured) string { return o.GetKind() + " " + o.GetName() }

// each tells something of each object.
func each(all []*unstructured.Unstructured, of func(*unstructured.Unstructured) string) map[string]string {
	m := map[string]string{}
	for _, o := range all {
		m[title(o)] = of(o)
	}
	return m
}

// identity changes when an object is made anew or its spec is changed.
func identity(o *unstructured.Unstructured) string {
	return fmt.Sprintf("%s generation %d", o.GetUID(), o.GetGeneration())
}

// same fails if one of those that were there before is not what it was. There
// may be more now.
func same(t *testing.T, when string, before, now map[string]string) {
	t.Helper()
	left := map[string]string{}
	maps.Copy(left, now)
	maps.DeleteFunc(left, func(k, _ string) bool { _, was := before[k]; return !was })
	if diff := cmp.Diff(before, left, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s: what should stay as it is does not: -before, +now:\n%s", when, diff)
	}
}

// only keeps the entries whose names start with one of these.
func only(all map[string]string, prefixes ...string) map[string]string {
	m := maps.Clone(all)
	maps.DeleteFunc(m, func(k, _ string) bool {
		return !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(k, p) })
	})
	return m
}

// vanished waits until objects are no more.
func vanished(t *testing.T, c *cluster.Cluster, all ...*unstructured.Unstructured) {
	t.Helper()
	for _, o := range all {
		until(t, c, title(o)+" is gone", func(ctx context.Context) (bool, error) {
			now, err := c.Get(ctx, o)
			if err == nil && o.GetUID() != "" && now.GetUID() != o.GetUID() {
				return false, errors.New("it was made anew")
			}
			return apierrors.IsNotFound(err), err
		})
	}
}

// inventory names all objects of a namespace, of whatever kind.
func inventory(t *testing.T, c *cluster.Cluster, namespace string) sets.Set[string] {
	t.Helper()
	all, err := c.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	mine := sets.New[string]()
	for n := range all {
		if strings.Contains(n, " "+namespace+"/") {
			mine.Insert(n)
		}
	}
	return mine
}

// A recording has what happened to the objects of a kind in a namespace.
type recording struct {
	mu     sync.Mutex
	events []watch.Event
}

// record records from now on until the test ends.
func record(t *testing.T, c interface {
	Resource(o *unstructured.Unstructured) (dynamic.ResourceInterface, error)
}, gvk schema.GroupVersionKind, namespace string) *recording {
	t.Helper()
	r, err := c.Resource(object(gvk, namespace, ""))
	if err != nil {
		t.Fatal(err)
	}
	l, err := r.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := r.Watch(t.Context(), metav1.ListOptions{ResourceVersion: l.GetResourceVersion()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	rec := &recording{}
	go func() {
		for e := range w.ResultChan() {
			rec.mu.Lock()
			rec.events = append(rec.events, e)
			rec.mu.Unlock()
		}
	}()
	return rec
}

// all are the events so far.
func (r *recording) all() []watch.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// first is the revision of the first event that matches, or 0. All kinds are in
// one etcd, so revisions tell what was written before what.
func (r *recording) first(t *testing.T, is func(watch.EventType, *unstructured.Unstructured) bool) uint64 {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		o, ok := e.Object.(*unstructured.Unstructured)
		if !ok {
			t.Fatalf("the watch ended: %v", e.Object)
		}
		if !is(e.Type, o) {
			continue
		}
		n, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return 0
}
