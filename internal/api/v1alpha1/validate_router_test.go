package v1alpha1_test

import (
	"strings"
	"testing"
)

func TestValidateRouter(t *testing.T) {
	testValidate(t, map[string]validation{
		"Router": {
			reason: "A router may have every one of its fields.",
			doc:    roles(prefiller, decoder, `{name: r, componentType: router, strategy: pd-disaggregation, endpointPicker: {failureMode: FailOpen, resources: {limits: {cpu: 1}}, kvConnector: shared-storage}, replicas: 2, gateway: {}, httproute: {}, servedModels: [{name: org/m:tag, criticality: Critical, targets: [{name: a, weight: 0}, {name: b}]}]}`),
		},
		"TwoRouters": {
			reason: "A service has at most one router.",
			doc:    roles(worker, `{name: a, componentType: router}`, `{name: b, componentType: router}`),
			schema: []string{`spec.roles`},
			want:   []string{`spec.roles[2].componentType: Invalid value: "router": must be another type: a service may have one router, which is spec.roles[1]`},
		},
		"OnlyRouter": {
			reason: "A router needs another role to route to.",
			doc:    roles(`{name: r, componentType: router}`),
			schema: []string{`spec.roles`},
			want:   []string{`spec.roles: Required value: must have at least one role of componentType worker, prefiller or decoder: a router alone has nothing to route to`},
		},
		"PDWithoutDecoder": {
			reason: "The strategy pd-disaggregation needs a prefiller and a decoder.",
			doc:    roles(`{name: p, componentType: prefiller, template: {}}`, `{name: r, componentType: router, strategy: pd-disaggregation}`),
			schema: []string{`spec.roles`},
			want:   []string{`spec.roles[1].strategy: Invalid value: "pd-disaggregation": needs a role of componentType prefiller and one of componentType decoder`},
		},
		"UnknownStrategy": {
			reason: "The error lists the supported values.",
			doc:    router(`strategy: round-robin`),
			schema: []string{`spec.roles[1].strategy`},
			want:   []string{`spec.roles[1].strategy: Unsupported value: "round-robin": supported values: "prefix-cache", "kv-cache-utilization", "queue-size", "lora-affinity", "pd-disaggregation"`},
		},
		"KVConnector": {
			reason: "The value becomes an argument of the routing sidecar, so it is restricted to the characters of a label.",
			doc:    router(`endpointPicker: {kvConnector: "nixl --x"}`),
			schema: []string{`spec.roles[1].endpointPicker.kvConnector`},
			want:   []string{`spec.roles[1].endpointPicker.kvConnector: Invalid value: "nixl --x": must consist of lower case letters, digits and '-', and start and end with a letter or digit`},
		},
		"UnknownFailureMode": {
			reason: "The error lists the supported values.",
			doc:    router(`endpointPicker: {failureMode: Fail}`),
			schema: []string{`spec.roles[1].endpointPicker.failureMode`},
			want:   []string{`spec.roles[1].endpointPicker.failureMode: Unsupported value: "Fail": supported values: "FailClose", "FailOpen"`},
		},
		"HugeConfig": {
			reason: "The configuration of the endpoint picker has a limit.",
			doc:    router(`endpointPickerConfig: ` + strings.Repeat("x", 262145)),
			schema: []string{`spec.roles[1].endpointPickerConfig`},
			want:   []string{`spec.roles[1].endpointPickerConfig: Too long: may not be more than 262144 characters`},
		},
		"Resources": {
			reason: "Quantities are not negative, and requests do not exceed limits. The schema cannot compare the two.",
			doc:    router(`endpointPicker: {resources: {requests: {cpu: 2, memory: -1Gi}, limits: {cpu: 500m}}}`),
			want: []string{
				`spec.roles[1].endpointPicker.resources.requests[memory]: Invalid value: "-1Gi": must not be negative`,
				`spec.roles[1].endpointPicker.resources.requests[cpu]: Invalid value: "2": must be at most the limit, 500m`,
			},
		},
		"BadQuantity": {
			reason: "A quantity that Kubernetes cannot parse is refused.",
			doc:    router(`endpointPicker: {resources: {limits: {cpu: lots}}}`),
			schema: []string{`spec.roles[1].endpointPicker.resources.limits.cpu`},
			want:   []string{`spec.roles[1].endpointPicker.resources.limits[cpu]: Invalid value: "lots": must be a number such as 8, 500m or 40Gi`},
		},
	})
}
