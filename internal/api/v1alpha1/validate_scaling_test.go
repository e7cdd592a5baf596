package v1alpha1_test

import "testing"

const (
	scaledPrefill = `{name: p, componentType: prefiller, scaling: {maxReplicas: 4}, template: {}}`
	scaledDecode  = `{name: d, componentType: decoder, scaling: {minReplicas: 0, maxReplicas: 2000}, template: {}}`
)

func TestValidateScaling(t *testing.T) {
	const noPair = `must be left out unless the service has one prefiller and one decoder, both with scaling`
	testValidate(t, map[string]validation{
		"Scaled": {
			reason: "A role with scaling has no replicas, and may go to 0.",
			doc:    service(`{scaling: {ratio: {prefill: 1, decode: 2, tolerancePercent: 10}}, roles: [` + scaledPrefill + `, ` + scaledDecode + `]}`),
		},
		"WithReplicas": {
			reason: "Only one of replicas and scaling says how many replicas there are.",
			doc:    roles(`{name: w, componentType: worker, replicas: 2, scaling: {maxReplicas: 4}, template: {}}`),
			schema: []string{`spec.roles[0].replicas`},
			want:   []string{`spec.roles[0].replicas: Invalid value: 2: must be left out with scaling: the InferenceRole of this role has the number`},
		},
		"Router": {
			reason: "Endpoint pickers do not scale.",
			doc:    roles(worker, `{name: r, componentType: router, scaling: {maxReplicas: 4}}`),
			schema: []string{`spec.roles[1]`},
			want:   []string{`spec.roles[1].scaling: Invalid value: "{...}": must be left out: only a worker, prefiller or decoder may have it`},
		},
		"Groups": {
			reason: "A service with groups scales by them.",
			doc:    service(`{replicas: 1, roles: [{name: w, componentType: worker, scaling: {maxReplicas: 4}, template: {}}]}`),
			schema: []string{`spec.roles`},
			want:   []string{`spec.roles[0].scaling: Forbidden: must be left out with spec.replicas: such a service scales by whole groups, with its own scale subresource`},
		},
		"NoMaximum": {
			reason: "maxReplicas is what limits are checked with, so it is required.",
			doc:    roles(`{name: w, componentType: worker, scaling: {minReplicas: 2}, template: {}}`),
			schema: []string{`spec.roles[0].scaling.maxReplicas`},
			want:   []string{`spec.roles[0].scaling.maxReplicas: Required value: must be the largest number of replicas, 1 to 2000`},
		},
		"MinimumAboveMaximum": {
			reason: "There is a number between both.",
			doc:    roles(`{name: w, componentType: worker, scaling: {minReplicas: 5, maxReplicas: 4}, template: {}}`),
			schema: []string{`spec.roles[0].scaling.minReplicas`},
			want:   []string{`spec.roles[0].scaling.minReplicas: Invalid value: 5: must be at most maxReplicas, which is 4`},
		},
		"OutOfRange": {
			reason: "Both are in the range of replicas.",
			doc:    roles(`{name: w, componentType: worker, scaling: {minReplicas: -1, maxReplicas: 2001}, template: {}}`),
			schema: []string{`spec.roles[0].scaling.maxReplicas`, `spec.roles[0].scaling.minReplicas`},
			want: []string{
				`spec.roles[0].scaling.maxReplicas: Invalid value: 2001: must be from 1 to 2000`,
				`spec.roles[0].scaling.minReplicas: Invalid value: -1: must be from 0 to 2000`,
			},
		},
		"RatioOfOneScaledRole": {
			reason: "A ratio changes both roles.",
			doc:    service(`{scaling: {ratio: {prefill: 1, decode: 2}}, roles: [` + scaledPrefill + `, {name: d, componentType: decoder, replicas: 2, template: {}}]}`),
			schema: []string{`spec.scaling.ratio`},
			want:   []string{`spec.scaling.ratio: Forbidden: ` + noPair},
		},
		"RatioOfWorkers": {
			reason: "A ratio is one of prefill and decode.",
			doc:    service(`{scaling: {ratio: {prefill: 1, decode: 2}}, roles: [{name: w, componentType: worker, scaling: {maxReplicas: 4}, template: {}}]}`),
			schema: []string{`spec.scaling.ratio`},
			want:   []string{`spec.scaling.ratio: Forbidden: ` + noPair},
		},
		"RatioBeyondLimits": {
			reason: "The limits of both roles allow the ratio.",
			doc: service(`{scaling: {ratio: {prefill: 1, decode: 2}}, roles: [{name: p, componentType: prefiller, scaling: {maxReplicas: 2}, template: {}}, ` +
				`{name: d, componentType: decoder, scaling: {minReplicas: 6, maxReplicas: 8}, template: {}}]}`),
			want: []string{`spec.scaling.ratio: Invalid value: "1:2": needs 3 replicas of p beside the least of d, which are 6, and the maxReplicas of p is 2: raise that, or change minReplicas or the ratio`},
		},
		"RatioOfNothing": {
			reason: "A ratio that only stopped roles keep is none.",
			doc: service(`{scaling: {ratio: {prefill: 1, decode: 4}}, roles: [{name: p, componentType: prefiller, scaling: {minReplicas: 0, maxReplicas: 4}, template: {}}, ` +
				`{name: d, componentType: decoder, scaling: {minReplicas: 0, maxReplicas: 2}, template: {}}]}`),
			want: []string{`spec.scaling.ratio: Invalid value: "1:4": needs 4 replicas of d beside the least of p, which are 1, and the maxReplicas of d is 2: raise that, or change minReplicas or the ratio`},
		},
		"RatioOutOfRange": {
			reason: "A ratio asks for something of both roles.",
			doc:    service(`{scaling: {ratio: {prefill: 0, tolerancePercent: 100}}, roles: [` + scaledPrefill + `, ` + scaledDecode + `]}`),
			schema: []string{`spec.scaling.ratio.decode`, `spec.scaling.ratio.prefill`, `spec.scaling.ratio.tolerancePercent`},
			want: []string{
				`spec.scaling.ratio.prefill: Invalid value: 0: must be from 1 to 2000`,
				`spec.scaling.ratio.decode: Required value: must be a number of replicas, 1 to 2000`,
				`spec.scaling.ratio.tolerancePercent: Invalid value: 100: must be from 0 to 99`,
			},
		},
		"LongestName": {
			reason: "The name of the last replica that scaling may make fits.",
			doc:    roles(`{name: a234567890123456789012345678901234567890123, componentType: worker, scaling: {maxReplicas: 1001}, template: {}}`),
			want:   []string{`spec.roles[0].name: Invalid value: "a234567890123456789012345678901234567890123": the name of the LeaderWorkerSet, svc-a234567890123456789012345678901234567890123-1000, would have 52 characters, and may have at most 50: shorten the name of the service or of the role by 2`},
		},
	})
}
