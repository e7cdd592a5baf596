package service

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"
	"sigs.k8s.io/yaml"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/fusioninfer/function-inferenceservice/internal/composite"
)

// documentOf reads YAML.
func documentOf(t *testing.T, text string) *structpb.Struct {
	t.Helper()
	s := &structpb.Struct{}
	b, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = s.UnmarshalJSON(b)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// problemsOf plans a service with a spec and an Input. It returns the reason of the condition
// Accepted, and the problems.
func problemsOf(t *testing.T, spec, in string) (reason string, problems []string) {
	t.Helper()
	return problemsOfXR(t, `kind: InferenceService, metadata: {name: s, namespace: team}`, spec, in)
}

func problemsOfXR(t *testing.T, xr, spec, in string) (reason string, problems []string) {
	t.Helper()
	req := &fnv1.RunFunctionRequest{Observed: &fnv1.State{Composite: &fnv1.Resource{Resource: documentOf(t, `{apiVersion: fusioninfer.io/v1alpha1, `+xr+`, spec: `+spec+`}`)}}}
	if in != "" {
		req.Input = documentOf(t, `{apiVersion: fn.fusioninfer.io/v1alpha1, kind: Input, `+in+`}`)
	}
	s := New(composite.NewCall(req, time.Unix(0, 0)))
	for _, step := range []func() error{s.Parse, s.Observe, s.Plan} {
		err := step()
		var refused *composite.ProblemsError
		switch {
		case errors.As(err, &refused):
			for _, e := range refused.Errors {
				problems = append(problems, e.Error())
			}
			return refused.Reason, problems
		case err != nil:
			t.Fatal(err)
		}
	}
	return "", nil
}

// TestTenant shows that what a service may use depends on its namespace, and that no error is about one that it does not have.
func TestTenant(t *testing.T) {
	const spec = `{schedulingStrategy: {queueName: q}, placement: {clusters: [{name: a, providerConfigRef: {name: a}}]}, roles: [{name: r, componentType: router, httproute: {parentRefs: [{name: g, namespace: infra}]}}, ` +
		`{name: w, componentType: worker, template: {spec: {priorityClassName: high, containers: [{name: vllm}]}}}]}`
	const image = `spec.roles[1].template.spec.containers[0].image: Required value: must be set: Kubernetes creates no pod without it`
	allowed := []string{
		`spec.placement.clusters[0].providerConfigRef: Invalid value: "a": must be listed in allowedProviderConfigs of the Composition's input for namespace team; or name a cluster of the fleet with inferenceClusterRef`,
		`spec.roles[0].httproute.parentRefs[0]: Invalid value: "infra/g": must be a gateway in namespace team, or be listed in routes.allowedParentRefs or gateway.parentRefs of the Composition's input`,
		image,
		`spec.roles[1].template.spec.priorityClassName: Invalid value: "high": must be left out: none is allowed in namespace team (allowedPriorityClassNames in the Composition's input)`,
		`spec.schedulingStrategy.queueName: Invalid value: "q": must be left out: none is allowed in namespace team (allowedQueues in the Composition's input)`,
	}
	cases := map[string]struct {
		reason, xr string
		want       []string
	}{
		"Namespaced": {"An XR has its namespace.", `kind: InferenceService, metadata: {name: s, namespace: team}`, allowed},
		"Claimed":    {"A claim's XR has the claim's.", `kind: XInferenceService, metadata: {name: s, labels: {crossplane.io/claim-name: s, crossplane.io/claim-namespace: team}}`, allowed},
		"None": {
			"Without one, only the templates are checked.", `kind: XInferenceService, metadata: {name: s}`,
			[]string{`metadata.namespace: Required value: must be set: a service runs in its own namespace, or in that of its claim`, image},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, got := problemsOfXR(t, tc.xr, spec, `routes: {allowedHostnames: ["*"]}`)
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// A value that cannot be read hides no other problem, and causes none.
func TestEveryProblem(t *testing.T) {
	const container = `{spec: {containers: [{name: vllm, image: x}]}}`
	const profiled = `{spec: {containers: [{name: vllm, image: vllm, args: [--model, m]}]}}`
	const roles = `roles: [{name: w, componentType: worker, template: ` + container + `}]`
	type testCase struct {
		reason, spec, input string
		wantReason          string
		want                []string
	}
	cases := map[string]testCase{
		"Placement": {
			reason:     "Both values are wrong.",
			spec:       `{` + roles + `, placement: {policy: FailOver, failoverAfterSeconds: 5m, clusters: [{name: a, inferenceClusterRef: {name: a}}]}}`,
			wantReason: composite.ReasonInvalidSpec,
			want: []string{
				`spec.placement.failoverAfterSeconds: Invalid value: "5m": must be a whole number`,
				`spec.placement.policy: Unsupported value: "FailOver": supported values: "Replicate", "Spread", "Failover" (did you mean "Failover"?)`,
			},
		},
		"Target": {
			reason: "A field that does not exist is named, with those that do, unless another one is set. An empty target has none.",
			spec: `{roles: [{name: a, componentType: worker, scaling: {maxReplicas: 2, target: {queueLength: 5}}, template: ` + container + `}, ` +
				`{name: b, componentType: worker, scaling: {maxReplicas: 2, target: {}}, template: ` + container + `}, ` +
				`{name: c, componentType: worker, scaling: {maxReplicas: 2, target: {waitingRequests: 1, runningRequests: 1, queueLength: 5}}, template: ` + container + `}]}`,
			wantReason: composite.ReasonInvalidSpec,
			want: []string{
				`spec.roles[0].scaling.target: Unsupported value: "queueLength": supported values: "kvCacheUtilizationPercent", "runningRequests", "timeToFirstTokenMilliseconds", "tokensPerSecond", "waitingRequests"`,
				`spec.roles[1].scaling.target: Invalid value: "{...}": must have exactly one of waitingRequests, runningRequests, kvCacheUtilizationPercent, tokensPerSecond and timeToFirstTokenMilliseconds`,
				`spec.roles[2].scaling.target: Invalid value: "{...}": must have exactly one of waitingRequests, runningRequests, kvCacheUtilizationPercent, tokensPerSecond and timeToFirstTokenMilliseconds`,
			},
		},
		"Multinode": {
			reason:     "Both values are wrong.",
			spec:       `{roles: [{name: w, componentType: worker, multinode: {nodeCount: two, launcher: vllm}, template: ` + container + `}]}`,
			wantReason: composite.ReasonInvalidSpec,
			want: []string{
				`spec.roles[0].multinode.nodeCount: Invalid value: "two": must be a whole number`,
				`spec.roles[0].multinode.launcher: Unsupported value: "vllm": supported values: "Ray", "VLLM", "VLLMDataParallel", "SGLang", "None" (did you mean "VLLM"?)`,
			},
		},
		"ComponentType": {
			reason: "No profile gives anything to a role of an unknown type, so nobody knows its engine.",
			spec: `{profileName: pd, roles: [{name: p, componentType: prefiller, scaling: {maxReplicas: 4}}, ` +
				`{name: d, componentType: decode, scaling: {maxReplicas: 8, target: {waitingRequests: 4}}, template: {spec: {containers: [{name: vllm, args: [--port=9000]}]}}}, ` +
				`{name: r, componentType: router, strategy: pd-disaggregation}], scaling: {ratio: {prefill: 1, decode: 2}}}`,
			input: `profiles: [{name: pd, roles: [{componentType: prefiller, template: ` + profiled + `}, {componentType: decoder, template: ` + profiled + `}]}], ` +
				`scaling: {prometheus: {serverAddress: "http://prometheus:9090"}}`,
			wantReason: composite.ReasonInvalidSpec,
			want:       []string{`spec.roles[1].componentType: Unsupported value: "decode": supported values: "worker", "prefiller", "decoder", "router" (did you mean "decoder"?)`},
		},
		"ComponentTypeAlone": {
			reason: "What is wrong with its own template is said. Whether the engine of the one role fits the other is not.",
			spec: `{roles: [{name: p, componentType: worker, template: {spec: {containers: [{name: vllm, image: x, args: [--port=9000]}]}}}, ` +
				`{name: d, componentType: Worker, scaling: {minReplicas: 0, maxReplicas: 8, target: {waitingRequests: 4}}, template: {spec: {containers: [{name: vllm}]}}}, {name: r, componentType: router}]}`,
			wantReason: composite.ReasonInvalidSpec,
			want: []string{
				`spec.roles[1].componentType: Unsupported value: "Worker": supported values: "worker", "prefiller", "decoder", "router" (did you mean "worker"?)`,
				`spec.roles[1].template.spec.containers[0].image: Required value: must be set: Kubernetes creates no pod without it`,
			},
		},
		"Selector": {
			reason:     "A selector that cannot be read is there.",
			spec:       `{` + roles + `, placement: {clusterSelector: {matchExpressions: [{key: a, operator: 5}]}}}`,
			wantReason: composite.ReasonInvalidSpec,
			want:       []string{`spec.placement.clusterSelector.matchExpressions[0].operator: Invalid value: 5: must be a string`},
		},
		"Reference": {
			reason:     "A reference that cannot be read is there.",
			spec:       `{` + roles + `, placement: {clusters: [{name: a, inferenceClusterRef: x}, {name: b, providerConfigRef: {name: 5}}]}}`,
			wantReason: composite.ReasonInvalidSpec,
			want: []string{
				`spec.placement.clusters[0].inferenceClusterRef: Invalid value: "x": must be an object such as {name: x}`,
				`spec.placement.clusters[1].providerConfigRef.name: Invalid value: 5: must be a string`,
			},
		},
		"Topology": {
			reason:     "Nobody knows which fields the mode requires.",
			spec:       `{` + roles + `, schedulingStrategy: {gang: {networkTopology: {mode: 5}}}}`,
			wantReason: composite.ReasonInvalidSpec,
			want:       []string{`spec.schedulingStrategy.gang.networkTopology.mode: Invalid value: 5: must be a string`},
		},
		"Tier": {
			reason:     "One tier is enough.",
			spec:       `{` + roles + `, schedulingStrategy: {gang: {networkTopology: {highestTierName: 5}}}}`,
			wantReason: composite.ReasonInvalidSpec,
			want:       []string{`spec.schedulingStrategy.gang.networkTopology.highestTierName: Invalid value: 5: must be a string`},
		},
		"Token": {
			reason:     "What spec.model adds to the pods is wrong only because spec.model is. What is beside it is the template's.",
			spec:       `{model: {uri: "hf://a/b", tokenSecretRef: {}}, roles: [{name: w, componentType: worker, template: {spec: {containers: [{name: vllm, image: vllm-openai, env: [{name: A, valueFrom: {secretKeyRef: {name: "", key: k}}}]}]}}}]}`,
			wantReason: composite.ReasonInvalidSpec,
			want: []string{
				`spec.model.tokenSecretRef.name: Required value: must be the name of a Kubernetes object: lower case letters, digits, '-' and '.', starting and ending with a letter or digit`,
				`spec.roles[0].template.spec.containers[0].env[0].valueFrom.secretKeyRef.name: Invalid value: "": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
			},
		},
		"Texts": {
			reason:     "A text stands for no number and no object, and nothing is said of the cache that lacks its size then.",
			spec:       `{model: {uri: "hf://a/b", tokenSecretRef: hf-token, cache: {size: 40G i}}, ` + roles + `}`,
			wantReason: composite.ReasonInvalidSpec,
			want: []string{
				`spec.model.cache.size: Invalid value: "40G i": must be a number such as 8, 500m or 40Gi`,
				`spec.model.tokenSecretRef: Invalid value: "hf-token": must be an object such as {name: hf-token}`,
			},
		},
		"Number": {
			reason:     "A word with an e is no number with an exponent.",
			spec:       `{model: {uri: "hf://a/b", cache: {size: eight}}, ` + roles + `}`,
			wantReason: composite.ReasonInvalidSpec,
			want:       []string{`spec.model.cache.size: Invalid value: "eight": must be a number such as 8, 500m or 40Gi`},
		},
		"Input": {
			reason:     "An Input is read in the same way.",
			spec:       `{` + roles + `}`,
			input:      `networkPolicy: {ingressFrom: x, egressTo: []}, routes: {ownGateways: allow, allowedHostnames: 5}, endpointPicker: {dialect: 5, image: x}`,
			wantReason: composite.ReasonInvalidInput,
			want: []string{
				`input.endpointPicker.dialect: Invalid value: 5: must be a string`,
				`input.networkPolicy.ingressFrom: Invalid value: "x": must be a list`,
				`input.routes.allowedHostnames: Invalid value: 5: must be a list`,
				`input.routes.ownGateways: Unsupported value: "allow": supported values: "Allow", "Deny" (did you mean "Allow"?)`,
				`input.networkPolicy.egressTo: Required value: must list at least the API server, or be left out to let the engines reach anything`,
			},
		},
	}
	const router = `{name: r, componentType: router, httproute: {parentRefs: [{name: g, namespace: gateways}]}}`
	cases["InputPolicy"] = testCase{
		reason:     "What an Input with errors allows is not known, so no one is told to change a spec because of it.",
		spec:       `{` + roles[:len(roles)-1] + `, ` + router + `], schedulingStrategy: {queueName: team}}`,
		input:      `routes: {defaultHostName: "{service}.{namespace}.example.com", allowedParentRefs: [{namespace: gateways}]}, allowedQueue: [team]`,
		wantReason: composite.ReasonInvalidInput,
		want: []string{
			`input.allowedQueue: Forbidden: is not a field of Input, which has here only allowedPriorityClassNames, allowedProviderConfigs, allowedQueues, allowedTriggers, annotations, apiVersion, defaults, endpointPicker, fleet, gateway, kind, labels, limits, metadata, missingKinds, modelCaches, modelLoader, monitoring, networkPolicy, podObservationLimit, podSecurity, profiles, ray, routes, scaling, sidecar, tenants: see docs/api.md`,
			`input.routes.defaultHostName: Forbidden: is not a field of Input, which has here only allowedAddresses, allowedBackendNamespaces, allowedFilters, allowedGatewayClassNames, allowedHostnames, allowedParentRefs, allowedTLSOptions, defaultHostname, experimentalFields, ownGateways: see docs/api.md`,
		},
	}
	cases["InputAndSpec"] = testCase{
		reason:     "What is wrong with the spec alone is reported, too.",
		spec:       `{replicas: -1, roles: [{name: w, componentType: worker, template: {spec: {containers: [{name: vllm}]}}}]}`,
		input:      `limits: {device: 8}`,
		wantReason: composite.ReasonInvalidInput,
		want: []string{
			`input.limits.device: Forbidden: is not a field of Input, which has here only devices, nodes, replicas: see docs/api.md`,
			`spec.replicas: Invalid value: -1: must be from 0 to 500`,
			`spec.roles[0].template.spec.containers[0].image: Required value: must be set: Kubernetes creates no pod without it`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			reason, got := problemsOf(t, tc.spec, tc.input)
			if diff := cmp.Diff(tc.want, got); diff != "" || reason != tc.wantReason {
				t.Errorf("%s\nThe reason is %q, want %q. Problems: -want, +got:\n%s", tc.reason, reason, tc.wantReason, diff)
			}
		})
	}
}

// No API server looks at an input. What is misspelt in it must not be passed over.
func TestUnknownInput(t *testing.T) {
	in := &structpb.Struct{}
	if err := in.UnmarshalJSON([]byte(`{
		"apiVersion": "fn.fusioninfer.io/v1alpha1", "kind": "Input", "metadata": {"name": "x"},
		"podSecurty": {"enforce": "restricted"},
		"limits": {"device": 8},
		"tenants": [{"namespaces": ["a"], "allowedQueue": ["b"]}],
		"networkPolicy": {"ingressFrom": [{"namespaceSelector": {"matchLabels": {"any": "label"}}}]},
		"endpointPicker": {"resources": {"limits": {"cpu": "1"}}}
	}`)); err != nil {
		t.Fatal(err)
	}
	_, errs := composite.Input(in)
	var got []string
	for _, e := range errs {
		got = append(got, e.Error())
	}
	want := []string{
		"input.limits.device: Forbidden: is not a field of Input, which has here only devices, nodes, replicas: see docs/api.md",
		"input.podSecurty: Forbidden: is not a field of Input, which has here only allowedPriorityClassNames, allowedProviderConfigs, allowedQueues, allowedTriggers, annotations, apiVersion, defaults, endpointPicker, fleet, gateway, kind, labels, limits, metadata, missingKinds, modelCaches, modelLoader, monitoring, networkPolicy, podObservationLimit, podSecurity, profiles, ray, routes, scaling, sidecar, tenants: see docs/api.md",
		"input.tenants[0].allowedQueue: Forbidden: is not a field of Input, which has here only allowedPriorityClassNames, allowedProviderConfigs, allowedQueues, allowedTriggers, limits, modelCaches, namespaces, podSecurity, routes: see docs/api.md",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
