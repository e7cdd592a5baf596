package e2e

import (
	"context"
	"fmt"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/crane"
	"github.com/rclone/gofakes3"
	"github.com/rclone/gofakes3/s3mem"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
)

// Who may read the bucket, and with which key.
const (
	bucketReader = "reader-of-models"
	bucketKey    = "right-key-of-the-bucket"
	wrongKey     = "wrong-key-of-the-bucket"
)

// newBucket serves a bucket with a model by the protocol of S3 to whoever signs requests with the right key.
func newBucket(t *testing.T) (address string) {
	t.Helper()
	objects := map[string]string{}
	for _, name := range append([]string{"extra/tokenizer.json"}, files...) {
		objects["qwen/8b/"+name] = "{}"
	}
	return bucketOf(t, objects)
}

// bucketOf serves the bucket models with these objects, in the same way.
func bucketOf(t *testing.T, objects map[string]string) (address string) {
	t.Helper()
	all := s3mem.New()
	if err := all.CreateBucket(t.Context(), "models"); err != nil {
		t.Fatal(err)
	}
	for name, content := range objects {
		if _, err := all.PutObject(t.Context(), "models", name, nil, strings.NewReader(content), int64(len(content))); err != nil {
			t.Fatal(err)
		}
	}
	s := httptest.NewServer(gofakes3.New(all, gofakes3.WithV4Auth(map[string]string{bucketReader: bucketKey})).Server())
	t.Cleanup(s.Close)
	return s.URL
}

// short is a service as a user writes it, whose pods are a serving profile's.
func short(t *testing.T, c *cluster.Cluster, namespace, model string) *unstructured.Unstructured {
	t.Helper()
	kubectl(t, c, "apply", "-f", written(t, "chat.yaml", fmt.Sprintf(`
apiVersion: fusioninfer.io/v1alpha1
kind: InferenceService
metadata: {name: chat, namespace: %s}
spec:
  profileName: vllm-nvidia
  model: %s
  roles:
  - {name: worker, componentType: worker}
`, namespace, model)))
	o := service("chat")
	o.SetNamespace(namespace)
	return o
}

// answers wants every engine of a service to answer by the name of its model.
func answers(t *testing.T, c api, s *unstructured.Unstructured, model string) {
	t.Helper()
	pods := enginePods(t, c, s)
	if len(pods) == 0 {
		t.Fatal("no engine runs")
	}
	for _, p := range pods {
		if by, text := answerBy(t, p, 8000, model, nil); by != p.Name || !strings.HasPrefix(text, p.Name+" serves "+model+":") {
			t.Errorf("pod %s: answered by %q: %s", p.Name, by, text)
		}
	}
}

// loadsFromBucket follows a service whose credentials for a private bucket are wrong at first. Nothing tells them.
func loadsFromBucket(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	ns := namespace(t, c)
	credentials := func(key string) {
		t.Helper()
		kubectl(t, c, "apply", "-f", written(t, "credentials.yaml", fmt.Sprintf(`
apiVersion: v1
kind: Secret
metadata: {name: bucket, namespace: %s}
stringData: {AWS_ACCESS_KEY_ID: %s, AWS_SECRET_ACCESS_KEY: %s}
`, ns, bucketReader, key)))
	}
	credentials(wrongKey)
	chat := short(t, c, ns, `{uri: "s3://models/qwen/8b", credentialsSecretRef: {name: bucket}, cache: {size: 1Gi}}`)
	saysOfModel(t, c, chat, "LoadFailed", "container loader: ")
	if logs := logsOf(t, c, ns); !strings.Contains(logs, "(SignatureDoesNotMatch) when calling the ListObjectsV2 operation") {
		t.Errorf("the loader does not say that the key is wrong:\n%s", logs)
	}
	credentials(bucketKey)
	settled(t, c, chat)
	answers(t, c, chat, "8b")
	until(t, c, "the Job has gone", func(context.Context) (bool, error) { return len(list(t, c, jobKind, ns)) == 0, nil })
	tellsNo(t, c, ns, wrongKey, bucketKey)
}

// servesFromClaim follows a service whose weights are in a claim that somebody else has filled.
func servesFromClaim(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	ns := namespace(t, c)
	kubectl(t, c, "apply", "-f", written(t, "claim.yaml", fmt.Sprintf(`
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: weights, namespace: %[1]s}
spec:
  accessModes: [ReadWriteMany]
  storageClassName: shared
  resources: {requests: {storage: 1Gi}}
---
apiVersion: v1
kind: Pod
metadata: {name: fill, namespace: %[1]s, labels: {fusioninfer.io/model-loader: fill}}
spec:
  restartPolicy: Never
  containers:
  - name: fill
    image: busybox
    command: [sh, -c, "mkdir -p /weights/qwen/8b && echo {} > /weights/qwen/8b/config.json"]
    volumeMounts: [{name: weights, mountPath: /weights}]
  volumes: [{name: weights, persistentVolumeClaim: {claimName: weights}}]
`, ns)))
	kubectl(t, c, "wait", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=3m", "--namespace="+ns, "pod/fill")
	chat := short(t, c, ns, `{uri: "pvc://weights/qwen/8b"}`)
	settled(t, c, chat)
	answers(t, c, chat, "8b")
}

// servesFromImage follows a service whose weights are in an image that is not in its registry at first.
func servesFromImage(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	ns := namespace(t, c)
	image := c.Registry().Organization + "/qwen:8b"
	chat := short(t, c, ns, fmt.Sprintf(`{uri: "oci://%s", path: weights}`, image))
	says(t, c, chat, map[string]string{"worker": "Failed 0/1 0/1"}, "False", "Failed", "ErrImagePull")
	weights, err := crane.Image(map[string][]byte{"weights/config.json": []byte("{}")})
	if err != nil {
		t.Fatal(err)
	}
	if err := crane.Push(weights, image); err != nil {
		t.Fatal(err)
	}
	settled(t, c, chat)
	answers(t, c, chat, "qwen")
}

// logsOf are the logs of the pods of a namespace, or of all processes.
func logsOf(t *testing.T, c *cluster.Cluster, namespace string) string {
	t.Helper()
	dir, all := c.Dir(), &strings.Builder{}
	if namespace != "" {
		dir = filepath.Join(dir, "pods", namespace)
	}
	if err := filepath.WalkDir(dir, func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(file) != ".log" {
			return err
		}
		b, err := os.ReadFile(file)
		all.Write(b)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return all.String()
}
