package v1beta1_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/fusioninfer/function-inferenceservice/input/v1beta1"
)

const policies = `
podSecurity: {enforce: restricted, enforceVersion: v1.34, allowedCapabilities: [IPC_LOCK]}
allowedProviderConfigs: [{name: edge, namespaces: ["shared-*"]}]
routes:
  allowedParentRefs: [{namespace: gateways, name: main, sectionName: https}]
  ownGateways: Deny
  allowedGatewayClassNames: [istio]
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
		want   v1beta1.Policy
	}{
		"Default": {
			reason: "What reaches other tenants is closed.",
			doc:    `{}`,
			want: v1beta1.Policy{
				PodSecurity: &v1beta1.PodSecurity{Enforce: "baseline", EnforceVersion: "latest"},
				Routes:      &v1beta1.Routes{OwnGateways: "Allow"},
				Limits:      &v1beta1.Limits{},
			},
		},
		"FirstTenantWins": {
			reason: "Of each field, the first tenant that sets it; the fields of one do not hide those of another.",
			doc: `
allowedQueues: [shared]
allowedPriorityClassNames: [low]
tenants:
- {namespaces: [other], allowedQueues: [theirs]}
- {namespaces: ["team-*"], allowedQueues: [first], podSecurity: {enforce: privileged}}
- {namespaces: [team-a], allowedQueues: [second], limits: {devices: 8}}
`,
			want: v1beta1.Policy{
				PodSecurity:               &v1beta1.PodSecurity{Enforce: "privileged", EnforceVersion: "latest"},
				Routes:                    &v1beta1.Routes{OwnGateways: "Allow"},
				AllowedQueues:             []string{"first"},
				AllowedPriorityClassNames: []string{"low"},
				Limits:                    &v1beta1.Limits{Devices: ptr.To[int32](8)},
			},
		},
		"FieldByField": {
			reason: "What a tenant's policy does not mention stays as strict as it is.",
			doc: `
podSecurity: {enforce: restricted}
routes: {defaultHostname: "{service}.{namespace}.example.com"}
limits: {replicas: 2, devices: 512}
tenants: [{namespaces: [team-a], podSecurity: {allowedCapabilities: [IPC_LOCK]}, routes: {ownGateways: Deny}, limits: {devices: 64}}]
`,
			want: v1beta1.Policy{
				PodSecurity: &v1beta1.PodSecurity{Enforce: "restricted", EnforceVersion: "latest", AllowedCapabilities: []corev1.Capability{"IPC_LOCK"}},
				Routes:      &v1beta1.Routes{OwnGateways: "Deny", DefaultHostname: "{service}.{namespace}.example.com"},
				Limits:      &v1beta1.Limits{Replicas: ptr.To[int32](2), Devices: ptr.To[int32](64)},
			},
		},
		"Nothing": {
			reason: "An empty list takes away what the others have.",
			doc:    `{allowedQueues: [shared], tenants: [{namespaces: [team-a], allowedQueues: []}]}`,
			want: v1beta1.Policy{
				PodSecurity:   &v1beta1.PodSecurity{Enforce: "baseline", EnforceVersion: "latest"},
				Routes:        &v1beta1.Routes{OwnGateways: "Allow"},
				AllowedQueues: []string{},
				Limits:        &v1beta1.Limits{},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in, errs := decode(t, []byte(tc.doc))
			if len(errs) > 0 {
				t.Fatal(errs.ToAggregate())
			}
			v1beta1.Default(in)
			if diff := cmp.Diff(tc.want, in.PolicyOf("team-a")); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// A policy has the defaults that the schema documents.
func TestPolicyDefaultAgrees(t *testing.T) {
	defaulted, err := schema(t).Default([]byte(`{podSecurity: {}, routes: {}}`))
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(defaulted)
	if err != nil {
		t.Fatal(err)
	}
	want, errs := decode(t, b)
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	got := (&v1beta1.Input{}).PolicyOf("a")
	want.Limits = &v1beta1.Limits{}
	if diff := cmp.Diff(want.Policy, got); diff != "" {
		t.Errorf("-schema +function:\n%s", diff)
	}
}

func TestValidatePolicy(t *testing.T) {
	cases := map[string]struct {
		reason string
		doc    string
		want   []string
	}{
		"Full": {
			reason: "All of it can be set.",
			doc:    policies,
		},
		"PodSecurity": {
			reason: "A standard that is mistyped must not be taken for none.",
			doc:    `{podSecurity: {enforce: Baseline, enforceVersion: "1.34", allowedCapabilities: [CAP_IPC_LOCK, ""]}}`,
			want: []string{
				`input.podSecurity.enforce: Unsupported value: "Baseline": supported values: "privileged", "baseline", "restricted"`,
				`input.podSecurity.enforceVersion: Invalid value: "1.34": must be latest, or a version of Kubernetes such as v1.34`,
				`input.podSecurity.allowedCapabilities[0]: Invalid value: "CAP_IPC_LOCK": must be a capability as containers have it, such as IPC_LOCK: upper case, without CAP_`,
				`input.podSecurity.allowedCapabilities[1]: Invalid value: "": must be a capability as containers have it, such as IPC_LOCK: upper case, without CAP_`,
			},
		},
		"Patterns": {
			reason: "A pattern that nothing matches closes by mistake, and one that is mistyped opens by mistake.",
			doc:    `{allowedQueues: ["[a-z]", ""], tenants: [{allowedPriorityClassNames: ["a b"]}, {namespaces: ["Team-*"]}]}`,
			want: []string{
				`input.allowedQueues[0]: Invalid value: "[a-z]": must be a name, in which '*' stands for any text: lower case letters, digits, '-' and '.'`,
				`input.allowedQueues[1]: Required value: must be a name, or a pattern with '*'`,
				`input.tenants[0].namespaces: Required value: name the namespaces, or give patterns such as research-*`,
				`input.tenants[0].allowedPriorityClassNames[0]: Invalid value: "a b": must be a name, in which '*' stands for any text: lower case letters, digits, '-' and '.'`,
				`input.tenants[1].namespaces[0]: Invalid value: "Team-*": must be a name, in which '*' stands for any text: lower case letters, digits, '-' and '.'`,
			},
		},
		"ProviderConfigs": {
			reason: "Each names a configuration.",
			doc:    `{allowedProviderConfigs: [{kind: Config, name: a}, {namespaces: ["["]}]}`,
			want: []string{
				`input.allowedProviderConfigs[0].kind: Unsupported value: "Config": supported values: "ClusterProviderConfig", "ProviderConfig"`,
				`input.allowedProviderConfigs[1].name: Required value: must be the name of a provider-kubernetes configuration`,
				`input.allowedProviderConfigs[1].namespaces[0]: Invalid value: "[": must be a name, in which '*' stands for any text: lower case letters, digits, '-' and '.'`,
			},
		},
		"DefaultHostname": {
			reason: "a-b in c and a in b-c would have one name.",
			doc:    `{routes: {defaultHostname: "{service}-{namespace}.example.com"}}`,
			want: []string{
				`input.routes.defaultHostname: Invalid value: "{service}-{namespace}.example.com": must have {service} and {namespace}, each between dots and once, so that no two services have the same name: such as {service}.{namespace}.llm.example.com`,
			},
		},
		"Routes": {
			reason: "Every mistake at once.",
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
		"Limits": {
			reason: "No service has less than nothing.",
			doc:    `{limits: {replicas: -1, nodes: -1, devices: -1}}`,
			want: []string{
				`input.limits.replicas: Invalid value: -1: must be 0 or more`,
				`input.limits.nodes: Invalid value: -1: must be 0 or more`,
				`input.limits.devices: Invalid value: -1: must be 0 or more`,
			},
		},
		"EmptyLists": {
			reason: "An empty list looks like nothing, and would be anything.",
			doc:    `{routes: {allowedGatewayClassNames: []}, networkPolicy: {ingressFrom: [{podSelector: {}}], egressTo: []}}`,
			want: []string{
				`input.routes.allowedGatewayClassNames: Required value: name a class, or leave the field out for any; ownGateways: Deny allows no Gateway`,
				`input.networkPolicy.egressTo: Required value: name at least the API server, or leave the field out: then the engines may reach anything`,
			},
		},
		"NetworkPolicy": {
			reason: "Nobody could reach the engines.",
			doc:    `{networkPolicy: {}}`,
			want:   []string{`input.networkPolicy.ingressFrom: Required value: name at least the pods or namespaces of the gateways: nothing else would reach the engines`},
		},
		"NetworkPolicyPeers": {
			reason: "The API server would refuse them later.",
			doc:    `{networkPolicy: {ingressFrom: [{}, {podSelector: {}, ipBlock: {cidr: 10.0.0.0/8}}, {podSelector: {matchLabels: {a: "b c"}}}], egressTo: [{ipBlock: {cidr: 10.0.0.1}}, {ipBlock: {cidr: 10.0.0.0/8, except: [11.0.0.0/16, x]}}, {namespaceSelector: {}}]}}`,
			want: []string{
				`input.networkPolicy.ingressFrom[0]: Invalid value: "": must have either ipBlock, or podSelector and namespaceSelector, or one of these`,
				`input.networkPolicy.ingressFrom[1]: Invalid value: "": must have either ipBlock, or podSelector and namespaceSelector, or one of these`,
				`input.networkPolicy.ingressFrom[2].podSelector.matchLabels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`,
				`input.networkPolicy.egressTo[0].ipBlock.cidr: Invalid value: "10.0.0.1": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)`,
				`input.networkPolicy.egressTo[1].ipBlock.except[0]: Invalid value: "11.0.0.0/16": must be a part of 10.0.0.0/8`,
				`input.networkPolicy.egressTo[1].ipBlock.except[1]: Invalid value: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)`,
			},
		},
		"Namespaces": {
			reason: "The API server would refuse them later.",
			doc:    `{fleet: {namespaces: {labels: {a: "b c"}, annotations: {"a b": c}}}}`,
			want: []string{
				`input.fleet.namespaces.labels[a]: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`,
				`input.fleet.namespaces.annotations[a b]: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in, errs := decode(t, []byte(tc.doc))
			if len(errs) > 0 {
				t.Fatal(errs.ToAggregate())
			}
			v1beta1.Default(in)
			var got []string
			for _, e := range v1beta1.Validate(in, nil) {
				got = append(got, "input."+e.Error())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
