package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
)

// An example is a directory of example/.
type example struct {
	name string
	// xr that a user creates, or the claim.
	xr *unstructured.Unstructured
	// refused examples have nothing rendered.
	refused bool
	// input tells that the platform team sets something there, which here it does not.
	input bool
	// way tells that there is one to its router, if it has one.
	way bool
}

// examples are those that a control plane can serve which has no other clusters: as
// namespaced XRs, or as the claims behind which their XRs are. TestFleet serves those for
// other clusters.
func examples(t *testing.T, claimed bool) []*example {
	t.Helper()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, "example", "*", "xr.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var all []*example
	for _, f := range files {
		name := filepath.Base(filepath.Dir(f))
		docs, err := cluster.Documents([]byte(read(t, "example", name, "xr.yaml")))
		if err != nil {
			t.Fatalf("example/%s: %v", name, err)
		}
		e := &example{name: name, xr: docs[0]}
		_, placement, _ := unstructured.NestedMap(e.xr.Object, "spec", "placement")
		// Clusters of the fleet are TestFleet's, and models TestModels'. A service that names a ModelCache
		// needs that first.
		_, shared, _ := unstructured.NestedMap(e.xr.Object, "spec", "model", "cacheRef")
		if kind := e.xr.GetKind(); shared || kind == "InferenceCluster" || kind == "InferenceModel" || kind == "ModelCache" || (kind != "InferenceService") != claimed || placement {
			continue
		}
		is := func(file string) bool {
			found, _ := filepath.Glob(filepath.Join(filepath.Dir(f), file))
			return len(found) > 0
		}
		e.refused, e.input = !is("rendered.yaml"), is("input.yaml") && setsMore(t, name)
		// What is allowed to some tenants, or measured for them, is refused here, where nobody sets anything.
		if e.input {
			in := read(t, "example", name, "input.yaml")
			e.refused = e.refused || strings.Contains(in, "\ntenants:") || strings.Contains(in, "\nscaling:")
		}
		// The packages bring profiles of their own.
		if _, named, _ := unstructured.NestedString(docs[0].Object, "spec", "profileName"); named {
			if err := unstructured.SetNestedField(docs[0].Object, "vllm-nvidia", "spec", "profileName"); err != nil {
				t.Fatal(err)
			}
		}
		if claimed {
			e.xr = inference("", e.xr.GetLabels()["crossplane.io/claim-name"])
			e.xr.Object["spec"] = docs[0].Object["spec"]
			unstructured.RemoveNestedField(e.xr.Object, "spec", "claimRef")
		}
		ownParents(e.xr)
		// They are what an API server gave once.
		e.xr.SetUID("")
		e.xr.SetGeneration(0)
		all = append(all, e)
	}
	if len(all) == 0 {
		t.Fatal("there are no examples")
	}
	return all
}

// volumeFor makes the volume to which the claim of an example is bound, if it has a cache for its model or
// for adapters. KWOK says that the loading Job is complete.
func volumeFor(t *testing.T, c *cluster.Cluster, e *example) {
	t.Helper()
	cache, has, _ := unstructured.NestedMap(e.xr.Object, "spec", "model", "cache")
	if !has {
		cache, has, _ = unstructured.NestedMap(e.xr.Object, "spec", "adapterCache")
	}
	if !has {
		return
	}
	kubectl(t, c, "apply", "-f", written(t, "volume.yaml", fmt.Sprintf(`
apiVersion: v1
kind: PersistentVolume
metadata: {name: example-%s}
spec:
  accessModes: [ReadWriteMany, ReadWriteOnce]
  capacity: {storage: %v}
  hostPath: {path: /none}
`, e.name, cache["size"])))
}

// setsMore tells whether the platform team sets more for an example than what its routes
// may have, which changes nothing of a service.
func setsMore(t *testing.T, example string) bool {
	t.Helper()
	docs, err := cluster.Documents([]byte(read(t, "example", example, "input.yaml")))
	if err != nil {
		t.Fatalf("example/%s: %v", example, err)
	}
	for field := range docs[0].Object {
		if !slices.Contains([]string{"apiVersion", "kind", "routes"}, field) {
			return true
		}
	}
	return false
}

// ownParents makes the gateways that a router names the tenant's own. Nobody allows shared
// ones here: the packaged Compositions are installed as they are.
func ownParents(xr *unstructured.Unstructured) {
	roles, _, _ := unstructured.NestedSlice(xr.Object, "spec", "roles")
	for _, v := range roles {
		refs, _, _ := unstructured.NestedSlice(v.(map[string]any), "httproute", "parentRefs")
		if len(refs) == 0 {
			continue
		}
		for _, ref := range refs {
			delete(ref.(map[string]any), "namespace")
		}
		_ = unstructured.SetNestedSlice(v.(map[string]any), refs, "httproute", "parentRefs")
	}
	_ = unstructured.SetNestedSlice(xr.Object, roles, "spec", "roles")
}

// TestExamples proves that every valid example becomes Ready, all of them at once, that
// what it says of its roles is what its pods say, that each pod is as it was composed,
// that another reconcile writes nothing, and that llm-d's endpoint picker would take
// what it is given, where it is the one.
func TestExamples(t *testing.T) {
	t.Parallel()
	c := shared(t)
	var valid []*example
	for _, e := range examples(t, false) {
		// Those that differ in what is observed only would all be the same here.
		if e.refused || slices.ContainsFunc(valid, e.like) {
			continue
		}
		e.xr.SetNamespace(namespace(t, c))
		e.way = e.routed(t, c)
		volumeFor(t, c, e)
		apply(t, c, e.xr)
		valid = append(valid, e)
	}
	llmd := 0
	for _, e := range valid {
		t.Run(e.name, func(t *testing.T) {
			e.ready(t, c, observed)
			asComposed(t, c, e.xr)
			if ofLLMD(t, c, e.xr.GetNamespace(), e.xr.GetName()) {
				llmd++
			}
			before := writes(t, c, e.xr)
			// Another generation, which the function does not see.
			r, err := c.Resource(e.xr)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.Patch(t.Context(), e.xr.GetName(), types.MergePatchType,
				[]byte(`{"spec":{"crossplane":{"compositionUpdatePolicy":"Manual"}}}`), metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
			if s := e.ready(t, c, observed); s.GetGeneration() < 2 {
				t.Errorf("it is of generation %d, so it may not have been reconciled again", s.GetGeneration())
			}
			if diff := gocmp.Diff(before, writes(t, c, e.xr)); diff != "" {
				t.Errorf("another reconcile of what is ready writes: -before, +after:\n%s", diff)
			}
			if t.Failed() {
				return // What is there is shown.
			}
			// Crossplane looks at what is there every minute, which is of no use any more.
			if err := c.Delete(t.Context(), e.xr); err != nil {
				t.Error(err)
			}
		})
	}
	if llmd == 0 {
		t.Error("no example has llm-d's endpoint picker")
	}
}

// like tells whether what a user creates of two examples is the same but for the name.
func (e *example) like(other *example) bool {
	return gocmp.Equal(e.xr.Object["spec"], other.xr.Object["spec"]) &&
		gocmp.Equal(e.xr.GetAnnotations(), other.xr.GetAnnotations()) &&
		gocmp.Equal(e.xr.GetLabels(), other.xr.GetLabels())
}

// ready waits until the example is ready, says what its pods say, and is as newly
// observed as is asked for.
func (e *example) ready(t *testing.T, c *cluster.Cluster, observed func(*unstructured.Unstructured) error) *unstructured.Unstructured {
	t.Helper()
	want := []string{"Ready", "Synced", "Accepted", "KindsAvailable", "GangScheduled", "WorkloadsReady", "RouterReady"}
	if e.way {
		want = append(want, "RouteReady")
	}
	var s *unstructured.Unstructured
	until(t, c, e.name+" is ready, and says what its pods say", lasting(func(ctx context.Context) (bool, error) {
		if by, _, _ := unstructured.NestedString(e.xr.Object, "spec", "schedulingStrategy", "schedulerName"); by == elsewhere {
			if err := bind(ctx, c, e.xr.GetNamespace()); err != nil {
				return false, err
			}
		}
		var err error
		if s, err = c.Get(ctx, e.xr); err != nil {
			return false, err
		}
		if err := observed(s); err != nil {
			return false, err
		}
		if err := conditions(s, want...); err != nil {
			return false, err
		}
		pods, err := c.List(ctx, podKind, e.xr.GetNamespace())
		if err != nil {
			return false, err
		}
		if diff := gocmp.Diff(counted(s, pods), components(s)); diff != "" {
			return false, fmt.Errorf("its components: -by its pods, +by itself:\n%s", diff)
		}
		return true, nil
	}))
	// Without a host name it is where the Gateway happens to be, which no golden
	// knows, or what the platform team sets.
	url, _, _ := unstructured.NestedString(s.Object, "status", "url")
	if wanted := e.url(t); wanted != "" && !e.input && url != wanted {
		t.Errorf("its URL is %q, want %q", url, wanted)
	}
	return s
}

// asComposed checks that every LeaderWorkerSet of a service has as many pods as it
// should, each with the labels and annotations of the template that it was made of.
func asComposed(t *testing.T, c *cluster.Cluster, of *unstructured.Unstructured) {
	t.Helper()
	pods, looked := list(t, c, podKind, of.GetNamespace()), 0
	for _, o := range parts(t, c, of) {
		if o.GetKind() != "LeaderWorkerSet" {
			continue
		}
		size, _, _ := unstructured.NestedInt64(o.Object, "spec", "leaderWorkerTemplate", "size")
		n := int64(0)
		for i := range pods {
			p := &pods[i]
			if p.GetLabels()["leaderworkerset.sigs.k8s.io/name"] != o.GetName() {
				continue
			}
			n++
			template := templateOf(t, o, p)
			if len(template.GetLabels()) == 0 {
				t.Errorf("the template of pod %s has no labels", p.GetName())
			}
			same(t, "the labels of pod "+p.GetName(), template.GetLabels(), p.GetLabels())
			same(t, "the annotations of pod "+p.GetName(), template.GetAnnotations(), p.GetAnnotations())
			if got, want := p.GetLabels()["fusioninfer.io/spec-hash"], o.GetLabels()["fusioninfer.io/spec-hash"]; got != want {
				t.Errorf("pod %s has the spec hash %q, and its LeaderWorkerSet has %q", p.GetName(), got, want)
			}
		}
		if size == 0 || n != size {
			t.Errorf("%s has %d pods, want %d", title(o), n, size)
		}
		looked++
	}
	if looked == 0 {
		t.Error("there is no LeaderWorkerSet to look at")
	}
}

// templateOf returns the template of which a pod is made.
func templateOf(t *testing.T, lws, pod *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	at := []string{"spec", "leaderWorkerTemplate", "workerTemplate"}
	if pod.GetLabels()["leaderworkerset.sigs.k8s.io/worker-index"] == "0" {
		if _, ok, _ := unstructured.NestedMap(lws.Object, "spec", "leaderWorkerTemplate", "leaderTemplate"); ok {
			at[2] = "leaderTemplate"
		}
	}
	m, ok, err := unstructured.NestedMap(lws.Object, at...)
	if !ok || err != nil {
		t.Fatalf("%s has no %s: %v", lws.GetName(), strings.Join(at, "."), err)
	}
	return &unstructured.Unstructured{Object: m}
}

// writes tells of everything that a service is composed of what it is, and when
// Crossplane last changed it. Both, because that time has seconds only.
func writes(t *testing.T, c *cluster.Cluster, of *unstructured.Unstructured) map[string]string {
	t.Helper()
	return each(parts(t, c, of), func(o *unstructured.Unstructured) string {
		at := ""
		for _, m := range o.GetManagedFields() {
			if strings.HasPrefix(m.Manager, "apiextensions.crossplane.io/composed/") && m.Subresource == "" {
				at = m.Time.String()
			}
		}
		if at == "" {
			t.Errorf("Crossplane manages no field of %s", title(o))
		}
		unstructured.RemoveNestedField(o.Object, "status")
		o.SetManagedFields(nil)
		o.SetResourceVersion("")
		b, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		return at + " " + string(b)
	})
}

// routed makes the Gateways that the example's router names, and tells whether
// there is a way to the router, if there is one.
func (e *example) routed(t *testing.T, c *cluster.Cluster) bool {
	t.Helper()
	way := true
	roles, _, _ := unstructured.NestedSlice(e.xr.Object, "spec", "roles")
	for _, v := range roles {
		r := v.(map[string]any)
		if r["componentType"] != "router" {
			continue
		}
		refs, _, _ := unstructured.NestedSlice(r, "httproute", "parentRefs")
		way = len(refs) > 0 || r["gateway"] != nil
		for _, ref := range refs {
			gateway(t, c, e.xr.GetNamespace(), ref.(map[string]any)["name"].(string))
		}
	}
	return way
}

// gateway makes a Gateway of a platform team.
func gateway(t *testing.T, c *cluster.Cluster, namespace, name string) {
	t.Helper()
	if err := c.Namespace(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	apply(t, c, sharedGateway(namespace, name))
}

// sharedGateway is a Gateway that takes routes of all namespaces.
func sharedGateway(namespace, name string) *unstructured.Unstructured {
	g := object(schema.GroupVersionKind{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "Gateway"}, namespace, name)
	g.Object["spec"] = map[string]any{
		"gatewayClassName": "stand-in",
		"listeners": []any{map[string]any{
			"name": "http", "protocol": "HTTP", "port": int64(80),
			"allowedRoutes": map[string]any{"namespaces": map[string]any{"from": "All"}},
		}},
	}
	return g
}

// url is what was rendered for the example, in the namespace where it is here.
func (e *example) url(t *testing.T) string {
	t.Helper()
	docs, err := cluster.Documents([]byte(read(t, "example", e.name, "rendered.yaml")))
	if err != nil {
		t.Fatal(err)
	}
	url, _, _ := unstructured.NestedString(docs[0].Object, "status", "url")
	return strings.Replace(url, "."+docs[0].GetNamespace()+".svc", "."+e.xr.GetNamespace()+".svc", 1)
}

// counted is what components returns, by the pods that there are.
func counted(s *unstructured.Unstructured, pods []unstructured.Unstructured) map[string]string {
	groups, grouped, _ := unstructured.NestedInt64(s.Object, "spec", "replicas")
	if !grouped {
		groups = 1
	}
	all := map[string]string{}
	roles, _, _ := unstructured.NestedSlice(s.Object, "spec", "roles")
	for _, v := range roles {
		r := v.(map[string]any)
		if r["componentType"] == "router" {
			continue
		}
		nodes, several, _ := unstructured.NestedInt64(r, "multinode", "nodeCount")
		if !several {
			nodes = 1
		}
		replicas, given, _ := unstructured.NestedInt64(r, "replicas")
		if !given {
			replicas = 1
		}
		// Nobody scales a role here, so it has the least that it may have.
		if least, scaled, _ := unstructured.NestedInt64(r, "scaling", "minReplicas"); scaled {
			replicas = least
		}
		replicas *= groups
		// Ready pods of each replica.
		of, ready := map[string]int64{}, int64(0)
		for _, p := range pods {
			l := p.GetLabels()
			if status, _, _ := condition(&p, string(corev1.PodReady)); l["fusioninfer.io/role-name"] == r["name"] && status == "True" {
				of[l["fusioninfer.io/group-index"]+"/"+l["fusioninfer.io/replica-index"]]++
				ready++
			}
		}
		whole := int64(0)
		for _, n := range of {
			if n == nodes {
				whole++
			}
		}
		phase := "Deploying"
		if whole == replicas {
			phase = "Running"
		}
		all[r["name"].(string)] = fmt.Sprintf("%s %d/%d %d/%d", phase, whole, replicas, ready, replicas*nodes)
	}
	return all
}

// elsewhere is a scheduler of the examples that does not run here.
const elsewhere = "kai-scheduler"

// bind stands in for that scheduler: what asks for it goes to one node.
func bind(ctx context.Context, c *cluster.Cluster, namespace string) error {
	pods, err := c.List(ctx, podKind, namespace)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	for _, p := range pods {
		by, _, _ := unstructured.NestedString(p.Object, "spec", "schedulerName")
		node, _, _ := unstructured.NestedString(p.Object, "spec", "nodeName")
		if node != "" || by != elsewhere {
			continue
		}
		if err := client.CoreV1().Pods(namespace).Bind(ctx, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: p.GetName(), UID: p.GetUID()},
			Target:     corev1.ObjectReference{Kind: "Node", Name: "node-1"},
		}, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// TestRefused proves that no mistake passes in silence: the API server refuses it, or
// kubectl describe names the field. Nothing is composed.
func TestRefused(t *testing.T) {
	t.Parallel()
	c := shared(t)
	ns := namespace(t, c)

	t.Run("ManyMistakes", func(t *testing.T) {
		file := written(t, "xr.yaml", strings.Replace(read(t, "example", "invalid", "xr.yaml"), "namespace: llm", "namespace: "+ns, 1))
		for args, want := range map[string][]string{
			"--validate=strict": {"spec.roles[3].replcas"},
			"--validate=ignore": {
				"spec.roles[0].httproute", "spec.roles[1].name", "spec.roles[1].replicas",
				"spec.roles[1].multinode.nodeCount", "spec.roles[2].replicas",
			},
		} {
			_, err := c.Kubectl(t.Context(), "apply", args, "-f", file)
			if err == nil {
				t.Fatalf("kubectl apply %s takes it", args)
			}
			for _, w := range want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("kubectl apply %s does not name %s: %v", args, w, err)
				}
			}
		}
	})

	t.Run("NameTaken", func(t *testing.T) {
		owner := inference(ns, "a", engine("b-c", "worker", 1, 1))
		apply(t, c, owner)
		settled(t, c, owner)
		docs, err := cluster.Documents([]byte(read(t, "example", "name-taken", "xr.yaml")))
		if err != nil {
			t.Fatal(err)
		}
		docs[0].SetNamespace(ns)
		before := identities(t, c, "LeaderWorkerSet", owner)
		apply(t, c, docs[0])
		refused(t, c, docs[0], `spec.roles[0].name: Invalid value: "LeaderWorkerSet a-b-c-0"`)
		if diff := gocmp.Diff(before, identities(t, c, "LeaderWorkerSet", owner)); diff != "" {
			t.Errorf("the LeaderWorkerSets change: -before, +now:\n%s", diff)
		}
	})

	// What no schema can tell. The service is called after the mistake.
	for name, tc := range map[string]struct {
		path  string
		wrong func(router, role map[string]any)
	}{
		"picker-config": {"spec.roles[0].endpointPickerConfig", func(router, _ map[string]any) {
			router["endpointPickerConfig"] = "apiVersion: inference.networking.x-k8s.io/v1alpha1\nkind: EndpointPickerConfig\nplugins:\n- type: no-such-plugin\n"
		}},
		"no-container": {"spec.roles[1].template.spec.containers", func(_, role map[string]any) {
			podSpec(role)["containers"] = []any{}
		}},
		"long-name": {"spec.roles[1].name", func(_, role map[string]any) {
			role["name"] = strings.Repeat("a", 46)
		}},
		"hostname": {"spec.roles[0].httproute.hostnames[0]", func(router, _ map[string]any) {
			router["httproute"] = map[string]any{"hostnames": []any{"http://chat.example.com"}}
		}},
		"gateway": {"spec.roles[0].gateway.listeners", func(router, _ map[string]any) {
			router["gateway"] = map[string]any{"gatewayClassName": "stand-in"}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			router, role := picker("chat.example.com"), engine("a", "worker", 1, 1)
			tc.wrong(router, role)
			xr := inference(ns, name, router, role)
			apply(t, c, xr)
			refused(t, c, xr, tc.path)
			s, err := c.Get(t.Context(), xr)
			if err != nil {
				t.Fatal(err)
			}
			if refs, _, _ := unstructured.NestedSlice(s.Object, "spec", "crossplane", "resourceRefs"); len(refs) > 0 {
				t.Errorf("it is refused, and composed of %v", refs)
			}
		})
	}
}

// refused waits until a service's spec is refused, and looks for what kubectl
// describe has to say.
func refused(t *testing.T, c *cluster.Cluster, o *unstructured.Unstructured, why string) {
	t.Helper()
	until(t, c, o.GetName()+" is refused", func(ctx context.Context) (bool, error) {
		s, err := c.Get(ctx, o)
		if err != nil {
			return false, err
		}
		status, _, message := condition(s, "Accepted")
		if synced, _, _ := condition(s, "Synced"); status != "False" || synced != "False" {
			return false, fmt.Errorf("Accepted is %s (%s) and Synced %s, want both False", status, message, synced)
		}
		return true, nil
	})
	if said := kubectl(t, c, "describe", "inferenceservices.fusioninfer.io", o.GetName(), "--namespace="+o.GetNamespace()); !strings.Contains(said, why) {
		t.Errorf("kubectl describe does not name %s:\n%s", why, said)
	}
}
