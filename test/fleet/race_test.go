// Package fleet tests the whole function with the services and clusters of a fleet.
package fleet

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/test/function"
)

const racer = `---
apiVersion: fusioninfer.io/v1alpha1
kind: InferenceService
metadata:
  name: s%02d
  namespace: team-%d
  uid: 00000000-0000-4000-8000-0000000000%02d
  creationTimestamp: "2026-03-01T12:00:%02dZ"
spec:
  placement:
    policy: %s
    clusterSelector: {}
  roles:
  - name: worker
    componentType: worker
    template:
      spec:
        containers:
        - name: vllm
          image: vllm/vllm-openai:v0.11.0
          args: [--model, Qwen/Qwen3-8B]
          resources:
            limits:
              nvidia.com/gpu: 8
`

const raced = `---
apiVersion: fusioninfer.io/v1alpha1
kind: InferenceCluster
metadata:
  name: c%d
spec:
  providerConfigRef:
    name: c%d
  pools:
  - name: h100
    nodeCount: 5
    allocatable:
      nvidia.com/gpu: 8
`

// TestRace shows that of 50 services that request capacity of two clusters with 10 nodes, ten run,
// whatever the order of the requests. Under Failover these are the ten oldest. Under Spread, services
// that come at the same time first ask different clusters, so that none is asked by all. In each
// cluster the oldest of those run.
func TestRace(t *testing.T) {
	fn := function.Start(t)
	want := make([]string, 0, 10)
	for i := range 10 {
		want = append(want, fmt.Sprintf("s%02d", i))
	}
	for seed := range 5 {
		for _, policy := range []string{"Failover", "Spread"} {
			t.Run(fmt.Sprintf("%s/%d", policy, seed), func(t *testing.T) {
				var docs []string
				for i := range 50 {
					docs = append(docs, fmt.Sprintf(racer, i, i%7, i, i, policy))
				}
				r := rand.New(rand.NewPCG(uint64(seed), 1))
				r.Shuffle(len(docs), func(i, j int) { docs[i], docs[j] = docs[j], docs[i] })
				rest := append(slices.Clone(docs[1:]), fmt.Sprintf(raced, 1, 1), fmt.Sprintf(raced, 2, 2))
				summary, err := fn.RenderFleet(t, docs[0], strings.Join(rest, ""), "summary")
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, m := range regexp.MustCompile(`(?m)^ +team-\d/(s\d\d) +1 `).FindAllStringSubmatch(summary, -1) {
					got = append(got, m[1])
				}
				slices.Sort(got)
				if policy == "Spread" {
					if oldest := got[:min(len(got), 3)]; len(got) != len(want) || !slices.Equal(oldest, want[:3]) {
						t.Errorf("%q run, want ten with the oldest ones:\n%s", got, summary)
					}
					return
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("-want, +got:\n%s\n%s", diff, summary)
				}
			})
		}
	}
}
