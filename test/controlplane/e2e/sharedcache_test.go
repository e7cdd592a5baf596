package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
)

// cacheCompositionWith is the file of the packaged Composition of ModelCaches, with another Input.
func cacheCompositionWith(t *testing.T, api, input string) string {
	t.Helper()
	const kind = "      kind: Input\n"
	composition := read(t, "package", api, "cache-composition.yaml")
	if strings.Count(composition, kind) != 1 {
		t.Fatalf("package/%s/cache-composition.yaml does not say %q once", api, kind)
	}
	return written(t, "cache-composition.yaml", strings.Replace(composition, kind, kind+indented(input), 1))
}

// indented is a part of an Input, as a Composition has it.
func indented(input string) string {
	text := ""
	for line := range strings.Lines(input) {
		text += "      " + line
	}
	return text
}

// sharesCache follows two services that name one ModelCache. It comes after them, and one of them goes before the other.
func sharesCache(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	ns := namespace(t, c)
	services := []*unstructured.Unstructured{service("chat"), service("code")}
	for _, s := range services {
		s.SetNamespace(ns)
		kubectl(t, c, "apply", "-f", written(t, s.GetName()+".yaml", fmt.Sprintf(`
apiVersion: fusioninfer.io/v1alpha1
kind: InferenceService
metadata: {name: %s, namespace: %s}
spec:
  profileName: vllm-nvidia
  model: {cacheRef: {name: qwen}}
  roles:
  - {name: worker, componentType: worker}
`, s.GetName(), ns)))
		saysOfModel(t, c, s, "Loading", "ModelCache qwen")
	}
	if n := len(list(t, c, lwsKind, ns)) + len(list(t, c, jobKind, ns)); n != 0 {
		t.Errorf("%d LeaderWorkerSets and Jobs exist before the ModelCache does", n)
	}
	kubectl(t, c, "apply", "-f", written(t, "cache.yaml", fmt.Sprintf(`
apiVersion: v1
kind: Secret
metadata: {name: bucket, namespace: %[1]s}
stringData: {AWS_ACCESS_KEY_ID: %[2]s, AWS_SECRET_ACCESS_KEY: %[3]s}
---
apiVersion: fusioninfer.io/v1alpha1
kind: ModelCache
metadata: {name: qwen, namespace: %[1]s}
spec:
  uri: s3://models/qwen/8b
  credentialsSecretRef: {name: bucket}
  size: 1Gi
`, ns, bucketReader, bucketKey)))
	kubectl(t, c, "wait", "--for=condition=Ready", "--timeout=5m", "--namespace="+ns, "modelcaches.fusioninfer.io/qwen")
	for _, s := range services {
		settled(t, c, s)
		answers(t, c, s, "8b")
	}
	until(t, c, "the Job has gone", func(context.Context) (bool, error) { return len(list(t, c, jobKind, ns)) == 0, nil })
	claims := list(t, c, claimKind, ns)
	if len(claims) != 1 {
		t.Fatalf("there are %d claims, want one", len(claims))
	}

	kubectl(t, c, "delete", "--wait", "--timeout=3m", "--namespace="+ns, "inferenceservices.fusioninfer.io/chat")
	settled(t, c, services[1])
	answers(t, c, services[1], "8b")
	if now := list(t, c, claimKind, ns); len(now) != 1 || now[0].GetUID() != claims[0].GetUID() || now[0].GetDeletionTimestamp() != nil {
		t.Errorf("the claim of the ModelCache is not as it was: %v", now)
	}
	kubectl(t, c, "delete", "--wait", "--timeout=3m", "--namespace="+ns, "inferenceservices.fusioninfer.io/code")
	kubectl(t, c, "delete", "--wait", "--timeout=3m", "--namespace="+ns, "modelcaches.fusioninfer.io/qwen")
	until(t, c, "the claim has gone", func(context.Context) (bool, error) { return len(list(t, c, claimKind, ns)) == 0, nil })
}
