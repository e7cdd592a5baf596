package service

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/fusioninfer/function-inferenceservice/test/fixture"
	"github.com/fusioninfer/function-inferenceservice/test/function"
	"github.com/fusioninfer/function-inferenceservice/test/oracle"
)

// TestRenderedTemplatesAreValid shows that rendered templates are valid, although the user's
// templates already use names, ports and paths that the function adds.
func TestRenderedTemplatesAreValid(t *testing.T) {
	fn := function.Start(t)
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
				xr := fixture.Service(fmt.Sprintf(`roles: [{name: router, componentType: router}, %s, %s]`, role("prefiller"), role("decoder")))
				req := fixture.Request(t, xr, `{apiVersion: fn.fusioninfer.io/v1alpha1, kind: Input, podSecurity: {enforce: privileged}}`)
				rsp := fn.Run(t, req)
				if got := fixture.Fatals(rsp); got != "" {
					t.Fatal(got)
				}
				oracle.Check(t, req, rsp)
			})
		}
	}
}

// TestSeedsAreAccepted shows that the function accepts the examples of the design documents.
func TestSeedsAreAccepted(t *testing.T) {
	fn := function.Start(t)
	files, err := filepath.Glob("../../internal/api/testdata/seeds/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("want the examples of the design documents, got %d files (%v)", len(files), err)
	}
	for _, f := range files {
		xr, err := os.ReadFile(filepath.Clean(f))
		if err != nil {
			t.Fatal(err)
		}
		// Their routes name a gateway of another namespace, and have no hostnames.
		req := fixture.Request(t, string(xr), `{apiVersion: fn.fusioninfer.io/v1alpha1, kind: Input, routes: {allowedParentRefs: [{namespace: gateway-system}], allowedHostnames: ["*"]}}`)
		if got := fixture.Fatals(fn.Run(t, req)); got != "" {
			t.Errorf("%s: %s", f, got)
		}
	}
}
