package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
)

// testExclusive proves that a real cluster serves one InferenceCluster of one control plane only, unless sharing says
// otherwise. The second InferenceCluster reserves nothing, nor does any while another control plane has marked the
// cluster. Services are told why, and nothing of the service that runs there is touched. All of it ends with its cause.
func testExclusive(t *testing.T, h *controlPlane) {
	until(t, h, "the InferenceClusters of other tests have gone", func(ctx context.Context) (bool, error) {
		left, err := h.List(ctx, clusterKind, "")
		return err == nil && len(left) == 0, errors.Join(err, fmt.Errorf("%d are left", len(left)))
	})
	r, ns, own := h.Remote("cluster-1"), namespace(t, h.Cluster), h.hasIdentity(t)
	// The name of the second comes first, so it is the time of creation that counts.
	first := member{name: "exclusive-b", remote: r.Name(), nodes: 3, gateway: "10.1.0.10", sharing: "Exclusive"}.object("exclusive")
	second := member{name: "exclusive-a", remote: r.Direct(), nodes: 3, sharing: byDefault}.object("again")
	for _, o := range []*unstructured.Unstructured{first, second} {
		t.Cleanup(func() {
			if !t.Failed() {
				h.goes(context.WithoutCancel(t.Context()), t, o)
			}
		})
	}
	apply(t, h.Cluster, first)
	h.reserves(t, first)
	h.exclusive(t, first, "True", "NoOtherKnown", "")
	worker := engine("worker", "worker", 1, 1)
	llama := placedService(ns, "llama", "Failover", "exclusive", entrance("exclusive.example.com", "prefix-cache"), worker)
	runs := func(replicas int) {
		t.Helper()
		h.lands(t, llama, map[string]string{first.GetName(): fmt.Sprintf("Placed [0] weight %d", replicas)}, map[string]int{r.Name(): replicas})
		h.routes(t, llama, map[string]int64{first.GetName(): int64(replicas)})
	}
	scale := func(replicas int) {
		t.Helper()
		worker["replicas"] = int64(replicas)
		apply(t, h.Cluster, llama)
	}
	apply(t, h.Cluster, llama)
	runs(1)
	before := h.everything(t, llama)

	apply(t, h.Cluster, second)
	system, err := r.Get(t.Context(), object(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, "", "kube-system"))
	if err != nil {
		t.Fatal(err)
	}
	refused := fmt.Sprintf("it is the same cluster as InferenceCluster %s, which was created earlier: the namespace kube-system has UID %s in both. Nothing new is reserved. ", first.GetName(), system.GetUID())
	h.exclusive(t, second, "False", "DuplicateCluster", refused)
	h.exclusive(t, first, "True", "NoOtherKnown", "InferenceCluster "+second.GetName()+": the same cluster, created later, and therefore refused")
	mistral := placedService(ns, "mistral", "Failover", "again", engine("worker", "worker", 1, 1))
	apply(t, h.Cluster, mistral)
	h.tellsWhy(t, mistral, second.GetName(), "Pending NotReserved: ", refused, 0)
	same(t, "a second InferenceCluster", before, h.everything(t, llama))
	scale(2)
	runs(2) // The first one goes on.

	for _, o := range []*unstructured.Unstructured{first, second} {
		o.Object["spec"].(map[string]any)["sharing"] = "ByPool"
		apply(t, h.Cluster, o)
	}
	h.lands(t, mistral, map[string]string{second.GetName(): "Placed [0]"}, map[string]int{r.Name(): 1})
	h.remove(t, mistral)
	h.goes(t.Context(), t, second)
	first.Object["spec"].(map[string]any)["sharing"] = "Exclusive"
	apply(t, h.Cluster, first)
	h.exclusive(t, first, "True", "NoOtherKnown", "")

	marks(t, r, own)
	before = h.everything(t, llama)
	kubectl(t, r, "patch", "configmap", markName, "--namespace=kube-system", "--type=merge", `--patch={"data":{"controlPlane":"another"}}`)
	marked := "another control plane uses the cluster: ConfigMap " + markName + " in namespace kube-system there names another, and this control plane is " + own + ". Nothing new is reserved"
	h.exclusive(t, first, "False", "OtherControlPlane", marked)
	same(t, "another control plane's mark", before, h.everything(t, llama))
	scale(3)
	h.tellsWhy(t, llama, first.GetName(), "Placed [0] weight 2 NotReserved: ", marked, 2)
	there := r.Name() + ": "
	same(t, "a replica that is not reserved", only(before, there), only(h.everything(t, llama), there))
	marks(t, r, "another")
	kubectl(t, r, "delete", "configmap", markName, "--namespace=kube-system")
	h.exclusive(t, first, "True", "NoOtherKnown", "")
	marks(t, r, own)
	runs(3)
	h.remove(t, llama)
}

// hasIdentity gives the control plane what identifies it, and returns that: a UID. API servers make this ConfigMap if they
// are told of an authority that signs the certificates of clients. Those of the tests are not.
func (h *controlPlane) hasIdentity(t *testing.T) string {
	t.Helper()
	o := object(configMapKind, "kube-system", "extension-apiserver-authentication")
	apply(t, h.Cluster, o)
	t.Cleanup(func() {
		if err := h.Delete(context.WithoutCancel(t.Context()), o); err != nil {
			t.Error(err)
		}
	})
	now, err := h.Get(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return string(now.GetUID())
}

// goes deletes an InferenceCluster whose services have gone. It would be in use for two minutes more, because it cannot know
// that they do not run any more.
func (h *controlPlane) goes(ctx context.Context, t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	if err := h.Until(ctx, title(o)+" is gone", func(ctx context.Context) (bool, error) {
		if _, err := h.Get(ctx, o); err != nil {
			return apierrors.IsNotFound(err), err
		}
		if _, err := h.Kubectl(ctx, "label", "inferenceclusters.fusioninfer.io", o.GetName(), "crossplane.io/in-use-"); err != nil {
			return false, err
		}
		_, err := h.Kubectl(ctx, "delete", "inferenceclusters.fusioninfer.io", o.GetName(), "--wait=false")
		return false, err
	}); err != nil {
		t.Error(err)
	}
}

// markName is the name of the ConfigMap that says which control plane uses a cluster.
const markName = "fusioninfer-control-plane"

// marks waits until a cluster is marked with a control plane.
func marks(t *testing.T, r *cluster.Remote, want string) {
	t.Helper()
	until(t, r, r.Name()+" is marked with control plane "+want, func(ctx context.Context) (bool, error) {
		o, err := r.Get(ctx, object(configMapKind, "kube-system", markName))
		if err != nil {
			return false, err
		}
		got, _, _ := unstructured.NestedString(o.Object, "data", "controlPlane")
		return got == want, fmt.Errorf("it is marked with %q", got)
	})
}

// exclusive waits until an InferenceCluster says who else uses its real cluster: a status, a reason, and the beginning of
// a message. It reserves something if nobody does, and its condition Schedulable has the same words otherwise. Without a
// beginning, there is no message.
func (h *controlPlane) exclusive(t *testing.T, o *unstructured.Unstructured, status, reason, begins string) {
	t.Helper()
	until(t, h, fmt.Sprintf("%s has the condition Exclusive %s (%s)", o.GetName(), status, reason), func(ctx context.Context) (bool, error) {
		now, err := h.Get(ctx, o)
		if err != nil {
			return false, err
		}
		is, why, message := condition(now, "Exclusive")
		reserves, whyNot, says := condition(now, "Schedulable")
		if is != status || why != reason || !strings.HasPrefix(message, begins) || (begins == "") != (message == "") {
			return false, fmt.Errorf("it is %s (%s: %s)", is, why, message)
		}
		if reserves != status || status == "False" && (whyNot != reason || says != message) {
			return false, fmt.Errorf("Schedulable is %s (%s: %s)", reserves, whyNot, says)
		}
		return true, nil
	})
}

// tellsWhy waits until a service says that it waits in its only cluster and why, and checks that it has so many pods there.
func (h *controlPlane) tellsWhy(t *testing.T, xr *unstructured.Unstructured, at, state, why string, pods int) {
	t.Helper()
	until(t, h, xr.GetName()+" is told why it waits", lasting(func(ctx context.Context) (bool, error) {
		s, err := h.Get(ctx, xr)
		if err != nil {
			return false, err
		}
		if got := placement(s); len(got) != 1 || !strings.HasPrefix(got[at], state+why) {
			return false, fmt.Errorf("it says %q", got)
		}
		if status, reason, message := condition(s, "Placed"); status != "False" || reason != "NotReserved" || !strings.Contains(message, why) {
			return false, fmt.Errorf("Placed is %s (%s: %s)", status, reason, message)
		}
		return true, nil
	}))
	n := 0
	for _, r := range h.Remotes() {
		all, err := enginesOf(t.Context(), r, xr)
		if err != nil {
			t.Fatal(err)
		}
		n += len(all)
	}
	if n != pods {
		t.Errorf("%s has %d pods, want %d", xr.GetName(), n, pods)
	}
}
