package e2e

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
)

// TestScale scales a role by its InferenceRole, as people and autoscalers do. What runs stays, and the limits of
// the spec hold.
func TestScale(t *testing.T) {
	t.Parallel()
	c := shared(t)
	chat := scalable(namespace(t, c))
	apply(t, c, chat)
	settled(t, c, chat)
	scales(t, c, chat)
}

// scalable is a service with a role that scales from 1 to 4.
func scalable(ns string) *unstructured.Unstructured {
	worker := smallEngine("worker", "worker", 1)
	delete(worker, "replicas")
	worker["scaling"] = map[string]any{"maxReplicas": int64(4)}
	return inference(ns, "scaled", worker)
}

// scales has a service that runs one replica run 3, then the most that it may have, and then 2.
func scales(t *testing.T, c *cluster.Cluster, o *unstructured.Unstructured) {
	t.Helper()
	pods := func() map[string]string { return only(identities(t, c, "Pod", o), o.GetName()+"-worker-") }
	before := pods()
	for _, tc := range []struct{ ask, want int }{{3, 3}, {9, 4}, {2, 2}} {
		scaleRole(t, c, o, "worker", tc.ask)
		until(t, c, fmt.Sprintf("%d replicas run when %d are asked for", tc.want, tc.ask), func(context.Context) (bool, error) {
			current := kubectl(t, c, "get", "--namespace="+o.GetNamespace(), "inferenceroles.fusioninfer.io/"+o.GetName()+"-worker", "--output=jsonpath={.spec.replicas} {.status.replicas}")
			n := len(pods())
			return n == tc.want && current == fmt.Sprintf("%d %d", tc.ask, tc.want), fmt.Errorf("%d pods run, and the InferenceRole says %s", n, current)
		})
		reason := map[bool]string{true: "AsRequested", false: "Maximum"}[tc.ask == tc.want]
		for _, says := range []string{"inferenceservices.fusioninfer.io/" + o.GetName(), "inferenceroles.fusioninfer.io/" + o.GetName() + "-worker"} {
			until(t, c, "Scaled of "+says+" has the reason "+reason, func(context.Context) (bool, error) {
				got := kubectl(t, c, "get", "--namespace="+o.GetNamespace(), says, `--output=jsonpath={.status.conditions[?(@.type=="Scaled")].reason}`)
				return got == reason, fmt.Errorf("it has %q", got)
			})
		}
	}
	same(t, "scaling", before, only(pods(), o.GetName()+"-worker-0-"))
}
