package weights

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/fusioninfer/function-inferenceservice/internal/key"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/loader"
	"github.com/fusioninfer/function-inferenceservice/internal/scheduling"
	"github.com/fusioninfer/function-inferenceservice/internal/service/plan"
)

const want = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  labels: {fusioninfer.io/service: chat}
  name: chat-model-1
  namespace: team
spec:
  accessModes: [ReadWriteMany]
  resources: {requests: {storage: 40Gi}}
  storageClassName: nfs
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  labels: {fusioninfer.io/service: chat}
  name: chat-adapters
  namespace: team
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 20Gi}}
---
apiVersion: batch/v1
kind: Job
metadata:
  labels: {fusioninfer.io/service: chat}
  name: chat-model-1-HASH
  namespace: team
spec:
  backoffLimit: 2147483647
  podReplacementPolicy: Failed
  template:
    metadata:
      labels: {fusioninfer.io/model-loader: chat-model-1}
    spec:
      automountServiceAccountToken: false
      containers:
      - command: [sh, -c, load]
        env:
        - {name: HOME, value: /tmp}
        image: hf
        name: loader
        securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
        volumeMounts:
        - {mountPath: /mnt/models, name: weights}
        - {mountPath: /tmp, name: home}
      enableServiceLinks: false
      nodeSelector: {gpu: h100}
      restartPolicy: OnFailure
      securityContext:
        fsGroup: 3
        fsGroupChangePolicy: OnRootMismatch
        runAsGroup: 2
        runAsNonRoot: true
        runAsUser: 1
        seccompProfile: {type: RuntimeDefault}
      terminationGracePeriodSeconds: 5
      tolerations:
      - {key: nvidia.com/gpu, operator: Exists}
      volumes:
      - {name: weights, persistentVolumeClaim: {claimName: chat-model-1}}
      - {emptyDir: {}, name: home}
`

// TestRender shows the claims and the Job: the Job restarts its container in the same pod for ever, has no
// right in the cluster and removes nothing of itself.
func TestRender(t *testing.T) {
	p := &plan.Plan{Weights: &plan.Weights{ClaimName: "chat-model-1", LoaderName: "chat-model-1", Loader: loader.Loader{
		Image: "hf", Command: []string{"sh", "-c", "load"}, Env: []corev1.EnvVar{{Name: "HOME", Value: "/tmp"}}, Users: loader.Users{User: 1, Group: 2, VolumeGroup: 3},
		NodeSelector: map[string]string{"gpu": "h100"}, Tolerations: []corev1.Toleration{{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists}},
	}}}
	c := &plan.ClusterPlan{
		Target: scheduling.Target{Namespace: "team"}, Base: "chat",
		Caches:       []plan.Cache{{Key: key.New("", key.PersistentVolumeClaim, "1"), ClaimName: "chat-model-1", Size: "40Gi", StorageClassName: "nfs", AccessMode: "ReadWriteMany"}},
		AdapterClaim: &plan.Cache{Key: key.New("", key.PersistentVolumeClaim, "adapters"), ClaimName: "chat-adapters", Size: "20Gi", AccessMode: "ReadWriteOnce"},
		Loading:      &plan.Loading{Job: key.New("", key.Job, "1", "HASH"), JobName: "chat-model-1-HASH", Renders: true},
	}
	r, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := r.Render(c)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range objects {
		doc, err := yaml.Marshal(kube.AsMap(o.Resource))
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(doc))
	}
	if diff := cmp.Diff(normal(t, want), normal(t, strings.Join(got, "---\n"))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestHash proves that whatever the Job's template is made from is in its hash, because the template of
// a Job cannot change.
func TestHash(t *testing.T) {
	hash := func(change func(*loader.Loader)) string {
		w := &plan.Weights{ClaimName: "c", Loader: loader.Loader{Image: "i", Users: loader.Users{User: 1}}}
		change(&w.Loader)
		r, err := New(&plan.Plan{Weights: w})
		if err != nil {
			t.Fatal(err)
		}
		return r.Hash()
	}
	same := hash(func(*loader.Loader) {})
	for name, change := range map[string]func(*loader.Loader){
		"image":   func(l *loader.Loader) { l.Image = "j" },
		"command": func(l *loader.Loader) { l.Command = []string{"x"} },
		"env":     func(l *loader.Loader) { l.Env = []corev1.EnvVar{{Name: "A"}} },
		"user":    func(l *loader.Loader) { l.User = 2 },
		"secrets": func(l *loader.Loader) { l.ImagePullSecrets = []string{"s"} },
		"nodes":   func(l *loader.Loader) { l.NodeAffinity = &corev1.NodeAffinity{} },
	} {
		if hash(change) == same {
			t.Errorf("the hash does not change with the %s", name)
		}
	}
}

// normal returns YAML documents as maps.
func normal(t *testing.T, docs string) []any {
	t.Helper()
	var all []any
	for _, doc := range strings.Split(docs, "---\n") {
		var o any
		if err := yaml.Unmarshal([]byte(doc), &o); err != nil {
			t.Fatal(err)
		}
		if o != nil {
			all = append(all, o)
		}
	}
	return all
}
