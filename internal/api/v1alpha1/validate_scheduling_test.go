package v1alpha1_test

import "testing"

func TestValidateScheduling(t *testing.T) {
	testValidate(t, map[string]validation{
		"Gang": {
			reason: "A gang may have every one of its fields.",
			doc:    scheduling(`{gang: {mode: MinimumFirst, minRoleReplicas: {p: 1, d: 9}, networkTopology: {highestTierAllowed: 2}, priorityClassName: high}, queueName: q.a}`),
		},
		"OtherScheduler": {
			reason: "A service without a gang may use any scheduler.",
			doc:    service(`{roles: [` + worker + `], schedulingStrategy: {schedulerName: other, gang: {mode: AllOrNothing}}}`),
		},
		"MinOfUnknownRole": {
			reason: "The error lists the roles of the service.",
			doc:    gang(`{minRoleReplicas: {x: 1}}`),
			schema: []string{`spec.schedulingStrategy.gang.minRoleReplicas`},
			want:   []string{`spec.schedulingStrategy.gang.minRoleReplicas[x]: Invalid value: 1: must be for a role of this service: one of ["p" "d"]`},
		},
		"MinOfRouter": {
			reason: "A router is not part of a gang, so it has no minimum.",
			doc:    gang(`{minRoleReplicas: {r: 1}}`),
			schema: []string{`spec.schedulingStrategy.gang.minRoleReplicas`},
			want:   []string{`spec.schedulingStrategy.gang.minRoleReplicas[r]: Invalid value: 1: must not be for the router, which is in no gang: use one of ["p" "d"]`},
		},
		"NegativeMin": {
			reason: "Each minimum is within the limits of replicas.",
			doc:    gang(`{minRoleReplicas: {p: -1, d: 2001}}`),
			schema: []string{`spec.schedulingStrategy.gang.minRoleReplicas`},
			want: []string{
				`spec.schedulingStrategy.gang.minRoleReplicas[d]: Invalid value: 2001: must be from 0 to 2000`,
				`spec.schedulingStrategy.gang.minRoleReplicas[p]: Invalid value: -1: must be from 0 to 2000`,
			},
		},
		"UnknownGangMode": {
			reason: "The error lists the supported values.",
			doc:    gang(`{mode: All}`),
			schema: []string{`spec.schedulingStrategy.gang.mode`},
			want:   []string{`spec.schedulingStrategy.gang.mode: Unsupported value: "All": supported values: "AllOrNothing", "MinimumFirst", "None"`},
		},
		"OtherSchedulerWithGang": {
			reason: "Only planning knows, from the Input, whether the service has a gang. The schema refuses what is wrong with every Input.",
			doc:    scheduling(`{schedulerName: other, gang: {mode: MinimumFirst}}`),
			schema: []string{`spec.schedulingStrategy.schedulerName`},
		},
		"HardWithoutTier": {
			reason: "Mode hard, which is the default, needs a highest tier.",
			doc:    gang(`{networkTopology: {}}`),
			schema: []string{`spec.schedulingStrategy.gang.networkTopology`},
			want:   []string{`spec.schedulingStrategy.gang.networkTopology.highestTierAllowed: Required value: must be set in mode hard, unless highestTierName is set`},
		},
		"HardWithBothTiers": {
			reason: "The highest tier is given either as a number or by name.",
			doc:    gang(`{networkTopology: {mode: hard, highestTierAllowed: 1, highestTierName: rack}}`),
			schema: []string{`spec.schedulingStrategy.gang.networkTopology`},
			want:   []string{`spec.schedulingStrategy.gang.networkTopology.highestTierName: Invalid value: "rack": must be left out if highestTierAllowed is set`},
		},
		"SoftWithTiers": {
			reason: "Mode soft has no highest tier.",
			doc:    gang(`{networkTopology: {mode: soft, highestTierAllowed: 1, highestTierName: rack}}`),
			schema: []string{`spec.schedulingStrategy.gang.networkTopology`},
			want: []string{
				`spec.schedulingStrategy.gang.networkTopology.highestTierAllowed: Invalid value: 1: must be left out in mode soft, which has no highest tier`,
				`spec.schedulingStrategy.gang.networkTopology.highestTierName: Invalid value: "rack": must be left out in mode soft, which has no highest tier`,
			},
		},
		"UnknownTopology": {
			reason: "The error lists the supported values, and a tier is not negative.",
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
			reason: "The queue and the priority class are names of Kubernetes objects.",
			doc:    scheduling(`{gang: {priorityClassName: a/b}, queueName: Q_1}`),
			schema: []string{
				`spec.schedulingStrategy.gang.priorityClassName`,
				`spec.schedulingStrategy.queueName`,
			},
			want: []string{
				`spec.schedulingStrategy.queueName: Invalid value: "Q_1": must be the name of a Kubernetes object: lower case letters, digits, '-' and '.', starting and ending with a letter or digit`,
				`spec.schedulingStrategy.gang.priorityClassName: Invalid value: "a/b": must be the name of a Kubernetes object: lower case letters, digits, '-' and '.', starting and ending with a letter or digit`,
			},
		},
	})
}
