package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
)

// staysPinned follows three services while the profile that they name changes. The platform team has pinned one to its
// CompositionRevision, and the team of another has paused it. Their pods stay until they are released, and the third one changes.
func staysPinned(t *testing.T, h *controlPlane, input string) {
	t.Helper()
	c := h.Cluster
	ns := namespace(t, c)
	pinned, paused, free := service("pinned"), service("paused"), service("free")
	all := []*unstructured.Unstructured{pinned, paused, free}
	for _, s := range all {
		s.SetNamespace(ns)
		kubectl(t, c, "apply", "-f", written(t, s.GetName()+".yaml", fmt.Sprintf(`
apiVersion: fusioninfer.io/v1alpha1
kind: InferenceService
metadata: {name: %s, namespace: %s}
spec:
  model: {uri: "hf://Qwen/Qwen3-8B"}
  profileName: vllm-nvidia
  roles:
  - {name: serve, componentType: worker, lifecycle: {drainSeconds: 0, shutdownSeconds: 5}}
`, s.GetName(), ns)))
	}
	for _, s := range all {
		settled(t, c, s)
	}
	patch := func(s *unstructured.Unstructured, text string) {
		t.Helper()
		kubectl(t, c, "patch", "--namespace="+ns, "inferenceservices.fusioninfer.io", s.GetName(), "--type=merge", "--patch="+text)
	}
	patch(pinned, `{"spec":{"crossplane":{"compositionUpdatePolicy":"Manual"}}}`)
	patch(paused, `{"spec":{"rollout":{"paused":true}}}`)
	settled(t, c, pinned)
	settled(t, c, paused)
	pods, hash := engineUIDs(t, c, free), profileHash(t, c, pinned)
	held := func() map[string]string {
		t.Helper()
		both := engineUIDs(t, c, pinned)
		maps.Copy(both, engineUIDs(t, c, paused))
		return both
	}
	kept := held()

	const was, is = "/health,/metrics,/v1/models", "/health,/metrics,/v1/models,/ping"
	b, err := os.ReadFile(compositionWith(t, "xr", fleetInput+h.directConfigs()+input))
	if err != nil {
		t.Fatal(err)
	}
	kubectl(t, c, "apply", "-f", written(t, "changed.yaml", strings.ReplaceAll(string(b), was, is)))
	rolledOut(t, c, paused, `False Paused: 0 of 1 replicas are updated, 1 is held back by spec.rollout.paused`)
	until(t, c, "the free service has the new profile", func(context.Context) (bool, error) {
		now := engineUIDs(t, c, free)
		return len(now) == 1 && !cmp.Equal(pods, now), nil
	})
	settled(t, c, free)
	hasWord(t, c, free, is)
	// A further call, now that there is another revision.
	patch(pinned, `{"metadata":{"annotations":{"test.fusioninfer.io/round":"1"}}}`)
	settled(t, c, pinned)
	same(t, "services that are pinned and paused", kept, held())
	if now := profileHash(t, c, pinned); now != hash || hash == "" || hash == profileHash(t, c, free) {
		t.Errorf("the profile of the pinned service is %q, was %q, and that of the free one %q", now, hash, profileHash(t, c, free))
	}

	patch(pinned, `{"spec":{"crossplane":{"compositionUpdatePolicy":"Automatic"}}}`)
	patch(paused, `{"spec":{"rollout":{"paused":false}}}`)
	for _, s := range []*unstructured.Unstructured{pinned, paused} {
		until(t, c, s.GetName()+" has the new profile once it is released", func(context.Context) (bool, error) {
			return profileHash(t, c, s) == profileHash(t, c, free), nil
		})
		settled(t, c, s)
		hasWord(t, c, s, is)
	}
}

func profileHash(t *testing.T, c *cluster.Cluster, o *unstructured.Unstructured) string {
	t.Helper()
	s, err := c.Get(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	hash, _, _ := unstructured.NestedString(s.Object, "status", "profile", "hash")
	return hash
}

// hasWord wants each engine of a service to have an argument that ends with a word.
func hasWord(t *testing.T, c *cluster.Cluster, s *unstructured.Unstructured, word string) {
	t.Helper()
	for _, p := range enginePods(t, c, s) {
		if args := p.Spec.Containers[0].Args; !slices.ContainsFunc(args, func(a string) bool { return strings.HasSuffix(a, "="+word) }) {
			t.Errorf("pod %s has no argument with %s: %q", p.Name, word, args)
		}
	}
}
