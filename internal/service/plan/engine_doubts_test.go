package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
)

// TestWarnOfHost shows which engines do not listen where the routing sidecar connects to them.
func TestWarnOfHost(t *testing.T) {
	const podIP = `env: [{name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]`
	cases := map[string]struct {
		reason, container, want string
		kind                    v1alpha1.ComponentType
	}{
		"PodIP":     {"The engine listens at the address of the pod alone.", `command: [vllm, serve, m, --host, $(POD_IP)], ` + podIP, "$(POD_IP)", v1alpha1.ComponentTypeDecoder},
		"InScript":  {"So it does in a script.", `command: [sh, -c, "exec vllm serve m --host=${POD_IP}"], ` + podIP, "${POD_IP}", v1alpha1.ComponentTypeDecoder},
		"Address":   {"Or at another one.", `command: [vllm, serve, m, --host=10.0.0.1]`, "10.0.0.1", v1alpha1.ComponentTypeDecoder},
		"All":       {"It listens everywhere.", `command: [vllm, serve, m, --host=0.0.0.0]`, "", v1alpha1.ComponentTypeDecoder},
		"AllOfV6":   {"Also at addresses of IPv4.", `command: [vllm, serve, m, --host, "::"]`, "", v1alpha1.ComponentTypeDecoder},
		"Brackets":  {"It is the pod itself.", `command: [vllm, serve, m, "--host=[::1]"]`, "", v1alpha1.ComponentTypeDecoder},
		"Value":     {"The value of the variable is known.", `command: [vllm, serve, m, --host, $(HOST)], env: [{name: HOST, value: 0.0.0.0}]`, "", v1alpha1.ComponentTypeDecoder},
		"Unknown":   {"It may be any address.", `command: [vllm, serve, m, --host, $(HOST)], envFrom: [{configMapRef: {name: c}}]`, "", v1alpha1.ComponentTypeDecoder},
		"None":      {"vLLM listens everywhere by default.", `command: [vllm, serve, m]`, "", v1alpha1.ComponentTypeDecoder},
		"NoSidecar": {"The endpoint picker sends requests to the pod's address.", `command: [vllm, serve, m, --host, $(POD_IP)], ` + podIP, "", v1alpha1.ComponentTypePrefiller},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			const begins = "the routing sidecar connects to the engine at localhost"
			role := v1alpha1.Role{Name: "r", ComponentType: tc.kind, Template: document(t, `{spec: {containers: [{name: vllm, image: vllm-openai, `+tc.container+`}]}}`)}
			var want []Warning
			if tc.want != "" {
				want = []Warning{{Path: "spec.roles[0].template.spec.containers[0].args", Message: begins + ", where it does not listen with --host " + tc.want + ": set --host 0.0.0.0"}}
			}
			if diff := cmp.Diff(want, doubtsOf(t, role, begins)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestWarnOfTopology shows which annotations of LeaderWorkerSet do not do what they promise.
func TestWarnOfTopology(t *testing.T) {
	const key = "leaderworkerset.sigs.k8s.io/"
	cases := map[string]struct {
		reason, annotation string
		nodes              int32
		want               string
	}{
		"Node":      {"A replica is its leader.", key + "exclusive-topology", 1, ""},
		"Nodes":     {"The workers may run elsewhere.", key + "exclusive-topology", 2, "holds only for the leader"},
		"Subgroups": {"There are none.", key + "subgroup-exclusive-topology", 1, "has no effect: replicas have no subgroups"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			role := v1alpha1.Role{Name: "r", ComponentType: v1alpha1.ComponentTypeWorker, Template: document(t, `{metadata: {annotations: {`+tc.annotation+`: rack}}, spec: {containers: [{name: vllm, image: vllm-openai, args: [m]}]}}`)}
			if tc.nodes > 1 {
				role.Multinode = multinode(tc.nodes, v1alpha1.LauncherVLLM)
			}
			_, warnings, errs := planRole(0, role, loads{}, defaultInput(), true)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			at := slices.IndexFunc(warnings, func(w Warning) bool {
				return w.Path == "spec.roles[0].template.metadata.annotations["+tc.annotation+"]"
			})
			if (at >= 0) != (tc.want != "") || at >= 0 && !strings.HasPrefix(warnings[at].Message, tc.want) {
				t.Errorf("%s\nwant %q, got %v", tc.reason, tc.want, warnings)
			}
		})
	}
}

// TestWarnOfDNS shows which pods of a replica on several nodes do not find each other.
func TestWarnOfDNS(t *testing.T) {
	const begins = "these pods ask the DNS of their node"
	const withHostNet = "ClusterFirstWithHostNet"
	cases := map[string]struct {
		reason, spec, container string
		launcher                v1alpha1.Launcher
		nodes                   int32
		want                    string
	}{
		"HostNetwork": {reason: "The default is the node's DNS there.", spec: "hostNetwork: true", launcher: v1alpha1.LauncherVLLM, nodes: 2, want: withHostNet},
		"Written":     {reason: "So it is if it is written down.", spec: "hostNetwork: true, dnsPolicy: ClusterFirst", launcher: v1alpha1.LauncherVLLMDataParallel, nodes: 2, want: withHostNet},
		"Default":     {reason: "Pods with a network of their own can ask for it.", spec: "dnsPolicy: Default", launcher: v1alpha1.LauncherVLLM, nodes: 2, want: "ClusterFirst"},
		"Own":         {reason: "A command of the user's names the leader, too.", spec: "hostNetwork: true", container: ", --master-addr, $(LWS_LEADER_ADDRESS)", launcher: v1alpha1.LauncherNone, nodes: 2, want: withHostNet},
		"ByAddress":   {reason: "It may find the leader in another way.", spec: "hostNetwork: true", container: ", --master-addr, 10.0.0.1", launcher: v1alpha1.LauncherNone, nodes: 2},
		"Told":        {reason: "They ask the cluster's DNS.", spec: "hostNetwork: true, dnsPolicy: ClusterFirstWithHostNet", launcher: v1alpha1.LauncherVLLM, nodes: 2},
		"Nameservers": {reason: "These may know the name.", spec: "hostNetwork: true, dnsConfig: {nameservers: [10.96.0.10]}", launcher: v1alpha1.LauncherVLLM, nodes: 2},
		"Node":        {reason: "A pod alone looks for nobody.", spec: "hostNetwork: true", nodes: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			role := v1alpha1.Role{Name: "r", ComponentType: v1alpha1.ComponentTypeWorker, Template: document(t, `{spec: {`+tc.spec+`, containers: [{name: vllm, image: vllm-openai, args: [m, -dpl, "1"`+tc.container+`]}]}}`)}
			if tc.nodes > 1 {
				role.Multinode = multinode(tc.nodes, tc.launcher)
			}
			var want []Warning
			if tc.want != "" {
				want = []Warning{{Path: "spec.roles[0].template.spec.dnsPolicy", Message: begins + ", which does not have the leader's name, so they do not find each other: set dnsPolicy: " + tc.want}}
			}
			if diff := cmp.Diff(want, doubtsOf(t, role, begins)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
