package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const twoByTwo = `{roles: [{name: w, componentType: worker, replicas: 2, multinode: {nodeCount: 2, launcher: None}, template: TEMPLATE}]}`

func TestTenantPolicy(t *testing.T) {
	const (
		plain  = `{spec: {containers: [{name: vllm, image: i}]}}`
		gpus   = `{spec: {containers: [{name: vllm, image: i, resources: {limits: {nvidia.com/gpu: "4"}}}]}}`
		queued = `{metadata: {annotations: {scheduling.volcano.sh/queue-name: research}}, spec: {containers: [{name: vllm, image: i}]}}`
	)
	template := func(text string) string { return strings.ReplaceAll(twoByTwo, "TEMPLATE", text) }
	ephemeral := func(claim string) string {
		return template(`{spec: {containers: [{name: vllm, image: i}], volumes: [{name: v, ephemeral: {volumeClaimTemplate: {` + claim + `}}}]}}`)
	}
	gang := func(text string) string {
		return strings.TrimSuffix(template(plain), "}") + ", schedulingStrategy: {gang: " + text + "}}"
	}
	cases := map[string]struct {
		reason string
		spec   string
		input  string
		want   string
	}{
		"Plain": {
			reason: "What is the tenant's own is open.",
			spec:   template(`{spec: {serviceAccountName: mine, containers: [{name: vllm, image: i, volumeMounts: [{name: s, mountPath: /s}]}], volumes: [{name: s, secret: {secretName: s}}]}}`),
		},
		"PodSecurity": {
			reason: "The node has other tenants' pods, too.",
			spec:   template(`{spec: {hostPID: true, containers: [{name: vllm, image: i}]}}`),
			want:   `spec.roles[0].template.spec: Forbidden: violates PodSecurity "baseline:latest": host namespaces (hostPID=true); the platform team sets the standard (podSecurity in the Composition's input)`,
		},
		"PodSecurityOfTenant": {
			reason: "A tenant may be trusted with nodes.",
			spec:   template(`{spec: {hostPID: true, containers: [{name: vllm, image: i}]}}`),
			input:  `{tenants: [{namespaces: ["n*"], podSecurity: {enforce: privileged}}]}`,
		},
		"PodSecurityOfOther": {
			reason: "That is for the tenant alone.",
			spec:   template(`{spec: {hostPID: true, containers: [{name: vllm, image: i}]}}`),
			input:  `{tenants: [{namespaces: [other], podSecurity: {enforce: privileged}}]}`,
			want:   `spec.roles[0].template.spec: Forbidden: violates PodSecurity "baseline:latest": host namespaces (hostPID=true); the platform team sets the standard (podSecurity in the Composition's input)`,
		},
		"LeaderTemplate": {
			reason: "Leaders are pods, too.",
			spec:   strings.ReplaceAll(template(plain), "template: {", `leaderTemplate: {spec: {hostPID: true, containers: [{name: vllm, image: i}]}}, template: {`),
			want:   `spec.roles[0].leaderTemplate.spec: Forbidden: violates PodSecurity "baseline:latest": host namespaces (hostPID=true); the platform team sets the standard (podSecurity in the Composition's input)`,
		},
		"ServiceAccount": {
			reason: "An engine does not run as an endpoint picker, by either name of the field.",
			spec:   template(`{spec: {serviceAccountName: svc-epp, serviceAccount: other-epp, containers: [{name: vllm, image: i}]}}`),
			want: `[spec.roles[0].template.spec.serviceAccountName: Invalid value: "svc-epp": must not end in -epp: such ServiceAccounts belong to endpoint pickers, ` +
				`spec.roles[0].template.spec.serviceAccount: Invalid value: "other-epp": must not end in -epp: such ServiceAccounts belong to endpoint pickers]`,
		},
		"PriorityClass": {
			reason: "Pods of a high priority evict those of other tenants.",
			spec:   template(`{metadata: {labels: {kueue.x-k8s.io/priority-class: top}}, spec: {priorityClassName: system-node-critical, priority: 2000001000, containers: [{name: vllm, image: i}]}}`),
			want: `[spec.roles[0].template.spec.priorityClassName: Invalid value: "system-node-critical": must be left out: none is allowed in namespace ns (allowedPriorityClassNames in the Composition's input), ` +
				`spec.roles[0].template.metadata.labels[kueue.x-k8s.io/priority-class]: Invalid value: "top": must be left out: none is allowed in namespace ns (allowedPriorityClassNames in the Composition's input), ` +
				`spec.roles[0].template.spec.priority: Forbidden: must be left out: Kubernetes sets it from priorityClassName]`,
		},
		"AllowedPriorityClass": {
			reason: "The platform team names those that are fine.",
			spec:   template(`{spec: {priorityClassName: research-low, containers: [{name: vllm, image: i}]}}`),
			input:  `{allowedPriorityClassNames: [research-*]}`,
		},
		"OtherPriorityClass": {
			reason: "The error says which there are.",
			spec:   template(`{spec: {priorityClassName: top, containers: [{name: vllm, image: i}]}}`),
			input:  `{allowedPriorityClassNames: [research-*]}`,
			want:   `spec.roles[0].template.spec.priorityClassName: Invalid value: "top": must be left out or match one of ["research-*"] in namespace ns (allowedPriorityClassNames in the Composition's input)`,
		},
		"AntiAffinity": {
			reason: "A running pod keeps away those that it excludes, also of other tenants.",
			spec: template(`{spec: {affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, labelSelector: {}},
				{topologyKey: zone, labelSelector: {}, namespaceSelector: {}}, {topologyKey: zone, labelSelector: {}, namespaces: [ns, other]}]}}, containers: [{name: vllm, image: i}]}}`),
			want: `[spec.roles[0].template.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[1].namespaceSelector: Forbidden: must be left out: it would keep other tenants' pods off nodes; use preferredDuringSchedulingIgnoredDuringExecution instead, ` +
				`spec.roles[0].template.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[2].namespaces: Forbidden: must be left out: it would keep other tenants' pods off nodes; use preferredDuringSchedulingIgnoredDuringExecution instead]`,
		},
		"EphemeralVolume": {
			reason: "Its claim may be what the claim of a cache may be.",
			spec:   ephemeral(`metadata: {annotations: {a: b}}, spec: {accessModes: [ReadWriteOnce], storageClassName: fast, resources: {requests: {storage: 1Ti}}, dataSourceRef: {apiGroup: snapshot.storage.k8s.io, kind: VolumeSnapshot, name: s, namespace: ns}}`),
			input:  `{modelCaches: {allowedStorageClassNames: [fast], maxSize: 1Ti}}`,
		},
		"EphemeralVolumeOfDefaults": {
			reason: "By default that is any size of the cluster's class.",
			spec:   ephemeral(`spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 100Ti}}}`),
		},
		"EphemeralVolumeTooLarge": {
			reason: "Otherwise a tenant would get around the limits of caches.",
			spec:   ephemeral(`metadata: {annotations: {volume.beta.kubernetes.io/storage-class: gold}}, spec: {accessModes: [ReadWriteOnce], storageClassName: gold, resources: {requests: {storage: 2Ti}}}`),
			input:  `{modelCaches: {maxSize: 1Ti}}`,
			want: `[spec.roles[0].template.spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.annotations[volume.beta.kubernetes.io/storage-class]: Invalid value: "gold": must be left out: set spec.storageClassName, ` +
				`spec.roles[0].template.spec.volumes[0].ephemeral.volumeClaimTemplate.spec.storageClassName: Invalid value: "gold": must be left out: none is allowed in namespace ns (modelCaches.allowedStorageClassNames in the Composition's input), ` +
				`spec.roles[0].template.spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources.requests[storage]: Invalid value: "2Ti": must be at most 1Ti (modelCaches.maxSize in the Composition's input)]`,
		},
		"EphemeralVolumeOfOthers": {
			reason: "A volume that exists may have another tenant's data.",
			spec: ephemeral(`spec: {accessModes: [ReadWriteOnce], storageClassName: "", resources: {requests: {storage: 1Gi}}, volumeName: pv-1, selector: {matchLabels: {a: b}},
				dataSourceRef: {apiGroup: snapshot.storage.k8s.io, kind: VolumeSnapshot, name: s, namespace: other}}`),
			want: `[spec.roles[0].template.spec.volumes[0].ephemeral.volumeClaimTemplate.spec.storageClassName: Invalid value: "": must be the name of a class, or be left out: without a class, the claim gets a volume that exists, which may be somebody else's, ` +
				`spec.roles[0].template.spec.volumes[0].ephemeral.volumeClaimTemplate.spec.volumeName: Invalid value: "pv-1": must be left out: a volume that exists may be somebody else's, so the claim gets a new one of its class, ` +
				`spec.roles[0].template.spec.volumes[0].ephemeral.volumeClaimTemplate.spec.selector: Forbidden: must be left out: a volume that exists may be somebody else's, so the claim gets a new one of its class, ` +
				`spec.roles[0].template.spec.volumes[0].ephemeral.volumeClaimTemplate.spec.dataSourceRef.namespace: Invalid value: "other": must be ns, or be left out: what is in other namespaces may be somebody else's]`,
		},
		"Gang": {
			reason: "A gang in another's queue takes that one's share.",
			spec:   gang(`{priorityClassName: top}, queueName: research`),
			want: `[spec.schedulingStrategy.queueName: Invalid value: "research": must be left out: none is allowed in namespace ns (allowedQueues in the Composition's input), ` +
				`spec.schedulingStrategy.gang.priorityClassName: Invalid value: "top": must be left out: none is allowed in namespace ns (allowedPriorityClassNames in the Composition's input)]`,
		},
		"PlatformDefaults": {
			reason: "A service may name the platform's default.",
			spec:   gang(`{priorityClassName: low}, queueName: shared`),
			input:  `{defaults: {schedulingStrategy: {queueName: shared, gang: {priorityClassName: low}}}}`,
		},
		"OtherThanPlatformDefaults": {
			reason: "The error names the platform's default beside what the namespace may use.",
			spec:   gang(`{priorityClassName: top}, queueName: research`),
			input:  `{defaults: {schedulingStrategy: {queueName: shared, gang: {priorityClassName: low}}}, allowedQueues: [team-*]}`,
			want: `[spec.schedulingStrategy.queueName: Invalid value: "research": must be left out or be the platform's default "shared" or match one of ["team-*"] in namespace ns (allowedQueues in the Composition's input), ` +
				`spec.schedulingStrategy.gang.priorityClassName: Invalid value: "top": must be left out or be the platform's default "low": no other is allowed in namespace ns (allowedPriorityClassNames in the Composition's input)]`,
		},
		"AllowedQueue": {
			reason: "A tenant has queues of its own.",
			spec:   gang(`{}, queueName: research`),
			input:  `{tenants: [{namespaces: [ns], allowedQueues: [research]}]}`,
		},
		"QueueOfPods": {
			reason: "Volcano takes the queue from pods, too.",
			spec:   template(queued),
			want:   `spec.roles[0].template.metadata.annotations[scheduling.volcano.sh/queue-name]: Invalid value: "research": must be left out: none is allowed in namespace ns (allowedQueues in the Composition's input)`,
		},
		"WithinLimits": {
			reason: "Two replicas on two nodes with four devices each.",
			spec:   template(gpus),
			input:  `{limits: {replicas: 2, nodes: 4, devices: 16}}`,
		},
		"BeyondLimits": {
			reason: "All limits at once, over all groups.",
			spec:   strings.TrimSuffix(template(gpus), "}") + ", replicas: 2}",
			input:  `{limits: {replicas: 3, nodes: 7, devices: 31}}`,
			want: `[spec.roles: Invalid value: "4 replicas": must have at most 3 replicas (limits.replicas in the Composition's input), ` +
				`spec.roles: Invalid value: "8 nodes": must have at most 7 nodes (limits.nodes in the Composition's input), ` +
				`spec.roles: Invalid value: "32 devices": must have at most 31 devices (limits.devices in the Composition's input)]`,
		},
		"EachCopy": {
			reason: "A placement may run the service several times, and limits hold for each time.",
			spec:   strings.TrimSuffix(template(gpus), "}") + ", placement: {clusters: [{name: a, providerConfigRef: {name: a}}, {name: b, providerConfigRef: {name: b}}]}}",
			input:  `{limits: {replicas: 2, nodes: 4, devices: 16}, allowedProviderConfigs: [{name: a}, {name: b}]}`,
		},
		"EachCopyOfFleet": {
			reason: "So it is in the fleet, where a selector may find more clusters on any day.",
			spec:   strings.TrimSuffix(template(gpus), "}") + ", placement: {policy: Replicate, clusters: [{name: a, inferenceClusterRef: {name: a}}, {name: b, inferenceClusterRef: {name: b}}]}}",
			input:  `{limits: {replicas: 2, nodes: 4, devices: 16}}`,
		},
		"SpreadCounts": {
			reason: "Parts of a service count together, in however many clusters they run.",
			spec:   strings.TrimSuffix(template(gpus), "}") + ", placement: {policy: Spread, clusters: [{name: a, inferenceClusterRef: {name: a}}, {name: b, inferenceClusterRef: {name: b}}]}}",
			input:  `{limits: {devices: 15}}`,
			want:   `spec.roles: Invalid value: "16 devices": must have at most 15 devices (limits.devices in the Composition's input)`,
		},
		"RouterCounts": {
			reason: "Endpoint pickers are pods, too.",
			spec:   strings.Replace(template(plain), "roles: [", "roles: [{name: r, componentType: router, replicas: 3}, ", 1),
			input:  `{limits: {replicas: 4, nodes: 6}}`,
			want: `[spec.roles: Invalid value: "5 replicas": must have at most 4 replicas (limits.replicas in the Composition's input), ` +
				`spec.roles: Invalid value: "7 nodes": must have at most 6 nodes (limits.nodes in the Composition's input)]`,
		},
		"RouterWithDevices": {
			reason: "No ledger counts what an endpoint picker requests.",
			spec:   strings.Replace(template(plain), "roles: [", `roles: [{name: r, componentType: router, endpointPicker: {resources: {limits: {cpu: 1, nvidia.com/gpu: "8"}, requests: {hugepages-2Mi: 1Gi}, claims: [{name: gpu}]}}}, `, 1),
			want: `[spec.roles[0].endpointPicker.resources.limits[nvidia.com/gpu]: Forbidden: must be left out: an endpoint picker may request only ["cpu" "memory" "ephemeral-storage"], ` +
				`spec.roles[0].endpointPicker.resources.requests[hugepages-2Mi]: Forbidden: must be left out: an endpoint picker may request only ["cpu" "memory" "ephemeral-storage"], ` +
				`spec.roles[0].endpointPicker.resources.claims: Forbidden: must be left out: an endpoint picker may request no devices]`,
		},
		"ManyDevices": {
			reason: "The lowest 64 bits of 2^64 - 8 devices and 8 more are zero.",
			spec: `{roles: [{name: w, componentType: worker, replicas: 1, multinode: {nodeCount: 2, launcher: None}, leaderTemplate: {spec: {containers: [{name: vllm, image: i, resources: {limits: {nvidia.com/gpu: "18446744073709551608"}}}]}},
				template: {spec: {containers: [{name: vllm, image: i, resources: {limits: {nvidia.com/gpu: 8}}}]}}}]}`,
			input: `{limits: {devices: 16}}`,
			want:  `spec.roles: Invalid value: "9223372036854775807 devices": must have at most 16 devices (limits.devices in the Composition's input)`,
		},
		"Claims": {
			reason: "Nobody can tell how many devices a claim has.",
			spec:   template(`{spec: {resourceClaims: [{name: gpu, resourceClaimTemplateName: eight}], containers: [{name: vllm, image: i, resources: {claims: [{name: gpu}]}}]}}`),
			input:  `{limits: {devices: 1}}`,
			want:   `spec.roles[0].template.spec.resourceClaims: Forbidden: must be left out where the platform team limits devices, because the devices of a claim cannot be counted: request them as resources`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := build(t, tc.spec, tc.input)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
