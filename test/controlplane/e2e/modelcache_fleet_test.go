package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
)

var collectionKind = schema.GroupVersionKind{Group: "kubernetes.m.crossplane.io", Version: "v1alpha1", Kind: "ObservedObjectCollection"}

// loadsWhereItRuns follows two services that have room in three clusters. One has a cache of its own, and the other names a
// ModelCache of all three. The weights of each are loaded in the one cluster where it runs. Until its Secret is there, the
// pod that cannot load them is named. Both may run in the same cluster: the first that has room for them is their home.
func loadsWhereItRuns(t *testing.T, h *controlPlane) {
	t.Helper()
	ns := namespace(t, h.Cluster)
	for i := range h.Remotes() {
		h.joinsForGood(t, "weights", member{name: fmt.Sprintf("weights-%d", i+1), remote: fmt.Sprintf("cluster-%d", i+1), nodes: 2})
	}
	kubectl(t, h.Cluster, "apply", "-f", written(t, "qwen.yaml", fmt.Sprintf(`
apiVersion: fusioninfer.io/v1alpha1
kind: ModelCache
metadata: {name: qwen, namespace: %s}
spec:
  uri: s3://models/qwen/8b
  credentialsSecretRef: {name: code-bucket}
  size: 1Gi
  loadPolicy: OnDemand
  clusterSelector: {matchLabels: {fleet: weights}}
`, ns)))
	models := map[string]map[string]any{
		"chat": {"uri": "s3://models/qwen/8b", "credentialsSecretRef": map[string]any{"name": "chat-bucket"}, "cache": map[string]any{"size": "1Gi"}},
		"code": {"cacheRef": map[string]any{"name": "qwen"}},
	}
	for name, model := range models {
		worker := briefly(engine("worker", "worker", 1, 1), 0)
		delete(podSpec(worker)["containers"].([]any)[0].(map[string]any), "args")
		s := placedService(ns, name, "Spread", "weights", worker)
		s.Object["spec"].(map[string]any)["model"] = model
		apply(t, h.Cluster, s)
		at := claimedIn(t, h, ns, name)
		// Nobody has made its Secret there, so the loader does not start. That is told by its pod.
		member := "cluster weights-" + strings.TrimPrefix(at.Name(), "cluster-")
		saysOfModel(t, h.Cluster, s, "LoadFailed", member+": pod "+claimPrefix[name])
		saysOfModel(t, h.Cluster, s, "LoadFailed", ": container loader: CreateContainerConfigError, and it tries again")
		kubectl(t, at, "apply", "-f", written(t, name+"-bucket.yaml", fmt.Sprintf(`
apiVersion: v1
kind: Secret
metadata: {name: %s-bucket, namespace: %s}
stringData: {AWS_ACCESS_KEY_ID: %s, AWS_SECRET_ACCESS_KEY: %s}
`, name, ns, bucketReader, bucketKey)))
		h.is(t, s, "Ready", "ModelReady")
		if again := claimedIn(t, h, ns, name); again != at {
			t.Errorf("%s: the weights were loaded in %s, and are in %s", name, at.Name(), again.Name())
		}
		observesNoPod(t, h, ns)
		answers(t, at, s, "8b")
		tellsNo(t, at, ns, bucketKey)
	}
	// Not even by Objects, which have what is made in other clusters, and observe it.
	if objects := list(t, h.Cluster, objectKind, ns); len(objects) == 0 {
		t.Error("there are no Objects")
	}
	tellsNo(t, h.Cluster, ns, bucketKey)
}

// claimPrefix starts the names of the claims for the weights of each service, and of the pods that load them.
var claimPrefix = map[string]string{"chat": "chat-model-", "code": "qwen-cache-"}

// observesNoPod waits until nothing finds or observes pods in other clusters any more, because the weights are loaded.
func observesNoPod(t *testing.T, h *controlPlane, namespace string) {
	t.Helper()
	until(t, h, "nothing observes a pod", func(ctx context.Context) (bool, error) {
		left, err := h.List(ctx, collectionKind, namespace)
		if err != nil {
			return false, err
		}
		objects, err := h.List(ctx, objectKind, namespace)
		if err != nil {
			return false, err
		}
		for _, o := range objects {
			if kind, _, _ := unstructured.NestedString(o.Object, "spec", "forProvider", "manifest", "kind"); kind == "Pod" {
				left = append(left, o)
			}
		}
		return len(left) == 0, fmt.Errorf("%d collections and Objects of pods are left", len(left))
	})
}

// claimedIn waits until exactly one cluster has a claim for the weights of a service, or of the ModelCache that only this service names.
func claimedIn(t *testing.T, h *controlPlane, namespace, service string) *cluster.Remote {
	t.Helper()
	prefix := claimPrefix[service]
	var found []*cluster.Remote
	until(t, h, "the weights of "+service+" are claimed in one cluster", lasting(func(ctx context.Context) (bool, error) {
		found = nil
		for _, r := range h.Remotes() {
			all, err := r.List(ctx, claimKind, namespace)
			if err != nil {
				return false, err
			}
			for _, o := range all {
				if strings.HasPrefix(o.GetName(), prefix) {
					found = append(found, r)
				}
			}
		}
		return len(found) == 1, fmt.Errorf("there are claims in %d clusters", len(found))
	}))
	return found[0]
}

// volumes makes volumes that several nodes can mount.
func volumes(t *testing.T, c api, n int) {
	t.Helper()
	for i := range n {
		kubectl(t, c, "apply", "-f", written(t, fmt.Sprintf("volume-%d.yaml", i), fmt.Sprintf(`
apiVersion: v1
kind: PersistentVolume
metadata: {name: shared-%d}
spec:
  accessModes: [ReadWriteMany]
  capacity: {storage: 1Gi}
  storageClassName: shared
  hostPath: {path: /none}
`, i)))
	}
}
