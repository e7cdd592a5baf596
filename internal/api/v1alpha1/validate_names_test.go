package v1alpha1_test

import (
	"strings"
	"testing"
)

func TestValidateNames(t *testing.T) {
	testValidate(t, map[string]validation{
		"LongName": {
			reason: "The limit is that of the LeaderWorkerSet of the last replica, which has the longest name.",
			doc:    service(`{roles: [{name: ` + strings.Repeat("x", 43) + `, componentType: worker, replicas: 101, template: {}}]}`),
			want:   []string{`spec.roles[0].name: Invalid value: "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx": the name of the LeaderWorkerSet, svc-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-100, would have 51 characters, and may have at most 50: shorten the name of the service or of the role by 1`},
		},
		"LongNameInGroup": {
			reason: "In a service with groups the name also contains the index of the group.",
			doc:    service(`{replicas: 11, roles: [{name: ` + strings.Repeat("x", 43) + `, componentType: worker, template: {}}]}`),
			want:   []string{`spec.roles[0].name: Invalid value: "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx": the name of the LeaderWorkerSet, svc-10-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-0, would have 52 characters, and may have at most 50: shorten the name of the service or of the role by 2`},
		},
		"LongNameElsewhere": {
			reason: "In a namespace of another name a hash is added to the name of the service.",
			doc:    service(`{roles: [{name: ` + strings.Repeat("x", 40) + `, componentType: worker, template: {}}], placement: {clusters: [{name: a, namespace: other, providerConfigRef: {name: c}}]}}`),
			want:   []string{`spec.roles[0].name: Invalid value: "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx": the name of the LeaderWorkerSet, svc-xxxxxxxxxx-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-0 (in the namespace other, with a hash in place of xxxxxxxxxx), would have 57 characters, and may have at most 50: shorten the name of the service or of the role by 7`},
		},
		"LongestName": {
			reason: "A name of exactly 50 characters is accepted.",
			doc:    service(`{roles: [{name: ` + strings.Repeat("x", 43) + `, componentType: worker, replicas: 100, template: {}}]}`),
		},
		"ServiceName": {
			reason: "Names of Services are built from it, and have to start with a letter.",
			doc:    `{metadata: {name: 1svc, namespace: default}, spec: {roles: [` + worker + `]}}`,
			schema: []string{`metadata.name`},
			want:   []string{`metadata.name: Invalid value: "1svc": must consist of lower case letters, digits and '-', start with a letter and end with a letter or digit: it becomes part of DNS names`},
		},
		"LongServiceName": {
			reason: "A name that is only too long is not told to have other characters.",
			doc:    `{metadata: {name: ` + strings.Repeat("x", 64) + `, namespace: default}, spec: {roles: [` + worker + `]}}`,
			schema: []string{`metadata.name`},
			want: []string{
				`metadata.name: Too long: may not be more than 63 characters`,
				`spec.roles[0].name: Invalid value: "w": the name of the LeaderWorkerSet, ` + strings.Repeat("x", 64) + `-w-0, would have 68 characters, and may have at most 50: shorten the name of the service or of the role by 18`,
			},
		},
		"ServiceNameWithDot": {
			reason: "The name becomes one label of DNS names, so it contains no dot.",
			doc:    `{metadata: {name: svc.a, namespace: default}, spec: {roles: [` + worker + `]}}`,
			schema: []string{`metadata.name`},
			want:   []string{`metadata.name: Invalid value: "svc.a": must consist of lower case letters, digits and '-', start with a letter and end with a letter or digit: it becomes part of DNS names`},
		},
		"NoNamespace": {
			reason: "A cluster-scoped XR without a claim has no namespace to run in.",
			doc:    `{kind: XInferenceService, metadata: {name: svc}, spec: {roles: [` + worker + `]}}`,
			want:   []string{`metadata.namespace: Required value: must be set: a service runs in its own namespace, or in that of its claim`},
		},
		"WorkersMeet": {
			reason: "LeaderWorkerSet names the StatefulSet of a replica's workers {name}-0, so role a-2 would meet replica 2 of role a.",
			doc:    roles(`{name: a, componentType: worker, replicas: 3, multinode: {nodeCount: 2}, template: {}}`, `{name: a-2, componentType: worker, template: {}}`, `{name: a-3, componentType: worker, template: {}}`),
			want:   []string{`spec.roles[1].name: Invalid value: "a-2": must be another name: the workers of replica 2 of spec.roles[0] would have the same name as replica 0 of this role`},
		},
		"ExtraWorkersMeet": {
			reason: "A rollout adds replica 3.",
			doc:    service(`{rollout: {maxSurge: 1}, roles: [{name: a, componentType: worker, replicas: 3, multinode: {nodeCount: 2}, template: {}}, {name: a-3, componentType: worker, template: {}}, {name: a-4, componentType: worker, template: {}}]}`),
			want:   []string{`spec.roles[1].name: Invalid value: "a-3": must be another name: the workers of replica 3 of spec.roles[0] would have the same name as replica 0 of this role`},
		},
	})
}
