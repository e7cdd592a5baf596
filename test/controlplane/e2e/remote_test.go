package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
)

var (
	objectKind = schema.GroupVersionKind{Group: "kubernetes.m.crossplane.io", Version: "v1alpha1", Kind: "Object"}
	// What the XR behind a claim is composed of.
	clusterObjectKind = schema.GroupVersionKind{Group: "kubernetes.crossplane.io", Version: "v1alpha2", Kind: "Object"}
)

// remotes are the clusters of the examples, by the names that those give them, and the
// namespace of each that is not the tenant's.
var remotes = map[string]struct{ config, remote, namespace string }{
	"east": {"gpu-east", "cluster-1", ""},
	"west": {"gpu-west", "cluster-2", "models"},
}

// A fleet is a control plane with two remote clusters.
type fleet struct {
	*cluster.Cluster

	// before is what the remote clusters had before any service ran there.
	before map[string]sets.Set[string]
}

// withoutFleet is for services that name their clusters themselves. What is in the clusters by
// now stays.
func (h *controlPlane) withoutFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{Cluster: h.Cluster, before: map[string]sets.Set[string]{}}
	tenants := []string{"llm", "llm-2", "team-a", "team-b"}
	for _, tenant := range tenants {
		if err := f.Namespace(t.Context(), tenant); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range f.Remotes() {
		for _, ns := range append(tenants, "models") {
			if err := r.Namespace(t.Context(), ns); err != nil {
				t.Fatal(err)
			}
			// What a controller makes in each namespace belongs to what was there before.
			until(t, r, ns+" has its ServiceAccount", func(ctx context.Context) (bool, error) {
				_, err := r.Get(ctx, object(schema.GroupVersionKind{Version: "v1", Kind: "ServiceAccount"}, ns, "default"))
				return err == nil, err
			})
		}
		all, err := r.Inventory(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		f.before[r.Name()] = all
	}
	return f
}

// installClaims installs the API as a claim in place of the other.
func (h *controlPlane) installClaims(t *testing.T) {
	t.Helper()
	kubectl(t, h.Cluster, "delete", "inferenceclusters.fusioninfer.io,inferenceservices.fusioninfer.io", "--all", "--all-namespaces")
	kubectl(t, h.Cluster, "delete", "composition", "--all")
	kubectl(t, h.Cluster, "delete", "xrd", "--all")
	until(t, h, "the namespaced API is gone", func(ctx context.Context) (bool, error) {
		out, err := h.Kubectl(ctx, "get", "--ignore-not-found", "--output=name", "xrd/inferenceservices.fusioninfer.io", "crd/inferenceservices.fusioninfer.io")
		if err == nil && out != "" {
			err = fmt.Errorf("there still is %s", out)
		}
		return err == nil, err
	})
	h.applyClaims(t, "", "")
}

// testTwoClusters serves the examples of two clusters, each of a tenant of its own, so
// that two services of one name meet in the namespace that they share.
func testTwoClusters(t *testing.T, f *fleet) {
	files, err := filepath.Glob("../../../example/two-clusters-*/xr.yaml")
	if err != nil || len(files) != 2 {
		t.Fatalf("there are the examples %q (%v), want two", files, err)
	}
	var services []*unstructured.Unstructured
	for i, file := range files {
		xr := f.example(t, filepath.Base(filepath.Dir(file)))
		if i > 0 {
			xr.SetNamespace(fmt.Sprintf("llm-%d", i+1))
		}
		apply(t, f.Cluster, xr)
		services = append(services, xr)
	}
	for i, xr := range services {
		s := settled(t, f.Cluster, xr)
		f.tellsOfPods(t, xr)
		if url, _, _ := unstructured.NestedString(s.Object, "status", "url"); i == 0 && url != "http://qwen.example.com" {
			t.Errorf("its URL is %q, want that of its route", url)
		}
		f.carried(t, f.objects(t, xr))
	}
	// The golden is of the same service in the same namespace.
	var got, want []string
	for _, o := range f.objects(t, services[0]) {
		got = append(got, f.where(t, o))
	}
	for _, o := range f.rendered(t, "two-clusters-first-reconcile") {
		want = append(want, f.where(t, o))
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what is in the clusters is not what the example shows: -want, +got:\n%s", diff)
	}

	t.Run("PodFails", func(t *testing.T) { testRemotePodFails(t, f, services[0]) })
	t.Run("CutOff", func(t *testing.T) { testCutOff(t, f, services[0]) })

	// The second goes first, from the namespace that it shares with the first.
	left := f.everything(t, services[0])
	f.remove(t, services[1])
	same(t, "the other service was deleted", left, f.everything(t, services[0]))
	f.remove(t, services[0])
	f.nothingLeft(t)
}

// testRemotePodFails proves that the status of a role is that of its pods, in the cluster where they
// are. A pod that crashes is named, by an Object that is there for as long as the pod is not ready.
func testRemotePodFails(t *testing.T, f *fleet, xr *unstructured.Unstructured) {
	r := f.Remote("cluster-2")
	pod := f.pods(t, "west", xr)[0]
	at := types.NamespacedName{Namespace: pod.GetNamespace(), Name: pod.GetName()}
	set := func(is corev1.ContainerState, ready bool) {
		t.Helper()
		if err := r.SetPod(t.Context(), at, is, 0, ready); err != nil {
			t.Fatal(err)
		}
	}
	saysOfWorkloads := func(reason, part string) {
		t.Helper()
		until(t, f, fmt.Sprintf("it says that a replica in west is not ready: %s", part), func(ctx context.Context) (bool, error) {
			s, err := f.Get(ctx, xr)
			if err != nil {
				return false, err
			}
			if status, got, message := condition(s, "WorkloadsReady"); status != "False" || got != reason || !strings.Contains(message, part) {
				return false, fmt.Errorf("WorkloadsReady is %s (%s: %s), want False (%s) with a message of %q", status, got, message, reason, part)
			}
			return true, nil
		})
	}
	observed := func() []string {
		var all []string
		for _, o := range f.everyObject(t, xr) {
			if isOfPod(o) {
				m, _ := f.manifest(t, &o)
				all = append(all, m.GetNamespace()+"/"+m.GetName())
			}
		}
		return all
	}
	set(cluster.Running(), false)
	saysOfWorkloads("NotReady", "cluster west")
	f.tellsOfPods(t, xr)

	name, _, _ := unstructured.NestedSlice(pod.Object, "spec", "containers")
	set(cluster.Waiting("CrashLoopBackOff"), false)
	saysOfWorkloads("Failed", fmt.Sprintf("cluster west: pod %s: container %s: CrashLoopBackOff", pod.GetName(), name[0].(map[string]any)["name"]))
	s, err := f.Get(t.Context(), xr)
	if err != nil {
		t.Fatal(err)
	}
	for _, got := range clusterComponents(s)["west"] {
		if !strings.HasPrefix(got, "Failed ") {
			t.Errorf("the role in west is %s, want Failed", got)
		}
	}
	if diff := cmp.Diff([]string{at.String()}, observed()); diff != "" {
		t.Errorf("the pods that Objects observe: -want, +got:\n%s", diff)
	}

	set(cluster.Running(), true)
	settled(t, f.Cluster, xr)
	f.tellsOfPods(t, xr)
	until(t, f, "no Object observes a pod any more", func(context.Context) (bool, error) {
		return len(observed()) == 0, fmt.Errorf("there still are those of %q", observed())
	})
	if left := f.pods(t, "west", xr); !slices.ContainsFunc(left, func(p unstructured.Unstructured) bool { return p.GetUID() == pod.GetUID() }) {
		t.Errorf("pod %s went with its Object", pod.GetName())
	}
}

// testCutOff proves that nothing is deleted or made anew while a cluster cannot be reached,
// that the service says so, and that it goes on where it was.
func testCutOff(t *testing.T, f *fleet, xr *unstructured.Unstructured) {
	before := f.everything(t, xr)
	r := f.Remote("cluster-1")
	t.Cleanup(r.Reconnect)
	r.CutOff()
	until(t, f, "it says that east cannot be read", func(ctx context.Context) (bool, error) {
		s, err := f.Get(ctx, xr)
		if err != nil {
			return false, err
		}
		for _, name := range []string{"WorkloadsReady", "RouterReady"} {
			if status, reason, message := condition(s, name); status != "Unknown" || reason != "CannotBeRead" || !strings.Contains(message, "cluster east") {
				return false, fmt.Errorf("%s is %s (%s: %s), want Unknown (CannotBeRead) with a message that names cluster east", name, status, reason, message)
			}
		}
		return true, nil
	})
	// What is known of the other is as it was.
	s, err := f.Get(t.Context(), xr)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"inference": "Running 2/2 2/2"}, clusterComponents(s)["west"]); diff != "" {
		t.Errorf("what it says of west: -want, +got:\n%s", diff)
	}
	same(t, "a cluster is cut off", before, f.everything(t, xr))

	// An edit reaches the cluster that is there, and the other when it is back.
	roles, _, _ := unstructured.NestedSlice(xr.Object, "spec", "roles")
	roles[1].(map[string]any)["replicas"] = int64(3)
	if err := unstructured.SetNestedSlice(xr.Object, roles, "spec", "roles"); err != nil {
		t.Fatal(err)
	}
	apply(t, f.Cluster, xr)
	until(t, f, "west has a third replica", func(context.Context) (bool, error) {
		if n := len(f.pods(t, "west", xr)); n != 3 {
			return false, fmt.Errorf("it has %d", n)
		}
		return true, nil
	})
	if n := len(f.pods(t, "east", xr)); n != 2 {
		t.Errorf("east has %d pods while it is cut off, want 2", n)
	}
	// The budget counts the replicas.
	maps.DeleteFunc(before, func(name, _ string) bool { return strings.Contains(name, "PodDisruptionBudget") })
	same(t, "a cluster is cut off and the service edited", before, f.everything(t, xr))
	r.Reconnect()
	settled(t, f.Cluster, xr)
	f.tellsOfPods(t, xr)
	same(t, "a cluster is back", before, f.everything(t, xr))
	if n := len(f.pods(t, "east", xr)); n != 3 {
		t.Errorf("east has %d pods after it is back, want 3", n)
	}
}

// testRemoteGang serves prefill and decode on several nodes in each of two clusters:
// Volcano starts each gang in its own.
func testRemoteGang(t *testing.T, h *controlPlane) {
	f, ns := &fleet{Cluster: h.Cluster}, namespace(t, h.Cluster)
	for _, r := range h.Remotes() {
		if err := r.Namespace(t.Context(), ns); err != nil {
			t.Fatal(err)
		}
	}
	router := picker("pd.example.com")
	router["strategy"] = "pd-disaggregation"
	xr := inference(ns, "pd", router, engine("prefill", "prefiller", 1, 2), engine("decode", "decoder", 2, 2))
	var clusters []any
	for _, r := range h.Remotes() {
		clusters = append(clusters, map[string]any{"name": r.Name(), "providerConfigRef": map[string]any{"name": r.Direct()}})
	}
	xr.Object["spec"].(map[string]any)["placement"] = map[string]any{"clusters": clusters}
	apply(t, h.Cluster, xr)
	s := settled(t, h.Cluster, xr)
	want := map[string]string{"prefill": "Running 1/1 2/2", "decode": "Running 2/2 4/4"}
	if diff := cmp.Diff(map[string]map[string]string{"cluster-1": want, "cluster-2": want}, clusterComponents(s)); diff != "" {
		t.Errorf("what it says of its clusters: -want, +got:\n%s", diff)
	}
	for _, r := range h.Remotes() {
		groups := list(t, r, podGroupKind, ns)
		if len(groups) != 1 {
			t.Fatalf("%s has %d PodGroups, want one", r.Name(), len(groups))
		}
		// Volcano writes the phase after the pods have started.
		until(t, r, "the PodGroup in "+r.Name()+" is Running", func(ctx context.Context) (bool, error) {
			g, err := r.Get(ctx, &groups[0])
			if err != nil {
				return false, err
			}
			phase, _, _ := unstructured.NestedString(g.Object, "status", "phase")
			return phase == "Running", fmt.Errorf("it is %q", phase)
		})
	}
	f.carried(t, f.objects(t, xr))
	h.remove(t, xr)
}

// testRemoteClaim serves a claim in two clusters, through cluster-scoped Objects.
func testRemoteClaim(t *testing.T, f *fleet) {
	// What a user writes for the XR of the example.
	claim := f.example(t, "claim-two-clusters")
	claim.SetKind("InferenceService")
	claim.SetName("qwen")
	claim.SetNamespace("team-a")
	claim.SetLabels(nil)
	unstructured.RemoveNestedField(claim.Object, "spec", "claimRef")
	apply(t, f.Cluster, claim)
	ready(t, f.Cluster, claim)
	f.tellsOfPods(t, claim)
	all := f.objects(t, claim)
	if want := len(f.rendered(t, "claim-two-clusters")); len(all) != want {
		t.Errorf("it is composed of %d Objects, want %d", len(all), want)
	}
	f.carried(t, all)
	f.remove(t, claim)
}

// example is the XR of an example, with the clusters that there are as its placement.
func (f *fleet) example(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	docs, err := cluster.Documents([]byte(f.withRemotes(read(t, "example", name, "xr.yaml"))))
	if err != nil {
		t.Fatal(err)
	}
	xr := docs[0]
	// They are what an API server gave once.
	xr.SetUID("")
	xr.SetGeneration(0)
	return xr
}

// rendered are the Objects that an example shows.
func (f *fleet) rendered(t *testing.T, name string) []unstructured.Unstructured {
	t.Helper()
	docs, err := cluster.Documents([]byte(f.withRemotes(read(t, "example", name, "rendered.yaml"))))
	if err != nil {
		t.Fatal(err)
	}
	var all []unstructured.Unstructured
	for _, d := range docs {
		if d.GetKind() == objectKind.Kind {
			all = append(all, *d)
		}
	}
	return all
}

// withRemotes names the configurations that there are in place of the examples'.
func (f *fleet) withRemotes(text string) string {
	for _, p := range remotes {
		text = strings.ReplaceAll(text, p.config, f.Remote(p.remote).Direct())
	}
	return text
}

// directConfigs is the part of an input that lets services name these configurations, as the
// input.yaml of the examples does.
func (h *controlPlane) directConfigs() string {
	text := "allowedProviderConfigs:\n"
	for _, r := range h.Remotes() {
		text += "- {name: " + r.Direct() + ", namespaces: [models]}\n"
	}
	return text
}

// manifest that an Object carries, and the cluster to which.
func (f *fleet) manifest(t *testing.T, o *unstructured.Unstructured) (*unstructured.Unstructured, *cluster.Remote) {
	t.Helper()
	m, _, err := unstructured.NestedMap(o.Object, "spec", "forProvider", "manifest")
	if err != nil {
		t.Fatal(err)
	}
	to, _, _ := unstructured.NestedString(o.Object, "spec", "providerConfigRef", "name")
	return &unstructured.Unstructured{Object: m}, f.ByConfig(to)
}

// where an Object makes what.
func (f *fleet) where(t *testing.T, o unstructured.Unstructured) string {
	t.Helper()
	m, r := f.manifest(t, &o)
	return fmt.Sprintf("%s: %s %s/%s", r.Name(), m.GetKind(), m.GetNamespace(), m.GetName())
}

// carried proves of Objects that their clusters have all that they carry.
func (f *fleet) carried(t *testing.T, all []unstructured.Unstructured) {
	t.Helper()
	if len(all) == 0 {
		t.Error("there are no Objects")
	}
	for i := range all {
		want, r := f.manifest(t, &all[i])
		got, err := r.Get(t.Context(), want)
		if err != nil {
			t.Errorf("%s: %v", f.where(t, all[i]), err)
			continue
		}
		if lacks := unlike(want.Object, got.Object, ""); len(lacks) > 0 {
			t.Errorf("%s is not as its Object says:\n%s", f.where(t, all[i]), strings.Join(lacks, "\n"))
		}
	}
}

// unlike are the fields that are not as wanted. There may be more than those.
func unlike(want, got any, at string) []string {
	switch want := want.(type) {
	case map[string]any:
		m, _ := got.(map[string]any)
		var all []string
		for _, k := range slices.Sorted(maps.Keys(want)) {
			all = append(all, unlike(want[k], m[k], at+"."+k)...)
		}
		return all
	case []any:
		l, _ := got.([]any)
		if len(l) != len(want) {
			return []string{fmt.Sprintf("%s has %d elements, want %d", at, len(l), len(want))}
		}
		var all []string
		for i := range want {
			all = append(all, unlike(want[i], l[i], fmt.Sprintf("%s[%d]", at, i))...)
		}
		return all
	}
	if !cmp.Equal(want, got) {
		return []string{fmt.Sprintf("%s is %v, want %v", at, got, want)}
	}
	return nil
}

// pods of a service in one of its clusters, by the name that it gives to that.
func (f *fleet) pods(t *testing.T, name string, xr *unstructured.Unstructured) []unstructured.Unstructured {
	t.Helper()
	p := remotes[name]
	namespace := xr.GetNamespace()
	if p.namespace != "" {
		namespace = p.namespace
	}
	// In a shared namespace, those of the LeaderWorkerSets that its Objects carry.
	mine := sets.New[string]()
	for _, o := range f.objects(t, xr) {
		if m, r := f.manifest(t, &o); r.Name() == p.remote && m.GetKind() == lwsKind.Kind {
			mine.Insert(m.GetName())
		}
	}
	var all []unstructured.Unstructured
	for _, pod := range list(t, f.Remote(p.remote), podKind, namespace) {
		if mine.Has(pod.GetLabels()["leaderworkerset.sigs.k8s.io/name"]) {
			all = append(all, pod)
		}
	}
	return all
}

// objects that a service, or the XR behind a claim, is composed of. Those that observe pods come and go
// with what is not ready, so they are left out.
func (f *fleet) objects(t *testing.T, xr *unstructured.Unstructured) []unstructured.Unstructured {
	t.Helper()
	return slices.DeleteFunc(f.everyObject(t, xr), isOfPod)
}

// isOfPod tells whether an Object is for a pod.
func isOfPod(o unstructured.Unstructured) bool {
	kind, _, _ := unstructured.NestedString(o.Object, "spec", "forProvider", "manifest", "kind")
	return kind == podKind.Kind
}

func (f *fleet) everyObject(t *testing.T, xr *unstructured.Unstructured) []unstructured.Unstructured {
	t.Helper()
	of := list(t, f, objectKind, xr.GetNamespace())
	if len(of) == 0 {
		of = slices.DeleteFunc(list(t, f, clusterObjectKind, ""), func(o unstructured.Unstructured) bool {
			l := o.GetLabels()
			return l["crossplane.io/claim-namespace"] != xr.GetNamespace() || l["crossplane.io/claim-name"] != xr.GetName()
		})
	}
	return of
}

// tellsOfPods waits until a service says of its roles in each cluster what its pods there
// say.
func (f *fleet) tellsOfPods(t *testing.T, xr *unstructured.Unstructured) {
	t.Helper()
	until(t, f, xr.GetName()+" says what its pods say", func(ctx context.Context) (bool, error) {
		s, err := f.Get(ctx, xr)
		if err != nil {
			return false, err
		}
		want := map[string]map[string]string{}
		var all []unstructured.Unstructured
		for name := range remotes {
			pods := f.pods(t, name, xr)
			all = append(all, pods...)
			want[name] = counted(s, pods)
		}
		if len(all) == 0 {
			return false, errors.New("there are no pods")
		}
		if diff := cmp.Diff(want, clusterComponents(s)); diff != "" {
			return false, fmt.Errorf("-by its pods, +by itself:\n%s", diff)
		}
		return true, nil
	})
}

// clusterComponents is what components returns, for each cluster.
func clusterComponents(s *unstructured.Unstructured) map[string]map[string]string {
	all := map[string]map[string]string{}
	clusters, _, _ := unstructured.NestedSlice(s.Object, "status", "clusters")
	for _, v := range clusters {
		m := v.(map[string]any)
		all[m["name"].(string)] = components(&unstructured.Unstructured{Object: map[string]any{"spec": s.Object["spec"], "status": m}})
	}
	return all
}

// everything that a service is made of: its Objects, what they carry, and the pods there.
func (f *fleet) everything(t *testing.T, xr *unstructured.Unstructured) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, o := range f.objects(t, xr) {
		all["Object "+o.GetName()] = string(o.GetUID())
		m, r := f.manifest(t, &o)
		got, err := r.Get(t.Context(), m)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		all[f.where(t, o)] = identity(got)
	}
	for name := range remotes {
		for _, pod := range f.pods(t, name, xr) {
			all[name+": pod "+pod.GetName()] = string(pod.GetUID())
		}
	}
	return all
}

// remove deletes a service, and waits until its Objects are gone.
func (f *fleet) remove(t *testing.T, xr *unstructured.Unstructured) {
	t.Helper()
	var all []*unstructured.Unstructured
	for _, o := range f.objects(t, xr) {
		all = append(all, &o)
	}
	kubectl(t, f.Cluster, "delete", "inferenceservices.fusioninfer.io", xr.GetName(), "--namespace="+xr.GetNamespace())
	vanished(t, f.Cluster, all...)
}

// nothingLeft waits until the remote clusters have what they had before.
func (f *fleet) nothingLeft(t *testing.T) {
	t.Helper()
	for _, r := range f.Remotes() {
		if err := r.OnlyHas(t.Context(), f.before[r.Name()]); err != nil {
			t.Errorf("in %s: %v", r.Name(), err)
		}
	}
}
