package v1alpha1_test

import "testing"

func TestValidateTemplates(t *testing.T) {
	testValidate(t, map[string]validation{
		"NoTemplate": {
			reason: "A role that runs an engine needs a template.",
			doc:    roles(`{name: w, componentType: decoder}`),
			schema: []string{`spec.roles`},
			want:   []string{`spec.roles[0].template: Required value: must be the template of the pods of a decoder, unless spec.profileName names a profile that has one`},
		},
		"ProfileName": {
			reason: "A profile that cannot exist is refused.",
			doc:    service(`{profileName: "A b", roles: [` + worker + `]}`),
			schema: []string{`spec.profileName`},
			want:   []string{`spec.profileName: Invalid value: "A b": must consist of lower case letters, digits and '-', and start and end with a letter or digit`},
		},
		"NoTemplateWithProfile": {
			reason: "The schema does not know what a profile has. Here no profile was merged.",
			doc:    service(`{profileName: p, roles: [{name: w, componentType: worker}]}`),
			want:   []string{`spec.roles[0].template: Required value: must be the template of the pods of a worker, unless spec.profileName names a profile that has one`},
		},
		"TemplateIsNoObject": {
			reason: "A template that is not an object is refused.",
			doc:    roles(`{name: w, componentType: worker, template: x}`),
			schema: []string{`spec.roles[0].template`},
			want:   []string{`spec.roles[0].template: Invalid value: "x": must be an object`},
		},
		"RouterFieldsOnWorker": {
			reason: "A router's fields have no effect on a worker, so they are refused.",
			doc:    roles(`{name: w, componentType: worker, template: {}, strategy: queue-size, httproute: {}, gateway: {}, endpointPickerConfig: x, endpointPicker: {failureMode: FailOpen}, servedModels: [{name: m}]}`),
			schema: []string{`spec.roles[0]`},
			want: []string{
				`spec.roles[0].strategy: Invalid value: "queue-size": must be left out: only a router may have it`,
				`spec.roles[0].httproute: Invalid value: "{...}": must be left out: only a router may have it`,
				`spec.roles[0].gateway: Invalid value: "{...}": must be left out: only a router may have it`,
				`spec.roles[0].endpointPickerConfig: Invalid value: "x": must be left out: only a router may have it`,
				`spec.roles[0].endpointPicker: Invalid value: "{...}": must be left out: only a router may have it`,
				`spec.roles[0].servedModels: Invalid value: "[...]": must be left out: only a router may have it`,
			},
		},
		"WorkerFieldsOnRouter": {
			reason: "A worker's fields have no effect on a router, so they are refused.",
			doc:    router(`multinode: {nodeCount: 2}, template: {}, leaderTemplate: {}`),
			schema: []string{`spec.roles[1]`},
			want: []string{
				`spec.roles[1].multinode: Invalid value: "{...}": must be left out: only a worker, prefiller or decoder may have it`,
				`spec.roles[1].template: Invalid value: "{...}": must be left out: only a worker, prefiller or decoder may have it`,
				`spec.roles[1].leaderTemplate: Invalid value: "{...}": must be left out: only a worker, prefiller or decoder may have it`,
			},
		},
	})
}
