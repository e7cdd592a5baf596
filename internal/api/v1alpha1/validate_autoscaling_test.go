package v1alpha1_test

import (
	"fmt"
	"strings"
	"testing"
)

// scaledWorker is a worker with some fields in its scaling.
func scaledWorker(fields string) string {
	return roles(`{name: w, componentType: worker, template: {}, scaling: {` + fields + `}}`)
}

func TestValidateAutoscaler(t *testing.T) {
	const (
		at      = `spec.roles[0].scaling`
		one     = `must have exactly one of waitingRequests, runningRequests, kvCacheUtilizationPercent, tokensPerSecond and timeToFirstTokenMilliseconds`
		metrics = `metrics: [{type: External, external: {metric: {name: m}, target: {type: AverageValue, averageValue: 1}}}]`
		wakes   = `: Invalid value: 0: must be 1 or more with metrics: only target and triggers wake a role that runs 0 replicas`
	)
	many := make([]string, 65)
	for i := range many {
		many[i] = fmt.Sprintf("k%d: v", i)
	}
	testValidate(t, map[string]validation{
		"Target": {
			reason: "Each target has one number.",
			doc:    scaledWorker(`maxReplicas: 4, target: {kvCacheUtilizationPercent: 100}, behavior: {scaleDown: {stabilizationWindowSeconds: 0}}`),
		},
		"Metrics": {
			reason: "Metrics are documents, with fields that are younger than this release.",
			doc:    scaledWorker(`maxReplicas: 4, metrics: [{type: Young, young: {a: [1]}}]`),
		},
		"Triggers": {
			reason: "Triggers wake a role that runs nothing.",
			doc:    scaledWorker(`minReplicas: 0, maxReplicas: 4, triggers: [{type: cron, name: day, metricType: AverageValue, metadata: {start: x}, authenticationRef: {name: a, kind: TriggerAuthentication}}]`),
		},
		"Several": {
			reason: "Two autoscalers would fight.",
			doc:    scaledWorker(`maxReplicas: 4, target: {waitingRequests: 1}, triggers: [{type: cron, metadata: {}}], ` + metrics),
			schema: []string{at},
			want:   []string{at + `: Invalid value: "{...}": must have at most one of target, metrics and triggers`},
		},
		"BehaviorOfNothing": {
			reason: "There is no autoscaler whose behavior it could be.",
			doc:    scaledWorker(`maxReplicas: 4, behavior: {}`),
			schema: []string{at + `.behavior`},
			want:   []string{at + `.behavior: Forbidden: must be left out without target, metrics or triggers: nothing scales the role then`},
		},
		"TargetWakes": {
			reason: "A request that waits in the endpoint picker wakes it.",
			doc:    scaledWorker(`minReplicas: 0, maxReplicas: 4, target: {waitingRequests: 1}`),
		},
		"MetricsNeverWake": {
			reason: "A HorizontalPodAutoscaler does not start from 0.",
			doc:    scaledWorker(`minReplicas: 0, maxReplicas: 4, ` + metrics),
			schema: []string{at + `.minReplicas`},
			want:   []string{at + `.minReplicas` + wakes},
		},
		"NoTarget": {
			reason: "An empty target says nothing.",
			doc:    scaledWorker(`maxReplicas: 4, target: {}`),
			schema: []string{at + `.target`},
			want:   []string{at + `.target: Invalid value: "{...}": ` + one},
		},
		"TwoTargets": {
			reason: "All problems of both are reported.",
			doc:    scaledWorker(`maxReplicas: 4, target: {waitingRequests: 0, kvCacheUtilizationPercent: 101}`),
			schema: []string{at + `.target`, at + `.target.kvCacheUtilizationPercent`, at + `.target.waitingRequests`},
			want: []string{
				at + `.target: Invalid value: "{...}": ` + one,
				at + `.target.waitingRequests: Invalid value: 0: must be from 1 to 100000`,
				at + `.target.kvCacheUtilizationPercent: Invalid value: 101: must be from 1 to 100`,
			},
		},
		"Empty": {
			reason: "An empty list is probably a mistake.",
			doc:    scaledWorker(`maxReplicas: 4, triggers: []`),
			schema: []string{at + `.triggers`},
			want:   []string{at + `.triggers: Required value: must list triggers of KEDA, or be left out`},
		},
		"TooMany": {
			reason: "Lists are bounded.",
			doc:    scaledWorker(`maxReplicas: 4, metrics: [` + strings.Repeat(`{},`, 17) + `]`),
			schema: []string{at + `.metrics`},
			want:   []string{at + `.metrics: Too many: 17: must have at most 16 items`},
		},
		"IdentityOwner": {
			reason: "KEDA's own account is the platform team's.",
			doc: scaledWorker(`maxReplicas: 4, triggers: [{type: aws-sqs-queue, metadata: {queueURL: q, identityOwner: operator}}, ` +
				`{type: aws-sqs-queue, metadata: {queueURL: q, identityOwner: pod}, authenticationRef: {name: a}}]`),
			want: []string{at + `.triggers[0].metadata[identityOwner]: Invalid value: "operator": must be left out, or be pod: KEDA would use its own account, which is the platform team's`},
		},
		"Trigger": {
			reason: "A trigger of a tenant has the tenant's credentials, a type and metadata.",
			doc: scaledWorker(`maxReplicas: 4, triggers: [{type: Cron, name: a, metadata: {}, metricType: Utilization}, ` +
				`{type: cron, name: a, authenticationRef: {kind: ClusterTriggerAuthentication, name: all}}, {type: cron, metadata: {` + strings.Join(many, ", ") + `}, authenticationRef: {}}]`),
			schema: []string{
				at + `.triggers[0].metricType`, at + `.triggers[0].type`, at + `.triggers[1].authenticationRef.kind`, at + `.triggers[1].metadata`,
				at + `.triggers[2].authenticationRef.name`, at + `.triggers[2].metadata`,
			},
			want: []string{
				at + `.triggers[0].type: Invalid value: "Cron": must consist of lower case letters, digits and '-', and start and end with a letter or digit`,
				at + `.triggers[0].metricType: Unsupported value: "Utilization": supported values: "AverageValue", "Value"`,
				at + `.triggers[1].name: Duplicate value: "a": must differ from ` + at + `.triggers[0].name, which is the same`,
				at + `.triggers[1].metadata: Required value: must be what the type of trigger needs, such as serverAddress, query and threshold`,
				at + `.triggers[1].authenticationRef.kind: Invalid value: "ClusterTriggerAuthentication": must be left out, or be TriggerAuthentication: one of a cluster has credentials of the platform team`,
				at + `.triggers[2].metadata: Too many: 65: must have at most 64 items`,
				at + `.triggers[2].authenticationRef.name: Required value: must be the name of a TriggerAuthentication in the namespace of the service`,
			},
		},
	})
}
