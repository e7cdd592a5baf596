package v1alpha1_test

import "testing"

func TestValidateModels(t *testing.T) {
	testValidate(t, map[string]validation{
		"DuplicateModels": {
			reason: "The names of models are unique: clients tell models apart by name.",
			doc:    models(`{name: m}, {name: m}, {}`),
			schema: []string{
				`spec.roles[1].servedModels[1]`,
				`spec.roles[1].servedModels[2].name`,
			},
			want: []string{
				`spec.roles[1].servedModels[1].name: Duplicate value: "m": must differ from spec.roles[1].servedModels[0].name, which is the same`,
				`spec.roles[1].servedModels[2].name: Required value: must be the name of the model`,
			},
		},
		"PriorityTwice": {
			reason: "priority and criticality set the same thing, so only one may be given.",
			doc:    models(`{name: m, priority: 1, criticality: Standard}`),
			schema: []string{`spec.roles[1].servedModels[0]`},
			want:   []string{`spec.roles[1].servedModels[0].criticality: Invalid value: "Standard": must be left out if priority is set: both set the priority of the model`},
		},
		"UnknownCriticality": {
			reason: "The error lists the supported values.",
			doc:    models(`{name: m, criticality: High}`),
			schema: []string{`spec.roles[1].servedModels[0].criticality`},
			want:   []string{`spec.roles[1].servedModels[0].criticality: Unsupported value: "High": supported values: "Critical", "Standard", "Sheddable"`},
		},
		"NoWeight": {
			reason: "At least one target of a model needs a weight above 0.",
			doc:    models(`{name: m, targets: [{name: a, weight: 0}, {name: b, weight: 0}]}`),
			schema: []string{`spec.roles[1].servedModels[0]`},
			want:   []string{`spec.roles[1].servedModels[0].targets: Invalid value: "every weight is 0": must have at least one target with a weight above 0: otherwise nothing answers requests for the model`},
		},
		"BadWeights": {
			reason: "Targets need unique names, and weights within the limits.",
			doc:    models(`{name: m, targets: [{name: a, weight: -1}, {name: a, weight: 1000001}, {}]}`),
			schema: []string{
				`spec.roles[1].servedModels[0].targets[0].weight`,
				`spec.roles[1].servedModels[0].targets[1]`,
				`spec.roles[1].servedModels[0].targets[1].weight`,
				`spec.roles[1].servedModels[0].targets[2].name`,
			},
			want: []string{
				`spec.roles[1].servedModels[0].targets[0].weight: Invalid value: -1: must be from 0 to 1000000`,
				`spec.roles[1].servedModels[0].targets[1].name: Duplicate value: "a": must differ from spec.roles[1].servedModels[0].targets[0].name, which is the same`,
				`spec.roles[1].servedModels[0].targets[1].weight: Invalid value: 1000001: must be from 0 to 1000000`,
				`spec.roles[1].servedModels[0].targets[2].name: Required value: must be the name of the model`,
			},
		},
	})
}
