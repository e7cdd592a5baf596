package v1alpha1_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/fusioninfer/function-inferenceservice/internal/api/schematest"
	"github.com/fusioninfer/function-inferenceservice/internal/api/v1alpha1"
	"github.com/fusioninfer/function-inferenceservice/internal/kube"
)

// worker is the shortest role that serves.
const worker = `{name: w, componentType: worker, template: {}}`

// pd is a router with what it routes to, up to the router's last field.
const pd = `{name: p, componentType: prefiller, template: {}}, {name: d, componentType: decoder, template: {}}, {name: r, componentType: router`

func service(spec string) string {
	return `{metadata: {name: svc, namespace: default}, spec: ` + spec + `}`
}

func roles(list ...string) string { return service(`{roles: [` + strings.Join(list, ", ") + `]}`) }

func gang(s string) string {
	return service(`{roles: [` + pd + `}], schedulingStrategy: {gang: ` + s + `}}`)
}

func clusters(list ...string) string {
	return service(`{roles: [` + worker + `], placement: {clusters: [` + strings.Join(list, ", ") + `]}}`)
}

func router(fields string) string {
	return roles(worker, `{name: r, componentType: router, `+fields+`}`)
}

func models(list string) string { return router(`models: [` + list + `]`) }

// many are that many workers.
func many(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`{name: w%d, componentType: worker, template: {}}`, i)
	}
	return list
}

func TestValidate(t *testing.T) {
	cases := map[string]struct {
		reason string
		doc    string
		// schema has the paths that an API server complains about. Empty where only
		// the function can tell.
		schema []string
		// want are the function's errors.
		want []string
	}{
		"Minimal": {
			reason: "The shortest service is fine.",
			doc:    roles(worker),
		},
		"Router": {
			reason: "So is a router with everything.",
			doc:    roles(pd + `, strategy: pd-disaggregation, failureMode: FailOpen, replicas: 2, gateway: {}, httproute: {}, resources: {limits: {cpu: 1}}, models: [{name: org/m:tag, criticality: Critical, targets: [{name: a, weight: 0}, {name: b}]}]}`),
		},
		"Gang": {
			reason: "And a gang with everything.",
			doc:    gang(`{mode: SubGroup, minRoleReplicas: {p: 1, d: 9}, networkTopology: {highestTierAllowed: 2}, queue: q.a, priorityClassName: high}`),
		},
		"OtherScheduler": {
			reason: "Without a gang any scheduler will do.",
			doc:    service(`{roles: [` + worker + `], schedulingStrategy: {schedulerName: other, gang: {mode: TaskMember}}}`),
		},
		"Clusters": {
			reason: "Two namespaces of one cluster are two places.",
			doc:    clusters(`{name: a, providerConfigRef: {name: c}}`, `{name: b, namespace: other, providerConfigRef: {name: c}}`),
		},
		"PrefilledStatus": {
			reason: "A status is what was observed, and not looked at.",
			doc:    `{metadata: {name: svc, namespace: default}, spec: {roles: [` + worker + `]}, status: {replicas: 3, url: x}}`,
		},
		"NoRoles": {
			reason: "A service needs roles.",
			doc:    roles(),
			schema: []string{
				`spec.roles`,
			},
			want: []string{
				`spec.roles: Required value: a service needs at least one role: a worker, or a prefiller and a decoder`,
			},
		},
		"NoRolesAtAll": {
			reason: "Also where there is no field.",
			doc:    service(`{replicas: 2}`),
			schema: []string{
				`spec.roles`,
			},
			want: []string{
				`spec.roles: Required value: a service needs at least one role: a worker, or a prefiller and a decoder`,
			},
		},
		"TooManyRoles": {
			reason: "A list over its limit is refused, and not gone through.",
			doc:    roles(many(33)...),
			schema: []string{
				`spec.roles`,
			},
			want: []string{
				`spec.roles: Too many: 33: must have at most 32 items`,
			},
		},
		"UnknownComponentType": {
			reason: "The error says which exist.",
			doc:    roles(`{name: w, componentType: server, template: {}}`),
			schema: []string{
				`spec.roles[0].componentType`,
			},
			want: []string{
				`spec.roles[0].componentType: Unsupported value: "server": supported values: "worker", "prefiller", "decoder", "router"`,
			},
		},
		"NoComponentType": {
			reason: "It has no default.",
			doc:    roles(`{name: w, template: {}}`),
			schema: []string{
				`spec.roles[0].componentType`,
			},
			want: []string{
				`spec.roles[0].componentType: Required value: must be one of ["worker" "prefiller" "decoder" "router"]`,
			},
		},
		"DuplicateRole": {
			reason: "Names tell roles apart.",
			doc:    roles(worker, worker),
			schema: []string{
				`spec.roles[1]`,
			},
			want: []string{
				`spec.roles[1].name: Duplicate value: "w"`,
			},
		},
		"EmptyRole": {
			reason: "A role has a name.",
			doc:    roles(`{componentType: worker, template: {}}`),
			schema: []string{
				`spec.roles[0].name`,
			},
			want: []string{
				`spec.roles[0].name: Required value: each role has a name of its own`,
			},
		},
		"RoleNames": {
			reason: "A role's name is part of DNS names.",
			doc:    roles(`{name: Prefill, componentType: worker, template: {}}`, `{name: a.b, componentType: worker, template: {}}`, `{name: -a, componentType: worker, template: {}}`, `{name: `+strings.Repeat("x", 47)+`, componentType: worker, template: {}}`),
			schema: []string{
				`spec.roles[0].name`,
				`spec.roles[1].name`,
				`spec.roles[2].name`,
				`spec.roles[3].name`,
			},
			want: []string{
				`spec.roles[0].name: Invalid value: "Prefill": must be lower case letters, digits and '-', with a letter or digit first and last`,
				`spec.roles[1].name: Invalid value: "a.b": must be lower case letters, digits and '-', with a letter or digit first and last`,
				`spec.roles[2].name: Invalid value: "-a": must be lower case letters, digits and '-', with a letter or digit first and last`,
				`spec.roles[3].name: Too long: may not be more than 46 characters`,
			},
		},
		"NegativeReplicas": {
			reason: "Replicas are counted from 0.",
			doc:    roles(`{name: w, componentType: worker, replicas: -1, template: {}}`),
			schema: []string{
				`spec.roles[0].replicas`,
			},
			want: []string{
				`spec.roles[0].replicas: Invalid value: -1: must be from 0 to 2000`,
			},
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
		"NegativeGroups": {
			reason: "Groups are counted from 0.",
			doc:    service(`{replicas: -1, roles: [` + worker + `]}`),
			schema: []string{
				`spec.replicas`,
			},
			want: []string{
				`spec.replicas: Invalid value: -1: must be from 0 to 500`,
			},
		},
		"NumbersAsStrings": {
			reason: "A number in quotes is a string.",
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
			reason: "A replica needs a node.",
			doc:    roles(`{name: w, componentType: worker, multinode: {nodeCount: 0}, template: {}}`),
			schema: []string{
				`spec.roles[0].multinode.nodeCount`,
			},
			want: []string{
				`spec.roles[0].multinode.nodeCount: Invalid value: 0: must be from 1 to 1024`,
			},
		},
		"TooManyNodes": {
			reason: "A mistyped number is refused.",
			doc:    roles(`{name: w, componentType: worker, multinode: {nodeCount: 2048}, template: {}}`),
			schema: []string{
				`spec.roles[0].multinode.nodeCount`,
			},
			want: []string{
				`spec.roles[0].multinode.nodeCount: Invalid value: 2048: must be from 1 to 1024`,
			},
		},
		"NoNodeCount": {
			reason: "Multinode is about it.",
			doc:    roles(`{name: w, componentType: worker, multinode: {}, template: {}}`),
			schema: []string{
				`spec.roles[0].multinode.nodeCount`,
			},
			want: []string{
				`spec.roles[0].multinode.nodeCount: Invalid value: 0: must be from 1 to 1024`,
			},
		},
		"UnknownLauncher": {
			reason: "The error says which exist.",
			doc:    roles(`{name: w, componentType: worker, multinode: {nodeCount: 2, launcher: MPI}, template: {}}`),
			schema: []string{
				`spec.roles[0].multinode.launcher`,
			},
			want: []string{
				`spec.roles[0].multinode.launcher: Unsupported value: "MPI": supported values: "Ray", "VLLM", "SGLang", "None"`,
			},
		},
		"NoTemplate": {
			reason: "What serves has pods.",
			doc:    roles(`{name: w, componentType: decoder}`),
			schema: []string{
				`spec.roles[0]`,
			},
			want: []string{
				`spec.roles[0].template: Required value: a decoder needs a template of its pods`,
			},
		},
		"TemplateIsNoObject": {
			reason: "A template is an object.",
			doc:    roles(`{name: w, componentType: worker, template: x}`),
			schema: []string{
				`spec.roles[0].template`,
			},
			want: []string{
				`spec.roles[0].template: Invalid value: "x": must be an object`,
				`spec.roles[0].template: Required value: a worker needs a template of its pods`,
			},
		},
		"RouterFieldsOnWorker": {
			reason: "A field of the wrong type has no effect, so it is refused.",
			doc:    roles(`{name: w, componentType: worker, template: {}, strategy: queue-size, httproute: {}, gateway: {}, endpointPickerConfig: x, failureMode: FailOpen, resources: {}, models: [{name: m}]}`),
			schema: []string{
				`spec.roles[0]`,
			},
			want: []string{
				`spec.roles[0].strategy: Invalid value: "queue-size": must be left out: only a router has it`,
				`spec.roles[0].httproute: Invalid value: "{...}": must be left out: only a router has it`,
				`spec.roles[0].gateway: Invalid value: "{...}": must be left out: only a router has it`,
				`spec.roles[0].endpointPickerConfig: Invalid value: "x": must be left out: only a router has it`,
				`spec.roles[0].failureMode: Invalid value: "FailOpen": must be left out: only a router has it`,
				`spec.roles[0].resources: Invalid value: "{...}": must be left out: only a router has it`,
				`spec.roles[0].models: Invalid value: "[...]": must be left out: only a router has it`,
			},
		},
		"WorkerFieldsOnRouter": {
			reason: "The other way round, too.",
			doc:    router(`multinode: {nodeCount: 2}, template: {}, leaderTemplate: {}`),
			schema: []string{
				`spec.roles[1]`,
			},
			want: []string{
				`spec.roles[1].multinode: Invalid value: "{...}": must be left out: only a worker, prefiller or decoder has it`,
				`spec.roles[1].template: Invalid value: "{...}": must be left out: only a worker, prefiller or decoder has it`,
				`spec.roles[1].leaderTemplate: Invalid value: "{...}": must be left out: only a worker, prefiller or decoder has it`,
			},
		},
		"TwoRouters": {
			reason: "One router decides.",
			doc:    roles(worker, `{name: a, componentType: router}`, `{name: b, componentType: router}`),
			schema: []string{
				`spec.roles`,
			},
			want: []string{
				`spec.roles[2].componentType: Invalid value: "router": must be another type: a service has at most one router, and spec.roles[1] is one`,
			},
		},
		"OnlyRouter": {
			reason: "A router needs something to route to.",
			doc:    roles(`{name: r, componentType: router}`),
			schema: []string{
				`spec.roles`,
			},
			want: []string{
				`spec.roles: Required value: a service needs at least one role of componentType worker, prefiller or decoder: a router has nothing to route to`,
			},
		},
		"PDWithoutDecoder": {
			reason: "Both halves are needed.",
			doc:    roles(`{name: p, componentType: prefiller, template: {}}`, `{name: r, componentType: router, strategy: pd-disaggregation}`),
			schema: []string{
				`spec.roles`,
			},
			want: []string{
				`spec.roles[1].strategy: Invalid value: "pd-disaggregation": needs a role of componentType prefiller and one of componentType decoder`,
			},
		},
		"UnknownStrategy": {
			reason: "The error says which exist.",
			doc:    router(`strategy: round-robin`),
			schema: []string{
				`spec.roles[1].strategy`,
			},
			want: []string{
				`spec.roles[1].strategy: Unsupported value: "round-robin": supported values: "prefix-cache", "kv-cache-utilization", "queue-size", "lora-affinity", "pd-disaggregation"`,
			},
		},
		"UnknownFailureMode": {
			reason: "The error says which exist.",
			doc:    router(`failureMode: Fail`),
			schema: []string{
				`spec.roles[1].failureMode`,
			},
			want: []string{
				`spec.roles[1].failureMode: Unsupported value: "Fail": supported values: "FailClose", "FailOpen"`,
			},
		},
		"HugeConfig": {
			reason: "A configuration has a limit.",
			doc:    router(`endpointPickerConfig: ` + strings.Repeat("x", 262145)),
			schema: []string{
				`spec.roles[1].endpointPickerConfig`,
			},
			want: []string{
				`spec.roles[1].endpointPickerConfig: Too long: may not be more than 262144 characters`,
			},
		},
		"Resources": {
			reason: "Requests stay below limits, and above 0.",
			doc:    router(`resources: {requests: {cpu: 2, memory: -1Gi}, limits: {cpu: 500m}}`),
			want: []string{
				`spec.roles[1].resources.requests[memory]: Invalid value: "-1Gi": must not be negative`,
				`spec.roles[1].resources.requests[cpu]: Invalid value: "2": must be at most the limit, 500m`,
			},
		},
		"BadQuantity": {
			reason: "A quantity has a form.",
			doc:    router(`resources: {limits: {cpu: lots}}`),
			schema: []string{
				`spec.roles[1].resources.limits.cpu`,
			},
			want: []string{
				`spec.roles[1].resources.limits[cpu]: Invalid value: "lots": must be a Quantity: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'`,
			},
		},
		"MinOfUnknownRole": {
			reason: "The error says which roles there are.",
			doc:    gang(`{minRoleReplicas: {x: 1}}`),
			schema: []string{
				`spec.schedulingStrategy.gang.minRoleReplicas`,
			},
			want: []string{
				`spec.schedulingStrategy.gang.minRoleReplicas[x]: Invalid value: 1: there is no role of that name; the roles are ["p" "d"]`,
			},
		},
		"MinOfRouter": {
			reason: "A router is in no gang.",
			doc:    gang(`{minRoleReplicas: {r: 1}}`),
			schema: []string{
				`spec.schedulingStrategy.gang.minRoleReplicas`,
			},
			want: []string{
				`spec.schedulingStrategy.gang.minRoleReplicas[r]: Invalid value: 1: is the router, which is in no gang; the roles of the gang are ["p" "d"]`,
			},
		},
		"NegativeMin": {
			reason: "A minimum is counted from 0.",
			doc:    gang(`{minRoleReplicas: {p: -1, d: 2001}}`),
			schema: []string{
				`spec.schedulingStrategy.gang.minRoleReplicas`,
			},
			want: []string{
				`spec.schedulingStrategy.gang.minRoleReplicas[d]: Invalid value: 2001: must be from 0 to 2000`,
				`spec.schedulingStrategy.gang.minRoleReplicas[p]: Invalid value: -1: must be from 0 to 2000`,
			},
		},
		"UnknownGangMode": {
			reason: "The error says which exist.",
			doc:    gang(`{mode: All}`),
			schema: []string{
				`spec.schedulingStrategy.gang.mode`,
			},
			want: []string{
				`spec.schedulingStrategy.gang.mode: Unsupported value: "All": supported values: "TaskMember", "SubGroup", "None"`,
			},
		},
		"OtherSchedulerWithGang": {
			reason: "Whether it is one is decided with the input, by the plan; the schema refuses what is so for every input.",
			doc:    service(`{roles: [` + pd + `}], schedulingStrategy: {schedulerName: other, gang: {mode: SubGroup}}}`),
			schema: []string{
				`spec.schedulingStrategy.schedulerName`,
			},
		},
		"HardWithoutTier": {
			reason: "Hard is up to a tier.",
			doc:    gang(`{networkTopology: {}}`),
			schema: []string{
				`spec.schedulingStrategy.gang.networkTopology`,
			},
			want: []string{
				`spec.schedulingStrategy.gang.networkTopology.highestTierAllowed: Required value: mode hard needs either highestTierAllowed or highestTierName`,
			},
		},
		"HardWithBothTiers": {
			reason: "A tier is given in one way.",
			doc:    gang(`{networkTopology: {mode: hard, highestTierAllowed: 1, highestTierName: rack}}`),
			schema: []string{
				`spec.schedulingStrategy.gang.networkTopology`,
			},
			want: []string{
				`spec.schedulingStrategy.gang.networkTopology.highestTierName: Invalid value: "rack": must be left out where highestTierAllowed is given`,
			},
		},
		"SoftWithTiers": {
			reason: "Soft knows no tier.",
			doc:    gang(`{networkTopology: {mode: soft, highestTierAllowed: 1, highestTierName: rack}}`),
			schema: []string{
				`spec.schedulingStrategy.gang.networkTopology`,
			},
			want: []string{
				`spec.schedulingStrategy.gang.networkTopology.highestTierAllowed: Invalid value: 1: must be left out in mode soft, which knows no highest tier`,
				`spec.schedulingStrategy.gang.networkTopology.highestTierName: Invalid value: "rack": must be left out in mode soft, which knows no highest tier`,
			},
		},
		"UnknownTopology": {
			reason: "The error says which exist.",
			doc:    gang(`{networkTopology: {mode: near, highestTierAllowed: -1}}`),
			schema: []string{
				`spec.schedulingStrategy.gang.networkTopology.highestTierAllowed`,
				`spec.schedulingStrategy.gang.networkTopology.mode`,
			},
			want: []string{
				`spec.schedulingStrategy.gang.networkTopology.mode: Unsupported value: "near": supported values: "hard", "soft"`,
				`spec.schedulingStrategy.gang.networkTopology.highestTierAllowed: Invalid value: -1: must be 0 or more`,
			},
		},
		"GangNames": {
			reason: "They name Kubernetes objects.",
			doc:    gang(`{queue: Q_1, priorityClassName: a/b}`),
			schema: []string{
				`spec.schedulingStrategy.gang.priorityClassName`,
				`spec.schedulingStrategy.gang.queue`,
			},
			want: []string{
				`spec.schedulingStrategy.gang.queue: Invalid value: "Q_1": must be the name of a Kubernetes object: lower case letters, digits, '-' and '.', with a letter or digit first and last`,
				`spec.schedulingStrategy.gang.priorityClassName: Invalid value: "a/b": must be the name of a Kubernetes object: lower case letters, digits, '-' and '.', with a letter or digit first and last`,
			},
		},
		"DuplicateModels": {
			reason: "Clients cannot tell them apart.",
			doc:    models(`{name: m}, {name: m}, {}`),
			schema: []string{
				`spec.roles[1].models[1]`,
				`spec.roles[1].models[2].name`,
			},
			want: []string{
				`spec.roles[1].models[1].name: Duplicate value: "m"`,
				`spec.roles[1].models[2].name: Required value: a model needs its name`,
			},
		},
		"PriorityTwice": {
			reason: "Both mean the same.",
			doc:    models(`{name: m, priority: 1, criticality: Standard}`),
			schema: []string{
				`spec.roles[1].models[0]`,
			},
			want: []string{
				`spec.roles[1].models[0].criticality: Invalid value: "Standard": must be left out where priority is given: it is the priority by name`,
			},
		},
		"UnknownCriticality": {
			reason: "The error says which exist.",
			doc:    models(`{name: m, criticality: High}`),
			schema: []string{
				`spec.roles[1].models[0].criticality`,
			},
			want: []string{
				`spec.roles[1].models[0].criticality: Unsupported value: "High": supported values: "Critical", "Standard", "Sheddable"`,
			},
		},
		"NoWeight": {
			reason: "Somebody has to answer.",
			doc:    models(`{name: m, targets: [{name: a, weight: 0}, {name: b, weight: 0}]}`),
			schema: []string{
				`spec.roles[1].models[0]`,
			},
			want: []string{
				`spec.roles[1].models[0].targets: Invalid value: "every weight is 0": at least one target needs a weight above 0: nothing would answer for the model`,
			},
		},
		"BadWeights": {
			reason: "Weights are shares.",
			doc:    models(`{name: m, targets: [{name: a, weight: -1}, {name: a, weight: 1000001}, {}]}`),
			schema: []string{
				`spec.roles[1].models[0].targets[0].weight`,
				`spec.roles[1].models[0].targets[1]`,
				`spec.roles[1].models[0].targets[1].weight`,
				`spec.roles[1].models[0].targets[2].name`,
			},
			want: []string{
				`spec.roles[1].models[0].targets[0].weight: Invalid value: -1: must be from 0 to 1000000`,
				`spec.roles[1].models[0].targets[1].name: Duplicate value: "a"`,
				`spec.roles[1].models[0].targets[1].weight: Invalid value: 1000001: must be from 0 to 1000000`,
				`spec.roles[1].models[0].targets[2].name: Required value: a model needs its name`,
			},
		},
		"NoClusters": {
			reason: "A placement is somewhere.",
			doc:    clusters(),
			schema: []string{
				`spec.placement.clusters`,
			},
			want: []string{
				`spec.placement.clusters: Required value: a placement names at least one cluster, or has a clusterSelector; without a placement the service runs beside this object`,
			},
		},
		"DuplicateCluster": {
			reason: "Names tell clusters apart.",
			doc:    clusters(`{name: a, providerConfigRef: {name: c}}`, `{name: a, providerConfigRef: {name: d}}`),
			schema: []string{
				`spec.placement.clusters[1]`,
			},
			want: []string{
				`spec.placement.clusters[1].name: Duplicate value: "a"`,
			},
		},
		"SamePlace": {
			reason: "Two services of one name in one place would fight.",
			doc:    clusters(`{name: a, providerConfigRef: {name: c}}`, `{name: b, namespace: default, providerConfigRef: {kind: ClusterProviderConfig, name: c}}`),
			want: []string{
				`spec.placement.clusters[1]: Invalid value: "b": must be another place: spec.placement.clusters[0] has the same providerConfigRef and namespace`,
			},
		},
		"NamespaceInTheFleet": {
			reason: "A tenant chooses no namespace of a cluster that all share. The schema cannot say so.",
			doc:    clusters(`{name: a, inferenceCluster: east, namespace: kube-system}`),
			want: []string{
				`spec.placement.clusters[0].namespace: Forbidden: in a cluster of the fleet a service is in the namespace of its tenant's name`,
			},
		},
		"BadCluster": {
			reason: "Each part is checked.",
			doc:    clusters(`{name: A, namespace: a.b, providerConfigRef: {kind: Secret, name: C}}`, `{providerConfigRef: {}}`),
			schema: []string{
				`spec.placement.clusters[0].name`,
				`spec.placement.clusters[0].namespace`,
				`spec.placement.clusters[0].providerConfigRef.kind`,
				`spec.placement.clusters[0].providerConfigRef.name`,
				`spec.placement.clusters[1].name`,
				`spec.placement.clusters[1].providerConfigRef.name`,
			},
			want: []string{
				`spec.placement.clusters[0].name: Invalid value: "A": must be lower case letters, digits and '-', with a letter or digit first and last`,
				`spec.placement.clusters[0].providerConfigRef.kind: Unsupported value: "Secret": supported values: "ClusterProviderConfig", "ProviderConfig"`,
				`spec.placement.clusters[0].providerConfigRef.name: Invalid value: "C": must be the name of a Kubernetes object: lower case letters, digits, '-' and '.', with a letter or digit first and last`,
				`spec.placement.clusters[0].namespace: Invalid value: "a.b": must be lower case letters, digits and '-', with a letter or digit first and last`,
				`spec.placement.clusters[1].name: Required value: each cluster has a name of its own`,
				`spec.placement.clusters[1].providerConfigRef.name: Required value: must be the name of a provider-kubernetes configuration`,
			},
		},
		"LongName": {
			reason: "The whole name of a workload is counted, with its last index.",
			doc:    service(`{roles: [{name: ` + strings.Repeat("x", 43) + `, componentType: worker, replicas: 101, template: {}}]}`),
			want: []string{
				`spec.roles[0].name: Invalid value: "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx": the LeaderWorkerSet svc-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-100 would have 51 characters, at most 50: shorten the name of the service or of the role by 1`,
			},
		},
		"LongNameInGroup": {
			reason: "With groups, also the group's.",
			doc:    service(`{replicas: 11, roles: [{name: ` + strings.Repeat("x", 43) + `, componentType: worker, template: {}}]}`),
			want: []string{
				`spec.roles[0].name: Invalid value: "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx": the LeaderWorkerSet svc-10-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-0 would have 52 characters, at most 50: shorten the name of the service or of the role by 2`,
			},
		},
		"LongNameElsewhere": {
			reason: "In another namespace the name also has a hash.",
			doc:    service(`{roles: [{name: ` + strings.Repeat("x", 40) + `, componentType: worker, template: {}}], placement: {clusters: [{name: a, namespace: other, providerConfigRef: {name: c}}]}}`),
			want: []string{
				`spec.roles[0].name: Invalid value: "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx": the LeaderWorkerSet svc-xxxxxxxxxx-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-0 (as it is called in the namespace other, x standing for a hash) would have 57 characters, at most 50: shorten the name of the service or of the role by 7`,
			},
		},
		"LongestName": {
			reason: "50 characters are fine.",
			doc:    service(`{roles: [{name: ` + strings.Repeat("x", 43) + `, componentType: worker, replicas: 100, template: {}}]}`),
		},
		"ServiceName": {
			reason: "It starts names that have to start with a letter.",
			doc:    `{metadata: {name: 1svc, namespace: default}, spec: {roles: [` + worker + `]}}`,
			schema: []string{
				`metadata.name`,
			},
			want: []string{
				`metadata.name: Invalid value: "1svc": must be lower case letters, digits and '-', with a letter first and no '-' last: it becomes part of DNS names`,
			},
		},
		"ServiceNameWithDot": {
			reason: "And is a part of them between dots.",
			doc:    `{metadata: {name: svc.a, namespace: default}, spec: {roles: [` + worker + `]}}`,
			schema: []string{
				`metadata.name`,
			},
			want: []string{
				`metadata.name: Invalid value: "svc.a": must be lower case letters, digits and '-', with a letter first and no '-' last: it becomes part of DNS names`,
			},
		},
		"NoNamespace": {
			reason: "A cluster-scoped XR without a claim has nowhere to run.",
			doc:    `{kind: XInferenceService, metadata: {name: svc}, spec: {roles: [` + worker + `]}}`,
			want: []string{
				`metadata.namespace: Required value: a service runs in a namespace: its own, or that of its claim`,
			},
		},
		"WorkersMeet": {
			reason: "LeaderWorkerSet names its workers' StatefulSet after their index.",
			doc:    roles(`{name: a, componentType: worker, replicas: 3, multinode: {nodeCount: 2}, template: {}}`, `{name: a-2, componentType: worker, template: {}}`, `{name: a-3, componentType: worker, template: {}}`),
			want: []string{
				`spec.roles[1].name: Invalid value: "a-2": must be another name: the workers of replica 2 of spec.roles[0] have the same name as replica 0 of this role`,
			},
		},
		"AllAtOnce": {
			reason: "All problems are reported, in the order of the spec.",
			doc:    service(`{replicas: 501, roles: [{name: w, componentType: worker, replicas: -1}, {name: r, componentType: router, strategy: pd-disaggregation}], schedulingStrategy: {gang: {minRoleReplicas: {x: 1}}}}`),
			schema: []string{
				`spec.replicas`,
				`spec.roles`,
				`spec.roles[0]`,
				`spec.roles[0].replicas`,
				`spec.schedulingStrategy.gang.minRoleReplicas`,
			},
			want: []string{
				`spec.roles[0].replicas: Invalid value: -1: must be from 0 to 2000`,
				`spec.roles[0].template: Required value: a worker needs a template of its pods`,
				`spec.roles[1].strategy: Invalid value: "pd-disaggregation": needs a role of componentType prefiller and one of componentType decoder`,
				`spec.replicas: Invalid value: 501: must be from 0 to 500`,
				`spec.schedulingStrategy.gang.minRoleReplicas[x]: Invalid value: 1: there is no role of that name; the roles are ["w"]`,
			},
		},
	}
	schemas := services(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, problems(t, tc.doc)); diff != "" {
				t.Errorf("%s\nfunction: -want +got:\n%s", tc.reason, diff)
			}
			for f, s := range schemas {
				if diff := cmp.Diff(tc.schema, paths(s.Validate([]byte(tc.doc)))); diff != "" {
					t.Errorf("%s\nschema of the %s: -want +got:\n%s", tc.reason, f, diff)
				}
			}
		})
	}
}

// problems are what the function says about an InferenceService in YAML: read,
// defaulted and validated like a request's.
func problems(t *testing.T, doc string) []string {
	t.Helper()
	xr, errs := decode(t, []byte(doc))
	v1alpha1.Default(&xr.Spec)
	errs = append(errs, v1alpha1.Validate(xr, v1alpha1.ClaimReference{})...)
	var all []string
	for _, err := range errs {
		all = append(all, err.Error())
	}
	return all
}

func decode(t *testing.T, doc []byte) (*v1alpha1.InferenceService, field.ErrorList) {
	t.Helper()
	b, err := yaml.YAMLToJSON(doc)
	if err != nil {
		t.Fatal(err)
	}
	s := &structpb.Struct{}
	if err := s.UnmarshalJSON(b); err != nil {
		t.Fatal(err)
	}
	xr := &v1alpha1.InferenceService{}
	return xr, kube.Decode(s, nil, xr)
}

// paths are the paths of errors, sorted, each once.
func paths(errs field.ErrorList) []string {
	var all []string
	for _, err := range errs {
		all = append(all, err.Field)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func services(t *testing.T) map[schematest.Flavour]*schematest.Schema {
	t.Helper()
	all := map[schematest.Flavour]*schematest.Schema{}
	for _, f := range schematest.Services() {
		s, err := schematest.New(f)
		if err != nil {
			t.Fatal(err)
		}
		all[f] = s
	}
	return all
}

// seeds returns the examples of the design documents by their file names.
func seeds(t *testing.T) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("../testdata/seeds/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("want the examples of the design documents, got %d files (%v)", len(files), err)
	}
	docs := map[string][]byte{}
	for _, f := range files {
		if docs[filepath.Base(f)], err = os.ReadFile(f); err != nil {
			t.Fatal(err)
		}
	}
	return docs
}

// What the design documents have as examples is fine, whoever reads it.
func TestValidateSeeds(t *testing.T) {
	for name, doc := range seeds(t) {
		xr, errs := decode(t, doc)
		xr.Namespace = "default"
		v1alpha1.Default(&xr.Spec)
		if errs = append(errs, v1alpha1.Validate(xr, v1alpha1.ClaimReference{})...); len(errs) > 0 {
			t.Errorf("%s: %v", name, errs.ToAggregate())
		}
	}
}

// A mistyped number or a huge list costs an error message, not time.
func TestValidateIsQuick(t *testing.T) {
	xr := &v1alpha1.InferenceService{ObjectMeta: metav1.ObjectMeta{Name: "svc", Namespace: "default"}}
	xr.Spec.Replicas = ptr.To[int32](2000000000)
	for range 20000 {
		xr.Spec.Roles = append(xr.Spec.Roles, v1alpha1.Role{
			Name:          "w",
			ComponentType: v1alpha1.ComponentTypeWorker,
			Replicas:      ptr.To[int32](2000000000),
			Multinode:     &v1alpha1.Multinode{NodeCount: 2000000000},
		})
	}
	errs := v1alpha1.Validate(xr, v1alpha1.ClaimReference{})
	if len(errs) < 3 || len(errs) > 5*v1alpha1.MaxRoles {
		t.Errorf("want a readable number of errors, got %d", len(errs))
	}
}

func TestIdentity(t *testing.T) {
	labels := map[string]string{v1alpha1.LabelClaimName: "claim", v1alpha1.LabelClaimNamespace: "tenant"}
	cases := map[string]struct {
		reason string
		kind   string
		meta   metav1.ObjectMeta
		claim  v1alpha1.ClaimReference
		want   [2]string
	}{
		"XR": {
			reason: "A namespaced XR is itself.",
			meta:   metav1.ObjectMeta{Name: "xr", Namespace: "ns"},
			want:   [2]string{"xr", "ns"},
		},
		"XRWithLabels": {
			reason: "Labels that a user put on a namespaced XR do not rename it, nor move it to another tenant.",
			meta:   metav1.ObjectMeta{Name: "xr", Namespace: "ns", Labels: labels},
			want:   [2]string{"xr", "ns"},
		},
		"Claim": {
			reason: "The XR behind a claim has labels that say whose it is.",
			kind:   v1alpha1.ClusterKind,
			meta:   metav1.ObjectMeta{Name: "claim-x7k2p", Labels: labels},
			claim:  v1alpha1.ClaimReference{Name: "other", Namespace: "other"},
			want:   [2]string{"claim", "tenant"},
		},
		"ClaimRef": {
			reason: "Without labels there is a reference.",
			kind:   v1alpha1.ClusterKind,
			meta:   metav1.ObjectMeta{Name: "claim-x7k2p"},
			claim:  v1alpha1.ClaimReference{Name: "claim", Namespace: "tenant"},
			want:   [2]string{"claim", "tenant"},
		},
		"Neither": {
			reason: "A cluster-scoped XR without a claim has a name and no tenant.",
			kind:   v1alpha1.ClusterKind,
			meta:   metav1.ObjectMeta{Name: "xr"},
			want:   [2]string{"xr", ""},
		},
		"File": {
			reason: "A namespaced XR that comes from a file without a namespace is in default.",
			kind:   v1alpha1.Kind,
			meta:   metav1.ObjectMeta{Name: "xr"},
			want:   [2]string{"xr", "default"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			n, ns := v1alpha1.Identity(&v1alpha1.InferenceService{TypeMeta: metav1.TypeMeta{Kind: tc.kind}, ObjectMeta: tc.meta}, tc.claim)
			if diff := cmp.Diff(tc.want, [2]string{n, ns}); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
