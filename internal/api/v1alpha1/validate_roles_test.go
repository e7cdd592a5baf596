package v1alpha1_test

import (
	"strings"
	"testing"
)

func TestValidateRoles(t *testing.T) {
	testValidate(t, map[string]validation{
		"NoRoles": {
			reason: "An empty list of roles is refused.",
			doc:    roles(),
			schema: []string{`spec.roles`},
			want:   []string{`spec.roles: Required value: must have at least one role: a worker, or a prefiller and a decoder`},
		},
		"NoRolesAtAll": {
			reason: "A missing list of roles is refused like an empty one.",
			doc:    service(`{replicas: 2}`),
			schema: []string{`spec.roles`},
			want:   []string{`spec.roles: Required value: must have at least one role: a worker, or a prefiller and a decoder`},
		},
		"TooManyRoles": {
			reason: "A list above its limit is refused as a whole: its items have no errors of their own.",
			doc:    roles(workers(33)...),
			schema: []string{`spec.roles`},
			want:   []string{`spec.roles: Too many: 33: must have at most 32 items`},
		},
		"UnknownComponentType": {
			reason: "The error lists the supported values.",
			doc:    roles(`{name: w, componentType: server, template: {}}`),
			schema: []string{`spec.roles[0].componentType`},
			want:   []string{`spec.roles[0].componentType: Unsupported value: "server": supported values: "worker", "prefiller", "decoder", "router"`},
		},
		"NearComponentType": {
			reason: "The error names the value that is probably meant. A ratio of prefill and decode may need the role, so nothing is said of it.",
			doc: service(`{scaling: {ratio: {prefill: 1, decode: 2}}, roles: [{name: p, componentType: prefiller, scaling: {maxReplicas: 2}, template: {}}, ` +
				`{name: d, componentType: decode, scaling: {maxReplicas: 2}, template: {}}, {name: r, componentType: router, strategy: pd-disaggregation}]}`),
			schema: []string{`spec.roles[1].componentType`},
			want:   []string{`spec.roles[1].componentType: Unsupported value: "decode": supported values: "worker", "prefiller", "decoder", "router" (did you mean "decoder"?)`},
		},
		"NoComponentType": {
			reason: "componentType is required: it has no default.",
			doc:    roles(`{name: w, template: {}}`),
			schema: []string{`spec.roles[0].componentType`},
			want:   []string{`spec.roles[0].componentType: Required value: must be one of ["worker" "prefiller" "decoder" "router"]`},
		},
		"DuplicateRole": {
			reason: "The names of roles are unique.",
			doc:    roles(worker, worker),
			schema: []string{`spec.roles[1]`},
			want:   []string{`spec.roles[1].name: Duplicate value: "w": must differ from spec.roles[0].name, which is the same`},
		},
		"EmptyRole": {
			reason: "A role needs a name.",
			doc:    roles(`{componentType: worker, template: {}}`),
			schema: []string{`spec.roles[0].name`},
			want:   []string{`spec.roles[0].name: Required value: must be set, and differ from other roles' names`},
		},
		"RoleNames": {
			reason: "The name of a role is part of DNS names, so it has their characters and a limit.",
			doc:    roles(`{name: Prefill, componentType: worker, template: {}}`, `{name: a.b, componentType: worker, template: {}}`, `{name: -a, componentType: worker, template: {}}`, `{name: `+strings.Repeat("x", 47)+`, componentType: worker, template: {}}`),
			schema: []string{
				`spec.roles[0].name`,
				`spec.roles[1].name`,
				`spec.roles[2].name`,
				`spec.roles[3].name`,
			},
			want: []string{
				`spec.roles[0].name: Invalid value: "Prefill": must consist of lower case letters, digits and '-', and start and end with a letter or digit`,
				`spec.roles[1].name: Invalid value: "a.b": must consist of lower case letters, digits and '-', and start and end with a letter or digit`,
				`spec.roles[2].name: Invalid value: "-a": must consist of lower case letters, digits and '-', and start and end with a letter or digit`,
				`spec.roles[3].name: Invalid value: "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx": has 47 characters, and may have at most 44 beside the name of the service`,
			},
		},
		"NegativeReplicas": {
			reason: "The replicas of a role are not negative.",
			doc:    roles(`{name: w, componentType: worker, replicas: -1, template: {}}`),
			schema: []string{`spec.roles[0].replicas`},
			want:   []string{`spec.roles[0].replicas: Invalid value: -1: must be from 0 to 2000`},
		},
		"HugeReplicas": {
			reason: "A mistyped number is refused.",
			doc:    service(`{replicas: 2000000000, roles: [{name: w, componentType: worker, replicas: 2000000000, template: {}}]}`),
			schema: []string{
				`spec.replicas`,
				`spec.roles[0].replicas`,
			},
			want: []string{
				`spec.roles[0].replicas: Invalid value: 2000000000: must be from 0 to 2000`,
				`spec.replicas: Invalid value: 2000000000: must be from 0 to 500`,
			},
		},
		"NumbersAsStrings": {
			reason: "A number in quotes is a string, and refused.",
			doc:    service(`{replicas: "2", roles: [{name: w, componentType: worker, replicas: "3", multinode: {nodeCount: "2"}, template: {}}]}`),
			schema: []string{
				`spec.replicas`,
				`spec.roles[0].multinode.nodeCount`,
				`spec.roles[0].replicas`,
			},
			want: []string{
				`spec.replicas: Invalid value: "2": must be a whole number`,
				`spec.roles[0].multinode.nodeCount: Invalid value: "2": must be a whole number`,
				`spec.roles[0].replicas: Invalid value: "3": must be a whole number`,
			},
		},
		"NoNodes": {
			reason: "A replica runs on at least one node.",
			doc:    roles(`{name: w, componentType: worker, multinode: {nodeCount: 0}, template: {}}`),
			schema: []string{`spec.roles[0].multinode.nodeCount`},
			want:   []string{`spec.roles[0].multinode.nodeCount: Invalid value: 0: must be from 1 to 1024`},
		},
		"TooManyNodes": {
			reason: "A mistyped number of nodes is refused.",
			doc:    roles(`{name: w, componentType: worker, multinode: {nodeCount: 2048}, template: {}}`),
			schema: []string{`spec.roles[0].multinode.nodeCount`},
			want:   []string{`spec.roles[0].multinode.nodeCount: Invalid value: 2048: must be from 1 to 1024`},
		},
		"NoNodeCount": {
			reason: "multinode requires nodeCount.",
			doc:    roles(`{name: w, componentType: worker, multinode: {launcher: VLLM}, template: {}}`),
			schema: []string{`spec.roles[0].multinode.nodeCount`},
			want:   []string{`spec.roles[0].multinode.nodeCount: Required value: must be the number of nodes of a replica, 1 to 1024`},
		},
		"Recovery": {
			reason: "Each role that serves may have a policy, and InferGroupRestart may wait.",
			doc: roles(
				`{name: a, componentType: worker, recoveryPolicy: InferGroupRestart, restartGracePeriodSeconds: 60, template: {}}`,
				`{name: b, componentType: worker, recoveryPolicy: InferGroupRestart, template: {}}`,
				`{name: c, componentType: worker, recoveryPolicy: RoleRestartAfterStart, template: {}}`,
				`{name: d, componentType: worker, recoveryPolicy: None, template: {}}`,
				`{name: e, componentType: worker, recoveryPolicy: RoleRestart, template: {}}`,
			),
		},
		"UnknownRecovery": {
			reason: "The error lists the supported values.",
			doc:    roles(`{name: w, componentType: worker, recoveryPolicy: Always, template: {}}`),
			schema: []string{`spec.roles[0].recoveryPolicy`},
			want:   []string{`spec.roles[0].recoveryPolicy: Unsupported value: "Always": supported values: "RoleRestart", "RoleRestartAfterStart", "InferGroupRestart", "None"`},
		},
		"GraceWithoutGroupRestart": {
			reason: "Nothing else waits.",
			doc:    roles(`{name: w, componentType: worker, restartGracePeriodSeconds: 60, template: {}}`, `{name: x, componentType: worker, recoveryPolicy: RoleRestart, restartGracePeriodSeconds: 0, template: {}}`),
			schema: []string{`spec.roles[0].restartGracePeriodSeconds`, `spec.roles[1].restartGracePeriodSeconds`},
			want: []string{
				`spec.roles[0].restartGracePeriodSeconds: Invalid value: 60: must be left out: only recoveryPolicy InferGroupRestart waits`,
				`spec.roles[1].restartGracePeriodSeconds: Invalid value: 0: must be left out: only recoveryPolicy InferGroupRestart waits`,
			},
		},
		"HugeGrace": {
			reason: "A mistyped number is refused.",
			doc:    roles(`{name: w, componentType: worker, recoveryPolicy: InferGroupRestart, restartGracePeriodSeconds: 86401, template: {}}`),
			schema: []string{`spec.roles[0].restartGracePeriodSeconds`},
			want:   []string{`spec.roles[0].restartGracePeriodSeconds: Invalid value: 86401: must be from 0 to 86400`},
		},
		"RouterRecovery": {
			reason: "A router has no LeaderWorkerSets.",
			doc:    roles(worker, `{name: r, componentType: router, recoveryPolicy: InferGroupRestart, restartGracePeriodSeconds: 60}`),
			schema: []string{`spec.roles[1]`},
			want: []string{
				`spec.roles[1].recoveryPolicy: Invalid value: "InferGroupRestart": must be left out: only a worker, prefiller or decoder may have it`,
				`spec.roles[1].restartGracePeriodSeconds: Invalid value: 60: must be left out: only a worker, prefiller or decoder may have it`,
			},
		},
		"UnknownLauncher": {
			reason: "The error lists the supported values.",
			doc:    roles(`{name: w, componentType: worker, multinode: {nodeCount: 2, launcher: MPI}, template: {}}`),
			schema: []string{`spec.roles[0].multinode.launcher`},
			want:   []string{`spec.roles[0].multinode.launcher: Unsupported value: "MPI": supported values: "Ray", "VLLM", "VLLMDataParallel", "SGLang", "None"`},
		},
	})
}
