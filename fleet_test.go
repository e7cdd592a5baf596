package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/cli"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
	"github.com/fusioninfer/function-inferenceservice/internal/plan"
	"github.com/fusioninfer/function-inferenceservice/internal/require"
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
    nodes: 5
    allocatable:
      nvidia.com/gpu: 8
`

// TestRace lets 50 services ask for 10 slots on two clusters, in shuffled order: the ten
// oldest get them, whoever asked first.
func TestRace(t *testing.T) {
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
				summary := settled(t, docs[0], strings.Join(rest, ""))
				var got []string
				for _, m := range regexp.MustCompile(`(?m)^ +team-\d/(s\d\d) +1 `).FindAllStringSubmatch(summary, -1) {
					got = append(got, m[1])
				}
				slices.Sort(got)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("-want, +got:\n%s\n%s", diff, summary)
				}
			})
		}
	}
}

// settled is the summary of a service once its fleet has come to rest.
func settled(t *testing.T, xr, required string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"xr.yaml": xr, "required.yaml": required} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out, errs bytes.Buffer
	c := cli.Render{XR: filepath.Join(dir, "xr.yaml"), Required: []string{filepath.Join(dir, "required.yaml")}, Settle: true, Format: "summary"}
	if err := c.Run(t.Context(), &Function{log: logging.NewNopLogger()}, cli.Streams{Out: &out, Err: &errs}); err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	return out.String()
}

// BenchmarkFleet plans one service among 1,000 on 20 clusters, from the request to the
// answer.
func BenchmarkFleet(b *testing.B) {
	var clusters []*fnv1.Resource
	for c := range 20 {
		var allocations []any
		for s := range 50 {
			allocations = append(allocations, map[string]any{
				"uid": fmt.Sprintf("00000000-0000-4000-8000-%06d%06d", c, s), "namespace": "team", "name": fmt.Sprintf("s%d", s),
				"replicas": []any{"prefill/0", "decode/0", "decode/1"}, "pods": 10, "resources": map[string]any{"nvidia.com/gpu": "80"},
			})
		}
		o, err := structpb.NewStruct(map[string]any{
			"apiVersion": "fusioninfer.io/v1alpha1", "kind": "InferenceCluster",
			"metadata": map[string]any{"name": fmt.Sprintf("c%02d", c), "labels": map[string]any{"region": "us"}},
			"spec":     map[string]any{"providerConfigRef": map[string]any{"name": "c"}},
			"status": map[string]any{
				"allocations": allocations,
				"pools": []any{map[string]any{
					"name": "h100", "nodes": 520, "allocatable": map[string]any{"nvidia.com/gpu": "4160"},
					"free": []any{map[string]any{"nodes": 20, "resources": map[string]any{"nvidia.com/gpu": "8"}}, map[string]any{"nodes": 500, "resources": map[string]any{"nvidia.com/gpu": "0"}}},
				}},
			},
		})
		if err != nil {
			b.Fatal(err)
		}
		clusters = append(clusters, &fnv1.Resource{Resource: o})
	}
	xr := kube.Copy(readStructs(b, "example/story-4-pd-multinode/xr.yaml")[0])
	placement, err := structpb.NewStruct(map[string]any{"policy": "Failover", "clusterSelector": map[string]any{"matchLabels": map[string]any{"region": "us"}}})
	if err != nil {
		b.Fatal(err)
	}
	xr = kube.With(xr, structpb.NewStructValue(placement), "spec", "placement")
	req := &fnv1.RunFunctionRequest{
		Observed:          &fnv1.State{Composite: &fnv1.Resource{Resource: xr}},
		RequiredResources: map[string]*fnv1.Resources{require.Fleet: {Items: clusters}},
	}
	f := &Function{log: logging.NewNopLogger()}
	for b.Loop() {
		rsp, err := f.RunFunction(b.Context(), req)
		if err != nil || rsp.GetDesired().GetResources()[plan.AskKey] == nil {
			b.Fatalf("no ask: %v %v", err, rsp.GetResults())
		}
	}
}
