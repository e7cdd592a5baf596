package cluster

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/fusioninfer/function-inferenceservice/test/controlplane/node"
)

// call is how a container calls a program, at a pod with free ports from 20001 on.
func call(args string) node.Call {
	return node.Call{Args: strings.Fields(args), Address: "127.9.128.1", Ports: func(n int) ([]int, error) {
		return []int{20001, 20002, 20003}[:n], nil
	}}
}

func TestPrograms(t *testing.T) {
	cases := map[string]struct {
		reason string
		run    func(string, node.Call) (node.Program, error)
		args   string
		want   node.Program
	}{
		"Picker": {
			reason: "It listens at free ports, and is reached at those that it has by default.",
			run:    runPicker, args: "--pool-name=p --tracing=false",
			want: node.Program{
				Args: strings.Fields("--pool-name=p --tracing=false --grpc-port=20001 --grpc-health-port=20002 --metrics-port=20003"),
				Forward: map[string]string{
					"127.9.128.1:9002": "127.0.0.1:20001", "127.9.128.1:9003": "127.0.0.1:20002", "127.9.128.1:9090": "127.0.0.1:20003",
				},
			},
		},
		"Sidecar": {
			reason: "Flags of today become those of the older release, and the engine is found at a port of localhost.",
			run:    runSidecar,
			args:   "--port=8000 --model-server-port=8200 --kv-connector=nixlv2 --secure-proxy=false --enable-ssrf-protection --inference-pool=ns/pool",
			want: node.Program{
				Args:    strings.Fields("--connector=nixlv2 --secure-proxy=false --inference-pool-namespace=ns --inference-pool-name=pool --port=20001 --vllm-port=20002"),
				Forward: map[string]string{"127.9.128.1:8000": "127.0.0.1:20001", "127.0.0.1:20002": "127.9.128.1:8200"},
			},
		},
		"OlderSidecar": {
			reason: "Flags of the older release stay.",
			run:    runSidecar, args: "-port=8000 -vllm-port=8200 -connector=sglang",
			want: node.Program{
				Args:    strings.Fields("-connector=sglang --port=20001 --vllm-port=20002"),
				Forward: map[string]string{"127.9.128.1:8000": "127.0.0.1:20001", "127.0.0.1:20002": "127.9.128.1:8200"},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := tc.run("bin", call(tc.args))
			if err != nil {
				t.Fatal(err)
			}
			tc.want.Path, tc.want.Kubernetes = "bin", true
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestOlderPickerConfig(t *testing.T) {
	cases := map[string]struct{ reason, config, want string }{
		"PrefillDecode": {
			reason: "Plugins get their older names, and those that are newer go.",
			config: `
apiVersion: llm-d.ai/v1alpha1
kind: EndpointPickerConfig
plugins:
- type: disaggregatedset-rollout-screener
  parameters: {scope: {labelSelector: x}, revisionGating: {revisionLabelKey: hash, roleLabelKey: role, mode: max-role, requireRoles: {values: [decoder]}}}
- type: approx-prefix-cache-producer
- type: prefix-cache-scorer
- {type: label-selector-filter, name: prefill-pods, parameters: {matchLabels: {a: b}}}
- type: always-disagg-pd-decider
- {type: disagg-profile-handler, parameters: {deciders: {prefill: always-disagg-pd-decider}}}
schedulingProfiles:
- {name: prefill, plugins: [{pluginRef: prefill-pods}]}
`,
			want: `
apiVersion: inference.networking.x-k8s.io/v1alpha1
kind: EndpointPickerConfig
plugins:
- type: one-revision-filter
  parameters: {scope: x, revisionLabelKey: hash, roleLabelKey: role, mode: max-role, requireRoles: {values: [decoder]}}
- type: prefix-cache-scorer
- {type: by-label-selector, name: prefill-pods, parameters: {matchLabels: {a: b}}}
- type: prefill-header-handler
- {type: pd-profile-handler, parameters: {threshold: 0}}
schedulingProfiles:
- {name: prefill, plugins: [{pluginRef: one-revision-filter}, {pluginRef: prefill-pods}]}
`,
		},
		"Older": {
			reason: "A configuration of the older release stays.",
			config: "apiVersion: inference.networking.x-k8s.io/v1alpha1\nplugins: [{type: always-disagg-pd-decider}]",
			want:   "apiVersion: inference.networking.x-k8s.io/v1alpha1\nplugins: [{type: always-disagg-pd-decider}]",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			older, err := olderPickerConfig([]byte(tc.config))
			if err != nil {
				t.Fatal(err)
			}
			var want, got map[string]any
			if err := yaml.Unmarshal([]byte(tc.want), &want); err != nil {
				t.Fatal(err)
			}
			if err := yaml.Unmarshal(older, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
