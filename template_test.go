package main

import (
	"fmt"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
)

// answer is what the function answers to an XR alone, where privileged pods are allowed.
func answer(t *testing.T, doc string) *fnv1.RunFunctionResponse {
	t.Helper()
	read := func(doc string) *structpb.Struct {
		j, err := yaml.YAMLToJSON([]byte(doc))
		if err != nil {
			t.Fatal(err)
		}
		s := &structpb.Struct{}
		if err := protojson.Unmarshal(j, s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	rsp, err := (&Function{log: logging.NewNopLogger()}).RunFunction(t.Context(), &fnv1.RunFunctionRequest{
		Input:    read(`{apiVersion: inferenceservice.fn.crossplane.io/v1beta1, kind: Input, podSecurity: {enforce: privileged}}`),
		Observed: &fnv1.State{Composite: &fnv1.Resource{Resource: read(doc)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return rsp
}

// Templates that are valid, and in which the function has to find its place.
func TestRenderedTemplatesAreValid(t *testing.T) {
	cases := map[string]string{
		"HostNetwork":   `hostNetwork: true, containers: [{name: vllm, image: x, args: [--model, M], ports: [{containerPort: 8000, hostPort: 8000, name: http}, {containerPort: 8200, hostPort: 8200}]}]`,
		"SameNames":     `initContainers: [{name: routing-sidecar, image: x}], containers: [{name: vllm, image: x, args: [--model, M]}, {name: routing-sidecar-2, image: x}], volumes: [{name: shared-memory, emptyDir: {}}]`,
		"SameMount":     `containers: [{name: vllm, image: x, args: [--model, M], volumeMounts: [{name: v, mountPath: /dev/shm/}]}], volumes: [{name: v, emptyDir: {}}]`,
		"SamePorts":     `containers: [{name: vllm, image: x, args: [--model, M], ports: [{containerPort: 6379, protocol: UDP}, {containerPort: 8000}]}, {name: other, image: x, ports: [{containerPort: 8000, name: http}]}]`,
		"NamedProbe":    `containers: [{name: vllm, image: x, args: [--model, M], ports: [{containerPort: 8000, name: http}], readinessProbe: {httpGet: {port: http}}, lifecycle: {preStop: {httpGet: {port: http}}}}]`,
		"PodResources":  `resources: {limits: {cpu: 8}, requests: {cpu: 4}}, containers: [{name: vllm, image: x, args: [--model, M], resources: {limits: {nvidia.com/gpu: 1}}}]`,
		"SameVariables": `containers: [{name: vllm, image: x, args: [--model, M], env: [{name: VLLM_NIXL_SIDE_CHANNEL_PORT, value: "1"}, {name: LWS_GROUP_SIZE, value: "1"}]}]`,
	}
	for name, spec := range cases {
		for _, nodes := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s/%d", name, nodes), func(t *testing.T) {
				role := func(of string) string {
					return fmt.Sprintf(`{name: %s, componentType: %s, multinode: {nodeCount: %d}, template: {spec: {%s}}}`, of, of, nodes, spec)
				}
				rsp := answer(t, fmt.Sprintf(`{apiVersion: fusioninfer.io/v1alpha1, kind: InferenceService, metadata: {name: chat, namespace: llm}, spec: {roles: [{name: router, componentType: router}, %s, %s]}}`, role("prefiller"), role("decoder")))
				if fatal(rsp) {
					t.Fatal(rsp.GetResults())
				}
				checkObjects(t, rsp)
			})
		}
	}
}

// What the design documents have as examples runs, but for what they leave out.
func TestSeedsAreAccepted(t *testing.T) {
	files, err := filepath.Glob("internal/api/testdata/seeds/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("want the examples of the design documents, got %d files (%v)", len(files), err)
	}
	// Their routes are at a gateway of another namespace, and have no host names.
	in := &structpb.Struct{}
	if err := in.UnmarshalJSON([]byte(`{"routes": {"allowedParentRefs": [{"namespace": "gateway-system"}], "allowedHostnames": ["*"]}}`)); err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		xr := readStructs(t, f)[0]
		rsp, err := (&Function{log: logging.NewNopLogger()}).RunFunction(t.Context(), &fnv1.RunFunctionRequest{Input: in, Observed: &fnv1.State{Composite: &fnv1.Resource{Resource: xr}}})
		if err != nil {
			t.Fatal(err)
		}
		if fatal(rsp) {
			t.Errorf("%s: %v", f, rsp.GetResults())
		}
	}
}
