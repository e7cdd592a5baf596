package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
)

// podTerminates says that the containers of a deleted pod have ended, as kubelets do before they
// remove the pod. Kueue keeps its pods until then. KWOK's own stages remove a pod at once.
const podTerminates = `
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata:
  name: pod-terminates
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchLabels: {kueue.x-k8s.io/managed: "true"}
    matchExpressions:
    - {key: .metadata.deletionTimestamp, operator: Exists}
    - {key: .status.phase, operator: NotIn, values: [Failed, Succeeded]}
  # It goes before KWOK's own, which have no weight.
  weight: 1
  next:
    statusTemplate: |
      {{ $now := Now }}
      phase: Failed
      conditions:
      - {type: Ready, status: "False", reason: PodFailed, lastTransitionTime: {{ $now | Quote }}}
      - {type: ContainersReady, status: "False", reason: PodFailed, lastTransitionTime: {{ $now | Quote }}}
`

// loaderWaits leaves the pods alone that load weights, until they are deleted. KWOK can leave alone the
// pods of one selector only, and those of engines have another label.
const loaderWaits = `
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata:
  name: loader-waits
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchExpressions:
    - {key: '.metadata.labels["` + loaderPods + `"]', operator: Exists}
    - {key: .metadata.deletionTimestamp, operator: DoesNotExist}
  weight: 1
  delay: {durationMilliseconds: 86400000}
  next: {}
`

// RunKWOK starts KWOK, which does for nodes and pods what kubelets would do, without
// any container.
// It leaves pods alone that a label selector matches, if there is one.
func (c *Kubernetes) RunKWOK(ctx context.Context, besides string) error {
	dir, err := module("tools/kwok", "sigs.k8s.io/kwok")
	if err != nil {
		return err
	}
	p, err := ports(1)
	if err != nil {
		return err
	}
	args := []string{
		"--kubeconfig=" + c.Kubeconfig, "--manage-all-nodes",
		"--cidr=" + c.network.cidr(), "--node-ip=" + c.network.nodeIP(),
		"--node-lease-duration-seconds=40", "--server-address=" + address(p[0]),
	}
	if besides != "" {
		args = append(args, "--disregard-status-with-label-selector="+besides)
	}
	for _, stages := range []string{"pod/fast", "node/fast", "node/heartbeat-with-lease"} {
		files, err := filepath.Glob(filepath.Join(dir, "kustomize", "stage", filepath.FromSlash(stages), "[np]o*.yaml"))
		if err != nil || len(files) == 0 {
			return fmt.Errorf("KWOK has no stages %s: %w", stages, err)
		}
		for _, f := range files {
			args = append(args, "--config="+f)
		}
	}
	own := map[string]string{"kwok-pod-terminates.yaml": podTerminates}
	if besides != "" {
		own["kwok-loader-waits.yaml"] = loaderWaits
	}
	for name, stage := range own {
		file := filepath.Join(c.dir, name)
		if err := os.WriteFile(file, []byte(stage), 0o600); err != nil {
			return err
		}
		args = append(args, "--config="+file)
	}
	c.kwok, err = c.run(program{name: "kwok", args: args})
	if err != nil {
		return err
	}
	return c.kwok.waitFor(ctx, "healthy", func(ctx context.Context) error {
		return healthy(ctx, "http://"+address(p[0])+"/healthz")
	})
}

// addKWOKNodes adds nodes with GPUs for KWOK to look after.
func (c *Kubernetes) addKWOKNodes(ctx context.Context, n, gpus int) error {
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	has := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("128"),
		corev1.ResourceMemory: resource.MustParse("1Ti"),
		corev1.ResourcePods:   resource.MustParse("110"),
		"nvidia.com/gpu":      *resource.NewQuantity(int64(gpus), resource.DecimalSI),
	}
	for i := range n {
		name := nodeName(i)
		if _, err := client.CoreV1().Nodes().Create(ctx, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
				corev1.LabelHostname: name,
				corev1.LabelOSStable: "linux",
				"type":               "kwok",
			}},
			Status: corev1.NodeStatus{Capacity: has, Allocatable: has},
		}, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("cannot add a node: %w", err)
		}
	}
	return nil
}

func nodeName(i int) string { return "node-" + strconv.Itoa(i) }

// addHyperNodes tells Volcano which nodes are near each other: so many below each
// HyperNode of the first tier, and all of those below one of the second.
func (c *Kubernetes) addHyperNodes(ctx context.Context, nodes, below int) error {
	var racks []string
	for first := 0; first < nodes; first += below {
		var members []string
		for i := first; i < min(first+below, nodes); i++ {
			members = append(members, nodeName(i))
		}
		name := "rack-" + strconv.Itoa(len(racks))
		if err := c.addHyperNode(ctx, name, 1, "Node", members); err != nil {
			return err
		}
		racks = append(racks, name)
	}
	return c.addHyperNode(ctx, "spine", 2, "HyperNode", racks)
}

func (c *Kubernetes) addHyperNode(ctx context.Context, name string, tier int64, kind string, members []string) error {
	var all []any
	for _, m := range members {
		all = append(all, map[string]any{
			"type":     kind,
			"selector": map[string]any{"exactMatch": map[string]any{"name": m}},
		})
	}
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"tier": tier, "members": all}}}
	o.SetAPIVersion("topology.volcano.sh/v1alpha1")
	o.SetKind("HyperNode")
	o.SetName(name)
	_, err := c.Apply(ctx, o, fieldManager)
	return err
}
