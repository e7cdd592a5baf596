package e2e

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/cluster"
)

// testRatioFollows scales the decode role of a pair with a ratio by kubectl, as an autoscaler would. Prefill follows, also to fewer replicas
// than it had as it got its InferenceRole, which has the number that runs. Once prefill is scaled itself, decode keeps up with it.
func testRatioFollows(t *testing.T, c *cluster.Cluster) {
	ns := namespace(t, c)
	prefill, decode := briefly(engine("prefill", "prefiller", 3, 1), 0), briefly(engine("decode", "decoder", 6, 1), 0)
	pair := inference(ns, "pair", prefill, decode)
	pair.Object["spec"].(map[string]any)["schedulingStrategy"] = map[string]any{"gang": map[string]any{"mode": "MinimumFirst"}}
	apply(t, c, pair)
	settled(t, c, pair)

	before := identities(t, c, "Pod", pair)
	prefill["scaling"], decode["scaling"] = map[string]any{"maxReplicas": int64(4)}, map[string]any{"maxReplicas": int64(8)}
	delete(prefill, "replicas")
	delete(decode, "replicas")
	pair.Object["spec"].(map[string]any)["scaling"] = map[string]any{"ratio": map[string]any{"prefill": int64(1), "decode": int64(2)}}
	apply(t, c, pair)
	runs := func(prefill, decode int64) {
		t.Helper()
		until(t, c, fmt.Sprintf("%d and %d replicas run", prefill, decode), func(ctx context.Context) (bool, error) {
			s, err := c.Get(ctx, pair)
			if err != nil {
				return false, err
			}
			asked := map[string]int64{}
			for _, o := range list(t, c, roleKind, ns) {
				asked[o.GetName()], _, _ = unstructured.NestedInt64(o.Object, "spec", "replicas")
			}
			diff := cmp.Diff(map[string]int64{"pair-prefill": prefill, "pair-decode": decode}, asked)
			return diff == "" && desired(s, "prefill") == prefill && desired(s, "decode") == decode,
				fmt.Errorf("it wants %d and %d, and its InferenceRoles ask for: -want, +got:\n%s", desired(s, "prefill"), desired(s, "decode"), diff)
		})
		if err := conditions(settled(t, c, pair), "Scaled"); err != nil {
			t.Error(err)
		}
	}
	runs(3, 6)
	same(t, "it gets a ratio", before, identities(t, c, "Pod", pair))
	scaleRole(t, c, pair, "decode", 2)
	runs(1, 2)
	scaleRole(t, c, pair, "decode", 8)
	runs(4, 8)
	scaleRole(t, c, pair, "decode", 4)
	runs(2, 4)
	scaleRole(t, c, pair, "prefill", 3)
	says(t, c, pair, map[string]string{"prefill": "Running 3/3 3/3", "decode": "Running 6/6 6/6"})
}
