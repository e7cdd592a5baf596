package v1alpha1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	inputv1alpha1 "github.com/fusioninfer/function-inferenceservice/input/v1alpha1"
)

const policies = `
podSecurity: {enforce: restricted, enforceVersion: v1.34, allowedCapabilities: [IPC_LOCK], allowedAnnotations: [proxy.istio.io/config]}
allowedProviderConfigs: [{name: edge, namespaces: ["shared-*"]}]
routes:
  allowedParentRefs: [{namespace: gateways, name: main, sectionName: https}]
  ownGateways: Deny
  allowedGatewayClassNames: [istio]
  allowedAddresses: [192.0.2.1, 192.0.2.0/24, "2001:db8::/32", "*.{namespace}.example.com", ours, "*"]
  allowedTLSOptions: [gateway.istio.io/tls-terminate-mode]
  defaultHostname: "{service}.{namespace}.llm.example.com"
  allowedHostnames: ["*.{namespace}.example.com", "llm.example.com", "*"]
  allowedFilters: [RequestMirror]
  allowedBackendNamespaces: [shared]
allowedQueues: [research]
allowedPriorityClassNames: [low, "research-*"]
limits: {replicas: 1, nodes: 2, devices: 3}
`

func TestPolicyOf(t *testing.T) {
	cases := map[string]struct {
		reason string
		doc    string
		want   inputv1alpha1.Policy
	}{
		"Default": {
			reason: "By default nothing that affects other tenants is allowed.",
			doc:    `{}`,
			want: inputv1alpha1.Policy{
				PodSecurity: &inputv1alpha1.PodSecurity{Enforce: "baseline", EnforceVersion: "latest"},
				Routes:      &inputv1alpha1.Routes{OwnGateways: "Allow", ExperimentalFields: "Deny"},
				Limits:      &inputv1alpha1.Limits{},
				ModelCaches: &inputv1alpha1.ModelCaches{},
			},
		},
		"FirstTenantWins": {
			reason: "For each field, the first tenant that sets it counts, also if other tenants set other fields.",
			doc: `
allowedQueues: [shared]
allowedPriorityClassNames: [low]
tenants:
- {namespaces: [other], allowedQueues: [theirs]}
- {namespaces: ["team-*"], allowedQueues: [first], podSecurity: {enforce: privileged}}
- {namespaces: [team-a], allowedQueues: [second], limits: {devices: 8}}
`,
			want: inputv1alpha1.Policy{
				PodSecurity:               &inputv1alpha1.PodSecurity{Enforce: "privileged", EnforceVersion: "latest"},
				Routes:                    &inputv1alpha1.Routes{OwnGateways: "Allow", ExperimentalFields: "Deny"},
				AllowedQueues:             []string{"first"},
				AllowedPriorityClassNames: []string{"low"},
				Limits:                    &inputv1alpha1.Limits{Devices: ptr.To[int32](8)},
				ModelCaches:               &inputv1alpha1.ModelCaches{},
			},
		},
		"FieldByField": {
			reason: "Fields that a tenant does not set keep the values of the Input.",
			doc: `
podSecurity: {enforce: restricted}
routes: {defaultHostname: "{service}.{namespace}.example.com"}
limits: {replicas: 2, devices: 512}
tenants: [{namespaces: [team-a], podSecurity: {allowedCapabilities: [IPC_LOCK]}, routes: {ownGateways: Deny}, limits: {devices: 64}}]
`,
			want: inputv1alpha1.Policy{
				PodSecurity: &inputv1alpha1.PodSecurity{Enforce: "restricted", EnforceVersion: "latest", AllowedCapabilities: []corev1.Capability{"IPC_LOCK"}},
				Routes:      &inputv1alpha1.Routes{OwnGateways: "Deny", ExperimentalFields: "Deny", DefaultHostname: "{service}.{namespace}.example.com"},
				Limits:      &inputv1alpha1.Limits{Replicas: ptr.To[int32](2), Devices: ptr.To[int32](64)},
				ModelCaches: &inputv1alpha1.ModelCaches{},
			},
		},
		"Nothing": {
			reason: "An empty list of a tenant replaces the list of the Input.",
			doc:    `{allowedQueues: [shared], tenants: [{namespaces: [team-a], allowedQueues: []}]}`,
			want: inputv1alpha1.Policy{
				PodSecurity:   &inputv1alpha1.PodSecurity{Enforce: "baseline", EnforceVersion: "latest"},
				Routes:        &inputv1alpha1.Routes{OwnGateways: "Allow", ExperimentalFields: "Deny"},
				AllowedQueues: []string{},
				Limits:        &inputv1alpha1.Limits{},
				ModelCaches:   &inputv1alpha1.ModelCaches{},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in, errs := decode(t, []byte(tc.doc))
			if len(errs) > 0 {
				t.Fatal(errs.ToAggregate())
			}
			inputv1alpha1.Default(in)
			if diff := cmp.Diff(tc.want, in.PolicyOf("team-a")); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPolicyDefaults shows that a policy has the documented defaults.
func TestPolicyDefaults(t *testing.T) {
	want := inputv1alpha1.Policy{
		PodSecurity: &inputv1alpha1.PodSecurity{Enforce: inputv1alpha1.PodSecurityBaseline, EnforceVersion: "latest"},
		Routes:      &inputv1alpha1.Routes{OwnGateways: inputv1alpha1.Allow, ExperimentalFields: inputv1alpha1.Deny},
		Limits:      &inputv1alpha1.Limits{},
		ModelCaches: &inputv1alpha1.ModelCaches{},
	}
	if diff := cmp.Diff(want, (&inputv1alpha1.Input{}).PolicyOf("a")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestValidatePolicy(t *testing.T) {
	const address = "must be an IP address, a range such as 192.0.2.0/24, or a name such as *.{namespace}.lb.example.com: lower case, with '*', {service} and {namespace} as whole labels only"
	cases := map[string]struct {
		reason string
		doc    string
		want   []string
	}{
		"Full": {
			reason: "A policy may have every one of its fields.",
			doc:    policies,
		},
		"PodSecurity": {
			reason: "A mistyped standard is refused: it must not mean no standard.",
			doc:    `{podSecurity: {enforce: Baseline, enforceVersion: "1.34", allowedCapabilities: [CAP_IPC_LOCK, ""], allowedAnnotations: ["sidecar.istio.io/*"]}}`,
			want: []string{
				`input.podSecurity.enforce: Unsupported value: "Baseline": supported values: "privileged", "baseline", "restricted" (did you mean "baseline"?)`,
				`input.podSecurity.enforceVersion: Invalid value: "1.34": must be latest, or a version of Kubernetes such as v1.34`,
				`input.podSecurity.allowedCapabilities[0]: Invalid value: "CAP_IPC_LOCK": must be the name of a capability in upper case, without the prefix CAP_, such as IPC_LOCK`,
				`input.podSecurity.allowedCapabilities[1]: Invalid value: "": must be the name of a capability in upper case, without the prefix CAP_, such as IPC_LOCK`,
				`input.podSecurity.allowedAnnotations[0]: Invalid value: "sidecar.istio.io/*": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`,
			},
		},
		"Patterns": {
			reason: "A pattern that matches no name, or that is mistyped, is refused.",
			doc:    `{allowedQueues: ["[a-z]", ""], tenants: [{allowedPriorityClassNames: ["a b"]}, {namespaces: ["Team-*"]}]}`,
			want: []string{
				`input.allowedQueues[0]: Invalid value: "[a-z]": must be a name of lower case letters, digits, '-' and '.', in which '*' stands for any text`,
				`input.allowedQueues[1]: Required value: must be a name, or a pattern with '*'`,
				`input.tenants[0].namespaces: Required value: must list namespaces, or patterns such as research-*`,
				`input.tenants[0].allowedPriorityClassNames[0]: Invalid value: "a b": must be a name of lower case letters, digits, '-' and '.', in which '*' stands for any text`,
				`input.tenants[1].namespaces[0]: Invalid value: "Team-*": must be a name of lower case letters, digits, '-' and '.', in which '*' stands for any text`,
			},
		},
		"ProviderConfigs": {
			reason: "Each entry names a provider configuration.",
			doc:    `{allowedProviderConfigs: [{kind: Config, name: a}, {namespaces: ["["]}]}`,
			want: []string{
				`input.allowedProviderConfigs[0].kind: Unsupported value: "Config": supported values: "ClusterProviderConfig", "ProviderConfig"`,
				`input.allowedProviderConfigs[1].name: Required value: must be the name of a provider-kubernetes configuration`,
				`input.allowedProviderConfigs[1].namespaces[0]: Invalid value: "[": must be a name of lower case letters, digits, '-' and '.', in which '*' stands for any text`,
			},
		},
		"DefaultHostname": {
			reason: "The services a-b in c and a in b-c would have the same host name.",
			doc:    `{routes: {defaultHostname: "{service}-{namespace}.example.com"}}`,
			want: []string{
				`input.routes.defaultHostname: Invalid value: "{service}-{namespace}.example.com": must contain {service} and {namespace} once, each as a whole label, so that no two services have the same host name: such as {service}.{namespace}.llm.example.com`,
			},
		},
		"Routes": {
			reason: "All errors are reported at once.",
			doc:    `{routes: {ownGateways: Maybe, allowedParentRefs: [{name: a}], allowedHostnames: ["{tenant}.example.com", "x-{service}.example.com", "a.*.b"], allowedFilters: [URLRewrite]}}`,
			want: []string{
				`input.routes.ownGateways: Unsupported value: "Maybe": supported values: "Allow", "Deny"`,
				`input.routes.allowedParentRefs[0].namespace: Required value: must be the namespace of a gateway, or a pattern`,
				`input.routes.allowedHostnames[0]: Invalid value: "{tenant}.example.com": must be a host name, such as *.{namespace}.llm.example.com: lower case, with '*', {service} and {namespace} as whole labels only`,
				`input.routes.allowedHostnames[1]: Invalid value: "x-{service}.example.com": must be a host name, such as *.{namespace}.llm.example.com: lower case, with '*', {service} and {namespace} as whole labels only`,
				`input.routes.allowedHostnames[2]: Invalid value: "a.*.b": must be a host name, such as *.{namespace}.llm.example.com: lower case, with '*', {service} and {namespace} as whole labels only`,
				`input.routes.allowedFilters[0]: Unsupported value: "URLRewrite": supported values: "RequestMirror", "ExternalAuth", "ExtensionRef"`,
			},
		},
		"Addresses": {
			reason: "A mistyped range or address would allow nothing, or a name.",
			doc:    `{routes: {allowedAddresses: [192.0.2.0/33, 192.0.2.256, "192.0.2.*", "", "a.*", 192.0.2.1/24]}}`,
			want: []string{
				`input.routes.allowedAddresses[0]: Invalid value: "192.0.2.0/33": ` + address,
				`input.routes.allowedAddresses[1]: Invalid value: "192.0.2.256": ` + address,
				`input.routes.allowedAddresses[2]: Invalid value: "192.0.2.*": ` + address,
				`input.routes.allowedAddresses[3]: Invalid value: "": ` + address,
				`input.routes.allowedAddresses[4]: Invalid value: "a.*": ` + address,
				`input.routes.allowedAddresses[5]: Invalid value: "192.0.2.1/24": ` + address,
			},
		},
		"Limits": {
			reason: "Limits are not negative.",
			doc:    `{limits: {replicas: -1, nodes: -1, devices: -1}}`,
			want: []string{
				`input.limits.replicas: Invalid value: -1: must be 0 or more`,
				`input.limits.nodes: Invalid value: -1: must be 0 or more`,
				`input.limits.devices: Invalid value: -1: must be 0 or more`,
			},
		},
		"TLSOptions": {
			reason: "Names of options have no patterns.",
			doc:    `{routes: {allowedTLSOptions: [a.b/c, "a.b/*", ""]}}`,
			want: []string{
				`input.routes.allowedTLSOptions[1]: Invalid value: "a.b/*": must be the name of an option, such as gateway.istio.io/tls-terminate-mode`,
				`input.routes.allowedTLSOptions[2]: Invalid value: "": must be the name of an option, such as gateway.istio.io/tls-terminate-mode`,
			},
		},
		"EmptyLists": {
			reason: "An empty list is refused: it looks as if it allowed nothing, and would allow everything.",
			doc:    `{routes: {allowedGatewayClassNames: []}, networkPolicy: {ingressFrom: [{podSelector: {}}], egressTo: []}}`,
			want: []string{
				`input.routes.allowedGatewayClassNames: Required value: must list at least one class, or be left out to allow any; to allow no Gateway, set ownGateways to Deny`,
				`input.networkPolicy.egressTo: Required value: must list at least the API server, or be left out to let the engines reach anything`,
			},
		},
		"NetworkPolicy": {
			reason: "Without peers nothing could reach the engines.",
			doc:    `{networkPolicy: {}}`,
			want:   []string{`input.networkPolicy.ingressFrom: Required value: must list at least the pods or namespaces of the gateways: nothing else may reach the engines`},
		},
		"NetworkPolicyPeers": {
			reason: "An API server would refuse the peers later.",
			doc:    `{networkPolicy: {ingressFrom: [{}, {podSelector: {}, ipBlock: {cidr: 10.0.0.0/8}}, {podSelector: {matchLabels: {a: "b c"}}}], egressTo: [{ipBlock: {cidr: 10.0.0.1}}, {ipBlock: {cidr: 10.0.0.0/8, except: [11.0.0.0/16, x]}}, {namespaceSelector: {}}]}}`,
			want: []string{
				`input.networkPolicy.ingressFrom[0]: Invalid value: "": must have either ipBlock, or at least one of podSelector and namespaceSelector`,
				`input.networkPolicy.ingressFrom[1]: Invalid value: "": must have either ipBlock, or at least one of podSelector and namespaceSelector`,
				`input.networkPolicy.ingressFrom[2].podSelector.matchLabels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`,
				`input.networkPolicy.egressTo[0].ipBlock.cidr: Invalid value: "10.0.0.1": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)`,
				`input.networkPolicy.egressTo[1].ipBlock.except[0]: Invalid value: "11.0.0.0/16": must be a range inside 10.0.0.0/8`,
				`input.networkPolicy.egressTo[1].ipBlock.except[1]: Invalid value: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)`,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in, errs := decode(t, []byte(tc.doc))
			if len(errs) > 0 {
				t.Fatal(errs.ToAggregate())
			}
			inputv1alpha1.Default(in)
			var got []string
			for _, e := range inputv1alpha1.Validate(in, nil) {
				got = append(got, "input."+e.Error())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
