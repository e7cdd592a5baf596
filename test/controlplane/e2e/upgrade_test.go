package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
)

// TestUpgrade upgrades while requests are sent to services here and in another cluster, which the previous version
// made: first to this version, with its definitions and Compositions, and then to one that renders the
// same. No request fails, and no engine restarts. By the second upgrade nothing changes that services are made of.
func TestUpgrade(t *testing.T) {
	if _, err := os.Stat(filepath.Join(*packages, previous, "package")); *packages == "" || err != nil {
		t.Fatalf("the packages of %s are not there, which make e2e builds: %v", previous, err)
	}
	h := &controlPlane{cluster.TestUp(t, cluster.Options{Packages: *packages, Nodes: 4, GPUs: 8, Engines: true, Clusters: 1, CoreArgs: cluster.RecommendedCoreArgs})}
	for _, v := range []string{previous, first, second} {
		if err := h.PushPackages(v); err != nil {
			t.Fatal(err)
		}
	}
	h.installVersion(t, previous, filepath.Join(*packages, previous, "package"), "")
	h.gateways(t)
	h.joinsForGood(t, "upgrade", member{name: "upgrade-east", remote: "cluster-1", nodes: 2, gateway: observedGateway})
	ns := namespace(t, h.Cluster)
	remote := placedService(ns, "remote", "Failover", "upgrade", entrance("remote.example.com", "prefix-cache"), briefly(engine("worker", "worker", 1, 1), 5))
	router := picker("local.example.com")
	router["strategy"] = "pd-disaggregation"
	local := inference(ns, "local", briefly(engine("prefill", "prefiller", 1, 1), 5), briefly(engine("decode", "decoder", 1, 1), 5), router)
	wide := inference(ns, "wide", briefly(engine("worker", "worker", 2, 2), ofSeveralNodes))
	for _, s := range []*unstructured.Unstructured{remote, local, wide} {
		apply(t, h.Cluster, s)
	}
	running := func() {
		t.Helper()
		h.lands(t, remote, map[string]string{"upgrade-east": "Placed [0] weight 1"}, map[string]int{"cluster-1": 1})
		h.routes(t, remote, map[string]int64{"upgrade-east": 1})
		settled(t, h.Cluster, local)
		settled(t, h.Cluster, wide)
	}
	running()
	// Whatever a new function wants is there by the end of another round.
	rounds := func(version string) {
		t.Helper()
		for _, n := range []string{"1", "2"} {
			round := "test.fusioninfer.io/round=" + version + "-" + n
			kubectl(t, h.Cluster, "annotate", "inferenceclusters.fusioninfer.io", "upgrade-east", "--overwrite", round)
			kubectl(t, h.Cluster, "annotate", "inferenceservices.fusioninfer.io", "--namespace="+ns, "--all", "--overwrite", round)
			called(t, h.Cluster, version)
		}
		running()
	}
	toLocal, toRemote := send(t, h.Cluster, ns, "local.example.com"), send(t, h.Cluster, "gateway-system", "remote.example.com")
	while := func(what string, change func()) {
		t.Helper()
		toLocal.while(what, func() { toRemote.while(what, change) })
	}

	before, pickers := h.podsOf(t, ns), h.pickerTemplates(t, ns)
	while("an upgrade from the previous version", func() {
		h.installVersion(t, first, packageDir(t), "")
		rounds(first)
	})
	after := h.podsOf(t, ns)
	for name, template := range h.pickerTemplates(t, ns) {
		if template == pickers[name] {
			continue
		}
		// CHANGELOG.md has to say so of a release. The next one is ready before it goes, so no request fails.
		t.Logf("%s changes, so it is replaced: -before, +after:\n%s", name, cmp.Diff(pickers[name], template))
		replaced := func(pod, _ string) bool { return strings.HasPrefix(pod, name+"-") }
		maps.DeleteFunc(before, replaced)
		maps.DeleteFunc(after, replaced)
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("an upgrade from the previous version changes pods: -before, +after:\n%s", diff)
	}

	whole := func() map[string]string {
		t.Helper()
		all := h.podsOf(t, ns)
		for _, s := range []*unstructured.Unstructured{local, wide} {
			for name, is := range each(parts(t, h.Cluster, s), identity) {
				all[s.GetName()+": "+name] = is
			}
		}
		for name, is := range h.everything(t, remote) {
			all["remote: "+name] = is
		}
		return all
	}
	before = whole()
	while("an upgrade of the function", func() {
		kubectl(t, h.Cluster, "apply", "-f", at(t, "function.yaml", second))
		healthy(t, h.Cluster, "Function", function, second)
		rounds(second)
	})
	if diff := cmp.Diff(before, whole()); diff != "" {
		t.Errorf("an upgrade changes what services are made of: -before, +after:\n%s", diff)
	}
}

// pickerTemplates are the pod templates of the endpoint pickers of a namespace, here and in other clusters, by the
// beginning of the names that podsOf has.
func (h *controlPlane) pickerTemplates(t *testing.T, namespace string) map[string]string {
	t.Helper()
	all := map[string]string{}
	note := func(at string, c api) {
		for _, o := range list(t, c, deploymentKind, namespace) {
			template, _, _ := unstructured.NestedMap(o.Object, "spec", "template")
			b, err := yaml.Marshal(template)
			if err != nil {
				t.Fatal(err)
			}
			all[at+": Pod "+o.GetName()] = string(b)
		}
	}
	note("here", h)
	for _, r := range h.Remotes() {
		note(r.Name(), r)
	}
	return all
}

// podsOf are the UIDs of all pods of a namespace here and in other clusters, engines and endpoint pickers, with the
// restarts of their containers. It waits until no pod is replaced: a service is ready while a pod of before still ends.
func (h *controlPlane) podsOf(t *testing.T, namespace string) map[string]string {
	t.Helper()
	all := map[string]string{}
	note := func(at string, c api) {
		until(t, c, "pods are replaced in namespace "+namespace, func(ctx context.Context) (bool, error) {
			err := stillReplaced(ctx, c, namespace)
			return err == nil, err
		})
		for _, o := range list(t, c, podKind, namespace) {
			restarts := 0
			for _, of := range []string{"initContainerStatuses", "containerStatuses"} {
				statuses, _, _ := unstructured.NestedSlice(o.Object, "status", of)
				for _, s := range statuses {
					n, _, _ := unstructured.NestedInt64(s.(map[string]any), "restartCount")
					restarts += int(n)
				}
			}
			all[at+": Pod "+o.GetName()] = string(o.GetUID()) + strings.Repeat(" restarted", restarts)
		}
	}
	note("here", h)
	for _, r := range h.Remotes() {
		note(r.Name(), r)
	}
	if len(all) == 0 {
		t.Error("there are no pods")
	}
	return all
}

// stillReplaced tells why pods of a namespace are not the last ones yet: a Deployment has others, or a pod is being deleted.
func stillReplaced(ctx context.Context, c api, namespace string) error {
	deployments, err := c.List(ctx, deploymentKind, namespace)
	if err != nil {
		return err
	}
	for i := range deployments {
		o := &deployments[i]
		seen, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
		all, _, _ := unstructured.NestedInt64(o.Object, "status", "replicas")
		updated, _, _ := unstructured.NestedInt64(o.Object, "status", "updatedReplicas")
		if seen != o.GetGeneration() || all != updated {
			return fmt.Errorf("deployment %s of generation %d has %d of %d updated pods, as of generation %d", o.GetName(), o.GetGeneration(), updated, all, seen)
		}
	}
	pods, err := c.List(ctx, podKind, namespace)
	if err != nil {
		return err
	}
	for i := range pods {
		if pods[i].GetDeletionTimestamp() != nil {
			return fmt.Errorf("pod %s is being deleted", pods[i].GetName())
		}
	}
	return nil
}
