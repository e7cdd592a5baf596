package v1alpha1_test

import "testing"

func TestValidatePlacement(t *testing.T) {
	testValidate(t, map[string]validation{
		"Clusters": {
			reason: "Two entries may be two namespaces of one cluster.",
			doc:    clusters(`{name: a, providerConfigRef: {name: c}}`, `{name: b, namespace: other, providerConfigRef: {name: c}}`),
		},
		"NoClusters": {
			reason: "A placement needs at least one cluster.",
			doc:    clusters(),
			schema: []string{`spec.placement.clusters`},
			want:   []string{`spec.placement.clusters: Required value: a placement names at least one cluster, or has a clusterSelector; without a placement the service runs beside this object`},
		},
		"DuplicateCluster": {
			reason: "The names of clusters are unique in a placement.",
			doc:    clusters(`{name: a, providerConfigRef: {name: c}}`, `{name: a, providerConfigRef: {name: d}}`),
			schema: []string{`spec.placement.clusters[1]`},
			want:   []string{`spec.placement.clusters[1].name: Duplicate value: "a"`},
		},
		"SameNamespace": {
			reason: "Two entries for one namespace of a cluster would write the same objects. Kind and namespace count with their defaults.",
			doc:    clusters(`{name: a, providerConfigRef: {name: c}}`, `{name: b, namespace: default, providerConfigRef: {kind: ClusterProviderConfig, name: c}}`),
			want:   []string{`spec.placement.clusters[1]: Invalid value: "b": must be another place: spec.placement.clusters[0] has the same providerConfigRef and namespace`},
		},
		"NamespaceInTheFleet": {
			reason: "A tenant cannot choose the namespace in a cluster that tenants share.",
			doc:    clusters(`{name: a, inferenceClusterRef: {name: east}, namespace: kube-system}`),
			schema: []string{`spec.placement.clusters[0].namespace`},
			want:   []string{`spec.placement.clusters[0].namespace: Forbidden: in a cluster of the fleet a service is in the namespace of its tenant's name`},
		},
		"NoClusterName": {
			reason: "A reference to an InferenceCluster needs a name.",
			doc:    clusters(`{name: a, inferenceClusterRef: {}}`),
			schema: []string{`spec.placement.clusters[0].inferenceClusterRef.name`},
			want:   []string{`spec.placement.clusters[0].inferenceClusterRef.name: Required value: must be the name of an InferenceCluster`},
		},
		"FailoverAfterSeconds": {
			reason: "The time until failover is at most a year.",
			doc:    service(`{roles: [` + worker + `], placement: {failoverAfterSeconds: 31536001, clusterSelector: {}}}`),
			schema: []string{`spec.placement.failoverAfterSeconds`},
			want:   []string{`spec.placement.failoverAfterSeconds: Invalid value: 31536001: must be from 0 to 31536000`},
		},
		"BadCluster": {
			reason: "Every field of a cluster is validated.",
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
	})
}
