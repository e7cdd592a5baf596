package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
)

var (
	clusterKind   = schema.GroupVersionKind{Group: "fusioninfer.io", Version: "v1alpha1", Kind: "InferenceCluster"}
	routeKind     = schema.GroupVersionKind{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "HTTPRoute"}
	gatewayKind   = schema.GroupVersionKind{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "Gateway"}
	configMapKind = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	sliceKind     = schema.GroupVersionKind{Group: "discovery.k8s.io", Version: "v1", Kind: "EndpointSlice"}
)

// A controlPlane is above two clusters, and has a gateway for all services.
type controlPlane struct{ *cluster.Cluster }

// TestFleet proves on real clusters, through the real provider-kubernetes, what
// docs/placement.md says: who lands where and why, that nothing is booked twice, and that a
// service is served at every moment while it moves. On the same clusters it serves those that
// name their clusters themselves, and claims.
func TestFleet(t *testing.T) {
	h := &controlPlane{cluster.TestUp(t, cluster.Options{Packages: *packages, Nodes: 6, GPUs: 64, Clusters: 2, CoreArgs: cluster.RecommendedCoreArgs})}
	h.install(t)
	t.Run("Undisturbed", func(t *testing.T) {
		for name, test := range map[string]func(*testing.T, *controlPlane){
			"Failover": testFailover, "Spread": testSpread, "SameNames": testFleetSameNames, "Drain": testDrain, "StaleLedger": testStaleLedger,
			"Gang": testRemoteGang,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, h)
			})
		}
	})
	t.Run("Cost", func(t *testing.T) { testFleetCost(t, h) })
	t.Run("Exclusive", func(t *testing.T) { testExclusive(t, h) })
	// These cut off a cluster, or restart Crossplane.
	t.Run("CutOff", func(t *testing.T) { testFleetCutOff(t, h) })
	t.Run("Dead", func(t *testing.T) { testDead(t, h) })
	var raced []*unstructured.Unstructured
	t.Run("Race", func(t *testing.T) { raced = testRace(t, h) })
	f := h.withoutFleet(t)
	t.Run("TwoClusters", func(t *testing.T) { testTwoClusters(t, f) })
	t.Run("Kubeconfig", func(t *testing.T) { testKubeconfig(t, h) })
	t.Run("MinimalRBAC", func(t *testing.T) { testMinimalRBAC(t, h) })
	// These know only two minutes after the race that its services have gone.
	h.released(t, raced)
	for _, c := range raced {
		h.leaves(t, c)
	}
	h.installClaims(t)
	t.Run("Claims", func(t *testing.T) {
		t.Run("Named", func(t *testing.T) { t.Parallel(); testRemoteClaim(t, f) })
		t.Run("Selected", func(t *testing.T) { t.Parallel(); testFleetClaim(t, h) })
	})
	f.nothingLeft(t)
}

// What the platform team sets: the gateway of all clusters; the one that each cluster has, and
// the names that services may have there.
const (
	fleetInput  = "fleet: {parentRefs: [{name: fleet-gateway, namespace: gateway-system}]}\n" + routesInput
	routesInput = "routes: {allowedParentRefs: [{namespace: gateway-system}], allowedHostnames: ['*.example.com']}\n"
)

// compositionWith is the file of a packaged Composition in which something is set.
func compositionWith(t *testing.T, api, input string) string {
	t.Helper()
	return compositionOf(t, packageDir(t), api, input)
}

// packageDir is package/ of this version.
func packageDir(t *testing.T) string {
	t.Helper()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, "package")
}

// compositionOf is the same of a version whose package/ is in a directory.
func compositionOf(t *testing.T, dir, api, input string) string {
	t.Helper()
	const before = "      missingKinds: Skip\n"
	b, err := os.ReadFile(filepath.Join(dir, api, "composition.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(b, []byte(before)) {
		t.Fatalf("%s/%s/composition.yaml does not say %q", dir, api, before)
	}
	return written(t, "composition.yaml", strings.Replace(string(b), before, before+indented(input), 1))
}

// install does what package/xr/composition.yaml says to set something: it applies the
// definitions and the Compositions as they are, but for the gateway that all services have, and
// the configurations that services may name themselves.
func (h *controlPlane) install(t *testing.T) {
	t.Helper()
	h.installWith(t, "")
}

// installWith also sets something more in the Input of the services.
func (h *controlPlane) installWith(t *testing.T, input string) {
	t.Helper()
	if err := h.PushPackages(first); err != nil {
		t.Fatal(err)
	}
	h.installVersion(t, first, packageDir(t), input)
	h.gateways(t)
}

// installVersion installs or upgrades to a version whose package/ is in a directory, in the order of docs/upgrading.md.
func (h *controlPlane) installVersion(t *testing.T, version, dir, input string) {
	t.Helper()
	kubectl(t, h.Cluster, "apply", "-f", filepath.Join(dir, "install", "rbac.yaml"), "-f", manifestOf(t, dir, "function.yaml", version))
	healthy(t, h.Cluster, "Function", function, version)
	xr := func(file string) string { return filepath.Join(dir, "xr", file) }
	kubectl(t, h.Cluster, "apply", "-f", xr("definition.yaml"), "-f", xr("cluster-definition.yaml"),
		"-f", xr("cluster-composition.yaml"), "-f", compositionOf(t, dir, "xr", fleetInput+h.directConfigs()+input))
	kubectl(t, h.Cluster, "wait", "--for=condition=Established", "--timeout=3m", "xrd", "--all")
}

// gateways makes the fleet's Gateway, and that of each cluster.
func (h *controlPlane) gateways(t *testing.T) {
	t.Helper()
	gateway(t, h.Cluster, "gateway-system", "fleet-gateway")
	for _, r := range h.Remotes() {
		if err := r.Namespace(t.Context(), "gateway-system"); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Apply(t.Context(), sharedGateway("gateway-system", "inference-gateway"), "user"); err != nil {
			t.Fatal(err)
		}
	}
}

// A member is a cluster of the fleet. Several may be one real cluster: each test has its own,
// which it selects by a label.
type member struct {
	name, remote string
	// API group of its configuration, if it is not that of namespaced Objects.
	apiGroup string
	// nodes of 8 GPUs. There are as many as are observed, if it is 0.
	nodes int64
	// kueue admits its services, so no nodes are counted.
	kueue bool
	// gateway is its address, or observed: that of the Gateway that each cluster has.
	gateway string
	// sharing says who else may use the real cluster. It is ByPool if this is empty, because each test has its own members.
	sharing string
}

const (
	observedGateway = "observed"
	// byDefault leaves a field out.
	byDefault = "by default"
)

// joins makes a member of a fleet for one test, and waits until it reserves capacity.
func (h *controlPlane) joins(t *testing.T, fleet string, m member) *unstructured.Unstructured {
	t.Helper()
	o := m.object(fleet)
	h.appliesForNow(t, o)
	h.reserves(t, o)
	return o
}

// joinsForGood makes a member that stays.
func (h *controlPlane) joinsForGood(t *testing.T, fleet string, m member) *unstructured.Unstructured {
	t.Helper()
	o := m.object(fleet)
	apply(t, h.Cluster, o)
	h.reserves(t, o)
	return o
}

// appliesForNow applies an InferenceCluster that goes after the test.
func (h *controlPlane) appliesForNow(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			return // Services may be there.
		}
		h.goes(context.WithoutCancel(t.Context()), t, o)
	})
	apply(t, h.Cluster, o)
}

// leaves deletes an InferenceCluster, once it knows that its services have gone.
func (h *controlPlane) leaves(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	until(t, h, o.GetName()+" may be deleted, once it knows that its services have gone", func(ctx context.Context) (bool, error) {
		err := h.Delete(ctx, o)
		return err == nil, err
	})
	vanished(t, h.Cluster, o)
}

// reserves waits until an InferenceCluster reserves capacity.
func (h *controlPlane) reserves(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	h.is(t, o, "Ready", "Synced", "Reachable", "NodesObserved", "RequestsResolved", "CapacityConsistent", "EntrypointResolved", "Schedulable")
}

// object is the InferenceCluster of a member.
func (m member) object(fleet string) *unstructured.Unstructured {
	o := object(clusterKind, "", m.name)
	o.SetLabels(map[string]string{"fleet": fleet})
	pool := map[string]any{"name": "h100", "nodeSelector": map[string]any{"type": "kwok"}}
	if m.nodes > 0 {
		pool = map[string]any{"name": "h100", "nodeCount": m.nodes, "allocatable": map[string]any{"nvidia.com/gpu": int64(8)}}
	}
	config := map[string]any{"name": m.remote}
	if m.apiGroup != "" {
		config["apiGroup"] = m.apiGroup
	}
	spec := map[string]any{"providerConfigRef": config, "pools": []any{pool}}
	switch m.sharing {
	case "":
		spec["sharing"] = "ByPool"
	case byDefault:
	default:
		spec["sharing"] = m.sharing
	}
	if m.kueue {
		delete(spec, "pools")
		spec["admission"] = "Kueue"
	}
	switch m.gateway {
	case "":
	case observedGateway:
		spec["entrypoint"] = map[string]any{"gatewayRef": map[string]any{"name": "inference-gateway", "namespace": "gateway-system"}}
	default:
		spec["entrypoint"] = map[string]any{"address": map[string]any{"value": m.gateway}}
	}
	o.Object["spec"] = spec
	return o
}

// stop gives a cluster this stopPolicy.
func (h *controlPlane) stop(t *testing.T, o *unstructured.Unstructured, policy string) {
	t.Helper()
	spec := o.Object["spec"].(map[string]any)
	spec["stopPolicy"], spec["stopMessage"] = policy, "a test"
	apply(t, h.Cluster, o)
}

// is waits until an object has these conditions.
func (h *controlPlane) is(t *testing.T, o *unstructured.Unstructured, want ...string) {
	t.Helper()
	until(t, h, title(o)+" is "+strings.Join(want, ", "), func(ctx context.Context) (bool, error) {
		now, err := h.Get(ctx, o)
		if err == nil {
			err = conditions(now, want...)
		}
		return err == nil, err
	})
}

// placedService is a service of a fleet, with roles that take 8 GPUs a pod.
func placedService(namespace, name, policy, fleet string, roles ...map[string]any) *unstructured.Unstructured {
	for _, r := range roles {
		if r["componentType"] != "router" {
			podSpec(r)["containers"].([]any)[0].(map[string]any)["resources"] = map[string]any{"limits": map[string]any{"nvidia.com/gpu": int64(8)}}
		}
	}
	o := inference(namespace, name, roles...)
	placement := map[string]any{"policy": policy, "clusterSelector": map[string]any{"matchLabels": map[string]any{"fleet": fleet}}}
	if policy != "Replicate" {
		placement["failoverAfterSeconds"] = int64(10)
	}
	o.Object["spec"].(map[string]any)["placement"] = placement
	return o
}

// prefers makes a service list clusters in the order in which it prefers them, instead of selecting them.
func prefers(service *unstructured.Unstructured, clusters ...string) *unstructured.Unstructured {
	placement := service.Object["spec"].(map[string]any)["placement"].(map[string]any)
	delete(placement, "clusterSelector")
	var all []any
	for _, c := range clusters {
		all = append(all, map[string]any{"name": c, "inferenceClusterRef": map[string]any{"name": c}})
	}
	placement["clusters"] = all
	return service
}

// entrance is a router at the gateway that each cluster has.
func entrance(host, strategy string) map[string]any {
	return map[string]any{
		"name": "router", "componentType": "router", "strategy": strategy,
		"httproute": map[string]any{
			"hostnames":  []any{host},
			"parentRefs": []any{map[string]any{"name": "inference-gateway", "namespace": "gateway-system"}},
		},
	}
}

// replicaNames writes replicas of a status as "GROUP" or "ROLE/INDEX".
func replicaNames(assigned []any) []string {
	var names []string
	for _, a := range assigned {
		m, _ := a.(map[string]any)
		indexes, _ := m["indexes"].([]any)
		if len(indexes) == 0 {
			names = append(names, fmt.Sprint(m["group"]))
		}
		for _, i := range indexes {
			names = append(names, fmt.Sprintf("%v/%v", m["role"], i))
		}
	}
	return names
}

// placement is what a service says of each cluster: state, replicas, weight and why.
func placement(s *unstructured.Unstructured) map[string]string {
	all, _, _ := unstructured.NestedSlice(s.Object, "status", "clusters")
	got := map[string]string{}
	for _, v := range all {
		m := v.(map[string]any)
		text := fmt.Sprint(m["state"])
		if assigned, ok := m["assigned"].([]any); ok {
			text += fmt.Sprintf(" %v", replicaNames(assigned))
		}
		if w, ok := m["weight"]; ok {
			text += fmt.Sprintf(" weight %v", w)
		}
		if m["reason"] != nil {
			text += fmt.Sprintf(" %v: %v", m["reason"], m["message"])
		}
		got[m["name"].(string)] = text
	}
	return got
}

// lands waits until a service is ready where it should be, says so of each cluster, and the
// clusters have as many pods of it.
func (h *controlPlane) lands(t *testing.T, xr *unstructured.Unstructured, want map[string]string, pods map[string]int) *unstructured.Unstructured {
	t.Helper()
	var s *unstructured.Unstructured
	until(t, h, xr.GetName()+" is where it should be", func(ctx context.Context) (bool, error) {
		var err error
		if s, err = h.Get(ctx, xr); err != nil {
			return false, err
		}
		if diff := cmp.Diff(want, placement(s)); diff != "" {
			return false, fmt.Errorf("what it says of its clusters: -want, +got:\n%s", diff)
		}
		if err := conditions(s, "Ready", "Synced", "Accepted", "Placed", "WorkloadsReady"); err != nil {
			return false, err
		}
		got := map[string]int{}
		for _, r := range h.Remotes() {
			all, err := enginesOf(ctx, r, xr)
			if err != nil {
				return false, err
			}
			if len(all) > 0 {
				got[r.Name()] = len(all)
			}
		}
		if diff := cmp.Diff(pods, got); diff != "" {
			return false, fmt.Errorf("its pods: -want, +got:\n%s", diff)
		}
		return true, nil
	})
	return s
}

// enginesOf are the pods of a service in a remote cluster, without its endpoint picker.
func enginesOf(ctx context.Context, r *cluster.Remote, xr *unstructured.Unstructured) ([]unstructured.Unstructured, error) {
	all, err := r.List(ctx, podKind, xr.GetNamespace())
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(p unstructured.Unstructured) bool {
		return !strings.HasPrefix(p.GetLabels()["leaderworkerset.sigs.k8s.io/name"], xr.GetName()+"-")
	}), nil
}

// weights are those of the route over all clusters, by the clusters' names.
func weights(route *unstructured.Unstructured) map[string]int64 {
	got := map[string]int64{}
	rules, _, _ := unstructured.NestedSlice(route.Object, "spec", "rules")
	for _, r := range rules {
		refs, _, _ := unstructured.NestedSlice(r.(map[string]any), "backendRefs")
		for _, v := range refs {
			m := v.(map[string]any)
			_, name, _ := strings.Cut(m["name"].(string), "-at-")
			got[name[:strings.LastIndexByte(name, '-')]] = m["weight"].(int64)
		}
	}
	return got
}

// routes waits until the route over all clusters has these weights, and its gateways go by them.
func (h *controlPlane) routes(t *testing.T, xr *unstructured.Unstructured, want map[string]int64) {
	t.Helper()
	until(t, h, "requests for "+xr.GetName()+" go where it is", func(ctx context.Context) (bool, error) {
		r, err := h.Get(ctx, object(routeKind, xr.GetNamespace(), xr.GetName()+"-fleet"))
		if err != nil {
			return false, err
		}
		if diff := cmp.Diff(want, weights(r)); diff != "" {
			return false, fmt.Errorf("weights: -want, +got:\n%s", diff)
		}
		return acceptedAsItIs(r), errors.New("no gateway, or not each, has taken it up")
	})
}

// addresses to which the EndpointSlices of a namespace lead.
func (h *controlPlane) addresses(t *testing.T, ns string) []string {
	t.Helper()
	var all []string
	for _, s := range list(t, h, sliceKind, ns) {
		endpoints, _, _ := unstructured.NestedSlice(s.Object, "endpoints")
		for _, e := range endpoints {
			got, _, _ := unstructured.NestedStringSlice(e.(map[string]any), "addresses")
			all = append(all, got...)
		}
	}
	slices.Sort(all)
	return all
}

// asRendered proves that a service became what the render command renders from the files that
// its users and the platform team wrote: every Object here and what it carries there.
func (h *controlPlane) asRendered(t *testing.T, xr *unstructured.Unstructured, of string) {
	t.Helper()
	now, err := h.Get(t.Context(), xr)
	if err != nil {
		t.Fatal(err)
	}
	clusters, err := h.List(t.Context(), clusterKind, "")
	if err != nil {
		t.Fatal(err)
	}
	var required strings.Builder
	for i := range clusters {
		if clusters[i].GetLabels()["fleet"] == of {
			required.WriteString("---\n" + asWritten(t, &clusters[i]))
		}
	}
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	input := "apiVersion: fn.fusioninfer.io/v1alpha1\nkind: Input\n" + fleetInput
	cmd := exec.CommandContext(t.Context(), "go", "run", ".", "render", written(t, "xr.yaml", asWritten(t, now)),
		"--input="+written(t, "input.yaml", input), "--required="+written(t, "fleet.yaml", required.String()), "--simulate")
	var stderr strings.Builder
	cmd.Dir, cmd.Stderr = root, &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("render fails: %v\n%s", err, stderr.String())
	}
	docs, err := cluster.Documents(out)
	if err != nil {
		t.Fatal(err)
	}
	const key = "crossplane.io/composition-resource-name"
	live := map[string]*unstructured.Unstructured{}
	for _, o := range parts(t, h.Cluster, xr) {
		live[o.GetAnnotations()[key]] = o
	}
	f := &fleet{Cluster: h.Cluster}
	carried := 0
	for _, want := range docs[1:] {
		at := want.GetAnnotations()[key]
		got := live[at]
		delete(live, at)
		if got == nil {
			t.Errorf("%s is planned, and there is none", at)
			continue
		}
		if want.GetKind() != objectKind.Kind {
			continue // It follows what is ready, which nothing is in a plan.
		}
		if lacks := unlike(want.Object["spec"], got.Object["spec"], ""); len(lacks) > 0 {
			t.Errorf("%s is not as planned:\n%s", at, strings.Join(lacks, "\n"))
		}
		f.carried(t, []unstructured.Unstructured{*want})
		carried++
	}
	for at := range live {
		t.Errorf("%s is there, and was not planned", at)
	}
	if carried == 0 {
		t.Error("no Object is planned")
	}
}

// asWritten is what somebody wrote of an object, and its UID, from which names follow.
func asWritten(t *testing.T, o *unstructured.Unstructured) string {
	t.Helper()
	w := &unstructured.Unstructured{Object: map[string]any{"spec": maps.Clone(o.Object["spec"].(map[string]any))}}
	w.SetGroupVersionKind(o.GroupVersionKind())
	w.SetNamespace(o.GetNamespace())
	w.SetName(o.GetName())
	w.SetUID(o.GetUID())
	w.SetLabels(o.GetLabels())
	delete(w.Object["spec"].(map[string]any), "crossplane")
	b, err := yaml.Marshal(w.Object)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// removeAll deletes all services of a namespace, and waits until nothing is left of them in the clusters.
func (h *controlPlane) removeAll(t *testing.T, ns string) {
	t.Helper()
	kubectl(t, h.Cluster, "delete", "inferenceservices.fusioninfer.io", "--all", "--namespace="+ns)
	for _, r := range h.Remotes() {
		nothingOf(t, r, ns, "fusioninfer.io/service", composed+",pods")
	}
}

// nothingOf waits until a cluster has nothing of some kinds in a namespace that a selector selects.
func nothingOf(t *testing.T, r *cluster.Remote, ns, selector, kinds string) {
	t.Helper()
	until(t, r, "nothing is left in "+ns+" of "+selector, func(ctx context.Context) (bool, error) {
		left, err := r.Kubectl(ctx, "get", "--namespace="+ns, "--selector="+selector, "--output=name", kinds)
		if err == nil && left != "" {
			err = fmt.Errorf("there still is in %s:\n%s", r.Name(), left)
		}
		return err == nil, err
	})
}

// remove deletes a service, and waits until nothing is left of it here and there.
func (h *controlPlane) remove(t *testing.T, xr *unstructured.Unstructured) {
	t.Helper()
	all := parts(t, h.Cluster, xr)
	kubectl(t, h.Cluster, "delete", "inferenceservices.fusioninfer.io", xr.GetName(), "--namespace="+xr.GetNamespace())
	vanished(t, h.Cluster, all...)
	for _, r := range h.Remotes() {
		h.gone(t, xr, r.Name())
	}
}

// gone waits until nothing is left of a service in some clusters.
func (h *controlPlane) gone(t *testing.T, xr *unstructured.Unstructured, remotes ...string) {
	t.Helper()
	for _, name := range remotes {
		nothingOf(t, h.Remote(name), xr.GetNamespace(), "fusioninfer.io/service="+xr.GetName(), composed)
	}
}

// testFailover proves that a service runs in the first cluster with free capacity, that its pods run
// there, and that weights follow what is ready.
func testFailover(t *testing.T, h *controlPlane) {
	ns := namespace(t, h.Cluster)
	h.joins(t, "failover", member{name: "failover-east", remote: "cluster-1", nodes: 1, gateway: "10.1.0.10"})
	h.joins(t, "failover", member{name: "failover-west", remote: "cluster-2", nodes: 3, gateway: "10.2.0.10"})
	xr := prefers(placedService(ns, "llama", "Failover", "failover", entrance("failover.example.com", "prefix-cache"), engine("worker", "worker", 2, 1)), "failover-east", "failover-west")
	apply(t, h.Cluster, xr)
	want := map[string]string{
		"failover-east": "NotPlaced NotNeeded: it runs in failover-west",
		"failover-west": "Placed [0] weight 2",
	}
	s := h.lands(t, xr, want, map[string]int{"cluster-2": 2})
	if url, _, _ := unstructured.NestedString(s.Object, "status", "url"); url != "http://failover.example.com" {
		t.Errorf("its URL is %q", url)
	}
	h.routes(t, xr, map[string]int64{"failover-west": 2})
	h.is(t, xr, "RouterReady", "RouteReady")
	if diff := cmp.Diff([]string{"10.2.0.10"}, h.addresses(t, ns)); diff != "" {
		t.Errorf("where its EndpointSlice leads: -want, +got:\n%s", diff)
	}

	r := h.Remote("cluster-2")
	pods, err := enginesOf(t.Context(), r, xr)
	if err != nil {
		t.Fatal(err)
	}
	at := types.NamespacedName{Namespace: ns, Name: pods[0].GetName()}
	if err := r.SetPod(t.Context(), at, cluster.Running(), 0, false); err != nil {
		t.Fatal(err)
	}
	h.routes(t, xr, map[string]int64{"failover-west": 1})
	if err := r.SetPod(t.Context(), at, cluster.Running(), 0, true); err != nil {
		t.Fatal(err)
	}
	h.routes(t, xr, map[string]int64{"failover-west": 2})
	h.lands(t, xr, want, map[string]int{"cluster-2": 2})
	h.asRendered(t, xr, "failover")

	// Deleting the InferenceCluster where the service runs is refused. Deleting it all the same stops
	// nothing, and no capacity of the other cluster is requested.
	before := h.everything(t, xr)
	if out, err := h.Kubectl(t.Context(), "delete", "inferenceclusters.fusioninfer.io", "failover-west"); err == nil || !strings.Contains(err.Error(), "capacity of this cluster is reserved for services") {
		t.Errorf("a cluster with services can be deleted: %s, %v", out, err)
	}
	kubectl(t, h.Cluster, "label", "inferenceclusters.fusioninfer.io", "failover-west", "crossplane.io/in-use-")
	kubectl(t, h.Cluster, "delete", "inferenceclusters.fusioninfer.io", "failover-west")
	until(t, h, "it says that its cluster cannot be read", func(ctx context.Context) (bool, error) {
		s, err := h.Get(ctx, xr)
		if err != nil {
			return false, err
		}
		text := placement(s)["failover-west"]
		return strings.HasPrefix(text, "Placed [0] weight 2 ClusterUnknown: "), fmt.Errorf("it says %q", text)
	})
	h.routes(t, xr, map[string]int64{"failover-west": 2})
	if diff := cmp.Diff(before, h.everything(t, xr)); diff != "" {
		t.Errorf("what goes with an InferenceCluster: -before, +after:\n%s", diff)
	}
	h.remove(t, xr)
}

// testSpread proves that groups are split over clusters, one of them with nodes that are
// observed, and that none straddles them.
func testSpread(t *testing.T, h *controlPlane) {
	ns := namespace(t, h.Cluster)
	h.joins(t, "spread", member{name: "spread-east", remote: "cluster-1", nodes: 2, gateway: observedGateway})
	west := h.joins(t, "spread", member{name: "spread-west", remote: "cluster-2", gateway: "10.2.0.10"})
	// Nodes count as soon as they are reported, one after the other.
	until(t, h, "6 nodes of 64 GPUs are observed", func(ctx context.Context) (bool, error) {
		now, err := h.Get(ctx, west)
		if err != nil {
			return false, err
		}
		free, _, _ := unstructured.NestedString(now.Object, "status", "summary")
		return free == "384/384 nvidia.com/gpu", fmt.Errorf("it says that %q are free", free)
	})
	xr := placedService(ns, "llama", "Spread", "spread", entrance("spread.example.com", "pd-disaggregation"),
		engine("prefill", "prefiller", 1, 1), engine("decode", "decoder", 1, 1))
	xr.Object["spec"].(map[string]any)["replicas"] = int64(3)
	apply(t, h.Cluster, xr)
	// East has room for one group. Which one it is depends on the UID of the service.
	alone := 0
	until(t, h, "one group is placed in the first cluster", func(ctx context.Context) (bool, error) {
		s, err := h.Get(ctx, xr)
		if err != nil {
			return false, err
		}
		text := placement(s)["spread-east"]
		n, _ := fmt.Sscanf(text, "Placed [%d] weight 1", &alone)
		return n == 1, fmt.Errorf("it says %q", text)
	})
	h.lands(t, xr, map[string]string{
		"spread-east": fmt.Sprintf("Placed [%d] weight 1", alone),
		"spread-west": "Placed [" + []string{"1 2", "0 2", "0 1"}[alone] + "] weight 2",
	}, map[string]int{"cluster-1": 2, "cluster-2": 4})
	h.routes(t, xr, map[string]int64{"spread-east": 1, "spread-west": 2})
	g, err := h.Remote("cluster-1").Get(t.Context(), object(gatewayKind, "gateway-system", "inference-gateway"))
	if err != nil {
		t.Fatal(err)
	}
	observed, _, _ := unstructured.NestedSlice(g.Object, "status", "addresses")
	wantAddresses := []string{"10.2.0.10", observed[0].(map[string]any)["value"].(string)}
	if diff := cmp.Diff(wantAddresses, h.addresses(t, ns)); diff != "" {
		t.Errorf("where its EndpointSlices lead: -want, +got:\n%s", diff)
	}
	in := map[string][]string{}
	for _, r := range h.Remotes() {
		for _, o := range list(t, r, lwsKind, ns) {
			in[r.Name()] = append(in[r.Name()], o.GetName())
		}
	}
	want := map[string][]string{}
	for group := range 3 {
		at := "cluster-2"
		if group == alone {
			at = "cluster-1"
		}
		want[at] = append(want[at], fmt.Sprintf("llama-%d-decode-0", group), fmt.Sprintf("llama-%d-prefill-0", group))
	}
	if diff := cmp.Diff(want, in); diff != "" {
		t.Errorf("its replicas: -want, +got:\n%s", diff)
	}
	h.remove(t, xr)
}

// testFleetSameNames proves that two tenants' services of one name do not meet in a cluster.
func testFleetSameNames(t *testing.T, h *controlPlane) {
	h.joins(t, "same", member{name: "same", remote: "cluster-1", nodes: 4, gateway: "10.1.0.10"})
	var services []*unstructured.Unstructured
	for i := range 2 {
		xr := placedService(namespace(t, h.Cluster), "llama", "Failover", "same", entrance(fmt.Sprintf("same-%d.example.com", i), "queue-size"), engine("worker", "worker", 2, 1))
		apply(t, h.Cluster, xr)
		services = append(services, xr)
	}
	want, pods := map[string]string{"same": "Placed [0] weight 2"}, map[string]int{"cluster-1": 2}
	for _, xr := range services {
		h.lands(t, xr, want, pods)
	}
	h.remove(t, services[0])
	h.lands(t, services[1], want, pods)
	h.remove(t, services[1])
}

// An observer has what happened to a service's route and to its pods, in the order in which it
// happened: all clusters are in one etcd.
type observer struct {
	h      *controlPlane
	xr     *unstructured.Unstructured
	routes *recording
	pods   map[string]*recording
}

func (h *controlPlane) watch(t *testing.T, xr *unstructured.Unstructured, members map[string]string) *observer {
	t.Helper()
	o := &observer{h: h, xr: xr, routes: record(t, h, routeKind, xr.GetNamespace()), pods: map[string]*recording{}}
	for name, remote := range members {
		o.pods[name] = record(t, h.Remote(remote), podKind, xr.GetNamespace())
	}
	return o
}

// alwaysServed proves that from the moment when the first request could be answered, the
// route has never led to clusters that have nothing ready. It looks at the route as it is
// and as its gateway last took it up.
func (o *observer) alwaysServed(t *testing.T) {
	t.Helper()
	type event struct {
		at      uint64
		cluster string
		gone    bool
		o       *unstructured.Unstructured
	}
	var all []event
	add := func(r *recording, cluster string) {
		for _, e := range r.all() {
			v, ok := e.Object.(*unstructured.Unstructured)
			if !ok {
				t.Fatalf("the watch ended: %v", e.Object)
			}
			n, err := strconv.ParseUint(v.GetResourceVersion(), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, event{n, cluster, e.Type == watch.Deleted, v})
		}
	}
	add(o.routes, "")
	for name, r := range o.pods {
		add(r, name)
	}
	slices.SortFunc(all, func(a, b event) int { return int(int64(a.at) - int64(b.at)) })
	ready := map[string]map[string]bool{}
	var now, accepted map[string]int64
	begun, moved, route := false, false, ""
	for _, e := range all {
		if e.cluster == "" {
			if e.o.GetName() != o.xr.GetName()+"-fleet" {
				continue
			}
			now = weights(e.o)
			if acceptedAsItIs(e.o) {
				accepted = now
			}
			text := fmt.Sprint("wants ", now, ", has ", accepted)
			if e.gone {
				t.Errorf("the route was deleted")
			}
			if text != route {
				t.Logf("revision %d: the route %s, ready are %v", e.at, text, sizes(ready))
				route = text
			}
		} else {
			if !strings.HasPrefix(e.o.GetLabels()["leaderworkerset.sigs.k8s.io/name"], o.xr.GetName()+"-") {
				continue
			}
			if ready[e.cluster] == nil {
				ready[e.cluster] = map[string]bool{}
			}
			delete(ready[e.cluster], e.o.GetName())
			if !e.gone && e.o.GetDeletionTimestamp() == nil && readyPod(e.o) {
				ready[e.cluster][e.o.GetName()] = true
			}
		}
		leads := func(w map[string]int64) bool {
			for name, n := range w {
				if n > 0 && len(ready[name]) > 0 {
					return true
				}
			}
			return false
		}
		if begun = begun || leads(accepted); begun && (!leads(now) || !leads(accepted)) {
			t.Errorf("revision %d: the route wants %v and has %v, but ready are %v", e.at, now, accepted, sizes(ready))
		}
		moved = moved || begun && len(ready) > 1
	}
	if !begun || !moved {
		t.Errorf("of %d events none shows that it was served (%t) and moved (%t)", len(all), begun, moved)
	}
}

func sizes(ready map[string]map[string]bool) map[string]int {
	n := map[string]int{}
	for name, pods := range ready {
		n[name] = len(pods)
	}
	return n
}

func readyPod(o *unstructured.Unstructured) bool {
	status, _, _ := condition(o, "Ready")
	return status == "True"
}

// acceptedAsItIs tells whether all gateways have taken up the newest generation of a route.
func acceptedAsItIs(o *unstructured.Unstructured) bool {
	wanted, _, _ := unstructured.NestedSlice(o.Object, "spec", "parentRefs")
	parents, _, _ := unstructured.NestedSlice(o.Object, "status", "parents")
	accepted := 0
	for _, p := range parents {
		all, _, _ := unstructured.NestedSlice(p.(map[string]any), "conditions")
		for _, v := range all {
			m := v.(map[string]any)
			if seen, _, _ := unstructured.NestedInt64(m, "observedGeneration"); m["type"] == "Accepted" && m["status"] == "True" && seen == o.GetGeneration() {
				accepted++
			}
		}
	}
	return accepted > 0 && accepted == len(wanted)
}

// testDrain proves that a service leaves a cluster that is drained, and at no moment has
// nothing ready that requests are sent to.
func testDrain(t *testing.T, h *controlPlane) {
	ns := namespace(t, h.Cluster)
	east := h.joins(t, "drain", member{name: "drain-east", remote: "cluster-1", nodes: 4, gateway: "10.1.0.10"})
	h.joins(t, "drain", member{name: "drain-west", remote: "cluster-2", nodes: 4, gateway: "10.2.0.10"})
	xr := prefers(placedService(ns, "llama", "Failover", "drain", entrance("drain.example.com", "prefix-cache"), engine("worker", "worker", 3, 1)), "drain-east", "drain-west")
	seen := h.watch(t, xr, map[string]string{"drain-east": "cluster-1", "drain-west": "cluster-2"})
	apply(t, h.Cluster, xr)
	h.lands(t, xr, map[string]string{
		"drain-east": "Placed [0] weight 3",
		"drain-west": "NotPlaced NotNeeded: it runs in drain-east",
	}, map[string]int{"cluster-1": 3})
	h.routes(t, xr, map[string]int64{"drain-east": 3})
	h.stop(t, east, "Drain")
	h.lands(t, xr, map[string]string{
		"drain-east": "NotPlaced Draining: the cluster is drained: a test",
		"drain-west": "Placed [0] weight 3",
	}, map[string]int{"cluster-2": 3})
	h.routes(t, xr, map[string]int64{"drain-west": 3})
	h.gone(t, xr, "cluster-1")
	seen.alwaysServed(t)
	h.remove(t, xr)
}

// testFleetCutOff proves that a service moves away from a cluster that is out of reach for
// longer than failoverAfterSeconds, that nothing is lost meanwhile, and that the old copy goes when
// the cluster is back.
func testFleetCutOff(t *testing.T, h *controlPlane) {
	ns := namespace(t, h.Cluster)
	h.joins(t, "cutoff", member{name: "cutoff-east", remote: "cluster-1", nodes: 4, gateway: "10.1.0.10"})
	h.joins(t, "cutoff", member{name: "cutoff-west", remote: "cluster-2", nodes: 4, gateway: "10.2.0.10"})
	xr := prefers(placedService(ns, "llama", "Failover", "cutoff", entrance("cutoff.example.com", "prefix-cache"), engine("worker", "worker", 2, 1)), "cutoff-east", "cutoff-west")
	seen := h.watch(t, xr, map[string]string{"cutoff-east": "cluster-1", "cutoff-west": "cluster-2"})
	apply(t, h.Cluster, xr)
	h.lands(t, xr, map[string]string{
		"cutoff-east": "Placed [0] weight 2",
		"cutoff-west": "NotPlaced NotNeeded: it runs in cutoff-east",
	}, map[string]int{"cluster-1": 2})
	h.routes(t, xr, map[string]int64{"cutoff-east": 2})
	r := h.Remote("cluster-1")
	t.Cleanup(r.Reconnect)
	r.CutOff()
	begun := time.Now()
	until(t, h, "it runs in the other cluster", func(ctx context.Context) (bool, error) {
		pods, err := enginesOf(ctx, h.Remote("cluster-2"), xr)
		if len(pods) > 0 && time.Since(begun) < 10*time.Second {
			return false, fmt.Errorf("it moved after %s", time.Since(begun))
		}
		return len(pods) == 2, err
	})
	t.Logf("it runs in the other cluster after %s", time.Since(begun))
	h.routes(t, xr, map[string]int64{"cutoff-west": 2})
	if pods, err := enginesOf(t.Context(), r, xr); err != nil || len(pods) != 2 {
		t.Errorf("the cluster that is cut off has %d of its 2 pods: %v", len(pods), err)
	}
	r.Reconnect()
	h.gone(t, xr, "cluster-1")
	h.lands(t, xr, map[string]string{
		"cutoff-east": "NotPlaced NotNeeded: it runs in cutoff-west",
		"cutoff-west": "Placed [0] weight 2",
	}, map[string]int{"cluster-2": 2})
	seen.alwaysServed(t)
	h.remove(t, xr)
}

// testDead proves that nothing hangs because of a cluster that is out of reach and declared
// dead: the service's Objects go, and so does the service, and the cluster itself.
func testDead(t *testing.T, h *controlPlane) {
	ns := namespace(t, h.Cluster)
	east := h.joins(t, "dead", member{name: "dead-east", remote: "cluster-1", nodes: 4, gateway: "10.1.0.10"})
	h.joins(t, "dead", member{name: "dead-west", remote: "cluster-2", nodes: 4, gateway: "10.2.0.10"})
	xr := placedService(ns, "llama", "Replicate", "dead", entrance("dead.example.com", "prefix-cache"), engine("worker", "worker", 1, 1))
	apply(t, h.Cluster, xr)
	h.lands(t, xr, map[string]string{
		"dead-east": "Placed [0] weight 1",
		"dead-west": "Placed [0] weight 1",
	}, map[string]int{"cluster-1": 1, "cluster-2": 1})
	of := map[string][]*unstructured.Unstructured{}
	for _, o := range parts(t, h.Cluster, xr) {
		to, _, _ := unstructured.NestedString(o.Object, "spec", "providerConfigRef", "name")
		of[to] = append(of[to], o)
	}
	r := h.Remote("cluster-1")
	t.Cleanup(r.Reconnect)
	r.CutOff()
	h.stop(t, east, "Abandon")
	if len(of["cluster-1"]) == 0 {
		t.Fatal("it has no Objects for the cluster that dies")
	}
	vanished(t, h.Cluster, of["cluster-1"]...)
	h.lands(t, xr, map[string]string{
		"dead-east": "NotPlaced Abandoned: the cluster is abandoned: a test",
		"dead-west": "Placed [0] weight 1",
	}, map[string]int{"cluster-1": 1, "cluster-2": 1})
	h.routes(t, xr, map[string]int64{"dead-west": 1})
	all := parts(t, h.Cluster, xr)
	kubectl(t, h.Cluster, "delete", "inferenceservices.fusioninfer.io", xr.GetName(), "--namespace="+ns, "--timeout=1m")
	vanished(t, h.Cluster, all...)
	h.gone(t, xr, "cluster-2")
	h.leaves(t, east)

	// What is in a dead cluster is not touched. Here it comes back.
	r.Reconnect()
	if pods, err := enginesOf(t.Context(), r, xr); err != nil || len(pods) != 1 {
		t.Errorf("the cluster that came back has %d pods, want 1: %v", len(pods), err)
	}
	remove, left := cleanUp(t)
	if _, err := r.Kubectl(t.Context(), remove...); err != nil {
		t.Error(err)
	}
	until(t, r, "what docs/placement.md says removes what is left in the cluster", func(ctx context.Context) (bool, error) {
		out, err := r.Kubectl(ctx, left...)
		return err == nil && out == "", fmt.Errorf("there still is: %s (%w)", out, err)
	})
	h.gone(t, xr, "cluster-1")
}

// cleanUp are the arguments of the two commands that docs/placement.md has for a cluster that was dead.
func cleanUp(t *testing.T) (remove, left []string) {
	t.Helper()
	const kubectl = "kubectl --context us-east "
	_, text, found := strings.Cut(read(t, "docs", "placement.md"), "```sh\n"+kubectl+"delete")
	text, _, closed := strings.Cut(text, "```")
	first, second, two := strings.Cut(text, "\n"+kubectl)
	if !found || !closed || !two {
		t.Fatal("docs/placement.md does not say any more how to clean a cluster up")
	}
	return append([]string{"delete"}, strings.Fields(strings.ReplaceAll(first, "\\\n", " "))...), strings.Fields(second)
}

// testFleetClaim proves that a claim lands in a cluster of the fleet as a namespaced XR does,
// and is told so.
func testFleetClaim(t *testing.T, h *controlPlane) {
	const ns = "team-b"
	h.joins(t, "claim", member{name: "claim-east", remote: "cluster-1", nodes: 1, apiGroup: "kubernetes.crossplane.io"})
	west := h.joins(t, "claim", member{name: "claim-west", remote: "cluster-2", nodes: 2, apiGroup: "kubernetes.crossplane.io"})
	claim := prefers(placedService(ns, "llama", "Failover", "claim", engine("worker", "worker", 2, 1)), "claim-east", "claim-west")
	apply(t, h.Cluster, claim)
	h.lands(t, claim, map[string]string{
		"claim-east": "NotPlaced NotNeeded: it runs in claim-west",
		"claim-west": "Placed [0]",
	}, map[string]int{"cluster-2": 2})
	kubectl(t, h.Cluster, "delete", "inferenceservices.fusioninfer.io", claim.GetName(), "--namespace="+ns)
	vanished(t, h.Cluster, claim)
	h.gone(t, claim, "cluster-2")
	h.leaves(t, west)
}

// ledgerOf returns the text of a ledger with some services, as a ConfigMap has it.
func ledgerOf(t *testing.T, services string) string {
	t.Helper()
	b := &bytes.Buffer{}
	z := gzip.NewWriter(b)
	if _, err := z.Write([]byte(`{"services":[` + services + `]}`)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

// testStaleLedger proves that the API server refuses to apply a ledger over another version than
// the one that was read, so no capacity is reserved twice.
func testStaleLedger(t *testing.T, h *controlPlane) {
	h.joins(t, "ledger", member{name: "ledger", remote: "cluster-1", nodes: 1})
	at := object(configMapKind, "crossplane-system", "inferencecluster-ledger")
	read, err := h.Get(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	manager := ""
	for _, m := range read.GetManagedFields() {
		if m.Operation == metav1.ManagedFieldsOperationApply {
			manager = m.Manager
		}
	}
	write := func(version, services string) error {
		o := at.DeepCopy()
		o.SetResourceVersion(version)
		o.SetOwnerReferences(read.GetOwnerReferences())
		o.SetAnnotations(read.GetAnnotations())
		o.SetLabels(read.GetLabels())
		o.Object["binaryData"] = map[string]any{"ledger": ledgerOf(t, services)}
		_, err := h.Apply(t.Context(), o, manager)
		return err
	}
	other := at.DeepCopy()
	other.SetLabels(map[string]string{"test.fusioninfer.io/round": "1"})
	if _, err := h.Apply(t.Context(), other, "somebody"); err != nil {
		t.Fatal(err)
	}
	if err := write(read.GetResourceVersion(), `{"uid":"u","namespace":"n","name":"n","grants":[{"replicas":["worker/0"]}]}`); !apierrors.IsConflict(err) {
		t.Errorf("a ledger that was computed from an old one is answered with %v, want a conflict", err)
	}
	if err := write("", ""); err != nil {
		t.Errorf("without a version it is not refused, want no error: %v", err)
	}
	// It goes on with the version that there is now.
	h.is(t, object(clusterKind, "", "ledger"), "Ready", "Synced", "Schedulable")
}

// How often services race, and for how long the last ten are looked at. Once and shortly is
// enough to notice that something broke; go test ./e2e -run 'TestFleet/^Race$' -races 20 -watch 10m
// looks closer, and takes half an hour.
var (
	races    = flag.Int("races", 1, "how `often` services race for nodes")
	watchFor = flag.Duration("watch", watchedFor, "how `long` those that won the last race are looked at")
)

const watchedFor = 25 * time.Second

// testRace lets 50 services request the ten nodes of two clusters. Exactly ten get one, and the
// same ten have it after a restart of the control plane, its API server included, which moves
// nothing. It returns the clusters, unless it fails.
func testRace(t *testing.T, h *controlPlane) []*unstructured.Unstructured {
	var clusters []*unstructured.Unstructured
	for i, r := range h.Remotes() {
		clusters = append(clusters, h.joinsForGood(t, "race", member{name: fmt.Sprintf("race-%d", i+1), remote: r.Name(), nodes: 5}))
	}
	h.joins(t, "steady", member{name: "steady-1", remote: "cluster-1", nodes: 1, gateway: "10.1.0.10"})
	h.joins(t, "steady", member{name: "steady-2", remote: "cluster-2", nodes: 1, gateway: "10.2.0.10"})
	steady := placedService(namespace(t, h.Cluster), "llama", "Spread", "steady", entrance("steady.example.com", "prefix-cache"), engine("worker", "worker", 2, 1))
	apply(t, h.Cluster, steady)
	// Which of the two replicas is in which cluster depends on the UID of the service.
	where, pods := map[string]string{}, map[string]int{"cluster-1": 1, "cluster-2": 1}
	until(t, h, "llama is placed", func(ctx context.Context) (bool, error) {
		now, err := h.Get(ctx, steady)
		if err == nil {
			err = conditions(now, "Placed")
		}
		if err != nil {
			return false, err
		}
		where["steady-1"], where["steady-2"] = "Placed [worker/0] weight 1", "Placed [worker/1] weight 1"
		if strings.HasPrefix(placement(now)["steady-1"], "Placed [worker/1]") {
			where["steady-1"], where["steady-2"] = where["steady-2"], where["steady-1"]
		}
		return true, nil
	})
	h.lands(t, steady, where, pods)
	whole := h.everything(t, steady)
	for i := range *races {
		d := watchedFor
		if i+1 == *races {
			d = *watchFor
		}
		if i > 0 {
			h.released(t, clusters)
		}
		h.race(t, clusters, i, d)
	}
	h.lands(t, steady, where, pods)
	if diff := cmp.Diff(whole, h.everything(t, steady)); diff != "" {
		t.Errorf("races and restarts change a service that is split over two clusters: -before, +after:\n%s", diff)
	}
	h.remove(t, steady)
	return clusters
}

// race is one of the races. Each starts in an order of its own.
func (h *controlPlane) race(t *testing.T, clusters []*unstructured.Unstructured, number int, watched time.Duration) {
	t.Helper()
	ns := namespace(t, h.Cluster)
	const services, slots = 50, 10
	order := rand.New(rand.NewPCG(1, uint64(number))).Perm(services)
	begun := time.Now()
	for _, i := range order {
		apply(t, h.Cluster, placedService(ns, fmt.Sprintf("s%02d", i), "Failover", "race", engine("worker", "worker", 1, 1)))
	}
	var before map[string]string
	until(t, h, "ten services are ready and all others wait", func(ctx context.Context) (bool, error) {
		var err error
		before, err = h.racers(ctx, ns, services, slots)
		return err == nil, err
	})
	t.Logf("race %d: ten services are ready, and 40 know why not, after %s", number, time.Since(begun))
	h.notOvercommitted(t, clusters)

	h.StopCore()
	if err := h.CrashAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := h.RunCore(t.Context()); err != nil {
		t.Fatal(err)
	}
	for quiet := time.Now().Add(watched); time.Now().Before(quiet); time.Sleep(time.Second) {
		now, err := h.racers(t.Context(), ns, services, slots)
		if err != nil {
			t.Fatalf("race %d: after a restart: %v", number, err)
		}
		if diff := cmp.Diff(before, now); diff != "" {
			t.Fatalf("race %d: a restart moves services: -before, +after:\n%s", number, diff)
		}
		h.notOvercommitted(t, clusters)
	}
	h.removeAll(t, ns)
}

// released waits until clusters have no reservations any more.
func (h *controlPlane) released(t *testing.T, clusters []*unstructured.Unstructured) {
	t.Helper()
	for _, c := range clusters {
		until(t, h, c.GetName()+" has no reservations any more", func(ctx context.Context) (bool, error) {
			now, err := h.Get(ctx, c)
			if err != nil {
				return false, err
			}
			free, _, _ := unstructured.NestedString(now.Object, "status", "summary")
			return free == "40/40 nvidia.com/gpu", fmt.Errorf("%s are free", free)
		})
	}
}

// everything that a service is made of: what it is composed of, and its replicas and pods in
// the clusters.
func (h *controlPlane) everything(t *testing.T, xr *unstructured.Unstructured) map[string]string {
	t.Helper()
	composed := slices.DeleteFunc(parts(t, h.Cluster, xr), func(o *unstructured.Unstructured) bool { return isOfPod(*o) })
	all := each(composed, identity)
	for _, r := range h.Remotes() {
		for _, o := range list(t, r, lwsKind, xr.GetNamespace()) {
			all[r.Name()+": "+title(&o)] = identity(&o)
		}
		for _, o := range list(t, r, podKind, xr.GetNamespace()) {
			all[r.Name()+": "+title(&o)] = string(o.GetUID())
		}
	}
	return all
}

// racers are the workloads of the services that have a slot, by cluster and name, if they are as
// many as there are slots, and all other services say that they wait.
func (h *controlPlane) racers(ctx context.Context, ns string, services, slots int) (map[string]string, error) {
	all, err := h.List(ctx, kindService, ns)
	if err != nil {
		return nil, err
	}
	has := map[string]bool{}
	waiting := 0
	for i := range all {
		states := slices.Sorted(maps.Values(placement(&all[i])))
		switch {
		case len(states) != 2:
			return nil, fmt.Errorf("%s says %q", all[i].GetName(), states)
		case strings.HasPrefix(states[1], "Placed"):
			if err := conditions(&all[i], "Ready", "Placed"); err != nil {
				return nil, fmt.Errorf("%s: %w", all[i].GetName(), err)
			}
			has[all[i].GetName()] = true
		case strings.HasPrefix(states[0], "Pending NotReserved") && strings.HasPrefix(states[1], "Pending NotReserved"):
			waiting++
		default:
			return nil, fmt.Errorf("%s says %q", all[i].GetName(), states)
		}
	}
	if len(has) != slots || waiting != services-slots {
		return nil, fmt.Errorf("%d services have a slot and %d wait, want %d and %d", len(has), waiting, slots, services-slots)
	}
	runs := map[string]string{}
	for _, r := range h.Remotes() {
		there, err := r.List(ctx, lwsKind, ns)
		if err != nil {
			return nil, err
		}
		for _, o := range there {
			name := strings.TrimSuffix(o.GetName(), "-worker-0")
			if !has[name] {
				return nil, fmt.Errorf("%s runs in %s without a slot", name, r.Name())
			}
			runs[r.Name()+" "+name] = identity(&o)
		}
	}
	if len(runs) != slots {
		return nil, fmt.Errorf("%d run: %v", len(runs), runs)
	}
	return runs, nil
}

// notOvercommitted proves that clusters have reserved no more capacity than they have.
func (h *controlPlane) notOvercommitted(t *testing.T, all []*unstructured.Unstructured) {
	t.Helper()
	for _, o := range all {
		now, err := h.Get(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		reservations, _, _ := unstructured.NestedSlice(now.Object, "status", "reservations")
		if err := conditions(now, "CapacityConsistent"); err != nil || len(reservations) > 5 {
			t.Errorf("%s has reserved capacity for %d services: %v", o.GetName(), len(reservations), err)
		}
	}
}

// testKubeconfig types what docs/operations.md says to let the control plane into a cluster, and
// proves that the Secret which comes of it opens that cluster, and no more of it than is needed.
func testKubeconfig(t *testing.T, h *controlPlane) {
	const block = "```sh\nremote() {"
	_, text, found := strings.Cut(read(t, "docs", "operations.md"), block)
	text, _, closed := strings.Cut(text, "\n```")
	if !found || !closed {
		t.Fatal("docs/operations.md does not say any more how to make a kubeconfig")
	}
	r := h.Remote("cluster-1")
	// Who follows it has both clusters in a kubeconfig, and the control plane is the current one.
	both, err := clientcmd.LoadFromFile(h.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	remote, err := clientcmd.LoadFromFile(r.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(both.Clusters, remote.Clusters)
	maps.Copy(both.AuthInfos, remote.AuthInfos)
	both.Contexts["gpu-east"] = remote.Contexts[remote.CurrentContext]
	dir := t.TempDir()
	if err := clientcmd.WriteToFile(*both, filepath.Join(dir, "both")); err != nil {
		t.Fatal(err)
	}
	line := fmt.Sprintf("set -e; cd %s; export KUBECONFIG=both; remote() {%s", dir, text)
	// The second time renews the token.
	for range 2 {
		if _, err := h.Shell(t.Context(), line); err != nil {
			t.Fatal(err)
		}
	}
	s := &corev1.Secret{}
	if !typed(t, h.Cluster, schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, "crossplane-system", "gpu-east", s) {
		t.Fatal("there is no Secret gpu-east")
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(s.Data["kubeconfig"])
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) == 0 {
		t.Errorf("with it %d nodes are seen: %v", len(nodes.Items), err)
	}
	if _, err := client.CoreV1().Secrets("kube-system").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("with it Secrets can be read (%v), want that forbidden", err)
	}
}

// testMinimalRBAC proves that everything here was done with the permissions of package/install.
func testMinimalRBAC(t *testing.T, h *controlPlane) {
	may(t, h.Cluster, "no", "*", "*")
	for _, r := range h.Remotes() {
		for what, want := range map[string]string{
			"* *": "no", "delete namespaces": "no", "create secrets": "no", "get secrets": "no", "update nodes": "no",
			"create namespaces": "yes", "list nodes": "yes", "create pods": "no", "delete pods": "no", "get pods": "yes",
		} {
			args := append([]string{"auth", "can-i"}, strings.Fields(what)...)
			// It fails where the answer is no.
			out, err := r.Kubectl(t.Context(), append(args, "--all-namespaces", "--as=system:serviceaccount:kube-system:inferenceservices")...)
			if strings.TrimSpace(out) != want {
				t.Errorf("the provider may %s in %s: %q (%v), want %s", what, r.Name(), out, err, want)
			}
		}
	}
	for _, e := range list(t, h, schema.GroupVersionKind{Version: "v1", Kind: "Event"}, "") {
		message, _, _ := unstructured.NestedString(e.Object, "message")
		// Admission forbids as well, such as a pod whose ServiceAccount comes a moment later. And what
		// the provider observes it applies as a dry run, which would create a pod that has just gone.
		if strings.Contains(message, "is forbidden: User ") && !strings.Contains(message, `cannot create resource "pods"`) {
			t.Errorf("something is forbidden: %s", message)
		}
	}
}
