/*
Package e2e tests the packages on a whole control plane, the way a user meets
them: installed from a registry by the commands of the README, with the
permissions of package/install and of Crossplane's own chart, and no more.
*/
package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
)

const (
	first  = "v0.1.0"
	second = "v0.1.1"
	// previous is built from an earlier commit, PREVIOUS of the Makefile. The others are of this one.
	previous = "v0.0.9"

	function      = "fusioninfer-function-inferenceservice"
	configuration = "fusioninfer-configuration-inferenceservice"
	claims        = configuration + "-claims"
)

// up starts a control plane with room for the quickstart, and pushes packages to its
// registry.
func up(t *testing.T, versions ...string) *cluster.Cluster {
	t.Helper()
	// There is room for everything wherever it lands: small pods that come first may not keep large ones out.
	c := cluster.TestUp(t, cluster.Options{Packages: *packages, Nodes: 12, GPUs: 64, CoreArgs: cluster.RecommendedCoreArgs})
	for _, v := range versions {
		if err := c.PushPackages(v); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// TestXR installs the namespaced API in one step, which installs the function as well;
// lets definitions go and come; runs the quickstart, and sees it through everything
// that fails, and through an upgrade; and uninstalls.
func TestXR(t *testing.T) {
	c := up(t, first)
	before, err := c.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	may(t, c, "no", "create", "leaderworkersets.leaderworkerset.x-k8s.io")
	kubectl(t, c, "apply", "-f", "package/install/rbac.yaml", "-f", "package/install/admission.yaml")
	may(t, c, "yes", "create", "leaderworkersets.leaderworkerset.x-k8s.io")
	may(t, c, "no", "*", "*")
	if _, err := c.Crossplane(t.Context(), "xpkg", "install", "configuration", "ghcr.io/fusioninfer/configuration-inferenceservice:"+first); err != nil {
		t.Fatal(err)
	}
	healthy(t, c, "Configuration", configuration, first)
	healthy(t, c, "Function", function, first)

	// The dependency runs as any function does. The manifest says how it should.
	kubectl(t, c, "apply", "-f", "package/install/function.yaml")
	healthy(t, c, "Function", function, first)
	t.Run("MissingKinds", func(t *testing.T) { testMissingKinds(t, c) })

	kubectl(t, c, "apply", "-f", "example/quickstart/xr.yaml")
	quickstart := service("deepseek-r1")
	ready(t, c, quickstart)
	served(t, c, quickstart)
	workloads, pods := identities(t, c, "LeaderWorkerSet", quickstart), identities(t, c, "Pod", quickstart)
	if len(workloads) != 3 || len(pods) != 11 {
		t.Fatalf("the quickstart has %d LeaderWorkerSets and %d pods, want 3 and 11", len(workloads), len(pods))
	}
	t.Run("Faults", func(t *testing.T) { testFaults(t, c) })
	kubectl(t, c, "apply", "-f", at(t, "configuration.yaml", second))
	healthy(t, c, "Configuration", configuration, second)
	// Whatever the new function wants is there by the end of another round.
	kubectl(t, c, "annotate", "inferenceservices.fusioninfer.io", quickstart.GetName(), "test.fusioninfer.io/round=1")
	ready(t, c, quickstart)
	if diff := cmp.Diff(workloads, identities(t, c, "LeaderWorkerSet", quickstart)); diff != "" {
		t.Errorf("faults and an upgrade change LeaderWorkerSets: -before, +after:\n%s", diff)
	}
	if diff := cmp.Diff(pods, identities(t, c, "Pod", quickstart)); diff != "" {
		t.Errorf("faults and an upgrade change pods: -before, +after:\n%s", diff)
	}

	uninstall(t, c, "configuration.yaml")
	if err := c.OnlyHas(t.Context(), before); err != nil {
		t.Error(err)
	}
}

// TestClaims installs function and API by the manifests, with the API as a claim. The
// function that is there is the one the Configuration depends on.
func TestClaims(t *testing.T) {
	c := up(t, first)
	before, err := c.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"rbac.yaml", "admission.yaml", "function.yaml", "configuration-claims.yaml"} {
		kubectl(t, c, "apply", "-f", "package/install/"+f)
	}
	healthy(t, c, "Function", function, first)
	healthy(t, c, "Configuration", claims, first)
	if all := strings.Fields(kubectl(t, c, "get", "functions.pkg.crossplane.io", "--output=name")); len(all) != 1 {
		t.Errorf("there are the functions %q, want the one that was installed", all)
	}
	installed, err := c.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	kubectl(t, c, "create", "namespace", "team")
	kubectl(t, c, "apply", "--namespace=team", "-f", quickstartOf(t, "team"))
	all := examples(t, true)
	for _, e := range all {
		// The claims of some have the same name.
		kubectl(t, c, "create", "namespace", e.name)
		e.xr.SetNamespace(e.name)
		e.way = e.routed(t, c)
		apply(t, c, e.xr)
	}
	claim := service("deepseek-r1")
	claim.SetNamespace("team")
	ready(t, c, claim)
	served(t, c, claim)
	for _, e := range all {
		e.claimed(t, c)
	}

	for _, e := range all {
		kubectl(t, c, "delete", "--namespace="+e.name, "inferenceservices.fusioninfer.io", e.xr.GetName())
		kubectl(t, c, "delete", "namespace", e.name, "--wait=false")
	}
	kubectl(t, c, "delete", "--namespace=team", "inferenceservices.fusioninfer.io", "deepseek-r1")
	if left := kubectl(t, c, "get", "--namespace=team", "--selector=fusioninfer.io/service", "--output=name",
		composed); left != "" {
		t.Errorf("the claim went before what it composed:\n%s", left)
	}
	kubectl(t, c, "delete", "namespace", "team")
	if err := c.OnlyHas(t.Context(), installed); err != nil {
		t.Errorf("the claims were deleted: %v", err)
	}

	kubectl(t, c, "apply", "-f", "example/quickstart/xr.yaml")
	ready(t, c, service("deepseek-r1"))
	uninstall(t, c, "configuration-claims.yaml")
	if err := c.OnlyHas(t.Context(), before); err != nil {
		t.Error(err)
	}
}

// claimed proves that an example's claim becomes Ready, and that the XR which Crossplane
// makes of it is composed of what the example shows, in the namespace of the claim.
func (e *example) claimed(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	// What the status is of is the XR's generation.
	claim := e.ready(t, c, func(*unstructured.Unstructured) error { return nil })
	name, _, _ := unstructured.NestedString(claim.Object, "spec", "resourceRef", "name")
	xr := object(schema.GroupVersionKind{Group: "fusioninfer.io", Version: "v1alpha1", Kind: "XInferenceService"}, "", name)
	xr, err := c.Get(t.Context(), xr)
	if err != nil {
		t.Fatalf("example/%s: the claim has no XR: %v", e.name, err)
	}
	docs, err := cluster.Documents([]byte(read(t, "example", e.name, "rendered.yaml")))
	if err != nil {
		t.Fatal(err)
	}
	refs := func(of *unstructured.Unstructured, in string) map[string]string {
		all, _, _ := unstructured.NestedSlice(of.Object, "spec", "resourceRefs")
		got := map[string]string{}
		for _, v := range all {
			m := v.(map[string]any)
			at := m["namespace"].(string)
			if at == in {
				at = "the claim's"
			}
			got[fmt.Sprint(m["kind"], " ", m["name"])] = at
		}
		return got
	}
	if diff := cmp.Diff(refs(docs[0], "team-a"), refs(xr, e.name)); diff != "" {
		t.Errorf("example/%s is composed of: -shown, +got:\n%s", e.name, diff)
	}
}

// may waits until Crossplane may do something, or may not. Were it allowed everything,
// no test here would miss a rule of package/install/rbac.yaml.
func may(t *testing.T, c *cluster.Cluster, want, verb, resource string) {
	t.Helper()
	until(t, c, "Crossplane may "+verb+" "+resource+": "+want, func(ctx context.Context) (bool, error) {
		// It fails where the answer is no.
		out, err := c.Kubectl(ctx, "auth", "can-i", verb, resource, "--all-namespaces",
			"--as=system:serviceaccount:crossplane-system:crossplane")
		return strings.TrimSpace(out) == want, err
	})
}

// composed are the kinds of what a service is made of.
const composed = "leaderworkersets,podgroups,deployments,services,configmaps,serviceaccounts,roles,rolebindings," +
	"inferencepools,httproutes,gateways,pods"

// uninstall types what the README says, with the Configuration that is there.
func uninstall(t *testing.T, c *cluster.Cluster, configuration string) {
	t.Helper()
	_, after, _ := strings.Cut(read(t, "README.md"), "**Uninstall**")
	_, block, _ := strings.Cut(after, "```sh\n")
	block, _, _ = strings.Cut(block, "```")
	got := 0
	for line := range strings.Lines(strings.ReplaceAll(block, "configuration.yaml", configuration)) {
		switch {
		case strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "kubectl get "):
			got++
			until(t, c, "nothing is left of the services", func(ctx context.Context) (bool, error) {
				left, err := c.Shell(ctx, line)
				if err == nil && left != "" {
					err = fmt.Errorf("there still is:\n%s", left)
				}
				return err == nil, err
			})
		default:
			if _, err := c.Shell(t.Context(), line); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got == 0 {
		t.Error("the README does not wait until nothing is left")
	}
}

// called waits until functions have only pods of a version, and one of them has answered a call.
func called(t *testing.T, c *cluster.Cluster, version string) {
	t.Helper()
	until(t, c, "the new function is called", func(ctx context.Context) (bool, error) {
		pods, err := c.List(ctx, schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, "crossplane-system")
		if err != nil {
			return false, err
		}
		answered := false
		for _, p := range pods {
			if p.GetLabels()["pkg.crossplane.io/function"] == "" {
				continue
			}
			containers, _, _ := unstructured.NestedSlice(p.Object, "spec", "containers")
			if image := containers[0].(map[string]any)["image"].(string); !strings.HasSuffix(image, ":"+version) {
				return false, fmt.Errorf("pod %s runs %s", p.GetName(), image)
			}
			ip, _, _ := unstructured.NestedString(p.Object, "status", "podIP")
			metrics, err := get(ctx, "http://"+ip+":8080/metrics")
			if err != nil {
				return false, err
			}
			answered = answered || regexp.MustCompile(`(?m)^grpc_server_handled_total\{grpc_code="OK".*grpc_method="RunFunction".*\} [1-9]`).MatchString(metrics)
		}
		if !answered {
			return false, fmt.Errorf("none of %d pods was called", len(pods))
		}
		return true, nil
	})
}

func get(ctx context.Context, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	rsp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer rsp.Body.Close()
	b, err := io.ReadAll(rsp.Body)
	return string(b), err
}

// healthy waits until a package of a version is installed and healthy, and its revision
// is the one that is active.
func healthy(t *testing.T, c *cluster.Cluster, kind, name, version string) {
	t.Helper()
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("pkg.crossplane.io/v1")
	o.SetKind(kind)
	o.SetName(name)
	until(t, c, kind+" "+name+" "+version+" is healthy", func(ctx context.Context) (bool, error) {
		p, err := c.Get(ctx, o)
		if err != nil {
			return false, err
		}
		if err := conditions(p, "Installed", "Healthy"); err != nil {
			return false, err
		}
		revision := o.DeepCopy()
		revision.SetKind(kind + "Revision")
		current, _, _ := unstructured.NestedString(p.Object, "status", "currentRevision")
		revision.SetName(current)
		r, err := c.Get(ctx, revision)
		if err != nil {
			return false, err
		}
		state, _, _ := unstructured.NestedString(r.Object, "spec", "desiredState")
		image, _, _ := unstructured.NestedString(r.Object, "spec", "image")
		if state != "Active" || !strings.HasSuffix(image, ":"+version) {
			return false, fmt.Errorf("revision %s of %s is %s", current, image, state)
		}
		return true, nil
	})
}

func service(name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("fusioninfer.io/v1alpha1")
	o.SetKind("InferenceService")
	o.SetNamespace("default")
	o.SetName(name)
	return o
}

// ready waits until a service is ready, with every condition that the README names.
func ready(t *testing.T, c *cluster.Cluster, o *unstructured.Unstructured) {
	t.Helper()
	until(t, c, o.GetName()+" is ready", func(ctx context.Context) (bool, error) {
		s, err := c.Get(ctx, o)
		if err != nil {
			return false, err
		}
		err = errors.Join(warnings(s), conditions(s, "Ready", "Synced",
			"Accepted", "WorkloadsReady", "GangScheduled", "RouterReady", "RouteReady", "KindsAvailable"))
		return err == nil, err
	})
}

// served checks what the quickstart says about itself.
func served(t *testing.T, c *cluster.Cluster, o *unstructured.Unstructured) {
	t.Helper()
	s, err := c.Get(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if url, _, _ := unstructured.NestedString(s.Object, "status", "url"); url != "http://deepseek-r1.example.com" {
		t.Errorf("its URL is %q, want that of its route", url)
	}
	want := map[string]string{"router": "Running 1/1 1/1", "prefill": "Running 1/1 2/2", "decode": "Running 2/2 8/8"}
	if diff := cmp.Diff(want, everyComponent(s)); diff != "" {
		t.Errorf("its components: -want, +got:\n%s", diff)
	}
}

// identities are the UIDs and generations of the objects in the namespace of a
// service.
func identities(t *testing.T, c api, kind string, of *unstructured.Unstructured) map[string]string {
	t.Helper()
	gvk := schema.GroupVersionKind{Version: "v1", Kind: kind}
	if kind == "LeaderWorkerSet" {
		gvk.Group = "leaderworkerset.x-k8s.io"
	}
	all, err := c.List(t.Context(), gvk, of.GetNamespace())
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]string{}
	for _, o := range all {
		ids[o.GetName()] = fmt.Sprintf("%s generation %d", o.GetUID(), o.GetGeneration())
	}
	return ids
}

// conditions tells which of an object's conditions are not True.
func conditions(o *unstructured.Unstructured, want ...string) error {
	got := map[string]string{}
	all, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, v := range all {
		m := v.(map[string]any)
		got[m["type"].(string)] = fmt.Sprintf("%v (%v: %v)", m["status"], m["reason"], m["message"])
	}
	var bad []string
	for _, w := range want {
		if !strings.HasPrefix(got[w], "True ") {
			bad = append(bad, w)
		}
	}
	if len(bad) == 0 {
		return nil
	}
	lines := make([]string, 0, len(got))
	for _, k := range slices.Sorted(maps.Keys(got)) {
		lines = append(lines, k+" "+got[k])
	}
	return fmt.Errorf("not True: %s; it has:\n%s", strings.Join(bad, ", "), strings.Join(lines, "\n"))
}

// warnings wants a service to warn of nothing, unless it has prefill or decode pods and no router, or one
// that does not tell them apart, or several endpoint pickers with FailClose. Of that it has to warn.
func warnings(o *unstructured.Unstructured) error {
	types, plain, leads := map[string]bool{}, false, false
	roles, _, _ := unstructured.NestedSlice(o.Object, "spec", "roles")
	for _, r := range roles {
		role := r.(map[string]any)
		types[fmt.Sprint(role["componentType"])] = true
		plain = plain || role["strategy"] != nil && role["strategy"] != "pd-disaggregation"
		mode, _, _ := unstructured.NestedString(role, "endpointPicker", "failureMode")
		leads = leads || role["componentType"] == "router" && mode == "FailClose" && role["replicas"] == int64(2)
	}
	if leads {
		if _, _, message := condition(o, "NoWarnings"); !strings.Contains(message, ".replicas: all endpoint pickers end before the next ones start") {
			return fmt.Errorf("all of its endpoint pickers end before the next ones start, and NoWarnings says %q", message)
		}
		return nil
	}
	if plain && types["prefiller"] && types["decoder"] {
		if _, _, message := condition(o, "NoWarnings"); !strings.HasSuffix(message, "only pd-disaggregation separates prefill from decode") {
			return fmt.Errorf("its router does not separate prefill from decode, and NoWarnings says %q", message)
		}
		return nil
	}
	if types["router"] || !types["prefiller"] && !types["decoder"] {
		return conditions(o, "NoWarnings")
	}
	_, _, message := condition(o, "NoWarnings")
	unreached := 0
	for _, warning := range strings.Split(message, "; ") {
		switch {
		case strings.HasPrefix(warning, "spec.roles: no requests reach "):
			unreached++
		case strings.Contains(warning, "vLLM has no PyNcclConnector"): // The design documents have it.
		default:
			return fmt.Errorf("it has no router, and NoWarnings says %q", message)
		}
	}
	if unreached != 1 {
		return fmt.Errorf("it has no router, and NoWarnings says %q", message)
	}
	return nil
}

// at is a manifest of package/install with another version.
func at(t *testing.T, file, version string) string {
	t.Helper()
	return manifestOf(t, packageDir(t), file, version)
}

// packageTag finds the version of a package in a manifest of package/install.
var packageTag = regexp.MustCompile(`(?m)^( *package: \S+:)v\S+$`)

// manifestOf is the same of a version whose package/ is in a directory.
func manifestOf(t *testing.T, dir, file, version string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "install", file))
	if err != nil {
		t.Fatal(err)
	}
	if !packageTag.Match(b) {
		t.Fatalf("%s/install/%s names no package of a version", dir, file)
	}
	return written(t, file, packageTag.ReplaceAllString(string(b), "${1}"+version))
}

// quickstartOf is the quickstart in another namespace.
func quickstartOf(t *testing.T, namespace string) string {
	t.Helper()
	return written(t, "quickstart.yaml",
		strings.Replace(read(t, "example", "quickstart", "xr.yaml"), "namespace: default", "namespace: "+namespace, 1))
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(append([]string{root}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func written(t *testing.T, name, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func kubectl(t *testing.T, c api, args ...string) string {
	t.Helper()
	out, err := c.Kubectl(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func until(t *testing.T, c api, what string, done func(context.Context) (bool, error)) {
	t.Helper()
	if err := c.Until(t.Context(), what, done); err != nil {
		t.Fatal(err)
	}
}
